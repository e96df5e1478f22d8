"""Tensor-parallel layers equal one device's, send what their docstrings say, and hold a share."""

from __future__ import annotations

import functools
import re
import time

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from byhand import PerRank, launch
from byhand.model.attention import MultiHeadAttention, attention, attention_backward
from byhand.model.mlp import (
    GELU,
    MLP,
    Linear,
    ReLU,
    mean_squared_error,
    random_weights,
    softmax_cross_entropy,
)
from byhand.model.optimizers import AdamW
from byhand.tensor_parallel import (
    ColumnParallelLinear,
    RowParallelLinear,
    TensorParallelAttention,
    TensorParallelMLP,
)
from byhand.tensor_parallel.convolution import (
    Conv2d,
    InputChannelParallelConv2d,
    OutputChannelParallelConv2d,
)
from byhand.tensor_parallel.gathered import Gather, GatheredLinear, GatheringLinear, Slice
from byhand.tensor_parallel.lab import seconds_of, split_block, steps_picture, torch_block
from byhand.tensor_parallel.operators import copy_to_group, sum_over_group
from byhand.tools.asleep import sent_each_way

SIZES = [5, 12, 6, 24, 4]  # widths that 1, 2, 3 and 4 ranks divide between each pair
WORLDS = (1, 2, 3, 4)
CORNERS = (1, 3)  # alone, and a number that is no power of 2
FLOAT64 = {"dtype": torch.float64}


def assert_close(mine, theirs, tolerance=1e-10):
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def cut(tensor, dim, world_size, rank):
    return tensor if dim is None else tensor.tensor_split(world_size, dim)[rank]


def train(model, x, labels, num_steps=5):
    """Losses, the first step's gradients, and the weights after `num_steps` of AdamW."""
    optimizer, losses, first = AdamW(model.parameters(), lr=0.01), [], None
    for _ in range(num_steps):
        logits, saved = model.forward(x)
        loss, grad = softmax_cross_entropy(logits, labels)
        model.backward_first(grad, saved)
        first = first or [g.clone() for g in model.gradients()]
        optimizer.step(model.gradients())
        model.zero_gradients()
        losses.append(loss)
    return losses, first, model.parameters()


def train_split(rank, world_size, weights, activation, x, labels, device="cpu"):
    weights = [(w.to(device), b.to(device)) for w, b in weights]
    model = TensorParallelMLP(weights, activation)
    results = train(model, x.to(device), labels.to(device))
    return [[tensor.cpu() for tensor in tensors] for tensors in results]


def data(num_rows=7, num_features=SIZES[0], num_classes=SIZES[-1]):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(num_rows, num_features, generator=generator, **FLOAT64)
    return x, torch.randint(num_classes, (num_rows,), generator=generator)


# The dimension along which each parameter of a pair is cut; None: every rank has it whole.
CUTS = [0, 0, 1, None] * 2


