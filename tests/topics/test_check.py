"""byhand.check: what it accepts, what it refuses, and what its messages say."""

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist

from byhand import RankError, check, collectives, launch
from byhand.memory.recompute import replayed

Event = namedtuple("Event", "rank op peer sent_bytes source")


def run_of(results=(), events=(), peak_bytes=()):
    """A stand-in for a Run: plain data with the same names."""
    return SimpleNamespace(
        world_size=len(results) or len(peak_bytes),
        results=list(results),
        peak_bytes=list(peak_bytes),
        ledger=SimpleNamespace(events=list(events)),
    )


def send(rank, peer, num_bytes=8):
    return Event(rank, "send", peer, num_bytes, "In [3] line 5")


def message(function, *args, **kwargs) -> str:
    with pytest.raises(check.CheckError) as failure:
        function(*args, **kwargs)
    return failure.value.message


def floats(*values):
    return torch.tensor(values, dtype=torch.float64)


class EqualToEverything(torch.Tensor):
    def __eq__(self, other):
        return torch.ones(self.shape, dtype=torch.bool)


# values


@pytest.mark.parametrize(
    "value",
    [
        3,
        2.5,
        "a",
        b"a",
        True,
        None,
        [1, (2.0, None)],
        {"loss": [floats(1.0)]},
        torch.ones(2, 0),
        {(0, 1): 2},
    ],
)
def test_a_value_equals_itself(value):
    check.equal(value, value)


def test_a_number_of_numpys_is_the_number_as_it_is_for_the_judge():
    check.equal([np.int64(3), {"a": np.float64(0.5)}, np.bool_(True)], [3, {"a": 0.5}, True])
    assert "wrong" in message(check.equal, np.float64(1.0), 1)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (True, 1),
        (1.0, 1),
        (None, 0),
        ("1", 1),
        ([1, 2], [1, 2, 3]),
        ({"a": 1}, {"b": 1}),
        (torch.ones(3), torch.ones(3, dtype=torch.float64)),
        (torch.ones(3), torch.ones(1, 3)),
        (torch.ones(3), torch.ones(4)),
        (torch.tensor([float("nan")]), torch.ones(1)),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5])),
    ],
)
def test_another_type_shape_dtype_or_value_is_refused(got, expected):
    assert "wrong" in message(check.equal, got, expected)


def test_an_object_that_equals_everything_is_refused_with_a_sentence():
    liar = torch.ones(3).as_subclass(EqualToEverything)
    text = message(check.equal, liar, torch.zeros(3))
    assert "EqualToEverything, which cannot be compared: return plain data" in text


def test_a_parameter_is_not_taken_for_a_tensor():
    assert "Parameter" in message(check.close, torch.nn.Parameter(torch.ones(2)), torch.ones(2))


def test_a_list_stands_for_a_tuple():
    check.equal([1, 2], (1, 2))


def test_the_place_of_a_difference_in_nested_data_is_named():
    text = message(check.equal, {"loss": [1.0, 2.0]}, {"loss": [1.0, 3.0]})
    assert "first difference at ['loss'][1]:" in text
    assert "got      2.0" in text


