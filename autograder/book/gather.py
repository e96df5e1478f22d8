"""Executed lectures and released exercises, the README and the reference, as Sphinx reads them.

The tree is the repository's, so that a link from notebook to notebook is the same in the book.
"""

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

import byhand
from autograder.places import Places
from byhand.figures.alt import drawing_in, title_of
from byhand.figures.recorded import FOLDER

PAGES = Path(__file__).parent / "pages"
LIBRARY = Path(byhand.__file__).parent
WIDGET = "application/vnd.jupyter.widget-view+json"
SVG, PNG, HTML = "image/svg+xml", "image/png", "text/html"
TEACHING = "autograder/README.md"
IN_BOOK = {
    "README.md": "guide.md",
    "lectures/README.md": "lectures/course.md",
    TEACHING: "teach.md",
}
PAGES_OF = {"17_planner.ipynb": "[The planner as a page](../planner.md)"}
EXPLORER = "Explorer. Here it is shown as it starts; run this lecture to drag it."
DRAWN = "Explorer. Some of its states, drawn with this page; run this lecture to set any value."
_NAMED = re.compile(r"\]\((\w+)\.ipynb\) \| ([^|]*) \|")  # a row of lectures/README.md
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)\s#]+)(#[^)\s]*)?\)")


def gather(
    where: Places, executed: Path, target: Path, address: str, forms: Mapping[str, str]
) -> None:
    """Write all that Sphinx reads to `target`, a folder that is made anew.

    executed: where the lectures lie, with their outputs. address: the course's repository on
    GitHub, for links that open a notebook elsewhere; "" when it has none. forms: by lecture, what
    stands for its explorer.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    lectures = sorted((where.course / "lectures").glob("*.ipynb"))
    for path in lectures:
        notebook = nbformat.read(executed / path.name, as_version=4)
        form = forms.get(path.stem, "")
        _write(shown(notebook, path.name, address, form), target / "lectures" / path.name)
        (target / "notebooks").mkdir(exist_ok=True)
        shutil.copy(path, target / "notebooks")  # to run: without a page's form and pictures
    for name in where.assignments():
        path = where.released(name)
        notebook = nbformat.read(path, as_version=4)
        _write(folded(notebook), target / path.relative_to(where.course))
    shutil.copy(where.course / "lectures" / "README.md", target / "lectures" / "course.md")
    shutil.copytree(FOLDER, target / "lib" / FOLDER.relative_to(LIBRARY.parent), dirs_exist_ok=True)
    names = [path.stem for path in lectures]
    called = dict(_NAMED.findall((where.course / "lectures" / "README.md").read_text()))
    exercises = [where.released(name).relative_to(where.course) for name in where.assignments()]
    reference = _reference(target / "reference")
    for page in IN_BOOK.values():
        (target / page).touch()  # each may lead to the others
    text = (where.course / TEACHING).read_text().replace("](../", "](")
    (target / IN_BOOK[TEACHING]).write_text(_linked(text, target, address))
    first, guide = _readme(where.course, target, address)
    (target / "guide.md").write_text(guide)
    first += (PAGES / "index.md").read_text()
    for word, entries in (
        ("LECTURES", [_entry(where.course, name, called) for name in names]),
        ("EXERCISES", [str(path.with_suffix("")) for path in exercises]),
        ("REFERENCE", reference),
    ):
        first = first.replace(word, "\n".join(entries))
    (target / "index.md").write_text(first)


def _entry(course: Path, name: str, called: dict[str, str]) -> str:
    """A lecture in the book's list: its title, and what the field calls its subject."""
    title = nbformat.read(course / "lectures" / f"{name}.ipynb", as_version=4).cells[0].source
    title = title.splitlines()[0].removeprefix("# ")
    return f"{title} ({called[name]}) <lectures/{name}>" if name in called else f"lectures/{name}"


def shown(notebook: NotebookNode, name: str, address: str, form: str = "") -> NotebookNode:
    """An executed lecture: figures with their titles for those who cannot see them, and doors.

    form: what stands for its explorer.
    """
    cells = []
    for cell in notebook.cells:
        is_explorer = any(WIDGET in output.get("data", {}) for output in _outputs(cell))
        for output in _outputs(cell):
            if is_explorer and form and WIDGET in output.get("data", {}):
                output.data, output.metadata = NotebookNode({HTML: form}), NotebookNode()
            _picture(cell, output)
        cells.append(cell)
        if is_explorer:
            told = DRAWN if form else EXPLORER
            cells.append(new_markdown_cell(f"*{told}*", id=f"{cell.id}-explorer"))
    notebook.metadata.pop("widgets", None)  # the states of explorers, which no page can move
    notebook.cells = [cells[0], new_markdown_cell(_doors(name, address), id="doors"), *cells[1:]]
    return notebook


