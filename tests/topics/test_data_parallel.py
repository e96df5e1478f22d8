"""Data parallelism equals one device, and torch's DDP; it sends what the formulas say."""

import itertools
import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from byhand import PerRank, RankError, device, launch
from byhand.data_parallel import (
    DataParallel,
    all_reduce_gradients,
    all_reduce_gradients_flat,
    assign_buckets,
    batches,
    broadcast_parameters,
    evaluate,
    shard,
    training_step,
)
from byhand.data_parallel.compression import Float16, Sum, TopK
from byhand.data_parallel.hooks import GradientHooks
from byhand.data_parallel.lab import (
    LAYER_BYTES,
    NAIVE,
    STILL,
    on_paper,
    watch,
)
from byhand.model.gpt import gpt_layers, next_token_loss, random_gpt
from byhand.model.mlp import GELU, MLP, random_weights, softmax_cross_entropy
from byhand.model.optimizers import SGD, AdamW
from byhand.model.training import train_alone

WORLD_SIZES = (1, 2, 3, 4)
SIZES = (6, 5, 7, 4)  # 3 linear layers
TIGHT = {"rtol": 1e-10, "atol": 1e-10}
BYTES_OF_LAYERS = [280, 0, 336, 0, 256]


def data(num_rows, sizes=SIZES, dtype=torch.float64):
    generator = torch.Generator().manual_seed(num_rows)
    x = torch.randn(num_rows, sizes[0], dtype=dtype, generator=generator)
    return x, torch.randint(sizes[-1], (num_rows,), generator=generator)


def build(seed, sizes=SIZES, dtype=torch.float64):
    return MLP.from_weights(random_weights(sizes, seed, dtype), GELU)


def one_device(x, labels, sizes=SIZES, steps=1):
    """Loss of the first step, its gradients, and the weights after `steps` of AdamW."""
    model = build(0, sizes)
    optimizer = AdamW(model.parameters(), 0.01)
    for step in range(steps):
        model.zero_gradients()
        logits, saved = model.forward(x)
        loss, grad = softmax_cross_entropy(logits, labels)
        model.backward_first(grad, saved)
        if step == 0:
            first = loss, [g.clone() for g in model.gradients()]
        optimizer.step(model.gradients())
    return *first, model.parameters()


def train(rank, world_size, x, labels, sizes, steps, micro_batches, bucket_bytes, reducer=Sum):
    """Ranks begin unequal. What one_device returns, of which the loss is a share."""
    model = DataParallel(build(rank, sizes), bucket_bytes=bucket_bytes, reducer=reducer)
    optimizer = AdamW(model.parameters(), 0.01)
    for step in range(steps):
        loss = training_step(model, optimizer, x, labels, micro_batches)
        if step == 0:
            first = loss, [g.clone() for g in model.gradients()]
    return *first, model.parameters()


def assert_close(mine, theirs, **tolerance):
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, **(tolerance or TIGHT))


def assert_trains_as_one_device(results, x, labels, sizes=SIZES, steps=1):
    loss, gradients, parameters = one_device(x, labels, sizes, steps)
    assert_close([sum(result[0] for result in results)], [loss])
    for result in results:
        assert_close(result[1], gradients)
        assert_close(result[2], parameters)


def train_each(rank, world_size, cases):
    return [train(rank, world_size, *case) for case in cases]


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_three_steps_on_uneven_shards_equal_one_device(world_size):
    x, labels = data(11)  # 11 rows divide by none of 2, 3, 4
    cases = [(x, labels, SIZES, 3, *how) for how in ((1, 1), (1, 600), (3, 1 << 20))]
    results = launch(train_each, world_size, (cases,)).results
    for by_rank in zip(*results, strict=True):
        assert_trains_as_one_device(by_rank, x, labels, steps=3)


@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=4),
    st.integers(3, 9),
    st.integers(1, 4),
    st.integers(1, 400),
)
@settings(max_examples=5, derandomize=True)
def test_any_shapes_micro_batches_and_buckets_equal_one_device(sizes, rows, micro, bucket_bytes):
    x, labels = data(rows, sizes)
    run = launch(train, 3, (x, labels, sizes, 1, micro, bucket_bytes))
    assert_trains_as_one_device(run.results, x, labels, sizes)


