"""Recomputed and offloaded layers have the plain ones' gradients to the bit; no choice of layers is
cheaper; a loss scale agrees over ranks and with torch's; master weights take small steps."""

from __future__ import annotations

import gc
import itertools
import os
import threading
import time
from functools import partial
from typing import NamedTuple

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist
from cases import parted
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from byhand import launch, runtime
from byhand.costs import Layout, held
from byhand.memory import (
    LayerCost,
    LossScale,
    MasterWeights,
    Offloaded,
    OffloadedAdamW,
    OffloadedLayers,
    Recomputed,
    ScaledOptimizer,
    Tier,
    cheapest,
    greedy,
    held_bytes,
    lab,
    work,
)
from byhand.memory.offload import load, store
from byhand.model.attention import Heads
from byhand.model.gpt import Parts, costs_of, gpt_layers, next_token_loss, random_gpt
from byhand.model.layer import Layer
from byhand.model.mlp import GELU, MLP, Linear, random_weights, softmax_cross_entropy
from byhand.model.optimizers import SGD, AdamW
from byhand.sequence_parallel import Dropout, SequenceParallelMLP
from byhand.sequence_parallel.lab import storages
from byhand.tensor_parallel import TensorParallelMLP
from byhand.zero import ShardedGradients, ShardedOptimizer, ShardedParameters

FLOAT64 = {"dtype": torch.float64}
SIZES = [6, 16, 12, 5]
ROWS = 7


def data(*shape, count=1):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(count, *shape, generator=generator, **FLOAT64).unbind()


def saved_bytes(saved):
    return sum(storage.nbytes() for storage in storages(saved))


def assert_equal(mine, theirs):
    """To the bit."""
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


# Recomputation


def mlp(dropout=0.0, activation=GELU):
    layers = MLP.from_weights(random_weights(SIZES, **FLOAT64), activation).layers
    if dropout:
        layers.insert(2, Dropout(dropout, torch.Generator().manual_seed(5)))
    return MLP(layers)


def gpt(parts=None, num_blocks=2):
    return gpt_layers(random_gpt(11, 8, 12, 3, num_blocks, **FLOAT64), parts=parts or Parts())


def backward_whole(layer, grad_y, saved):
    return layer.backward(grad_y, saved)


def backward_halves(layer, grad_y, saved):
    grad_x, kept = layer.backward_input(grad_y, saved)
    layer.backward_weight(kept)
    return grad_x


@pytest.mark.parametrize("backward", [backward_whole, backward_halves])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_of_an_mlp_are_the_plain_ones_to_the_bit(dropout, backward):
    plain, recomputed = mlp(dropout), Recomputed(mlp(dropout))
    found = []
    for layer in (plain, recomputed):
        y, saved = layer.forward(data(ROWS, SIZES[0])[0])
        found.append([y, backward(layer, torch.ones_like(y), saved), *layer.gradients()])
    assert_equal(*reversed(found))


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_micro_batches_in_flight_have_each_its_own_random_numbers(dropout):
    found = []
    for layer in (mlp(dropout), Recomputed(mlp(dropout))):
        inputs = data(ROWS, SIZES[0], count=3)
        y1, saved1 = layer.forward(inputs[0])
        y2, saved2 = layer.forward(inputs[1])
        grads = [layer.backward(y1, saved1)]
        y3, saved3 = layer.forward(inputs[2])  # after a backward, which must draw nothing anew
        grads += [layer.backward(y3, saved3), layer.backward(y2, saved2)]
        found.append([y1, y2, y3, *grads, *layer.gradients()])
    assert_equal(*reversed(found))


class Noise(Layer):
    """y = x ∘ m, with m drawn from torch's own generator."""

    def forward(self, x):
        noise = torch.rand_like(x)
        return x * noise, noise

    def backward_input(self, grad_y, saved):
        return grad_y * saved, None


def test_random_numbers_of_torchs_own_generator_are_replayed_too():
    torch.manual_seed(8)
    layer = Recomputed(Noise())
    (x,) = data(ROWS, 4)
    y, saved = layer.forward(x)
    torch.rand(9)
    before = torch.get_rng_state()
    torch.testing.assert_close(layer.backward(torch.ones_like(x), saved), y / x)
    assert torch.get_rng_state().equal(before), "backward moved the generator"


def test_backward_first_makes_no_gradient_of_the_data():
    plain, recomputed = mlp(), Recomputed(mlp())
    (x,) = data(ROWS, SIZES[0])
    for layer in (plain, recomputed):
        y, saved = layer.forward(x)
        assert layer.backward_first(y, saved) is None
    assert_equal(recomputed.gradients(), plain.gradients())


@pytest.mark.parametrize("backward", [backward_whole, backward_halves])
def test_every_block_of_a_gpt_recomputed_gives_the_plain_gradients_and_saves_its_input(backward):
    tokens = torch.arange(16).view(2, 8) % 11
    plain, recomputed = MLP(gpt()), MLP(gpt())
    recomputed.layers[1:-2] = map(Recomputed, recomputed.layers[1:-2])
    found = []
    for model in (plain, recomputed):
        logits, saved = model.forward(tokens)
        loss, grad = next_token_loss(logits, tokens)
        backward(model, grad, saved)
        found.append([loss, *model.gradients()])
    assert_equal(*reversed(found))
    one_input = 2 * 8 * 12 * 8  # B S D, of float64
    assert [saved_bytes(item) for item in saved[1:-2]] == [one_input] * 4


