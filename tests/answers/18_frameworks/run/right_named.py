"""A name for the board that is no plain text, and two replicas, written by axes."""

BOARD_NAME = "<b>Ada\u202e</b>\n" + "x" * 100


def my_layout():
    degrees = {"dp": 2, "tp": 2, "pp": 4}
    return Layout(**degrees, order="tp-cp-ep-pp-dp")