def test_a_difference_deep_in_lists_is_told_by_its_path_and_without_the_whole():
    weights = [torch.arange(100.0) for _ in range(20)]
    got, expected = [([[2.5, 1.0]], weights)], [([[2.5, 1.25]], weights)]
    text = message(check.equal, got, expected)
    assert "first difference at [0][0][0][1]:" in text
    assert "got      1.0" in text
    assert "expected 1.25" in text
    assert len(text) < 300


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (torch.Tensor.to_sparse, "a tensor of layout torch.sparse_coo"),
        (lambda x: torch.nested.nested_tensor([x]), "a nested tensor"),
        (lambda x: x.to("meta"), "a tensor of the meta device, which holds no numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_a_tensor_that_is_no_ordinary_one_is_named_also_in_a_list(make, what):
    got = make(torch.eye(2))
    assert f"got {what}, expected an ordinary" in message(check.equal, got, torch.eye(2))
    assert f"got      [<{what}>]" in message(check.equal, [got], [torch.eye(2)])


def test_the_first_different_element_is_named():
    text = message(
        check.equal, torch.arange(20.0), torch.arange(20.0).index_fill(0, floats(11).long(), 99)
    )
    assert "1 of 20 elements differ, the first at [11]: 11, expected 99" in text


def test_close_allows_the_tolerance_and_no_more():
    check.close(floats(1.0, 1e6), floats(1.0 + 1e-11, 1e6 + 1e-5))
    message(check.close, floats(1.0), floats(1.0 + 1e-8))
    message(check.close, floats(float("inf")), floats(1.0))
    check.close(0.1 + 0.2, 0.3)


@pytest.mark.parametrize("got", [float("nan"), float("-inf"), 1e300])
def test_close_to_infinity_is_infinity_alone(got):
    infinity = float("inf")
    assert check.close(infinity, infinity) is None
    assert check.close(floats(infinity), floats(infinity)) is None
    message(check.close, got, infinity)
    message(check.close, floats(1.0, got), floats(1.0, infinity))


@pytest.mark.parametrize("got", [float("nan"), float("inf"), 1.0])
def test_nothing_is_close_to_a_nan(got):
    message(check.close, got, float("nan"))
    message(check.close, floats(got), floats(float("nan")))


@pytest.mark.parametrize("got", [float("nan"), float("inf")])
def test_what_is_not_finite_is_close_to_no_number(got):
    message(check.close, got, 1.0)
    message(check.close, [floats(got), floats(2.0)], [floats(1.0), floats(2.0)])


def test_nested_shapes_of_equal_size_are_told_apart():
    text = message(check.equal, torch.ones(2, 3), torch.ones(3, 2))
    assert "the shape is [2, 3], expected [3, 2]" in text
    assert "only the shape is not" in text


def test_that_takes_nothing_but_true():
    check.that(1 < 2, "")
    assert message(check.that, 1, "got 1, expected 2") == "got 1, expected 2"


# hints


def test_a_sum_instead_of_a_mean_is_recognised():
    run = run_of([floats(3, 6, 9)] * 3)
    text = message(check.results, run, [floats(1, 2, 3)] * 3)
    assert "3 times too large, and there are as many ranks: is a sum where a mean is asked" in text


def test_a_mean_instead_of_a_sum_is_recognised():
    assert "4 times too small" in message(check.equal, floats(1, 2), floats(4, 8))
    text = message(check.results, run_of([2.5] * 4), [10.0] * 4)
    assert "4 times too small, and there are as many ranks" in text


def test_small_numbers_are_multiples_by_the_same_measure_as_large_ones():
    got, expected = floats(3, -1, 0.5, 2), floats(1, 0.7, -1, -1)
    for scale in (1, 1e-9):
        assert "times too" not in message(check.equal, scale * got, scale * expected)
        assert "3 times too large" in message(check.equal, scale * 3 * got, scale * got)
    rounded = floats(3, 1e-17), floats(1, 0)  # a sum that cancels but for its rounding
    assert "3 times too large" in message(check.equal, *rounded)


def test_another_ranks_value_is_recognised():
    run = run_of([floats(2), floats(1)])
    text = message(check.results, run, [floats(1), floats(2)], what="the shifted tensor")
    assert text.startswith("the shifted tensor is wrong on ranks 0 and 1.")
    assert "This is what rank 1 should have." in text


def test_zeros_nan_and_a_permutation_are_recognised():
    assert "Every element is 0" in message(check.equal, floats(0, 0), floats(1, 2))
    assert "nan" in message(check.equal, floats(1, float("nan")), floats(1, 2))
    assert "another order" in message(check.equal, floats(1, 2, 4), floats(1, 4, 2))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.bfloat16, torch.complex64])
def test_every_dtype_gets_a_message(dtype):
    message(check.equal, torch.ones(3).to(dtype), torch.zeros(3).to(dtype))


def test_one_number_that_happens_to_be_a_multiple_gets_no_hint():
    assert "times too" not in message(check.results, run_of([4, 4, 4]), [2, 2, 2])


