"""It fits, and products wait for slow links."""


def my_layout():
    return Layout(dp=2, tp=4, pp=2, rows=2)
