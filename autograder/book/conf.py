"""Sphinx's settings for the book; build.py names this folder. Source of each: Sphinx, myst-nb.

Formulas are MathML: see autograder/mathml.py.
"""

from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import byhand
from autograder.book.sharing import add_tags
from autograder.mathml import mathml

PAGES = Path(__file__).parent / "pages"

project = "Distributed training, by hand"
author = "the course's authors"
copyright = "text and figures CC BY 4.0, code MIT"
language = "en"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = [".doctrees", "notebooks"]

# Names that are loaded at their first use are otherwise not seen.
vars(byhand).update((name, getattr(byhand, name)) for name in byhand.__all__)
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 60

html_theme = "furo"
html_title = project
html_static_path = [
    str(PAGES / name)
    for name in ("book.css", "figures.js", "math.css", "math.woff", "math-OFL.txt")
]
html_css_files, html_js_files = ["math.css", "book.css"], ["figures.js"]
html_favicon = str(PAGES / "favicon.svg")
html_math_renderer = "mathml"
html_copy_source = False
html_use_index = False  # the reference's pages are short, and an index would scroll sideways
html_show_sphinx = False
highlight_language = "none"  # docstrings are prose
pygments_style, pygments_dark_style = "a11y-light", "a11y-dark"

nb_execution_mode = "off"  # executed already, by papermill
nb_ipywidgets_js: dict[str, Any] = {}  # a widget is shown by its picture
nb_mime_priority_overrides = [("html", "image/svg+xml", 0), ("html", "image/png", 0)]
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure", "mystnb.unknown_mime_type"]


def inline(writer: Any, node: nodes.Element) -> None:
    """A formula within a line."""
    writer.body.append(f'<span class="math">{mathml(node.astext())}</span>')
    raise nodes.SkipNode


def block(writer: Any, node: nodes.Element) -> None:
    """A formula of its own, which scrolls where a phone is narrower."""
    formula = mathml(node.astext(), "block")
    writer.body.append(f'<div class="math" tabindex="0">{formula}</div>')
    raise nodes.SkipNode


def as_written(
    _app: Sphinx, _what: str, _name: str, _thing: object, _options: object, lines: list[str]
) -> None:
    """Docstrings are shown in their lines: their tables are made of spaces."""
    lines[:] = ["::", "", *(f"   {line}" for line in lines)] if any(lines) else []


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("autodoc-process-docstring", as_written)
    app.connect("html-page-context", add_tags)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