@pytest.mark.parametrize("activation", [ReLU, GELU])
@pytest.mark.parametrize("world_size", CORNERS)
def test_five_steps_of_training_equal_one_devices(world_size, activation):
    check_training(world_size, activation, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("world_size", [1, 2])
def test_five_steps_of_training_equal_one_devices_on_a_gpu(world_size):
    check_training(world_size, GELU, "cuda")


def check_training(world_size, activation, device):
    weights, (x, labels) = random_weights(SIZES, **FLOAT64), data()
    losses, gradients, parameters = train(MLP.from_weights(weights, activation), x, labels)
    arguments = (weights, activation, x, labels, device)
    run = launch(train_split, world_size, arguments)
    for rank, (their_losses, their_gradients, their_parameters) in enumerate(run.results):
        assert_close(their_losses, losses)
        place = (world_size, rank)
        mine = [cut(g, dim, *place) for g, dim in zip(gradients, CUTS, strict=True)]
        assert_close(their_gradients, mine)
        mine = [cut(p, dim, *place) for p, dim in zip(parameters, CUTS, strict=True)]
        assert_close(their_parameters, mine)


def forward_backward(rank, world_size, build, x, grad_y):
    """y, grad_x and the gradients of a layer; x and grad_y must come out as they went in."""
    layer = build()
    kept_x, kept_grad = x.clone(), grad_y.clone()
    y, saved = layer.forward(x)
    grad_x = layer.backward(grad_y, saved)
    assert torch.equal(x, kept_x) and torch.equal(grad_y, kept_grad), "an argument was changed"  # noqa: PT018
    return y, grad_x, [gradient.clone() for gradient in layer.gradients()]


def split_run(world_size, build, x, grad_y, x_cut=None, y_cut=None):
    xs = [cut(x, x_cut, world_size, rank) for rank in range(world_size)]
    grads = [cut(grad_y, y_cut, world_size, rank) for rank in range(world_size)]
    return launch(forward_backward, world_size, (build, PerRank(xs), PerRank(grads)))


def check_layer(run, one_device, x_cut, y_cut, cuts):
    """Every rank has its cut of what one device computes."""
    y, grad_x, gradients = one_device
    for rank, (their_y, their_grad_x, their_gradients) in enumerate(run.results):
        place = (run.world_size, rank)
        expected = [cut(y, y_cut, *place), cut(grad_x, x_cut, *place)]
        assert_close([their_y, their_grad_x], expected)
        expected = [cut(g, dim, *place) for g, dim in zip(gradients, cuts, strict=True)]
        assert_close(their_gradients, expected)


def all_reduce_bytes(num_elements, world_size):
    return 2 * num_elements * 8 * (world_size - 1) // world_size


# (features on the side that is not split, rows, features per rank on the side that is)
SHAPES = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 6), st.integers(1, 3)), min_size=6, max_size=6
)


def each(rank, world_size, builds, xs, grads):
    return [
        forward_backward(rank, world_size, *case) for case in zip(builds, xs, grads, strict=True)
    ]


def check_each(world_size, split, cases, x_cut, y_cut, cuts):
    """Each (pair, x, grad_y) on one device and split, in one launch; then the messages."""
    xs = [[cut(x, x_cut, world_size, rank) for _, x, _ in cases] for rank in range(world_size)]
    grads = [[cut(g, y_cut, world_size, rank) for *_, g in cases] for rank in range(world_size)]
    builds = [functools.partial(split, *pair) for pair, *_ in cases]
    run = launch(each, world_size, (builds, PerRank(xs), PerRank(grads)))
    for rank, results in enumerate(run.results):
        for (pair, x, grad_y), mine in zip(cases, results, strict=True):
            y, grad_x, gradients = forward_backward(0, 1, lambda p=pair: Linear(*p), x, grad_y)
            whole, dims = [y, grad_x, *gradients], [y_cut, x_cut, *cuts]
            expected = [cut(t, dim, world_size, rank) for t, dim in zip(whole, dims, strict=True)]
            assert_close([mine[0], mine[1], *mine[2]], expected)
    assert run.ledger.count() == run.ledger.count("all_reduce") == world_size * len(cases)
    return run


@pytest.mark.parametrize("world_size", WORLDS)
@given(shapes=SHAPES)
@settings(max_examples=2)
def test_a_column_parallel_layer_is_a_slice_of_the_linear_layer(world_size, shapes):
    cases = [make_case(inputs, rows, world_size * wide) for inputs, rows, wide in shapes]
    run = check_each(world_size, ColumnParallelLinear, cases, None, 1, [0, 0])
    expected = sum(all_reduce_bytes(x.numel(), world_size) for _, x, _ in cases)
    assert run.ledger.sent_bytes(rank=0) == pytest.approx(expected, abs=len(cases))


@pytest.mark.parametrize("world_size", WORLDS)
@given(shapes=SHAPES)
@settings(max_examples=2)
def test_a_row_parallel_layer_takes_slices_and_gives_the_whole(world_size, shapes):
    cases = [make_case(world_size * wide, rows, outputs) for outputs, rows, wide in shapes]
    run = check_each(world_size, RowParallelLinear, cases, 1, None, [1, None])
    expected = sum(all_reduce_bytes(grad_y.numel(), world_size) for *_, grad_y in cases)
    assert run.ledger.sent_bytes(rank=0) == pytest.approx(expected, abs=len(cases))