def test_a_missing_value_and_one_too_many_are_named():
    assert message(check.equal, None, floats(1)).endswith(
        "got      None\n  expected a torch.Tensor"
    )
    assert message(check.equal, 3, None).endswith("got      3, an int\n  expected None")


def test_ranks_that_went_wrong_alike_are_told_once():
    text = message(check.results, run_of([5, 5, 5, 5]), [1] * 4)
    assert text.count("expected 1") == 1
    assert "ranks 0 to 3: got      5" in text


def test_one_member_of_every_result_can_be_checked():
    run = run_of([(1, "a"), (2, "b")])
    check.results(run, [1, 2], member=0)
    assert "expected 'c'" in message(check.results, run, ["a", "c"], member=1)


@pytest.mark.parametrize("expected", [[0], [0, 1, 2]])
def test_what_is_expected_by_rank_has_one_for_each(expected):
    run = launch(lambda rank, world_size: rank, 2)
    told = "for 2 ranks: what is expected by rank has one for each"
    with pytest.raises(ValueError, match=told):
        check.results(run, expected)
    with pytest.raises(ValueError, match=told):
        check.communication(run, all_reduce=expected)


def test_right_ranks_are_shown_as_right():
    text = message(check.results, run_of([1, 5]), [1, 2])
    assert "  rank 0: right\n  rank 1: got      5\n          expected 2" in text


# parts and inputs


def test_a_part_names_the_failure():
    with pytest.raises(check.CheckError, match="odd sizes: the result is wrong") as failure:
        with check.part("odd sizes"):
            check.equal(1, 2)
    assert failure.value.part == "odd sizes"


def test_a_part_names_an_error_of_another_kind_and_keeps_its_type():
    with pytest.raises(KeyError) as failure, check.part("odd sizes"):
        raise KeyError("x")
    assert failure.value.part == "odd sizes"
    assert "odd sizes" in failure.value.__notes__[0]


def test_a_part_inside_a_part_adds_its_name():
    with check.part("odd sizes"), check.part("scatter"):
        check.equal(1, 1)
    with pytest.raises(check.CheckError) as failure, check.part("odd sizes"), check.part("gather"):
        check.equal(1, 2)
    assert failure.value.part == "odd sizes, gather"


def test_inputs_depend_on_the_seed_and_the_part_alone():
    def draw(name):
        with check.part(name):
            return check.random(3)

    check.set_seed(0)
    first, other = draw("a"), draw("b")
    assert torch.equal(first, draw("a"))
    assert not torch.equal(first, other)
    check.set_seed(7)
    reseeded = draw("a")
    check.set_seed(0)
    assert not torch.equal(first, reseeded)


def test_whole_numbers_sum_exactly_in_any_order():
    tensor = check.whole_numbers(50, 2, low=-5, high=6)
    assert torch.equal(tensor, tensor.round())
    assert tensor.min() >= -5
    assert tensor.max() <= 5
    assert check.whole_numbers(dtype=torch.int64).dtype is torch.int64


# communication


def all_reduce(rank):
    return Event(rank, "all_reduce", None, 12, f"In [3] line {5 + rank}")


def test_exact_counts_pass_and_others_fail_by_rank():
    run = run_of([0, 0], [all_reduce(0), all_reduce(1), all_reduce(1)])
    check.communication(run, all_reduce=[1, 2])
    text = message(check.communication, run, all_reduce=1)
    assert "wrong on rank 1" in text
    assert "rank 0: right" in text
    assert "rank 1: all_reduce: got 2, expected 1 (In [3] line 6)" in text


def test_a_call_that_was_not_asked_for_fails():
    run = run_of([0], [Event(0, "barrier", None, 0, "In [3] line 9")])
    text = message(check.communication, run)
    assert "barrier: got 1, expected 0 (In [3] line 9)" in text


def test_a_missing_call_fails():
    assert "send: got 0, expected 1" in message(check.communication, run_of([0]), send=1)