def test_a_chain_of_recomputed_blocks_holds_one_block_at_a_time():
    def step(rank, world_size, wrap):
        model = MLP([wrap(block) for block in gpt(num_blocks=8)[1:-2]])
        y, saved = model.forward(data(4, 8, 12)[0])
        held = [saved_bytes(item) for item in saved]
        model.backward(y, saved)
        return held

    plain, recomputed = (launch(step, 1, (how,), memory=True) for how in (lambda x: x, Recomputed))
    [held] = plain.results
    fewer = sum(held) - len(held) * 4 * 8 * 12 * 8 - 2 * max(held)  # inputs stay; a block is whole
    assert plain.peak_bytes[0] - recomputed.peak_bytes[0] >= fewer > 0.5 * sum(held)


def test_selective_recomputation_wraps_what_stands_between_the_products():
    tokens = torch.arange(16).view(2, 8) % 11
    selective = Parts(heads=lambda num_heads, causal: Recomputed(Heads(num_heads, causal)))
    found, held = [], []
    for parts in (Parts(), selective):
        model = MLP(gpt(parts))
        logits, saved = model.forward(tokens)
        held.append(saved_bytes(saved[1]))
        model.backward(next_token_loss(logits, tokens)[1], saved)
        found.append(model.gradients())
    assert_equal(*reversed(found))
    assert held[0] - held[1] == 2 * 3 * 8 * 8 * 8, "the scores [B, H, S, S], of float64, are gone"


def test_gradients_equal_those_of_torchs_checkpoint():
    weights = random_weights(SIZES, **FLOAT64)
    (x,), labels = data(ROWS, SIZES[0]), torch.arange(ROWS) % SIZES[-1]
    leaves = [tensor.clone().requires_grad_() for pair in weights for tensor in pair]

    def run(x):
        for number in range(0, len(leaves), 2):
            x = F.linear(F.gelu(x) if number else x, *leaves[number : number + 2])
        return x

    F.cross_entropy(checkpoint(run, x, use_reentrant=False), labels).backward()
    mine = Recomputed(mlp())
    logits, saved = mine.forward(x)
    mine.backward(softmax_cross_entropy(logits, labels)[1], saved)
    for gradient, leaf in zip(mine.gradients(), leaves, strict=True):
        torch.testing.assert_close(gradient, leaf.grad, rtol=1e-12, atol=1e-12)


def plain_and_recomputed(rank, world_size, split):
    """Gradients of each, one barrier between forward and backward, and between the two."""
    found = []
    for wrap in (lambda layer: layer, Recomputed):
        layer = wrap(split(random_weights([6, 12, 6], **FLOAT64)))
        y, saved = layer.forward(data(2, 4, 6)[0])
        dist.barrier()
        found.append([layer.backward(y, saved), *layer.gradients()])
        dist.barrier()
    return found


@pytest.mark.parametrize("split", [TensorParallelMLP, SequenceParallelMLP])
def test_the_collectives_of_forward_run_again_in_backward(split):
    run = launch(plain_and_recomputed, 2, (split,))
    for plain, recomputed in run.results:
        assert_equal(recomputed, plain)
    forward, backward, forward2, backward2 = parted(run)[:4]
    assert forward.count() == forward2.count() > 0
    assert backward2.count() == backward.count() + forward.count()
    assert backward2.sent_bytes() == backward.sent_bytes() + forward.sent_bytes()


@pytest.mark.parametrize("stage", [ShardedOptimizer, ShardedGradients, ShardedParameters])
def test_zero_trains_recomputed_layers_and_sends_no_more(stage):
    def train(rank, world_size):
        found = []
        for wrap in (lambda layer: layer, Recomputed):
            model = stage(map(wrap, mlp().layers), lambda shards: SGD(shards, lr=0.1))
            for _ in range(2):
                y, saved = model.forward(data(ROWS, SIZES[0])[0] + rank)
                model.backward(y, saved)
                model.step()
            found.append(model.parameters())
            dist.barrier()
        return found

    run = launch(train, 2)
    for plain, recomputed in run.results:
        assert_equal(recomputed, plain)
    plain, recomputed = parted(run)[:2]
    assert recomputed.sent_bytes() == plain.sent_bytes()


# Offload


def offloads(layer, folder):
    return Offloaded(layer, folder)


def offloads_inputs(layer, folder):
    return Offloaded(Recomputed(layer), folder)


@pytest.mark.parametrize("backward", [backward_whole, backward_halves])
@pytest.mark.parametrize("wrap", [offloads, offloads_inputs])
def test_what_lay_in_files_gives_the_plain_gradients_to_the_bit(wrap, backward, tmp_path):
    tokens = torch.arange(16).view(2, 8) % 11
    plain, offloaded, found = MLP(gpt()), MLP(gpt()), []
    offloaded.layers[:-1] = [wrap(layer, tmp_path) for layer in offloaded.layers[:-1]]
    for model in (plain, offloaded):
        logits, saved = model.forward(tokens)
        loss, grad = next_token_loss(logits, tokens)
        backward(model, grad, saved)
        found.append([loss, *model.gradients()])
    assert_equal(*reversed(found))
    assert not list(tmp_path.iterdir()), "files have no names"


