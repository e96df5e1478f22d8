"""The book as a stranger opens it: in a real browser, wide and narrow, from the file system."""

from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from test_browser import CONTRAST

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
    fixed: all('article img').filter(e => !e.closest('a, form')).map(e => e.src),
    broken: all('img').filter(e => e.complete && !e.naturalWidth).map(e => e.src),
    links: all('a[href]').map(e => e.href).filter(h => h.startsWith('file:')),
    ids: all('[id]').map(e => e.id),
    told: all('meta[name=description], meta[property="og:title"]').map(e => e.content),
    raw: document.querySelector('article').innerText.match(/\\\\(frac|sum|cdot|text)/g) || [],
  };
}"""


@pytest.fixture(scope="module")
def book(tmp_path_factory) -> Path:
    """The book, of the lectures that `make course` or `make lectures` executed, or executed now."""
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
def seen(book, browser):
    """What a browser finds on each page, by width and file; and what it complained of."""
    found, complaints = {}, []
    for width in WIDTHS:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else 0)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: complaints.append(asked.url) if abroad(asked.url) else 0)
        for path in sorted(book.rglob("*.html")):
            page.goto(path.as_uri())
            found[width, path] = page.evaluate(LOOK)
        page.close()
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
        wrong = [look[name] for name in ("silent", "broken", "fixed", "raw")]
        assert wrong == [[], [], [], []], about


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
def test_every_word_stands_out_and_the_search_finds(book, browser, theme):
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


# Figures and formulas


@pytest.fixture
def lecture(book, browser, request):
    """Lecture 02's page, on a phone unless a width is given."""
    width = getattr(request, "param", WIDTHS[1])
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((book / "lectures" / "02_collectives.html").as_uri())
    yield page
    page.close()


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
    assert fonts == [["Course Math", "loaded"]]
    apart = """[...document.querySelectorAll('mfrac')].map(one => {
      const [above, below] = [...one.children].map(part => part.getBoundingClientRect());
      return below.top - above.bottom;
    })"""
    assert min(lecture.evaluate(apart)) > 0


# What moves without a kernel

EVERY_STATE = """() => {
  const controls = [...document.querySelectorAll('form.explorer :is(select, input)')];
  const found = {};
  const turn = (rest, key) => {
    if (!rest.length) {
      found[key.join('|')] = document.querySelector('.explorer .shown').innerHTML;
      return;
    }
    const last = rest[0].options ? rest[0].options.length - 1 : Number(rest[0].max);
    for (let place = 0; place <= last; place++) {
      rest[0][rest[0].options ? 'selectedIndex' : 'value'] = place;
      rest[0].dispatchEvent(new Event('input', {bubbles: true}));
      turn(rest.slice(1), [...key, place]);
    }
  };
  turn(controls, []);
  return Object.entries(found).map(([key, text]) => [
    key, /<svg|<li>|<p/.test(text), /undefined|NaN|\\{(\\d+|\\*)\\}/.test(text)]);
}"""
CONTROLS = ".explorer fieldset :is(select, input)"
UNFOLD = "for (const fold of document.querySelectorAll('details')) fold.open = true"
MOVED = [
    "planner",
    *("lectures/02_collectives", "lectures/03_all_reduce", "lectures/04_communication_cost"),
    "lectures/09_pipeline_parallel",
    *("lectures/10_pipeline_schedules", "lectures/11_rank_groups", "lectures/14_expert_parallel"),
    "lectures/16_fault_tolerance",
]


@pytest.fixture
def opened(book, browser):
    """Opens a page with an explorer, which is looked at: the page, and what it asks for."""
    context = {True: browser.new_context(), False: browser.new_context(java_script_enabled=False)}

    def open_page(name, script=True):
        page, asked = context[script].new_page(), []
        page.on("request", lambda one: asked.append(one.url))
        page.goto((book / f"{name}.html").as_uri())
        page.evaluate(UNFOLD)  # an explorer may answer a Predict
        page.locator(".explorer").scroll_into_view_if_needed()
        if script:
            page.locator(".explorer fieldset").wait_for()
        return page, asked

    yield open_page
    for one in context.values():
        one.close()


def test_every_explorer_of_the_lectures_is_looked_at_here(book):
    pages = [path for path in book.rglob("*.html") if '<form class="explorer"' in path.read_text()]
    assert sorted(str(path.relative_to(book))[:-5] for path in pages) == sorted(MOVED)


@pytest.mark.parametrize("name", MOVED)
def test_every_control_changes_the_page_by_keyboard(opened, name):
    page, asked = opened(name)
    shown, controls = page.locator(".explorer .shown"), page.locator(CONTROLS)
    for number in range(controls.count()):
        control = controls.nth(number)
        if control.is_disabled():  # by the first: a root, of a collective that has none
            controls.first.focus()
            page.keyboard.press("Home")
        for _ in range(20):
            if control.is_enabled():
                break
            controls.first.focus()
            page.keyboard.press("ArrowDown")
        before = shown.inner_html()
        control.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")  # a slider goes down, a menu to its next option
        if shown.inner_html() == before:
            page.keyboard.press("ArrowUp")
        assert shown.inner_html() != before, f"control {number} changes nothing"
    assert all(address.startswith("file:") for address in asked), asked
    assert any(address.endswith(f"explorers/{Path(name).name}.js") for address in asked)


@pytest.mark.parametrize("name", MOVED)
def test_a_page_shows_each_of_its_states(opened, name):
    page, _ = opened(name)
    found = page.evaluate(EVERY_STATE)
    assert len(found) >= 30
    assert [key for key, whole, broken in found if broken or not whole] == []


@pytest.mark.parametrize("name", MOVED[1:])
def test_without_a_script_some_states_of_an_explorer_stand_and_nothing_dead(opened, name):
    page, _ = opened(name, script=False)
    assert not page.locator(".explorer fieldset").is_visible()
    assert page.locator(".explorer svg").count() > 1
    assert page.locator(".explorer figcaption").first.is_visible()


def test_without_a_script_the_planners_page_is_a_table_of_some_states(opened):
    page, _ = opened("planner", script=False)
    assert not page.locator(".explorer fieldset").is_visible()
    assert page.locator(".explorer tbody tr").count() == 3
    assert "MFU" in page.locator(".explorer").inner_text()


def test_a_button_plays_the_rounds_and_stops(opened):
    page, _ = opened("lectures/03_all_reduce")
    page.clock.install()  # the page's time passes only when it is told to
    page.reload()
    page.locator(".explorer").scroll_into_view_if_needed()
    page.locator(".explorer fieldset").wait_for()
    rounds, button = page.locator(CONTROLS).last, page.locator(".explorer button")
    last = rounds.get_attribute("max")
    rounds.focus()
    page.keyboard.press("End")
    assert rounds.input_value() == last
    button.press("Enter")
    assert (rounds.input_value(), button.inner_text()) == ("0", "stop")
    page.clock.run_for(900)
    assert rounds.input_value() == "1"
    button.press("Enter")
    assert button.inner_text() == "play"


def test_an_explorers_states_stay_below_600_kilobytes_and_two_pages_lead_to_the_planners(book):
    sizes = {path.stem: path.stat().st_size for path in (book / "explorers").glob("*.js")}
    assert set(sizes) == {"explorer", *(Path(name).name for name in MOVED)}
    assert max(sizes.values()) < 600_000
    assert 'href="planner.html"' in (book / "index.html").read_text()
    assert 'href="../planner.html"' in (book / "lectures" / "17_planner.html").read_text()
