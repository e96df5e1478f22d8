"""The book as a stranger opens it: in a real browser, wide and narrow, from the file system."""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from conftest import CHROMIUM
from test_browser import CONTRAST, FLAGS

from autograder.batch.notebooks import find_notebooks, run_notebooks
from autograder.batch.running import Running
from autograder.places import COURSE

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("myst_nb", reason="the book's extra is not installed: pip install .[book]")
pytestmark = [pytest.mark.browser, pytest.mark.timeout(3600)]  # the first test builds the book

WIDTHS = (1200, 390)
LOOK = """() => {
  const all = chosen => [...document.querySelectorAll(chosen)];
  const scrolls = e => e && (['auto', 'scroll'].includes(getComputedStyle(e).overflowX)
    || scrolls(e.parentElement.closest('article *')));
  return {
    wide: document.documentElement.scrollWidth,
    wider: all('article *').filter(e => e.getBoundingClientRect().right > innerWidth + 1)
      .filter(e => !scrolls(e)).map(e => e.outerHTML.slice(0, 120)),
    silent: all('article img').filter(e => !e.alt.trim()).map(e => e.src),
    broken: all('img').filter(e => e.complete && !e.naturalWidth).map(e => e.src),
    links: all('a[href]').map(e => e.href).filter(h => h.startsWith('file:')),
    ids: all('[id]').map(e => e.id),
    told: all('meta[name=description], meta[property="og:title"]').map(e => e.content),
    raw: document.querySelector('article').innerText.match(/\\\\(frac|sum|cdot|text)/g) || [],
  };
}"""


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """The book, of the lectures that `make course` or `make test` executed, or executed now."""
    from autograder.book.build import build

    names = [path.name for path in find_notebooks([COURSE / "lectures"])]
    for executed in (COURSE / "build" / "lectures", COURSE / "build" / "test" / "lectures"):
        if all((executed / name).exists() for name in names):
            break
    else:
        out = tmp_path_factory.mktemp("executed")
        run_notebooks(find_notebooks([COURSE / "lectures"]), out, Running(html=False))
        executed = out / "lectures"
    target = tmp_path_factory.mktemp("book") / "html"
    assert build(COURSE, executed, target) == []
    return target


@pytest.fixture(scope="module")
def seen(book):
    """What a browser finds on each page, by width and file; and what it complained of."""
    found, complaints = {}, []
    with playwright.sync_playwright() as starter:
        program = next(filter(None, map(shutil.which, CHROMIUM)))
        browser = starter.chromium.launch(
            executable_path=program, args=[f"--{flag}" for flag in FLAGS]
        )
        for width in WIDTHS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.on(
                "console", lambda said: complaints.append(said.text) if said.type == "error" else 0
            )
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on(
                "request", lambda asked: complaints.append(asked.url) if abroad(asked.url) else 0
            )
            for path in sorted(book.rglob("*.html")):
                page.goto(path.as_uri())
                found[width, path] = page.evaluate(LOOK)
            page.close()
        browser.close()
    return found, complaints


def abroad(address: str) -> bool:
    return urlparse(address).scheme not in ("file", "data", "blob")


def test_every_page_loads_without_an_error_or_a_request_elsewhere(seen):
    found, complaints = seen
    assert len(found) > 2 * 30
    assert complaints == []


def test_no_page_scrolls_sideways_and_every_figure_says_what_it_shows(seen):
    for (width, path), look in seen[0].items():
        about = f"{path.name} at {width} pixels"
        assert look["wide"] <= width, about
        assert look["wider"] == [], about
        assert (look["silent"], look["broken"], look["raw"]) == ([], [], []), about


def test_every_page_says_what_it_is_to_those_it_is_shared_with(seen):
    told = {path: look["told"] for (width, path), look in seen[0].items() if width == WIDTHS[0]}
    told = {path: told[path] for path in told if path.stem not in ("search", "py-modindex")}
    assert {path.name for path, words in told.items() if len(words) != 2} == set()
    titles = [words[1] for path, words in told.items() if path.parent.name == "lectures"]
    assert len(set(titles)) == len(titles) > 18


def test_every_link_inside_leads_somewhere(seen):
    pages = {path: look for (width, path), look in seen[0].items() if width == WIDTHS[0]}
    for path, look in pages.items():
        for address in look["links"]:
            parts = urlparse(address)
            target = Path(unquote(parts.path))
            assert target.exists(), f"{path.name}: {address}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target]["ids"], f"{path.name}: {address}"


def test_a_page_stays_below_a_megabyte(book):
    assert max(path.stat().st_size for path in book.rglob("*.html")) < 1_000_000


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_word_stands_out_and_the_search_finds(book, theme):
    with playwright.sync_playwright() as starter:
        program = next(filter(None, map(shutil.which, CHROMIUM)))
        browser = starter.chromium.launch(
            executable_path=program, args=[f"--{flag}" for flag in FLAGS]
        )
        page = browser.new_page(color_scheme=theme)
        names = "index", "planner", "lectures/02_collectives"
        for name in (*names, "exercises/02_collectives/collectives"):
            page.goto((book / f"{name}.html").as_uri())
            assert page.evaluate(CONTRAST) == [], name
        page.goto((book / "index.html").as_uri())
        page.fill("input[name=q]", "reduce-scatter")
        page.keyboard.press("Enter")
        page.wait_for_selector("ul.search li a")
        assert "02_collectives" in " ".join(
            link.get_attribute("href") for link in page.query_selector_all("ul.search li a")
        )
        browser.close()