def train_gpt(rank, world_size, tokens, bucket_bytes):
    """Ranks begin unequal. This rank's shares of the losses, and the last weights."""
    model = DataParallel(MLP(gpt_layers(tiny_gpt(rank))), bucket_bytes=bucket_bytes)
    optimizer, losses = AdamW(model.parameters(), 0.01), []
    for x, targets in tokens:
        model.zero_gradients()
        logits, saved = model.forward(shard(x))
        loss, grad = next_token_loss(logits, shard(targets), global_batch=len(x))
        model.backward(grad, saved)
        optimizer.step(model.gradients())
        losses.append(loss)
    return losses, model.parameters()


def tiny_gpt(seed):
    return random_gpt(7, 3, 8, 2, 2, seed, torch.float64)


@pytest.mark.parametrize(("world_size", "bucket_bytes"), [(1, 1), (3, 1), (3, 1 << 20)])
def test_a_gpt_with_its_tied_table_trains_as_one_device_does(world_size, bucket_bytes):
    tokens = torch.randint(7, (4, 2, 5, 3), generator=torch.Generator().manual_seed(0))
    model = MLP(gpt_layers(tiny_gpt(0)))
    alone = train_alone(model, AdamW(model.parameters(), 0.01), tokens, next_token_loss)
    run = launch(train_gpt, world_size, (tokens, bucket_bytes))
    losses = [sum(shares) for shares in zip(*(r[0] for r in run.results), strict=True)]
    assert_close([torch.stack(losses)], [torch.tensor(alone, dtype=torch.float64)])
    for _, parameters in run.results:
        assert_close(parameters, model.parameters())


# Buckets


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 120))
def test_buckets_hold_every_layer_once_in_the_order_of_backward(layer_bytes, bucket_bytes):
    buckets = assign_buckets(layer_bytes, bucket_bytes)
    order = [layer for bucket in buckets for layer in bucket]
    assert order == [i for i in reversed(range(len(layer_bytes))) if layer_bytes[i]]
    for bucket in buckets:
        held = sum(layer_bytes[layer] for layer in bucket)
        assert held <= bucket_bytes or len(bucket) == 1
    for before, after in itertools.pairwise(buckets):  # none could have been spared
        assert sum(layer_bytes[i] for i in [*before, after[0]]) > bucket_bytes


@pytest.mark.parametrize("world_size", [1, 3])
def test_a_step_sends_one_broadcast_and_one_all_reduce_a_bucket(world_size):
    x, labels = data(8)
    run = launch(train, world_size, (x, labels, SIZES, 2, 4, 600))
    ring = 2 * (world_size - 1) / world_size
    for rank in range(world_size):
        calls = [e.payload_bytes for e in run.ledger.select("all_reduce", rank)]
        assert calls == 2 * [256 + 336, 280]
        assert run.ledger.count("broadcast", rank) == 1
        assert run.ledger.count(rank=rank) == 5
        expected = pytest.approx(2 * ring * sum(BYTES_OF_LAYERS), abs=4)
        assert run.ledger.sent_bytes("all_reduce", rank) == expected
    broadcast = (world_size - 1) * sum(BYTES_OF_LAYERS)
    assert run.ledger.sent_bytes("broadcast") == broadcast


def test_all_buckets_but_the_last_travel_while_backward_goes_on():
    x, labels = data(40_000)
    run = launch(train, 2, (x, labels, SIZES, 1, 1, 1))
    for rank in range(2):
        calls = run.ledger.select("all_reduce", rank)
        assert [e.payload_bytes for e in calls] == BYTES_OF_LAYERS[::-2]
        assert [e.overlapped for e in calls] == [True, True, False]


def test_gradients_are_views_of_one_flat_tensor():
    def drive(rank, world_size):
        model = DataParallel(build(rank), bucket_bytes=600)
        storages = {g.untyped_storage().data_ptr() for g in model.gradients()}
        return len(storages), model.flat.nbytes, sum(g.nbytes for g in model.gradients())

    assert launch(drive, 2).results == [(1, 872, 872)] * 2


