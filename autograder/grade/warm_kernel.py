"""One submission judged by papermill: a notebook of the source's test cells, run by a warm kernel.

The notebook holds nothing of the student's: their cells go into a case file, and from there to
the sandbox. Its verdicts come back as displays of a MIME type of our own, one for each test cell.
"""

import contextlib
import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.cells import defined_names, is_grade, is_locked, is_solution
from autograder.grade.judge import LIMIT_SECONDS, MIME, Case, Question
from autograder.grade.verdicts import INFRASTRUCTURE, Verdict
from autograder.kernel import Kernel, kernel_folder
from autograder.places import CourseError
from autograder.release.rules import KERNELSPEC
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.notebook import SLOWEST

SPARE_SECONDS = 600  # starting torch, the student's cells, and what the judge itself needs


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on one submission, and what was noticed while its cells ran."""

    verdicts: list[Verdict]
    notes: list[str]


class WarmKernel(contextlib.AbstractContextManager):
    """A trusted kernel in an empty directory that judges one notebook after the other."""

    def __init__(self, sandboxed: bool = True, hide: tuple[Path, ...] = (), gpus: Gpus = NO_GPUS):
        self.means: dict[str, Any] = {"sandboxed": sandboxed, "hide": hide, "gpus": gpus}
        self._held = contextlib.ExitStack()
        folder = self._held.enter_context(kernel_folder())
        self.kernel = self._held.enter_context(Kernel(folder))

    def judge(self, case: Case, seed: int) -> Verdicts:
        """Verdicts on one submission; one that cannot be judged is tried with another kernel.

        Raises:
            CourseError, or what a dead kernel makes papermill raise: it cannot be judged, through
                no fault of its own.
        """
        case = replace(case, seed=seed, **self.means)
        try:
            return self._run(case)
        except Exception:  # a dead kernel has many faces
            self.kernel.close()
            return self._run(case)

    def close(self) -> None:
        """End the kernel, its sandbox, and everything in it."""
        self._held.close()

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _run(self, case: Case) -> Verdicts:
        empty, case_file = self.kernel.folder / "empty", self.kernel.folder / "case"
        empty.mkdir(exist_ok=True)
        case_file.write_bytes(pickle.dumps(case))
        done = self.kernel.execute(
            judge_notebook(case),
            parameters={"case_file": str(case_file)},
            cwd=empty,
            log=self.kernel.folder / "log",
            seconds=SLOWEST * (sum(question.limit for question in case.questions) + SPARE_SECONDS),
            environment={"IPYTHONDIR": str(empty), "PYTHONDONTWRITEBYTECODE": "1"},
        )
        return _read_verdicts(done, case)


def case_of(
    source: NotebookNode, student: NotebookNode, limit: float | None = None, gpus: Gpus = NO_GPUS
) -> Case:
    """The questions of a source notebook, each with the cells of a restored submission.

    Only names that the source's solution cells define become stand-ins. `limit` overrides each
    cell's own `metadata.limit_seconds`, which `gpus` stretches.
    """
    names: list[str] = []
    preparation: list[str] = []
    questions: list[Question] = []
    for cell in source.cells:
        if cell.cell_type != "code":
            continue
        if is_solution(cell):
            names += defined_names(cell.source)
        elif is_grade(cell):
            usual = float(cell.metadata.get("limit_seconds", LIMIT_SECONDS)) * gpus.patience
            before, points = cells_before(student, cell.id), cell.metadata.nbgrader.points
            own = frozenset(label for label, _ in before) - {each.id for each in source.cells}
            questions.append(Question(cell.id, points, cell.source, before, limit or usual, own))
        elif is_locked(cell):
            preparation.append(cell.source)
    return Case(list(dict.fromkeys(names)), preparation, questions)


def cells_before(student: NotebookNode, test: str) -> list[tuple[str, str]]:
    """(label, text) of the code cells of a restored notebook before this test, tests left out."""
    cells = []
    for cell in student.cells:
        if cell.id == test:
            break
        if cell.cell_type == "code" and (is_solution(cell) or not is_grade(cell)):
            cells.append((cell.id, cell.source))
    return [cell for cell in cells if cell[1].strip()]


def judge_notebook(case: Case) -> NotebookNode:
    """The notebook that papermill runs for one submission."""
    begin = "from autograder.grade.judge import begin\nbegin(case_file)"
    texts = {"parameters": "case_file = ''", "begin": begin}
    texts |= {f"preparation-{number}": text for number, text in enumerate(case.preparation)}
    texts |= {q.name: f"%%question {q.name}\n{q.source}" for q in case.questions}
    cells = [new_code_cell(text, id=name) for name, text in texts.items()]
    cells[0].metadata["tags"] = ["parameters"]
    return new_notebook(cells=cells, metadata={"kernelspec": dict(KERNELSPEC)})


def _read_verdicts(notebook: NotebookNode, case: Case) -> Verdicts:
    """What the executed notebook shows: one verdict for each question, in the order of the case.

    Raises:
        ValueError: it does not show exactly those.
        CourseError: a question could not be judged.
    """
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    said = [output.data[MIME] for output in outputs if MIME in output.get("data", {})]
    found = [Verdict(**one["verdict"]) for one in said]
    if [v.question for v in found] != [question.name for question in case.questions]:
        raise ValueError(f"the judge gave verdicts on {[v.question for v in found]}")
    for verdict in found:
        if verdict.verdict == INFRASTRUCTURE:
            raise CourseError(verdict.message)
    return Verdicts(found, said[-1]["notes"] if said else [])
