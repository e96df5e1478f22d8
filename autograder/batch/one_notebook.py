"""Runs one notebook with papermill in a process of its own: started by notebooks.py.

Reports by lines of JSON on the file descriptor it is given: {"cell": n} after each cell that ran,
then {"error": sentence or null}. The kernel never sees that descriptor. What goes to standard error
is the notebook's log. When the starter goes away, or asks with SIGTERM, the kernel is shut down
first.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import nbformat
import psutil

INTERRUPT_SECONDS = 8.0  # from an interrupt to the end, kernel included
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def execute(order: dict[str, Any], report) -> str | None:
    """Run order["notebook"] into order["output"]; None, or a sentence on what went wrong where."""
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    name, output = order["name"], Path(order["output"])
    sockets = tempfile.TemporaryDirectory(prefix="byhand-")
    try:
        executed = papermill.execute_notebook(
            order["notebook"],
            output,
            parameters=order["parameters"],
            language="python",
            cwd=os.path.dirname(order["notebook"]),
            engine_name=_reporting_engine(report),
            execution_timeout=order["cell_seconds"],
            progress_bar=False,
            log_output=True,
            config=_sockets_in(sockets.name),
        )
    except papermill.PapermillExecutionError as error:
        where = _describe(output, lambda cell: _status(cell) == "failed")
        return f"{name}: {where} raised {error.ename}: {_one_line(error.evalue)}"
    except CellTimeoutError:
        return f"{name}: {_running(output)} ran longer than {order['cell_seconds']:g} s"
    except DeadKernelError:
        return f"{name}: the kernel died while {_running(output)} ran"
    finally:
        sockets.cleanup()
    skipped = [cell for cell in executed.cells if _never_ran(cell)]
    if skipped:
        return f"{name}: {_label(executed, skipped[0])} never ran: {_why_skipped(skipped[0])}"
    return None


def _sockets_in(folder: str) -> Any:
    """Settings for a kernel that talks through files: side by side, two may choose one TCP port."""
    from traitlets.config import Config

    return Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})


def write_html(notebook: Path) -> Path:
    """The executed notebook as a page beside it."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(embed_images=True)
    page, _ = exporter.from_filename(str(notebook))
    target = notebook.with_suffix(".html")
    target.write_text(page, encoding="utf-8")
    return target


def _reporting_engine(report) -> str:
    """Registers papermill's engine with a report after each cell; its name."""
    from papermill.engines import NBClientEngine, papermill_engines

    class ReportingEngine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man, kernel_name, **options):
            complete = nb_man.cell_complete

            def complete_and_report(cell, cell_index=None, **kwargs):
                complete(cell, cell_index=cell_index, **kwargs)
                if _status(cell) != "failed":
                    report({"cell": cell_index + 1})

            nb_man.cell_complete = complete_and_report
            return super().execute_managed_notebook(nb_man, kernel_name, **options)

    papermill_engines.register("reporting", ReportingEngine)
    return "reporting"


def _never_ran(cell) -> bool:
    return cell.cell_type == "code" and cell.source.strip() != "" and cell.execution_count is None


def _why_skipped(cell) -> str:
    if "skip-execution" in cell.metadata.get("tags", []):
        return 'it is tagged "skip-execution"'
    return "a cell before it ended the kernel, as sys.exit() does"


def _status(cell) -> str:
    return cell.metadata.get("papermill", {}).get("status", "")


def _running(output: Path) -> str:
    """The cell that was last started, from the notebook papermill saved on the way."""
    notebook = nbformat.read(output, as_version=4)
    started = [c for c in notebook.cells if c.metadata.get("papermill", {}).get("start_time")]
    return _label(notebook, started[-1]) if started else "the first cell"


def _describe(output: Path, chosen) -> str:
    notebook = nbformat.read(output, as_version=4)
    cells = [cell for cell in notebook.cells if chosen(cell)]
    return _label(notebook, cells[0]) if cells else "a cell"


def _label(notebook, cell) -> str:
    """`cell 7 "ring"`: its place among the code cells as a reader counts them, and its id."""
    code = [other for other in notebook.cells if other.cell_type == "code"]
    return f'code cell {code.index(cell) + 1} "{cell.get("id", "")}"'


def _one_line(text: str) -> str:
    lines = [line.strip() for line in ESCAPES.sub("", text).splitlines() if line.strip()]
    return lines[0] if lines else ""


def _end_with_the_starter() -> None:
    """SIGTERM, and the end of standard input, interrupt this process as Ctrl-C would."""

    def interrupt_once(_signal, _frame) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the clean-up itself goes on undisturbed
        threading.Thread(target=_end_anyway, daemon=True).start()
        raise KeyboardInterrupt

    def wait() -> None:
        while os.read(0, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, interrupt_once)
    threading.Thread(target=wait, daemon=True).start()


def _end_anyway() -> None:
    """End this process and its kernel: what ran when the interrupt came may have swallowed it."""
    time.sleep(INTERRUPT_SECONDS)
    for kernel in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            kernel.kill()
    os._exit(1)


def main() -> None:
    """Execute the order in argv[1], reporting on the descriptor in it."""
    order = json.loads(sys.argv[1])
    os.set_inheritable(order["report"], False)
    pipe = os.fdopen(order["report"], "w", buffering=1)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    _end_with_the_starter()
    try:
        error = execute(order, lambda message: pipe.write(json.dumps(message) + "\n"))
        if error is None and order["html"]:
            write_html(Path(order["output"]))
    except KeyboardInterrupt:
        error = f"{order['name']}: interrupted"
    except Exception as problem:
        kind = type(problem).__name__
        error = f"{order['name']}: could not be run: {kind}: {_one_line(str(problem))}"
    pipe.write(json.dumps({"error": error}) + "\n")


if __name__ == "__main__":
    main()
