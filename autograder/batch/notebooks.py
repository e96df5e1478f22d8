"""Execute notebooks by papermill, several at a time, and say whether every cell really ran.

The executed notebook, its page and its log go to build/, under the path the source has in the
course. One notebook is running.py's, the command line is in commands.py.
"""

import contextlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.batch import queue
from autograder.batch.queue import Queue, Report
from autograder.batch.running import Running
from autograder.cells import defined_names
from autograder.places import CourseError, is_course

ONE_BY_ONE = queue.here(1)


@dataclass
class Ran:
    """How one notebook fared: `error` is None, or a sentence that names notebook and cell.

    `node` is where it ran, "" for this machine.
    """

    notebook: Path
    output: Path
    seconds: float = 0.0
    error: str | None = None
    node: str = ""

    @property
    def item(self) -> tuple[str, str, str]:
        """What the queue is given to do."""
        return self.name, str(self.notebook), str(self.output)

    def take(self, report: Report) -> None:
        """What the queue says became of it."""
        self.error, self.seconds, self.node = report.result or (report.why, 0.0, "")

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


def find_notebooks(paths: Iterable[Path | str], out: Path | None = None) -> list[Path]:
    """The notebooks among `paths` and in the folders among them, each once, sorted in a folder.

    out: where they will be written to. In a folder that this lies in, what lies in it is left out.

    Raises:
        CourseError: a path that does not exist, or nothing to run.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise CourseError(f"{path} does not exist")
        inside = _inside(path, out) if path.is_dir() else [path]
        found.update(
            dict.fromkeys(p.resolve() for p in inside if ".ipynb_checkpoints" not in str(p))
        )
    if not found:
        raise CourseError(f"no notebook in {', '.join(map(str, paths))}")
    return list(found)


def _inside(folder: Path, out: Path | None) -> list[Path]:
    """The notebooks in a folder, but for what lies in `out`, where that is a part of it."""
    found = sorted(folder.rglob("*.ipynb"))
    if out is None or folder.resolve() not in out.resolve().parents:
        return found
    return [path for path in found if out.resolve() not in path.resolve().parents]


def run_notebooks(
    notebooks: Sequence[Path],
    out: Path,
    work: Running,
    do: Queue = ONE_BY_ONE,
    progress: bool = False,
) -> list[Ran]:
    """Execute the notebooks into `out`; a failure stops only its own notebook.

    When this call is interrupted, every kernel is ended before the interrupt goes on.

    Raises:
        CourseError: a file is not a notebook, two would go to one place, one would go where one
            that is to be run stands, or no notebook has a parameter of a given name.
    """
    results = prepare(notebooks, out)
    _check_parameters(results, work.parameters)
    reports = do(work, [ran.item for ran in results])
    bar = queue.progress(len(results), "notebook", progress)
    with contextlib.closing(reports), bar:
        for report in reports:
            ran = results[report.item]
            ran.take(report)
            bar.set_description(ran.notebook.stem, refresh=False)
            bar.update()
    return results


def prepare(notebooks: Collection[Path], out: Path) -> list[Ran]:
    """What is to be run, and where in `out` it goes.

    Raises:
        CourseError: a file is not a notebook, two would go to one place, or one would go where one
            that is to be run stands.
    """
    sources = {notebook.resolve() for notebook in notebooks}
    by_output: dict[Path, Ran] = {}
    for ran in (_prepared(notebook, out) for notebook in notebooks):
        if (source := ran.output.resolve()) in sources:
            raise CourseError(
                f"{ran.notebook} would be run into --out {out}, and so written over {source}, which"
                " is itself to be run: give --out a folder of its own, such as --out results"
            )
        if (other := by_output.setdefault(ran.output, ran)) is not ran:
            raise CourseError(
                f"{other.notebook} and {ran.notebook} would both be written to {ran.output}: run"
                " them one after the other, each with an --out of its own"
            )
    return [*by_output.values()]


def _prepared(notebook: Path, out: Path) -> Ran:
    place = notebook.relative_to(course_of(notebook) or notebook.parent.parent)
    ran = Ran(notebook, Path(out).resolve() / place)
    try:
        nbformat.read(notebook, as_version=4)
    except Exception as error:
        first_line = str(error).splitlines()[0]
        raise CourseError(f"{ran.name} is not a notebook: {first_line}") from error
    return ran


def _check_parameters(results: Iterable[Ran], parameters: dict[str, Any]) -> None:
    """papermill only warns about a name that no notebook has; a typing error deserves more."""
    if not parameters:
        return
    known: set[str] = set()
    for ran in results:
        for cell in nbformat.read(ran.notebook, as_version=4).cells:
            if "parameters" in cell.metadata.get("tags", []):
                known.update(_names_in(cell, ran))
    if unknown := [name for name in parameters if name not in known]:
        has = f"there are {', '.join(sorted(known))}" if known else "they have none"
        raise CourseError(f"no notebook has a parameter {', '.join(unknown)}; {has}")


def _names_in(cell: NotebookNode, ran: Ran) -> list[str]:
    """The parameters that a cell defines."""
    try:
        return defined_names(cell.source)
    except SyntaxError as error:
        raise CourseError(
            f'{ran.name}: its parameters cell "{cell.get("id", "")}" is no plain Python'
            f" ({error.msg} in line {error.lineno}), and what it defines cannot be read: leave in"
            " it only lines such as n = 4, and put magics into another cell"
        ) from None
