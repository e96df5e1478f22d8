"""An executed notebook as one HTML page: folds as in Jupyter, formulas as MathML, no script.

A page opens without a network: nbconvert's own loads its formulas' script from elsewhere.
"""

import base64
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from autograder.mathml import CSS, FONT, mathml
from autograder.pages import TEMPLATES

WIDGET = "widget-view"


class _Renderer(IPythonRenderer):
    """nbconvert's Markdown, its formulas as MathML, which browsers draw by themselves.

    Where it looks for images in HTML it closes what a block leaves open. A fold begins in one block
    and ends in another, so HTML without an image stays as it is.
    """

    def block_html(self, html: str) -> str:
        return super().block_html(html) if "<img" in html else html + "\n"

    def inline_html(self, html: str) -> str:
        return super().inline_html(html) if "<img" in html else html

    def inline_math(self, body: str) -> str:
        return f'<span class="math">{mathml(body)}</span>'

    def block_math(self, body: str) -> str:
        return block(body)

    def latex_environment(self, name: str, body: str) -> str:
        return block(f"\\begin{{{name}}}{body}\\end{{{name}}}")


def block(formula: str) -> str:
    """A formula of its own, which scrolls where a phone is narrower."""
    return f'<div class="math" tabindex="0">{mathml(formula, "block")}</div>'


class PageExporter(HTMLExporter):
    """nbconvert's page of a notebook, by templates/lecture.html.j2."""

    def __init__(self, **options: Any):
        loaders = [FileSystemLoader(TEMPLATES)]
        super().__init__(
            embed_images=True, extra_loaders=loaders, template_file="lecture.html.j2", **options
        )
        self.environment.globals["math_font"] = base64.b64encode(FONT.read_bytes()).decode()
        self.environment.globals["math_css"] = CSS.read_text()
        self.environment.filters["math_block"] = lambda text: block(text.strip().strip("$"))
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
