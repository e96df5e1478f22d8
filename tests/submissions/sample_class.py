"""A sample class: what students hand in, and what each hand-in must be worth.

Nothing here is stored as a notebook. Every hand-in is made from exercises/ and from the answers in
tests/answers, so that none goes stale. `python tests/submissions/sample_class.py FOLDER` writes
FOLDER/STUDENT/ASSIGNMENT/..., the shape of nbgrader's submitted/.

`expected` names the verdict of each test; "lost" is any verdict but passed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (2, 1)]

import answers  # noqa: E402

RANKS, COLLECTIVES = "01_ranks", "02_collectives"
PASSED, LOST = "passed", "lost"


@dataclass(frozen=True)
class Case:
    """One hand-in. `says` must stand in its feedback."""

    student: str
    assignment: str
    write: Callable[[Path], None]
    expected: dict[str, str]
    says: list[str] = field(default_factory=list)
    when: str = "2026-01-15 12:00:00 UTC"

    @property
    def points(self) -> int:
        """What it is worth."""
        points = test_points(self.assignment)
        return sum(points[test] for test, verdict in self.expected.items() if verdict == PASSED)


def test_points(stem: str) -> dict[str, int]:
    """The points of each test cell of an exercise."""
    cells = answers.source(stem)["cells"]
    graded = [c for c in cells if c["metadata"].get("nbgrader", {}).get("grade")]
    return {c["id"]: c["metadata"]["nbgrader"]["points"] for c in graded}


def all_but(stem: str, **lost: str) -> dict[str, str]:
    """Every test passed, except test-NAME for NAME=verdict."""
    changed = {"test-" + name.replace("_", "-"): verdict for name, verdict in lost.items()}
    assert set(changed) <= set(test_points(stem)), changed
    return dict.fromkeys(test_points(stem), PASSED) | changed


def none_but(stem: str, *passed: str) -> dict[str, str]:
    """Every test lost, except these."""
    assert set(passed) <= set(test_points(stem)), passed
    return dict.fromkeys(test_points(stem), LOST) | dict.fromkeys(passed, PASSED)


def solved(stem: str, **cells: str) -> dict:
    """The solved exercise, with other text in some cells."""
    return _filled(answers.full(stem), cells)


def partly(stem: str, *tests: str, **cells: str) -> dict:
    """The blank exercise with the tasks of these tests solved, and other text in some cells."""
    right = {cell["id"]: cell["source"] for cell in answers.full(stem)["cells"]}
    done = {name: right[name] for test in tests for name in answers.task_cells(stem, test)}
    return _filled(answers.blank(stem), {**done, **cells})


def notebook(content: dict, name: str = "") -> Callable[[Path], None]:
    """Writes a notebook into the folder of its assignment, under another name if given."""

    def write(folder: Path) -> None:
        file = name or folder.name.split("_", 1)[1] + ".ipynb"
        (folder / file).write_text(json.dumps(content))

    return write


def raw(data: bytes) -> Callable[[Path], None]:
    """Writes these bytes as the notebook."""
    return lambda folder: (folder / f"{folder.name.split('_', 1)[1]}.ipynb").write_bytes(data)


def link(target: str) -> Callable[[Path], None]:
    """Writes a link where the notebook should be."""
    return lambda folder: os.symlink(target, folder / f"{folder.name.split('_', 1)[1]}.ipynb")


def _filled(content: dict, cells: dict[str, str]) -> dict:
    texts = {name.replace("_", "-"): text for name, text in cells.items()}
    found = {cell["id"]: cell for cell in content["cells"]}
    for name, text in texts.items():
        found[name]["source"] = text
    return content


def _cell(content: dict, name: str) -> dict:
    return next(cell for cell in content["cells"] if cell["id"] == name)


def unusual(stem: str) -> dict:
    """The first unusual right answer to every task."""
    chosen = {a.task: a for a in reversed(answers.all_answers(stem)) if a.right}
    return answers.submission(answers.blank(stem), *chosen.values())


def wrong(stem: str, number: int) -> dict:
    """The wrong answer of this number to every task."""
    tasks: dict[str, list[answers.Answer]] = {}
    for answer in answers.all_answers(stem):
        if not answer.right:
            tasks.setdefault(answer.task, []).append(answer)
    chosen = [some[number % len(some)] for some in tasks.values()]
    return answers.submission(answers.blank(stem), *chosen)


def edited_test() -> dict:
    """One test made to pass, another to count more, a third to be skipped."""
    content = partly(RANKS, "test-setup-and-cleanup")
    _cell(content, "test-share-and-mean")["source"] = "assert True"
    _cell(content, "test-point-to-point")["metadata"]["nbgrader"]["points"] = 100
    _cell(content, "test-collective-calls")["metadata"]["tags"] = ["skip-execution"]
    return content


def deleted_test() -> dict:
    """The tests of unsolved tasks taken out."""
    content = partly(RANKS, "test-setup-and-cleanup")
    gone = ("test-setup-and-cleanup", "test-point-to-point", "test-collective-calls")
    content["cells"] = [cell for cell in content["cells"] if cell["id"] not in gone]
    return content


def copied_cells() -> dict:
    """The solved cell of a task, and after it a copy that is still blank; a test twice."""
    content = partly(COLLECTIVES, "test-reduce")
    at = content["cells"].index(_cell(content, "reduce"))
    blank = {**_cell(answers.blank(COLLECTIVES), "reduce"), "id": "a-copy"}
    test = {**_cell(content, "test-reduce"), "id": "another-copy"}
    content["cells"][at + 1 : at + 1] = [blank, test]
    return content


def own_cells() -> dict:
    """A helper in a cell of the student's own, magics and a launch beside it."""
    content = partly(
        COLLECTIVES, reduce="def reduce(tensor, root):\n    return helper(tensor, root)"
    )
    right = _cell(answers.full(COLLECTIVES), "reduce")["source"].replace("def reduce", "def helper")
    own = f"%matplotlib inline\n!ls\n{right}\nlaunch(lambda rank, world_size: rank, 2)"
    cell = {
        "cell_type": "code",
        "id": "mine",
        "metadata": {"tags": ["x"]},
        "outputs": [],
        "execution_count": 3,
        "source": own,
    }
    content["cells"].insert(content["cells"].index(_cell(content, "reduce")), cell)
    return content


