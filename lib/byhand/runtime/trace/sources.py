"""Lines of code as a reader of the notebook knows them: `In [3] line 5`, `collectives.py:41`."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterable
from typing import Any

MAX_LINE = 300
_TORCH = re.compile(r"/(site|dist)-packages/(torch/|typing_extensions\.py$)")
_LIBRARY = re.compile(
    r"/(site|dist)-packages/(?!byhand/)|/lib/python3\.\d+/(?!(site|dist)-)|^<frozen "
)
_RUNTIME = re.compile(r"/byhand/(runtime|check)/|^<frozen ")


def is_torch(filename: str) -> bool:
    """Whether a file is torch's own."""
    return bool(_TORCH.search(filename))


def is_library(filename: str) -> bool:
    """Whether a file is an installed package's, this one excepted, or Python's own."""
    return bool(_LIBRARY.search(filename))


def is_readers(filename: str) -> bool:
    """Whether a file is the reader's to look at: not torch's, and not this package's."""
    return not is_torch(filename) and not _RUNTIME.search(filename)


def readers_line(frames: Iterable[tuple[str, int]]) -> str:
    """The first of these that is the reader's: of a library's lines only where no other is.

    frames: innermost first. "" where none is.
    """
    theirs = [frame for frame in frames if is_readers(frame[0])]
    own = [frame for frame in theirs if not is_library(frame[0])]
    return next((line_name(*frame) for frame in own or theirs), "")


def cell_number(filename: str) -> int | None:
    """The execution count of the notebook cell that was compiled as `filename`, if one was."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    numbers = getattr(getattr(shell, "compile", None), "_filename_map", {})
    return numbers.get(filename)


def line_name(filename: str, line: int) -> str:
    """A line's name: by notebook cell where there is one, else by file."""
    number = cell_number(filename)
    if number is not None:
        return f"In [{number}] line {line}"
    if filename.startswith("<") and filename.endswith(">"):
        return f"{filename[1:-1]} line {line}"
    return f"{os.path.basename(filename)}:{line}"


def remember(label: str, source: str) -> None:
    """Let tracebacks show the text of a cell that is run under the file name `<label>`."""
    lines = source.splitlines(keepends=True)
    linecache.cache[f"<{label}>"] = (len(source), None, lines, f"<{label}>")


def code_line(filename: str, line: int, cells: dict[str, str] | None) -> str:
    """The text of a line; "" where there is none.

    `cells`: texts by label, if no other text may be shown. A stranger's program names its files
    as it likes, also after ones of this machine that it may not read.
    """
    if cells is None:
        return linecache.getline(filename, line).strip()
    lines = cells.get(filename.removeprefix("<").removesuffix(">"), "").splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def traceback_text(
    frames: list[tuple[str, int, str]], message: str, cells: dict[str, str] | None = None
) -> str:
    """The reader's frames (all, if none is) and the message, with code as `code_line` has it.

    Where torch raised, its own innermost line, too: the message alone may be empty.
    """
    lines, theirs = [], [frame for frame in frames if is_readers(frame[0])]
    raised = [frame for frame in frames[-1:] if is_torch(frame[0])]
    for filename, line, name in theirs + raised if theirs else frames:
        lines.append(f"  {line_name(filename, line)}, in {name}")
        code = code_line(filename, line, cells)
        if code:
            lines.append(f"    {code[:MAX_LINE]}")
    return "\n".join([*lines, message])