def test_gradients_that_are_sums_already_are_not_summed_again():
    def drive(rank, world_size, x, labels):
        model = DataParallel(build(rank))
        for _ in range(2):
            logits, saved = model.forward(x)
            model.backward(softmax_cross_entropy(logits, labels)[1], saved)

    with pytest.raises(RankError, match=r"already summed over the ranks.*zero_gradients"):
        launch(drive, 2, data(2))


# The naive ways, the pieces


@pytest.mark.parametrize("world_size", [1, 3])
def test_one_call_a_tensor_and_one_flat_call_give_the_same_sum(world_size):
    def drive(rank, world_size):
        tensors = [torch.full((3, 2), 1.0 + rank).T, torch.full((4,), 10.0 * rank)]
        other = [tensor.clone() for tensor in tensors]
        all_reduce_gradients(tensors)
        all_reduce_gradients_flat(other)
        return tensors, other

    run = launch(drive, world_size)
    n = world_size
    expected = [torch.full((2, 3), n * (n + 1) / 2), torch.full((4,), 10.0 * n * (n - 1) / 2)]
    for tensors, other in run.results:
        assert_close(tensors, expected)
        assert_close(other, expected)
    assert [e.payload_bytes for e in run.ledger.select(rank=0)] == [24, 16, 40]


def test_every_rank_gets_the_roots_parameters():
    def drive(rank, world_size):
        parameters = build(rank).parameters()
        broadcast_parameters(parameters, root=1)
        return parameters

    for parameters in launch(drive, 3).results:
        assert_close(parameters, build(1).parameters(), rtol=0, atol=0)


def test_what_can_be_walked_only_once_is_sent_and_filled_as_a_list_is():
    def drive(rank, world_size):
        module = nn.Linear(2, 1)
        with torch.no_grad():
            module.bias.fill_(5.0 * rank)
            broadcast_parameters(module.parameters(), root=1)
        module(torch.full((3, 2), 1.0 + rank)).sum().backward()
        all_reduce_gradients_flat(parameter.grad for parameter in module.parameters())
        once = module.bias.grad.item()
        all_reduce_gradients(parameter.grad for parameter in module.parameters())
        return module.bias.item(), once, module.bias.grad.item()

    assert launch(drive, 3).results == [(5.0, 9.0, 27.0)] * 3


@given(st.integers(0, 30), st.integers(1, 9), st.integers(0, 3))
def test_the_batches_of_an_epoch_hold_every_sample_once(num_samples, batch_rows, epoch):
    found = batches(num_samples, batch_rows, epoch)
    assert sorted(torch.cat(found).tolist()) == list(range(num_samples))
    assert {len(batch) for batch in found[:-1]} <= {batch_rows}


@pytest.mark.parametrize(("world_size", "num_rows"), [(1, 3), (4, 3), (4, 10)])
def test_an_evaluation_is_exact_without_padding(world_size, num_rows):
    def drive(rank, world_size, x, labels):
        return evaluate(build(0), x, labels)

    x, labels = data(num_rows)
    run = launch(drive, world_size, (x, labels))
    right = (build(0).forward(x)[0].argmax(dim=1) == labels).sum().item()
    assert run.results == [right / num_rows] * world_size
    assert [e.payload_bytes for e in run.ledger.events] == [16] * world_size


# Compression


def summed(reducer, gradients):
    """What a reducer makes of gradients[step] on each rank, step after step."""

    def drive(rank, world_size, gradients):
        flat = torch.zeros_like(gradients[0])
        sender = reducer(flat)
        sums = []
        for gradient in gradients:
            flat.copy_(gradient)
            sender.start(None)
            sender.finish()
            sums.append(flat.clone())
        return sums, getattr(sender, "error", None)

    world_size = len(gradients[0])
    by_rank = [[step[rank] for step in gradients] for rank in range(world_size)]
    return launch(drive, world_size, (PerRank(by_rank),))


def random_gradients(steps, world_size, num_elements):
    generator = torch.Generator().manual_seed(7)
    shape = (steps, world_size, num_elements)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).unbind()


