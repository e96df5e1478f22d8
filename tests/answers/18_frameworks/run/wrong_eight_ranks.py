"""Half of the machine."""


def my_layout():
    return Layout(pp=8)
