"""All-reduce by hand: right for any ranks, sizes, dtypes and operations; bytes as the formulas."""

import math
from collections import Counter
from functools import partial

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st

from byhand import DeadlockError, PerRank, all_reduce, device, launch
from byhand.all_reduce import algorithms, plans, trees
from byhand.all_reduce.programs import block_spans, program

OPS = ("SUM", "PRODUCT", "MIN", "MAX", "AVG", "BAND", "BOR", "BXOR")
PLANS = {
    "ring": plans.ring,
    "double_ring": plans.double_ring,
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
    found = {name: getattr(all_reduce, f"{name}_all_reduce") for name in PLANS}
    whole = partial(all_reduce.hierarchical_all_reduce, ranks_per_host=ranks_per_host(world_size))
    return found | {"hierarchical": whole}


def plan(name, world_size):
    if name == "hierarchical":
        return plans.hierarchical(world_size, ranks_per_host(world_size))
    return PLANS[name](world_size)


NAMES = (*PLANS, "hierarchical")


# Plans, without a process


@given(st.integers(1, 40))
@settings(deadline=None)
def test_every_plan_adds_every_term_once_and_leaves_all_ranks_with_the_total(num_ranks):
    for make in PLANS.values():
        plans.check(make(num_ranks))
    for size in (size for size in range(1, num_ranks + 1) if num_ranks % size == 0):
        plans.check(plans.hierarchical(num_ranks, size))


def test_a_plan_that_is_wrong_says_where():
    good = plans.ring(3)
    with pytest.raises(plans.PlanError, match="piece 0 on rank 0 ends without the term of rank 1"):
        plans.check(plans.Plan(3, 3, good.rounds[:1]))
    with pytest.raises(plans.PlanError, match="round 5: rank 1 would add the term of rank"):
        plans.check(plans.Plan(3, 3, good.rounds + good.rounds[:1]))


def formula(name, n, rank, num_bytes):
    """Bytes sent and rounds, by the table at the head of byhand.all_reduce.plans."""
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
def test_bytes_and_rounds_of_a_plan_are_those_of_its_formula(name, num_ranks):
    made, num_elements = plan(name, num_ranks), 16 * num_ranks
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
    made = plans.hierarchical(num_hosts * local, local)
    bounds = plans.cut(num_elements, made.num_pieces)
    across = Counter()
    for transfer in (t for transfers in made.rounds for t in transfers):
        if transfer.sender // local != transfer.receiver // local:
            across[transfer.sender // local] += bounds[transfer.stop] - bounds[transfer.start]
    share = 2 * (num_hosts - 1) * num_elements // num_hosts
    assert across == Counter({host: share for host in range(num_hosts) if share})


@given(st.sampled_from(NAMES), st.integers(2, 9), st.integers(0, 40), st.integers(1, 5))
@settings(deadline=None)
def test_programs_of_all_ranks_carry_out_the_plan_in_any_interleaving(name, n, elements, blocks):
    made = plan(name, n)
    spans = block_spans(elements, made.num_pieces, blocks)
    programs = [program(made, rank, spans) for rank in range(n)]
    source = torch.randint(1000, (n, elements))
    result = source.clone() if elements == 0 else torch.full_like(source, -(10**6))
    _interleave(programs, source, result)
    assert torch.equal(result, source.sum(0).expand(n, -1)), (name, n, elements, blocks)


def _interleave(programs, source, result):
    """Run all ranks' programs here, the last rank first: each as far as its messages are there."""
    wire, done = {}, [0] * len(programs)

    def send(rank, sends):
        for s in sends:
            values = (source if s.of_input else result)[rank, s.start : s.stop]
            wire[rank, s.peer, s.tag] = values.clone()

    for rank, steps in enumerate(programs):
        send(rank, steps.first)
    while any(number < len(p.receives) for number, p in zip(done, programs, strict=True)):
        before = list(done)
        for rank, steps in reversed(list(enumerate(programs))):
            while done[rank] < len(steps.receives):
                step = steps.receives[done[rank]]
                if (step.peer, rank, step.tag) not in wire:
                    break
                arrived = wire.pop((step.peer, rank, step.tag))
                own = (source if step.of_input else result)[rank, step.start : step.stop]
                result[rank, step.start : step.stop] = arrived + own * step.reduces
                send(rank, step.then)
                done[rank] += 1
        assert done != before, "no rank can go on"
    assert not wire, "messages that nobody takes"


# Values


def tensor_of(rank, shape, dtype):
    """Rank r's tensor: of few values, so that products stay small; not contiguous."""
    generator = torch.Generator().manual_seed(100 + rank)
    values = torch.randint(1, 4, [*shape, 2], generator=generator)
    return values.to(dtype)[..., 0]


CASES = [
    ((), torch.float32, "SUM"),
    ((0,), torch.float32, "SUM"),
    ((1,), torch.int64, "SUM"),
    ((2, 3), torch.float64, "PRODUCT"),
    ((7,), torch.bfloat16, "MIN"),
    ((9, 5), torch.float16, "MAX"),
    ((31,), torch.float64, "AVG"),
    ((10,), torch.uint8, "BAND"),
    ((10,), torch.int32, "BOR"),
    ((10,), torch.int64, "BXOR"),
    ((5,), torch.int8, "MAX"),
    ((6,), torch.complex64, "SUM"),
    ((6,), torch.bool, "MAX"),
]


def reduce_every_case(rank, world_size):
    """Whether each algorithm's result equals gloo's, whether the argument is as it was, bits."""
    found = {}
    for case in CASES:
        shape, dtype, op = case[0], case[1], getattr(dist.ReduceOp, case[2])
        want = tensor_of(rank, shape, dtype).contiguous()
        dist.all_reduce(want, op=op)
        for name, function in each_algorithm(world_size).items():
            tensor = tensor_of(rank, shape, dtype)
            got = function(tensor, op=op)
            same = torch.equal(got, want) and got.dtype == dtype and got.shape == want.shape
            kept = torch.equal(tensor, tensor_of(rank, shape, dtype))
            found[name, case] = same, kept
    return found


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 5])
def test_every_algorithm_reduces_as_gloo_does(world_size):
    run = launch(reduce_every_case, world_size)
    for rank, found in enumerate(run.results):
        for (name, case), (same, kept) in found.items():
            assert same, f"rank {rank}: {name}, {case}: not what gloo gives"
            assert kept, f"rank {rank}: {name}, {case}: the argument was changed"


