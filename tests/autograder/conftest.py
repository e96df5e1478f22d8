"""What the tests of the grader share: nbgrader says only once which version its database is in."""

import sys
from functools import cache

import pytest

from autograder.database import Gradebook


@pytest.fixture(autouse=True, scope="session")
def one_answer_of_alembic():
    """nbgrader starts a program that takes a second, for each new gradebook, to ask for it."""
    api = sys.modules[Gradebook.__module__]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "get_alembic_version", cache(api.get_alembic_version))
        yield