def offloads_inputs_ahead(layer, folder):
    return OffloadedLayers([Recomputed(layer), MLP([])], Tier(folder))


@pytest.mark.parametrize("backward", [backward_whole, backward_halves])
@pytest.mark.parametrize("wrap", [offloads_inputs, offloads_inputs_ahead])
def test_random_numbers_are_replayed_from_states_that_lay_in_files(wrap, backward, tmp_path):
    (x,), found = data(ROWS, SIZES[0]), []
    for layer in (mlp(0.3), wrap(mlp(0.3), tmp_path)):
        y, saved = layer.forward(x)
        found.append([y, backward(layer, torch.ones_like(y), saved), *layer.gradients()])
    assert_equal(*reversed(found))


def offloads_a_row(layers, folder):
    return Offloaded(MLP(layers), folder)


def offloads_layers(layers, folder):
    return OffloadedLayers(layers, Tier(folder))


@pytest.mark.parametrize("backward", [backward_whole, backward_halves])
@pytest.mark.parametrize("wrap", [offloads_a_row, offloads_layers])
def test_what_an_offloaded_layer_inside_another_saved_is_read_from_its_own_file(
    wrap, backward, tmp_path
):
    (x,), found = data(ROWS, 6), []
    for inside in (False, True):
        layers = MLP.from_weights(random_weights([6] * 4, **FLOAT64), GELU).layers
        if inside:
            layers[2] = Offloaded(layers[2], tmp_path)
        model = wrap(layers, tmp_path) if inside else MLP(layers)
        y, saved = model.forward(x)
        found.append([y, backward(model, torch.ones_like(y), saved), *model.gradients()])
    assert_equal(*reversed(found))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_file_holds_each_storage_once_and_memory_none(dtype, tmp_path):
    layer = MLP.from_weights(random_weights(SIZES, dtype=dtype))
    x = data(ROWS, SIZES[0])[0].to(dtype)
    plain, saved = layer.forward(x)[1], Offloaded(layer, tmp_path).forward(x)[1]
    assert saved_bytes(saved) == 0
    storages_in_it = [storage.nbytes() for storage in storages(plain)]
    assert len(storages_in_it) == 3, "a ReLU's y is the next layer's x"
    padded = [n + -n % 64 for n in storages_in_it]
    assert os.fstat(saved.file.fileno()).st_size == sum(padded)


class Views(NamedTuple):
    """Saved in a tuple with names, as ring attention does: views, an empty tensor, no tensor."""

    transposed: torch.Tensor
    sliced: torch.Tensor
    mask: torch.Tensor
    empty: torch.Tensor
    name: str


def test_views_masks_and_what_is_no_tensor_come_back_as_they_were(tmp_path):
    (x,) = data(5, 6)
    views = Views(x.T, x[1:4, ::2], x > 0, x[:0], "zigzag")
    stored = store([views, (x.bfloat16(), None)], tmp_path, x.device)
    back, (narrow, nothing) = load(stored)
    assert isinstance(back, Views)
    assert (back.name, nothing) == ("zigzag", None)
    assert_equal([*back[:4], narrow], [*views[:4], x.bfloat16()])
    assert back.transposed.stride() == x.T.stride()
    back.sliced.zero_()
    assert_equal(load(stored)[0][:4], views[:4])  # the file has not changed


def test_storages_of_other_sizes_that_begin_at_one_address_come_back_whole(tmp_path):
    array = np.arange(10.0)
    short, whole = torch.from_numpy(array[:4]), torch.from_numpy(array)
    saved = [short, whole, torch.full((40,), -7.0)]
    assert short.data_ptr() == whole.data_ptr()
    assert_equal(load(store(saved, tmp_path, whole.device)), saved)


def test_conjugate_and_negative_views_come_back_with_their_values(tmp_path):
    z = torch.tensor([1 + 2j, 3 - 4j]).conj()
    views = [z, z.imag, z[1:]]  # whose bytes are those of the numbers that they are views of
    assert_equal(load(store(views, tmp_path, z.device)), views)


def test_a_layer_that_saves_nothing_and_a_folder_that_is_missing(tmp_path):
    assert load(store(None, tmp_path, torch.device("cpu"))) is None
    with pytest.raises(FileNotFoundError):
        Offloaded(mlp(), tmp_path / "missing").forward(data(ROWS, SIZES[0])[0])


@pytest.mark.gpu
def test_random_numbers_are_replayed_and_files_come_back_on_cuda(tmp_path):
    x = data(ROWS, 4)[0].cuda()
    for layer in (Recomputed(Noise()), Offloaded(Noise(), tmp_path)):
        y, saved = layer.forward(x)
        torch.testing.assert_close(layer.backward(torch.ones_like(x), saved), y / x)


class Gate(Tier):
    """Its writes wait until a later layer computes."""

    gate: threading.Event

    def write(self, saved, device):
        assert self.gate.wait(30), "nothing was computed while this was written"
        return super().write(saved, device)


