"""The course as a book: a page for each lecture, exercise and module, on any static host.

    build.py      `make book`: runs what changed, gathers, and has Sphinx write build/book
    gather.py     what Sphinx is to read: lectures, exercises, packages of byhand
    conf.py       Sphinx's settings, and LaTeX as MathML, which needs no script
    sharing.py    what a page says of itself where its link is shared
    explorer.py   a picture that changes without a kernel: selects, and states drawn beforehand
    drawn.py      those of the lectures; svg.py: their pictures in pieces that states share
    planner.py    one more: the planner of lecture 17
    pages/        style sheet, scripts, maths font, and the first page's end: its rest is the README

Nothing in a page asks another host for anything. Sphinx, myst-nb and furo are the extra `.[book]`.
"""
