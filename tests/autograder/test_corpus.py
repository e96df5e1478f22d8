"""The corpus of hostile, broken, strange and honest hand-ins, graded by who runs the tests.

The cases are in tests/submissions; what is not graded here is graded by test_corpus_user.py. None
may gain a mark, cost another one, touch a file, reach this machine's network, or leave a process;
the honest keep every mark.
"""

import corpus
import pytest
from corpus_checks import *  # noqa: F403

CASES, USER, JOBS = corpus.FOR_ROOT, None, 2
pytestmark = [pytest.mark.corpus, pytest.mark.timeout(3600)]  # the first test grades them all


def test_the_corpus_is_large_and_has_every_kind():
    names = [case.name for case in corpus.CASES]
    assert len(names) == len(set(names)) >= 60
    assert all(len(cases) >= 10 for cases in corpus.KINDS.values())


def test_each_case_is_graded_by_one_of_two_users_and_what_reaches_for_more_by_both():
    one, other = ({case.name for case in cases} for cases in (CASES, corpus.FOR_A_USER))
    assert one | other == {case.name for case in corpus.CASES}
    assert one & other >= {case.name for case in corpus.REACHES}
    assert len(corpus.REACHES) > len(corpus.ATTACKS) / 2


def test_the_habits_are_as_many_as_the_attacks():
    assert len(corpus.HABITS) >= max(60, len(corpus.ATTACKS))
    assert len({case.assignment for case in corpus.HABITS}) >= 8