def make_case(inputs, rows, outputs):
    (pair,) = random_weights([inputs, outputs], **FLOAT64)
    return pair, torch.randn(rows, inputs, **FLOAT64), torch.randn(rows, outputs, **FLOAT64)


def test_the_all_reduce_of_grad_x_travels_while_the_weights_gradient_is_computed():
    pair, x, grad_y = make_case(768, 512, 768)
    run = split_run(2, lambda: ColumnParallelLinear(*pair), x, grad_y, y_cut=1)
    assert all(event.overlapped for event in run.ledger.events)


def mlp_phases(rank, world_size, weights, x, grad_y, how):
    """Calls forward, then those of a backward pass, told apart by barriers."""
    model = TensorParallelMLP(weights, GELU)
    _, saved = model.forward(x)
    dist.barrier()
    if how == "first":
        model.backward_first(grad_y, saved)
    elif how == "whole":
        model.backward(grad_y, saved)
    else:
        _, kept = model.backward_input(grad_y, saved)
        dist.barrier()
        model.backward_weight(kept)
    return [gradient.clone() for gradient in model.gradients()]


@pytest.mark.parametrize(
    ("how", "backward"),
    [("whole", ["all_reduce"]), ("first", []), ("split", ["all_reduce", "barrier"])],
)
def test_an_mlp_block_sends_one_all_reduce_each_way(how, backward):
    weights = random_weights([4, 6, 4], **FLOAT64)
    x, grad_y = torch.randn(3, 4, **FLOAT64), torch.randn(3, 4, **FLOAT64)
    run = launch(mlp_phases, 3, (weights, x, grad_y, how))
    one_device = MLP.from_weights(weights, GELU)
    one_device.backward(grad_y, one_device.forward(x)[1])
    for rank, gradients in enumerate(run.results):
        calls = [event.op for event in run.ledger.events if event.rank == rank]
        assert calls == ["all_reduce", "barrier", *backward]
        cuts = zip(one_device.gradients(), CUTS, strict=False)
        assert_close(gradients, [cut(g, dim, 3, rank) for g, dim in cuts])


@pytest.mark.parametrize("world_size", CORNERS)
def test_gathering_every_output_gives_the_same_for_more_bytes(world_size):
    weights = random_weights([4, 12, 24], **FLOAT64)
    x, grad_y = torch.randn(5, 4, **FLOAT64), torch.randn(5, 24, **FLOAT64)

    def build():
        first, second = (GatheredLinear(*pair) for pair in weights)
        return MLP([first, GELU(), second])

    run = split_run(world_size, build, x, grad_y)
    one_device = forward_backward(0, 1, lambda: MLP.from_weights(weights, GELU), x, grad_y)
    check_layer(run, one_device, None, None, [0, 0, 0, 0])
    assert run.ledger.count(rank=0) == 4
    gathered = all_reduce_bytes(5 * (12 + 24), world_size) // 2
    assert run.ledger.sent_bytes("all_gather", 0) == gathered
    reduced = run.ledger.sent_bytes("all_reduce", 0)
    assert reduced == pytest.approx(all_reduce_bytes(5 * (4 + 12), world_size), abs=2)


@pytest.mark.parametrize("world_size", CORNERS)
def test_gathering_the_input_sends_back_a_reduce_scatter_and_gives_the_same(world_size):
    weights = random_weights([4, 12, 24], **FLOAT64)
    x, grad_y = torch.randn(5, 4, **FLOAT64), torch.randn(5, 24, **FLOAT64)

    def build():
        first, second = ColumnParallelLinear(*weights[0]), GatheringLinear(*weights[1])
        return MLP([first, GELU(), second, Gather()])

    run = split_run(world_size, build, x, grad_y)
    one_device = forward_backward(0, 1, lambda: MLP.from_weights(weights, GELU), x, grad_y)
    check_layer(run, one_device, None, None, [0, 0, 0, 0])
    ops = [event.op for event in run.ledger.select(rank=0)]
    assert ops == ["all_gather", "all_gather", "reduce_scatter", "all_reduce"]
    half = all_reduce_bytes(5 * 12, world_size) // 2
    assert run.ledger.sent_bytes("reduce_scatter", 0) == half