class Opens(Layer):
    """y = x: in forward it opens a gate, in backward it sees that it is shut."""

    def __init__(self, gate):
        self.gate = gate

    def forward(self, x):
        self.gate.set()
        return x, x

    def backward_input(self, grad_y, saved):
        return grad_y, None


@pytest.mark.parametrize("backward", [backward_whole, backward_halves])
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("number", [1, 2, 5])
def test_a_row_of_offloaded_layers_gives_the_plain_gradients_to_the_bit(
    number, ahead, backward, tmp_path
):
    (x,), found = data(ROWS, 6), []
    for row in range(2):
        layers = MLP.from_weights(random_weights([6] * (number + 1), **FLOAT64), GELU).layers
        model = OffloadedLayers(layers, Tier(tmp_path), ahead) if row else MLP(layers)
        y, saved = model.forward(x)
        found.append([y, backward(model, torch.ones_like(y), saved), *model.gradients()])
    assert_equal(*reversed(found))
    assert not list(tmp_path.iterdir()), "files have no names"


def test_ahead_a_layer_computes_while_the_one_before_is_written(tmp_path):
    Gate.gate = threading.Event()
    OffloadedLayers([Noise(), Opens(Gate.gate)], Gate(tmp_path)).forward(data(ROWS, 4)[0])
    Gate.gate = threading.Event()
    layers = [Noise(), Opens(Gate.gate)]
    threading.Timer(0.2, Gate.gate.set).start()  # else it would never end
    OffloadedLayers(layers, Gate(tmp_path), ahead=False).forward(data(ROWS, 4)[0])


class Saves(Layer):
    """y = x, and a megabyte is saved."""

    def forward(self, x):
        return x, torch.zeros(250_000)

    def backward_input(self, grad_y, saved):
        return grad_y + saved[0], None


def hold(rank, world_size, folder, ahead):
    """Forward and backward of eight layers that save a megabyte each."""
    layers = [Saves() for _ in range(8)]
    model = MLP(layers) if folder is None else OffloadedLayers(layers, Tier(folder), ahead)
    y, saved = model.forward(torch.zeros(1))
    model.backward(y, saved)


@pytest.mark.parametrize("ahead", [False, True])
def test_in_memory_are_the_last_layers_bytes_and_two_others_at_most(ahead, tmp_path):
    plain, offloaded = (launch(hold, 1, (f, ahead), memory=True) for f in (None, str(tmp_path)))
    assert plain.peak_bytes[0] > 8e6
    assert offloaded.peak_bytes[0] < 3.1e6


def three_steps(rank, world_size, folder):
    """Weights after three steps, and the bytes that are held then."""
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(size, generator=generator) for size in (300_000, 200_000, 100_000)]
    adamw = AdamW(weights) if folder is None else OffloadedAdamW(weights, Tier(folder))
    for _ in range(3):
        adamw.step([torch.randn(w.shape, generator=generator) for w in weights])
    return weights, runtime.held_bytes()


def test_an_adamw_whose_means_lie_in_files_steps_as_ever_and_holds_none_between_steps(tmp_path):
    plain, filed = (launch(three_steps, 1, (f,), memory=True) for f in (None, str(tmp_path)))
    for expected, got in zip(plain.results[0][0], filed.results[0][0], strict=True):
        assert torch.equal(got, expected)
    assert plain.results[0][1] - filed.results[0][1] == 8 * 600_000
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_an_adamw_do_not_grow(tmp_path):
    weights = [torch.zeros(64), torch.zeros(5)]
    adamw = OffloadedAdamW(weights, Tier(tmp_path))
    for _ in range(3):
        assert [file.num_bytes for file in adamw.files] == [2 * 256, 2 * 64]  # each a multiple
        adamw.step([torch.ones_like(weight) for weight in weights])


@pytest.mark.parametrize(("count", "said"), [(1, "1 gradient for"), (3, "3 gradients for")])
def test_gradients_that_are_not_one_a_parameter_are_refused_before_one_moves(count, said, tmp_path):
    weights = [torch.zeros(3), torch.zeros(3)]
    adamw = OffloadedAdamW(weights, Tier(tmp_path))
    with pytest.raises(ValueError, match=f"{said} 2 parameters: a step takes one for each"):
        adamw.step([torch.ones(3)] * count)
    assert not any(weight.any() for weight in weights)
    adamw.step([torch.ones(3)] * 2)
    assert all(weight.all() for weight in weights)


def test_a_hundred_offloaded_models_leave_no_file_and_no_thread(tmp_path):
    def once() -> None:
        layers = [Linear(*pair) for pair in random_weights([8] * 5)]
        model = OffloadedLayers(layers, Tier(tmp_path))
        y, saved = model.forward(torch.ones(2, 8))
        model.backward(y, saved)
        OffloadedAdamW(model.parameters(), Tier(tmp_path)).step(model.gradients())

    def on_rank(rank: int, world_size: int) -> list[tuple[int, int]]:
        held = []
        for count in (1, 100):
            for _ in range(count):
                once()
            gc.collect()
            held.append((psutil.Process().num_fds(), threading.active_count()))
        return held

    ((files, _), (files_later, threads)) = launch(on_rank, 1).results[0]
    assert files_later == files
    assert threads < 10  # one ends a moment after the model it worked for


