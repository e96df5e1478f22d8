"""The course as a book: a page for each lecture, exercise and module, on any static host.

    build.py      `make book`: runs what changed, gathers, and has Sphinx write build/book
    gather.py     what Sphinx is to read: lectures, exercises, packages of byhand
    conf.py       Sphinx's settings, and LaTeX as MathML, which needs no script
    pages/        the first page, and the book's style sheet

Nothing in a page asks another host for anything. Sphinx, myst-nb and furo are the extra `.[book]`.
"""
