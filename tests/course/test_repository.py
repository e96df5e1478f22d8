"""What holds for the repository as a whole: arrows, sizes, notebooks, generated files."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import arrows
import pytest

from autograder.book.gather import address_of
from autograder.release.normalise import is_readable, normalised
from autograder.written import Written
from byhand.figures import recorded

ROOT = Path(__file__).resolve().parents[2]
LECTURES = sorted((ROOT / "lectures").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "solutions").glob("*/*.ipynb"))
EXERCISES = sorted((ROOT / "exercises").glob("*/*.ipynb"))
MODULES = arrows.modules(ROOT)
FILE = re.compile(r"[\w.][\w./-]*\.(svg|png|json|csv|txt|pt|py)")
HOUSE = ("lib", "autograder", "tests", "lectures")
SOURCES = [path for folder in HOUSE for path in (ROOT / folder).glob("**/*.py")]


def by_place(paths):
    return pytest.mark.parametrize("path", paths, ids=[str(p.relative_to(ROOT)) for p in paths])


def cells(path: Path, kind: str) -> list[str]:
    book = json.loads(path.read_text())
    return ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == kind]


# Imports point one way


def test_no_module_imports_against_the_arrows():
    assert arrows.back_arrows(ROOT) == []


def test_no_circle_of_imports():
    assert arrows.cycle(arrows.imports(ROOT)) == []


@pytest.mark.parametrize(
    ("file", "line", "sentence"),
    [
        (
            "runtime/run.py",
            "import byhand.check",
            "runtime.run (runtime) imports byhand.check (check",
        ),
        ("runtime/run.py", "import matplotlib", "byhand.runtime.run (runtime) imports matplotlib"),
        ("all_reduce/rings.py", "from ..runtime import run", "rings (topic) imports byhand.run"),
        (
            "all_reduce/algorithms.py",
            '"""Pure."""\ndef f():\n    import torch',
            "algorithms (pure) imports torch",
        ),
        ("check/a.py", "from autograder import x", "byhand.check.a (check) imports autograder (a"),
    ],
)
def test_a_back_arrow_is_found_however_it_is_written(tmp_path, file, line, sentence):
    packages = ("lib/byhand/check", "lib/byhand/all_reduce", "autograder")
    for place in ("lib/byhand/runtime/run.py", *(f"{p}/__init__.py" for p in packages)):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).touch()
    (tmp_path / "lib/byhand" / file).write_text(line)
    (found,) = arrows.back_arrows(tmp_path)
    assert sentence in found


def test_a_circle_is_found():
    assert arrows.cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})


# Modules can be read


FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def public(tree: ast.AST) -> list[ast.stmt]:
    """Functions, classes and methods that others may use; not what a function defines inside."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FUNCTION | ast.ClassDef) and not node.name.startswith("_"):
            found += [node, *(public(node) if isinstance(node, ast.ClassDef) else [])]
    return found


def test_lines_are_laid_out_by_ruff_alone():
    by_hand = re.compile(r"#\s*fmt:\s*(skip|off)")
    assert [path for path in SOURCES if by_hand.search(path.read_text())] == []


def test_no_files_name_repeats_its_folders():
    words = {path: path.stem.removeprefix("test_").partition("_")[0] for path in SOURCES}
    assert [path for path, word in words.items() if word == path.parent.name] == []


def test_a_submissions_way_is_told_in_files_that_there_are():
    told = ast.get_docstring(ast.parse((ROOT / "autograder" / "__init__.py").read_text()))
    files = re.findall(r"^ +(\w+/\w+\.py)  ", told, re.MULTILINE)
    assert files
    assert [name for name in files if not (ROOT / "autograder" / name).exists()] == []


@by_place([path for path in MODULES.values() if path.is_relative_to(ROOT / "lib")])
def test_a_module_of_the_library_says_what_it_promises(path):
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "a module begins by saying what it is"
    long = [node for node in public(tree) if node.end_lineno - node.lineno >= 4]
    assert [node.name for node in long if not ast.get_docstring(node)] == []


# Notebooks are committed clean


@by_place(LECTURES + SOLUTIONS)
def test_a_notebook_is_committed_normalised(path):
    text = path.read_text()
    assert text == normalised(text), "make format"


@by_place(EXERCISES)
def test_an_exercise_holds_no_outputs_and_readable_ids(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs"), cell["id"]
        assert cell.get("execution_count") is None, cell["id"]
        assert is_readable(cell["id"]), cell["id"]


@by_place(SOLUTIONS)
def test_a_graded_cell_has_its_name_as_its_id(path):
    for cell in json.loads(path.read_text())["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", cell["id"])
        assert cell["id"] == name


def test_exercises_are_what_the_solutions_generate():
    release = pytest.importorskip("autograder.release.generate")
    wanted = {f"{path.parent.name}/{path.name}": release.blank(path) for path in SOLUTIONS}
    have = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in EXERCISES}
    assert sorted(have) == sorted(wanted), "run: make exercises"
    stale = [name for name in wanted if wanted[name] != have[name]]
    assert stale == [], "run: make exercises"
    written = Written(ROOT / "exercises")
    unnoted = [name for name, text in wanted.items() if written.is_news(name, text.decode())]
    assert unnoted == [], "run: make exercises"


