"""What a rank logs and where it says it stood is read at a bounded cost, whatever it holds."""

import json
import os
import time

import pytest

from byhand.runtime.errors import TamperedError
from byhand.runtime.process.member import LOOK_BYTES, Member
from byhand.runtime.trace.log import RankLog
from byhand.runtime.trace.sources import traceback_text
from byhand.runtime.watch.matching import Matcher

CALL = {"op": "send", "group_name": "0", "group": [0, 1], "source": ["cell", 1], "peer": 1}


def line(**fields) -> bytes:
    return json.dumps(["call", 0, {**CALL, **fields}, 0.0]).encode() + b"\n"


@pytest.fixture
def member():
    made, theirs = Member.create(0)
    yield made
    made.close()
    theirs[0].close()


def test_a_call_is_taken_in():
    log = RankLog(0)
    (call,) = log.feed(line(shape=[2, 3], payload=48))
    assert (call.shape, call.payload, call.group) == ((2, 3), 48, (0, 1))


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": [1] * 65},
        {"shape": [-1]},
        {"payload": -1},
        {"payload": 1 << 62},
        {"group": [1, 2]},
        {"group": [0, 0]},
        {"group": list(range(5000))},
        {"sends": [10**100]},
        {"peer": True},
    ],
    ids=str,
)
def test_a_field_that_no_call_has_is_tampering(fields):
    with pytest.raises(TamperedError):
        RankLog(0).feed(line(**fields))


@pytest.mark.parametrize("peak", ["Infinity", "1" + "0" * 4000, "-1", "true", '"9"', "2.5"])
def test_a_peak_that_no_rank_reaches_is_tampering(peak):
    with pytest.raises(TamperedError):
        RankLog(0).feed(f'["end", 1.0, {peak}]\n'.encode())


def test_an_operation_that_torch_does_not_have_is_tampering():
    with pytest.raises(TamperedError):
        RankLog(0).feed(line(op="the hidden number 7"))


def test_a_look_at_a_log_reads_no_more_than_it_may(member):
    os.write(member.log_fd, b'["done",0,1.0]\n' * LOOK_BYTES)
    with pytest.raises(TamperedError):  # there is no call 0
        member.read_log()
    assert member.log_bytes == LOOK_BYTES


def test_receives_from_anyone_cost_no_more_when_many_messages_wait():
    log, matcher = RankLog(0), Matcher()
    sends = [json.dumps(["call", i, {**CALL, "tag": i}, 0]) for i in range(20_000)]
    anyone = {**CALL, "op": "recv", "peer": None, "tag": -7}
    receives = [json.dumps(["call", 20_000 + i, anyone, 0]) for i in range(20_000)]
    began = time.monotonic()
    for call in log.feed("\n".join([*sends, *receives, ""]).encode()):
        matcher.add(call)
    assert time.monotonic() - began < 10


def test_a_stack_of_endless_words_is_read_at_once(member):
    os.write(member.stack_fd, b"most recent call first" + b'File "' * 170_000)
    began = time.monotonic()
    assert member.stack() == []
    assert time.monotonic() - began < 1


def test_a_strangers_traceback_shows_its_own_cells_and_no_file(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("expected = 42\n")
    frames = [(str(secret), 1, "f"), ("<double>", 2, "double"), ("<total>", 1, "total")]
    assert "expected" in traceback_text(frames, "m")
    text = traceback_text(frames, "m", {"double": "def double():\n    raise ValueError\n"})
    assert "raise ValueError" in text
    assert "expected" not in text
