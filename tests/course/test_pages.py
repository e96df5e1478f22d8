"""The pages that the course writes, drawn in a real browser."""

import shutil
import subprocess

import matplotlib.image
import pytest
import tiny_course
from test_run import notebook

from autograder.batch.notebooks import run_notebooks
from autograder.batch.running import Running
from autograder.grade.journal import Judgement
from autograder.grade.marks import Marks
from autograder.grade.verdicts import Verdict
from autograder.report.feedback import page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def browser(path, *options: str) -> str:
    """What Chromium prints about a page after its scripts have run."""
    program = next(filter(None, map(shutil.which, BROWSERS)))
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    window = ["--window-size=800,800", "--virtual-time-budget=3000"]
    command = [program, *fixed, *window, f"--user-data-dir={path.parent / 'profile'}", *options]
    done = subprocess.run([*command, path.as_uri()], capture_output=True, text=True)
    return done.stdout


@pytest.mark.browser
def test_a_lectures_page_shows_its_figures(tmp_path):
    draw = """
from IPython.display import HTML
HTML('<div style="width:300px;height:300px;background:#1f4e79"></div>')"""
    path = notebook(tmp_path / "book.ipynb", draw)
    (ran,) = run_notebooks([path], tmp_path / "out", Running())
    picture = tmp_path / "page.png"
    browser(ran.output.with_suffix(".html"), f"--screenshot={picture}")
    pixels = (matplotlib.image.imread(picture)[..., :3] * 255).round().astype(int)
    blue = (pixels == (0x1F, 0x4E, 0x79)).all(axis=-1).sum()
    assert blue == 300 * 300


def test_a_feedback_page_of_long_cells_stays_short():
    long = "x" + "\n" * 198_000 + "y"
    cells = [("double", "code", long), ("first", "code", "import os")]
    cells += [(f"own-{number}", "code", long) for number in range(20)]
    graded = Judgement(
        "key",
        "eve",
        "01_tiny",
        "now",
        0,
        "none",
        1.0,
        [],
        [Verdict("test-double", "passed", 2, 2)],
        cells,
    )
    drawn = page(graded, tiny_course.source(), Marks(2, 2))
    assert len(drawn) < 3_000_000
    assert "import os" in drawn
    assert "178,002 more characters are not shown here" in drawn


@pytest.mark.browser
def test_nothing_a_student_wrote_runs_in_the_feedback_page(tmp_path):
    attack = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    verdict = Verdict("test-double", "failed", 0, 2, part=attack, message=attack, table=attack)
    cells = [("double", "code", attack), ("extra", "code", attack)]
    graded = Judgement("key", attack, "01_tiny", "now", 0, "none", 1.0, [attack], [verdict], cells)
    path = tmp_path / "feedback.html"
    path.write_text(page(graded, tiny_course.source(), Marks(0, 2)))
    drawn = browser(path, "--dump-dom")
    assert "&lt;script&gt;document.title='owned'" in drawn, "the text itself is shown"
    assert "<title>owned" not in drawn
    assert "<script>" not in drawn
    assert "<img" not in drawn
