"""Judges take turns: side by side, or one alone."""

import fcntl
import os
import threading

from autograder.grade import turns


def test_judges_work_side_by_side_and_none_beside_one_alone():
    seen, both_in = [], threading.Barrier(2)

    def beside():
        with turns.beside_others():
            both_in.wait(60)  # or none would get here
            seen.append("side by side")

    pair = [threading.Thread(target=beside) for _ in range(2)]
    for thread in pair:
        thread.start()
    for thread in pair:
        thread.join(60)
    with turns.alone():
        assert not turns.is_alone()  # for anybody else
        late = threading.Thread(target=later, args=(seen,))
        late.start()
        late.join(0.2)
        seen.append("alone")
    late.join(60)
    assert seen == ["side by side", "side by side", "alone", "later"]


def later(seen: list) -> None:
    with turns.beside_others():
        seen.append("later")


def test_one_who_waits_to_be_alone_goes_before_newcomers():
    seen = []

    def alone():
        with turns.alone():
            seen.append("alone")

    def newcomer():
        with turns.beside_others():
            seen.append("newcomer")

    with turns.beside_others():
        waiting = threading.Thread(target=alone)
        waiting.start()
        while gate_is_open():
            pass
        coming = threading.Thread(target=newcomer)
        coming.start()
    waiting.join(60)
    coming.join(60)
    assert seen == ["alone", "newcomer"]


def gate_is_open() -> bool:
    descriptor = os.open(turns._GATE, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
