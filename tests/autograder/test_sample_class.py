"""The sample class: each hand-in of tests/submissions gets the verdicts and points it is worth.

Wrong and unusual answers to whole exercises are left to test_answers.py, which judges them
one by one; `make course` grades the class complete.
"""

import html

import pytest
import sample_class

from autograder.batch.grading import GradeOptions, grade
from autograder.batch.queue import cores
from autograder.grade.verdicts import PASSED
from autograder.places import COURSE, Places
from autograder.report.feedback import write_feedback
from byhand.runtime.walls.isolation import why_no_sandbox

ELSEWHERE = ("wrong-", "ben-unusual", "ada-right")
CASES = [case for case in sample_class.CASES if not case.student.startswith(ELSEWHERE)]
STEMS = [sample_class.RANKS, sample_class.COLLECTIVES]
LIMIT = 8
pytestmark = pytest.mark.corpus


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Judgements and feedback pages by (student, assignment)."""
    where = Places(COURSE, tmp_path_factory.mktemp("sample") / "class")
    sample_class.write_class(where.submitted, CASES)
    options = GradeOptions(
        sandboxed=not why_no_sandbox(), limit=LIMIT, progress=False, jobs=cores()
    )
    outcome = grade(where, STEMS, [], options)
    assert outcome.failures == []
    pages = {p.parts[-3]: html.unescape(p.read_text()) for p in write_feedback(where, STEMS, [])}
    return {judgement.student: judgement for judgement in outcome.judgements}, pages


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.student)
def test_the_hand_in_gets_the_verdicts_and_points_it_is_worth(graded, case):
    judgement = graded[0][case.student]
    for verdict in judgement.verdicts:
        expected = case.expected[verdict.question]
        if expected == sample_class.LOST:
            assert verdict.verdict != PASSED
        else:
            assert verdict.verdict == expected, verdict
    assert judgement.points == case.points


@pytest.mark.parametrize("case", [c for c in CASES if c.says], ids=lambda case: case.student)
def test_the_feedback_says_why(graded, case):
    page = graded[1][case.student]
    for words in case.says:
        assert words in page


def test_no_feedback_shows_a_solution_or_a_hidden_test(graded):
    for page in graded[1].values():
        assert "BEGIN SOLUTION" not in page
        assert "HIDDEN TESTS" not in page


def test_the_sample_class_has_every_kind_of_hand_in():
    assert len(sample_class.CASES) >= 15
    assert {case.assignment for case in sample_class.CASES} == set(STEMS)
