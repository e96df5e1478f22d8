"""What a rank logs and where it says it stood is read at a bounded cost, whatever it holds."""

import json
import os
import struct
import time

import pytest

from byhand.runtime.errors import TamperedError
from byhand.runtime.ledger import Call, Event
from byhand.runtime.process.member import LOOK_BYTES, Member
from byhand.runtime.trace import log as trace
from byhand.runtime.trace.log import (
    BEGIN,
    CALL,
    DONE,
    END,
    FORM,
    MAX_TEXT,
    NOT_FOLLOWED,
    WAIT,
    Record,
    packed_call,
)
from byhand.runtime.trace.sources import traceback_text
from byhand.runtime.watch.matching import Matcher

SEND = {"op": "send", "group_name": "0", "group": (0, 1), "file": "cell", "line": 1, "peer": 1}


def packed(kind: int, index: int, moment: float, value: int = 0, body: bytes = b"") -> bytes:
    """A record, as log.py describes it."""
    return struct.pack("<IBIdq", 25 + len(body), kind, index, moment, value) + body


def written(index=0, **fields) -> bytes:
    form = packed(FORM, index, 0.0, 0, packed_call(Call(**{**SEND, **fields})))
    return form + packed(CALL, index, 0.0)


@pytest.fixture
def member():
    made, theirs = Member.create(0)
    yield made
    made.close()
    theirs[0].close()


def test_a_call_comes_back_as_it_was_written():
    fields = {**SEND, "shape": (2, 3), "dtype": "float32", "payload_bytes": 24, "tag": -3}
    (event,) = trace.RankLog(0).feed(written(**fields))
    assert {name: getattr(event, name) for name in fields} == fields
    assert (event.root, event.declared, event.reduce_op) == (None, None, "")


def test_a_record_in_two_parts_is_read_when_it_is_whole():
    log, data = trace.RankLog(0), written() + written(1)
    assert len(log.feed(data[:100])) == 0
    assert len(log.feed(data[100:])) == 2


def test_what_a_writer_wrote_is_there_at_once_and_the_rank_may_die(member):
    writer = trace.LogWriter(member.log_fd)
    writer.write(BEGIN, 0, 1.5)
    assert writer.call(packed_call(Call(**SEND)), 2.0) == 0
    del writer
    (event,) = member.read_log()
    assert (member.log.began, event.start, event.source) == (1.5, 2.0, "cell:1")
    assert member.read_log() is None


def test_the_call_in_which_a_rank_is_killed_counts_once(member):
    writer = trace.LogWriter(member.log_fd)
    writer.making(packed_call(Call(**SEND)), 2.0, WAIT)
    assert member.read_log() == []
    trace.add_call_of_the_killed(member.log_fd)
    (event,) = member.read_log()
    assert (event.start, event.wait_start, event.source) == (2.0, 2.0, "cell:1")
    trace.add_call_of_the_killed(member.log_fd)
    assert member.read_log() is None


def test_a_call_that_was_made_or_refused_does_not_count_once_more(member):
    writer, body = trace.LogWriter(member.log_fd), packed_call(Call(**SEND))
    writer.making(body, 1.0)
    writer.call(body, 1.0)
    trace.add_call_of_the_killed(member.log_fd)
    assert len(member.read_log()) == 1
    writer.making(body, 2.0)
    writer.not_making()
    trace.add_call_of_the_killed(member.log_fd)
    assert member.read_log() is None


def test_a_killed_rank_that_has_spoilt_its_log_has_made_no_call(member):
    writer = trace.LogWriter(member.log_fd)
    writer.making(packed_call(Call(**SEND)), 2.0)
    size, said = os.fstat(member.log_fd).st_size, os.pread(member.log_fd, 24, 0)
    os.pwrite(member.log_fd, (1 << 62).to_bytes(8, "little"), 0)  # more than it can hold
    trace.add_call_of_the_killed(member.log_fd)
    assert os.fstat(member.log_fd).st_size == size
    os.pwrite(member.log_fd, said, 0)
    os.pwrite(member.log_fd, b"\xff" * 4, 8)  # a form that it never described
    trace.add_call_of_the_killed(member.log_fd)
    with pytest.raises(TamperedError):
        member.read_log()


