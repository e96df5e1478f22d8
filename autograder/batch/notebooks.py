"""Execute notebooks by papermill, several at a time, and say whether every cell really ran.

The executed notebook, its page and its log go to build/, under the path the source has in the
course. One notebook is running.py's, the command line is in commands.py.
"""

import contextlib
import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from autograder.batch import queue
from autograder.batch.queue import Queue
from autograder.batch.running import Running
from autograder.cells import defined_names
from autograder.places import CourseError, is_course

CELL_SECONDS = 600.0


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
    def log(self) -> Path:
        """What papermill and the kernel wrote, and every output, line by line."""
        return self.output.with_suffix(".log")

    @property
    def name(self) -> str:
        """The notebook as a reader of the course knows it."""
        course = course_of(self.notebook)
        return str(self.notebook.relative_to(course) if course else self.notebook)


def course_of(notebook: Path) -> Path | None:
    """The course that a notebook stands in, if it does."""
    return next(filter(is_course, notebook.parents), None)


@dataclass
class Options:
    """What holds for every notebook of one run.

    `jobs` at a time, here; unless `queue` is given, and does it elsewhere. `over_nodes`: their
    ranks run on the nodes of the job.
    """

    out: Path
    parameters: dict[str, Any] = field(default_factory=dict)
    jobs: int = 1
    html: bool = True
    cell_seconds: float = CELL_SECONDS
    queue: Queue | None = None
    over_nodes: bool = False
    progress: bool = False


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


def run_notebooks(notebooks: Sequence[Path], options: Options) -> list[Ran]:
    """Execute the notebooks, `options.jobs` at a time; a failure stops only its own notebook.

    When this call is interrupted, every kernel is shut down before the interrupt goes on.

    Raises:
        CourseError: a file is not a notebook, or no notebook has a parameter of a given name.
    """
    if not importlib.util.find_spec("papermill"):
        raise ModuleNotFoundError(name="papermill")  # here, once, and not where the queue works
    results = [_prepared(notebook, options) for notebook in notebooks]
    _check_parameters(results, options.parameters)
    work = Running(options.parameters, options.cell_seconds, options.html, options.over_nodes)
    items = [(ran.name, str(ran.notebook), str(ran.output)) for ran in results]
    reports = (options.queue or queue.here(options.jobs))(work, items)
    total = sum(ran.cells for ran in results)
    with contextlib.closing(reports), queue.progress(total, "cell", options.progress) as bar:
        for report in reports:
            ran = results[report.item]
            if report.kind == queue.STEP:
                ran.done = report.value
            elif report.kind == queue.DONE:
                ran.error, ran.seconds, ran.node = report.value
            else:
                ran.error = f"{ran.name}: {report.value}"
            bar.set_description(ran.notebook.stem, refresh=False)
            bar.update(sum(ran.done for ran in results) - bar.n)
    return results


def _prepared(notebook: Path, options: Options) -> Ran:
    """What is to be run, where it goes, and how many cells it has."""
    place = notebook.relative_to(course_of(notebook) or notebook.parent.parent)
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
