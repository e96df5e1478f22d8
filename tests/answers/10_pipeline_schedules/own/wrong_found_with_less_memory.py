"""What find gives with room for one chunk less."""

from byhand.pipeline_schedules.search import find

V = [0, 1, 2, 3, 3, 2, 1, 0]
FOUND = letters(find(V, 8, 7, 0.5, 0.5, 0.5, send=0.1))


def own_schedule():
    return V, FOUND
