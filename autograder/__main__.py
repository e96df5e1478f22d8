"""`autograder`, and `python -m autograder`: the command line, or what to install for it."""

import signal
import sys

OURS = ("autograder", "byhand")


def main() -> None:
    """Run the command line; a package that `byhand` alone does without is named in a sentence.

    Who is told to end, or whose terminal closes, ends what it started, as after Ctrl-C.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # and not nohup's
            signal.signal(number, signal.default_int_handler)
    try:
        from autograder.cli import main as commands

        commands()
    except ModuleNotFoundError as error:
        package = (error.name or OURS[0]).partition(".")[0]
        if package in OURS:
            raise
        sys.exit(
            f"Error: this needs {package}, which is not installed: pip install 'byhand[instructor]'"
        )


if __name__ == "__main__":
    main()