def test_collectives_send_their_part_of_the_bytes_and_one_rank_alone_may_call_or_not():
    run = run_of([0, 0], [all_reduce(0), all_reduce(1)])
    check.collectives(run, 8, all_reduce=1)
    text = message(check.collectives, run, 6, all_reduce=1)
    assert text.startswith("too many bytes sent by ranks 0 and 1.")
    assert "sent 12 bytes, 11 are enough" in text
    assert "barrier: got 0, expected 1" in message(check.collectives, run, 8, barrier=1)
    check.collectives(run_of([0], [all_reduce(0)]))


def test_a_misspelt_operation_is_the_authors_error():
    with pytest.raises(ValueError, match="no such operation: allreduce"):
        check.communication(run_of([0]), allreduce=1)


def test_messages_count_senders_and_receivers():
    run = run_of([0, 0, 0], [send(0, 1), send(1, 2)])
    check.messages(run, total=2, per_rank=1, pairs=[(1, 2), (0, 1)])
    assert "2 messages were sent, 1 are enough" in message(check.messages, run, total=1)
    text = message(check.messages, run, pairs=[(0, 1), (0, 2)])
    assert "missing: 0→2" in text
    assert "not asked for: 1→2" in text


def test_too_many_messages_on_one_rank_are_named():
    run = run_of([0, 0], [send(0, 1), send(0, 1)])
    text = message(check.messages, run, per_rank=1)
    assert "rank 0: sent 2 messages, 1 are enough" in text
    assert "0→1 (2 times)" in text


def test_a_collective_where_send_and_recv_are_asked_is_named():
    text = message(check.messages, run_of([0], [all_reduce(0)]), total=9)
    assert "only send and recv are allowed here" in text
    assert "rank 0: called all_reduce (In [3] line 5)" in text


def test_sent_bytes_are_limited_by_rank_and_in_all():
    run = run_of([0, 0], [send(0, 1, 100), send(1, 0, 40)])
    check.sent_bytes(run, at_most=[100, 40], total=140)
    text = message(check.sent_bytes, run, at_most=50)
    assert "rank 0: sent 100 bytes, 50 are enough (2 times as many)" in text
    for total in (80, 200):
        text = message(check.sent_bytes, run, total=total)
        assert f"140 bytes were sent in all, expected {total}" in text


def test_peak_bytes_are_checked_by_rank():
    run = run_of(peak_bytes=[10, 99])
    check.peak_bytes(run, at_most=99)
    text = message(check.peak_bytes, run, at_most=50)
    assert "rank 1: held 99 bytes" in text
    assert "a view holds its whole tensor" in text
    assert "40 were predicted" in message(check.peak_bytes, run, 50, "40 were predicted")
    run.peak_bytes = None
    with pytest.raises(ValueError, match="a launch made with memory=True"):
        check.peak_bytes(run, at_most=50)


# what a driver asks on its rank


def neighbours(rank, world_size, how):
    with check.finished_sends(), check.locked("byhand.collectives.broadcast"):
        sent, arrived = torch.full((3,), float(rank)), torch.zeros(3)
        if how == "lone":  # contiguous, with a stride of 3
            sent, arrived = sent.view(1, 3)[:, 1], arrived[:1]
        if how == "library":
            return collectives.broadcast(sent)
        sending = dist.isend(sent, (rank + 1) % world_size)
        dist.recv(arrived, (rank - 1) % world_size)
        if how == "changed":
            sent += 1
        if how != "open":
            sending.wait()
        return arrived[0].item()


def test_a_watched_send_is_named_by_the_line_that_made_it():
    run = launch(neighbours, 2, ("right",))
    assert {event.source.partition(":")[0] for event in run.ledger.events} == {"test_check.py"}


def noting(rank, world_size):
    peers = []
    with check.finished_sends(peers.append):
        dist.send(torch.zeros(1), 1) if rank == 0 else dist.recv(torch.zeros(1), 0)
    return peers