def test_a_tier_takes_no_less_time_than_its_rate_says(tmp_path):
    begun = time.monotonic()
    tier = Tier(tmp_path, bytes_per_second=1e6)
    stored = tier.write(torch.zeros(12_500), torch.device("cpu"))
    assert time.monotonic() - begun >= 0.05
    assert tier.read(stored).shape == (12_500,)
    assert time.monotonic() - begun >= 0.1


# Which layers


def by_force(layers, num_bytes):
    """The least work of all choices that fit."""
    numbers = range(len(layers))
    every = itertools.chain.from_iterable(
        itertools.combinations(numbers, k) for k in range(len(layers) + 1)
    )
    return min(work(layers, c) for c in every if held_bytes(layers, c) <= num_bytes)


def least_bytes(layers):
    return sum(min(layer.whole_bytes, layer.recomputed_bytes) for layer in layers)


LAYERS = st.lists(
    st.builds(LayerCost, st.integers(0, 40), st.integers(0, 20), st.integers(0, 12)), max_size=10
)


@given(LAYERS, st.integers(0, 200))
@settings(max_examples=150)
def test_no_choice_that_fits_is_cheaper(layers, more):
    num_bytes = least_bytes(layers) + more
    chosen = cheapest(layers, num_bytes)
    assert chosen == sorted(set(chosen))
    assert held_bytes(layers, chosen) <= num_bytes
    assert work(layers, chosen) == by_force(layers, num_bytes)


@given(LAYERS, st.integers(0, 200))
@settings(max_examples=150)
def test_the_greedy_choice_fits_and_is_never_cheaper(layers, more):
    num_bytes = least_bytes(layers) + more
    chosen = greedy(layers, num_bytes)
    assert chosen == sorted(set(chosen))
    assert held_bytes(layers, chosen) <= num_bytes
    assert work(layers, chosen) >= work(layers, cheapest(layers, num_bytes))


def test_the_greedy_choice_can_be_any_factor_dearer():
    layers = [LayerCost(1, 0, 0.5), LayerCost(1000, 0, 900), LayerCost(10, 0, 9.1)]
    assert cheapest(layers, 1002) == [2], "10 of the 9 bytes that are too many, for 9.1"
    assert greedy(layers, 1002) == [0, 1], "1 byte, which is not enough; then 1000, for 900"


@pytest.mark.parametrize("choose", [cheapest, greedy])
def test_where_all_fits_nothing_is_recomputed(choose):
    assert choose([LayerCost(8, 2, 0), LayerCost(8, 2, 3)], 16) == []
    assert choose([], 0) == []


@pytest.mark.parametrize("choose", [cheapest, greedy])
def test_where_nothing_fits_the_error_says_the_numbers(choose):
    layers = [LayerCost(3000, 1000, 1)] * 2
    with pytest.raises(ValueError, match=r"cannot save less than 2,000 bytes.* 1,999 are"):
        choose(layers, 1999)


def test_a_chain_of_a_hundred_blocks_of_two_kinds_leaves_few_choices():
    kinds = [LayerCost(34 * 10**6, 2 * 10**6, 24.0), LayerCost(53 * 10**6, 10**6, 16.7)]
    layers = kinds * 50
    cap = held_bytes(layers) * 2 // 5
    chosen = cheapest(layers, cap)
    assert held_bytes(layers, chosen) <= cap
    pairs = itertools.product(range(51), repeat=2)  # how many of each kind
    freed = [kind.freed_bytes for kind in kinds]
    fits = [p for p in pairs if held_bytes(layers) - p[0] * freed[0] - p[1] * freed[1] <= cap]
    assert work(layers, chosen) == pytest.approx(min(24.0 * a + 16.7 * b for a, b in fits))


def test_the_chosen_blocks_of_a_real_chain_save_no_more_than_the_cap():
    (x,) = data(2, 8, 12)

    def saved_of(layers):
        return [saved_bytes(item) for item in MLP(layers).forward(x)[1]]

    blocks = gpt(num_blocks=3)[1:-2]
    both = saved_of(blocks), saved_of(list(map(Recomputed, blocks)))
    costs = [LayerCost(a, b, work=1 + k % 2) for k, (a, b) in enumerate(zip(*both, strict=True))]
    cap = held_bytes(costs) // 2
    chosen = cheapest(costs, cap)
    layers = [Recomputed(b) if k in chosen else b for k, b in enumerate(blocks)]
    assert sum(saved_of(layers)) == held_bytes(costs, chosen) <= cap
    assert 0 < len(chosen) < len(blocks)


# Precision


OVERFLOWS = {2, 3, 11, 12, 13, 20}  # of 30 steps


