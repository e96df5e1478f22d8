"""What find gives on a V, made in a cell of its own."""

from byhand.pipeline_schedules.search import find

V = [0, 1, 2, 3, 3, 2, 1, 0]
FOUND = find(V, 8, 8, 0.5, 0.5, 0.5, send=0.1)


def own_schedule():
    return V, letters(FOUND)
