"""A class of any size over all exercises, for grading in one command.

    python tests/big_class.py FOLDER [submissions]
    autograder grade --class FOLDER

Every submission is another mixture: for each task of its exercise the solution, a wrong or an
unusual answer of tests/answers, or nothing. FOLDER/expected.json says which tests it must pass, and

    python tests/big_class.py FOLDER --check

holds what was graded against it.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import answers

from autograder.grade.journal import Journal
from autograder.grade.verdicts import PASSED

SUBMISSIONS = 300
SEED = 2026


def tests_of(stem: str) -> list[str]:
    """The test cells of an exercise."""
    code = [cell for cell in answers.source(stem)["cells"] if cell["cell_type"] == "code"]
    return [cell["id"] for cell in code if cell["metadata"].get("nbgrader", {}).get("grade")]


def stems() -> list[str]:
    """Exercises that have a release and answers."""
    found = sorted(path.parent.name for path in (answers.ROOT / "exercises").glob("*/*.ipynb"))
    return [stem for stem in found if answers.all_answers(stem)]


def submission(stem: str, chance: random.Random) -> tuple[dict, dict[str, bool]]:
    """A student's notebook, and which of its tests must pass.

    One task at most is answered wrongly or left blank; of later ones, which may build on it,
    nothing is expected.
    """
    notebook = answers.full(stem)
    tests = tests_of(stem)
    expected = dict.fromkeys(tests, True)
    test = chance.choice(tests)
    kind = chance.choice(["solution", "blank", "wrong", "wrong", "right"])
    fitting = [a for a in answers.all_answers(stem)
               if a.test == test and a.right == (kind == "right")]  # fmt: skip
    if kind in ("wrong", "right") and fitting:
        notebook = answers.submission(answers.blank(stem), chance.choice(fitting))
    elif kind == "blank":
        blank = {cell["id"]: cell["source"] for cell in answers.blank(stem)["cells"]}
        for cell in notebook["cells"]:
            if cell["id"] in answers.task_cells(stem, test):
                cell["source"] = blank[cell["id"]]
    if kind in ("wrong", "blank"):
        expected = {name: expected[name] for name in tests[: tests.index(test)]} | {test: False}
    return notebook, expected


def write(folder: Path, count: int) -> None:
    """`count` submissions, spread evenly over the exercises, by students of any number."""
    chance, expected, all_stems = random.Random(SEED), {}, stems()
    for number in range(count):
        stem = all_stems[number % len(all_stems)]
        student = f"student-{number // len(all_stems):03}"
        notebook, passes = submission(stem, chance)
        path = folder / "submitted" / student / stem / f"{stem.split('_', 1)[1]}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook))
        expected[f"{student}/{stem}"] = passes
    (folder / "expected.json").write_text(json.dumps(expected, indent=1))


def surprises(folder: Path) -> list[str]:
    """A sentence for each task whose verdict is not the expected one."""
    expected = json.loads((folder / "expected.json").read_text())
    graded = {
        f"{j.student}/{j.assignment}": j for j in Journal(folder / "grading.journal").latest()
    }
    found = [f"{name} was not graded" for name in expected if name not in graded]
    for name in expected.keys() & graded.keys():
        for verdict in graded[name].verdicts:
            wanted = expected[name].get(verdict.question)
            if wanted is not None and wanted != (verdict.verdict == PASSED):
                found.append(
                    f"{name}, {verdict.question}: {verdict.verdict} {verdict.message[:200]}"
                )
    return sorted(found)


def main(folder: Path, words: list[str]) -> int:
    """Write a class, or check the grades of one."""
    if "--check" in words:
        found = surprises(folder)
        print("\n".join(found) or "every verdict is the expected one")
        return 1 if found else 0
    count = int(words[0]) if words else SUBMISSIONS
    write(folder, count)
    print(f"{count} submissions in {folder}; now: autograder grade --class {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
