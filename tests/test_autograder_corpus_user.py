"""The corpus of hostile, broken and strange hand-ins, graded by an ordinary user too.

The cases are in tests/submissions; CORPUS=all in the environment grades all of them here too. None
may gain a mark, cost another one, touch a file, reach this machine's network, or leave a process.
"""

import os
import sys
from pathlib import Path

import leftovers
import pytest

sys.path.insert(0, str(Path(__file__).parent / "submissions"))

import corpus

pytestmark = [
    pytest.mark.timeout(600),  # the first test grades them all
    pytest.mark.skipif(os.getuid() != 0, reason="not root: tests/test_autograder_corpus.py has it"),
]


@pytest.fixture(scope="module")
def graded():
    before = set(leftovers._pids())
    result = corpus.graded_by(corpus.ORDINARY, [case.name for case in corpus.FOR_A_USER])
    result["alive"] = leftovers.processes("none", before)
    return result


@pytest.mark.parametrize("case", corpus.FOR_A_USER, ids=lambda case: case.name)
def test_the_hand_in_gets_the_verdicts_and_points_it_is_worth(graded, case):
    assert corpus.complaints(case, graded) == []


def test_no_submission_stops_the_class(graded):
    assert graded["failures"] == []
    assert set(graded["judgements"]) == set(graded["pages"]) == {c.name for c in corpus.FOR_A_USER}


def test_nothing_is_touched_or_called_and_no_process_is_left(graded):
    assert (graded["touched"], graded["called"], graded["alive"]) == ([], 0, [])


def test_honest_submissions_among_them_take_no_longer(graded):
    honest = sorted(graded["judgements"][case.name]["seconds"] for case in corpus.HONEST)
    assert honest[-1] < 4 * honest[len(honest) // 2] + 1


def test_no_file_for_students_holds_hidden_test_text_or_a_script(graded):
    assert len(graded["shown"]) > len(corpus.FOR_A_USER)
    for name, text in graded["shown"].items():
        assert corpus.arena.CANARY not in text, name
        assert "987654" not in text, name
        assert "<script" not in text.lower(), name
