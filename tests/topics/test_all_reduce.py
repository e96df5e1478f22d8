"""All-reduce by hand: right for any ranks, sizes and dtypes; bytes as the formulas."""

import math
import re
from collections import Counter
from functools import partial

import pytest
import torch
import torch.distributed as dist
from cases import parted
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand import DeadlockError, PerRank, RankError, all_reduce, device, launch
from byhand.all_reduce import algorithms, trees
from byhand.all_reduce.algorithms import AlgorithmError
from byhand.all_reduce.rings import MOST_BLOCKS, all_gather_around, reduce_scatter_around
from byhand.all_reduce.running import run_rounds

ALGORITHMS = {
    "ring": algorithms.ring,
    "double_ring": algorithms.double_ring,
    "tree": trees.tree,
    "double_tree": trees.double_tree,
    "recursive_doubling": trees.recursive_doubling,
    "halving_doubling": trees.halving_doubling,
}


def ranks_per_host(world_size):
    """The hosts used below: two equal ones where that goes."""
    return world_size // 2 if world_size % 2 == 0 else 1


def each_algorithm(world_size):
    """Every all-reduce, by name."""
    found = {name: getattr(all_reduce, f"{name}_all_reduce") for name in ALGORITHMS}
    whole = partial(all_reduce.hierarchical_all_reduce, ranks_per_host=ranks_per_host(world_size))
    return found | {"hierarchical": whole}


def algorithm(name, world_size):
    if name == "hierarchical":
        return algorithms.hierarchical(world_size, ranks_per_host(world_size))
    return ALGORITHMS[name](world_size)


NAMES = (*ALGORITHMS, "hierarchical")


# Algorithms, without a process


@given(st.integers(1, 40))
def test_every_algorithm_adds_every_term_once_and_leaves_all_ranks_with_the_total(num_ranks):
    for make in ALGORITHMS.values():
        algorithms.check(make(num_ranks))
    for size in (size for size in range(1, num_ranks + 1) if num_ranks % size == 0):
        algorithms.check(algorithms.hierarchical(num_ranks, size))


def test_an_algorithm_that_is_wrong_says_where():
    good = algorithms.ring(3)
    with pytest.raises(AlgorithmError, match="piece 0 on rank 0 ends without the term of rank 1"):
        algorithms.check(algorithms.Algorithm(3, 3, good.rounds[:1]))
    with pytest.raises(AlgorithmError, match="round 5: rank 1 would add the term of rank"):
        algorithms.check(algorithms.Algorithm(3, 3, good.rounds + good.rounds[:1]))


def formula(name, n, rank, num_bytes):
    """Bytes sent and rounds, by the table at the head of byhand.all_reduce.algorithms."""
    p = 2 ** int(math.log2(n))
    extra, partner = rank >= p, rank < n - p
    around = 2 * (n - 1) * num_bytes // n
    hosts, local = n // ranks_per_host(n), ranks_per_host(n)
    return {
        "ring": (around, 2 * (n - 1)),
        "double_ring": (around, 2 * (n - 1)),
        "tree": (num_bytes * ((rank > 0) + (2 * rank + 1 < n) + (2 * rank + 2 < n)), None),
        "recursive_doubling": (
            num_bytes if extra else (int(math.log2(p)) + partner) * num_bytes,
            int(math.log2(p)) + 2 * (n > p),
        ),
        "halving_doubling": (
            num_bytes if extra else 2 * (p - 1) * num_bytes // p + partner * num_bytes,
            2 * int(math.log2(p)) + 2 * (n > p),
        ),
        "hierarchical": (around, 2 * (local - 1) + 2 * (hosts - 1)),
    }[name]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "double_tree"])
@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4, 5, 6, 8, 12, 16])
def test_bytes_and_rounds_of_an_algorithm_are_those_of_its_formula(name, num_ranks):
    made, num_elements = algorithm(name, num_ranks), 16 * num_ranks
    for rank in range(num_ranks):
        sent, rounds = formula(name, num_ranks, rank, num_elements)
        assert made.sent_elements(rank, num_elements) == sent, f"rank {rank}"
        assert len(made.rounds) == (2 * int(math.log2(num_ranks)) if rounds is None else rounds)


