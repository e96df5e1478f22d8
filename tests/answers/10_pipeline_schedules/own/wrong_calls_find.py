"""Calls the library's search inside the function."""


def own_schedule():
    from byhand.pipeline_schedules import find

    route = [0, 1, 2, 3, 3, 2, 1, 0]
    return route, letters(find(route, 8, 8, 0.5, 0.5, 0.5, send=0.1, width=6))
