"""Numbers and ranks in sentences, and text that any file can hold."""

import re
from collections.abc import Iterable, Mapping

_HISSING = ("s", "x", "ch", "sh")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# Control characters but for tabs and ends of lines, and the marks that turn text round or have no
# width; the two that join letters stay, as Persian and families of emoji need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def counted(number: float, noun: str, form: str = "") -> str:
    """A number and its noun, in the plural where there is not exactly one.

    form: the number's format, as after the colon of an f-string.

    >>> counted(1, "all-reduce"), counted(2000, "micro-batch", ",")
    ('1 all-reduce', '2,000 micro-batches')
    """
    ending = "" if number == 1 else "es" if noun.endswith(_HISSING) else "s"
    return f"{number:{form}} {noun}{ending}"


def amount_text(amount: str | float) -> str:
    """A whole number whole, any other with three decimals; a text as it is.

    >>> amount_text(345_792), amount_text(0.5652), amount_text("dp 2")
    ('345,792', '0.565', 'dp 2')
    """
    if isinstance(amount, str):
        return amount
    return f"{amount:,.0f}" if float(amount).is_integer() else f"{amount:,.3f}"


def num_bytes_text(num_bytes: float) -> str:
    """Bytes: exact below 1000; a KB is 1000, as on a network's label.

    >>> num_bytes_text(900), num_bytes_text(1536), num_bytes_text(1_234_000)
    ('900 B', '1.54 KB', '1.23 MB')
    """
    if num_bytes < 1e3:
        return f"{num_bytes:.0f} B"
    return scaled(num_bytes, {1e12: "TB", 1e9: "GB", 1e6: "MB", 1e3: "KB"})


def scaled(value: float, units: Mapping[float, str]) -> str:
    """The value to three digits or a whole number, in the largest of the units that it reaches."""
    factor = next((factor for factor in units if value >= 0.9995 * factor), min(units))
    digits = f"{value / factor:,.0f}" if value >= 1e3 * factor else f"{value / factor:.3g}"
    return f"{digits} {units[factor]}"


def an(noun: str) -> str:
    """A noun and its article.

    >>> an("int"), an("list")
    ('an int', 'a list')
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def ordinal(number: int) -> str:
    """
    >>> [ordinal(number) for number in (1, 2, 3, 4, 11, 22)]
    ['1st', '2nd', '3rd', '4th', '11th', '22nd']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number % 100 < 14 else ending}"


def group_text(ranks: Iterable[int], number: int | None = None) -> str:
    """A group by its ranks; and by which of several it is, if that is told: 0 is the default one.

    >>> group_text([0, 1]), group_text([0, 1], 0), group_text([0, 1], 2)
    ('group [0, 1]', 'default group [0, 1]', '2nd new group [0, 1]')
    """
    which = "" if number is None else f"{ordinal(number)} new " if number else "default "
    return f"{which}group {list(ranks)}"


def ranks_text(ranks: Iterable[int]) -> str:
    """
    >>> ranks_text([2]), ranks_text({0, 1, 3}), ranks_text(range(4))
    ('rank 2', 'ranks 0, 1 and 3', 'ranks 0 to 3')
    """
    names = sorted(ranks)
    if len(names) == 1:
        return f"rank {names[0]}"
    if len(names) > 3 and names[-1] - names[0] == len(names) - 1:
        return f"ranks {names[0]} to {names[-1]}"
    return f"ranks {', '.join(map(str, names[:-1]))} and {names[-1]}"


def plain_text(value: object, limit: int | None = 20_000) -> str:
    """Text that every file, page and terminal can hold, and that only says what it shows.

    Half characters become ?, colours are dropped, and what else a terminal would obey or a page
    would hide or turn round is written out. `limit`: characters at most; None for all.

    >>> plain_text("\\x1b[31mred\\x1b[0m \\x1b[2Jand \\u202efalse")
    'red \\\\x1b[2Jand \\\\u202efalse'
    """
    text = str(value)[:limit].encode("utf-8", "replace").decode()
    text = _COLOUR.sub("", text.replace("\r\n", "\n"))
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)[:limit]
