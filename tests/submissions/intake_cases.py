"""Hand-ins whose file is strange: renamed, corrupt, retagged, enormous, or no file at all."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path

from arena import PASSED, POINTS, STEM, Case, answered, changed, nothing, save, verdicts

NOT_DONE = "def double(number):\n    raise NotImplementedError()"
ONE_LOST = verdicts(double="lost")
DOUBLED = "def double(number):\n    return 2 * number\n"
LISTS = '{"cells": [' + "[]," * 3_000_000 + "1]}"  # nine megabytes that are slow to parse
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def edit_tests(notebook, cells):
    for name, cell in cells.items():
        if name.startswith("test-"):
            cell["source"] = "assert True"


def delete_test(notebook, cells):
    notebook["cells"].remove(cells["test-double"])


def copy_test(notebook, cells):
    notebook["cells"].append({**cells["test-double"], "source": "pass", "id": "again"})


def copy_answer(notebook, cells):
    blank = {**cells["double"], "id": "again", "source": NOT_DONE}
    notebook["cells"].insert(notebook["cells"].index(cells["double"]), blank)


def more_points(notebook, cells):
    cells["test-double"]["metadata"]["nbgrader"]["points"] = 1000


def other_flags(notebook, cells):
    cells["test-double"]["metadata"]["nbgrader"].update(solution=True, grade=False, locked=False)


def graded_by_hand(notebook, cells):
    cells["test-double"]["cell_type"] = "markdown"
    cells["test-double"]["metadata"]["nbgrader"]["solution"] = True


def tag(*tags):
    def change(notebook, cells):
        for cell in notebook["cells"]:
            cell["metadata"]["tags"] = list(tags)

    return change


def other_kernel(notebook, cells):
    notebook["metadata"]["kernelspec"] = {"name": "bash", "language": "bash", "display_name": "x"}
    notebook["metadata"]["papermill"] = {"parameters": {"sandboxed": False}}


def other_limit(notebook, cells):
    for cell in notebook["cells"]:
        cell["metadata"]["limit_seconds"] = 1e9


def swap_names(notebook, cells):
    """The cell of a solved task carries the name of an unsolved one, and the other way round."""
    for one, other in (("double", "test-double"), ("test-double", "double")):
        cells[one]["metadata"]["nbgrader"]["grade_id"] = other
        cells[one]["id"] = other


def own_tests(notebook, cells):
    own = "def drive_double(rank, world_size, number):\n    return 2 * number\n"
    own += "check.results = launch = lambda *a, **k: None\ndef check_total(*a): pass"
    notebook["cells"].insert(2, {**copy.deepcopy(cells["double"]), "metadata": {}, "id": "mine",
                                 "source": own})


def many_own_cells_before(notebook, cells):
    """The answers stand after thousands of the student's own cells, and need one of the last."""
    texts = [f"x{number} = {number}" for number in range(2_500)] + ["twice = 2"]
    notebook["cells"][:0] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
         "id": f"x{number}", "source": text} for number, text in enumerate(texts)]


def source_of_other_things(notebook, cells):
    """A source is a list of lines to Jupyter; what is no text in it is left out."""
    cells["double"]["source"] = [DOUBLED, 1, None, {"a": 2}, ["b"]]


def heavy_outputs(notebook, cells):
    data = {"image/png": "A" * 31_000_000}
    cells["double"]["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]


def lost_among(*texts: str):
    """A right notebook, under a name of its own, among files that hold these texts."""
    def write(folder: Path, blank: dict, about: dict) -> None:
        save(folder, answered(blank), f"zz {STEM} final version.ipynb")
        for number, text in enumerate(texts):
            (folder / f"{number:03}.ipynb").write_text(text)

    return write


def many_cells(notebook, cells):
    extra = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    notebook["cells"] += [{**extra, "id": f"x{i}", "source": f"x = {i}"} for i in range(20_000)]


def huge_cell(notebook, cells):
    cells["double"]["source"] += "\n# " + "x" * 3_000_000


def outputs_with_script(notebook, cells):
    data = {"text/html": SCRIPT, "application/vnd.byhand.verdict+json": {"verdict": PASSED}}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]
        cell["attachments"] = {SCRIPT: {"text/html": SCRIPT}}


def half_characters(notebook, cells):
    cells["double"]["source"] += "\n# \ud800 \u202e \x00 \x1b[2J"


def moved_test(notebook, cells):
    """The test stands before the answer, where the answer would not be defined yet."""
    notebook["cells"].remove(cells["test-double"])
    notebook["cells"].insert(0, cells["test-double"])


def raw(name: str, data: bytes, *says: str) -> Case:
    """These bytes as the notebook."""
    return Case(name, lambda folder, *_: (folder / f"{STEM}.ipynb").write_bytes(data), nothing(),
                says)


def cut_short(folder: Path, blank: dict, about: dict) -> None:
    (folder / f"{STEM}.ipynb").write_text(json.dumps(answered(blank))[:-40])


def no_cells(notebook, cells):
    notebook["cells"][:0] = [None, 3, [], {"cell_type": "script"}]


def sixteen_bits(folder: Path, blank: dict, about: dict) -> None:
    (folder / f"{STEM}.ipynb").write_bytes(json.dumps(answered(blank)).encode("utf-16"))


def linked(what: str):
    """A link where the notebook should be."""
    return lambda folder, _, about: os.symlink(about[what], folder / f"{STEM}.ipynb")


