"""The same twenty steps under three frameworks that are not torch's: each needs its own package.

They are installed by `pip install byhand[frameworks]`, and imported only where they are used.
Sources: huggingface.co/docs/accelerate; deepspeed.readthedocs.io;
docs.nvidia.com/megatron-core, tensor_parallel package.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import AdamW

from byhand.frameworks.by_torch import (
    LR,
    Batches,
    Losses,
    next_token_loss,
    rows_of,
    sum_over_ranks,
    train,
)
from byhand.frameworks.transformer import Block, blocks_of, transformer
from byhand.model.gpt import GPT


def missing(package: str) -> str | None:
    """Why a package cannot be used here; None where it can."""
    if importlib.util.find_spec(package) is None:
        return f"{package} is not installed: pip install 'byhand[frameworks]'"
    return None


def accelerate(weights: GPT, batches: Batches) -> Losses:
    """Data parallelism again: on CPUs `prepare` puts the model into DDP, whatever else is asked."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = transformer(weights)
    optimizer = AdamW(model.parameters(), LR)
    model, optimizer = accelerator.prepare(model, optimizer)
    for tokens, following in rows_of(batches):
        optimizer.zero_grad()
        loss = next_token_loss(model(tokens), following)
        accelerator.backward(loss)
        optimizer.step()
        yield loss.detach()


def deepspeed(weights: GPT, batches: Batches, clip: float | None = 0.0) -> Losses:
    """ZeRO-2, by a dictionary. The engine has a backward and a step of its own.

    clip: 0 for never; None leaves that line out.
    """
    config = {
        "train_micro_batch_size_per_gpu": len(rows_of(batches[:1])[0][0]),
        "optimizer": {"type": "AdamW", "params": {"lr": LR, "torch_adam": True}},
        "zero_optimization": {"stage": 2, "reduce_bucket_size": 100_000},
        "gradient_clipping": clip,
    }
    config = {name: value for name, value in config.items() if value is not None}
    options = {"model": transformer(weights), "config": config, "dist_init_required": False}
    engine, *_ = _deepspeed().initialize(**options)
    for tokens, following in rows_of(batches):
        loss = next_token_loss(engine(tokens), following)
        engine.backward(loss)
        engine.step()
        yield loss.detach()


def megatron(weights: GPT, batches: Batches) -> Losses:
    """Tensor parallelism by Megatron's layers, put where nn.Linear was."""
    from megatron.core import parallel_state

    parallel_state.initialize_model_parallel(dist.get_world_size())
    model = transformer(weights)
    for block in blocks_of(model):
        _split_by_megatron(block)
    optimizer = AdamW(model.parameters(), LR)
    yield from train(model, optimizer, batches)
    parallel_state.destroy_model_parallel()


class Split(nn.Module):
    """One of Megatron's linear layers, which returns its bias beside what it computed."""

    def __init__(self, kind: type, full: nn.Linear, dim: int, **options: bool):
        """With this rank's shard of the full weight, cut along `dim`: 0 by column, 1 by row."""
        super().__init__()
        self.layer = kind(
            full.in_features,
            full.out_features,
            config=_config(),
            init_method=nn.init.zeros_,
            bias=True,
            skip_bias_add=False,
            **options,
        )
        rank, n = dist.get_rank(), dist.get_world_size()
        with torch.no_grad():
            self.layer.weight.copy_(full.weight.chunk(n, dim)[rank])
            self.layer.bias.copy_(full.bias if dim else full.bias.chunk(n)[rank])

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


def _split_by_megatron(block: Block) -> None:
    """Columns, then rows, and the sums of the gains that the heads share, as in by_torch."""
    from megatron.core.tensor_parallel import ColumnParallelLinear, RowParallelLinear

    for owner, name in (
        (block.attention, "q"),
        (block.attention, "k"),
        (block.attention, "v"),
        (block, "up"),
    ):
        split = Split(ColumnParallelLinear, getattr(owner, name), 0, gather_output=False)
        setattr(owner, name, split)
    for owner, name in ((block.attention, "out"), (block, "down")):
        split = Split(RowParallelLinear, getattr(owner, name), 1, input_is_parallel=True)
        setattr(owner, name, split)
    for norm in (block.attention.q_norm, block.attention.k_norm):
        norm.weight.register_post_accumulate_grad_hook(sum_over_ranks)


def _config() -> Any:
    from megatron.core.model_parallel_config import ModelParallelConfig

    n = dist.get_world_size()
    return ModelParallelConfig(tensor_model_parallel_size=n, use_cpu_initialization=True)


def _deepspeed() -> Any:
    """The package, kept from compiling a helper when it is imported."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed

    sys.modules["deepspeed.ops"].__dict__["__compatible_ops__"] = {}
    return deepspeed
