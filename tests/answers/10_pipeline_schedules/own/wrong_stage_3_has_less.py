"""Stage 3 has one part of the model where the others have two."""


def own_schedule():
    return [0, 1, 2, 3, 2, 1, 0], [[], [], [], []]
