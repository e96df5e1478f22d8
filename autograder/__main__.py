"""`python -m autograder` is `autograder`."""

from autograder.cli import main

main()