def folded(notebook: NotebookNode) -> NotebookNode:
    """An exercise, its test cells folded as Jupyter folds them."""
    for cell in notebook.cells:
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata["tags"] = ["hide-input"]
    return notebook


def _outputs(cell: NotebookNode) -> Iterable[NotebookNode]:
    return cell.get("outputs", [])


def _picture(cell: NotebookNode, output: NotebookNode) -> None:
    """Of an output, leave the picture alone, and have its title said."""
    data = output.get("data", {})
    drawing = drawing_in(data.get(HTML, ""))
    if not drawing and PNG not in data:
        return
    alt = title_of(drawing) or EXPLORER
    output.data = NotebookNode({SVG: drawing} if drawing else {PNG: data[PNG]})
    output.metadata = NotebookNode()
    cell.metadata["mystnb"] = {"image": {"alt": alt, "width": "100%"}}


def _doors(name: str, address: str) -> str:
    """Where this page's notebook can be run."""
    download = f"{{download}}`Download the notebook <../notebooks/{name}>`"
    doors = [download, "`make lab` opens it in JupyterLab"]
    if address:
        path = address.removeprefix("https://github.com/")
        colab = f"https://colab.research.google.com/github/{path}/blob/main/lectures/{name}"
        here = f"[in the repository]({address}/blob/main/lectures/{name})"
        doors[:0] = [f"[Open in Colab]({colab})", here]
    doors += filter(None, [PAGES_OF.get(name)])
    return " · ".join([*doors, "tap a figure to see it large"])


def _readme(course: Path, target: Path, address: str) -> tuple[str, str]:
    """The README as two pages: the book's first, and the guide, from where it is about using it."""
    text = (course / "README.md").read_text()
    first, heading, rest = text.partition("## If you study")
    pages = first, f"# To use the course\n\n{heading}{rest}"
    first, guide = (_linked(page, target, address) for page in pages)
    return (first + f"[The course's repository]({address})\n" if address else first), guide


def _reference(folder: Path) -> list[str]:
    """A page for each public package of byhand, which autodoc fills; their names."""
    packages = sorted(path.parent.name for path in LIBRARY.glob("*/__init__.py"))
    names = ["byhand", *(f"byhand.{name}" for name in packages if name != "tools")]
    folder.mkdir()
    for name in names:
        once = "   :no-index:\n" if name == "byhand" else ""  # what it shows is another's
        directive = f"```{{eval-rst}}\n.. automodule:: {name}\n   :members:\n{once}```"
        (folder / f"{name}.md").write_text(f"# {name}\n\n{directive}\n")
    return [f"reference/{name}" for name in names]


def _linked(text: str, target: Path, address: str) -> str:
    """A page of the repository's root, its links as they are in the book."""
    for path, page in IN_BOOK.items():
        text = text.replace(f"]({path})", f"]({page})")
    return _LINK.sub(lambda link: _kept(link, target, address), text)


def _kept(link: re.Match[str], target: Path, address: str) -> str:
    """A link to what is in the book stays one; any other leads to the repository, if it can."""
    words, path, anchor = link[1], link[2], link[3] or ""
    if (target / path).is_file():
        return link[0]
    return f"[{words}]({address}/blob/main/{path}{anchor})" if address else f"{words} (`{path}`)"


def _write(notebook: NotebookNode, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, path)
    os.utime(path)


def address_of(pyproject: dict[str, Any]) -> str:
    """The one setting of where the course lives: pyproject.toml's [project.urls], Repository."""
    return pyproject["project"].get("urls", {}).get("Repository", "").rstrip("/")


def place_of(pyproject: dict[str, Any]) -> str:
    """Where the book is served, beside it as Documentation: with a slash at its end, or ""."""
    place = pyproject["project"].get("urls", {}).get("Documentation", "").rstrip("/")
    return f"{place}/" if place else ""
