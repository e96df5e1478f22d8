"""The eight collectives from send and recv: right values, and no byte more than needed."""

import math

import pytest
import torch
import torch.distributed as dist
from cases import parted
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand import PerRank, collectives, launch
from byhand.collectives.lab import NAMES, ROOTED, busiest, demonstrate, links, matrix

WORLD_SIZES = (1, 2, 3, 4)
ROW = 3  # elements


def rows(rank, num_rows, dtype):
    """Rank r's tensor: different on every rank, and not contiguous."""
    return (torch.arange(num_rows * ROW).reshape(ROW, num_rows) + 100 * rank).to(dtype).T


def share(tensor, rank, world_size):
    return tensor.tensor_split(world_size)[rank]


def call(rank, world_size, name, root, num_rows, dtype):
    """The named collective of rank r's rows, or of its share of rank 0's rows; None for none."""
    function = getattr(collectives, name)
    root = {"root": root} if name in ROOTED else {}
    if name in ("gather", "all_gather"):
        shard = share(rows(0, num_rows, dtype), rank, world_size)
        return function(shard, num_rows=num_rows, **root)
    tensor = rows(rank, num_rows, dtype)
    result = function(tensor, **root)
    assert torch.equal(tensor, rows(rank, num_rows, dtype)), f"rank {rank}: argument changed"
    return result


def expected(rank, world_size, name, root, num_rows, dtype):
    """The same from all ranks' tensors at once, without communication."""
    if name in ("gather", "all_gather"):
        return rows(0, num_rows, dtype) if name == "all_gather" or rank == root else None
    total = sum(rows(r, num_rows, dtype) for r in range(world_size))
    values = {
        "broadcast": rows(root, num_rows, dtype),
        "scatter": share(rows(root, num_rows, dtype), rank, world_size),
        "reduce": total if rank == root else None,
        "reduce_scatter": share(total, rank, world_size),
        "all_reduce": total,
        "all_to_all": torch.cat(
            [share(rows(r, num_rows, dtype), rank, world_size) for r in range(world_size)]
        ),
    }
    return values[name]


def cases(world_size):
    return [
        (name, root, num_rows, dtype)
        for name in NAMES
        for root in (range(world_size) if name in ROOTED else [0])
        for num_rows in (0, 1, 7, 8)
        for dtype in (torch.float64, torch.int64)
    ]


def same(got, want):
    if got is None or want is None:
        return got is want
    return got.dtype == want.dtype and got.shape == want.shape and torch.equal(got, want)


def call_all(rank, world_size):
    return [call(rank, world_size, *case) for case in cases(world_size)]


@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_every_value_is_right_for_every_root_size_and_dtype(world_size):
    run = launch(call_all, world_size)
    for rank, results in enumerate(run.results):
        for case, got in zip(cases(world_size), results, strict=True):
            want = expected(rank, world_size, *case)
            assert same(got, want), f"rank {rank}, {case}: got {got}, expected {want}"


def all_reduce_each(rank, world_size, shapes):
    tensors = [
        torch.randn(shape, generator=torch.Generator().manual_seed(rank)) for shape in shapes
    ]
    ours = [collectives.all_reduce(tensor) for tensor in tensors]
    for tensor in tensors:
        dist.all_reduce(tensor)
    pairs = zip(ours, tensors, strict=True)
    return [a.shape == b.shape and torch.allclose(a, b, atol=1e-5) for a, b in pairs]


shapes = st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=8)


@given(shapes, st.integers(1, 4))
@settings(max_examples=5)
def test_all_reduce_takes_any_shape(shapes, world_size):
    run = launch(all_reduce_each, world_size, (shapes,))
    assert all(map(all, run.results)), f"shapes {shapes}, equal by rank: {run.results}"


def shard_lengths(num_rows, n):
    return [len(piece) for piece in torch.empty(num_rows).tensor_split(n)]


def predicted_rows(name, n, root, num_rows):
    """How many rows each rank sends, by the docstrings."""
    lengths = shard_lengths(num_rows * ROW, n) if name == "all_reduce" else None
    lengths = lengths or [length * ROW for length in shard_lengths(num_rows, n)]
    whole = sum(lengths)
    around = {
        "reduce_scatter": [whole - lengths[rank] for rank in range(n)],
        "all_gather": [whole - lengths[(rank + 1) % n] for rank in range(n)],
        "all_to_all": [whole - lengths[rank] for rank in range(n)],
    }
    both = around["reduce_scatter"], around["all_gather"]
    around["all_reduce"] = [sum(pair) for pair in zip(*both, strict=True)]
    if name in around:
        return around[name]
    others = [0 if rank == root else lengths[rank] for rank in range(n)]
    return {
        "broadcast": [0 if rank == (root - 1) % n else whole for rank in range(n)],
        "reduce": [0 if rank == root else whole for rank in range(n)],
        "scatter": [sum(others) if rank == root else 0 for rank in range(n)],
        "gather": others,
    }[name]


