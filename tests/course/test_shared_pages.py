"""The book's pages as they are sent to others: the first is the README, and none names a stranger.

Nothing is executed or drawn by a browser here: test_book.py does both.
"""

import json
import re
import struct

import pytest

pytest.importorskip("sphinx", reason="the book's extra is not installed: pip install .[book]")

from docutils import nodes
from docutils.core import publish_doctree
from fontTools.ttLib import TTFont
from latex2mathml.converter import convert
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.book import sharing
from autograder.book.gather import PAGES, address_of, gather, place_of, shown
from autograder.places import COURSE, Places

REPOSITORY = "https://github.com/somebody/course"
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)
NOTEBOOKS = [*COURSE.glob("lectures/*.ipynb"), *COURSE.glob("exercises/*/*.ipynb")]


@pytest.fixture(scope="module", params=["", REPOSITORY], ids=["no address", "an address"])
def source(request, tmp_path_factory):
    """What Sphinx is to read, of lectures as they are written; and the repository's address."""
    target = tmp_path_factory.mktemp("source") / "book"
    gather(Places(COURSE, target / "class"), COURSE / "lectures", target, request.param, {})
    return target, request.param


def test_the_first_page_is_the_readme_as_far_as_its_lectures(source):
    first = (source[0] / "index.md").read_text()
    opening = (COURSE / "README.md").read_text().partition("\n[The course in one page]")[0]
    assert first.startswith(opening)
    assert "## If you study" not in first
    assert "## If you study" in (source[0] / "guide.md").read_text()
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", first)
    assert len(pictures) == 4
    assert all((source[0] / picture).is_file() for picture in pictures)


def test_the_page_for_who_teaches_is_there_and_its_links_lead_into_the_book(source):
    target, teach = source[0], (source[0] / "teach.md").read_text()
    assert teach.startswith("# Run this as a course\n")
    assert "(teach.md)" in (target / "guide.md").read_text()
    assert "(lectures/course.md)" in teach
    assert "(../" not in teach


def test_only_a_repository_that_is_set_is_linked_to(source):
    target, address = source
    pages = [target / "index.md", target / "guide.md", target / "lectures" / "01_ranks.ipynb"]
    for page in pages:
        assert ("github.com" in _links(page)) == bool(address), page.name
    lecture = "somebody/course/blob/main/lectures/01_ranks.ipynb"
    assert (f"colab.research.google.com/github/{lecture}" in pages[2].read_text()) == bool(address)
    if address:
        assert f"({address}/blob/main/CONTRIBUTING.md)" in pages[1].read_text()


def _links(page) -> str:
    """Where the page leads, without what a lecture itself links to on GitHub."""
    text = page.read_text()
    if page.suffix == ".ipynb":
        text = next("".join(c["source"]) for c in json.loads(text)["cells"] if c["id"] == "doors")
    return " ".join(re.findall(r"\]\((https?:[^)]*)\)", text))


def test_a_page_holds_no_state_of_widgets():
    notebook = new_notebook(cells=[new_markdown_cell("# 1 · Why?"), new_code_cell("1")])
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    assert "widgets" not in shown(notebook, "01_ranks.ipynb", "").metadata


def page(text: str) -> nodes.document:
    return publish_doctree(text)


def test_a_page_is_described_by_its_first_paragraph_in_whole_sentences():
    first = "Many ranks add up what they hold, and all get the same sum. " * 3
    found = sharing.described(page(f"1 · Why?\n========\n\nTime: about 5 minutes\n\n{first}"))
    assert found == " ".join([first.split(" Many")[0]] * 3)
    long = page("Word " * 100)
    assert len(sharing.described(long)) <= sharing.MOST
    assert sharing.described(page("Short.")) == sharing.described(None) == sharing.COURSE


def test_a_shared_page_has_title_and_description_and_a_picture_only_where_the_book_is_served():
    asked = ("By hand", '1 · "Why?"', "What is a <rank>?")
    alone = sharing.tags(*asked, "", "")
    assert '<meta property="og:title" content="1 · &quot;Why?&quot;" />' in alone
    assert '<meta name="description" content="What is a &lt;rank&gt;?" />' in alone
    assert "image" not in alone
    assert "og:url" not in alone
    urls = {"Documentation": "https://example.org/book", "Repository": f"{REPOSITORY}/"}
    place = place_of({"project": {"urls": urls}})
    served = sharing.tags(*asked, f"{place}a.html", f"{place}a.png")
    assert '<meta property="og:image" content="https://example.org/book/a.png" />' in served
    assert "summary_large_image" in served
    assert address_of({"project": {"urls": urls}}) == REPOSITORY
    assert place_of({"project": {}}) == address_of({"project": {}}) == ""


def test_a_pages_picture_has_the_shape_that_sites_show_whole():
    drawn = sharing.card("By hand", "11 · Who talks to whom at 10 000 GPUs?", sharing.COURSE)
    assert drawn.startswith(b"\x89PNG")
    assert struct.unpack(">II", drawn[16:24]) == sharing.SIZE
    assert len(drawn) < 100_000


# Formulas


def test_the_maths_font_has_every_character_of_every_formula():
    font, path = TTFont(PAGES / "math.woff"), PAGES / "math.woff"
    assert "MATH" in font
    assert path.stat().st_size < 200_000
    assert "OPEN FONT LICENSE" in (PAGES / "math-OFL.txt").read_text()
    known = {chr(code) for code in font.getBestCmap()}
    missing = {c: where for c, where in characters().items() if c not in known}
    assert missing == {}, "see pages/math-OFL.txt for how the font is made"


def characters() -> dict[str, str]:
    """Every character of the formulas of lectures and exercises, as drawn, with one place each."""
    found = {}
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text())["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
        for formula in (one or other for one, other in FORMULA.findall(text)):
            for tag, words in re.findall(r"<(m\w+)[^>]*>([^<]+)<", convert(formula)):
                for character in _unescaped(words):
                    found[_italic(character) if tag == "mi" and len(words) == 1 else character] = (
                        f"{path.name}: {formula}"
                    )
    return found


def _unescaped(words: str) -> str:
    return re.sub(r"&#x([0-9A-Fa-f]+);", lambda code: chr(int(code[1], 16)), words)


def _italic(letter: str) -> str:
    """How a browser draws a formula's single letter, which is not an h."""
    for first, last, code in (("A", "Z", 0x1D434), ("a", "z", 0x1D44E), ("α", "ω", 0x1D6FC)):
        if first <= letter <= last:
            return "ℎ" if letter == "h" else chr(code + ord(letter) - ord(first))
    return letter
