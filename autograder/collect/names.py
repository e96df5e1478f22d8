"""Who handed in a file, read from the names that Canvas and Moodle give to downloads.

Canvas, one zip of files:  lovelaceada_LATE_1234_56789_tiny-1.ipynb
    sortable name without blanks, LATE or nothing, user id, file id (it grows with time), the file
    name, with -1, -2 ... where it was handed in again. Anonymous: anon_x7Yz1_56789_tiny.ipynb.
    (canvas-lms, lib/content_zipper.rb)
Moodle, a zip of folders:  Ada Lovelace_12345_assignsubmission_file/tiny.ipynb
    or of files:           Ada Lovelace_12345_assignsubmission_file_tiny.ipynb
    full name, with its group and a hyphen before it where there are groups; then the participant
    number, which is another one in each assignment. (moodle, mod/assign/locallib.php)
Anything else is plain:    ada/tiny.ipynb, ada_tiny.ipynb, ada.ipynb
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import PurePosixPath

CANVAS, MOODLE, PLAIN = "canvas", "moodle", "plain"
_CANVAS = re.compile(r"(?P<name>[^\W_]\w*?)(?P<late>_LATE)?_(?P<id>\d+)_(?P<file>\d+)_(?P<rest>.+)")
_CANVAS_ANONYMOUS = re.compile(
    r"(?P<late>LATE_)?(?P<name>anon)_(?P<id>\w{5})_(?P<file>\d+)_(?P<rest>.+)"
)
_MOODLE = re.compile(
    r"(?P<name>[^_/]+)_(?P<id>\d+)_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<rest>.*))?"
)
STUDENT = re.compile(r"[^\W_][\w .@~:,=+-]*")


@dataclass(frozen=True)
class Sender:
    """Who a file is from. `number` is the LMS's; `order` grows with time where it is known."""

    lms: str
    name: str
    number: str = ""
    order: int = 0
    late: bool = False
    notebook: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """What two files of one person have in common."""
        return self.lms, self.number or self.name


def sender_of(path: PurePosixPath) -> Sender | None:
    """Who the file at `path` is from; None when the first part of the path does not tell.

    Canvas, Moodle or an instructor gave that part its name. What is deeper lay in one person's
    folder and has the names that this person chose, so it says nothing about who they are.
    """
    first = path.parts[0]
    found = _moodle(first) or _canvas(first)
    if found:
        return found
    if len(path.parts) > 1:
        return _plain(first)
    return _plain(path.stem.partition("_")[0]) if path.suffix.lower() == ".ipynb" else None


def plain_name(name: str) -> str:
    """A person's name as a folder's: lower case, words joined by hyphens, in any alphabet."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", name).lower())
    return "-".join(words)


def _canvas(part: str) -> Sender | None:
    found = _CANVAS_ANONYMOUS.fullmatch(part) or _CANVAS.fullmatch(part)
    if not found:
        return None
    name = f"anon-{found['id']}" if found["name"] == "anon" else found["name"]
    return Sender(CANVAS, name, found["id"], int(found["file"]), bool(found["late"]))


def _moodle(part: str) -> Sender | None:
    found = _MOODLE.fullmatch(part)
    if not found:
        return None
    return Sender(MOODLE, found["name"].strip(), found["id"], notebook=found["kind"] == "file")


def _plain(name: str) -> Sender | None:
    return Sender(PLAIN, name) if STUDENT.fullmatch(name) else None