def test_float16_halves_the_bytes_of_float32_and_loses_little():
    gradients = [step.float() for step in random_gradients(2, 3, 600)]
    run = summed(Float16, gradients)
    for sums, _ in run.results:
        for total, step in zip(sums, gradients, strict=True):
            assert total.dtype == torch.float32
            assert_close([total], [step.sum(0)], rtol=0, atol=1e-2)
    assert [e.payload_bytes for e in run.ledger.select(rank=0)] == [1200, 1200]


@pytest.mark.parametrize(("world_size", "fraction"), [(1, 0.1), (2, 0.001), (3, 0.1), (3, 1.0)])
def test_top_k_loses_nothing_it_is_only_late(world_size, fraction):
    gradients = random_gradients(4, world_size, 50)
    run = summed(partial(TopK, fraction=fraction), gradients)
    still_held = sum(result[1] for result in run.results)
    for sums, _ in run.results:
        assert_close([sum(sums) + still_held], [sum(gradients).sum(0)])
        assert_close(sums, run.results[0][0], rtol=0, atol=0)
    sent = math.ceil(fraction * 50)
    expected = 4 * (world_size - 1) * sent * (8 + 4)
    assert run.ledger.sent_bytes(rank=0) == expected


def test_without_error_feedback_what_was_left_out_is_lost():
    gradients = random_gradients(2, 2, 50)
    run = summed(partial(TopK, fraction=0.1, error_feedback=False), gradients)
    (sums, error), _ = run.results
    assert not error.any()
    for total, step in zip(sums, gradients, strict=True):
        chosen = [torch.zeros_like(g).index_put((i,), g[i]) for g in step for i in [top(g, 5)]]
        assert_close([total], [sum(chosen)])


def top(gradient, count):
    return gradient.abs().topk(count).indices


def test_compressed_training_keeps_the_replicas_equal():
    x, labels = data(11)
    for reducer in (Float16, partial(TopK, fraction=0.2)):
        run = launch(train, 3, (x, labels, SIZES, 3, 2, 600, reducer))
        for result in run.results:
            assert_close(result[2], run.results[0][2], rtol=0, atol=0)


# torch's own tool


def torch_model(weights):
    layers = []
    for weight, bias in weights:
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=weight.dtype)
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
        layers += [torch.nn.GELU(), linear] if layers else [linear]
    return torch.nn.Sequential(*layers)


def both(rank, world_size, x, labels, reducer, hook):
    """Parameters after three steps of SGD: ours, and DDP's with this communication hook."""
    mine = DataParallel(build(rank, dtype=torch.float32), reducer=reducer)
    theirs = DistributedDataParallel(torch_model(random_weights(SIZES, seed=rank)))
    if hook is not None:
        theirs.register_comm_hook(None, hook)
    optimizer = SGD(mine.parameters(), 0.1)
    reference = torch.optim.SGD(theirs.parameters(), 0.1)
    for _ in range(3):
        training_step(mine, optimizer, x, labels)
        reference.zero_grad()
        F.cross_entropy(theirs(shard(x)), shard(labels)).backward()
        reference.step()
    return mine.parameters(), [p.detach() for p in theirs.parameters()]


@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize(
    ("reducer", "hook", "tolerance"),
    [(Sum, None, 1e-6), (Float16, default_hooks.fp16_compress_hook, 2e-4)],
    ids=["sum", "float16"],
)
def test_three_steps_equal_ddps(world_size, reducer, hook, tolerance):
    x, labels = data(2 * world_size, dtype=torch.float32)  # DDP's mean of means needs even shards
    for mine, theirs in launch(both, world_size, (x, labels, reducer, hook)).results:
        assert_close(mine, theirs, rtol=0, atol=tolerance)


# What does not fit