@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.booleans())
@settings(max_examples=25)
def test_attention_equals_torchs(batch, heads, positions, size, causal):
    shape = (batch, heads, positions, size)
    q, k, v = (torch.randn(shape, requires_grad=True, **FLOAT64) for _ in range(3))
    grad_y = torch.randn(shape, **FLOAT64)
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    expected.backward(grad_y)
    y, saved = attention(q.detach(), k.detach(), v.detach(), causal)
    gradients = attention_backward(grad_y, saved)
    assert_close([y, *gradients], [expected.detach(), q.grad, k.grad, v.grad])


def attention_weights(features):
    shapes = ((3 * features, features), (3 * features,), (features, features), (features,))
    qkv_weight, qkv_bias, weight, bias = (torch.randn(shape, **FLOAT64) for shape in shapes)
    return (qkv_weight, qkv_bias), (weight, bias)


def own_heads(tensor, world_size, rank):
    """A rank's rows of q, k, v: its slice of each third."""
    return torch.cat([part.tensor_split(world_size)[rank] for part in tensor.tensor_split(3)])


@pytest.mark.parametrize(("world_size", "causal"), [(1, True), (2, False), (3, True)])
def test_attention_split_by_heads_equals_one_devices(world_size, causal):
    qkv, out = attention_weights(24)
    x, grad_y = torch.randn(2, 5, 24, **FLOAT64), torch.randn(2, 5, 24, **FLOAT64)
    run = split_run(world_size, lambda: TensorParallelAttention(qkv, out, 12, causal), x, grad_y)
    one = forward_backward(
        0, 1, lambda: MultiHeadAttention.from_weights(qkv, out, 12, causal), x, grad_y
    )
    for rank, (y, grad_x, gradients) in enumerate(run.results):
        assert_close([y, grad_x], one[:2])
        expected = [own_heads(g, world_size, rank) for g in one[2][:2]]
        expected += [cut(one[2][2], 1, world_size, rank), one[2][3]]
        assert_close(gradients, expected)
        assert run.ledger.count(rank=rank) == run.ledger.count("all_reduce", rank) == 2
        assert run.ledger.sent_bytes(rank=rank) == 2 * all_reduce_bytes(x.numel(), world_size)


def train_heads(rank, world_size, qkv, out, x, target):
    """Losses and weights over five AdamW steps; on all ranks together, or alone with rank None."""
    build = MultiHeadAttention.from_weights if rank is None else TensorParallelAttention
    layer, losses = build(qkv, out, 12, True), []
    optimizer = AdamW(layer.parameters(), lr=0.01)
    for _ in range(5):
        y, saved = layer.forward(x)
        loss, grad = mean_squared_error(y, target)
        layer.backward_first(grad, saved)
        optimizer.step(layer.gradients())
        for gradient in layer.gradients():
            gradient.zero_()
        losses.append(loss)
    return losses, layer.parameters()


@pytest.mark.parametrize("world_size", [2, 3])
def test_five_steps_of_training_attention_equal_one_devices(world_size):
    qkv, out = attention_weights(12)
    x, target = torch.randn(2, 2, 5, 12, **FLOAT64)
    losses, parameters = train_heads(None, 1, qkv, out, x, target)
    run = launch(train_heads, world_size, (qkv, out, x, target))
    for rank, (their_losses, theirs) in enumerate(run.results):
        assert_close(their_losses, losses)
        expected = [own_heads(p, world_size, rank) for p in parameters[:2]]
        # Softmax does not see a key's bias: its gradient is rounding alone, which AdamW enlarges.
        for bias in (theirs[1], expected[1]):
            bias.tensor_split(3)[1].zero_()
        assert_close(theirs, [*expected, cut(parameters[2], 1, world_size, rank), parameters[3]])


