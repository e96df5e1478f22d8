"""What a page says of itself where its link is shared: a description, a title, a picture.

The picture needs an absolute address, for those who show links follow no other. So a page names one
only where pyproject.toml's [project.urls] says, as Documentation, where the book is served.
"""

from __future__ import annotations

import io
import re
import textwrap
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from byhand.figures import style
from byhand.figures.schedule import COLOURS
from byhand.pipeline_schedules.orders import one_forward_one_backward
from byhand.pipeline_schedules.simulation import simulate

CARDS = "_images/cards"  # of the book
SIZE = (1200, 630)  # pixels, the shape that most sites show whole
MOST = 250  # characters of a description, which is cut after a sentence
SHORTEST = 60  # characters of the paragraph that describes a page
COURSE = (
    "Write data, tensor, pipeline and every other parallelism of large models yourself, on real"
    " ranks that start from a notebook cell, on a laptop without a GPU."
)


def described(page: nodes.document | None) -> str:
    """The page's first paragraph that says something, as far as its sentences fit."""
    paragraphs = page.findall(nodes.paragraph) if page else ()
    texts = (" ".join(one.astext().split()) for one in paragraphs)
    text = next((t for t in texts if len(t) >= SHORTEST and not t.startswith("Time:")), COURSE)
    found = ""
    for sentence in re.split(r"(?<=[.?!]) ", text):
        if found and len(found) + len(sentence) >= MOST:
            break
        found = f"{found} {sentence}".strip()
    return textwrap.shorten(found, MOST, placeholder=" …")


def tags(course: str, title: str, description: str, address: str, picture: str) -> str:
    """The head's elements for one page; address and picture are absolute, or "" for none."""
    properties = {
        "og:type": "website",
        "og:site_name": course,
        "og:title": title,
        "og:description": description,
        "og:url": address,
        "og:image": picture,
        "og:image:alt": title if picture else "",
    }
    named = {
        "description": description,
        "twitter:card": "summary_large_image" if picture else "",
    }
    return "".join(
        f'<meta {kind}="{name}" content="{escape(text)}" />\n'
        for kind, all_of in (("name", named), ("property", properties))
        for name, text in all_of.items()
        if text
    )


def card(course: str, title: str, description: str) -> bytes:
    """A page's picture, as PNG: its title, what it is about, and a pipeline's step below."""
    with style.styled():
        figure = style.CourseFigure((SIZE[0] / 100, SIZE[1] / 100), dpi=100)
        axes = figure.add_axes((0.06, 0.06, 0.88, 0.17))
        _pipeline(axes)
        look: dict[str, Any] = {"ha": "left", "va": "top", "color": style.INK}
        figure.text(0.06, 0.92, course, fontsize=20, **{**look, "color": style.COMPUTE})
        lines = textwrap.wrap(title, 32)
        figure.text(0.06, 0.83, "\n".join(lines), fontsize=40, weight="bold", **look)
        below = 0.83 - 0.115 * len(lines) - 0.03
        room = max(1, int((below - 0.25) / 0.055))
        words = textwrap.wrap(description, 66, max_lines=room, placeholder=" …")
        figure.text(0.06, below, "\n".join(words), fontsize=20, linespacing=1.4, **look)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _pipeline(axes: Any) -> None:
    """Four stages, eight micro-batches, one step of 1F1B on paper."""
    timeline = simulate(one_forward_one_backward(4, 8))
    for span in timeline.spans:
        bar = [(span.start, span.end - span.start)]
        colour = COLOURS[span.action.kind]
        axes.broken_barh(bar, (span.stage, 0.86), fc=colour, ec=style.PAPER, lw=1)
    style.bare(axes, xlim=(0, timeline.seconds), ylim=(4, 0))


def add_tags(app: Sphinx, page: str, _template: str, context: dict[str, Any], doctree: Any) -> None:
    """Sphinx asks this for each page: its tags, and its card beside them."""
    if doctree is None:  # the search page, and other pages that nobody shares
        return
    title, place = app.env.titles[page].astext(), app.config.html_baseurl
    course, description = app.config.project, described(doctree)
    address = picture = ""
    if place:
        name = page.replace("/", "-") + ".png"
        path = Path(app.outdir) / CARDS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(card(course, title, description))
        address, picture = f"{place}{page}.html", f"{place}{CARDS}/{name}"
    context["metatags"] += tags(course, title, description, address, picture)
