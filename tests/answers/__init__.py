"""Answers that students give: plausible wrong ones and unusual right ones, one file each.

    answers/<stem>/<task>/wrong_<what is wrong>.py    loses the task's points, and no others
    answers/<stem>/<task>/right_<what is unusual>.py  keeps them

`<task>` is the name of the task's test cell without "test-". A file's functions replace, by name,
those in the task's solution cells; a function that it does not define stays the solution's.

An answer that is the solution but for a few lines holds only these: a CHANGE, written as diff does,
with an empty line between two places. With LIKE = "right_…" it changes that answer instead.
"""

import ast
import copy
import functools
import json
from dataclasses import dataclass
from pathlib import Path

ANSWERS = Path(__file__).parent
ROOT = ANSWERS.parent.parent
STEMS = sorted(path.parent.name for path in (ROOT / "solutions").glob("*/*.ipynb"))
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


@dataclass(frozen=True)
class Answer:
    """One file: an answer to one task of one exercise."""

    stem: str
    task: str
    name: str
    path: Path

    @property
    def right(self) -> bool:
        """Whether it is to keep the task's points."""
        return self.name.startswith("right_")

    @property
    def test(self) -> str:
        """The id of the task's test cell."""
        return "test-" + self.task.replace("_", "-")

    def __str__(self) -> str:
        return f"{self.stem}/{self.task}/{self.name}"


def all_answers(stem: str | None = None) -> list[Answer]:
    """Every answer file, of one exercise or of all."""
    paths = sorted(ANSWERS.glob(f"{stem or '*'}/*/*.py"))
    return [Answer(path.parts[-3], path.parts[-2], path.stem, path) for path in paths]


def source(stem: str) -> dict:
    """The instructor's notebook of an exercise."""
    return json.loads(_source(stem).read_text())


def blank(stem: str) -> dict:
    """The exercise as students get it, whatever somebody made of the one in exercises/."""
    return json.loads(_released(stem))


def full(stem: str) -> dict:
    """The exercise with the instructor's solutions filled in."""
    notebook = blank(stem)
    solved = {cell["id"]: _text(cell) for cell in source(stem)["cells"] if is_solution(cell)}
    for cell in filter(is_solution, notebook["cells"]):
        cell["source"] = _without_markers(solved[cell["id"]])
    return notebook


def submission(released: dict, *answers: Answer, base: str = "solution") -> dict:
    """A student's notebook: the released one with these answers filled in.

    base: what the other solution cells hold, "solution" or "blank" (as in `released`).
    """
    stem = answers[0].stem
    notebook = copy.deepcopy(released)
    solved = {cell["id"]: _text(cell) for cell in full(stem)["cells"] if is_solution(cell)}
    cells = {cell["id"]: cell for cell in notebook["cells"] if is_solution(cell)}
    for name, cell in cells.items():
        if base == "solution":
            cell["source"] = solved[name]
    for answer in answers:
        for name in task_cells(stem, answer.test):
            cells[name]["source"] = solved[name]
        for name, text in pieces(answer, set(cells)).items():
            cells[name]["source"] = text
    return notebook


def task_cells(stem: str, test: str) -> list[str]:
    """The ids of the solution cells that a test cell grades: those since the test cell before."""
    names: list[str] = []
    for cell in blank(stem)["cells"]:
        if is_solution(cell):
            names.append(cell["id"])
        elif cell["metadata"].get("nbgrader", {}).get("grade"):
            if cell["id"] == test:
                return names
            names = []
    raise KeyError(f"{stem} has no test cell {test}")


def pieces(answer: Answer, cells: set[str]) -> dict[str, str]:
    """The file's text by solution cell; imports and helpers go with the function after them.

    Raises:
        ValueError: a CHANGE names lines that do not stand, or stand twice, in what it changes.
    """
    lines = answer.path.read_text().splitlines()
    found, start = {}, 0
    body = ast.parse("\n".join(lines)).body
    said = {ast.unparse(n.targets[0]): n.value for n in body if isinstance(n, ast.Assign)}
    if "CHANGE" in said:
        like = ast.literal_eval(said["LIKE"]) if "LIKE" in said else ""
        return _changed(answer, cells, ast.literal_eval(said["CHANGE"]), like)
    if isinstance(body[0], ast.Expr):  # the docstring says what is wrong: not part of the answer
        start = body[0].end_lineno
    for node in body:
        name = getattr(node, "name", "").replace("_", "-")
        if name in cells:
            found[name] = "\n".join(lines[start : node.end_lineno]).strip("\n")
            start = node.end_lineno
    return found


def _changed(answer: Answer, cells: set[str], change: str, like: str) -> dict[str, str]:
    """The texts of the answer that it is like, or the solution's that it touches, with the change.

    Each place of the change stands once in one of the texts.
    """
    if like:
        path = answer.path.with_name(f"{like}.py")
        before = pieces(Answer(answer.stem, answer.task, like, path), cells)
    else:
        solved = {cell["id"]: cell["source"] for cell in full(answer.stem)["cells"]}
        before = {name: solved[name] for name in task_cells(answer.stem, answer.test)}
    texts = {name: f"\n{text}\n" for name, text in before.items()}
    for place in change.strip("\n").split("\n\n"):
        old, new = (_side(place.splitlines(), sign) for sign in "-+")
        names = [name for name, text in texts.items() for _ in range(text.count(old))]
        if len(names) != 1:
            raise ValueError(f"{answer} changes what stands {len(names)} times, not once:{old}")
        texts[names[0]] = texts[names[0]].replace(old, new)
    after = {name: text[1:-1] for name, text in texts.items()}
    return {name: text for name, text in after.items() if like or text != before[name]}


def _side(lines: list[str], sign: str) -> str:
    """The lines of one side of a change, with the line breaks around them."""
    return "\n".join(["", *(line[1:] for line in lines if line[0] in (" ", sign)), ""])


def is_solution(cell: dict) -> bool:
    """Whether students write in this cell."""
    return bool(cell["metadata"].get("nbgrader", {}).get("solution"))


def _source(stem: str) -> Path:
    return ROOT / "solutions" / stem / f"{stem.split('_', 1)[1]}.ipynb"


@functools.cache
def _released(stem: str) -> bytes:
    from autograder.release import generate

    return generate.blank(_source(stem))


def _text(cell: dict) -> str:
    return "".join(cell["source"])


def _without_markers(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip() not in (BEGIN, END))
