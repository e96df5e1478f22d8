"""How a check fails."""


class CheckError(AssertionError):
    """A check failed. `.part` names the part of the test (or None), `.message` says why."""

    def __init__(self, message: str, part: str | None = None):
        super().__init__(f"{part}: {message}" if part else message)
        self.part, self.message = part, message

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the message, not the lines of the test."""
        return [f"CheckError: {self}"]
