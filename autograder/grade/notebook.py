"""One submission judged by papermill: a notebook of the source's test cells, run by a warm kernel.

The notebook holds nothing of the student's: their cells go into a plan file, and from there to
the sandbox. Its verdicts come back as displays of a MIME type of our own, one for each test cell.
"""

import contextlib
import json
import logging
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import papermill
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, papermill_engines

from autograder.cells import defined_names, is_grade, is_locked, is_solution
from autograder.grade import verdicts
from autograder.grade.judge import LIMIT_SECONDS, LIMITS, MIME, NOTES_MIME, Plan, Question
from autograder.grade.verdicts import Verdict
from autograder.release.rules import KERNELSPEC
from autograder.scratch import scratch
from byhand.runtime.walls.gpus import NO_GPUS, Gpus
from byhand.runtime.walls.notebook import SLOWEST

SPARE_SECONDS = 300  # starting torch, the student's cells, and what the judge itself needs


@dataclass(frozen=True)
class Judged:
    """The verdicts on one submission, what was noticed while its cells ran, and the notebook."""

    verdicts: list[Verdict]
    notes: list[str]
    notebook: NotebookNode


class WarmKernel(contextlib.AbstractContextManager):
    """A trusted kernel in an empty directory that judges one notebook after the other."""

    def __init__(self, sandboxed: bool = True, hide: tuple[Path, ...] = (), gpus: Gpus = NO_GPUS):
        self.sandboxed = sandboxed
        self.gpus = gpus
        self.hide = [str(path) for path in hide]
        self._held = contextlib.ExitStack()
        self._folder = self._held.enter_context(scratch())
        self._manager: AsyncKernelManager | None = None

    def judge(self, plan: Plan, seed: int) -> Judged:
        """Verdicts on one submission. A kernel that dies is replaced and the submission retried."""
        for _ in range(2):
            try:
                judged = self._run(plan, seed)
            except Exception as error:  # a dead kernel has many faces; none is the student's
                why = f"{type(error).__name__}: {error}"
                self._stop()
                continue
            if not any(map(verdicts.without_score, judged.verdicts)):
                return judged
            why = next(v.message for v in judged.verdicts if verdicts.without_score(v))
            self._stop()
        failed = [verdicts.infrastructure(q.name, q.points, why) for q in plan.questions]
        return Judged(failed, [], new_notebook())

    def close(self) -> None:
        """End the kernel, its sandbox, and everything in it."""
        self._stop()
        self._held.close()

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _run(self, plan: Plan, seed: int) -> Judged:
        if self._manager is None:
            self._manager = AsyncKernelManager(
                kernel_name=KERNELSPEC["name"], transport="ipc", ip=f"{self._folder}/kernel"
            )
        empty = self._folder / "empty"
        empty.mkdir(exist_ok=True)
        plan_file = self._folder / "plan.json"
        plan_file.write_text(json.dumps(asdict(plan)))
        parameters = {
            "plan_file": str(plan_file),
            "seed": seed,
            "sandboxed": self.sandboxed,
            "hide": self.hide,
            "gpus": [self.gpus.count, self.gpus.backend],
        }
        seconds = sum(question.limit for question in plan.questions) + SPARE_SECONDS
        seconds *= SLOWEST
        done = papermill.execute_notebook(
            judge_notebook(plan),
            None,
            parameters,
            engine_name=ENGINE,
            progress_bar=False,
            manager=self._manager,
            scratch=str(empty),
            execution_timeout=int(seconds),
        )
        return Judged(_verdicts(done, plan), [[], *_shown(done, NOTES_MIME)][-1], done)

    def _stop(self) -> None:
        manager, self._manager = self._manager, None
        if manager is None or not manager.has_kernel:
            return
        process = manager.provisioner.process
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # nobody awaits its cell any more
        try:
            run_sync(manager.shutdown_kernel)(now=False)
        except Exception:  # no event loop any more: this process is ending
            process.kill()
            process.wait()


def plan(
    source: NotebookNode, student: NotebookNode, limit: float | None = None, gpus: Gpus = NO_GPUS
) -> Plan:
    """The questions of a source notebook, each with the cells of a restored submission.

    Only names that the source's solution cells define become stand-ins. `limit` overrides each
    cell's own `metadata.limit_seconds`. `metadata.limits` of a locked cell changes some of LIMITS
    for the assignment, and that of a test cell for its question. `gpus` changes both as CUDA needs.
    """
    limits = dict(LIMITS)
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
            own = gpus.limits({**limits, **cell.metadata.get("limits", {})})
            questions.append(
                Question(
                    cell.id,
                    cell.metadata.nbgrader.points,
                    cell.source,
                    cells_before(student, cell.id),
                    limit or usual,
                    own,
                )
            )
        elif is_locked(cell):
            limits.update(cell.metadata.get("limits", {}))
            preparation.append(cell.source)
    return Plan(list(dict.fromkeys(names)), preparation, questions)


def cells_before(student: NotebookNode, test: str) -> list[tuple[str, str]]:
    """(label, text) of the code cells of a restored notebook before this test, tests left out."""
    cells = []
    for cell in student.cells:
        if cell.id == test:
            break
        if cell.cell_type == "code" and (is_solution(cell) or not is_grade(cell)):
            cells.append((cell.id, cell.source))
    return [cell for cell in cells if cell[1].strip()]


def judge_notebook(plan: Plan) -> NotebookNode:
    """The notebook that papermill runs for one submission."""
    cells = [
        new_code_cell(
            "plan_file = ''\nseed = 0\nsandboxed = True\nhide = []\ngpus = []", id="parameters"
        ),
        new_code_cell(
            "from autograder.grade.judge import begin\n"
            "begin(plan_file, seed, sandboxed, hide, gpus)",
            id="begin",
        ),
    ]
    cells[0].metadata["tags"] = ["parameters"]
    for number, text in enumerate(plan.preparation):
        cells.append(new_code_cell(text, id=f"preparation-{number}"))
    for question in plan.questions:
        cells.append(
            new_code_cell(f"%%question {question.name}\n{question.source}", id=question.name)
        )
    return new_notebook(cells=cells, metadata={"kernelspec": dict(KERNELSPEC)})


def _verdicts(notebook: NotebookNode, plan: Plan) -> list[Verdict]:
    """One verdict for each question, in the plan's order.

    Raises:
        ValueError: the notebook does not hold exactly those.
    """
    found = [Verdict(**data) for data in _shown(notebook, MIME)]
    if [v.question for v in found] != [question.name for question in plan.questions]:
        raise ValueError(f"the judge gave verdicts on {[v.question for v in found]}")
    return found


def _shown(notebook: NotebookNode, mime: str) -> list[Any]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[mime] for output in outputs if mime in output.get("data", {})]


class _WarmEngine(NBClientEngine):
    """papermill's own engine, on a kernel that is already running and keeps running."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man, kernel_name, manager, scratch, execution_timeout=None, **_
    ):
        client = PapermillNotebookClient(
            nb_man, km=manager, timeout=execution_timeout, kernel_name=kernel_name, log=_LOG
        )
        environment = {**os.environ, "IPYTHONDIR": scratch, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            with open(f"{scratch}.log", "ab") as log:
                return client.execute(cwd=scratch, env=environment, stdout=log, stderr=log)
        finally:
            if client.kc is not None:
                client.kc.stop_channels()


_LOG = logging.getLogger("autograder.grade.judge")
_LOG.addHandler(logging.NullHandler())
ENGINE = "autograder"
papermill_engines.register(ENGINE, _WarmEngine)
