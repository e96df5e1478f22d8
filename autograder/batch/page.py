"""An executed notebook as one HTML page: folds as in Jupyter, formulas as MathML, no script.

A page opens without a network: nbconvert's own loads its formulas' script from elsewhere.
"""

import base64
import html
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from autograder.pages import TEMPLATES

WIDGET = "widget-view"
MATH_FONT = Path(__file__).parents[1] / "book" / "pages" / "math.woff"


class _Renderer(IPythonRenderer):  # type: ignore[misc]
    """nbconvert's Markdown, its formulas as MathML, which browsers draw by themselves."""

    def inline_math(self, body: str) -> str:
        return f'<span class="math">{_mathml(body)}</span>'

    def block_math(self, body: str) -> str:
        return f'<div class="math-block" tabindex="0">{_mathml(body, "block")}</div>'


def _mathml(formula: str, display: str = "inline") -> str:
    """A formula as MathML; one that cannot be read stays as it was written."""
    try:
        return str(convert(formula, display=display))
    except Exception:  # latex2mathml raises a dozen kinds
        return f"<code>{html.escape(formula)}</code>"


class PageExporter(HTMLExporter):  # type: ignore[misc]
    """nbconvert's page of a notebook, by templates/lecture.html.j2."""

    def __init__(self, **options: Any):
        loaders = [FileSystemLoader(TEMPLATES)]
        super().__init__(
            embed_images=True, extra_loaders=loaders, template_file="lecture.html.j2", **options
        )
        font = base64.b64encode(MATH_FONT.read_bytes()).decode()
        self.environment.globals["math_font"] = font  # a fraction's bar lies right in few others
        kinds = self.config.NbConvertBase.display_data_priority
        last = sorted(kinds, key=lambda kind: WIDGET in kind)  # a widget needs a kernel
        self.config.NbConvertBase.display_data_priority = last

    @pass_context
    def markdown2html(self, context: Any, source: str) -> str:
        """A Markdown cell, images of the notebook's folder within it."""
        path = context.get("resources", {}).get("metadata", {}).get("path", "")
        attachments = context.get("cell", {}).get("attachments", {})
        renderer = _Renderer(escape=False, embed_images=True, path=path, attachments=attachments)
        return str(MarkdownWithMath(renderer=renderer).render(source))


def write_html(notebook: Path) -> Path:
    """The executed notebook as a page beside it; of a widget, which needs a kernel, its picture."""
    page, _ = PageExporter().from_filename(str(notebook))
    target = notebook.with_suffix(".html")
    target.write_text(page, encoding="utf-8")
    return target
