"""The process of a student's notebook: it runs their cells, each once, as Jupyter does.

IPython runs them, so magics, shell lines and `await` are what they are there. Then it pickles by
value what a launch names, as `launch` does in a notebook, and ranks that never saw a cell load it.
It learns names only: no argument of the judge's, and no function that uses one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from byhand.runtime.launcher import Launcher
from byhand.runtime.launching import set_default
from byhand.runtime.messages import headed
from byhand.runtime.pickling import dumps, pickled
from byhand.runtime.process.forked import fork_server
from byhand.runtime.process.rank import WAKE, receive, redirect
from byhand.runtime.process.whereabouts import whereabouts
from byhand.runtime.system import rewrite
from byhand.runtime.walls import codec
from byhand.runtime.walls.limits import Walls
from byhand.runtime.walls.notebook import Notebook
from byhand.runtime.walls.question import Sandbox

ROOM, ROOMY = 8, ("processes", "file_bytes")  # a rank's log is a file, and longer than most
MAX_NOTE = 500
MAX_FILES, MAX_FILE_BYTES = 200, 16 << 20
TOOLS_OWN = {".cache", ".config", ".git", ".ipynb_checkpoints", ".ipython", "__pycache__"}


class NotebookWalls(Walls):
    """What stands around a student's notebook."""

    def main(self, fds: list[int], spec: dict[str, Any], be_a_rank: Callable[..., None]) -> None:
        """In a process that the fork server forked: be the notebook."""
        control = socket.socket(fileno=fds[0])
        redirect(os.open(os.devnull, os.O_WRONLY))
        self.close_in(0, 1)
        serve(control, fds[-1])


def students_notebook(sandbox: Sandbox, limits: Mapping[str, int]) -> Notebook:
    """A notebook that will stand behind walls of its own, on the CPU.

    `limits`: those of a question's ranks; there is room besides for the ranks it may launch.
    """
    own = {name: (ROOM if name in ROOMY else 1) * limit for name, limit in limits.items()}
    own.pop("device_bytes", None)
    walls = NotebookWalls(sandbox.isolate, own)
    reply_bytes = own.get("reply_bytes", codec.MAX_BYTES)
    return Notebook(lambda: sandbox.client_in(walls), reply_bytes, sandbox.gpus.patience)


class _Shell(InteractiveShell):
    """IPython of which nobody sees what it shows."""

    def should_run_async(self, *_: Any, **__: Any) -> bool:
        """Yes, as a kernel does; not again where a magic runs what stands below it."""
        return asyncio._get_running_loop() is None

    def enable_gui(self, gui: Any = None) -> None:
        """There is no window."""

    def showtraceback(self, *_: Any, **__: Any) -> None:
        """An error goes into a note."""

    showsyntaxerror = showtraceback


def serve(control: socket.socket, result_fd: int) -> None:
    """Run cells and pickle names, as the judge asks, until it closes the socket."""
    # of the student's own cells: clean ranks, behind these same walls
    set_default(Launcher(client=fork_server(control.fileno())))
    sys.path.insert(0, "")  # as in a kernel: what a notebook writes into its folder is found
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    shell = _Shell.instance(config=Config(HistoryManager={"enabled": False}))
    shell.display_formatter.active_types = ["text/plain"]  # type: ignore[union-attr] # it has one
    shell.set_hook("show_in_pager", lambda *_, **__: None)
    before, home = (_files(Path.cwd()), dict(os.environ)), Path.cwd()
    while True:
        header, body = receive(control)
        asked = json.loads(body)
        if header["do"] == "run":
            reply, body = {"kind": "ran", "note": _run(shell, *asked)}, b""
        else:
            reply, body = _packed(shell.user_ns, asked, home, before)
        rewrite(result_fd, headed(reply) + body)
        control.sendall(WAKE)


def _run(shell: _Shell, label: str, source: str) -> str | None:
    """Run a cell, until it ends or is interrupted; what is to be told of it."""
    shell.compile.get_code_name = lambda *_: f"<{label}>"  # what a frame of the cell is called
    sys.stdout, sys.stderr = sys.stdout or sys.__stdout__, sys.stderr or sys.__stderr__
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        result = shell.run_cell(source, store_history=True)
        error = result.error_before_exec or result.error_in_exec
        return None if error is None else f"{type(error).__name__}: {error}"[:MAX_NOTE]
    except BaseException as error:  # interrupted as it ended, or its error cannot be shown
        return type(error).__name__
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _packed(
    names: dict[str, Any],
    asked: list[str],
    home: Path,
    before: tuple[dict[str, bytes], dict[str, str]],
) -> tuple[dict[str, Any], bytes]:
    """What `unpack` is to bring to the ranks: the names, and what a rank shares with a notebook."""
    try:
        if missing := ", ".join(name for name in asked if name not in names):
            raise ValueError(f"the notebook does not define {missing}")
        try:
            found = dumps({name: names[name] for name in asked})
        except Exception:
            for name in asked:  # the first that cannot travel is told as `launch` does
                pickled(names[name], 1, ())
            raise
        files = {n: text for n, text in _files(home).items() if before[0].get(n) != text}
        there = whereabouts(before[1])
        if there["directory"] is not None:
            there["directory"] = os.path.relpath(there["directory"], home)
    except Exception as error:
        return {"kind": "error", "message": str(error)}, b""
    return {"kind": "packed"}, pickle.dumps((files, there, found))


def _files(home: Path) -> dict[str, bytes]:
    """The files below a directory, as far as they are few and small, but for what tools keep."""
    found, left = {}, MAX_FILE_BYTES
    for parent, folders, names in os.walk(home):
        folders[:] = [name for name in folders if name not in TOOLS_OWN]
        for path in (Path(parent, name) for name in names):
            with contextlib.suppress(OSError):
                left -= path.stat().st_size
                if left < 0 or len(found) >= MAX_FILES:
                    return found
                found[str(path.relative_to(home))] = path.read_bytes()
    return found