def build_wrongly(rank, world_size, what):
    model = build(0)
    if what == "dtypes":
        model.layers[0].weight = model.layers[0].weight.float()
    DataParallel(model, bucket_bytes=0 if what == "bucket" else 1)
    if what == "batch":
        shard(torch.ones(1, 6))


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("dtypes", "torch.float32 on cpu and torch.float64 on cpu: a bucket holds one dtype"),
        ("bucket", "a bucket of 0 bytes can hold nothing: at least 1"),
        ("batch", r"\[1, 6\] is too small for 2 ranks: along dimension 0 it has 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_both_numbers(what, sentence):
    with pytest.raises(RankError, match=sentence):
        launch(build_wrongly, 2, (what,))


def test_a_fraction_that_sends_nothing_is_refused():
    for fraction in (0, 1.5):
        with pytest.raises(ValueError, match=f"the fraction sent is {fraction}"):
            TopK(torch.ones(4), fraction)


def train_on_gpus(rank, world_size, x, labels, reducer):
    here = device(rank)
    weights = [(w.to(here), b.to(here)) for w, b in random_weights(SIZES, rank, torch.float64)]
    model = DataParallel(MLP.from_weights(weights, GELU), bucket_bytes=600, reducer=reducer)
    optimizer = AdamW(model.parameters(), 0.01)
    for _ in range(5):
        training_step(model, optimizer, x.to(here), labels.to(here), 2)
    return [p.cpu() for p in model.parameters()], evaluate(model, x.to(here), labels.to(here))


@pytest.mark.gpu
@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("reducer", [Sum, partial(TopK, fraction=0.5)], ids=["sum", "top half"])
def test_five_steps_on_gpus_equal_those_on_the_cpu(world_size, reducer):
    x, labels = data(11)
    on_cpu = launch(train, world_size, (x, labels, SIZES, 5, 2, 600, reducer)).results[0][2]
    for parameters, accuracy in launch(train_on_gpus, world_size, (x, labels, reducer)).results:
        assert_close(parameters, on_cpu)
        assert 0 <= accuracy <= 1


# Hooks on any module


def module(seed):
    torch.manual_seed(seed)
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten(), nn.Linear(16, 8)]
    return nn.Sequential(*layers, nn.GELU(), nn.Linear(8, 3))


def step_with_hooks(rank, world_size, x, labels, bucket_bytes):
    """Ranks begin unequal. The gradients of two steps beside DDP's, and the buffers."""
    ours, ddp = module(rank), DistributedDataParallel(module(0))
    hooks, differences = GradientHooks(ours, bucket_bytes), []
    for _ in range(2):
        ours.zero_grad(), ddp.zero_grad()
        loss = F.cross_entropy(ours(shard(x)), shard(labels), reduction="sum") / len(x)
        loss.backward()
        hooks.finish()
        F.cross_entropy(ddp(shard(x)), shard(labels)).backward()
        pairs = zip(ours.parameters(), ddp.parameters(), strict=True)
        differences.append(max((a.grad - b.grad).abs().max().item() for a, b in pairs))
    return differences, len(hooks.buckets)


@pytest.mark.parametrize("bucket_bytes", [1, 600, 25 << 20])
def test_hooks_on_any_module_sum_as_ddp_averages(bucket_bytes):
    x, labels = data(8, (16, 3), torch.float32)
    run = launch(step_with_hooks, 2, (x.view(-1, 1, 4, 4), labels, bucket_bytes))
    for differences, num_buckets in run.results:
        assert max(differences) < 1e-6
        assert num_buckets == {1: 8, 600: 3, 25 << 20: 1}[bucket_bytes]


def test_hooks_take_over_buffers_that_are_not_saved_too():
    def drive(rank, world_size):
        layer = nn.Linear(2, 2)
        layer.register_buffer("saved", torch.tensor([1.0 + rank]))
        layer.register_buffer("not_saved", torch.tensor([1.0 + rank]), persistent=False)
        GradientHooks(layer)
        return layer.saved.item(), layer.not_saved.item()

    assert launch(drive, 3).results == [(1.0, 1.0)] * 3


def finished_in_another_order(rank, world_size):
    """Rank 1's gradients become final in the other order."""
    first, second = (nn.Parameter(torch.ones(n)) for n in (3, 5))
    hooks = GradientHooks(nn.ParameterList([first, second]), bucket_bytes=1)
    for parameter in (first, second) if rank else (second, first):
        (parameter.sum() * (rank + 1)).backward()
    hooks.finish()
    return first.grad, second.grad


