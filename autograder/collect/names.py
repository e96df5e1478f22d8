"""Who handed in a file, read from the names that Canvas and Moodle give to downloads.

Canvas, one zip of files:  lovelaceada_LATE_1234_56789_tiny-1.ipynb
    sortable name without blanks, LATE or nothing, user id, file id (it grows with time), the file
    name, with -1, -2 ... where it was handed in again. Anonymous: anon_x7Yz1_56789_tiny.ipynb.
    (canvas-lms, lib/content_zipper.rb)
Moodle, a zip of folders:  Ada Lovelace_12345_assignsubmission_file_/tiny.ipynb
    or of files:           Ada Lovelace_12345_assignsubmission_file_tiny.ipynb
    full name, with its group and a hyphen before it where there are groups; then the participant
    number, which is another one in each assignment. Anonymous, everybody's full name is
    Participant. (moodle, mod/assign/locallib.php)
Anything else is plain:    ada/tiny.ipynb, ada_tiny.ipynb, ada.ipynb
    and so is ada_hw_2_01_tiny.ipynb of 01_tiny, whose name begins where Canvas has the file id
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import PurePosixPath

CANVAS, MOODLE = "canvas", "moodle"
ANONYMOUS = "Participant"  # to Moodle in English
MAX_BYTES = 200  # of a student's name in the class: a folder's name holds 255
_STUDENT = re.compile(r"[^\W_][\w .@~:,='()+-]*")
_MARKS = "Mn", "Mc"  # Unicode's accents and vowel signs: parts of a letter, and no letters to re
SENT = "_assignsubmission_"  # to Moodle, between who it is from and what it is
_MOODLE = re.compile(rf"(?P<name>[^_/]+)_(?P<number>\d+){SENT}[a-z].*")
_CANVAS = re.compile(
    r"(LATE_)?(?P<name>[^\W_]\w*?)(_LATE)?_(?P<number>\d+|(?<=anon_)\w{5})_(?P<order>\d+)_.+"
)


@dataclass(frozen=True)
class Sender:
    """Who a file is from: what the class may call them, and their number in Canvas or Moodle.

    Moodle numbers people anew in each assignment, so its `lms` is one for each: moodle 01_ranks.
    `order` grows with time where it is known, and `late` is Canvas's word; neither makes anybody
    another sender.
    """

    name: str
    lms: str = ""
    number: str = ""
    order: int = field(default=0, compare=False)
    late: bool = field(default=False, compare=False)


def sender_of(path: PurePosixPath, assignment: str) -> Sender | None:
    """Who the file at `path` is from; None when the first part of the path does not tell.

    Canvas, Moodle or an instructor gave that part its name. What is deeper lay in one person's
    folder and has the names that this person chose, so it says nothing about who they are.
    """
    first = path.parts[0]
    if found := _MOODLE.fullmatch(first):
        name = found["name"].strip()
        name = student_name(f"{name} {found['number']}" if name.endswith(ANONYMOUS) else name)
        return Sender(name, f"{MOODLE} {assignment}", found["number"])
    found = _CANVAS.fullmatch(first)
    if found and not first.startswith(assignment, found.start("order")):
        name = student_name(f"{found['name']}-{found['number']}")
        late = first.startswith("LATE_") or f"_LATE_{found['number']}_" in first
        return Sender(name, CANVAS, found["number"], int(found["order"]), late)
    if len(path.parts) == 1:
        first = path.stem.partition("_")[0] if path.suffix.lower() == ".ipynb" else ""
    return Sender(student_name(first)) if first else None


def is_name(raw: str) -> bool:
    """Whether a file and every page can hold it: letters with their marks, digits, some signs."""
    bare = [one for one in raw[1:] if unicodedata.category(one) not in _MARKS]
    return bool(_STUDENT.fullmatch("".join([raw[:1], *bare])))


def student_name(raw: str) -> str:
    """What the class calls the one whose folder has this name: the same, if every page can hold it.

    Else what can be kept of it, and six digits that tell it from others that look like it.
    """
    data = raw.encode("utf-8", "surrogatepass")
    if is_name(raw) and len(data) <= MAX_BYTES:
        return raw
    kept = re.sub(r"[^\w.@~:,='()+-]+", "-", raw[:25]).lstrip("_.@~:,='()+-").rstrip("-")
    return f"{kept or 'student'}-{hashlib.sha256(data).hexdigest()[:6]}"
