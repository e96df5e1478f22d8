"""`python -m byhand -n 4 script.py`: see byhand.tools.command."""

import sys

from byhand.tools.command import main

if __name__ == "__main__":
    if not sys.flags.safe_path:  # Python put the working directory there,
        del sys.path[0]  # where a file may be named as one that torch imports
    sys.exit(main())
