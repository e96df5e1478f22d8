"""The corpus of hostile, broken and strange hand-ins, graded by an ordinary user too.

The cases are in tests/submissions; CORPUS=all in the environment grades all of them here too. None
may gain a mark, cost another one, touch a file, reach this machine's network, or leave a process.
"""

import os

import corpus
import pytest
from corpus_checks import *  # noqa: F403

CASES, USER = corpus.FOR_A_USER, corpus.ORDINARY
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.timeout(1800),  # the first test grades them all
    pytest.mark.skipif(os.getuid() != 0, reason="not root: test_corpus.py has it"),
]