def predicted_messages(name, n):
    each = {"all_gather": n, "reduce_scatter": n, "all_to_all": n, "all_reduce": 2 * n}
    return each.get(name, 1) * (n - 1)


def call_in_turn(rank, world_size, root, num_rows):
    for name in NAMES:
        call(rank, world_size, name, root, num_rows, torch.float64)
        dist.barrier()


@pytest.mark.parametrize(("world_size", "num_rows"), [(1, 5), (2, 5), (3, 6), (4, 6)])
def test_messages_and_bytes_are_those_of_the_docstring(world_size, num_rows):
    root = world_size - 1
    ledgers = parted(launch(call_in_turn, world_size, (root, num_rows)))
    for name, ledger in zip(NAMES, ledgers, strict=False):  # after the last barrier, nothing
        sent = [ledger.sent_bytes("send", rank) for rank in range(world_size)]
        want = [8 * elements for elements in predicted_rows(name, world_size, root, num_rows)]
        assert sent == want, f"{name}: sent by rank {sent}, predicted {want}"
        assert ledger.count("send") == predicted_messages(name, world_size)
        assert ledger.count("recv") == ledger.count("send") == ledger.count() / 2


@pytest.mark.parametrize("name", NAMES)
def test_ranks_hold_and_send_the_same_as_by_torchs_own(name):
    ours, theirs = (demonstrate(name, 4, 2, by_hand=by_hand) for by_hand in (True, False))
    assert (ours.before, ours.after) == (theirs.before, theirs.after)
    for rank in range(4):
        sent, standard = (shown.run.ledger.sent_bytes(rank=rank) for shown in (ours, theirs))
        assert sent == standard, f"{name}, rank {rank}: {sent} bytes, the standard says {standard}"


def on_pairs(rank, world_size):
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    group, mine = groups[rank % 2], torch.tensor([float(rank), 10.0 * rank])
    return (
        collectives.all_reduce(mine, group).tolist(),
        collectives.broadcast(mine, 1, group).tolist(),
        collectives.scatter(mine, 1, group).tolist(),
    )


def test_within_a_group_the_root_is_a_group_rank_and_peers_are_global():
    run = launch(on_pairs, 4)
    even, odd = [2.0, 20.0], [4.0, 40.0]
    assert [result[0] for result in run.results] == [even, odd, even, odd]
    assert [result[1] for result in run.results] == [[2.0, 20.0], [3.0, 30.0]] * 2
    assert [result[2] for result in run.results] == [[2.0], [3.0], [20.0], [30.0]]
    assert {(e.rank, e.peer) for e in run.ledger.events} == {(0, 2), (2, 0), (1, 3), (3, 1)}


def overwrite_the_result(rank, world_size):
    tensor, left = torch.ones(4), []
    for name in NAMES:
        result = getattr(collectives, name)(tensor)
        if result is not None:
            result.zero_()
        left.append(tensor.tolist())
    return left


@pytest.mark.parametrize("world_size", [1, 2])
def test_results_share_no_memory_with_the_arguments(world_size):
    run = launch(overwrite_the_result, world_size)
    assert run.results == [[[1.0] * 4] * len(NAMES)] * world_size


def complaints(rank, world_size):
    calls = [
        lambda: collectives.broadcast(torch.ones(2), root=2),
        lambda: collectives.scatter(torch.tensor(1.0)),
        lambda: collectives.all_gather(torch.tensor(1.0)),
        lambda: collectives.gather(torch.ones(3), num_rows=4),
    ]
    sentences = []
    for wrong in calls:
        with pytest.raises(ValueError, match=r".") as caught:
            wrong()
        sentences.append(str(caught.value))
    return sentences


