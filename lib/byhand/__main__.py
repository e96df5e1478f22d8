"""`python -m byhand -n 4 script.py`: see byhand.tools.command."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:  # Python put the working directory there,
        del sys.path[0]  # where a file may be named as one that we or torch import
    from byhand.tools.command import main

    sys.exit(main())
