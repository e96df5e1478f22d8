"""The fastest layout, if memory were free: of its stages the first alone fits."""


def my_layout():
    return Layout(dp=2, pp=8, order=ORDERS[1])
