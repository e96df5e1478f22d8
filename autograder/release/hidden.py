"""What a student gets of a test cell: its visible parts, and a last line that counts the others."""

from __future__ import annotations

from nbgrader.preprocessors import ClearHiddenTests

from byhand.words import counted

PART = "with check.part("


class HiddenTests(ClearHiddenTests):
    """nbgrader's, and where it took parts of a test out, a line that says so when all passed."""

    def preprocess_cell(self, cell, resources, cell_index):
        """Take the hidden tests out of one cell."""
        parts = cell.source.count(PART)
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        visible = cell.source.count(PART)
        if visible < parts:
            passed, hidden = (
                counted(number, f"{kind} part")
                for number, kind in ((visible, "visible"), (parts - visible, "hidden"))
            )
            cell.source += (
                f'\nprint("{passed} passed; {hidden} will vary ranks, sizes and inputs.")'
            )
        return cell, resources