def sums_in_float(rank, world_size, message_bytes):
    algorithms.MESSAGE_BYTES = algorithms.WAVE_BYTES = message_bytes
    generator = torch.Generator().manual_seed(rank)
    tensor = torch.randn(10_007, generator=generator)
    return {name: function(tensor) for name, function in each_algorithm(world_size).items()}


@pytest.mark.parametrize(("world_size", "message_bytes"), [(4, 1 << 20), (4, 1000), (5, 1000)])
def test_all_ranks_get_the_same_bits_however_many_blocks_there_are(world_size, message_bytes):
    run = launch(sums_in_float, world_size, (message_bytes,))
    tensors = [torch.randn(10_007, generator=torch.Generator().manual_seed(r)) for r in range(5)]
    total = sum(tensor.double() for tensor in tensors[:world_size])
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
@settings(max_examples=5, deadline=None)
def test_any_shape_can_be_reduced(shapes, world_size):
    run = launch(reduce_shapes, world_size, (shapes,))
    assert all(map(all, run.results)), f"shapes {shapes}: {run.results}"


# Bytes


def reduce_in_turn(rank, world_size, num_elements, message_bytes):
    algorithms.MESSAGE_BYTES = algorithms.WAVE_BYTES = message_bytes
    for function in each_algorithm(world_size).values():
        function(torch.ones(num_elements))
        dist.barrier()


def messages_by_algorithm(world_size, num_elements, message_bytes=1 << 20):
    """For each algorithm, by rank, the bytes of every message that the ledger has."""
    run = launch(reduce_in_turn, world_size, (num_elements, message_bytes))
    found = {name: [] for name in NAMES}
    for rank in range(world_size):
        events = iter(run.ledger.select(rank=rank))
        for name in NAMES:
            mine = []
            for event in events:
                if event.op == "barrier":
                    break
                mine += [event.sent_bytes] if event.op == "send" else []
            found[name].append(mine)
    return found


@pytest.mark.parametrize(("world_size", "num_elements"), [(2, 7), (3, 12), (4, 10), (5, 3)])
def test_the_ledger_counts_the_plans_bytes_and_messages(world_size, num_elements):
    for name, by_rank in messages_by_algorithm(world_size, num_elements).items():
        made = plan(name, world_size)
        bounds = plans.cut(num_elements, made.num_pieces)
        for rank, sent in enumerate(by_rank):
            want = 4 * made.sent_elements(rank, num_elements)
            assert sum(sent) == want, f"{name}, rank {rank}: {sum(sent)} bytes, the plan: {want}"
            mine = [t for transfers in made.rounds for t in transfers if rank == t.sender]
            assert len(sent) == sum(bounds[t.start] < bounds[t.stop] for t in mine)


def test_blocks_make_more_messages_and_no_more_bytes():
    whole, blocks = (messages_by_algorithm(4, 4096, num_bytes) for num_bytes in (1 << 20, 512))
    for name in NAMES:
        for few, many in zip(whole[name], blocks[name], strict=True):
            assert sum(few) == sum(many), name
            assert len(many) >= 4 * len(few), name


# Shards


def scatter_and_gather(rank, world_size, num_rows, dtype):
    tensor = tensor_of(rank, (num_rows, 3), dtype)
    shard = all_reduce.ring_reduce_scatter(tensor)
    pending = all_reduce.ring_all_gather(shard, async_op=True, num_rows=num_rows)
    return shard, pending.wait()