# Figures and formulas


@pytest.fixture
def lecture(book, request):
    """Lecture 02's page, on a phone unless a width is given."""
    with playwright.sync_playwright() as starter:
        program = next(filter(None, map(shutil.which, CHROMIUM)))
        browser = starter.chromium.launch(
            executable_path=program, args=[f"--{flag}" for flag in FLAGS]
        )
        width = getattr(request, "param", WIDTHS[1])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((book / "lectures" / "02_collectives.html").as_uri())
        yield page
        browser.close()


@pytest.mark.parametrize("lecture", WIDTHS, indirect=True)
def test_a_figure_opens_large_by_tap_and_by_key_and_closes(lecture):
    link, large = lecture.locator("a.image-reference").first, lecture.locator("dialog.large")
    before = link.locator("img").bounding_box()["width"]
    for ask in (link.click, lambda: link.press("Enter")):
        ask()
        image = large.locator("img")
        assert image.bounding_box()["width"] > 1.3 * before
        assert image.get_attribute("alt") == link.locator("img").get_attribute("alt")
        lecture.keyboard.press("Escape")
        playwright.expect(large).to_be_hidden()
    link.click()
    large.click()
    playwright.expect(large).to_be_hidden()


def test_a_fractions_bar_lies_between_its_numbers_in_the_books_own_font(lecture):
    lecture.evaluate("document.fonts.ready")
    fonts = lecture.evaluate("[...document.fonts].map(font => [font.family, font.status])")
    assert fonts == [["Book Math", "loaded"]]
    apart = """[...document.querySelectorAll('mfrac')].map(one => {
      const [above, below] = [...one.children].map(part => part.getBoundingClientRect());
      return below.top - above.bottom;
    })"""
    assert min(lecture.evaluate(apart)) > 0


# What moves without a kernel

EVERY_STATE = """() => {
  const controls = [...document.querySelectorAll('form.explorer select')];
  const found = {};
  const turn = (rest, key) => {
    if (!rest.length) {
      controls[0].dispatchEvent(new Event('input', {bubbles: true}));
      found[key.join('|')] = document.querySelector('.explorer .shown').innerHTML;
      return;
    }
    for (const option of rest[0].options) {
      rest[0].value = option.value;
      turn(rest.slice(1), [...key, option.value]);
    }
  };
  turn(controls, []);
  return found;
}"""


@pytest.fixture
def opened(book, request):
    """The planner's page, wide or narrow, with scripts or without; what it asked of other hosts."""
    with playwright.sync_playwright() as starter:
        program = next(filter(None, map(shutil.which, CHROMIUM)))
        browser = starter.chromium.launch(
            executable_path=program, args=[f"--{flag}" for flag in FLAGS]
        )
        page = browser.new_page(java_script_enabled=getattr(request, "param", True))
        asked = []
        page.on("request", lambda one: asked.append(one.url))
        page.goto((book / "planner.html").as_uri())
        yield page, asked
        browser.close()


def test_every_control_changes_the_planners_page_by_keyboard(opened):
    page, asked = opened
    shown = page.locator(".explorer .shown")
    page.locator(".explorer fieldset").wait_for()
    for number in range(page.locator(".explorer select").count()):
        before = shown.inner_html()
        page.locator(".explorer select").nth(number).focus()
        page.keyboard.press("ArrowDown")
        assert shown.inner_html() != before, f"select {number} changes nothing"
    page.keyboard.press("ArrowUp")
    assert all(address.startswith("file:") for address in asked), asked
    assert any(address.endswith("explorers/planner.js") for address in asked)


def test_the_planners_page_shows_each_of_its_states(opened):
    page, _ = opened
    page.locator(".explorer fieldset").wait_for()
    found = page.evaluate(EVERY_STATE)
    for key, text in found.items():
        assert "<li>" in text or 'class="sentence"' in text, key
        assert "undefined" not in text, key
        assert not re.search(r"\{\d+\}", text), key


@pytest.mark.parametrize("opened", [False], indirect=True)
def test_without_a_script_the_planners_page_is_a_table_of_some_states(opened):
    page, _ = opened
    assert not page.locator(".explorer fieldset").is_visible()
    assert page.locator(".explorer tbody tr").count() == 3
    assert "MFU" in page.locator(".explorer").inner_text()


def test_the_planners_states_stay_below_600_kilobytes_and_two_pages_lead_to_them(book):
    assert (book / "explorers" / "planner.js").stat().st_size < 600_000
    assert 'href="planner.html"' in (book / "index.html").read_text()
    assert 'href="../planner.html"' in (book / "lectures" / "17_planner.html").read_text()
