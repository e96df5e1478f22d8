"""The student's own copy of the course, in work/, which git ignores.

Each lecture and exercise is copied there once. Whoever changes a copy, or runs it, keeps it: it is
never written over, and is named when the course has a newer version. The others follow the course.
"""

from __future__ import annotations

from autograder.places import Places
from autograder.written import Written

COPIED = ("lectures/*.ipynb", "exercises/*/*.ipynb")


def lay_out(where: Places) -> list[str]:
    """Copy what is not there yet; a sentence for each changed copy of what the course has newer."""
    written = Written(where.work)
    sentences = []
    for path in (path for kind in COPIED for path in sorted(where.course.glob(kind))):
        name, text = str(path.relative_to(where.course)), path.read_text(encoding="utf-8")
        if not written.is_changed(name, text):
            written.write(name, text)
        elif written.is_news(name, text):
            sentences.append(
                f"{where.work / name} is yours and stays as it is. The course has a newer {name}:"
                " rename yours, and you get it here."
            )
    return sentences
