"""Right notebooks as they run in Jupyter: from the first cell to the last, in a kernel.

    python tests/submissions/in_jupyter.py [NAME ...]

prints what goes wrong in each notebook of the corpus' habits, hidden tests put in, so that nobody
can say that a case was not right. Only a cell tagged raises-exception, or the last one where it is
the student's own, may raise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import arena  # noqa: E402
import corpus  # noqa: E402
import nbformat  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from nbclient.exceptions import CellExecutionError  # noqa: E402

from autograder.release.rules import KERNELSPEC  # noqa: E402

SECONDS = 120  # for one cell


def make_course(folder: Path):
    """The course that the habits are handed in to."""
    exercises = {case.assignment for case in corpus.HABITS} - {arena.ASSIGNMENT}
    return arena.make_course(folder, sorted(exercises))


def trouble(case: arena.Case, where, folder: Path) -> str:
    """What goes wrong when the notebook of this case runs in Jupyter, in this folder; else ""."""
    blank = json.loads(where.released(case.assignment).read_text())
    case.write(folder, blank, {})
    notebook = _opened(folder, where.source(case.assignment).stem)
    tests = {c.id: c.source for c in nbformat.read(where.source(case.assignment), 4).cells}
    texts = {"".join(cell["source"]): cell["id"] for cell in blank["cells"]}
    asked = _put_hidden_tests_in(notebook, tests, texts)
    if len(asked) < len(case.expected):
        return f"holds the tests {sorted(asked)} and not {sorted(case.expected)}"
    try:
        NotebookClient(notebook, timeout=SECONDS, kernel_name=KERNELSPEC["name"],
                       resources={"metadata": {"path": str(folder)}}
                       ).execute(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except CellExecutionError as error:
        ran = [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]
        own = "nbgrader" not in ran[-1].metadata and ran[-1].source not in tests.values()
        if not (own and any(o.output_type == "error" for o in ran[-1].outputs)):
            return str(error)[-2000:]
    return ""


def _opened(folder: Path, stem: str) -> nbformat.NotebookNode:
    """The notebook as an editor opens it: any of the right name, of any minor format."""
    path = next(iter(sorted(folder.glob(f"{stem}*.ipynb"))))
    return nbformat.reads(json.dumps(json.loads(path.read_bytes())), 4)


def _put_hidden_tests_in(notebook, tests: dict[str, str], texts: dict[str, str]) -> set[str]:
    """Give the test cells their text in the source; which of them the notebook holds.

    texts: by the text of each released cell, its name; for notebooks that lost their names.
    """
    found = set()
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "")
        name = name if name in tests else texts.get(cell.source, "")
        if name.startswith("test-") and cell.cell_type == "code":
            cell.source = tests[name]
            found.add(name)
    return found


def main(names: list[str]) -> int:
    """Run these habits, or all; the number of those in trouble."""
    cases = [case for case in corpus.HABITS if not names or case.name in names]
    with tempfile.TemporaryDirectory(prefix="in-jupyter-") as place:
        os.environ["IPYTHONDIR"] = f"{place}/ipython"
        where = make_course(Path(place) / "course")
        folders = {case.name: Path(place) / case.name for case in cases}
        for folder in folders.values():
            folder.mkdir()
        with ThreadPoolExecutor(2) as pool:
            running = {case.name: pool.submit(trouble, case, where, folders[case.name])
                       for case in cases}
        wrong = {name: text for name, ran in running.items() if (text := _told(ran))}
    for name, text in wrong.items():
        print(f"{name}: {text}\n")
    print(f"{len(cases) - len(wrong)} of {len(cases)} are right")
    return len(wrong)


def _told(ran: Future) -> str:
    return repr(ran.exception()) if ran.exception() else ran.result()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
