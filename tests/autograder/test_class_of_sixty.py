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
RUNS = [(None, "1 8")]  # who grades, and how many at a time; an ordinary user where root can be one
RUNS += [(corpus.ORDINARY, "2")] if os.getuid() == 0 else [(None, "2")]
pytestmark = [pytest.mark.corpus, pytest.mark.timeout(1800)]  # the first test grades them all


def graded_by_all(names: list[str]) -> list[dict]:
    """What each run found, with the marks of each number of jobs; both grade at the same time."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda run: corpus.graded_by(run[0], names, run[1]), RUNS))


@pytest.fixture(scope="module")
def graded():
    return graded_by_all([*HOSTILE, *BROKEN, *RIGHT])


def test_the_marks_are_the_same_whoever_grades_and_however_many_at_a_time(graded):
    alone, *others = [marks for found in graded for marks in found["marks"]]
    assert len(alone) == 60
    assert len(others) == 2
    for marks in others:
        assert {name: mine for name, mine in marks.items() if mine != alone[name]} == {}


def test_each_hand_in_has_the_points_it_is_worth_and_none_is_without_a_mark(graded):
    assert [found["failures"] for found in graded] == [[], []]
    marks = graded[0]["marks"][0]
    worth = {case.name: case.points for case in corpus.CASES if case.name in marks}
    got = {name: sum(mine.values()) for name, mine in marks.items()}
    assert {name: points for name, points in got.items() if points != worth[name]} == {}
