"""Right notebooks keep every point beside as many busy processes as this machine has cores.

test_corpus.py grades all of them on a machine that does nothing else; here every second one.
"""

import os

import corpus
import pytest
from corpus_checks import *  # noqa: F403

CASES, USER, BUSY = corpus.HABITS[::2], None, os.cpu_count()
pytestmark = [pytest.mark.corpus, pytest.mark.timeout(1800)]  # the first test grades them all
