"""Numbers and ranks in sentences, and text that any file can hold."""

from collections.abc import Iterable

_HISSING = ("s", "x", "ch", "sh")


def counted(number: float, noun: str, form: str = "") -> str:
    """A number and its noun, in the plural where there is not exactly one.

    form: the number's format, as after the colon of an f-string.

    >>> counted(1, "all-reduce"), counted(2000, "micro-batch", ",")
    ('1 all-reduce', '2,000 micro-batches')
    """
    ending = "" if number == 1 else "es" if noun.endswith(_HISSING) else "s"
    return f"{number:{form}} {noun}{ending}"


def an(noun: str) -> str:
    """A noun and its article.

    >>> an("int"), an("list")
    ('an int', 'a list')
    """
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


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


def plain_text(value: object, limit: int = 20_000) -> str:
    """Text that every file and every page can hold: no half characters, and not too long."""
    return str(value)[:limit].encode("utf-8", "replace").decode()