def test_attentions_split_backward_gives_the_same_gradients():
    qkv, out = attention_weights(6)
    x, grad_y = torch.randn(2, 3, 6, **FLOAT64), torch.randn(2, 3, 6, **FLOAT64)
    whole, split, first = (MultiHeadAttention.from_weights(qkv, out, 3) for _ in range(3))
    grad_x = whole.backward(grad_y, whole.forward(x)[1])
    split_x, kept = split.backward_input(grad_y, split.forward(x)[1])
    split.backward_weight(kept)
    first.backward_first(grad_y, first.forward(x)[1])
    assert_close([split_x], [grad_x])
    assert_close(split.gradients() + first.gradients(), whole.gradients() * 2)


@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2)
)
@settings(max_examples=25)
def test_a_convolution_equals_torchs(inputs, outputs, kernel, padding, stride):
    weight = torch.randn(outputs, inputs, kernel, kernel, requires_grad=True, **FLOAT64)
    bias = torch.randn(outputs, requires_grad=True, **FLOAT64)
    x = torch.randn(2, inputs, 5, 4, requires_grad=True, **FLOAT64)
    expected = F.conv2d(x, weight, bias, stride=stride, padding=padding)
    grad_y = torch.randn_like(expected)
    expected.backward(grad_y)
    layer = Conv2d(weight.detach(), bias.detach(), padding, stride)
    y, saved = layer.forward(x.detach())
    got = [y, layer.backward(grad_y, saved), *layer.gradients()]
    assert_close(got, [expected.detach(), x.grad, weight.grad, bias.grad])


@pytest.mark.parametrize("world_size", CORNERS)
def test_a_convolution_split_by_channel_equals_one_devices(world_size):
    weight, bias = torch.randn(12, 12, 3, 3, **FLOAT64), torch.randn(12, **FLOAT64)
    x, grad_y = torch.randn(2, 12, 4, 5, **FLOAT64), torch.randn(2, 12, 4, 5, **FLOAT64)
    one = forward_backward(0, 1, lambda: Conv2d(weight, bias, 1), x, grad_y)
    by_output = split_run(
        world_size, lambda: OutputChannelParallelConv2d(weight, bias, 1), x, grad_y, y_cut=1
    )
    check_layer(by_output, one, None, 1, [0, 0])
    by_input = split_run(
        world_size, lambda: InputChannelParallelConv2d(weight, bias, 1), x, grad_y, x_cut=1
    )
    check_layer(by_input, one, 1, None, [1, None])
    for run in (by_output, by_input):
        assert run.ledger.count(rank=0) == run.ledger.count("all_reduce", 0) == 1
        assert run.ledger.sent_bytes(rank=0) == all_reduce_bytes(x.numel(), world_size)


def with_autograd(rank, world_size, weights, x, grad_y):
    (first, bias_1), (second, bias_2) = weights
    pieces = [first.tensor_split(world_size)[rank], bias_1.tensor_split(world_size)[rank]]
    pieces += [second.tensor_split(world_size, dim=1)[rank], bias_2]
    leaves = [piece.clone().requires_grad_() for piece in (*pieces, x)]
    w1, b1, w2, b2, x = leaves
    y = sum_over_group(F.gelu(F.linear(copy_to_group(x), w1, b1)) @ w2.T) + b2
    kept = grad_y.clone()
    y.backward(grad_y)
    assert torch.equal(grad_y, kept)
    return y.detach(), x.grad, [leaf.grad for leaf in leaves[:4]]


@pytest.mark.parametrize("world_size", [1, 3])
def test_f_and_g_make_autograd_tensor_parallel(world_size):
    weights = random_weights([4, 6, 5], **FLOAT64)
    x, grad_y = torch.randn(3, 4, **FLOAT64), torch.randn(3, 5, **FLOAT64)
    run = launch(with_autograd, world_size, (weights, x, grad_y))
    one_device = forward_backward(0, 1, lambda: MLP.from_weights(weights, GELU), x, grad_y)
    check_layer(run, one_device, None, None, CUTS[:4])
    assert run.ledger.count("all_reduce", 0) == run.ledger.count(rank=0) == 2