@pytest.mark.parametrize("world_size", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("num_rows", "dtype"), [(0, torch.int64), (1, torch.float64), (8, torch.int32)]
)
def test_reduce_scatter_then_all_gather_is_all_reduce(world_size, num_rows, dtype):
    run = launch(scatter_and_gather, world_size, (num_rows, dtype))
    total = sum(tensor_of(rank, (num_rows, 3), dtype) for rank in range(world_size))
    for rank, (shard, whole) in enumerate(run.results):
        assert torch.equal(shard, total.tensor_split(world_size)[rank]), f"rank {rank}'s shard"
        assert torch.equal(whole, total), f"rank {rank}'s whole"
    sizes = [len(piece) for piece in total.tensor_split(world_size)]
    for rank in range(world_size):
        others = num_rows - sizes[rank] + num_rows - sizes[(rank + 1) % world_size]
        assert run.ledger.sent_bytes("send", rank) == others * 3 * total.itemsize


# Ways to call it


def three_at_once(rank, world_size):
    tensors = [torch.full((5,), float(10**k * (rank + 1))) for k in range(3)]
    pending = [all_reduce.ring_all_reduce(tensor, async_op=True) for tensor in tensors]
    before = [p.is_completed() for p in pending]
    sums = [p.wait() for p in reversed(pending)]  # the last first
    again = pending[0].wait()
    return before, [s.tolist() for s in sums], again is sums[2]


def test_several_may_be_under_way_and_be_waited_for_in_any_order():
    for before, sums, again in launch(three_at_once, 3).results:
        assert (before, again) == ([False] * 3, True)
        assert sums == [[600.0] * 5, [60.0] * 5, [6.0] * 5]


def into_out(rank, world_size):
    out = torch.empty(4)
    results = [
        f(torch.full((4,), rank + 1.0), out=out) for f in each_algorithm(world_size).values()
    ]
    return all(result is out for result in results), out.tolist()


def test_the_result_can_be_put_into_a_tensor_of_ones_own():
    assert launch(into_out, 2).results == [(True, [3.0] * 4)] * 2


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
    ones, whole = torch.ones(4), torch.ones(4, dtype=torch.int64)
    op = dist.ReduceOp
    reduce = all_reduce.ring_all_reduce
    calls = [
        lambda: reduce(whole, op=op.AVG),
        lambda: reduce(ones, op=op.BXOR),
        lambda: reduce(ones.to(torch.complex64), op=op.MAX),
        lambda: reduce(ones.to(torch.float8_e5m2)),
        lambda: reduce(ones, op=op.PREMUL_SUM),
        lambda: reduce(ones, out=torch.ones(5)),
        lambda: reduce(ones, out=ones),
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
    "AVG of torch.int64 is no torch.int64: use SUM, and divide",
    "BXOR is for whole numbers and bool, not for torch.float32",
    "MAX needs an order",
    "cannot be added: convert it to float16",
    "no reduction 'PREMUL_SUM': there are AVG, BAND",
    "out is [5] torch.float32, but must be a contiguous [4] torch.float32",
    "out shares memory with the tensor",
    "2 ranks do not fill hosts of 4",
    "no rows to share out",
    "a shard needs rows",
    "rank 1 holds 4 rows, but its share of 10 rows over 2 ranks is 5",
)


def test_what_cannot_be_gets_a_sentence_before_anything_is_sent():
    run = launch(complaints, 2)
    for sentence, part in zip(run.results[1], EXPECTED, strict=False):
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


def round_by_round(rank, world_size):
    from byhand.all_reduce.running import combination, run_rounds

    found = {}
    for name in NAMES:
        made, result = plan(name, world_size), torch.arange(11) * (rank + 1)
        spans = block_spans(11, made.num_pieces, 1)
        run_rounds(made, rank, spans, result, combination(dist.ReduceOp.SUM, result.dtype), None)
        found[name] = result
    return found


@pytest.mark.parametrize("world_size", [3, 4])
def test_round_by_round_the_plans_give_the_same(world_size):
    total = torch.arange(11) * sum(range(1, world_size + 1))
    for found in launch(round_by_round, world_size).results:
        assert all(torch.equal(result, total) for result in found.values()), found


def shards_of_each(rank, world_size, tensor):
    return all_reduce.ring_reduce_scatter(tensor.T, op=dist.ReduceOp.AVG)


def test_a_mean_of_shards_takes_transposed_tensors():
    tensors = [torch.randn(3, 7, dtype=torch.float64) for _ in range(3)]
    run = launch(shards_of_each, 3, (PerRank(tensors),))
    mean = (sum(tensors) / 3).T
    for result, want in zip(run.results, mean.tensor_split(3), strict=True):
        torch.testing.assert_close(result, want)
