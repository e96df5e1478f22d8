"""Both streams, a bar, text without an end, C's printf, many lines."""

import ctypes
import os
import sys

rank = int(os.environ["RANK"])
print("to out")
print("to err", file=sys.stderr)
sys.stderr.write("\r 50%")
sys.stderr.write("\r100%\n")
ctypes.CDLL(None).printf(b"from C\n")
for number in range(2000 if rank else 0):
    print("line", number)
print("no end", end="")
