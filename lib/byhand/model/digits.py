"""Real data that every scikit-learn carries: 1 797 handwritten digits of 8 × 8 pixels.

Load them in the notebook and pass them to `launch`: ranks then need not import scikit-learn.
Source: Alpaydin and Kaynak 1998, Optical Recognition of Handwritten Digits, UCI (its test set).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Digits(NamedTuple):
    """x [N, 64], pixels from 0 to 1, and labels [N], 0 to 9: 1 437 to train on, 360 to test."""

    train_x: Tensor
    train_labels: Tensor
    test_x: Tensor
    test_labels: Tensor


def load_digits(dtype: torch.dtype = torch.float32, seed: int = 0) -> Digits:
    """The digits, shuffled by `seed` and split: a fifth of them are for testing."""
    from sklearn.datasets import load_digits as load

    pixels, labels = load(return_X_y=True)
    x, labels = torch.from_numpy(pixels / 16).to(dtype), torch.from_numpy(labels).long()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    test, train = order[: len(x) // 5 + 1], order[len(x) // 5 + 1 :]
    return Digits(x[train], labels[train], x[test], labels[test])
