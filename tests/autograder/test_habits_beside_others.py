"""Right notebooks keep every point beside as many busy processes as this machine has cores.

test_corpus.py grades the same ones on a machine that does nothing else.
"""

import os

import corpus
import pytest
from corpus_checks import *  # noqa: F403

CASES, USER, BUSY = corpus.HABITS, None, os.cpu_count()
pytestmark = [pytest.mark.corpus, pytest.mark.timeout(900)]  # the first test grades them all
