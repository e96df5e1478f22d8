"""A drawing as HTML that says its title to whoever cannot see it.

JupyterLab shows an SVG as an image without a word for a screen reader, and not at all in a notebook
that it does not trust. An <img> has both; the drawing lies in it, a few percent longer than alone.
"""

import html
import re
from urllib.parse import unquote

_TITLE = re.compile(r"<dc:title>(.*?)</dc:title>", re.DOTALL)
_START = '<img src="data:image/svg+xml;charset=utf-8,'
_NOT_IN_A_SOURCE = {ord(sign): f"%{ord(sign):02X}" for sign in '%#"&\n'}
_SOURCE = re.compile(re.escape(_START) + '([^"]*)"')


def as_image(svg: str) -> str:
    """An <img> of the drawing, whose title is its alternative text."""
    return f'{_START}{svg.translate(_NOT_IN_A_SOURCE)}" alt="{html.escape(title_of(svg))}">'


def drawing_in(page: str) -> str:
    """The drawing of such an <img>; "" where there is none."""
    found = _SOURCE.search(page)
    return unquote(found[1]) if found else ""


def title_of(svg: str) -> str:
    """A drawing's title, in one line; "" where it has none."""
    found = _TITLE.search(svg)
    return html.unescape(" ".join(found[1].split())) if found else ""
