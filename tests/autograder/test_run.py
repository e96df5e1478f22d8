"""`autograder run`: every cell ran, or one sentence says which did not and why."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import leftovers
import nbformat
import pytest
from click.testing import CliRunner
from waiting import wait_until

from autograder.batch.commands import run
from autograder.batch.notebooks import find_notebooks, run_notebooks
from autograder.batch.queue import here
from autograder.batch.running import Running
from autograder.places import CourseError


def notebook(path: Path, *sources: str, parameters: str = "") -> Path:
    """A notebook of code cells named cell-1, cell-2, ..., after a parameters cell if given."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    for number, cell in enumerate(cells, 1):
        cell["id"] = f"cell-{number}"
    if parameters:
        cells.insert(0, nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, path)
    return path


FAILING = {
    "raises": ["1", "raise ValueError('3 ranks cannot\\nhold 4')", "print('later')"],
    "exits": ["import sys", "sys.exit(0)", "print('later')"],
    "skips": ["1", "2"],
    "dies": ["1", "import os; os.kill(os.getpid(), 9)", "3"],
    "endless": ["1", "while True: pass"],
}


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Every notebook of FAILING, run at once, by name."""
    folder = tmp_path_factory.mktemp("failing")
    paths = [notebook(folder / f"{name}.ipynb", *cells) for name, cells in FAILING.items()]
    skips = nbformat.read(folder / "skips.ipynb", as_version=4)
    skips.cells[1].metadata["tags"] = ["skip-execution"]
    nbformat.write(skips, folder / "skips.ipynb")
    work = Running(html=False, cell_seconds=3.5)
    return {ran.notebook.stem: ran for ran in run_notebooks(paths, folder / "out", work, here(3))}


def text_of(ran) -> str:
    cells = nbformat.read(ran.output, as_version=4).cells
    return "".join(o.get("text", "") for c in cells if c.cell_type == "code" for o in c.outputs)


def test_a_notebook_runs_to_the_end_and_its_page_shows_what_it_printed(tmp_path):
    path = notebook(tmp_path / "book.ipynb", "x = 20", "print('the answer is', x + 22)")
    (ran,) = run_notebooks([path], tmp_path / "out", Running())
    assert ran.error is None
    assert "the answer is 42" in ran.output.with_suffix(".html").read_text()
    assert nbformat.read(path, as_version=4).cells[1].outputs == [], "the source stays as it was"


def test_a_table_whose_lines_come_one_after_the_other_is_one_output(tmp_path):
    slow = "import time\nfor number in range(3):\n    print(number)\n    time.sleep(0.5)"
    (ran,) = run_notebooks(
        [notebook(tmp_path / "b.ipynb", slow)], tmp_path / "out", Running(html=False)
    )
    (output,) = nbformat.read(ran.output, as_version=4).cells[0].outputs
    assert output.text == "0\n1\n2\n"


def test_a_page_folds_what_jupyter_folds_and_asks_no_other_host(tmp_path):
    path = notebook(tmp_path / "book.ipynb", "1", "print('the answer')", "print('in sight')")
    book = nbformat.read(path, as_version=4)
    book.cells[0] = nbformat.v4.new_markdown_cell(r"so $\frac{n-1}{n}$, and $\frac{$", id="formula")
    book.cells[1].metadata["tags"] = ["hide-input", "hide-output"]
    nbformat.write(book, path)
    (ran,) = run_notebooks([path], tmp_path / "out", Running())
    page = ran.output.with_suffix(".html").read_text()
    folds = re.findall(r"<details.*?</details>", page, re.DOTALL)
    assert [("print" in fold, "the answer\n" in fold) for fold in folds] == [
        (True, False),
        (False, True),
    ]
    assert "<mfrac>" in page
    assert 'url("data:font/woff;base64,d09G' in page, "the page has the font its fractions need"
    assert r"<code>\frac{</code>" in page, "what is no formula stays as it was written"
    assert "<script" not in page


def test_a_fold_in_a_text_cell_holds_all_up_to_its_end(tmp_path):
    path = notebook(tmp_path / "book.ipynb", "1")
    book = nbformat.read(path, as_version=4)
    fold = "<details><summary>Answer</summary>\n\nIt is *two*.\n\nAnd <b>three</b>.\n\n</details>"
    book.cells[0] = nbformat.v4.new_markdown_cell(f"{fold}\n\nSo it goes on.", id="fold")
    nbformat.write(book, path)
    (ran,) = run_notebooks([path], tmp_path / "out", Running())
    (inside,) = re.findall(
        r"<details>(.*?)</details>", ran.output.with_suffix(".html").read_text(), re.DOTALL
    )
    assert "<em>two</em>" in inside
    assert "<b>three</b>" in inside
    assert "So it goes on" not in inside


def test_what_no_mathml_is_made_of_stays_as_it_was_written(tmp_path):
    path = notebook(
        tmp_path / "book.ipynb", "1", "1", "from IPython.display import Math; Math('y^2')"
    )
    book = nbformat.read(path, as_version=4)
    for place, text in enumerate(
        (r"\begin{align}a&=b\end{align}", r"$$\begin{aligned}c&=d\end{aligned}$$")
    ):
        book.cells[place] = nbformat.v4.new_markdown_cell(text, id=f"formula-{place}")
    nbformat.write(book, path)
    (ran,) = run_notebooks([path], tmp_path / "out", Running())
    page = ran.output.with_suffix(".html").read_text()
    assert r"<code>\begin{align}a&amp;=b\end{align}</code>" in page
    assert r"<code>\begin{aligned}c&amp;=d\end{aligned}</code>" in page
    assert "<msup><mi>y</mi><mn>2</mn></msup>" in page, "a formula that a cell showed"


def test_parameters_reach_the_notebook_with_their_types(tmp_path):
    path = notebook(
        tmp_path / "book.ipynb",
        "print(world_size + 1, backend.upper())",
        parameters="world_size = 4\nbackend = 'auto'",
    )
    arguments = [str(path), "--out", str(tmp_path / "out"), "--no-html"]
    result = CliRunner().invoke(run, [*arguments, "-p", "world_size", "2", "-p", "backend", "gloo"])
    assert result.exit_code == 0, result.output
    (output,) = (tmp_path / "out").rglob("book.ipynb")
    assert "3 GLOO" in output.read_text()


@pytest.mark.parametrize(
    ("text", "value"), [("16_384", 16384), ("True", True), ("true", True), ("1e-3", 1e-3)]
)
def test_a_value_written_as_python_or_json_is_what_it_says(tmp_path, text, value):
    path = notebook(tmp_path / "book.ipynb", f"assert n == {value!r}", parameters="n = 4")
    arguments = [str(path), "--out", str(tmp_path / "out"), "--no-html", "-p", "n", text]
    result = CliRunner().invoke(run, arguments)
    assert result.exit_code == 0, result.output


def test_a_notebook_that_names_no_kernel_runs_all_the_same(tmp_path):
    path = notebook(tmp_path / "book.ipynb", "print(6 * 7)")
    book = nbformat.read(path, as_version=4)
    del book.metadata["kernelspec"]
    nbformat.write(book, path)
    (ran,) = run_notebooks([path], tmp_path / "out", Running(html=False))
    assert ran.error is None
    assert text_of(ran) == "42\n"


def test_where_nothing_can_be_written_is_told_by_notebook_and_without_a_log(tmp_path):
    path, out = notebook(tmp_path / "book.ipynb", "1"), tmp_path / "file"
    out.write_text("")
    result = CliRunner().invoke(run, [str(path), "--out", str(out)])
    assert "book.ipynb: could not be run: NotADirectoryError" in result.output, result.output
    assert "(see" not in result.output


def test_a_limit_below_a_second_is_refused(tmp_path):
    path = notebook(tmp_path / "book.ipynb", "1")
    result = CliRunner().invoke(run, [str(path), "--cell-seconds", "0"])
    assert result.exit_code == 2
    assert "0.0 is not in the range x>=1" in result.output


def test_a_parameter_no_notebook_has_is_refused_before_anything_runs(tmp_path):
    path = notebook(tmp_path / "book.ipynb", "1", parameters="world_size = 4")
    result = CliRunner().invoke(run, [str(path), "-p", "wordl_size", "2"])
    assert result.exit_code == 1
    assert "no notebook has a parameter wordl_size; there are world_size" in result.output


def test_a_parameters_cell_with_a_magic_runs_as_it_is_and_takes_no_parameter(tmp_path):
    path = notebook(tmp_path / "book.ipynb", "print(n + 1)", parameters="%pwd\nn = 1")
    arguments = [str(path), "--out", str(tmp_path / "out"), "--no-html"]
    result = CliRunner().invoke(run, arguments)
    assert result.exit_code == 0, result.output
    result = CliRunner().invoke(run, [*arguments, "-p", "n", "2"])
    assert result.exit_code == 1
    cell = nbformat.read(path, as_version=4).cells[0].id
    said = f'book.ipynb: its parameters cell "{cell}" is no plain Python (invalid syntax in line 1)'
    assert said in result.output


def test_an_exception_names_notebook_cell_and_error(failing):
    sentence = 'raises.ipynb: code cell 2 "cell-2" raised ValueError: 3 ranks cannot'
    assert sentence in failing["raises"].error
    assert "later" not in text_of(failing["raises"])
    assert "hold 4" in failing["raises"].log.read_text(), "the log has the error to its end"


def test_a_kernel_that_exits_with_status_0_does_not_pass_for_a_run(failing):
    assert 'code cell 3 "cell-3" never ran' in failing["exits"].error
    assert "sys.exit()" in failing["exits"].error


def test_a_cell_tagged_to_be_skipped_is_named(failing):
    sentence = 'code cell 2 "cell-2" never ran: it is tagged "skip-execution"'
    assert sentence in failing["skips"].error


def test_a_kernel_that_dies_is_named_with_the_cell_that_ran(failing):
    assert 'the kernel died while code cell 2 "cell-2" ran' in failing["dies"].error


def test_an_endless_cell_ends_at_its_limit(failing):
    assert 'code cell 2 "cell-2" ran longer than 3.5 s' in failing["endless"].error


def test_a_failing_notebook_stops_neither_its_neighbours_nor_the_sentence(tmp_path):
    bad = notebook(tmp_path / "bad.ipynb", "1 / 0")
    good = notebook(tmp_path / "good.ipynb", "print('good')")
    result = CliRunner().invoke(run, [str(tmp_path), "--jobs", "2", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert (
        f'{bad}: code cell 1 "cell-1" raised ZeroDivisionError: division by zero' in result.output
    )
    assert any(line.startswith("ran ") and str(good) in line for line in result.output.splitlines())


def test_jobs_run_side_by_side(tmp_path):
    meet = """