def test_a_killed_rank_may_have_cut_its_log_off(member):
    os.ftruncate(member.log_fd, 10)
    trace.add_call_of_the_killed(member.log_fd)
    assert member.read_log() is None


def test_a_call_that_is_made_again_is_described_once(member):
    writer, body = trace.LogWriter(member.log_fd), packed_call(Call(**SEND))
    numbers = [writer.call(body, float(moment), waits=WAIT) for moment in range(100)]
    events = member.read_log()
    assert numbers == list(range(100))
    assert [event.start for event in events] == numbers
    assert {event.source for event in events} == {"cell:1"}
    assert member.logged == 101 * len(packed(CALL, 0, 0.0)) + len(body)


def test_a_writer_keeps_few_forms_however_many_calls_differ(member, monkeypatch):
    monkeypatch.setattr(trace, "MOST_FORMS", 3)
    writer, shapes = trace.LogWriter(member.log_fd), [(number,) for number in range(8)]
    for shape in [*shapes, shapes[0], shapes[-1]]:
        writer.call(packed_call(Call(**{**SEND, "shape": shape})), 1.0)
    assert [event.shape for event in member.read_log()] == [*shapes, shapes[0], shapes[-1]]
    assert len(writer._forms) <= 3
    assert len(member.log._forms) <= 3


def test_a_call_that_nobody_joins_keeps_no_other_from_being_let_go(member):
    writer, body = trace.LogWriter(member.log_fd), packed_call(Call(**SEND))
    for _ in range(20):
        writer.call(body, 1.0)
    first, *others = member.read_log()
    for event in others:
        event.matched = True
    assert member.forget(5) == others[:14]
    writer.write(DONE, 3, 2.0)  # of one that was let go
    writer.write(DONE, 19, 2.0)
    assert member.read_log() == []
    assert (first.done, others[-1].done) == (None, 2.0)


def test_a_log_that_is_full_says_so_and_keeps_what_it_has(member, monkeypatch):
    os.ftruncate(member.log_fd, 200)
    writer = trace.LogWriter(member.log_fd)
    for _ in range(9):
        writer.write(DONE, 0, 1.0)
    assert member.logged > 200
    assert len(os.pread(member.log_fd, 1000, 0)) == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"shape": (1,) * 65},
        {"shape": (-1,)},
        {"payload_bytes": -1},
        {"group": (1, 2)},
        {"group": (0, 0)},
        {"group": tuple(range(5000))},
        {"sends": (-1, 1)},
        {"op": "the hidden number 7"},
    ],
    ids=str,
)
def test_a_field_that_no_call_has_is_tampering(fields):
    with pytest.raises(TamperedError):
        trace.RankLog(0).feed(written(**fields))


def other(**fields) -> bytes:
    return json.dumps(json.loads(packed_call(Call(**SEND))) | fields).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"\xff",
        b"7",
        b"[" * 100_000,
        other(more=1),
        other(op=["send"]),
        other(line=1.0),
        other(line=None),
        other(tag=True),
        other(tag=1 << 64),
        other(shape=[[1]]),
        other(shape={"2": 3}),
        other(dtype="x" * (MAX_TEXT + 1)),
        other(dtype="\ud800"),
    ],
    ids=lambda body: body[-20:].decode("latin-1"),
)
def test_a_form_that_is_no_calls_is_tampering(body):
    with pytest.raises(TamperedError):
        trace.RankLog(0).feed(packed(FORM, 0, 0.0, 0, body))


@pytest.mark.parametrize(
    "record",
    [
        Record(END, 0, 1.0, NOT_FOLLOWED - 1, b""),
        Record(END, 0, float("inf"), 0, b""),
        Record(BEGIN, 0, float("nan"), 0, b""),
        Record(DONE, 0, 1.0, 0, b""),  # there is no call 0
        Record(CALL, 0, 1.0, 0, b""),  # nor form 0
        Record(FORM, 1, 1.0, 0, packed_call(Call(**SEND))),
        Record(FORM, 0, 1.0, 0, packed_call(Call(**SEND)) + b"\0"),
        Record(99, 0, 1.0, 0, b""),
    ],
    ids=lambda record: f"{record.kind}-{record.moment}-{record.value}",
)
def test_a_record_that_no_rank_writes_is_tampering(record):
    with pytest.raises(TamperedError):
        trace.RankLog(0).feed(packed(*record))


