"""A figure as SVG in short pieces, which the states of an explorer share.

Text stays text, as long as matplotlib made it: in another font too each word keeps its place.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from html import escape
from xml.etree import ElementTree

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from byhand.figures import save_svg

STRETCHED = 4  # letters from which on a text is given its length
FONT = "font-family: 'DejaVu Sans'; "  # the style sheet says so once
LEFT_OUT = ("title", "metadata", "style")
_BOX = re.compile(r"M (\S+) (\S+) L (\S+) \2 L \3 (\S+) L \1 \4 (?:L \1 \2 )?z ?")
_NUMBER = re.compile(r"-?\d+\.\d+")
_SIZE = re.compile(r"font-size: ([\d.]+)px")


def pieces(figure: Figure) -> list[str]:
    """Their concatenation is the figure, with its title for those who cannot see it."""
    buffer = io.StringIO()
    save_svg(figure, buffer, text="none")
    root = ElementTree.fromstring(buffer.getvalue())
    title = escape(next(each.text or "" for each in root if _tag(each) == "title"))
    look = 'role="img" stroke-linejoin="round" stroke-linecap="butt"'
    begin = f'<svg viewBox="{root.get("viewBox")}" {look}', f' aria-label="{title}">'
    return [*begin, *(piece for each in root for piece in _pieces(each)), "</svg>"]


def _pieces(element: ElementTree.Element) -> Iterator[str]:
    """Where an element is, then how it looks, then what is in it."""
    tag, given = _tag(element), {_tag(name): value for name, value in element.attrib.items()}
    if tag in LEFT_OUT:
        return
    inside = [piece for each in element for piece in _pieces(each)]
    if tag == "g":
        given.pop("id", None)
        if not given or not inside:
            yield from inside
            return
    look: dict[str, str] = {n: given.pop(n) for n in ("style", "clip-path") if n in given}
    if given.get("transform", "").startswith("rotate(-0 "):
        del given["transform"]
    text = (element.text or "").strip()
    if len(text) >= STRETCHED:
        look["textLength"] = f"{_length(text, look['style']):.1f}"
        look["lengthAdjust"] = "spacingAndGlyphs"
    look |= {"style": look["style"].replace(FONT, "")} if "style" in look else {}
    yield f"<{tag}" + "".join(f' {name}="{_short(name, each)}"' for name, each in given.items())
    yield "".join(f' {name}="{escape(each)}"' for name, each in look.items()) + ">"
    yield from inside
    yield f"{escape(text, quote=False)}</{tag}>"


def _tag(name: ElementTree.Element | str) -> str:
    """Without its namespace."""
    return (name if isinstance(name, str) else name.tag).rpartition("}")[2]


def _short(name: str, value: str) -> str:
    """A number to a tenth of a point, a box by its corners; a picture's bytes as they are."""
    if name in ("href", "id"):
        return value
    rounded = _NUMBER.sub(lambda one: f"{float(one[0]):.1f}".removesuffix(".0"), value)
    return _BOX.sub(r"M\1 \2H\3V\4H\1z", " ".join(rounded.split()) + " ").strip()


def _length(text: str, style: str) -> float:
    """In points, as matplotlib lays it out."""
    (size,), weight = _SIZE.findall(style), 700 if "font-weight: 700" in style else 400
    font = FontProperties(family="DejaVu Sans", size=float(size), weight=weight)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
