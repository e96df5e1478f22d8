"""nbgrader's database of a class: made whole, opened, and without what else nbgrader brings.

Whoever imports anything of nbgrader runs its `__init__`, and with it all its commands and all that
it adds to a server: 0.7 s, twice what the database takes. Here that waits until somebody asks the
package itself for a name, as a server does.
"""

import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.nbgrader_config import prepare
from autograder.places import GradebookError, Places, why_not_written

if "nbgrader" not in sys.modules and (_SPEC := importlib.util.find_spec("nbgrader")):
    _PACKAGE = sys.modules["nbgrader"] = importlib.util.module_from_spec(_SPEC)

    def _name_of_nbgrader(name: str) -> Any:
        if importlib.util.find_spec(f"nbgrader.{name}"):
            raise AttributeError(name)  # a module, which is imported by itself
        del _PACKAGE.__getattr__
        _SPEC.loader.exec_module(_PACKAGE)  # type: ignore[union-attr] # found above
        return getattr(_PACKAGE, name)

    _PACKAGE.__getattr__ = _name_of_nbgrader

from nbgrader.api import (
    Assignment,
    Gradebook,
    InvalidEntry,
    MissingEntry,
    Student,
    SubmittedAssignment,
)
from nbgrader.utils import parse_utc
from sqlalchemy.exc import DatabaseError

__all__ = [
    "Assignment",
    "Gradebook",
    "InvalidEntry",
    "MissingEntry",
    "Student",
    "SubmittedAssignment",
    "make_gradebook",
    "opened_gradebook",
    "parse_utc",
]


@contextlib.contextmanager
def opened_gradebook(where: Places) -> Iterator[Gradebook]:
    """nbgrader's database of a class, without SQLAlchemy's warnings about nbgrader's own code.

    Raises:
        GradebookError: it is locked or damaged, or there is no room on the disk.
    """
    make_gradebook(where)
    with _database(where.gradebook) as gradebook:
        yield gradebook


def make_gradebook(where: Places) -> None:
    """The class's database, put in its place whole, where there is none.

    nbgrader notes which version it is in a last step of its own, and takes one without for an old
    one: what is cut off before that step must not be there. What autograded/ says was recorded is
    not in a new one, so it goes.

    Raises:
        GradebookError: there is no room on the disk. OSError: there is none, either.
    """
    if where.gradebook.exists():
        return
    shutil.rmtree(where.autograded, ignore_errors=True)
    prepare(where)
    draft = where.gradebook.with_name(f".{where.gradebook.name}.{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, where.gradebook.name)
            with _database(made):
                pass
            shutil.copy(made, draft)
        try:
            os.link(draft, where.gradebook)
        except FileExistsError:
            pass  # another process was faster
        except OSError:
            os.replace(draft, where.gradebook)  # a file has one name here
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _database(path: Path) -> Iterator[Gradebook]:
    """nbgrader's database in this file, made if it is not there.

    Raises:
        GradebookError: as for `opened_gradebook`.
    """
    try:
        with warnings.catch_warnings(), Gradebook(f"sqlite:///{path}") as gradebook:
            warnings.simplefilter("ignore")
            yield gradebook
    except DatabaseError as error:
        why = why_not_written(str(error)) or f"the gradebook cannot be used: {error.orig}"
        raise GradebookError(why) from None
