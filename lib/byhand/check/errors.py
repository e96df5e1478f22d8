"""How a check fails."""

KINDS = ("values", "calls", "messages", "bytes", "memory")  # of what a check can look at


class CheckError(AssertionError):
    """A check failed. `.part` names the part of the test (or None), `.message` says why.

    `.of`, one of KINDS, is what it looked at: all that may be told of a hidden part.
    """

    def __init__(self, message: str, part: str | None = None, of: str = "values"):
        super().__init__(f"{part}: {message}" if part else message)
        self.part, self.message, self.of = part, message, of

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message, not the lines of the test."""
        return [f"CheckError: {self}"]
