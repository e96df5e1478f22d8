"""The part of a test that is running: its name, its random inputs, and how it fails.

The one place with state: which part it is, the seed that its inputs are drawn from, and the row
of a board.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from byhand.check.drivers import nothing_by_luck
from byhand.check.errors import CheckError
from byhand.runtime.launching import call
from byhand.runtime.pickling import set_wrapper
from byhand.words import amount_text, plain_text

LONGEST_NAME = 24  # characters of a pseudonym


@dataclass
class _State:
    seed: int = 0
    part: str | None = None
    board: dict[str, Any] = field(default_factory=dict)
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def restart(self) -> None:
        """The same inputs again for this seed and part."""
        digest = hashlib.sha256(f"{self.seed}:{self.part}".encode()).digest()
        self.generator.manual_seed(int.from_bytes(digest[:7], "big"))


_state = _State()


@contextmanager
def part(name: str) -> Iterator[None]:
    """Name a part of a test: every failure inside begins with `name`.

    A CheckError carries `name` as `.part`; any other exception keeps its type and gets `.part`
    and a note. The random inputs inside depend on the seed and on `name` alone. A part inside a
    part adds its name to the outer one's. What is launched inside leaves nothing to luck.

    >>> with part("three ranks"):
    ...     equal(1, 2)
    Traceback (most recent call last):
        ...
    byhand.check.errors.CheckError: three ranks: the result is wrong. got 1 expected 2
    """
    before = _state.part
    name = f"{before}, {name}" if before else name
    _state.part = name
    _state.restart()
    around = set_wrapper(nothing_by_luck)
    try:
        yield
    except Exception as error:
        if not hasattr(error, "part"):
            error.part = name  # type: ignore[attr-defined] # which it has from now on
            error.add_note(f"This happened in the part of the test named: {name}")
        raise
    finally:
        _state.part = before
        set_wrapper(around)


def set_seed(seed: int) -> None:
    """Draw other random inputs from here on; the seed at the start is 0."""
    _state.seed = seed
    _state.restart()


def random(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A tensor of normally distributed numbers.

    >>> set_seed(0)
    >>> with part("a batch"):
    ...     first = random(2, 3)
    >>> with part("a batch"):
    ...     again = random(2, 3)
    >>> first.equal(again), first.dtype
    (True, torch.float64)
    """
    return torch.randn(shape, generator=_state.generator, dtype=dtype)


def whole_numbers(
    *shape: int, low: int = 1, high: int = 100, dtype: torch.dtype = torch.float64
) -> Tensor:
    """A tensor of whole numbers from `low` to `high` - 1: their sums are exact in any order.

    >>> numbers = whole_numbers(2, 3, low=1, high=5)
    >>> tuple(numbers.shape), numbers.equal(numbers.round())
    ((2, 3), True)
    """
    return torch.randint(low, high, shape, generator=_state.generator).to(dtype)


def board(pseudonym: Callable[[], object], **amounts: str | float) -> None:
    """Print what an answer came to, and keep it for the class's board.

    pseudonym: a driver, which returns the student's text. With one (cut to 24 characters of one
    line) the class sees the row under it; without (empty, no text at all, or an error) the
    instructor alone does, and the error is named. The amounts are the instructor's, by column, of
    what a visible part of the test counted. The board is ordered by its numbers, the first column's
    first, fewer before more; no points depend on it.

        check.board(drive_name, layout=str(layout), modelled_seconds=0.52, peak_bytes=345_792)

    Raises:
        ValueError: a number is none that others can be set beside.
    """
    row = {name.replace("_", " "): value for name, value in amounts.items()}
    for name, value in row.items():
        if not isinstance(value, str) and not math.isfinite(value):
            raise ValueError(f"{name}: {value} is no number for a board")
        print(f"{name}: {amount_text(value)}")
    name, why = _pseudonym(pseudonym)
    _state.board = {"name": name, "row": [*map(list, row.items())]}
    print(
        f"The class's board has this {f'as {name}' if name else 'for the instructor alone'}{why}."
    )


def _pseudonym(driver: Callable[[], object]) -> tuple[str, str]:
    """What the driver gives, as one short line, and why there is none; no mark depends on it."""
    try:
        given = call(driver)
    except Exception as error:
        return "", f": reading the name raised {type(error).__name__}"
    if not isinstance(given, str):
        return "", f": the name is no text, but of type {type(given).__name__}"
    line = " ".join(plain_text(given).split())
    return line[:LONGEST_NAME].strip(), ""


def take_board() -> dict[str, Any]:
    """What a test put on the board last, once, {} if nothing.

    As {"name": ..., "row": [[column, amount], ...]}: the columns' order outlives a journal.
    """
    taken, _state.board = _state.board, {}
    return taken


def fail(sentence: str, lines: Iterable[str] = (), of: str = "values") -> None:
    """Raise a CheckError of this part: a sentence, and lines below it. `of`: one of KINDS."""
    raise CheckError("\n".join([sentence, *(f"  {line}" for line in lines)]), _state.part, of)
