"""The name for the board is no text, and the layout is the fastest in the other order."""

BOARD_NAME = None


def my_layout():
    return Layout(dp=1, tp=2, pp=8, order=ORDERS[1])
