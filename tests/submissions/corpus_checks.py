"""What must hold of every graded hand-in of the corpus, whoever grades it.

A test module that takes these names says which CASES are graded, as which USER (None: the one who
runs the tests), and how many JOBS at a time.
"""

import corpus
import leftovers
import psutil
import pytest

from byhand.words import plain_text

__all__ = [
    "cases",
    "graded",
    "pytest_generate_tests",
    "test_no_file_for_students_holds_hidden_test_text_or_a_script",
    "test_no_submission_stops_the_class",
    "test_nothing_is_touched_or_called_and_no_process_is_left",
    "test_the_hand_in_gets_the_verdicts_and_points_it_is_worth",
]


@pytest.fixture(scope="module")
def cases(request):
    return request.module.CASES


@pytest.fixture(scope="module")
def graded(request, cases):
    """What corpus.graded_by found, and the processes that were left."""
    before = set(psutil.pids())
    names, module = [case.name for case in cases], request.module
    result = corpus.graded_by(module.USER, names, module.JOBS)
    return result | {"alive": leftovers.processes("none", before)}


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", metafunc.module.CASES, ids=lambda case: case.name)


def test_the_hand_in_gets_the_verdicts_and_points_it_is_worth(graded, case):
    assert corpus.complaints(case, graded) == []


def test_no_submission_stops_the_class(graded, cases):
    assert graded["failures"] == []
    assert set(graded["judgements"]) == set(graded["pages"]) == {case.name for case in cases}


def test_nothing_is_touched_or_called_and_no_process_is_left(graded):
    assert (graded["touched"], graded["called"], graded["alive"]) == ([], 0, [])


def test_no_file_for_students_holds_hidden_test_text_or_a_script(graded, cases):
    assert len(graded["shown"]) > len(cases)
    for name, text in graded["shown"].items():
        assert corpus.arena.CANARY not in text, name
        assert "987654" not in text, name
        assert "<script" not in text.lower(), name
        assert not name.endswith(".html") or text == plain_text(text, None), name
