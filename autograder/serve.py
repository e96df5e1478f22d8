"""JupyterLab on a student's copy of this course, with nbgrader's formgrader on a class."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from autograder.nbgrader_config import prepare
from autograder.places import Places


def command(where: Places, port: int, browser: bool, options: Iterable[str] = ()) -> list[str]:
    """The command that serves: the lectures to work in first, the course's folder as the root."""
    chosen = [
        f"--ServerApp.port={port}",
        f"--ServerApp.root_dir={where.course}",
        f"--LabApp.default_url=/lab/tree/{where.work.name}/lectures",
    ]
    if not browser:
        chosen.append("--no-browser")
    if os.geteuid() == 0:
        chosen.append("--allow-root")
    return [sys.executable, "-m", "jupyterlab", *chosen, *options]


def environment(where: Places) -> dict[str, str]:
    """The environment of that command: nbgrader finds its configuration, the course, the class."""
    prepare(where)
    config = str(Path(__file__).parent)
    found = [config, os.environ.get("JUPYTER_CONFIG_PATH", "")]
    return {
        **os.environ,
        "COURSE": str(where.course),
        "CLASS": str(where.class_dir),
        "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, found)),
    }


def serve(where: Places, port: int, browser: bool, options: Iterable[str] = ()) -> None:
    """Become the server; returns only by raising OSError or ModuleNotFoundError."""
    if not importlib.util.find_spec("jupyterlab"):
        raise ModuleNotFoundError(name="jupyterlab")
    arguments, variables = command(where, port, browser, options), environment(where)
    sys.stdout.flush()
    os.execvpe(arguments[0], arguments, variables)
