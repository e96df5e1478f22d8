"""Pictures of earlier runs, for machines where a lecture cannot make its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.display import SVG

FOLDER = Path(__file__).with_suffix("")


def recorded(name: str) -> SVG:
    """The stored picture of that name, wherever the notebook runs; `make figures` draws it anew.

    Raises:
        FileNotFoundError: there is none.
    """
    from IPython.display import SVG

    return SVG(filename=str(FOLDER / f"{name}.svg"))