def test_wrong_arguments_get_a_sentence_before_anything_is_sent():
    run = launch(complaints, 2)
    root, scatter, gather, length = run.results[1]
    assert root == "root 2 is not a rank of this group: they are 0 to 1"
    assert "no rows to share out" in scatter
    assert "a shard needs rows" in gather
    assert length == "rank 1 holds 3 rows, but its share of 4 rows over 2 ranks is 2"
    assert run.ledger.count() == 0


def send_every_dtype(rank, world_size, names):
    tensors = [torch.ones(3).to(getattr(torch, name)) for name in names]
    return [collectives.all_gather(tensor).view(torch.uint8).float().mean() for tensor in tensors]


def test_any_dtype_travels():
    names = ("float16", "bfloat16", "float32", "complex64", "uint8", "int16", "bool", "float8_e5m2")
    for means in launch(send_every_dtype, 2, (names,)).results:
        own = [torch.ones(3).to(getattr(torch, n)).view(torch.uint8).float().mean() for n in names]
        assert means == own


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("shuffle",), "no collective is called 'shuffle'"),
        (("reduce", 9), "1 to 8 ranks, not 9"),
        (("reduce", 2, 2), "root 2 is not one of the ranks, 0 to 1"),
    ],
)
def test_a_demonstration_that_cannot_be_says_why(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        demonstrate(*arguments)


def test_a_demonstration_prints_before_and_after_by_rank():
    lines = str(demonstrate("reduce_scatter", 2)).splitlines()
    assert lines[0] == "Reduce-scatter: every rank ends with its shard of the sum"
    assert [line.split() for line in lines[2:]] == [["0", "1", "2", "11"], ["1", "10", "20", "22"]]


def test_all_reduce_is_reduce_scatter_then_all_gather():
    whole, first = demonstrate("all_reduce", 4), demonstrate("reduce_scatter", 4)
    pieces = [number for numbers in first.after for number in numbers]
    assert whole.after == [pieces] * 4
    second = demonstrate("all_gather", 4).run.ledger.sent_bytes(rank=0)
    assert whole.run.ledger.sent_bytes(rank=0) == first.run.ledger.sent_bytes(rank=0) + second


def test_all_to_all_transposes_who_holds_what():
    shown = demonstrate("all_to_all", 4, by_hand=True)
    assert shown.after == [list(column) for column in zip(*shown.before, strict=True)]


def back_and_forth(rank, world_size, tensor):
    return collectives.all_to_all(collectives.all_to_all(tensor))


def test_two_all_to_alls_of_equal_shards_give_back_what_was_there():
    tensors = [torch.randint(99, (8, 2)) for _ in range(4)]
    results = launch(back_and_forth, 4, (PerRank(tensors),)).results
    assert all(map(torch.equal, results, tensors))


def in_two_steps(rank, world_size, tensor):
    return collectives.all_gather(collectives.reduce_scatter(tensor))


def test_two_steps_give_every_rank_the_sum():
    tensors = [torch.randint(99, (8,)) for _ in range(4)]
    run = launch(in_two_steps, 4, (PerRank(tensors),))
    assert all(torch.equal(result, sum(tensors)) for result in run.results)
    assert math.isclose(run.ledger.sent_bytes(rank=3), 2 * 3 / 4 * tensors[0].nbytes)


@pytest.mark.parametrize("root", [0, 2])
@pytest.mark.parametrize(
    ("name", "mirror"),
    [
        ("broadcast", "reduce"),
        ("scatter", "gather"),
        ("all_gather", "reduce_scatter"),
        ("all_reduce", "all_reduce"),
        ("all_to_all", "all_to_all"),
    ],
)
def test_a_collectives_matrix_transposed_is_that_of_its_mirror_image(name, mirror, root):
    assert torch.equal(matrix(name, 3, root).T, matrix(mirror, 3, root))


def test_the_busiest_rank_sends_or_receives_the_most():
    def to_rank_0(rank, world_size):
        collectives.gather(torch.ones(5, dtype=torch.float64))

    run = launch(to_rank_0, 3)
    assert run.ledger.sent_bytes("send") == busiest(run) == 2 * 5 * 8


def test_links_are_counted_in_the_tensor_that_rank_0_returned_and_in_nothing_else():
    def drive(rank, world_size):
        return collectives.gather(torch.ones(2), root=rank_of_root)

    rank_of_root = 0
    assert links(launch(drive, 3)) == {(1, 0): 1 / 3, (2, 0): 1 / 3}
    rank_of_root = 1
    with pytest.raises(ValueError, match=r"rank 0 returned a NoneType, .*: let each rank return"):
        links(launch(drive, 3))