def with_dtensor(weights, x, grad_y, num_ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    model = torch.nn.Sequential(*(torch.nn.Linear(w.shape[1], w.shape[0]) for w, _ in weights))
    model.insert(1, torch.nn.GELU())
    for linear, (weight, bias) in zip((model[0], model[2]), weights, strict=True):
        linear.weight.data, linear.bias.data = weight.clone(), bias.clone()
    mesh = init_device_mesh("cpu", (num_ranks,))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = x.clone().requires_grad_()
    y = model(x)
    y.backward(grad_y)
    return y.detach(), x.grad, [p.grad.to_local() for p in model.parameters()]


def beside_dtensor(rank, world_size, weights, x, grad_y):
    ours = forward_backward(rank, world_size, lambda: TensorParallelMLP(weights, GELU), x, grad_y)
    return ours, with_dtensor(weights, x, grad_y, world_size)


def test_the_mlp_equals_dtensors_parallelize_module_in_float32():
    weights = random_weights([16, 32, 8])
    x, grad_y = torch.randn(6, 16), torch.randn(6, 8)
    for ours, theirs in launch(beside_dtensor, 2, (weights, x, grad_y)).results:
        assert_close([*ours[:2], *ours[2]], [*theirs[:2], *theirs[2]], 1e-6)


SPLITS = {
    "column, then row": lambda weights: TensorParallelMLP(weights, GELU),
    "gather every output": lambda weights: MLP(
        [ColumnParallelLinear(*weights[0]), GELU(), GatheringLinear(*weights[1]), Gather()]
    ),
    "row, then column": lambda weights: MLP(
        [Slice(), RowParallelLinear(*weights[0]), GELU(), GatheredLinear(*weights[1])]
    ),
}


def run_split(split, world_size, num_rows, features, hidden):
    """One step of an MLP block on fresh ranks, a barrier between forward and backward."""

    def on_rank(rank, world_size):
        generator = torch.Generator().manual_seed(1)
        x, grad_y = torch.randn(2, num_rows, features, generator=generator)
        model = SPLITS[split](random_weights([features, hidden, features]))
        y, saved = model.forward(x)
        dist.barrier()
        return y, model.backward(grad_y, saved)

    return launch(on_rank, world_size)


def formula(split, world_size, num_rows, features, hidden):
    """{"forward": {op: bytes that each rank sends}, "backward": ...}: lecture 07's aside."""
    share = (world_size - 1) / world_size * 4 * num_rows
    narrow, wide = features * share, hidden * share  # an all-gather's; an all-reduce sends twice
    if split == "column, then row":
        return {"forward": {"all_reduce": 2 * narrow}, "backward": {"all_reduce": 2 * narrow}}
    if split == "gather every output":
        backward = {"all_reduce": 2 * narrow, "reduce_scatter": wide}
        return {"forward": {"all_gather": narrow + wide}, "backward": backward}
    both = {"all_reduce": 2 * wide, "all_gather": narrow}
    return {"forward": both, "backward": dict(both)}


@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("split", SPLITS)
def test_each_way_to_split_a_block_sends_what_its_formula_says(split, world_size):
    sizes = (world_size, 5, 6, 12)
    run = run_split(split, *sizes)
    assert_close(run.results[0], run_split("column, then row", 1, *sizes[1:]).results[0], 1e-5)
    for phase, expected in formula(split, *sizes).items():
        assert sent_each_way(run)[phase] == pytest.approx(expected, abs=1)


def test_the_lectures_block_holds_a_share_and_equals_torchs():
    weights, x = random_weights([4, 6, 4], **FLOAT64), torch.randn(3, 4, **FLOAT64)
    expected = torch_block(weights)(x).detach()
    for y, share in launch(split_block, 2, (weights, x)).results:
        assert_close([y], [expected])
        assert share == (24 / 2 + 6 / 2 + 24 / 2 + 4) / 58


def sleeping_step(rank, world_size):
    dist.barrier()
    dist.all_reduce(torch.zeros(2))
    time.sleep(0.02)
    dist.all_reduce(torch.zeros(2), async_op=True).wait()


def test_a_step_is_drawn_from_its_last_barrier_on():
    run = launch(sleeping_step, 2)
    assert seconds_of(run) >= 0.02
    (axes,) = steps_picture([run], 0.01, "a title").axes
    sums = [text.get_text() for text in axes.texts if text.get_text()]
    assert len(axes.patches) == 5
    assert set(sums) <= {"y", "grad_x"}


def in_two_groups(rank, world_size, weights, x, grad_y):
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    layer = TensorParallelMLP(weights, GELU, group=pairs[rank // 2])
    y, saved = layer.forward(x * (1 + rank // 2))
    return y, layer.backward(grad_y, saved)


def test_a_layer_talks_to_its_own_group_only():
    weights = random_weights([4, 6, 5], **FLOAT64)
    x, grad_y = torch.randn(3, 4, **FLOAT64), torch.randn(3, 5, **FLOAT64)
    run = launch(in_two_groups, 4, (weights, x, grad_y))
    for rank, result in enumerate(run.results):
        one = forward_backward(
            0, 1, lambda: MLP.from_weights(weights, GELU), x * (1 + rank // 2), grad_y
        )
        assert_close(result, one[:2])
    groups = {event.rank: event.group for event in run.ledger.events if event.op == "all_reduce"}
    assert groups == {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)}


def hold(rank, world_size, num_layers, width):
    """Build layers from full weights, one after the other, as from a checkpoint."""
    layers = []
    for _ in range(num_layers):
        weights = [(torch.ones(width, width), torch.ones(width)) for _ in range(2)]
        layers.append(TensorParallelMLP(weights))
        del weights


def test_a_rank_keeps_its_share_of_the_weights_and_nothing_of_the_rest():
    width, layers = 64, 8
    one_weight = width * width * 4
    (peak,) = set(launch(hold, 4, (layers, width), memory=True).peak_bytes)
    biases = layers * 2 * 3 * width * 4
    shares = layers * 2 * 2 * one_weight // 4  # weight and gradient, two a layer
    assert peak <= 2 * one_weight + shares + biases + 2 * width * 4


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: ColumnParallelLinear(torch.ones(5, 2), torch.ones(5)), "5 output features .* 2 r"),
        (lambda: RowParallelLinear(torch.ones(2, 5), torch.ones(2)), "5 input features .* 2 ranks"),
        (lambda: GatheredLinear(torch.ones(5, 2), torch.ones(5)), "5 output features .* 2 ranks"),
        (lambda: TensorParallelMLP(random_weights([2, 4, 4, 2])), "3 linear layers .* 2"),
        (lambda: TensorParallelAttention(*attention_weights(9), 3), "3 heads .* 2 ranks"),
        (lambda: TensorParallelAttention(*attention_weights(9), 2), "27 features .* 2 heads"),
        (
            lambda: InputChannelParallelConv2d(torch.ones(2, 3, 1, 1), torch.ones(2)),
            "3 input channels .* 2 ranks",
        ),
        (
            lambda: RowParallelLinear(torch.ones(2, 4), torch.ones(2)).forward(torch.ones(3, 4)),
            "x has 4 features .* takes 2",
        ),
        (
            lambda: Conv2d(torch.ones(2, 3, 1, 1), torch.ones(2)).forward(torch.ones(1, 4, 5, 5)),
            r"x is \[1, 4, 5, 5\] .* takes \[T, 3, h, w\]",
        ),
        (
            lambda: Conv2d(torch.ones(2, 3, 2, 1), torch.ones(2)),
            r"weight \[2, 3, 2, 1\] .* bias \[2\]",
        ),
        (
            lambda: ColumnParallelLinear(torch.ones(2, 4), torch.ones(2, **FLOAT64)),
            "weight .*float32 and bias .*float64",
        ),
    ],
    ids=[
        "column",
        "row",
        "gathered",
        "odd",
        "heads",
        "head size",
        "channels",
        "input",
        "image",
        "kernel",
        "dtypes",
    ],
)
def test_what_cannot_be_split_is_refused_with_both_numbers(build, sentence):
    def attempt(rank, world_size):
        try:
            build()
        except ValueError as error:
            return str(error)

    for said in launch(attempt, 2).results:
        assert re.search(sentence, said), said
