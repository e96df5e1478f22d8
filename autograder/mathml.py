"""Formulas as MathML, which browsers draw by themselves: no script, and one font, which is here.

Without a font that has a table for maths, a browser draws a fraction's bar through its numerator.
"""

import html
import re
from pathlib import Path

from latex2mathml.converter import convert

PAGES = Path(__file__).parent / "book" / "pages"
FONT, CSS = PAGES / "math.woff", PAGES / "math.css"
# latex2mathml has matrices and cases; of these it makes something else, without a word.
_ALIGNED = re.compile(r"\\begin\{(align|aligned|gather|gathered|split|multline|equation)\*?\}")


def mathml(formula: str, display: str = "inline") -> str:
    """A formula, "inline" or a "block"; one that cannot be drawn stays as it was written."""
    try:
        if not _ALIGNED.search(formula):
            return str(convert(formula, display=display))
    except Exception:  # latex2mathml raises a dozen kinds
        pass
    return f"<code>{html.escape(formula)}</code>"
