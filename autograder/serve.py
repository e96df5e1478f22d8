"""JupyterLab on a student's copy of this course; for who teaches, with nbgrader's formgrader.

The copy is in work/, which git ignores: each lecture and exercise, once. Whoever changes a copy, or
runs it, keeps it: it is never written over, and is named when the course has a newer version. The
others follow the course.
"""

import importlib.util
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from autograder.database import opened_gradebook
from autograder.grade import late
from autograder.pages import write_page
from autograder.places import Places
from autograder.written import Written

ASKS_ABOUT_NEWS = "@jupyterlab/apputils-extension:announcements"
OF_TEACHERS = tuple(  # what nbgrader adds to JupyterLab, but for the button that validates
    f"@jupyter/nbgrader:{name}"
    for name in ("assignment-list", "course-list", "create-assignment", "formgrader", "menu")
)
COPIED = ("lectures/*.ipynb", "exercises/*/*.ipynb")


def command(where: Places, options: Iterable[str] = (), first: str = "") -> list[str]:
    """The command that serves the course's folder: the lectures to work in `first`, or this."""
    chosen = [
        f"--ServerApp.root_dir={where.course}",
        f"--LabApp.default_url={first or f'/lab/tree/{where.work.name}/lectures'}",
        *(["--allow-root"] if os.geteuid() == 0 else []),
    ]
    return [sys.executable, "-m", "jupyterlab", *chosen, *options]


def environment(where: Places, teaches: bool) -> dict[str, str]:
    """The environment of that command: what JupyterLab shows; for who teaches, nbgrader finds its
    configuration, the course and the class."""
    kind = "teaching" if teaches else "studying"
    config, hidden = where.work / ".jupyter" / kind, [ASKS_ABOUT_NEWS]
    found, variables = [str(config), os.environ.get("JUPYTER_CONFIG_PATH", "")], {}
    if teaches:
        with opened_gradebook(where):  # so that nbgrader finds one, and people in it
            (where.class_dir / "exchange").mkdir(exist_ok=True)
        late.apply(where)
        found.insert(0, str(Path(__file__).parent))
        variables = {"COURSE": str(where.course), "CLASS": str(where.class_dir)}
    else:
        hidden += OF_TEACHERS
    page = {"disabledExtensions": dict.fromkeys(hidden, True)}
    write_page(config / "labconfig" / "page_config.json", json.dumps(page, indent=1))
    path = os.pathsep.join(filter(None, found))
    return {**os.environ, **variables, "JUPYTER_CONFIG_PATH": path}


def serve(
    where: Places, options: Iterable[str] = (), teaches: bool = True, first: str = ""
) -> None:
    """Become the server; returns only by raising OSError or ModuleNotFoundError."""
    if not importlib.util.find_spec("jupyterlab"):
        raise ModuleNotFoundError(name="jupyterlab")
    arguments, variables = command(where, options, first), environment(where, teaches)
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
