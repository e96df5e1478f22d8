"""Nearly as fast, and with the least memory: tensor parallel within hosts."""


def my_layout():
    return Layout(tp=2, pp=8, rows=1)
