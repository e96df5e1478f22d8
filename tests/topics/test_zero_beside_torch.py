"""ZeRO by hand beside torch's FSDP2 and ZeroRedundancyOptimizer, and DeepSpeed: same numbers."""

import functools
import importlib.util
import os
import sys
from functools import partial

import pytest
import torch
import torch.distributed as dist
from cases import parted
from test_zero import (
    MAX_NORM,
    STAGES,
    build,
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
from byhand.zero import ShardedModule, ShardedParameters, lab


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


def by_hand(rank, world_size, *arguments):
    dist.barrier()
    return train(rank, world_size, *arguments)


def redundancy_optimizer(rank, world_size, layers, batches):
    model = DistributedDataParallel(modules_of(layers))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.01)
    for x, labels in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(shard(x)), shard(labels)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
    return [p.detach() for p in model.parameters()]


def each(rank, world_size, calls):
    """What each (function, *arguments) returns, one after the other."""
    found = []
    for function, *arguments in calls:
        found.append(function(rank, world_size, *arguments))
        dist.barrier()
    return found


SIZES = (8, 16, 16, 4)  # every dimension a multiple of 4: FSDP2 pads each parameter by itself


@functools.cache
def beside_fsdp2():
    """By name: what 4 ranks returned, and the ledger after the model was built, in one launch."""
    batches, ((x, labels),) = data(12, SIZES, steps=3), data(8, SIZES, torch.float32, steps=1)
    calls = {}
    for variant, reshard in ((3, True), ("3 kept", False)):
        made = partial(build, sizes=SIZES)
        calls[variant, "theirs"] = fsdp, made(0), batches, reshard
        calls[variant, "ours"] = by_hand, variant, made, batches, softmax_cross_entropy
    for reduce_dtype in (None, torch.float32):
        arguments = x, labels, reduce_dtype, build(0, SIZES, torch.float32)
        calls[reduce_dtype, "theirs"] = fsdp_in_bfloat16, *arguments
        calls[reduce_dtype, "ours"] = in_bfloat16, *arguments
    run = launch(each, 4, (list(calls.values()),))
    found = zip(zip(*run.results, strict=True), parted(run)[1::2], strict=True)
    return dict(zip(calls, found, strict=True))


@pytest.mark.parametrize("variant", [3, "3 kept"])
def test_stage_3_and_fsdp2_have_the_same_losses_calls_and_bytes(variant):
    (theirs, called), (ours, mine) = (beside_fsdp2()[variant, who] for who in ("theirs", "ours"))
    close(sum(theirs), sum(result[0] for result in ours))
    for op in ("all_gather", "reduce_scatter"):
        events = called.select(op, 0)
        first = mine.select(op, 0)[: len(events)]
        assert sorted(e.sent_bytes for e in first) == sorted(e.sent_bytes for e in events)


@pytest.mark.parametrize("reduce_dtype", [None, torch.float32])
def test_bfloat16_is_gathered_and_float32_is_kept_as_fsdp2_does(reduce_dtype):
    found = [beside_fsdp2()[reduce_dtype, who] for who in ("theirs", "ours")]
    (theirs, called), (ours, mine) = found
    flats = [torch.cat(shards) for shards in zip(*ours, strict=True)]
    wanted = [p.flatten() for p in theirs[0]]
    assert flats[0].dtype == torch.float32
    close(torch.cat(flats), torch.cat(wanted), rtol=0, atol=5e-3)
    whole = 4 * len(torch.cat(wanted)) * 3 // 4  # full_tensor() gathers it at the end
    for op, more in (("all_gather", whole), ("reduce_scatter", 0)):
        assert mine.sent_bytes(op, 0) == called.sent_bytes(op, 0) - more


def test_every_stage_ends_with_the_weights_of_torchs_zero_redundancy_optimizer():
    batches = data(12, steps=3)
    calls = [(train, stage, build, batches, softmax_cross_entropy) for stage in STAGES]
    calls.append((redundancy_optimizer, build(0), batches))
    *ours, theirs = launch(each, 2, (calls,)).results[0]
    for *_, weights in ours:
        close(weights, theirs)


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


@pytest.mark.parametrize("world_size", [1, 3])
def test_hooks_train_any_module_as_one_device_does(world_size):
    batches = data(11, (64, 10), steps=3)
    wanted = launch(train_alone_or_with_fsdp2, 1, (batches, False)).results[0]
    close(sum(launch(train_module, world_size, (batches,)).results), wanted)


def test_hooks_call_as_often_as_fsdp2_and_send_as_much():
    batches = data(12, (64, 10), steps=2)
    ours = launch(train_module, 4, (batches,), memory=True)
    theirs = launch(train_alone_or_with_fsdp2, 4, (batches, True), memory=True)
    close(sum(ours.results), sum(theirs.results))
    steps = [parted(run)[1] for run in (ours, theirs)]
    for op, calls in (("all_gather", (8, 7)), ("reduce_scatter", (4, 4))):
        assert [step.count(op, 0) for step in steps] == [2 * count for count in calls]
    # FSDP2 keeps what is in no part from forward to backward; and each pads in its own way.
    rest = 2 * 8 * (144 + 144 + 10 * 144) * 3 / 4
    sent = [step.sent_bytes(rank=0) for step in steps]
    assert sent[0] - rest == pytest.approx(sent[1], rel=0.02)
    assert lab.least_peak(ours) <= 1.05 * lab.least_peak(theirs)


def test_frozen_parameters_and_buffers_are_taken_over_too():
    def drive(rank, world_size):
        torch.manual_seed(rank)
        module = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
        module[0].requires_grad_(False)
        module[1].running_mean.fill_(rank)
        module[1].register_buffer("not_saved", torch.tensor(rank), persistent=False)
        ShardedModule(module, [module[2]])
        y = module.eval()(torch.ones(1, 4))
        return y.detach(), module[1].not_saved

    first, *others = launch(drive, 3).results
    assert first[1] == 0
    for found in others:
        assert all(map(torch.equal, found, first))


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