def test_scales_and_skipped_steps_are_those_of_torchs_grad_scaler():
    mine, theirs = torch.ones(4), torch.ones(4, requires_grad=True)
    how = {"growth": 2.0, "backoff": 0.5, "every": 4}
    scale, optimizer = LossScale(2.0**10, **how), SGD([mine], lr=0.1)
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=2.0**10, growth_factor=2.0, backoff_factor=0.5, growth_interval=4
    )
    torchs = torch.optim.SGD([theirs], lr=0.1)
    for number in range(30):
        gradient = torch.randn(4, generator=torch.Generator().manual_seed(number))
        gradient[0] *= float("inf") if number in OVERFLOWS else 1
        theirs.grad = scaler.scale(gradient)
        before = theirs.detach().clone()
        scaler.step(torchs)
        scaler.update()
        taken = scale.step(optimizer, [scale.scale(gradient)])
        assert taken == (not theirs.equal(before)) == (number not in OVERFLOWS)
        assert scale.value == scaler.get_scale()
        torch.testing.assert_close(mine, theirs.detach(), rtol=0, atol=0)


def overflowing(rank, world_size, bad):
    """After each of 6 steps: the scale, and the rank's parameter; an overflow on the last rank."""
    parameter, found = torch.zeros(3), []
    scale = LossScale(2.0**8, every=2)
    for number in range(6):
        gradient = scale.scale(torch.full((3,), 1.0 + rank))
        if rank == world_size - 1 and number in (1, 4):
            gradient[1] = bad
        taken = scale.step(SGD([parameter], lr=1.0), [gradient])
        found.append((taken, scale.value, parameter.clone()))
    return found


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("bad", [float("inf"), -float("inf"), float("nan")])
def test_an_overflow_on_one_rank_skips_the_step_on_all(world_size, bad):
    run = launch(overflowing, world_size, (bad,))
    for rank, steps in enumerate(run.results):
        assert [taken for taken, *_ in steps] == [True, False, True, True, False, True]
        assert [value for _, value, _ in steps] == [256, 128, 128, 256, 128, 128]
        assert steps[-1][2].tolist() == [-4.0 * (1 + rank)] * 3
    assert run.ledger.count("all_reduce") == run.ledger.count() == 6 * world_size
    assert {event.payload_bytes for event in run.ledger.events} == {4}