def test_a_second_end_is_tampering():
    end = packed(END, 0, 1.0, 5)
    with pytest.raises(TamperedError):
        trace.RankLog(0).feed(end + end)


def test_a_look_at_a_log_reads_no_more_than_it_may(member):
    trace.append_log(member.log_fd, packed(DONE, 0, 1.0) * LOOK_BYTES)
    with pytest.raises(TamperedError):  # there is no call 0
        member.read_log()
    assert member.log_bytes == LOOK_BYTES


def test_receives_from_anyone_cost_no_more_when_many_messages_wait():
    log, matcher = trace.RankLog(0), Matcher()
    sends = [written(i, tag=i) for i in range(20_000)]
    receives = [written(20_000 + i, op="recv", peer=None, tag=-7) for i in range(20_000)]
    began = time.thread_time()
    for call in log.feed(b"".join([*sends, *receives])):
        matcher.add(call)
    assert time.thread_time() - began < 10


class Counted(tuple):
    """A tuple that knows how often one looked into it."""

    looks = 0

    def __getitem__(self, at):
        self.looks += 1
        return super().__getitem__(at)


def all_to_all(num_ranks, sends=None, receives=None):
    """The calls of one all-to-all, in which each rank sends one element to each."""
    ones, group = (1,) * num_ranks, tuple(range(num_ranks))
    sends, receives = sends or [ones] * num_ranks, receives or [ones] * num_ranks
    how = {"op": "all_to_all", "group_name": "0", "group": group, "start": 0.0}
    return [Event(rank=r, sends=sends[r], receives=receives[r], **how) for r in group]


def test_an_all_to_all_is_compared_once_for_each_pair_of_ranks():
    matcher, sends = Matcher(), [Counted((1,) * 30) for _ in range(30)]
    for call in all_to_all(30, sends):
        matcher.add(call)
    assert matcher.problem is None
    assert sum(row.looks for row in sends) <= 2 * 30 * 30


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize(("sender", "receiver"), [(0, 2), (2, 0), (1, 1)])
def test_splits_that_do_not_fit_are_told_in_whatever_order_ranks_call(order, sender, receiver):
    matcher, sends = Matcher(), [[1, 1, 1] for _ in range(3)]
    sends[sender][receiver] = 2
    calls = all_to_all(3, [tuple(row) for row in sends])
    for rank in order:
        matcher.add(calls[rank])
    assert f"rank {sender} sends 2 elements to rank {receiver}, which" in matcher.problem


def test_a_stack_of_endless_words_is_read_at_once(member):
    os.write(member.stack_fd, b"most recent call first" + b'File "' * 170_000)
    began = time.thread_time()
    assert member.stack() == []
    assert time.thread_time() - began < 1


@pytest.mark.parametrize("last", [b" in _run_module_as_main", b"\n  ..."])
def test_a_stack_is_whole_with_its_outermost_frame_and_not_before(member, last):
    for part in (b"Stack (most recent call first):\n", b'  File "a.py", line 7 in f', last):
        os.write(member.stack_fd, part)
        assert not member.has_told_its_stack(0)
    os.write(member.stack_fd, b"\n")
    assert member.has_told_its_stack(0)
    assert not member.has_told_its_stack(member.stack_bytes)  # it is of an earlier asking


def test_a_strangers_traceback_shows_its_own_cells_and_no_file(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text("expected = 42\n")
    frames = [(str(secret), 1, "f"), ("<double>", 2, "double"), ("<total>", 1, "total")]
    assert "expected" in traceback_text(frames, "m")
    text = traceback_text(frames, "m", {"double": "def double():\n    raise ValueError\n"})
    assert "raise ValueError" in text
    assert "expected" not in text
