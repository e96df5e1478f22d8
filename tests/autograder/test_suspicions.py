"""Notes to the instructor: what they say, and that honest work gets none."""

import json
from types import SimpleNamespace

import answers
import arena
import pytest
from corpus import ATTACKS, HONEST

from autograder.grade import suspicions
from byhand.runtime.ledger import Event

TOLD = [case for case in [*ATTACKS, *HONEST] if case.noted is not None]
RIGHT = [answer for answer in answers.all_answers() if answer.right]


def event(op, payload, n, rank=0, **more):
    return Event(op=op, group=tuple(range(n)), payload_bytes=payload, rank=rank, start=0.0, **more)


def run(carried, *events, backend="gloo"):
    return SimpleNamespace(
        loopback_bytes=carried, backend=backend, ledger=SimpleNamespace(events=events)
    )


def all_reduce(payload, n=2):
    return [event("all_reduce", payload, n, rank) for rank in range(n)]


def test_what_gloo_sends_for_the_calls_is_no_surprise():
    assert suspicions.of_run(run(20_000_000, *all_reduce(10_000_000))) == ""
    assert suspicions.of_run(run(24_900_000, *all_reduce(10_000_000))) == "", "a quarter more"
    assert suspicions.of_run(run(260_000)) == "", "a start, a store, a small secret"
    twice = [event("reduce_scatter", 10_000_000, 2, rank) for rank in range(2)]
    assert suspicions.of_run(run(20_000_000, *twice)) == "", "gloo does a whole all-reduce"


@pytest.mark.parametrize("carried", [10_000_000, 40_000_000])
def test_far_more_or_less_than_that_is_told_in_megabytes(carried):
    note = suspicions.of_run(run(carried, *all_reduce(10_000_000)))
    assert note == (
        f"the loopback carried {carried / 1e6:.1f} MB, and the calls in the ledger make 20.0 MB"
    )


def test_many_small_messages_are_no_surprise():
    small = [event("send", 8, 2, peer=1) for _ in range(10_000)]
    assert suspicions.of_run(run(2_500_000, *small)) == ""


def test_a_reduce_scatter_of_lists_is_no_surprise():
    """Of 8 ranks and 520 floats a shard it took 841 kB a call, where one of a tensor took 311."""
    calls = [event("reduce_scatter", 16640, 8, rank) for rank in range(8) for _ in range(100)]
    assert suspicions.of_run(run(84_100_000, *calls)) == ""
    assert suspicions.of_run(run(31_100_000, *calls)) == ""


def test_nothing_is_said_where_nothing_was_counted():
    assert suspicions.of_run(run(None, *all_reduce(10_000_000))) == ""
    assert suspicions.of_run(run(0, *all_reduce(10_000_000), backend="nccl")) == ""


def test_names_that_no_answer_needs_are_listed_by_cell_once():
    cells = [
        ("ring", "code", "import ctypes\nfrom byhand.runtime import trace\nctypes.CDLL(None)"),
        ("own-1", "code", "open('/proc/self/maps'); sys._getframe(1)"),
        ("why", "markdown", "because ctypes is fun"),
        ("total", "code", "dist.all_reduce(t)  # the process, the socks"),
    ]
    assert suspicions.in_cells(cells) == [
        "ring names ctypes, byhand.runtime",
        "own-1 names /proc, sys._getframe",
    ]


@pytest.mark.parametrize("stem", sorted({answer.stem for answer in RIGHT}))
def test_no_solution_and_no_unusual_right_answer_names_any(stem):
    texts = [answer.path.read_text() for answer in RIGHT if answer.stem == stem]
    texts += ["".join(c["source"]) for c in answers.full(stem)["cells"] if answers.is_solution(c)]
    assert suspicions.in_cells([(text[:60], "code", text) for text in texts]) == []


@pytest.mark.parametrize("case", TOLD, ids=lambda case: case.name)
def test_of_each_forgery_the_instructor_sees_the_names_that_it_says(case, tmp_path):
    case.write(tmp_path, arena.source(), {})
    written = json.loads((tmp_path / f"{arena.STEM}.ipynb").read_text())["cells"]
    changed = [(c["id"], c["cell_type"], c["source"]) for c in written if c["id"] in ANSWERS]
    names = [note for note in case.noted if " names " in note]
    assert suspicions.in_cells(changed) == names


ANSWERS = ("double", "total", "shift")
