"""Pictures of earlier runs, for machines where a lecture cannot make its own."""

from dataclasses import dataclass
from pathlib import Path

from byhand.figures.alt import as_image

FOLDER = Path(__file__).with_suffix("")


@dataclass(frozen=True)
class Recorded:
    """A stored picture, which shows itself in a notebook."""

    data: str

    def _repr_html_(self) -> str:
        return as_image(self.data)


def recorded(name: str) -> Recorded:
    """The stored picture of that name, wherever the notebook runs; `make figures` draws it anew.

    Raises:
        FileNotFoundError: there is none.
    """
    return Recorded((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))
