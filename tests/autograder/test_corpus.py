"""The corpus of hostile, broken and strange hand-ins, graded by the user who runs the tests.

The cases are in tests/submissions. None may gain a mark, cost another one, touch a file, reach this
machine's network, or leave a process.
"""

import corpus
import pytest
from corpus_checks import *  # noqa: F403

CASES, USER = corpus.CASES, None
pytestmark = [pytest.mark.corpus, pytest.mark.timeout(600)]  # the first test grades them all


def test_the_corpus_is_large_and_has_every_kind():
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 60
    assert all(len(cases) >= 10 for cases in corpus.KINDS.values())