@pytest.mark.parametrize("num_ranks", [*range(2, 18), 31, 32, 33])
def test_in_two_trees_no_rank_has_children_twice_or_sends_more_than_two_tensors(num_ranks):
    made = trees.double_tree(num_ranks)
    assert len(made.rounds) == 2 * int(math.log2(num_ranks))
    parents = Counter()
    for transfers in made.rounds:
        parents.update({(t.receiver, t.start) for t in transfers if t.reduces})
    assert max(Counter(rank for rank, _ in parents).values()) == 1
    assert max(made.sent_elements(rank, 100) for rank in range(num_ranks)) <= 200


@pytest.mark.parametrize("num_hosts", [1, 2, 3, 4])
def test_hierarchical_sends_no_more_across_hosts_than_a_ring_of_the_hosts(num_hosts):
    local, num_elements = 3, 144
    made = algorithms.hierarchical(num_hosts * local, local)
    bounds = algorithms.cut(num_elements, made.num_pieces)
    across = Counter()
    for transfer in (t for transfers in made.rounds for t in transfers):
        if transfer.sender // local != transfer.receiver // local:
            across[transfer.sender // local] += bounds[transfer.stop] - bounds[transfer.start]
    share = 2 * (num_hosts - 1) * num_elements // num_hosts
    assert across == Counter({host: share for host in range(num_hosts) if share})


def test_two_levels_go_in_blocks_of_two_megabytes_and_what_stays_on_a_host_in_four_blocks():
    def largest(way) -> int:
        run = launch(lambda rank, world_size: way(torch.ones(4 << 20)).unique().tolist(), 4)
        assert run.results == [[4.0]] * 4
        return max(event.payload_bytes for event in run.ledger.select("send"))

    assert largest(all_reduce.double_ring_all_reduce) == (16 << 20) // 4 // 8  # halves, of 4 ranks
    assert largest(partial(all_reduce.hierarchical_all_reduce, ranks_per_host=2)) == (2 << 20) // 2


# Values


def tensor_of(rank, shape, dtype):
    """Rank r's tensor: of few values, so that products stay small; not contiguous."""
    generator = torch.Generator().manual_seed(100 + rank)
    values = torch.randint(1, 4, [*shape, 2], generator=generator)
    return values.to(dtype)[..., 0]


CASES = [
    ((), torch.float32),
    ((0,), torch.float32),
    ((1,), torch.int64),
    ((2, 3), torch.float64),
    ((7,), torch.bfloat16),
    ((10,), torch.uint8),
    ((6,), torch.complex64),
]


def reduce_every_case(rank, world_size):
    """Whether each algorithm's result equals gloo's, whether the argument is as it was, bits."""
    found = {}
    for shape, dtype in CASES:
        want = tensor_of(rank, shape, dtype).contiguous()
        dist.all_reduce(want)
        for name, function in each_algorithm(world_size).items():
            tensor = tensor_of(rank, shape, dtype)
            got = function(tensor)
            same = torch.equal(got, want) and got.dtype == dtype and got.shape == want.shape
            kept = torch.equal(tensor, tensor_of(rank, shape, dtype))
            found[name, shape, dtype] = same, kept
    return found


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 5])
def test_every_algorithm_sums_as_gloo_does(world_size):
    run = launch(reduce_every_case, world_size)
    for rank, found in enumerate(run.results):
        for case, (same, kept) in found.items():
            assert same, f"rank {rank}: {case}: not what gloo gives"
            assert kept, f"rank {rank}: {case}: the argument was changed"


def sums_in_float(rank, world_size, num_elements):
    generator = torch.Generator().manual_seed(rank)
    tensor = torch.randn(num_elements, generator=generator)
    return {name: function(tensor) for name, function in each_algorithm(world_size).items()}


@pytest.mark.parametrize(("world_size", "num_elements"), [(4, 10_007), (4, 200_003), (5, 300_007)])
def test_all_ranks_get_the_same_bits_in_one_block_or_several(world_size, num_elements):
    run = launch(sums_in_float, world_size, (num_elements,))
    seeds = [torch.Generator().manual_seed(rank) for rank in range(world_size)]
    tensors = [torch.randn(num_elements, generator=seed) for seed in seeds]
    total = sum(tensor.double() for tensor in tensors)
    for name, first in run.results[0].items():
        assert all(torch.equal(first, result[name]) for result in run.results), name
        assert torch.allclose(first.double(), total, atol=1e-5), name


def reduce_shapes(rank, world_size, shapes):
    tensors = [torch.randn(s, generator=torch.Generator().manual_seed(rank)) for s in shapes]
    results = [[f(t) for f in each_algorithm(world_size).values()] for t in tensors]
    for tensor in tensors:
        dist.all_reduce(tensor)
    return [
        all(torch.allclose(got, want, atol=1e-5) for got in ours)
        for ours, want in zip(results, tensors, strict=True)
    ]