def link_for_folder(folder: Path, blank: dict, about: dict) -> None:
    folder.rmdir()
    os.symlink(Path(about["solution"]).parent, folder)


def pipe(folder: Path, blank: dict, about: dict) -> None:
    os.mkfifo(folder / f"{STEM}.ipynb")


def sparse(folder: Path, blank: dict, about: dict) -> None:
    with open(folder / f"{STEM}.ipynb", "wb") as file:
        file.truncate(40 << 30)


def links_beside(folder: Path, blank: dict, about: dict) -> None:
    """The notebook is right, and beside it lie links, a copy of torch, and a start-up file."""
    save(folder, answered(blank))
    os.symlink(about["solution"], folder / "notes.ipynb")
    os.symlink("/etc/passwd", folder / "feedback.html")
    for name in ("torch.py", "sitecustomize.py", "nbgrader_config.py", "conftest.py", "byhand.py"):
        (folder / name).write_text(f"open({about['secrets']!r} + '/touched', 'w')")


def bytes_name(folder: Path, blank: dict, about: dict) -> None:
    """The notebook's file name is no text."""
    save(folder, answered(blank), os.fsdecode(b"ar\xffena.ipynb"))


INTAKE = [
    changed("right", verdicts(), lambda *_: None),
    changed("renamed", verdicts(), lambda *_: None, file="arena (1) final.ipynb"),
    changed("renamed-to-a-script", verdicts(), lambda *_: None, (), file=f"{SCRIPT}.ipynb"
            .replace("/", "")),
    Case("corrupt", cut_short, dict.fromkeys(POINTS, "unreadable"), ("not a readable notebook",)),
    raw("empty", b"", "file is empty"),
    raw("not-text", bytes(range(256)) * 40, "not a readable notebook"),
    raw("an-archive", b"PK\x03\x04" + bytes(1000), "not a readable notebook"),
    raw("nested-too-deep", b"[" * 500_000, "not a readable notebook"),
    raw("numbers-too-long", b'{"cells": [' + b"9" * 5_000_000 + b"]}", "not a readable notebook"),
    Case("missing", lambda *_: None, nothing(), ("No notebook was found",)),
    changed("tests-edited", ONE_LOST, edit_tests, ("test-double was not as it was given out (edited)",),
            double=NOT_DONE),
    changed("test-deleted", ONE_LOST, delete_test, ("test-double was not as it was given out (missing)",), double=NOT_DONE),
    changed("test-twice", ONE_LOST, copy_test, ("(edited, there 2 times)",), double=NOT_DONE),
    changed("answer-twice", verdicts(), copy_answer, ("(there 2 times)",)),
    changed("points-changed", verdicts(), more_points, ("(points)",)),
    changed("flags-changed", ONE_LOST, other_flags, ("(grade, solution, locked)",), double=NOT_DONE),
    changed("made-manual", ONE_LOST, graded_by_hand, (), double=NOT_DONE),
    changed("tagged-skip-execution", ONE_LOST, tag("skip-execution", "raises-exception"),
            ("(tags)",), double=NOT_DONE),
    changed("tagged-parameters", ONE_LOST, tag("parameters", "injected-parameters", "remove_cell"),
            ("(tags)",), double=NOT_DONE),
    changed("foreign-kernel", verdicts(), other_kernel),
    changed("limit-changed", verdicts(double="timeout"), other_limit,
            double="def double(number):\n    while True:\n        pass"),
    changed("names-swapped", {**verdicts(), "test-double": "lost"}, swap_names),
    changed("tests-defined-again", ONE_LOST, own_tests, (), double=NOT_DONE),
    changed("test-moved", verdicts(), moved_test),
    changed("twenty-thousand-cells", verdicts(), many_cells),
    changed("a-cell-of-megabytes", ONE_LOST, huge_cell, ("characters were left out",)),
    changed("outputs-with-script", verdicts(), outputs_with_script),
    changed("cells-that-are-none", verdicts(), no_cells),
    changed("untouched-blank", dict.fromkeys(POINTS, "blank"), lambda *_: None,
            ("nothing was written here",), double="", total="", shift=""),
    changed("one-task-untouched", verdicts(total="blank"), lambda *_: None, (), total=""),
    changed("own-cells-before", verdicts(), many_own_cells_before, (),
            double="def double(number):\n    return twice * number"),
    changed("source-of-other-things", verdicts(), source_of_other_things),
    changed("outputs-of-31-megabytes", verdicts(), heavy_outputs),
    Case("among-250-other-files", lost_among(*["{}"] * 250), verdicts()),
    Case("slow-to-parse", lambda folder, *_: (folder / f"{STEM}.ipynb").write_text(LISTS),
         dict.fromkeys(POINTS, "unreadable"), ("it holds no cells",)),
    Case("sixteen-bit-text", sixteen_bits, verdicts()),
    changed("half-characters", verdicts(), half_characters),
    Case("link-to-the-solution", linked("solution"), nothing(), ("is a link",)),
    Case("link-to-the-gradebook", linked("gradebook"), nothing(), ("is a link",)),
    Case("folder-is-a-link", link_for_folder, dict.fromkeys(POINTS, "unreadable"),
         ("A link or a file lies where the folder",)),
    Case("pipe", pipe, nothing(), ("special file",)),
    Case("forty-gigabytes", sparse, dict.fromkeys(POINTS, "unreadable"), ("larger than",)),
    Case("links-and-modules-beside", links_beside, verdicts()),
    Case("file-name-that-is-no-text", bytes_name, verdicts()),
]