def test_a_driver_can_ask_to_be_told_of_every_send():
    assert launch(noting, 2).results == [[1], []]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("open", "what isend to rank 1 returned was never waited for: call wait() on it"),
        ("changed", "was changed before wait() ended"),
        ("library", "this task asks for your own"),
    ],
)
def test_a_driver_finds_open_sends_changed_tensors_and_the_librarys_functions(how, sentence):
    with pytest.raises(RankError) as failure:
        launch(neighbours, 3, (how,))
    told = failure.value.traceback.replace(f"rank {(failure.value.rank + 1) % 3}", "rank 1")
    assert sentence in told


@pytest.mark.parametrize("how", ["right", "lone"])
def test_a_driver_lets_a_send_pass_that_is_waited_for_and_unlocks_the_library(how):
    assert launch(neighbours, 3, (how,)).results == [2.0, 0.0, 1.0]
    with check.locked("byhand.collectives.broadcast"), pytest.raises(AssertionError, match="own"):
        collectives.broadcast(torch.ones(2))
    assert collectives.broadcast.__code__.co_name == "broadcast"


def test_what_stands_under_a_decorator_is_locked_too():
    name = "byhand.memory.recompute.replayed"  # a context manager, made of a function that yields
    with check.locked(name), pytest.raises(AssertionError, match="own"):
        replayed([])
    with replayed([]):
        pass


# what holds on every rank that is launched inside a part


def requesting(rank, world_size, how):
    x, arrived, pair = torch.ones(2), torch.empty(2), torch.empty(4)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    if how == "irecv":
        sending = dist.isend(x, after)
        dist.irecv(arrived, before)
        sending.wait()
    elif how == "batch":
        ops = [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, arrived, before)]
        dist.batch_isend_irecv(ops)[0].wait()
    elif how == "all_reduce":
        dist.all_reduce(x, async_op=True)
    elif how == "reduce_scatter":
        dist.reduce_scatter_tensor(x[:1], torch.ones(world_size), async_op=True)
    elif how == "all_to_all":
        dist.all_to_all_single(arrived, x, async_op=True)
    else:
        dist.all_gather_into_tensor(pair, x, async_op=True)
        dist.all_gather_into_tensor(pair, x, async_op=True)
    dist.barrier()


@pytest.mark.parametrize(
    ("how", "call"),
    [
        ("irecv", "irecv from rank"),
        ("batch", "irecv from rank"),
        ("all_reduce", "all_reduce returned"),
        ("reduce_scatter", "reduce_scatter_tensor returned"),
        ("all_to_all", "all_to_all_single returned"),
        ("all_gather", "all_gather_into_tensor returned was never waited for, one of 2 such"),
    ],
)
def test_a_request_that_nobody_waits_for_is_told_at_its_line(how, call):
    with pytest.raises(RankError) as failure, check.part("p"):
        launch(requesting, 2, (how,))
    assert failure.value.exception == "UnwaitedError"
    assert "was never waited for" in failure.value.sentence
    assert call in failure.value.sentence
    assert "in requesting\n    dist." in failure.value.traceback


def ended(rank, world_size):
    x, arrived = torch.ones(2), torch.empty(2)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    ops = [dist.P2POp(dist.isend, x, after), dist.P2POp(dist.irecv, arrived, before)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    polled, followed = arrived.clone(), arrived.clone()
    work = dist.all_reduce(polled, async_op=True)
    while not work.is_completed():
        pass
    dist.all_reduce(followed, async_op=True).get_future().wait()
    gathered = torch.distributed._functional_collectives.all_gather_tensor(x, 0, dist.group.WORLD)
    return polled + followed + gathered[:2]


def test_requests_that_are_waited_for_in_any_way_pass():
    with check.part("p"):
        assert [result.tolist() for result in launch(ended, 2).results] == [[5.0, 5.0]] * 2


def sent_on(rank, world_size, dtype, changed):
    x = torch.tensor([1.0, float("nan"), 0.0]).to(dtype)
    arrived = torch.empty_like(x)
    work = dist.isend(x, (rank + 1) % world_size)
    dist.recv(arrived, (rank - 1) % world_size)
    if changed:
        x.copy_(torch.tensor([1.0, 0.0, 0.0]).to(dtype))
    work.wait()
    return arrived.float().tolist()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16])
