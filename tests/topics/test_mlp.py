"""The MLP, its losses and its optimizers equal torch's autograd and torch.optim."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from byhand.model.digits import load_digits
from byhand.model.mlp import (
    GELU,
    MLP,
    Linear,
    ReLU,
    mean_squared_error,
    random_weights,
    softmax_cross_entropy,
)
from byhand.model.optimizers import SGD, AdamW

TIGHT = {"rtol": 1e-12, "atol": 1e-12}


def reference(weights, activation):
    layers = []
    for weight, bias in weights:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
        layers += [activation, linear] if layers else [linear]
    return torch.nn.Sequential(*layers)


def assert_close(mine, theirs, **tolerance):
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, **(tolerance or TIGHT))


@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5),
    st.integers(1, 7),
    st.sampled_from([(ReLU, torch.nn.ReLU()), (GELU, torch.nn.GELU())]),
)
@settings(max_examples=40)
def test_every_gradient_equals_autograds(sizes, num_rows, activations):
    weights = random_weights(sizes, seed=1, dtype=torch.float64)
    mine = MLP.from_weights(weights, activations[0])
    theirs = reference(weights, activations[1])
    x = torch.randn(num_rows, sizes[0], dtype=torch.float64, requires_grad=True)
    labels = torch.randint(sizes[-1], (num_rows,))
    logits, saved = mine.forward(x.detach())
    loss, grad = softmax_cross_entropy(logits, labels)
    grad_x = mine.backward(grad, saved)
    expected = F.cross_entropy(theirs(x), labels)
    expected.backward()
    assert_close([loss, grad_x], [expected.detach(), x.grad])
    assert_close(mine.gradients(), [p.grad for p in theirs.parameters()])


def test_split_and_first_backward_give_the_same_gradients():
    weights = random_weights([6, 5, 4], dtype=torch.float64)
    x, grad_y = torch.randn(3, 6, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    whole, split, first = (MLP.from_weights(weights, GELU) for _ in range(3))
    grad_x = whole.backward(grad_y, whole.forward(x)[1])
    split_x, kept = split.backward_input(grad_y, split.forward(x)[1])
    assert not any(g.any() for g in split.gradients())
    split.backward_weight(kept)
    first.backward_first(grad_y, first.forward(x)[1])
    assert_close([split_x], [grad_x])
    assert_close(split.gradients(), whole.gradients())
    assert_close(first.gradients(), whole.gradients())


def test_gradients_add_up_over_micro_batches_in_flight():
    weights = random_weights([6, 5, 4], dtype=torch.float64)
    whole, parts = MLP.from_weights(weights), MLP.from_weights(weights)
    x, labels = torch.randn(7, 6, dtype=torch.float64), torch.randint(4, (7,))
    logits, saved = whole.forward(x)
    loss, grad = softmax_cross_entropy(logits, labels)
    whole.backward(grad, saved)
    flights = [
        (*parts.forward(piece), part)
        for piece, part in zip(x.split(3), labels.split(3), strict=True)
    ]
    losses = []
    for logits, saved, part in flights:
        share, grad = softmax_cross_entropy(logits, part, global_batch=7)
        losses.append(share)
        parts.backward(grad, saved)
    assert_close([sum(losses)], [loss])
    assert_close(parts.gradients(), whole.gradients())


def test_mean_squared_error_equals_torchs_and_adds_up():
    y, target = torch.randn(2, 5, 3, dtype=torch.float64)
    mine = y.clone().requires_grad_()
    expected = F.mse_loss(mine, target)
    expected.backward()
    loss, grad = mean_squared_error(y, target)
    assert_close([loss, grad], [expected.detach(), mine.grad])
    shares = [mean_squared_error(a, b, 5) for a, b in zip(y.split(2), target.split(2), strict=True)]
    assert_close([sum(s[0] for s in shares), torch.cat([s[1] for s in shares])], [loss, grad])


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (lambda p: SGD(p, 0.1), lambda p: torch.optim.SGD(p, 0.1)),
        (lambda p: SGD(p, 0.1, 0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
        (
            lambda p: AdamW(p, 0.01, weight_decay=0.1),
            lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
        ),
    ],
    ids=["sgd", "momentum", "adamw"],
)
def test_five_steps_equal_torchs_optimizer(mine, theirs):
    shapes = [(4, 3), (4,), (2, 4)]
    mine_p = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    theirs_p = [p.clone().requires_grad_() for p in mine_p]
    optimizer, reference_optimizer = mine(mine_p), theirs(theirs_p)
    for _ in range(5):
        gradients = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
        for p, g in zip(theirs_p, gradients, strict=True):
            p.grad = g.clone()
        optimizer.step(gradients)
        reference_optimizer.step()
    assert_close(mine_p, [p.detach() for p in theirs_p])


def test_the_digits_are_split_once_and_for_all():
    digits = load_digits()
    assert [len(part) for part in digits] == [1437, 1437, 360, 360]
    assert digits.train_x.min() == 0
    assert digits.train_x.max() == 1
    assert torch.equal(digits.test_x, load_digits().test_x)


def test_what_does_not_fit_is_refused_with_both_numbers():
    with pytest.raises(ValueError, match=r"weight \[4, 3\].* bias \[3\]"):
        Linear(torch.ones(4, 3), torch.ones(3))
    with pytest.raises(ValueError, match=r"5 features of torch\.float32, but this layer takes 3"):
        Linear(torch.ones(4, 3), torch.ones(4)).forward(torch.ones(2, 5))
    with pytest.raises(ValueError, match=r"torch.float64, but .* torch.float32"):
        Linear(torch.ones(4, 3), torch.ones(4)).forward(torch.ones(2, 3, dtype=torch.float64))
    with pytest.raises(ValueError, match="a shard of 4 rows is no part of a batch of 3"):
        softmax_cross_entropy(torch.ones(4, 2), torch.zeros(4).long(), global_batch=3)
