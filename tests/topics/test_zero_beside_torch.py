"""ZeRO by hand beside torch's FSDP2 and ZeroRedundancyOptimizer, and DeepSpeed: same numbers."""

import importlib.util
import inspect
import os
import sys
from functools import partial

import pytest
import torch
import torch.distributed as dist
from test_zero import (
    MAX_NORM,
    STAGES,
    build,
    calls_of_a_step,
    close,
    data,
    train,
)
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from byhand import RankError, launch
from byhand.data_parallel import shard
from byhand.model.mlp import Linear, softmax_cross_entropy
from byhand.model.optimizers import SGD
from byhand.zero import ShardedModule, ShardedParameters, hooks


def modules_of(layers):
    """torch's modules with the weights of our layers."""
    modules = []
    for layer in layers:
        if isinstance(layer, Linear):
            modules.append(nn.Linear(*layer.weight.T.shape, dtype=layer.weight.dtype))
            modules[-1].weight.data, modules[-1].bias.data = layer.weight, layer.bias
        else:
            modules.append(nn.GELU())
    return nn.Sequential(*modules)


def fully_sharded(layers, mp=None, reshard=True):
    """torch's FSDP2 of the same layers, each linear layer a unit."""
    options = {"mp_policy": mp or MixedPrecisionPolicy(), "reshard_after_forward": reshard}
    mesh, model = init_device_mesh("cpu", (dist.get_world_size(),)), modules_of(layers)
    for module in model:
        if isinstance(module, nn.Linear):
            fully_shard(module, mesh=mesh, **options)
    return fully_shard(model, mesh=mesh, **options)


def in_bfloat16(rank, world_size, x, labels, reduce_dtype, layers):
    options = {"dtype": torch.bfloat16, "reduce_dtype": reduce_dtype}
    model = ShardedParameters(layers, partial(SGD, lr=0.1), **options)
    dist.barrier()
    for _ in range(3):
        y, saved = model.forward(shard(x).bfloat16())
        _, grad = softmax_cross_entropy(y.float(), shard(labels), len(x))
        model.backward(grad.bfloat16(), saved)
        model.step()
    return [flat.shard for flat in model.flats]


def fsdp_in_bfloat16(rank, world_size, x, labels, reduce_dtype, layers):
    model = fully_sharded(layers, mp=MixedPrecisionPolicy(torch.bfloat16, reduce_dtype))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    dist.barrier()
    for _ in range(3):
        optimizer.zero_grad()
        F.cross_entropy(model(shard(x)).float(), shard(labels)).backward()
        optimizer.step()
    return [p.full_tensor().detach() for p in model.parameters()]


@pytest.mark.parametrize("reduce_dtype", [None, torch.float32])
def test_bfloat16_is_gathered_and_float32_is_kept_as_fsdp2_does(reduce_dtype):
    sizes = (16, 32, 8)
    ((x, labels),) = data(8, sizes, torch.float32, steps=1)
    arguments = (x, labels, reduce_dtype, build(0, sizes, torch.float32))
    ours, theirs = launch(in_bfloat16, 2, arguments), launch(fsdp_in_bfloat16, 2, arguments)
    flats = [torch.cat(shards) for shards in zip(*(r for r in ours.results), strict=True)]
    wanted = [p.flatten() for p in theirs.results[0]]
    assert flats[0].dtype == torch.float32
    close(torch.cat(flats), torch.cat(wanted), rtol=0, atol=5e-3)
    for op in ("all_gather", "reduce_scatter"):
        sent = [
            sum(e.sent_bytes for e in calls_of_a_step(run) if e.op == op) for run in (ours, theirs)
        ]
        gathered_at_the_end = 4 * 808 // 2 if op == "all_gather" else 0  # full_tensor()
        assert sent[0] == sent[1] - gathered_at_the_end


# Beside torch's own


def fsdp(rank, world_size, layers, batches, reshard):
    model = fully_sharded(layers, reshard=reshard)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    dist.barrier()
    losses = []
    for x, labels in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(shard(x)), shard(labels))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        losses.append(loss.detach() / world_size)
    return torch.stack(losses)


@pytest.mark.parametrize(("way", "reshard"), [(3, True), ("3 kept", False)])
def test_stage_3_and_fsdp2_have_the_same_losses_calls_and_bytes(way, reshard):
    sizes = (8, 16, 16, 4)  # every dimension a multiple of 4: FSDP2 pads each parameter by itself
    batches = data(12, sizes, steps=3)
    theirs = launch(fsdp, 4, (build(0, sizes), batches, reshard))
    ours = launch(train, 4, (way, partial(build, sizes=sizes), batches, softmax_cross_entropy))
    close(
        *(
            sum(result if torch.is_tensor(result) else result[0] for result in run.results)
            for run in (ours, theirs)
        )
    )
    for op in ("all_gather", "reduce_scatter"):
        events = [e for e in calls_of_a_step(theirs) if e.op == op]
        mine = ours.ledger.select(op, 0)[: len(events)]
        assert sorted(e.sent_bytes for e in mine) == sorted(e.sent_bytes for e in events)