SYNTAX_ERROR = "def reduce(tensor, root:\n    return tensor"
# Endless, and asleep: the time of a computer that is kept busy is not what is shown here.
ENDLESS = "import time\n\n\ndef reduce(tensor, root):\n    while True:\n        time.sleep(1)"
ENDLESS_CELL = "import time\n\nwhile True:\n    time.sleep(1)"
DEADLOCK = """def reduce(tensor, root):
    if dist.get_rank() == root:
        return tensor
    dist.send(tensor, root)"""
EXIT = "import os\n\n\ndef all_reduce(tensor):\n    os._exit(0)"
EXIT_CELL = "import os\n\nos._exit(1)"

CASES = [
    Case("ada-right", RANKS, notebook(solved(RANKS)), all_but(RANKS)),
    Case("ada-right", COLLECTIVES, notebook(solved(COLLECTIVES)), all_but(COLLECTIVES)),
    Case("ben-unusual", RANKS, notebook(unusual(RANKS)), all_but(RANKS)),
    Case("ben-unusual", COLLECTIVES, notebook(unusual(COLLECTIVES)), all_but(COLLECTIVES)),
    *(Case(f"wrong-{number + 1}", stem, notebook(wrong(stem, number)), none_but(stem))
      for number in range(4) for stem in (RANKS, COLLECTIVES)),
    Case("cem-blank", COLLECTIVES, notebook(answers.blank(COLLECTIVES)), none_but(COLLECTIVES),
         ["NotImplementedError"]),
    Case("dee-syntax-error", COLLECTIVES, notebook(partly(
        COLLECTIVES, "test-all-gather-reduce-scatter", reduce=SYNTAX_ERROR)),
        none_but(COLLECTIVES, "test-all-gather-reduce-scatter") | {"test-reduce": "failed"},
        ["the notebook does not define reduce", "SyntaxError"]),
    Case("eli-endless", COLLECTIVES, notebook(partly(
        COLLECTIVES, "test-all-gather-reduce-scatter", reduce=ENDLESS)),
        none_but(COLLECTIVES, "test-all-gather-reduce-scatter") | {"test-reduce": "timeout"},
        ["did not finish within"]),
    Case("fay-endless-cell", RANKS, notebook(partly(
        RANKS, "test-setup-and-cleanup", report=ENDLESS_CELL)),
        none_but(RANKS, "test-setup-and-cleanup"), ["report", "was stopped"]),
    Case("gil-deadlock", COLLECTIVES, notebook(partly(
        COLLECTIVES, "test-all-gather-reduce-scatter", reduce=DEADLOCK)),
        none_but(COLLECTIVES, "test-all-gather-reduce-scatter") | {"test-reduce": "deadlock"},
        ["Where each rank was", "returned without receiving"]),
    Case("hua-exit", COLLECTIVES, notebook(partly(
        COLLECTIVES, "test-reduce", all_reduce=EXIT)),
        none_but(COLLECTIVES, "test-reduce") | {"test-all-reduce": "crashed"},
        ["exited with code 0"]),
    Case("ira-exit-cell", RANKS, notebook(partly(
        RANKS, "test-setup-and-cleanup", report=EXIT_CELL)),
        none_but(RANKS, "test-setup-and-cleanup"), ["was left out"]),
    Case("jon-edited-test", RANKS, notebook(edited_test()),
         none_but(RANKS, "test-setup-and-cleanup"),
         ["test-share-and-mean was not as it was given out (edited)", "(points)", "(tags)"]),
    Case("kim-deleted-test", RANKS, notebook(deleted_test()),
         none_but(RANKS, "test-setup-and-cleanup"), ["test-point-to-point was not as it was given out (missing)"]),
    Case("leo-renamed", COLLECTIVES, notebook(
        partly(COLLECTIVES, "test-reduce"), "collectives (1) final.ipynb"),
        none_but(COLLECTIVES, "test-reduce"), []),
    Case("mia-corrupt", RANKS, raw(json.dumps(solved(RANKS)).encode()[:-40]), none_but(RANKS),
         ["not a readable notebook"]),
    Case("ned-empty", RANKS, raw(b""), none_but(RANKS), ["file is empty"]),
    Case("ola-link", COLLECTIVES, link(str(answers.ROOT / "solutions/02_collectives/collectives.ipynb")),
         none_but(COLLECTIVES), ["is a link"]),
    Case("pat-copies", COLLECTIVES, notebook(copied_cells()), none_but(COLLECTIVES, "test-reduce"),
         ["(there 2 times)"]),
    Case("qi-own-cells", COLLECTIVES, notebook(own_cells()), none_but(COLLECTIVES, "test-reduce")),
]


def write_class(submitted: Path, cases: list[Case] = CASES) -> None:
    """Write what the class handed in, as submitted/STUDENT/ASSIGNMENT/."""
    for case in cases:
        folder = submitted / case.student / case.assignment
        folder.mkdir(parents=True)
        case.write(folder)
        (folder / "timestamp.txt").write_text(f"{case.when}\n")


if __name__ == "__main__":
    write_class(Path(sys.argv[1]))
