"""A class of sixty has the same marks whoever grades it, and however many at a time.

Ten hand-ins are hostile, ten are broken, forty are right; all are cases of the corpus.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import corpus
import honest_cases
import honest_files
import pytest

HOSTILE = (
    "fork-bomb network kills-all-it-can fills-the-disk equals-everything hostile-pickle"
    " writes-the-gradebook-from-a-daemon transformers-and-patched-checks reads-the-journal"
    " log-of-a-call-never-made"
).split()
BROKEN = (
    "blank syntax-error name-error endless-loop exit-in-cell segfault wrong-type skips-a-collective"
    " receive-cycle corrupt"
).split()
KINDS = (honest_cases.MAGICS[1::4], honest_cases.HELPERS[::2], honest_cases.TORCH[::2])
RIGHT = [case.name for kind in (*KINDS, honest_files.HABITS[::2]) for case in kind][:40]
JOBS = "1 2 8"
USERS = {"me": None, "an ordinary user": corpus.ORDINARY} if os.getuid() == 0 else {"me": None}
pytestmark = [pytest.mark.corpus, pytest.mark.timeout(900)]  # the first test grades them all


def graded_by_all(names: list[str]) -> dict[str, dict]:
    """What each user found, with the marks of each run; both grade at the same time."""
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda user: corpus.graded_by(user, names, JOBS), USERS.values())
    return dict(zip(USERS, found, strict=True))


@pytest.fixture(scope="module")
def by_user():
    return graded_by_all([*HOSTILE, *BROKEN, *RIGHT])


@pytest.fixture(params=USERS)
def graded(request, by_user):
    return by_user[request.param]


def test_the_marks_are_the_same_however_many_are_graded_at_a_time(graded):
    alone, *others = graded["marks"]
    assert len(alone) == 60
    assert len(others) == 2
    for marks in others:
        assert {name: mine for name, mine in marks.items() if mine != alone[name]} == {}


def test_each_hand_in_has_the_points_it_is_worth_and_none_is_without_a_mark(graded):
    assert graded["failures"] == []
    worth = {case.name: case.points for case in corpus.CASES if case.name in graded["marks"][0]}
    got = {name: sum(marks.values()) for name, marks in graded["marks"][0].items()}
    assert {name: points for name, points in got.items() if points != worth[name]} == {}