def test_what_is_sent_is_compared_in_every_dtype_and_where_there_is_a_nan(dtype):
    with check.part("p"):
        for one, other, last in launch(sent_on, 2, (dtype, False)).results:
            assert (one, other != other, last) == (1.0, True, 0.0)
    with pytest.raises(RankError) as failure, check.part("p"):
        launch(sent_on, 2, (dtype, True))
    assert failure.value.exception == "ChangedError"


def read_early(rank, world_size, how):
    x, arrived = torch.ones(2), torch.empty(2)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    if how == "irecv":
        dist.isend(x, after).wait() if rank else None
        work = dist.irecv(arrived, before)
        dist.isend(x, after).wait() if not rank else None
    elif how == "all_reduce":
        arrived = -x
        work = dist.all_reduce(arrived, async_op=True)
    elif how == "all_gather":
        work = dist.all_gather([torch.empty(2), arrived], x, async_op=True)
    else:
        work = dist.all_to_all_single(arrived, x, async_op=True)
    dist.barrier()
    early = arrived.clone()
    work.get_future().wait() if how == "all_gather" else work.wait()
    return early, arrived


@pytest.mark.parametrize("how", ["irecv", "all_reduce", "all_gather", "all_to_all"])
def test_nothing_has_arrived_before_its_wait(how):
    with check.part("p"):
        results = launch(read_early, 2, (how,)).results
    for early, arrived in results:
        assert early.tolist() == [-1.0, -1.0] if how == "all_reduce" else early.isnan().all()
        assert arrived.tolist() == ([-2.0, -2.0] if how == "all_reduce" else [1.0, 1.0])


def in_one_memory(rank, world_size, how):
    x = torch.full((4,), 1.0 + rank)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    if how == "into what is sent":
        works = [dist.isend(x, after), dist.irecv(x, before)]
    elif how == "what has not come":
        works = [dist.irecv(x, before), dist.isend(x, after)]
    elif how == "two into one":
        works = [dist.irecv(x, before), dist.irecv(x, before)]
    elif how == "part of it":
        works = [dist.isend(x[:3], after), dist.irecv(x[2:], before)]
    elif how == "another part":
        works = [dist.isend(x[:2], after), dist.irecv(x[2:], before)]
    else:
        dist.isend(x, after).wait() if rank else dist.recv(x, before)
        dist.isend(x, after).wait() if not rank else dist.recv(x, before)
        works = []
    for work in works:
        work.wait()
    return x.tolist()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("into what is sent", "irecv was given a tensor that is still on its way to rank"),
        ("what has not come", "isend was given a tensor into which irecv from rank"),
        ("two into one", "irecv was given a tensor into which irecv from rank"),
        ("part of it", "irecv was given a tensor that is still on its way to rank"),
    ],
)
def test_a_tensor_is_not_written_while_another_message_has_it(how, words):
    with pytest.raises(RankError) as failure, check.part("p"):
        launch(in_one_memory, 2, (how,))
    assert failure.value.exception == "ChangedError"
    assert words in failure.value.sentence


def test_two_parts_of_a_tensor_may_be_sent_and_written_at_a_time():
    with check.part("p"):
        run = launch(in_one_memory, 2, ("another part",))
        assert run.results == [[1.0, 1.0, 2.0, 2.0], [2.0, 2.0, 1.0, 1.0]]
        assert launch(in_one_memory, 2, ("one after the other",)).results == [[2.0] * 4] * 2


def unwritten(rank, world_size):
    x = torch.ones(3)
    floats = torch.empty(3), torch.empty_like(x), x.new_empty(3), torch.Tensor(3), x.resize_(5)[3:]
    numbers = torch.empty(2, dtype=torch.int64), torch.empty(2, dtype=torch.uint8)
    return [tensor.isnan().all().item() for tensor in floats], [n.tolist() for n in numbers]