def test_all_ranks_start_their_buckets_in_one_order():
    for gradients in launch(finished_in_another_order, 2).results:
        assert_close(gradients, [torch.full((n,), 3.0) for n in (3, 5)])


def goes_back_twice(rank, world_size):
    weight = nn.Parameter(torch.ones(3))
    GradientHooks(nn.ParameterList([weight]))
    for _ in range(2):
        weight.sum().backward()


def test_a_second_backward_before_finish_is_refused_and_sends_nothing_half_summed():
    with pytest.raises(RankError, match="a second backward before finish"):
        launch(goes_back_twice, 2)


def leaves_a_parameter_out(rank, world_size):
    used, unused = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    hooks = GradientHooks(nn.ParameterList([unused, used]), bucket_bytes=1)
    used.sum().backward()
    hooks.finish()


def test_a_parameter_without_a_gradient_is_named_and_nobody_hangs():
    with pytest.raises(RankError, match="bucket 1 of 2 never left: 1 of its parameters"):
        launch(leaves_a_parameter_out, 2)


def test_after_a_backward_that_left_a_parameter_out_a_whole_one_is_summed():
    def drive(rank, world_size):
        module = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        hooks = GradientHooks(module, bucket_bytes=1)
        module[1](torch.ones(3, 2)).sum().backward()
        with pytest.raises(RuntimeError, match="bucket 2 of 4 never left: 1 of its"):
            hooks.finish()
        module.zero_grad()
        module[1](module[0](torch.ones(3, 2))).sum().backward()
        hooks.finish()
        return module[1].bias.grad

    assert_close(launch(drive, 2).results, [torch.full((2,), 6.0)] * 2)


# What the lecture shows


def test_a_watched_step_is_the_runs_own():
    steps = watch(2 * LAYER_BYTES, world_size=2, num_steps=2)
    for forward, *spans in steps.steps[0]:
        backward, still, travel = spans[:6], spans[6], spans[7:]
        assert forward.start < forward.end == backward[0].start
        assert [span.unit for span in backward] == [5, 4, 3, 2, 1, 0]
        assert backward[-1].end == still.start
        buckets = [span.unit for span in travel if span.kind == "message in flight"]
        assert buckets == ["5 4", "3 2", "1 0"]
        for launched, full in zip(travel[::2], backward[1::2], strict=True):
            assert full.end <= launched.start <= still.end
    assert steps.run.ledger.count("all_reduce", rank=0) == 3 * 3


def test_a_watched_step_begins_where_its_barrier_ends_on_the_ledgers_clock():
    steps = watch(NAIVE, world_size=2, num_steps=2)
    for rank in (0, 1):
        ends = [event.end for event in steps.run.ledger.select("barrier", rank)]
        assert [step[rank][0].start for step in steps.steps] == ends[1:]


def test_the_naive_step_sends_every_gradient_after_backward():
    (spans, _) = watch(NAIVE, world_size=2, num_steps=1).steps[0]
    still, *travel = spans[STILL:]
    assert len(travel) == 2 * 6
    assert travel[0].start >= still.start


def test_hooks_start_every_bucket_before_backward_ends():
    steps = watch(2 * LAYER_BYTES, num_steps=2, way="hooks")
    for spans in steps.steps[1]:
        backward, (still, *travel) = spans[1:STILL], spans[STILL:]
        for launched, full in zip(travel[::2], backward[1::2], strict=True):
            assert full.end <= launched.start <= still.end
        assert travel[2].start < still.start


@pytest.mark.parametrize(
    ("layers_a_bucket", "share", "milliseconds"),
    [(1, 1, 290), (6, 1, 390), (1, 0.5, 180), (2, 0.5, 195)],
)
def test_a_step_on_paper_takes_what_the_law_says(layers_a_bucket, share, milliseconds):
    spans = on_paper(layers_a_bucket, share)
    buckets = 6 // layers_a_bucket
    travel, fill = 120 / buckets, share * 180 / buckets
    exposed = travel + (buckets - 1) * max(0, travel - fill)
    assert 1e3 * spans[STILL].end == pytest.approx(share * 270 + exposed)
    assert 1e3 * spans[STILL].end == pytest.approx(milliseconds)
