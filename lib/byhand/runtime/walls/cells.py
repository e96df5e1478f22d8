"""What of a notebook cell plain Python can run. Pure text in, text out."""

from __future__ import annotations

import ast
import re

_MAGIC_LINE = re.compile(r"^\s*([%!?]|.*\?\s*$)")


def runnable(source: str) -> str:
    """A cell's text for plain Python: a cell magic becomes nothing, magic lines become `pass`.

    Text that is Python already is left alone, and line numbers stay as they are. Parsing strange
    text can crash Python itself: call this where a crash costs nothing but a rank.
    """
    if source.lstrip().startswith("%%"):
        return ""
    if _parses(source):
        return source
    plain = "\n".join(_without_magic(line) for line in source.split("\n"))
    return plain if _parses(plain) else source


def _without_magic(line: str) -> str:
    if not _MAGIC_LINE.match(line):
        return line
    return line[: len(line) - len(line.lstrip())] + "pass"


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
