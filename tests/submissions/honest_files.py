"""Right notebooks in files as editors, services and habits leave them: each keeps every point."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path

from arena import DOUBLE, STEM, TOTAL, Case, answered, changed, save, verdicts
from honest_cases import TWICE, own

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(60)).decode()
HELPER = "def twice(number):\n    return 2 * number\n"
FAILED = {"output_type": "error", "ename": "ValueError", "evalue": "no",
          "traceback": ["\x1b[31mno"]}


def kept(name: str, change, **cells: str) -> Case:
    """A right notebook, changed so."""
    return changed(name, verdicts(), change, noted=(), **cells)


def filed(name: str, write) -> Case:
    """A right notebook, written by `write(folder, notebook)`."""
    return Case(name, lambda folder, blank, about: write(folder, answered(blank)), verdicts(),
                noted=())


def as_bytes(name: str, encode) -> Case:
    """A right notebook, in these bytes."""
    return filed(name, lambda folder, notebook: (folder / f"{STEM}.ipynb").write_bytes(
        encode(notebook)))


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def new(kind: str, text: str, name: str, **more):
    """A cell without nbgrader's marks."""
    empty = {"outputs": [], "execution_count": None} if kind == "code" else {}
    return {"cell_type": kind, "id": name, "metadata": {}, "source": text, **empty, **more}


def other_kernel(kernel: str, shown: str, version: str):
    def change(notebook, cells):
        notebook["metadata"] = {
            "kernelspec": {"name": kernel, "display_name": shown, "language": "python"},
            "language_info": {"name": "python", "version": version, "file_extension": ".py",
                              "codemirror_mode": {"name": "ipython", "version": 3},
                              "mimetype": "text/x-python", "nbconvert_exporter": "python"}}

    return change


def no_metadata(notebook, cells):
    notebook["metadata"] = {}


def saved_outputs(notebook, cells):
    shown = {"text/plain": "<Figure>", "image/png": PIXEL,
             "application/vnd.jupyter.widget-view+json": {"model_id": "a1", "version_major": 2}}
    for number, cell in enumerate(reversed(code_cells(notebook))):
        cell["execution_count"] = 7 * number + 3
        cell["outputs"] = [
            {"output_type": "stream", "name": "stderr", "text": ["Error: no\n"] * 500},
            {"output_type": "display_data", "metadata": {"background": "light"}, "data": shown},
            {"output_type": "execute_result", "execution_count": 7 * number + 3, "metadata": {},
             "data": {"text/html": "<style>td {color: red}</style><table></table>"}},
            FAILED]
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {
        "version_major": 2, "version_minor": 0, "state": {"a1": {"state": {}, "model_name": "X"}}}}


def large_output(notebook, cells):
    cells["test-double"]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "x" * 31_000_000}]


def older_format(minor: int):
    def change(notebook, cells):
        notebook["nbformat_minor"] = minor
        for cell in notebook["cells"]:
            del cell["id"]
            cell["source"] = cell["source"].splitlines(keepends=True)

    return change


def from_colab(notebook, cells):
    older_format(0)(notebook, cells)
    notebook["metadata"] |= {"colab": {"provenance": [], "toc_visible": True, "name": "a.ipynb"},
                             "accelerator": "GPU", "kernelspec": {"name": "python3",
                                                                  "display_name": "Python 3"}}
    for number, cell in enumerate(notebook["cells"]):
        cell["metadata"] |= {"id": f"Xy_{number}-aZ", "outputId": "1b", "colab": {
            "base_uri": "https://localhost:8080/"}}


def from_vscode(notebook, cells):
    del notebook["metadata"]["kernelspec"]
    for cell in notebook["cells"]:
        cell["metadata"] |= {"vscode": {"languageId": "python"}, "tags": [], "collapsed": False,
                             "scrolled": True, "slideshow": {"slide_type": "skip"}, "execution": {
                                 "iopub.status.busy": "2026-01-15T12:00:00Z"}}


def stripped_metadata(notebook, cells):
    for cell in notebook["cells"]:
        cell["metadata"] = {}


def new_ids_too(notebook, cells):
    stripped_metadata(notebook, cells)
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"{number:08x}"


def notes_between(notebook, cells):
    picture = {"figure.png": {"image/png": PIXEL}}
    notebook["cells"][2:2] = [
        new("markdown", "# My notes\n![plot](attachment:figure.png)", "notes", attachments=picture),
        new("raw", "\\begin{raw}", "raw"), new("code", "", "empty"), new("code", "  \n", "blank"),
        new("code", "# while True:\n#     pass", "remark"), new("markdown", "", "nothing")]


def another_order(notebook, cells):
    """The third task, with its test, before the first, and the heading at the end."""
    for name in ("test-shift", "shift"):
        notebook["cells"].remove(cells[name])
        notebook["cells"].insert(2, cells[name])
    notebook["cells"].append(notebook["cells"].pop(0))


