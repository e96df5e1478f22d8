"""Numbers in sentences, and text that any file can hold."""

_HISSING = ("s", "x", "ch", "sh")


def counted(number: float, noun: str, form: str = "") -> str:
    """A number and its noun, in the plural where there is not exactly one.

    form: the number's format, as after the colon of an f-string.

    >>> counted(1, "all-reduce"), counted(2000, "micro-batch", ",")
    ('1 all-reduce', '2,000 micro-batches')
    """
    ending = "" if number == 1 else "es" if noun.endswith(_HISSING) else "s"
    return f"{number:{form}} {noun}{ending}"


def plain_text(value: object, limit: int = 20_000) -> str:
    """Text that every file and every page can hold: no half characters, and not too long."""
    return str(value)[:limit].encode("utf-8", "replace").decode()
