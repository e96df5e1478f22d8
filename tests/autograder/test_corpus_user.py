"""The corpus graded by an ordinary user, eight at a time: what reaches for more, and the rest.

Where root runs the tests, another user grades here; else who runs them does. With eight at a time,
each is judged beside more that compute than most machines have cores, the hostile among them.
"""

import os

import corpus
import pytest
from corpus_checks import *  # noqa: F403

CASES, USER, JOBS = corpus.FOR_A_USER, corpus.ORDINARY if os.getuid() == 0 else None, 8
pytestmark = [pytest.mark.corpus, pytest.mark.timeout(3600)]  # the first test grades them all