import pathlib, time
mine, other = pathlib.Path("{0}"), pathlib.Path("{1}")
mine.touch()
while not other.exists():
    time.sleep(0.01)"""
    paths = [
        notebook(tmp_path / "a.ipynb", meet.format("a", "b")),
        notebook(tmp_path / "b.ipynb", meet.format("b", "a")),
    ]
    results = run_notebooks(paths, tmp_path / "out", Running(html=False), here(2))
    assert [ran.error for ran in results] == [None, None]


def test_what_is_no_notebook_gets_a_sentence(tmp_path):
    path = tmp_path / "book.ipynb"
    path.write_text("not JSON")
    with pytest.raises(CourseError, match=r"book\.ipynb is not a notebook"):
        run_notebooks([path], tmp_path, Running())
    with pytest.raises(CourseError, match="no notebook in"):
        find_notebooks([tmp_path.joinpath("empty").mkdir() or tmp_path / "empty"])
    with pytest.raises(CourseError, match="does not exist"):
        find_notebooks([tmp_path / "nowhere"])


def test_two_notebooks_that_would_be_written_to_one_place_are_refused_by_name(tmp_path):
    for student in ("ada", "ben"):
        (tmp_path / student / "hw").mkdir(parents=True)
        notebook(tmp_path / student / "hw" / "tiny.ipynb", "1")
    out = tmp_path / "out"
    result = CliRunner().invoke(run, [*map(str, tmp_path.iterdir()), "--out", str(out)])
    assert result.exit_code == 1
    for named in ("ada/hw/tiny.ipynb", "ben/hw/tiny.ipynb", "out/hw/tiny.ipynb: run them one"):
        assert named in result.output
    assert not out.exists()


def test_a_folder_runs_twice_though_it_holds_its_own_results(tmp_path, monkeypatch):
    (tmp_path / "lectures").mkdir()
    notebook(tmp_path / "lectures" / "01_tiny.ipynb", "1")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        result = CliRunner().invoke(run, [".", "--out", "build", "--no-html"])
        assert "1 of 1 notebooks ran" in result.output, result.output
    (written,) = Path("build").rglob("*.ipynb")
    assert find_notebooks([written], Path("build")) == [written.resolve()], "it is named"
    assert find_notebooks(["build"], Path("build")) == [written.resolve()], "its folder is"


def test_a_notebook_is_never_written_over_one_that_is_to_be_run(tmp_path, monkeypatch):
    (tmp_path / "hw").mkdir()
    path = notebook(tmp_path / "hw" / "tiny.ipynb", "1", parameters="n = 4")
    path.with_suffix(".html").write_text("somebody's page")
    before = path.read_text()
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(run, ["hw", "-p", "n", "8", "--out", "."])
    assert path.read_text() == before
    assert path.with_suffix(".html").exists()
    assert result.exit_code == 1
    assert f"written over {path}, which is itself to be run: give --out a" in result.output


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_an_interrupted_run_leaves_no_kernel_nor_what_a_cell_started(tmp_path, how):
    started = tmp_path / "started"
    child = "" if how == "SIGKILL" else "__import__('subprocess').Popen(['sleep', '600'])\n"
    source = f"{child}open({str(started)!r}, 'w')\nwhile True: pass"
    path = notebook(tmp_path / "book.ipynb", source)
    mark = f"interrupted-{how}"
    command = [sys.executable, "-m", "autograder", "run", str(path), "--out", str(tmp_path)]
    process = subprocess.Popen(
        command,
        env={**os.environ, leftovers.MARK: mark},
        stderr=subprocess.DEVNULL,
        # A shell's background jobs ignore Ctrl-C, and hand that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_until(lambda: started.exists() or process.poll() is not None)
    assert process.poll() is None, "it ended before the cell ran"
    process.send_signal(getattr(signal, how))
    assert process.wait() != 0
    wait_until(lambda: not leftovers.processes(mark, patience=0))