@by_place(LECTURES + SOLUTIONS)
def test_what_stands_in_a_fold_is_drawn_as_markdown(path):
    for source in cells(path, "markdown"):
        for fold in re.findall(r"</summary>(.*?)</details>", source, flags=re.DOTALL):
            raw = "" if fold.startswith("\n\n") else fold.partition("\n\n")[0]
            found = re.search(r"`[^`]+`|\$[^$]+\$|\*\w[^*]*\*|\]\(", raw)
            assert not found, f"a line must be left free after </summary>: {found and found[0]}"


@by_place(LECTURES)
def test_a_lecture_has_one_parameters_cell_and_defines_no_library(path):
    book = json.loads(path.read_text())
    tagged = [c for c in book["cells"] if "parameters" in c["metadata"].get("tags", [])]
    assert len(tagged) == 1, "one cell tagged parameters, for papermill"
    for source in cells(path, "code"):
        assert not re.search(r"sys\.path|urlretrieve|requests\.get|(?m:^[%!] *pip)", source), source


def test_pages_name_the_courses_one_address_once_it_is_set_and_no_placeholder_before():
    address = address_of(tomllib.loads((ROOT / "pyproject.toml").read_text()))
    first, readme = cells(LECTURES[0], "code")[0], (ROOT / "README.md").read_text()
    if address:
        assert f"%pip install git+{address} " in first
        assert f"git clone {address}" in readme
    else:
        told = {path.name: " ".join(cells(path, "code")) for path in LECTURES}
        assert [
            name for name, text in (told | {"README.md": readme}).items() if "git+" in text
        ] == []


def test_the_first_lecture_says_how_to_install_the_course():
    first = cells(LECTURES[0], "code")[0]
    command = [sys.executable, "-I", "-S", "-c", first]  # -S: a Python that has nothing installed
    said = subprocess.run(command, capture_output=True, text=True)
    assert "pip install .\n" in said.stdout
    assert said.stderr == ""


@by_place(LECTURES)
def test_a_lecture_reads_no_file_by_a_path_from_where_it_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for source in cells(path, "code"):
        nodes = list(ast.walk(ast.parse(re.sub(r"(?m)^%.*", "", source))))
        joined = {n.right for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div)}
        texts = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        named = [n.value for n in texts if n not in joined and FILE.fullmatch(n.value)]
        assert named == [], 'a picture of an earlier run is recorded("name")'
        for call in (n for n in nodes if isinstance(n, ast.Call)):
            if getattr(call.func, "id", "") == "recorded":
                assert "<svg" in recorded(call.args[0].value).data


# The README, and CONTRIBUTING


PAGES = ["README.md", "CONTRIBUTING.md", "lectures/README.md", "CHANGELOG.md"]


@pytest.mark.parametrize("name", [*PAGES, ".github/SECURITY.md", "autograder/README.md"])
def test_a_pages_links_lead_somewhere(name):
    page = ROOT / name
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page.read_text()) if "://" not in link]
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_lists_every_lecture_in_order():
    text = (ROOT / "README.md").read_text()
    assert re.findall(r"\(lectures/(\w+)\.ipynb\)", text) == [path.stem for path in LECTURES]


def test_the_readmes_picture_counts_the_answers_there_are():
    title = recorded("judged").data.partition("<dc:title>")[2].partition("<")[0]
    told = list(map(int, re.findall(r"\d+", title)))
    there = [len(list(ROOT.glob(f"tests/answers/*/*/{kind}_*.py"))) for kind in ("wrong", "right")]
    assert len(told) == 2
    assert all(0.95 * n <= said <= n for said, n in zip(told, there, strict=True)), "make figures"


def test_the_course_in_one_page_has_the_minutes_that_the_notebooks_say():
    text = (ROOT / "lectures" / "README.md").read_text()
    rows = re.findall(r"\]\((\w+)\.ipynb\) \|[^|]*\| (\d+) \| (\d+) \| (\d) \|", text)
    said = [(path.stem, *minutes(path)[:1], *minutes(other)) for path, other in BOTH]
    assert [(name, *map(int, numbers)) for name, *numbers in rows] == said
    text = (ROOT / "README.md").read_text()
    readme = re.findall(r"/(\w+)\.ipynb\) \|.*\| (\d+) \+ (\d+) \|", text)
    assert [(name, *map(int, numbers)) for name, *numbers in readme] == [row[:3] for row in said]


BOTH = list(zip(LECTURES, SOLUTIONS, strict=True))


def minutes(path: Path) -> list[int]:
    """How long a notebook takes, and how difficult it is, if it says so."""
    head = " ".join(cells(path, "markdown")[:2])
    return list(map(int, re.findall(r"(?:Time: about |Difficulty: )(\d+)", head)))
