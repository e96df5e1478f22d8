"""The name for the board is no text, and the layout is a third that is near enough."""

BOARD_NAME = None


def my_layout():
    return Layout(dp=2, tp=1, pp=8)