def test_only_ranks_of_the_group_agree():
    def on_rank(rank, world_size):
        groups = [dist.new_group([0, 1]), dist.new_group([2])]
        scale = LossScale(group=groups[rank // 2])
        gradient = torch.tensor([float("inf") if rank == 1 else 1.0])
        return scale.step(SGD([torch.zeros(1)], lr=1.0), [gradient])

    assert launch(on_rank, 3).results == [False, False, True]


@pytest.mark.parametrize(
    "optimizer", [partial(SGD, lr=0.1), partial(SGD, lr=0.1, momentum=0.9), AdamW]
)
def test_a_rank_without_gradients_agrees_with_those_that_have_some(optimizer):
    def on_rank(rank, world_size):
        scale, parameters = LossScale(), [torch.zeros(2)] * (rank != 1)
        step, taken = MasterWeights(optimizer, parameters), []
        for bad_rank in (None, 2, 0):
            gradients = [torch.full((2,), float("inf" if rank == bad_rank else 1))]
            taken.append(scale.step(step, gradients[: len(parameters)]))
        return taken, scale.value, [p.any().item() for p in parameters]

    found = launch(on_rank, 3).results
    assert [result[:2] for result in found] == [([True, False, False], 2.0**14)] * 3
    assert [moved for *_, moved in found] == [[True], [], [True]]


def train_in_fp16(rank, world_size, stage, overflow_on):
    """The masters' sum, and the scale, after each of 4 steps; an overflow of one rank's rows."""
    scale, found = LossScale(2.0**10, every=100), []
    make = lambda shards: ScaledOptimizer(SGD(shards, lr=0.1), scale)  # noqa: E731
    model = stage(
        MLP.from_weights(random_weights(SIZES)).layers,
        make,
        dtype=torch.float16,
        reduce_dtype=torch.float32,
    )
    for number in range(4):
        y, saved = model.forward(data(ROWS, SIZES[0])[0].half())
        grad = scale.scale(y / y.numel())
        if number == 1 and rank == overflow_on:
            grad[0, 0] = float("inf")
        model.backward(grad, saved)
        model.step()
        found.append((scale.value, [p.clone() for p in model.parameters()]))
    return found


@pytest.mark.parametrize("stage", [ShardedOptimizer, ShardedGradients, ShardedParameters])
def test_shards_of_zero_skip_together(stage):
    run = launch(train_in_fp16, 2, (stage, 1))
    first, second = run.results
    assert [value for value, _ in first] == [value for value, _ in second] == [1024, 512, 512, 512]
    weights = [step for _, step in first]
    for mine, theirs in zip(weights, (step for _, step in second), strict=True):
        assert_equal(mine, theirs)
    assert_equal(weights[0], weights[1])  # the second step was skipped
    assert not weights[2][0].equal(weights[1][0])


def test_scaled_gradients_are_clipped_at_the_scaled_norm():
    def on_rank(rank, world_size):
        found = []
        for scale in (LossScale(1.0), LossScale(2.0**12)):
            model = ShardedOptimizer(
                mlp().layers,
                lambda shards, scale=scale: ScaledOptimizer(SGD(shards, lr=1.0), scale),
            )
            y, saved = model.forward(data(ROWS, SIZES[0])[0])
            model.backward(scale.scale(y), saved)
            model.step(max_norm=0.5 * scale.value)
            found.append(model.parameters())
        return found

    plain, scaled = launch(on_rank, 2).results[0]
    for mine, theirs in zip(scaled, plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6)
    assert not plain[0].equal(mlp().parameters()[0])


def test_a_scale_keeps_gradients_that_fp16_would_lose():
    gradient = torch.tensor([2.0**-30])
    assert gradient.half().item() == 0
    scale, parameter = LossScale(), torch.zeros(1)
    scaled = scale.scale(gradient).half().float()
    scale.step(SGD([parameter], lr=1.0), [scaled])
    assert parameter.item() == -(2.0**-30)


def test_the_scale_is_divided_out_in_float32():
    """2^-26 is no number of fp16: a gradient that is divided in fp16 would be 0."""
    given = torch.tensor([2.0**-10], dtype=torch.float16)
    [divided], finite = LossScale().unscale([given])
    assert (divided.item(), divided.dtype, finite) == (2.0**-26, torch.float32, True)
    assert given.item() == 2.0**-10, "a gradient was changed"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_of_enough_digits_are_divided_in_place(dtype):
    given = torch.ones(2, dtype=dtype)
    [divided], _ = LossScale(4.0).unscale([given])
    assert divided is given
    assert given.tolist() == [0.25, 0.25]


def scaled_inside(parameters, scale):
    make = lambda masters: ScaledOptimizer(SGD(masters, lr=1.0), scale)  # noqa: E731
    masters = MasterWeights(make, parameters)
    return masters, masters


def scaled_outside(parameters, scale):
    masters = MasterWeights(partial(SGD, lr=1.0), parameters)
    return masters, ScaledOptimizer(masters, scale)


@pytest.mark.parametrize("fitted", [scaled_inside, scaled_outside])
def test_masters_are_moved_by_what_fp16_could_not_hold(fitted):
    masters, optimizer = fitted([torch.zeros(1, dtype=torch.float16)], LossScale())
    optimizer.step([torch.tensor([2.0**-10], dtype=torch.float16)])
    assert masters.masters[0].item() == -(2.0**-26)


def test_a_scale_goes_on_from_a_checkpoint_where_it_was():
    def steps(scale, numbers):
        for number in numbers:
            scale.update(number % 5 != 4)
        return scale.value, scale.steps_since

    whole, first, second = (LossScale(2.0**10, every=3) for _ in range(3))
    steps(first, range(8))
    second.load(first.state())
    assert steps(second, range(8, 20)) == steps(whole, range(20))


def test_a_scale_that_goes_on_with_a_smaller_every_still_rises():
    first, second = LossScale(8.0, every=10), LossScale(8.0, every=4)
    for _ in range(6):
        first.update(finite=True)
    second.load(first.state())
    second.update(finite=True)
    assert (second.value, second.steps_since) == (16.0, 0)


def test_gradients_that_are_never_finite_end_in_a_sentence():
    scale, optimizer = LossScale(start=2.0**-23), SGD([torch.zeros(1)], lr=1.0)
    nan = torch.tensor([float("nan")])
    assert not scale.step(optimizer, [nan])
    with pytest.raises(FloatingPointError, match=r"the loss scale fell to 3\.0e-08"):
        scale.step(optimizer, [nan])


def test_a_scale_stays_finite():
    scale = LossScale(every=1)
    for _ in range(300):
        scale.update(True)
    assert torch.tensor(scale.value).isfinite()


@pytest.mark.parametrize(
    "wrong", [{"growth": 0.5}, {"backoff": 1.0}, {"every": 0}, {"start": 0.0}, {"backoff": 0.0}]
)
def test_a_scale_that_could_not_work_is_refused(wrong):
    with pytest.raises(ValueError, match=r"a loss scale from .* must be from"):
        LossScale(**wrong)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_many_small_steps_move_master_weights_alone(dtype):
    alone, beside = torch.ones(3, dtype=dtype), torch.ones(3, dtype=dtype)
    masters = MasterWeights(lambda tensors: SGD(tensors, lr=1e-4), [beside])
    gradient = torch.ones(3, dtype=dtype)
    for _ in range(1000):
        SGD([alone], lr=1e-4).step([gradient])
        masters.step([gradient])
    assert alone.tolist() == [1.0] * 3, "a step of 1e-4 is lost beside 1"
    torch.testing.assert_close(beside.float(), torch.full((3,), 0.9), rtol=0, atol=2e-3)
    assert beside.equal(masters.masters[0].to(dtype))
    assert gradient.tolist() == [1.0] * 3, "a gradient was changed"


def test_masters_step_as_the_optimizer_does_in_float32():
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(4, 3, generator=generator).bfloat16(), torch.randn(5).bfloat16()]
    plain = [tensor.float() for tensor in start]
    masters, optimizer = MasterWeights(AdamW, start), AdamW(plain)
    for _ in range(5):
        gradients = [torch.randn(t.shape, generator=generator).bfloat16() for t in start]
        masters.step(gradients)
        optimizer.step([gradient.float() for gradient in gradients])
    assert_equal(masters.masters, plain)
    assert_equal(start, [tensor.bfloat16() for tensor in plain])


def test_an_mlp_learns_in_fp16_with_a_scale_and_masters_after_skipping_overflows():
    model = MLP.from_weights([(w.half(), b.half()) for w, b in random_weights(SIZES)])
    scale = LossScale(2.0**24)
    optimizer = MasterWeights(
        lambda masters: ScaledOptimizer(AdamW(masters, lr=0.02), scale), model.parameters()
    )
    x, labels, losses = data(40, SIZES[0])[0].half(), torch.arange(40) % SIZES[-1], []
    for _ in range(60):
        logits, saved = model.forward(x)
        loss, grad = softmax_cross_entropy(logits.float(), labels)
        model.zero_gradients()
        model.backward(scale.scale(grad).half(), saved)
        optimizer.step(model.gradients())
        losses.append(loss.item())
    assert losses[0] == losses[1], "the first step overflows, and is skipped"
    assert 2.0**10 < scale.value < 2.0**24
    assert losses[-1] < 0.5 * losses[0]


# The lecture


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_a_watched_step_holds_what_is_predicted_and_a_moment_more(recompute):
    found = lab.profile(2, recompute, num_blocks=4)
    predicted = held(
        costs_of(lab.model_of(num_blocks=4)),
        Layout(rows=2, recompute=recompute),
        2,
        state=lab.FLOAT32,
    )
    assert 0.97 < found.peak / sum(predicted.values()) < 1.15
    assert sum(found.kinds.values()) == found.peak
    assert {kind: predicted[kind] for kind in found.state} == found.state
    if recompute != "full":  # else the block at work is counted with what is saved
        assert found.kinds["activations"] == pytest.approx(predicted["activations"], rel=0.01)


def test_every_technique_costs_what_its_lecture_says():
    found = lab.techniques(2, num_sequences=4)
    size, work = 4 * costs_of(lab.model_of()).parameters, found["dp"].operations
    assert found["dp"].sent == pytest.approx(size, rel=0.01)  # 2 (n-1)/n
    assert found["dp, bf16"].sent == pytest.approx(size / 2, rel=0.01)
    assert found["ZeRO-3"].sent == pytest.approx(1.5 * size, rel=0.01)
    assert found["ZeRO-3, recomputed"].sent == found["ZeRO-3"].sent
    assert 1.3 < found["dp, recomputed"].operations / work < 4 / 3
    assert found["ZeRO-1"].between == pytest.approx(3 * size, rel=0.01)  # 2 + 2/n
    assert found["ZeRO-3"].between == pytest.approx(1.5 * size, rel=0.01)
    moved = {name: one.moved for name, one in found.items() if one.moved}
    assert list(moved) == ["dp, offloaded", "dp, averages offloaded"]
    assert moved["dp, averages offloaded"] == pytest.approx(4 * size, rel=0.01)
    assert found["dp, averages offloaded"].between == pytest.approx(2 * size, rel=0.01)
    assert found["pp"].idle == pytest.approx(1 / 3)
    assert min(found, key=lambda name: found[name].peak) == "ZeRO-3, recomputed"


def test_every_technique_holds_what_is_predicted_and_a_moment_more():
    found, paper = lab.techniques(2, num_sequences=4), lab.on_paper(2, num_sequences=4)
    assert set(found) == set(paper)
    for name, one in found.items():
        assert 0 < one.peak - paper[name] < 1.5e6, name


def test_work_counts_what_an_idle_stage_could_have_done():
    assert lab.Technique(1, 1, 1, 0, 60, idle=0.25).work == 80


def test_float16_loses_small_gradients_without_a_scale_and_large_ones_with_too_much():
    lost = lab.fp16_window([0, 16, 44])
    zeros, overflows = lost["become 0"], lost["overflow"]
    assert zeros[0] > 10 > 0.1 > zeros[1]
    assert overflows[:2] == [0, 0]
    assert overflows[2] > 90


def test_a_weight_of_a_gpt_stands_still_without_a_master():
    alone, _ = lab.walk(torch.bfloat16, False, 20, 8e-5)
    mastered, _ = lab.walk(torch.bfloat16, True, 20, 8e-5)
    exact, _ = lab.walk(torch.float32, False, 20, 8e-5)
    assert len(set(alone)) == 1
    assert abs(mastered[-1] - exact[-1]) < 3e-4 < abs(alone[-1] - exact[-1])


def test_the_sleeping_layers_files_are_written_in_order_and_read_backwards():
    spans = lab.offloaded_step(True, 1e9, repetitions=1)
    files = [(span.kind, span.unit) for span in spans if "file" in span.kind]
    written = [("to the file", n) for n in range(5)]
    assert files == written + [("from the file", n) for n in reversed(range(5))]
    assert lab.seconds_of(spans) >= 6 * sum(lab.SLEEPS)


@pytest.mark.parametrize(("ahead", "rate", "ms"), [(False, 10e6, 1580), (True, 10e6, 1080)])
def test_a_step_with_files_is_foretold(ahead, rate, ms):
    assert lab.seconds_on_paper(ahead, rate) == pytest.approx(ms / 1e3)


def test_code_is_shown_without_its_docstring():
    assert lab.code_of(LossScale.scale).splitlines()[1:] == ["    return grad * self.value"]
