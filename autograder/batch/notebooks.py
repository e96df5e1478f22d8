"""Execute notebooks by papermill, several at a time, and say whether every cell really ran.

Each notebook has a process of its own (one_notebook.py), which has a kernel of its own.
The executed notebook, its page and its log go to build/, under the path the source has in the
course. The command line is in run_command.py; the same on Slurm is in notebooks_slurm.py.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from tqdm import tqdm

from autograder.cells import defined_names
from autograder.places import COURSE, CourseError

CELL_SECONDS = 600.0
SHUTDOWN_SECONDS = 20.0


@dataclass
class Ran:
    """How one notebook fared: `error` is None, or a sentence that names notebook and cell.

    `done` of its `cells` came to an end; `node` is where it ran, "" for this machine.
    """

    notebook: Path
    output: Path
    cells: int
    done: int = 0
    seconds: float = 0.0
    error: str | None = None
    node: str = ""

    @property
    def html(self) -> Path:
        """Its page, written when it ran to the end."""
        return self.output.with_suffix(".html")

    @property
    def log(self) -> Path:
        """What papermill and the kernel wrote, and every output, line by line."""
        return self.output.with_suffix(".log")

    @property
    def name(self) -> str:
        """The notebook as a reader of the course knows it."""
        inside = self.notebook.is_relative_to(COURSE)
        return str(self.notebook.relative_to(COURSE) if inside else self.notebook)


@dataclass
class Options:
    """What holds for every notebook of one run."""

    out: Path = COURSE / "build"
    parameters: dict[str, Any] = field(default_factory=dict)
    jobs: int = 1
    html: bool = True
    cell_seconds: float = CELL_SECONDS


def find_notebooks(paths: Iterable[Path | str]) -> list[Path]:
    """The notebooks among `paths` and in the folders among them, each once, sorted in a folder.

    Raises:
        CourseError: a path that does not exist, or nothing to run.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise CourseError(f"{path} does not exist")
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        found.update(
            dict.fromkeys(p.resolve() for p in inside if ".ipynb_checkpoints" not in str(p))
        )
    if not found:
        raise CourseError(f"no notebook in {', '.join(map(str, paths))}")
    return list(found)


def run_notebooks(
    notebooks: Sequence[Path], options: Options, on_cell: Callable[[Ran], None] = lambda ran: None
) -> list[Ran]:
    """Execute the notebooks, `options.jobs` at a time; `on_cell` is called after each cell.

    A failure stops only its own notebook. When this call is interrupted, every kernel is shut
    down before the interrupt goes on.

    Raises:
        CourseError: a file is not a notebook, or no notebook has a parameter of a given name.
    """
    results = prepare(notebooks, options)
    execute(results, options, on_cell)
    return results


def prepare(notebooks: Sequence[Path], options: Options) -> list[Ran]:
    """What is to be run, where it goes, and how many cells it has.

    Raises:
        CourseError: as run_notebooks does.
    """
    results = [_prepared(notebook, options) for notebook in notebooks]
    _check_parameters(results, options.parameters)
    return results


def execute(
    results: Sequence[Ran], options: Options, on_cell: Callable[[Ran], None] = lambda ran: None
) -> None:
    """Execute what was prepared, `options.jobs` at a time, and note how each fared."""
    waiting, workers = list(results), []
    selector = selectors.DefaultSelector()
    try:
        while waiting or workers:
            while waiting and len(workers) < max(1, options.jobs):
                workers.append(_Worker(waiting.pop(0), options, selector))
            for key, _ in selector.select():
                if not key.data.read(on_cell):
                    workers.remove(key.data)
    finally:
        for worker in workers:
            worker.process.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.end()
        selector.close()


class _Worker:
    """One notebook's process, and the pipe that it reports on."""

    def __init__(self, ran: Ran, options: Options, selector: selectors.BaseSelector):
        ran.output.parent.mkdir(parents=True, exist_ok=True)
        ran.html.unlink(missing_ok=True)
        read_end, write_end = os.pipe()
        command = [
            sys.executable,
            "-m",
            "autograder.batch.one_notebook",
            _order(ran, options, write_end),
        ]
        self.ran, self.selector, self.started = ran, selector, time.monotonic()
        with open(ran.log, "w") as log:
            self.process = subprocess.Popen(
                command,
                pass_fds=[write_end],
                stdin=subprocess.PIPE,  # its end tells the worker that nobody waits any more
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches this process, which tells the worker once
            )
        os.close(write_end)
        self.pipe = os.fdopen(read_end)
        self.ran.error = f"{ran.name}: its process ended without a word"
        selector.register(self.pipe, selectors.EVENT_READ, self)

    def read(self, on_cell: Callable[[Ran], None]) -> bool:
        """Take one report; False when there will be no more."""
        line = self.pipe.readline()
        if not line:
            self.end()
            return False
        message = json.loads(line)
        if "error" in message:
            self.ran.error = message["error"]
        else:
            self.ran.done += 1
            on_cell(self.ran)
        return True

    def end(self) -> None:
        """Wait for the process, which shuts its kernel down; kill it if that takes too long."""
        self.selector.unregister(self.pipe)
        self.pipe.close()
        self.ran.seconds = time.monotonic() - self.started
        try:
            self.process.wait(SHUTDOWN_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()


def _order(ran: Ran, options: Options, report: int) -> str:
    order = {
        "name": ran.name,
        "notebook": str(ran.notebook),
        "output": str(ran.output),
        "parameters": options.parameters,
        "cell_seconds": options.cell_seconds,
        "html": options.html,
        "report": report,
    }
    return json.dumps(order)


def _prepared(notebook: Path, options: Options) -> Ran:
    place = notebook.relative_to(
        COURSE if notebook.is_relative_to(COURSE) else notebook.parent.parent
    )
    ran = Ran(notebook, Path(options.out).resolve() / place, 0)
    try:
        ran.cells = len(nbformat.read(notebook, as_version=4).cells)
    except Exception as error:
        first_line = str(error).splitlines()[0]
        raise CourseError(f"{ran.name} is not a notebook: {first_line}") from error
    ran.cells += bool(options.parameters)  # papermill adds a cell for them
    return ran


def _check_parameters(results: Iterable[Ran], parameters: dict[str, Any]) -> None:
    """papermill only warns about a name that no notebook has; a typing error deserves more."""
    known = {name for ran in results for name in _parameters_of(ran.notebook)}
    unknown = [name for name in parameters if name not in known]
    if unknown:
        has = f"there are {', '.join(sorted(known))}" if known else "they have none"
        raise CourseError(f"no notebook has a parameter {', '.join(unknown)}; {has}")


def _parameters_of(notebook: Path) -> list[str]:
    """The names that the cell tagged "parameters" sets."""
    cells = nbformat.read(notebook, as_version=4).cells
    tagged = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    return [name for source in tagged for name in defined_names(source)]


def with_progress(notebooks: Sequence[Path], options: Options) -> list[Ran]:
    """`run_notebooks` with a progress bar that counts cells."""
    results = prepare(notebooks, options)
    with progress_bar(results) as bar:

        def on_cell(ran: Ran) -> None:
            bar.set_description(ran.notebook.stem, refresh=False)
            bar.update()

        execute(results, options, on_cell)
    return results


def progress_bar(results: Sequence[Ran]) -> tqdm:
    """A bar of all the notebooks' cells; a line now and then where nobody watches."""
    every = 0.1 if sys.stderr.isatty() else 5.0
    total = sum(ran.cells for ran in results)
    return tqdm(total=total, unit="cell", mininterval=every, dynamic_ncols=True)