def test_memory_that_nobody_wrote_holds_what_no_answer_is():
    with check.part("p"):
        run = launch(unwritten, 1, setup=False)
    assert run.results == [([True] * 5, [[2**63 - 1] * 2, [255] * 2])]
    assert run.output == [""]


def passing_on(rank, world_size):
    x = torch.ones(1000, dtype=torch.float64)
    for _ in range(3):
        arrived = torch.empty_like(x)
        sending = dist.isend(x, (rank + 1) % world_size)
        dist.recv(arrived, (rank - 1) % world_size)
        sending.wait()
        x = arrived
    return x.index_add(0, torch.tensor([0, 0]), x[:2]).sum().item()


def test_what_a_part_watches_changes_no_count_of_memory_calls_or_bytes():
    alone = launch(passing_on, 2, memory=True)
    with check.part("p"):
        inside = launch(passing_on, 2, memory=True)
    assert inside.peak_bytes == alone.peak_bytes
    assert len(inside.ledger.events) == len(alone.ledger.events) == 12
    assert inside.ledger.sent_bytes() == alone.ledger.sent_bytes()
    assert inside.results == alone.results


def test_a_largest_whole_number_that_nobody_wrote_is_told():
    text = message(check.equal, torch.tensor([2**63 - 1, 5]), torch.tensor([4, 5]))
    assert "with which memory is filled that nothing was put or received into" in text


def test_a_check_of_no_kind_is_refused():
    with pytest.raises(ValueError, match="a check is of values, calls, messages, bytes, memory"):
        check.that(True, "", of="luck")


def on_board(pseudonym, capsys):
    check.board(lambda: pseudonym, layout="dp 2", modelled_seconds=0.5)
    return check.take_board(), capsys.readouterr().out


def test_what_goes_to_the_board_is_printed_and_taken_once(capsys):
    row, printed = on_board("Ada", capsys)
    assert row == {"name": "Ada", "row": [["layout", "dp 2"], ["modelled seconds", 0.5]]}
    assert printed == "layout: dp 2\nmodelled seconds: 0.500\nThe class's board has this as Ada.\n"
    assert check.take_board() == {}


@pytest.mark.parametrize("pseudonym", ["", " \n ", None, 7, ["Ada"], b"Ada"])
def test_without_a_pseudonym_a_row_is_the_instructors(pseudonym, capsys):
    row, printed = on_board(pseudonym, capsys)
    assert (row["name"], len(row["row"])) == ("", 2)
    assert "for the instructor alone" in printed
    assert ("the name is no text" in printed) == (not isinstance(pseudonym, str))


def test_a_driver_that_raises_gives_no_pseudonym_and_says_so(capsys):
    check.board(lambda rank: rank, seconds=0.5)
    assert check.take_board()["name"] == ""
    assert "reading the name raised" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pseudonym", "name"),
    [
        ("a\nb\t c", "a b c"),
        ("x" * 1000, "x" * 24),
        ("\u202eadA", "\\u202eadA"),
        ("\x1b[31mred", "red"),
        ("<b>", "<b>"),
    ],
)
def test_a_pseudonym_is_one_short_line_that_says_what_it_shows(pseudonym, name, capsys):
    assert on_board(pseudonym, capsys)[0]["name"] == name


def test_a_number_that_cannot_be_ranked_is_on_no_board():
    with pytest.raises(ValueError, match="seconds: nan is no number for a board"):
        check.board(lambda: "Ada", seconds=float("nan"))
    assert check.take_board() == {}


def sum_over_all(rank, world_size):
    dist.all_reduce(torch.ones(100, dtype=torch.float64))


def test_only_bytes_that_leave_a_host_count_as_between_hosts():
    run = launch(sum_over_all, 4)  # each sends 2 · 3/4 · 800 bytes to the next
    check.bytes_between_hosts(run, 4, at_most=0)
    check.bytes_between_hosts(run, 2, at_most=2400)
    text = message(check.bytes_between_hosts, run, 2, at_most=1200)
    assert "2,400 bytes were sent from host to host, 1,200 are enough (2 times as many)" in text
    assert "host 0: 1,200 bytes" in text
