"""How large the house is, as `make test` prints it: sizes inform, and no test judges by them."""

import ast
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("lib/byhand/runtime", "lib/byhand", "autograder", "tests")
LONG_MODULE, LONG_FUNCTION = 250, 40  # lines, from which on a file or a function is named


def table() -> list[str]:
    """Lines and files by room, and what is long in the library and the autograder."""
    rows, long = [], []
    for room in ROOMS:
        texts = {path: path.read_text() for path in sorted((ROOT / room).rglob("*.py"))}
        lines = sum(text.count("\n") for text in texts.values())
        rows.append(f"{room}: {lines:,} lines in {len(texts)} files")
        if room in ("lib/byhand", "autograder"):
            long += [found for path, text in texts.items() for found in _long(path, text)]
    for page in ("README.md", "CONTRIBUTING.md"):
        rows.append(f"{page}: {(ROOT / page).read_text().count(chr(10))} lines")
    rows += [_lecture(path) for path in sorted((ROOT / "lectures").glob("*.ipynb"))]
    return [*rows, *long]


def _lecture(path: Path) -> str:
    """Its cells and words, and the longest of each kind."""
    cells = json.loads(path.read_text())["cells"]
    words, lines = [], []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            words.append(len(re.findall(r"\w[\w'’.-]*", source)))
        else:
            lines.append(sum(1 for line in source.splitlines() if line.strip()))
    return (
        f"{path.relative_to(ROOT)}: {len(cells)} cells, {sum(words):,} words; "
        f"a cell has at most {max(words)} words, {max(lines)} lines"
    )


def _long(path: Path, text: str) -> list[str]:
    name = path.relative_to(ROOT)
    count = text.count("\n")
    found = [f"  {name}: {count} lines"] if count > LONG_MODULE else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = node.end_lineno - node.lineno + 1
            found += [f"  {name}, {node.name}: {count} lines"] if count > LONG_FUNCTION else []
    return found
