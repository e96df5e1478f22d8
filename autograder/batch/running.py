"""One notebook executed by papermill: the work that the queue does for `autograder run`."""

import contextlib
import functools
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill import PapermillExecutionError

from autograder.batch.queue import Do
from autograder.kernel import Kernel, kernel_folder

_ENDED = "a cell before it ended the kernel, as sys.exit() does"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Running:
    """Work for the queue: items are a notebook's name, path and output.

    A result is the sentence on what went wrong, or None; the seconds; and the node. `over_nodes`:
    its ranks run on the nodes of the Slurm job.
    """

    parameters: dict[str, Any] = field(default_factory=dict)
    cell_seconds: float = 600.0
    html: bool = True
    over_nodes: bool = False

    @contextlib.contextmanager
    def worker(self) -> Iterator[tuple[Do, Any]]:
        """Nothing stays warm: each notebook has a kernel of its own."""
        with kernel_folder() as folder, Kernel(folder) as kernel:
            yield functools.partial(self._run, kernel), kernel.kill

    def is_doubtful(self, result: Any) -> bool:
        """Never: nobody's mark depends on it."""
        return False

    def _run(self, kernel: Kernel, item: Sequence[str]) -> tuple[str | None, float, str]:
        """Execute one notebook, with its log, and its page if it ran to the end."""
        name, notebook, output = item[0], item[1], Path(item[2])
        began = time.monotonic()
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            for left in (output.with_suffix(".html"), output.with_suffix(".log")):
                left.unlink(missing_ok=True)
            error = self._execute(kernel, notebook, output)
            if error is None and self.html:
                from autograder.batch.page import write_html  # seconds of imports

                write_html(output)
        except Exception as problem:
            error = f"could not be run: {type(problem).__name__}: {_one_line(str(problem))}"
        finally:
            kernel.close()
        error = error and f"{name}: {error}"
        return error, time.monotonic() - began, os.environ.get("SLURMD_NODENAME", "")

    def _execute(self, kernel: Kernel, notebook: str, output: Path) -> str | None:
        """None, or a sentence on what went wrong where."""
        try:
            executed = kernel.execute(
                notebook,
                output,
                self.parameters,
                cwd=os.path.dirname(notebook),
                log=output.with_suffix(".log"),
                seconds=self.cell_seconds,
                environment={"BYHAND_LAUNCHER": "slurm"} if self.over_nodes else {},
            )
        except PapermillExecutionError as error:
            with open(output.with_suffix(".log"), "a", encoding="utf-8") as log:
                log.write(ESCAPES.sub("", str(error)))
            return f"{_running(output)} raised {error.ename}: {_one_line(error.evalue)}"
        except CellTimeoutError:
            return f"{_running(output)} ran longer than {self.cell_seconds:g} s"
        except DeadKernelError:
            return f"the kernel died while {_running(output)} ran"
        for cell in executed.cells:
            if cell.cell_type == "code" and cell.source.strip() and cell.execution_count is None:
                is_tagged = "skip-execution" in cell.metadata.get("tags", [])
                why = 'it is tagged "skip-execution"' if is_tagged else _ENDED
                return f"{_label(executed, cell)} never ran: {why}"
        return None


def _running(output: Path) -> str:
    """The cell that was last started, from the notebook papermill saved on the way."""
    notebook = nbformat.read(output, as_version=4)
    started = [
        cell for cell in notebook.cells if cell.metadata.get("papermill", {}).get("start_time")
    ]
    return _label(notebook, started[-1]) if started else "the first cell"


def _label(notebook: Any, cell: Any) -> str:
    """`code cell 7 "ring"`: its place among the code cells as a reader counts them, and its id."""
    code = [other for other in notebook.cells if other.cell_type == "code"]
    return f'code cell {code.index(cell) + 1} "{cell.get("id", "")}"'


def _one_line(text: str) -> str:
    lines = [line.strip() for line in ESCAPES.sub("", text).splitlines() if line.strip()]
    return lines[0] if lines else ""