shapes = st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=5)


@given(shapes, st.integers(1, 4))
@settings(max_examples=5)
def test_any_shape_can_be_reduced(shapes, world_size):
    run = launch(reduce_shapes, world_size, (shapes,))
    assert all(map(all, run.results)), f"shapes {shapes}: {run.results}"


# Bytes


def reduce_in_turn(rank, world_size, num_elements):
    for function in each_algorithm(world_size).values():
        function(torch.ones(num_elements))
        dist.barrier()


def messages_by_algorithm(world_size, num_elements):
    """For each algorithm, by rank, the bytes of every message that the ledger has."""
    ledgers = parted(launch(reduce_in_turn, world_size, (num_elements,)))
    return {
        name: [[e.sent_bytes for e in ledger.select("send", rank)] for rank in range(world_size)]
        for name, ledger in zip(NAMES, ledgers, strict=False)  # after the last barrier, nothing
    }


@pytest.mark.parametrize(("world_size", "num_elements"), [(2, 7), (3, 12), (4, 10), (5, 3)])
def test_the_ledger_counts_the_algorithms_bytes_and_messages(world_size, num_elements):
    for name, by_rank in messages_by_algorithm(world_size, num_elements).items():
        made = algorithm(name, world_size)
        for rank, sent in enumerate(by_rank):
            want = 4 * made.sent_elements(rank, num_elements)
            assert sum(sent) == want, f"{name}, rank {rank}: {sum(sent)} bytes, expected {want}"
            planned = [t for transfers in made.rounds for t in transfers if rank == t.sender]
            assert len(sent) == len(planned), f"{name}, rank {rank}"


