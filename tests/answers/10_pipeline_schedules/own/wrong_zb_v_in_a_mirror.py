"""The library's ZB-V with its stages numbered from the other end."""

FOUND = letters(library.zero_bubble_v(4, 8))


def own_schedule():
    return [3, 2, 1, 0, 0, 1, 2, 3], FOUND[::-1]
