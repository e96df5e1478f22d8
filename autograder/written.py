"""What was last written to the files of a folder, so that what others changed there shows.

The folder keeps it as hashes by name, in .written.json. One rule for all generated files: only
what nobody changed since may be written over.
"""

import contextlib
import hashlib
import json
from pathlib import Path

from autograder.pages import write_page
from autograder.places import RECORD


class Written:
    """The record of one folder; files are named by their path in it."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.hashes: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            self.hashes = dict(json.loads((folder / RECORD).read_text()))

    def is_changed(self, name: str, wanted: str) -> bool:
        """Whether the file holds neither what was last written there nor `wanted`."""
        path = self.folder / name
        if not path.exists():
            return False
        return _hash(path.read_bytes()) not in (self.hashes.get(name), _hash(wanted.encode()))

    def is_news(self, name: str, wanted: str) -> bool:
        """Whether `wanted` is not what was last written there."""
        return self.hashes.get(name) != _hash(wanted.encode())

    def write(self, name: str, text: str) -> Path:
        """Write a file whole or not at all, and note what it holds."""
        path = self.folder / name
        if not path.exists() or path.read_bytes() != text.encode():
            write_page(path, text)
        if self.is_news(name, text):
            self.hashes[name] = _hash(text.encode())
            record = json.dumps(self.hashes, indent=0, sort_keys=True)
            write_page(self.folder / RECORD, record + "\n")
        return path


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
