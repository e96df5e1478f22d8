"""A person at the screen: the formgrader's button, a mark by hand, the pages, a lecture's explorer.

Screenshots of each step stay in build/browser. Chromium is the system's own; none is downloaded.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import answers
import nbformat
import pytest

from autograder.grade.gradebook import UNSANDBOXED_VARIABLE
from autograder.grade.journal import Journal
from autograder.grade.marks import read_marks
from autograder.places import COURSE, Places
from autograder.release import generate as release
from autograder.report.class_page import write_report
from autograder.report.feedback import write_feedback
from autograder.report.similarity import write_similarity
from byhand.runtime.walls.isolation import why_no_sandbox

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser

STEM, STUDENT, TOKEN = "01_ranks", "ada", "for-this-test"
LECTURE = "02_collectives"
PICTURES = COURSE / "build" / "browser"
RAN = re.compile(r"\[\d+\]")
PATIENCE = 180_000  # milliseconds; a loaded machine is slow

CONTRAST = """() => {
  const lightness = colour => colour.slice(0, 3).map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = numbers(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [numbers(getComputedStyle(e).color), behind(e)].map(lightness);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push(`${e.tagName} ${e.className} ${ratio.toFixed(2)}`);
  }
  return faint;
}"""


@dataclass
class Course:
    """The course as it is served: its address, and the class."""

    address: str
    where: Places

    def at(self, path: str) -> str:
        return f"{self.address}/{path}"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """`autograder serve` on a class of one student, who is right."""
    home = tmp_path_factory.mktemp("served")
    where = Places(COURSE, home / "class")
    path = where.submitted / STUDENT / STEM / "ranks.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(answers.full(STEM)))
    release.register(where, STEM)
    with running(home, where) as address:
        yield Course(address, where)


@contextlib.contextmanager
def running(home: Path, where: Places, what: str = "serve"):
    """A server on a free port, which keeps nothing of its own in the user's home."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own = {name: str(home / name.lower()) for name in names}
    own |= {UNSANDBOXED_VARIABLE: "1"} if why_no_sandbox() else {}
    command = [
        sys.executable,
        "-m",
        "autograder",
        what,
        "--class",
        str(where.class_dir),
        "--port",
        str(port),
        "--no-browser",
        "--",
        f"--IdentityProvider.token={TOKEN}",
    ]
    with open(home / "server.log", "w") as log:
        server = subprocess.Popen(command, env={**os.environ, **own}, stdout=log, stderr=log)
    try:
        wait_for(f"http://127.0.0.1:{port}/api", server, home / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def wait_for(address: str, server: subprocess.Popen, log: Path, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(address, timeout=5).close()
            return
        time.sleep(0.2)
    pytest.fail("the server did not start:\n" + log.read_text()[-3000:])


@pytest.fixture(scope="module")
def screen(served, browser):
    """A window of someone who has logged in."""
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(served.at(f"formgrader?token={TOKEN}"))
    yield page
    context.close()


@pytest.fixture(autouse=True)
def as_wide_as_a_desk(screen):
    screen.set_viewport_size({"width": 1200, "height": 900})


@pytest.fixture(scope="module")
def graded(served, screen):
    """The student, graded by the formgrader's own button; the row as it then reads."""
    screen.goto(served.at(f"formgrader/manage_submissions/{STEM}"))
    row = screen.locator("tbody tr", has_text=STUDENT)
    row.wait_for()
    picture(screen, "1-before-grading")
    row.locator("td.autograde a").click()
    screen.get_by_text("Successfully autograded").wait_for()
    screen.reload()
    row.locator("td.status", has_text="graded").wait_for()
    picture(screen, "2-graded")
    row.locator("td.generate-feedback a").click()
    screen.get_by_text("Successfully generated feedback").wait_for()
    screen.reload()
    return {part: row.locator(f"td.{part}").inner_text() for part in ("status", "score")}


def picture(screen, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    screen.screenshot(path=PICTURES / f"{name}.png")


def marks(served):
    return read_marks(served.where, Journal(served.where.journal).latest())[STEM, STUDENT]


def furniture(browser, address: str) -> list[str]:
    """The menus, side bars and questions of JupyterLab, when it has opened."""
    page = browser.new_page()
    page.goto(f"{address}/lab?token={TOKEN}")
    page.locator(".jp-DirListing-item").first.wait_for(timeout=PATIENCE)
    page.wait_for_load_state("networkidle")
    menus = page.locator(".lm-MenuBar-itemLabel").all_inner_texts()
    sides = page.locator(".jp-SideBar .lm-TabBar-tab").evaluate_all("all => all.map(e => e.title)")
    questions = page.locator(".Toastify__toast").all_inner_texts()
    page.close()
    return [*menus, *sides, *questions]


def test_only_who_teaches_sees_nbgraders_menus_and_nobody_is_asked_about_news(
    served, browser, tmp_path
):
    teaching = " ".join(furniture(browser, served.address))
    with running(tmp_path, served.where, "lab") as address:
        studying = " ".join(furniture(browser, address))
    assert "Nbgrader" in teaching
    assert "Create Assignment" in teaching
    for said in ("Nbgrader", "Assignment", "Course List", "Formgrader"):
        assert said not in studying
    assert "news" not in teaching + studying


def test_the_formgrader_knows_names_and_asks_for_no_exchange(screen, served):
    screen.goto(served.at("formgrader/manage_assignments"))
    screen.locator("tbody tr").first.wait_for()
    assert screen.locator("#warning-exchange").count() == 0
    screen.goto(served.at(f"formgrader/manage_submissions/{STEM}"))
    row = screen.locator("tbody tr", has_text=STUDENT)
    row.wait_for()
    assert "None" not in row.locator("td.student-name").inner_text()


def test_the_formgraders_buttons_grade_and_write_feedback_through_this_engine(served, graded):
    assert graded == {"status": "graded", "score": "6 / 6"}
    feedback = served.where.feedback / STUDENT / STEM / "ranks.html"
    assert "Hidden tests are named here, never shown." in feedback.read_text()
    (judgement,) = Journal(served.where.journal).latest()
    assert judgement.points == 6


def test_a_mark_given_in_the_formgrader_counts(served, graded, screen):
    screen.goto(served.at(f"formgrader/gradebook/{STEM}/ranks"))
    screen.locator("tbody td.name a:visible").first.click()
    score = screen.locator("input.score").first
    question = score.get_attribute("id")
    screen.wait_for_load_state("networkidle")  # by then the page listens to what is typed
    with screen.expect_response(
        lambda reply: "/api/grade/" in reply.url and reply.request.method == "PUT"
    ):
        score.fill("0.5")
        score.blur()
    score.scroll_into_view_if_needed()
    picture(screen, "3-marked-by-hand")
    assert marks(served).by_cell[question] == 0.5
    assert marks(served).score == 5.5


@pytest.fixture
def pages(served, graded):
    """The class page, the student's feedback and the page of similar submissions."""
    (feedback,) = write_feedback(served.where, [STEM], [])
    report = write_report(served.where, served.where.class_dir / "grades.html")
    alike = write_similarity(served.where, [STEM], served.where.class_dir / "similarity.html")
    return {"report": report, "feedback": feedback, "similarity": alike}


def test_the_class_page_leads_to_the_feedback_of_each_student(pages, screen):
    screen.goto(pages["report"].as_uri())
    picture(screen, "4-class-page")
    screen.get_by_role("link", name=STUDENT, exact=True).first.click()
    screen.wait_for_url(f"**/{pages['feedback'].name}")
    assert "6" in screen.locator("p.score").inner_text()
    picture(screen, "5-feedback")


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("name", ["report", "feedback", "similarity"])
def test_a_page_fits_its_screen_and_can_be_read_by_everyone(pages, screen, name, width):
    screen.set_viewport_size({"width": width, "height": 800})
    screen.goto(pages[name].as_uri())
    screen.screenshot(path=PICTURES / f"6-{name}-{width}.png", full_page=True)
    assert screen.evaluate("document.documentElement.scrollWidth") == width
    assert screen.locator("script").count() == 0
    assert screen.locator("img:not([alt])").count() == 0
    assert screen.locator("th:not([scope])").count() == 0
    assert screen.evaluate(CONTRAST) == [], "text needs a contrast of 4.5"


def test_a_lectures_figure_says_its_title_and_its_explorer_moves_in_jupyterlab(served, screen):
    copy = PICTURES / f"{LECTURE}.ipynb"  # the lecture itself must not be saved over
    PICTURES.mkdir(parents=True, exist_ok=True)
    book = nbformat.read(COURSE / "lectures" / copy.name, as_version=4)
    for cell in book.cells:
        cell.metadata.pop("jupyter", None)  # a folded cell has no words to be found by
    nbformat.write(book, copy)
    try:
        screen.goto(served.at(f"lab/tree/build/browser/{copy.name}?reset"))
        run_cell(screen, "world_size =")
        run_cell(screen, "from byhand.collectives.lab import")
        figure = run_cell(screen, "picture(broadcast, reduced)").locator(".jp-OutputArea img")
        assert "broadcast" in figure.get_attribute("alt").lower(), "for who cannot see the figure"
        cell = run_cell(screen, 'collective_explorer("')
        image = cell.locator(".jp-OutputArea img")
        before = image.get_attribute("src")
        assert image.get_attribute("alt"), "for who cannot see the picture"
        picture(screen, "7-explorer")
        cell.locator("select").first.select_option(label="broadcast")
        playwright.expect(image).not_to_have_attribute("src", before, timeout=PATIENCE)
        picture(screen, "8-explorer-moved")
    finally:
        copy.unlink()
        picture(screen, "9-as-it-ended")


def run_cell(screen, text: str):
    """Run the code cell that holds a text, as a reader does, and wait until it has run.

    Keys pressed before the kernel answers are lost.
    """
    screen.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()
    cell = screen.locator(".jp-CodeCell", has_text=text).first
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    screen.keyboard.press("Shift+Enter")
    cell.locator(".jp-InputPrompt", has_text=RAN).wait_for()
    return cell
