"""JupyterLab on a student's copy of this course, with nbgrader's formgrader on a class.

The copy is in work/, which git ignores: each lecture and exercise, once. Whoever changes a copy, or
runs it, keeps it: it is never written over, and is named when the course has a newer version. The
others follow the course.
"""

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from autograder.nbgrader_config import prepare
from autograder.places import Places
from autograder.written import Written

COPIED = ("lectures/*.ipynb", "exercises/*/*.ipynb")


def command(where: Places, options: Iterable[str] = ()) -> list[str]:
    """The command that serves: the lectures to work in first, the course's folder as the root."""
    chosen = [
        f"--ServerApp.root_dir={where.course}",
        f"--LabApp.default_url=/lab/tree/{where.work.name}/lectures",
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]
    return [sys.executable, "-m", "jupyterlab", *chosen, *options]


def environment(where: Places) -> dict[str, str]:
    """The environment of that command: nbgrader finds its configuration, the course, the class."""
    prepare(where)
    (where.class_dir / "exchange").mkdir(exist_ok=True)
    config = str(Path(__file__).parent)
    found = [config, os.environ.get("JUPYTER_CONFIG_PATH", "")]
    return {
        **os.environ,
        "COURSE": str(where.course),
        "CLASS": str(where.class_dir),
        "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, found)),
    }


def serve(where: Places, options: Iterable[str] = ()) -> None:
    """Become the server; returns only by raising OSError or ModuleNotFoundError."""
    if not importlib.util.find_spec("jupyterlab"):
        raise ModuleNotFoundError(name="jupyterlab")
    arguments, variables = command(where, options), environment(where)
    sys.stdout.flush()
    os.execvpe(arguments[0], arguments, variables)


def lay_out(where: Places) -> list[str]:
    """Copy what is not there yet; a sentence for each changed copy of what the course has newer."""
    written = Written(where.work)
    sentences = []
    for path in (path for kind in COPIED for path in sorted(where.course.glob(kind))):
        name, text = str(path.relative_to(where.course)), path.read_text(encoding="utf-8")
        if not written.is_changed(name, text):
            written.write(name, text)
        elif written.is_news(name, text):
            sentences.append(
                f"{where.work / name} is yours and stays as it is. The course has a newer {name}:"
                " rename yours, and you get it here."
            )
    return sentences