@pytest.mark.parametrize("name", ["ring", "recursive_doubling", "halving_doubling", "hierarchical"])
def test_of_two_ranks_that_send_each_other_something_each_begins_with_its_receive(name):
    """Else gloo's word that one is ready to receive queues behind the bytes of what it sends."""
    hosts = {"ranks_per_host": 1} if name == "hierarchical" else {}
    call = partial(getattr(all_reduce, f"{name}_all_reduce"), **hosts)
    run = launch(lambda rank, world_size: call(torch.ones(1000)), 2)
    for rank in range(2):
        ops = [event.op for event in run.ledger.select(rank=rank) if event.op in ("send", "recv")]
        assert ops == ["recv", "send"] * (len(ops) // 2) != []


def test_blocks_make_more_messages_and_no_more_bytes():
    for name, by_rank in messages_by_algorithm(4, 1 << 18).items():  # 1 MB
        made = algorithm(name, 4)
        for rank, sent in enumerate(by_rank):
            planned = [t for transfers in made.rounds for t in transfers if rank == t.sender]
            assert sum(sent) == 4 * made.sent_elements(rank, 1 << 18), name
            assert len(sent) == MOST_BLOCKS * len(planned), name


# Shards


SHARDED = [(0, torch.int64), (1, torch.float64), (8, torch.int32)]  # rows, dtype


def scatter_and_gather(rank, world_size):
    found = []
    for num_rows, dtype in SHARDED:
        shard = all_reduce.ring_reduce_scatter(tensor_of(rank, (num_rows, 3), dtype))
        found.append((shard, all_reduce.ring_all_gather(shard, num_rows=num_rows)))
        dist.barrier()
    return found


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
def test_reduce_scatter_then_all_gather_is_all_reduce(world_size):
    run = launch(scatter_and_gather, world_size)
    for number, (num_rows, dtype) in enumerate(SHARDED):
        total = sum(tensor_of(rank, (num_rows, 3), dtype) for rank in range(world_size))
        pieces = total.tensor_split(world_size)
        for rank, found in enumerate(run.results):
            shard, whole = found[number]
            assert torch.equal(shard, pieces[rank]), f"rank {rank}'s shard"
            assert torch.equal(whole, total), f"rank {rank}'s whole"
            others = 2 * num_rows - len(pieces[rank]) - len(pieces[(rank + 1) % world_size])
            sent = parted(run)[number].sent_bytes("send", rank)
            assert sent == others * 3 * total.itemsize


# Groups, and what goes wrong


def in_pairs(rank, world_size):
    groups = [dist.new_group([0, 2]), dist.new_group([3, 1])]
    group, mine = groups[rank % 2], torch.tensor([float(rank), 1.0])
    everyone = [
        f(mine, group).tolist() for f in (all_reduce.ring_all_reduce, all_reduce.tree_all_reduce)
    ]
    return everyone, all_reduce.ring_all_gather(mine, group).tolist()


def test_a_group_of_some_ranks_reduces_by_itself():
    run = launch(in_pairs, 4)
    assert [result[0] for result in run.results] == [[[2, 2]] * 2, [[4, 2]] * 2] * 2
    assert run.results[1][1] in ([3, 1, 1, 1], [1, 1, 3, 1])
    assert {(e.rank, e.peer) for e in run.ledger.events} == {(0, 2), (2, 0), (1, 3), (3, 1)}


def complaints(rank, world_size):
    ones = torch.ones(4)
    calls = [
        lambda: all_reduce.hierarchical_all_reduce(ones, ranks_per_host=4),
        lambda: all_reduce.ring_reduce_scatter(torch.tensor(1.0)),
        lambda: all_reduce.ring_all_gather(torch.tensor(1.0)),
        lambda: all_reduce.ring_all_gather(ones, num_rows=10),
    ]
    sentences = []
    for wrong in calls:
        with pytest.raises(ValueError, match=r".") as caught:
            wrong()
        sentences.append(str(caught.value))
    return sentences


EXPECTED = (
    "2 ranks do not fill hosts of 4",
    "no rows to share out",
    "a shard needs rows",
    "rank 1 holds 4 rows, but its share of 10 rows over 2 ranks is 5",
)


def test_what_cannot_be_gets_a_sentence_before_anything_is_sent():
    run = launch(complaints, 2)
    for sentence, part in zip(run.results[1], EXPECTED, strict=True):
        assert part in sentence
    assert run.ledger.count() == 0


def a_rank_leaves(rank, world_size):
    if rank != 2:
        all_reduce.ring_all_reduce(torch.ones(10))


def unequal_sizes(rank, world_size):
    all_reduce.ring_all_reduce(torch.ones(10 + 6 * (rank == 1)))


def test_a_rank_that_takes_no_part_is_named_and_so_are_unequal_tensors():
    with pytest.raises(DeadlockError, match="rank 2"):
        launch(a_rank_leaves, 3)
    with pytest.raises(DeadlockError, match=r"sends \[.\] float32 to rank ., which receives"):
        launch(unequal_sizes, 2)


def on_the_device(rank, world_size):
    tensor = torch.arange(10.0, device=device(rank)) * (rank + 1)
    results = [f(tensor) for f in each_algorithm(world_size).values()]
    shard = all_reduce.ring_reduce_scatter(tensor)
    results.append(all_reduce.ring_all_gather(shard, num_rows=10))
    return [(result.device == tensor.device, result.cpu().tolist()) for result in results]


@pytest.mark.gpu
def test_tensors_on_gpus_are_reduced_and_stay_there():
    for result in launch(on_the_device, 2).results:
        assert result == [(True, [3.0 * i for i in range(10)])] * (len(NAMES) + 1)


def ring_by_its_rounds(rank, world_size):
    total = torch.arange(11) * (rank + 1)
    run_rounds(algorithms.ring(world_size), total, range(world_size))
    return total


def test_the_rings_plan_run_round_by_round_gives_what_the_ring_gives():
    for total in launch(ring_by_its_rounds, 3).results:
        assert torch.equal(total, torch.arange(11) * 6)


def shards_of_each(rank, world_size, tensor):
    return all_reduce.ring_reduce_scatter(tensor.T)


def test_shards_are_cut_from_transposed_tensors_too():
    tensors = [torch.randn(3, 7, dtype=torch.float64) for _ in range(3)]
    run = launch(shards_of_each, 3, (PerRank(tensors),))
    for result, want in zip(run.results, sum(tensors).T.tensor_split(3), strict=True):
        torch.testing.assert_close(result, want)


@pytest.mark.parametrize("half", [reduce_scatter_around, all_gather_around])
@pytest.mark.parametrize(
    ("ranks", "count", "told"),
    [
        ([0, 1], 2, "rank 2 calls, and the ring's ranks are [0, 1], without it"),
        ([2, 0], 3, "3 shards for 2 ranks: a ring needs one for each"),
    ],
)
def test_half_a_ring_says_why_it_cannot_go_round(half, ranks, count, told):
    def of_rank_2(rank, world_size):
        if rank == 2:
            half([torch.ones(1)] * count, ranks)

    with pytest.raises(RankError, match=re.escape(told)):
        launch(of_rank_2, 3)
