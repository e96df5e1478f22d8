"""`python -m byhand -n 4 script.py`: see byhand.tools.command."""

import sys

from byhand.tools.command import main

if __name__ == "__main__":
    sys.exit(main())