def split_answer(notebook, cells):
    """Split in two in JupyterLab, which gives both halves the marks."""
    first = {**copy.deepcopy(cells["double"]), "id": "half", "source": HELPER}
    notebook["cells"].insert(notebook["cells"].index(cells["double"]), first)


def split_without_marks(notebook, cells):
    notebook["cells"].insert(notebook["cells"].index(cells["double"]), new("code", HELPER, "half"))


def merged_answers(notebook, cells):
    """Both answers in the cell of the first: the second's was merged into it."""
    notebook["cells"].remove(cells["total"])


def cells_copied(notebook, cells):
    """The imports, an answer and its test once more, at the end, by copy and paste."""
    for name in ("imports", "double", "test-double"):
        notebook["cells"].append({**copy.deepcopy(cells[name]), "id": f"{name}-2", "metadata": {}})


def old_try_kept(notebook, cells):
    """A copy of the answer's cell at the end, pasted in JupyterLab with its marks: the first try."""
    first = {**copy.deepcopy(cells["double"]), "id": "first-try"}
    notebook["cells"].append({**first, "source": "def double(number):\n    return number ** 2"})


def failed_experiment(notebook, cells):
    own("def double(number):\n    return number // 0\n\n\ndouble(1)")(notebook, cells)
    notebook["cells"][2]["metadata"] = {"tags": ["raises-exception"]}
    notebook["cells"][2]["outputs"] = [FAILED]


def unfinished_end(notebook, cells):
    notebook["cells"].append(new("code", "factor = 3\nfor rank in range(4)\n    print(rank", "end"))


def more_imports(notebook, cells):
    """Editors but JupyterLab let one write into the locked cell of imports."""
    cells["imports"]["source"] += "\nimport operator"


def print_in_a_test(notebook, cells):
    cells["test-total"]["source"] = "print('testing total')\n" + cells["test-total"]["source"]


def with_files(folder: Path, notebook) -> None:
    """What lies beside: a text that a cell reads, a scratch notebook, a checkpoint, a module."""
    own("text = open('notes.txt').read()\nprint(text)")(notebook, {})
    save(folder, notebook)
    (folder / "notes.txt").write_text("the notes")
    (folder / "__pycache__").mkdir()
    (folder / ".ipynb_checkpoints").mkdir()
    scratch = {**notebook, "cells": [new("code", "1 + 1", "scratch")]}
    save(folder, scratch, "Untitled.ipynb")
    save(folder / ".ipynb_checkpoints", scratch, f"{STEM}-checkpoint.ipynb")


def with_many_pictures(folder: Path, notebook) -> None:
    save(folder, notebook)
    for number in range(250):
        (folder / f"a-{number:03}.png").write_bytes(base64.b64decode(PIXEL))


def crlf_in_cells(notebook, cells):
    for cell in notebook["cells"]:
        cell["source"] = cell["source"].replace("\n", "\r\n").splitlines(keepends=True)


HABITS = [
    kept("kernel-of-a-virtual-environment", other_kernel("venv", "venv (Python 3.12.4)", "3.12.4")),
    kept("kernel-of-conda", other_kernel("conda-env-dl-py", "Python [conda env:dl]", "3.10.1")),
    kept("no-metadata-at-all", no_metadata),
    kept("saved-outputs", saved_outputs),
    kept("thirty-one-megabytes-of-output", large_output),
    kept("format-4-2", older_format(2)),
    kept("format-4-4", older_format(4)),
    kept("saved-by-colab", from_colab),
    kept("saved-by-vscode", from_vscode),
    kept("metadata-stripped", stripped_metadata),
    kept("metadata-stripped-and-new-ids", new_ids_too),
    kept("notes-pictures-and-empty-cells", notes_between),
    kept("tasks-in-another-order", another_order),
    kept("an-answer-split-in-two", split_answer, double=TWICE),
    kept("an-answer-split-without-marks", split_without_marks, double=TWICE),
    kept("answers-merged", merged_answers, double=f"{DOUBLE}\n\n\n{TOTAL}"),
    kept("cells-copied-to-the-end", cells_copied),
    kept("an-old-try-below-the-test", old_try_kept),
    kept("a-failed-experiment-left-in", failed_experiment),
    kept("an-unfinished-cell-at-the-end", unfinished_end),
    kept("imports-in-the-locked-cell", more_imports,
         double="def double(number):\n    return operator.mul(2, number)"),
    kept("a-print-in-a-test", print_in_a_test),
    kept("windows-line-ends-in-cells", crlf_in_cells),
    filed("files-beside", with_files),
    filed("two-hundred-and-fifty-pictures-beside", with_many_pictures),
    filed("a-copy-of-the-browser", lambda folder, n: save(folder, n, f"{STEM} (1)-Copy1.ipynb")),
    as_bytes("byte-order-mark", lambda n: b"\xef\xbb\xbf" + json.dumps(n).encode()),
    as_bytes("windows-line-ends", lambda n: json.dumps(n, indent=1).replace("\n", "\r\n").encode()),
    as_bytes("indented-by-tabs", lambda n: json.dumps(n, indent="\t", ensure_ascii=False).encode()),
]
