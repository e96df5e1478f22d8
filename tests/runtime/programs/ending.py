"""Ends as its argument says, without a word to other ranks."""

import os
import sys


def minus():
    sys.exit(-1)


def at_once():
    os._exit(0)


def in_lines():
    sys.exit("no data:\n  run download.py first,\n  then this again")


def twice():
    if (child := os.fork()) == 0:
        sys.exit(3)
    print("the child's", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


globals()[sys.argv[1]]()
