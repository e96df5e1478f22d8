"""A name for the board that is no plain text, and the fastest layout, written by axes."""

BOARD_NAME = "<b>Ada\u202e</b>\n" + "x" * 100


def my_layout():
    degrees = {"dp": 2, "tp": 1, "pp": 8}
    return Layout(**degrees, order="tp-cp-ep-pp-dp")
