"""Sphinx's settings for the book; build.py names this folder. Source of each: Sphinx, myst-nb."""

from pathlib import Path

PAGES = Path(__file__).parent / "pages"

project = "Distributed training, by hand"
author = "the course's authors"
copyright = "text and figures CC BY 4.0, code MIT"
language = "en"
extensions = ["myst_nb", "autograder.book.formulas"]
exclude_patterns = [".doctrees"]

html_theme = "furo"
html_title = project
html_static_path = [str(PAGES / "book.css")]
html_css_files = ["book.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "a11y-light", "a11y-dark"

nb_execution_mode = "off"  # executed already, by papermill
nb_ipywidgets_js = {}  # a widget is shown by its picture
nb_mime_priority_overrides = [("html", "image/svg+xml", 0), ("html", "image/png", 0)]
nb_merge_streams = True
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure", "mystnb.unknown_mime_type"]
