"""One notebook executed by papermill: the work that the queue does for `autograder run`."""

import contextlib
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

_ENDED = "a cell before it ended the kernel, as sys.exit() does"
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
Say = Callable[[int], None]


@dataclass(frozen=True)
class Running:
    """Work for the queue: items are a notebook's name, path and output; a step counts its cells.

    A result is the sentence on what went wrong, or None; the seconds; and the node.
    """

    parameters: dict[str, Any]
    cell_seconds: float
    html: bool
    over_nodes: bool

    def prepare(self) -> None:
        """Load what takes seconds to load."""
        import nbconvert  # noqa: F401
        import papermill  # noqa: F401

    @contextlib.contextmanager
    def worker(self) -> Iterator[Any]:
        """Nothing stays warm: each notebook has a kernel of its own."""
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
        if self.over_nodes:
            os.environ["BYHAND_LAUNCHER"] = "slurm"
        yield self.run

    def run(self, item: Sequence[str], say: Say) -> tuple[str | None, float, str]:
        """Execute one notebook, with its log, and its page if it ran to the end."""
        name, notebook, output = item
        began, output = time.monotonic(), Path(output)
        output.parent.mkdir(parents=True, exist_ok=True)
        output.with_suffix(".html").unlink(missing_ok=True)
        _write_to(output.with_suffix(".log"))
        try:
            error = self._execute(notebook, output, say)
            if error is None and self.html:
                write_html(output)
        except Exception as problem:
            error = f"could not be run: {type(problem).__name__}: {_one_line(str(problem))}"
        sys.stdout.flush()
        error = error and f"{name}: {error}"
        return error, time.monotonic() - began, os.environ.get("SLURMD_NODENAME", "")

    def _execute(self, notebook: str, output: Path, say: Say) -> str | None:
        """None, or a sentence on what went wrong where."""
        import papermill
        from nbclient.exceptions import CellTimeoutError, DeadKernelError
        from traitlets.config import Config

        with tempfile.TemporaryDirectory(prefix="byhand-") as folder:
            # A kernel that talks through files: side by side, two may choose one TCP port.
            sockets = {"transport": "ipc", "ip": f"{folder}/kernel"}
            try:
                executed = papermill.execute_notebook(
                    notebook,
                    output,
                    parameters=self.parameters,
                    language="python",
                    cwd=os.path.dirname(notebook),
                    engine_name=_counting_engine(say),
                    execution_timeout=self.cell_seconds,
                    progress_bar=False,
                    log_output=True,
                    config=Config(KernelManager=sockets),
                )
            except papermill.PapermillExecutionError as error:
                return f"{_running(output)} raised {error.ename}: {_one_line(error.evalue)}"
            except CellTimeoutError:
                return f"{_running(output)} ran longer than {self.cell_seconds:g} s"
            except DeadKernelError:
                return f"the kernel died while {_running(output)} ran"
        code = [cell for cell in executed.cells if cell.cell_type == "code" and cell.source.strip()]
        for cell in code:
            if cell.execution_count is None:
                is_tagged = "skip-execution" in cell.metadata.get("tags", [])
                why = 'it is tagged "skip-execution"' if is_tagged else _ENDED
                return f"{_label(executed, cell)} never ran: {why}"
        return None


def write_html(notebook: Path) -> Path:
    """The executed notebook as a page beside it; of a widget, which needs a kernel, its picture."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(embed_images=True)
    kinds = exporter.config.NbConvertBase.display_data_priority
    last = sorted(kinds, key=lambda kind: "widget-view" in kind)
    exporter.config.NbConvertBase.display_data_priority = last
    page, _ = exporter.from_filename(str(notebook))
    target = notebook.with_suffix(".html")
    target.write_text(page, encoding="utf-8")
    return target


def _write_to(log: Path) -> None:
    """Whatever this process and its kernels print from now on goes to a file."""
    with open(log, "wb") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)


def _counting_engine(say: Say) -> str:
    """Registers papermill's engine with a step after each cell; its name."""
    from papermill.engines import NBClientEngine, papermill_engines

    class CountingEngine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, **options):
            complete = nb_man.cell_complete

            def complete_and_say(cell, cell_index=None, **kwargs):
                complete(cell, cell_index=cell_index, **kwargs)
                if _about(cell).get("status") != "failed":
                    say(cell_index + 1)

            nb_man.cell_complete = complete_and_say
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    papermill_engines.register("counting", CountingEngine)
    return "counting"


def _about(cell: Any) -> dict[str, Any]:
    return cell.metadata.get("papermill", {})


def _running(output: Path) -> str:
    """The cell that was last started, from the notebook papermill saved on the way."""
    notebook = nbformat.read(output, as_version=4)
    started = [cell for cell in notebook.cells if _about(cell).get("start_time")]
    return _label(notebook, started[-1]) if started else "the first cell"


def _label(notebook: Any, cell: Any) -> str:
    """`code cell 7 "ring"`: its place among the code cells as a reader counts them, and its id."""
    code = [other for other in notebook.cells if other.cell_type == "code"]
    return f'code cell {code.index(cell) + 1} "{cell.get("id", "")}"'


def _one_line(text: str) -> str:
    lines = [line.strip() for line in ESCAPES.sub("", text).splitlines() if line.strip()]
    return lines[0] if lines else ""