def redundancy_optimizer(rank, world_size, layers, batches):
    model = DistributedDataParallel(modules_of(layers))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.01)
    for x, labels in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(shard(x)), shard(labels)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
    return [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_ends_with_the_weights_of_torchs_zero_redundancy_optimizer(stage):
    batches = data(12, steps=3)
    theirs = launch(redundancy_optimizer, 2, (build(0), batches)).results[0]
    ours = launch(train, 2, (stage, build, batches, softmax_cross_entropy)).results[0][-1]
    close(ours, theirs)


# Any module


class Picture(nn.Module):
    """A convolution, two blocks with a shared table, and parameters that are in no part."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 4, 3), nn.Flatten())
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(144, 144), nn.GELU()) for _ in range(2))
        self.norm, self.table = nn.LayerNorm(144), nn.Parameter(torch.randn(10, 144) / 12)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.norm(x + self.table[0]) @ self.table.T

    @property
    def parts(self):
        return [self.first, *self.blocks]


def picture(seed):
    torch.manual_seed(seed)
    return Picture().double()


def train_module(rank, world_size, batches):
    """Ranks begin unequal. Shares of the losses."""
    module = picture(rank)
    sharded = ShardedModule(module, module.parts)
    optimizer = torch.optim.AdamW(sharded.parameters(), 0.01)
    dist.barrier()
    losses = []
    for x, labels in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(module(shard(x)), shard(labels), reduction="sum") / len(x)
        loss.backward()
        sharded.finish()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def train_alone_or_with_fsdp2(rank, world_size, batches, with_fsdp2):
    module = picture(0)
    if with_fsdp2:
        mesh = init_device_mesh("cpu", (world_size,))
        for part in (*module.parts, module):
            fully_shard(part, mesh=mesh)
    optimizer = torch.optim.AdamW(module.parameters(), 0.01)
    dist.barrier()
    losses = []
    for x, labels in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(module(shard(x)), shard(labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.detach() / world_size)
    return torch.stack(losses)


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_hooks_train_any_module_as_one_device_does(world_size):
    batches = data(11, (64, 10), steps=3)
    wanted = launch(train_alone_or_with_fsdp2, 1, (batches, False)).results[0]
    close(sum(launch(train_module, world_size, (batches,)).results), wanted)


def test_hooks_call_as_often_as_fsdp2_and_send_as_much():
    batches = data(12, (64, 10), steps=2)
    ours = launch(train_module, 4, (batches,), memory=True)
    theirs = launch(train_alone_or_with_fsdp2, 4, (batches, True), memory=True)
    runs = ours, theirs
    close(*(sum(run.results) for run in runs))
    for op, calls in (("all_gather", (8, 7)), ("reduce_scatter", (4, 4))):
        events = [[e for e in calls_of_a_step(run) if e.op == op] for run in runs]
        assert tuple(map(len, events)) == tuple(2 * count for count in calls)
    # FSDP2 keeps what is in no part from forward to backward; and each pads in its own way.
    rest = 2 * 8 * (144 + 144 + 10 * 144) * 3 / 4
    sent = [sum(e.sent_bytes for e in calls_of_a_step(run)) for run in runs]
    assert sent[0] - rest == pytest.approx(sent[1], rel=0.02)
    assert max(ours.peak_bytes) <= 1.05 * max(theirs.peak_bytes)


def test_the_hooks_fit_on_three_slides():
    assert inspect.getsource(hooks).count("\n") <= 120


def test_a_parameter_without_a_gradient_is_named():
    def drive(rank, world_size):
        module = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        sharded = ShardedModule(module, module)
        module[0](torch.ones(1, 2)).sum().backward()
        sharded.finish()

    with pytest.raises(RankError, match="unit 1 had no gradient for 2 parameters"):
        launch(drive, 2)


# DeepSpeed


def with_deepspeed(rank, world_size, stage, layers, batches):
    os.environ["DS_ACCELERATOR"] = "cpu"
    import deepspeed

    sys.modules["deepspeed.ops"].__dict__["__compatible_ops__"] = {}  # or it compiles a helper
    adam = {"lr": 0.01, "weight_decay": 0.01, "torch_adam": True, "adam_w_mode": True}
    config = {
        "train_micro_batch_size_per_gpu": len(batches[0][0]) // world_size,
        "optimizer": {"type": "AdamW", "params": adam},
        "gradient_clipping": MAX_NORM,
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 10_000},
    }
    engine, *_ = deepspeed.initialize(
        model=modules_of(layers), config=config, dist_init_required=False
    )
    losses = []
    for x, labels in batches:
        loss = F.cross_entropy(engine(shard(x)), shard(labels))
        engine.backward(loss)
        engine.step()
        losses.append(loss.detach() / world_size)
    return torch.stack(losses)


@pytest.mark.skipif(not importlib.util.find_spec("deepspeed"), reason="deepspeed is not installed")
@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_the_losses_of_deepspeeds(stage):
    batches = data(12, dtype=torch.float32, steps=4)
    made = partial(build, dtype=torch.float32)
    theirs = launch(with_deepspeed, 2, (stage, made(0), batches))
    ours = launch(train, 2, (stage, made, batches, softmax_cross_entropy))
    close(sum(r[0] for r in ours.results), sum(theirs.results), rtol=1e-4, atol=1e-5)
