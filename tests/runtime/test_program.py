"""`python -m byhand` on programs that know nothing of it: each is a file in programs/."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import leftovers
import psutil
import pytest
from waiting import wait_until

import byhand
from byhand.runtime import ForkClient
from byhand.runtime.process.place import OPEN
from byhand.runtime.system import PORTABLE, free_port, loopback
from byhand.runtime.watch import supervise
from byhand.tools import live
from byhand.tools.command import main

PROGRAMS = Path(__file__).parent / "programs"
NOTEBOOK = PROGRAMS.parents[2] / "lectures" / "01_ranks.ipynb"
LIBRARY = str(Path(__file__).parents[2] / "lib")


def command(*words: str | int, python: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, *python, "-m", "byhand", *map(str, words)]


def environment() -> dict[str, str]:
    own = ("RANK", "WORLD_SIZE", "OMP_NUM_THREADS")
    kept = {name: value for name, value in os.environ.items() if name not in own}
    path = os.pathsep.join(filter(None, [LIBRARY, kept.get("PYTHONPATH")]))
    return {**kept, "PYTHONPATH": path}


@pytest.fixture(scope="module")
def server():
    """A fork server that has imported torch."""
    client = ForkClient.start()
    client.wait_until_ready()
    yield client
    client.close()


@pytest.fixture
def run(server, monkeypatch, capfd):
    """The command's end, in this process, with a fork server forked from the tests' own."""
    if not PORTABLE:  # which forks no server from another
        monkeypatch.setattr(ForkClient, "start", lambda: server.fresh(OPEN))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    terminated = signal.getsignal(signal.SIGTERM)

    def ran(*words: str | int, cwd: Path = PROGRAMS) -> subprocess.CompletedProcess:
        monkeypatch.chdir(cwd)
        try:
            status = main(list(map(str, words)))
        except SystemExit as error:
            status = error.code
        return subprocess.CompletedProcess(words, status, *capfd.readouterr())

    yield ran
    signal.signal(signal.SIGTERM, terminated)


def by_rank(text: str) -> dict[int, list[str]]:
    """What each rank printed, line by line."""
    lines = defaultdict(list)
    for line in text.splitlines():
        if found := re.match(r"\[(\d+)\] ?(.*)", line):
            lines[int(found[1])].append(found[2])
    return lines


def calls(summary: str) -> dict[str, int]:
    """The summary's calls, by operation."""
    rows = re.findall(r"^([a-z_]+) +([\d,]+)  ", summary, re.MULTILINE)
    return {op: int(number.replace(",", "")) for op, number in rows}


def test_ddp_with_a_sampler_and_workers_runs_unchanged_and_is_summed_up(run) -> None:
    done = run("-n", 2, "ddp.py", "--steps", 3)
    assert done.returncode == 0, done.stderr
    assert by_rank(done.stdout) == {
        0: ["saw [0, 2, 4, 6, 8, 10]", "equal True"],
        1: ["saw [1, 3, 5, 7, 9, 11]", "equal True"],
    }
    assert calls(done.stderr)["all_reduce"] == 2 * 3, done.stderr
    row = re.search(r"^all_reduce +6 +48 B +(\S+) s +(\S+) s$", done.stderr, re.MULTILINE)
    assert row, f"DDP's wait at the end of backward was not seen: {done.stderr}"


@pytest.mark.parametrize(
    ("program", "printed", "ops"),
    [
        ("fsdp", "norm", {"all_gather", "reduce_scatter", "all_reduce"}),
        ("tensor", "equal True", {"all_reduce"}),
        ("pipeline", "losses", {"send", "recv"}),
    ],
)
def test_programs_of_torchs_other_kinds_run_unchanged(run, program, printed, ops) -> None:
    done = run("-n", 2, f"{program}.py")
    assert done.returncode == 0, done.stderr
    lines = by_rank(done.stdout)
    assert all(lines[rank][-1].startswith(printed) for rank in (0, 1)), done.stdout
    assert ops <= calls(done.stderr).keys(), done.stderr


@pytest.mark.programs
@pytest.mark.parametrize(
    ("program", "package", "printed"),
    [("accelerated", "accelerate", "steps 2 2"), ("deepened", "deepspeed", "stepped 2")],
)
def test_programs_of_frameworks_run_unchanged(run, program, package, printed) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    done = run("-n", 2, f"{program}.py")
    assert done.returncode == 0, done.stderr
    assert all(printed in by_rank(done.stdout)[rank] for rank in (0, 1)), done.stdout
    assert calls(done.stderr)["all_reduce"], done.stderr


@pytest.mark.programs
def test_a_compiled_program_runs_unchanged(run) -> None:
    if shutil.which("g++") is None:
        pytest.skip("torch.compile needs a C++ compiler")
    done = run("-n", 2, "compiled.py")
    assert done.returncode == 0, done.stderr
    assert by_rank(done.stdout) == {0: ["[5.0, 5.0]"], 1: ["[5.0, 5.0]"]}
    assert "Dynamo" not in done.stderr
    assert calls(done.stderr) == {"all_reduce": 2}


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """What the command makes of that program: a process of its own, in a folder of its own."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "argparse.py").write_text("raise SystemExit(9)")  # which the command uses, too
    words = "-n", 2, PROGRAMS / "everything.py", "-n", "--quiet"
    told = command(*words, python=("-X", "importtime"))
    how = {"capture_output": True, "text": True, "cwd": folder, "env": environment()}
    how |= {"input": "typed words"}
    return subprocess.run(told, check=False, **how), folder


def test_a_rank_is_what_torchrun_and_python_make_of_it(everything) -> None:
    (done, folder), program = everything, str(PROGRAMS / "everything.py")
    assert done.returncode == 0, done.stderr
    assert by_rank(done.stdout).keys() == {0, 1}
    for rank, lines in by_rank(done.stdout).items():
        numbers = [str(rank), str(rank), "2", "2", "0"]
        assert lines[0] == f"{[program, '-n', '--quiet']} {numbers} True"
        typed = [] if rank else ["typed", "words"]
        assert lines[1] == f"{program} {PROGRAMS} {folder} {typed}"
        assert lines[2:4] == ["sums 1.0 1.0", "spawned [3]"]
        assert lines[-1] == "at the exit"
        assert set(lines[4:-1]) == {"in a pool", "from a thread"}
    assert calls(done.stderr) == {"all_reduce": 40}


def test_who_starts_a_program_loads_no_torch(everything) -> None:
    loaded = set(re.findall(r"^import time: .*\| +(\w+)$", everything[0].stderr, re.MULTILINE))
    assert "psutil" in loaded
    assert "torch" not in loaded


def test_a_module_runs_by_its_name(run, tmp_path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "other.py").write_text("name = 'other'")
    (package / "main.py").write_text(
        "import sys\nfrom .other import name\nprint(name, sys.argv[1:], __name__, __spec__.name)\n"
    )
    done = run("-n", 2, "--quiet", "-m", "package.main", "-m", "x", cwd=tmp_path)
    assert by_rank(done.stdout)[1] == ["other ['-m', 'x'] __main__ package.main"]
    assert (done.returncode, done.stderr) == (0, "")


EDITABLE = """
import importlib.util, sys
class Finder:  # as pip install -e has it
    def find_spec(name, path=None, target=None):
        if name == "elsewhere":
            return importlib.util.spec_from_file_location(name, {file!r})
sys.meta_path.append(Finder)
"""


def test_a_module_is_found_where_pip_install_e_says_it_is(tmp_path) -> None:
    file, site = tmp_path / "program.py", tmp_path / "site"
    file.write_text("print('found')")
    site.mkdir()
    (site / "sitecustomize.py").write_text(EDITABLE.format(file=str(file)))
    variables = environment()
    variables["PYTHONPATH"] += os.pathsep + str(site)
    words = command("-n", 1, "--quiet", "-m", "elsewhere")
    done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[0] found\n", "")


def test_a_module_is_looked_for_also_in_a_folder_that_has_been_removed(
    run, monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    done = run("-n", 1, "-m", "nowhere", cwd=Path("."))
    assert (done.returncode, "there is no module nowhere" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("how", "sentence", "rows"),
    [
        ("left_early", "rank 1 returned after 0 such calls", 2),
        ("cycle", "receives in a cycle 0 → 1 → 0", 3),
        ("different_calls", "rank 2 calls broadcast where ranks 0 and 1 call all_reduce", 3),
        ("joins_alone", "wait in init_process_group", 2),
    ],
)
def test_a_hang_ends_in_the_sentence_and_the_programs_lines(run, how, sentence, rows) -> None:
    done = run("-n", 3, "failing.py", how, "gloo")
    assert done.returncode == 1
    assert sentence in " ".join(done.stderr.split())
    assert len(re.findall(r"^\d .*failing\.py:\d+$", done.stderr, re.MULTILINE)) == rows, (
        done.stderr
    )


def test_a_raise_is_told_once_without_our_frames_and_with_where_the_others_waited(run) -> None:
    done = run("-n", 3, "failing.py", "raises", "gloo")
    assert done.returncode == 1
    assert done.stderr.count("ValueError: a bad batch") == 1
    assert done.stderr.count('raise ValueError("a bad batch")') == 1
    assert len(re.findall(r"^[01] +waiting +barrier .*failing\.py:\d+$", done.stderr, re.M)) == 2
    assert "runtime" not in done.stderr


def test_a_rank_that_raises_has_beside_it_the_calls_in_which_ddp_waits(run) -> None:
    done = run("-n", 3, "failing.py", "raises_beside_ddp", "gloo")
    assert "ValueError: a bad batch" in done.stderr
    rows = re.findall(r"^[01] +waiting +all_reduce .*failing\.py:\d+$", done.stderr, re.M)
    assert len(rows) == 2, done.stderr


@pytest.mark.parametrize("how", ["env", "tcp"])
def test_ranks_meet_at_a_port_of_the_programs_and_hear_that_torchruns_would_not(run, how) -> None:
    with free_port() as reserved:
        port = reserved.getsockname()[1]
        done = run("-n", 2, "--deadline", 30, "elsewhere.py", how, port)
    assert by_rank(done.stdout) == {0: ["2.0"], 1: ["2.0"]}, done.stderr
    assert done.stderr.count(f"meet at port {port}, which the program names itself") == 1


def test_ranks_that_never_meet_are_told_after_a_while(run, monkeypatch) -> None:
    monkeypatch.setattr(supervise, "MEET_SECONDS", 1.0)
    done = run("-n", 3, "failing.py", "never_meets", "gloo")
    assert done.returncode == 1
    sentence = "ranks 0, 1 and 2 have all called init_process_group, and after 1 s they have not"
    assert sentence in " ".join(done.stderr.split())
    assert len(re.findall(r"^\d +waiting +init_process_group .*failing", done.stderr, re.M)) == 3
    longer = run("-n", 3, "--deadline", 3, "failing.py", "never_meets", "gloo")
    assert "after 1 s" not in longer.stderr, "who gives more seconds waits for more"


def test_what_a_program_did_before_it_failed_is_written_all_the_same(run, tmp_path) -> None:
    trace, drawing = tmp_path / "run.json", tmp_path / "run.svg"
    done = run("-n", 3, "--trace", trace, "--timeline", drawing, "failing.py", "left_early", "gloo")
    assert done.returncode == 1
    calls = [event for event in json.loads(trace.read_text())["traceEvents"] if "dur" in event]
    assert [(call["name"], call["dur"] > 0) for call in calls] == [("all_reduce", True)] * 2
    assert "<svg" in drawing.read_text()
    assert done.stderr.endswith(f"{trace} has 2 calls\n{drawing} shows the run\n"), done.stderr


def test_where_nobody_reads_its_output_a_program_is_accused_of_nothing(run, monkeypatch) -> None:
    monkeypatch.setattr(live, "_write", _to_nobody)
    done = run("-n", 2, "failing.py", "prints", "gloo")
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def _to_nobody(fd: int, data: bytes) -> None:
    raise BrokenPipeError


@contextlib.contextmanager
def output_into(fd: int) -> Iterator[None]:
    """Have this process's standard output go there."""
    kept = os.dup(1)
    os.dup2(fd, 1)
    yield
    os.dup2(kept, 1)
    os.close(kept)


@pytest.mark.parametrize("program", ["printing.py", "tensor.py"])
def test_a_full_disk_is_no_reader_that_has_seen_enough(run, program) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    with output_into(full):
        done = run("-n", 2, "--quiet", program)
    os.close(full)
    sentence = "byhand: the output could not be written: No space left on device\n"
    assert (done.returncode, sentence in done.stderr) == (1, True), done.stderr


def test_who_reads_slowly_gets_what_was_printed_though_the_ranks_ended_long_ago(monkeypatch):
    monkeypatch.setattr(live, "LAST_SECONDS", 0.05)
    read, write = os.pipe()
    came: list[bytes] = []

    def reads() -> None:
        time.sleep(20 * live.LAST_SECONDS)
        while data := os.read(read, 1 << 16):
            came.append(data)

    lines = b"x" * 99 + b"\n"
    with output_into(write), ThreadPoolExecutor() as pool:
        pool.submit(reads)
        with live.LiveOutput(1) as output:
            os.write(output.streams[0][0], 1200 * lines)  # this pipe and that hold 64 KB each
        os.close(1), os.close(write)
    os.close(read)
    assert b"".join(came) == 1200 * (b"[0] " + lines)


@pytest.mark.parametrize(
    ("rank", "sentence"),
    [
        (0, "The standard input of rank 0 has ended."),
        (1, "The standard input is that of rank 0 alone: nobody can answer rank 1."),
    ],
)
def test_a_rank_that_asks_is_told_whose_the_standard_input_is(run, rank, sentence) -> None:
    done = run("-n", 3, "failing.py", "asks", "gloo", rank)
    assert sentence in " ".join(done.stderr.split())
    assert "keyboard" not in done.stderr


def test_a_module_that_raises_is_told_without_the_frames_of_who_ran_it(run) -> None:
    done = run("-n", 3, "-m", "failing", "raises", "gloo")
    assert "ValueError: a bad batch" in done.stderr
    assert "runpy" not in done.stderr


def test_what_cannot_be_written_is_told_behind_the_summary(run, tmp_path) -> None:
    trace = tmp_path / "run.json"
    trace.symlink_to(tmp_path / "gone" / "run.json")
    done = run("-n", 2, "--trace", trace, "tensor.py")
    assert done.returncode == 1
    assert "sent by all ranks together" in done.stderr
    sentence = f"{trace} could not be written: No such file or directory\n"
    assert done.stderr.endswith(sentence), done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
def test_a_full_disk_is_told_with_the_file_that_found_it_so(run, tmp_path) -> None:
    drawing = tmp_path / "run.svg"
    drawing.symlink_to("/dev/full")
    for option, path in (("--trace", "/dev/full"), ("--timeline", drawing)):
        done = run("-n", 2, option, path, "tensor.py")
        sentence = f"byhand: {path} could not be written: No space left on device\n"
        assert (done.returncode, done.stderr.endswith(sentence)) == (1, True), done.stderr


@pytest.mark.parametrize("more", [(), ("and never ends",)])
def test_the_exit_functions_of_a_rank_that_raises_run_once_it_has_told_why(
    run, tmp_path, monkeypatch, more
) -> None:
    if more:
        monkeypatch.setattr(supervise, "LEAVE_SECONDS", 1.0)
    done = run("-n", 3, "failing.py", "raises_and_leaves", "gloo", tmp_path, *more)
    assert done.returncode == 1
    assert "byhand: rank 2 raised ValueError at failing.py" in done.stderr
    assert by_rank(done.stdout)[2] == ["at the exit True"]
    if not more:
        assert len(list(tmp_path.iterdir())) < 3, "the rank that raised left its folder"


@pytest.mark.parametrize(("how", "status"), [("exits", 3), ("dies", 128 + signal.SIGSEGV)])
def test_the_exit_status_is_that_of_the_rank_that_failed(run, how, status) -> None:
    done = run("-n", 3, "failing.py", how, "gloo")
    assert done.returncode == status, done.stderr
    assert "rank 1" in done.stderr


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("minus", 255, "called sys.exit at ending.py:8: -1"),
        ("at_once", 0, ""),
        ("in_lines", 1, "no data:\n  run download.py first,\n  then this again\n\nrank"),
        ("twice", 0, "[0] the child's 3\n"),
    ],
)
def test_a_program_ends_as_python_lets_it_end(run, how, status, words) -> None:
    done = run("-n", 2, "ending.py", how)
    assert done.returncode == status, done.stderr
    assert words in done.stdout + done.stderr


def test_where_no_network_can_be_laid_nothing_was_started() -> None:
    how = {"env": {**environment(), "BYHAND_PORTABLE": "1"}, "capture_output": True, "text": True}
    words = command("-n", 2, "--hosts", 2, PROGRAMS / "ending.py", "at_once")
    done = subprocess.run(words, check=False, **how)
    assert (done.returncode, "no virtual network can be made" in done.stderr) == (2, True)


def test_a_program_that_asks_for_nccl_hears_one_sentence_or_gets_gloo(run) -> None:
    if importlib.import_module("torch").cuda.is_available():
        pytest.skip("there is a GPU here")
    done = run("-n", 3, "failing.py", "asks_for_nccl", "nccl")
    assert done.returncode == 1
    (sentence,) = done.stderr.split("\n")[1:-1]
    assert "asks for NCCL" in sentence
    assert "--backend gloo" in sentence
    done = run("-n", 3, "--backend", "gloo", "failing.py", "asks_for_nccl", "nccl")
    assert by_rank(done.stdout) == {rank: ["gloo gloo"] for rank in range(3)}, done.stderr


@pytest.mark.parametrize(
    ("line", "asks"), [("torch.ones(3).cuda()", True), ("raise ValueError('a bad batch')", False)]
)
def test_only_what_torch_says_of_a_gpu_makes_it_a_matter_of_one(run, tmp_path, line, asks) -> None:
    if importlib.import_module("torch").cuda.is_available():
        pytest.skip("there is a GPU here")
    (tmp_path / "cuda_train.py").write_text(f"import torch\n{line}\n")
    done = run("-n", 1, "cuda_train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert ("There is no GPU here that torch can use" in done.stderr) == asks, done.stderr


def test_output_comes_by_rank_and_stream_and_none_is_lost(run) -> None:
    done = run("-n", 2, "--quiet", "printing.py")
    lines = by_rank(done.stdout)
    assert sorted(lines[0]) == ["from C", "no end", "to out"]
    assert [line for line in lines[1] if line.startswith("line")] == [
        f"line {number}" for number in range(2000)
    ]
    assert re.findall(r"\[0\] to err\n", done.stderr)
    assert all(f"\r[{rank}] 100%" in done.stderr for rank in (0, 1)), repr(done.stderr)


def test_a_line_that_comes_in_two_is_whole_though_another_rank_prints_between(monkeypatch) -> None:
    shown = []
    monkeypatch.setattr(live, "_write", lambda _, data: shown.append(data))
    monkeypatch.setattr(live, "PAUSE", 600.0)
    with live.LiveOutput(2) as output:
        (one, _), (other, _) = output.streams
        os.write(one, b"half")
        wait_until(lambda: output._tails)
        for line in (b"whole", b"another"):
            os.write(other, line + b"\n")
            wait_until(lambda line=line: line in b"".join(shown))
        os.write(one, b" a line\n")
    assert b"".join(shown) == b"[1] whole\n[1] another\n[0] half a line\n"


def _heed_control_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def asleep(*before: str, how_long: str = "sleeps") -> tuple[subprocess.Popen, list[psutil.Process]]:
    """A command in a session of its own, and its two ranks, which sleep."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    words = command("-n", 2, *before, "failing.py", how_long, "gloo")
    how |= {"env": environment(), "cwd": PROGRAMS, "start_new_session": True}
    # where tests run in the background, SIGINT is ignored, and so it were here
    running = subprocess.Popen(words, preexec_fn=_heed_control_c, **how)
    found = [re.search(r"asleep (\d+)", running.stdout.readline()) for _ in range(2)]
    return running, [psutil.Process(int(line[1])) for line in found]


def test_control_c_ends_all_and_says_where_each_rank_was(tmp_path) -> None:
    running, ranks = asleep("--trace", str(tmp_path / "run.json"))
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate()
    assert running.returncode == 130
    assert len(re.findall(r"running +failing\.py:\d+", errors)) == 2, errors
    assert errors.endswith("run.json has 0 calls\n"), errors
    assert not any(rank.is_running() for rank in ranks)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_is_stopped_saves_and_leaves_though_a_rank_waits_for_another(number) -> None:
    running, ranks = asleep(how_long="saves")
    os.kill(ranks[0].ppid(), number)  # a stopped job's every process is told
    os.killpg(running.pid, number)
    printed, errors = running.communicate()
    assert running.returncode == 130
    assert {"cleaned up", "at the exit"} <= set(by_rank(printed)[1]), printed + errors
    assert by_rank(printed)[0] == ["saved", "cleaned up", "at the exit"], printed + errors


def test_a_program_that_heeds_no_stop_is_ended_all_the_same() -> None:
    running, ranks = asleep(how_long="heeds_nothing")
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, "Each rank was here" in errors) == (130, True), errors
    assert not any(rank.is_running() for rank in ranks)


def _stopped(*_: object) -> None:
    raise KeyboardInterrupt


def test_control_c_is_heeded_also_where_no_rank_runs(run, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("byhand.tools.command._draw", _stopped)
    done = run("-n", 2, "--quiet", "--timeline", tmp_path / "run.svg", "tensor.py")
    assert (done.returncode, done.stderr) == (130, "\nbyhand: stopped\n")
    monkeypatch.setattr("byhand.tools.command._understood", _stopped)
    assert run("-n", 2, "tensor.py").returncode == 130


def test_a_command_that_is_killed_leaves_no_process() -> None:
    running, ranks = asleep()
    running.kill()
    running.communicate()
    wait_until(lambda: not any(rank.is_running() for rank in ranks))


@pytest.mark.parametrize("where", [(), pytest.param(("--hosts", 3), marks=pytest.mark.network)])
def test_a_program_that_fails_leaves_no_semaphore(run, where) -> None:
    before = leftovers.segments()
    done = run("-n", 3, *where, "failing.py", "raises_with_a_lock", "gloo")
    assert done.returncode == 1
    assert not leftovers.abandoned_segments(before)


def test_the_deadline_is_the_programs_if_one_is_given(run) -> None:
    done = run("-n", 2, "--deadline", 2, "failing.py", "sleeps", "gloo")
    assert done.returncode == 1
    assert "did not return within the deadline of 2 s" in done.stderr


def test_a_running_program_is_told_by_the_letters_of_its_name(run, tmp_path) -> None:
    (tmp_path / "übung_鍛.py").write_text("import time\ntime.sleep(1000)\n")
    done = run("-n", 1, "--deadline", 1, "übung_鍛.py", cwd=tmp_path)
    assert re.search(r"^0 +running +übung_鍛\.py:2$", done.stderr, re.MULTILINE), done.stderr


@pytest.mark.network
def test_hosts_have_slow_links_and_their_ranks_local_numbers(run, tmp_path) -> None:
    trace, drawing = tmp_path / "run.json", tmp_path / "run.svg"
    files = "--trace", trace, "--timeline", drawing, "--memory"
    done = run("-n", 2, "--hosts", 2, "--rate", "25MB/s", *files, "ddp.py", "--steps", 2)
    assert done.returncode == 0, done.stderr
    assert "sent over the links, by host:" in done.stderr
    assert "the most bytes of tensors held at once, by rank:" in done.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    assert sum(event["name"] == "all_reduce" for event in events) == 2 * 2
    assert "<svg" in drawing.read_text()


@pytest.mark.network
def test_ranks_call_functions_on_other_hosts_whatever_links_the_notebook_has(
    run, monkeypatch
) -> None:
    monkeypatch.setenv("TP_SOCKET_IFNAME", loopback())
    done = run("-n", 2, "--hosts", 2, "remote.py")
    assert by_rank(done.stdout) == {0: ["1024"], 1: ["1024"]}, done.stderr
    assert re.search(r" s, no call on a group\nsent over the links, by host: ", done.stderr)


def test_more_calls_than_are_kept_are_counted_all_the_same(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(supervise, "KEPT_CALLS", 1000)
    done = run("-n", 2, "--trace", tmp_path / "run.json", "many_calls.py", 6000)
    assert done.returncode == 0, done.stderr
    assert calls(done.stderr) == {"all_reduce": 12_000}
    events = json.loads((tmp_path / "run.json").read_text())["traceEvents"]
    assert 1000 <= len(events) < 12_000


def _limit_address_space() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (48 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))


def test_a_program_runs_where_the_shell_limits_its_address_space() -> None:
    words = command("-n", 2, PROGRAMS / "many_calls.py", 10)
    how = {"stderr": subprocess.PIPE, "text": True, "env": environment()}
    done = subprocess.run(words, check=False, preexec_fn=_limit_address_space, **how)
    assert (done.returncode, calls(done.stderr)) == (0, {"all_reduce": 20}), done.stderr


@pytest.mark.parametrize("number", ["many", "0"])
def test_a_number_of_threads_that_is_none_is_told_by_its_name(run, monkeypatch, number) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", number)
    done = run("-n", 1, "ending.py", "at_once")
    sentence = f"OMP_NUM_THREADS is a whole number of at least 1, not '{number}'"
    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr


def test_a_program_runs_though_the_shell_closed_its_output() -> None:
    words = command("-n", 1, PROGRAMS / "ending.py", "twice")
    how = {"stderr": subprocess.PIPE, "text": True, "env": environment()}
    done = subprocess.run(words, check=False, preexec_fn=lambda: os.close(1), **how)
    assert (done.returncode, "1 rank" in done.stderr) == (0, True), done.stderr


def test_it_says_its_version(run) -> None:
    assert run("--version").stdout == f"byhand {byhand.__version__}\n"


@pytest.mark.parametrize("word", ["--version", "--help"])
def test_where_nobody_reads_what_it_says_of_itself_it_says_nothing_else(word) -> None:
    read, write = os.pipe()
    os.close(read)
    how = {"stdout": write, "stderr": subprocess.PIPE, "text": True}
    how["env"] = {**environment(), "PYTHONUNBUFFERED": ""}  # argparse would pass over it at once
    done = subprocess.run(command(word), check=False, **how)
    os.close(write)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-n", 0, "ddp.py"), "a whole number of at least 1, not '0'"),
        (("-n", 2, "nowhere.py"), "there is no file nowhere.py"),
        (("-n", 2, "-m", "nowhere.at_all"), "there is no module nowhere.at_all"),
        (("-n", 2, "--hosts", 2, "--rate", "fast", "ddp.py"), "a rate is such as 25MB/s"),
        (("-n", 2, "--hosts", 2, "--rate", "200Mb/s", "ddp.py"), "a rate is such as 25MB/s"),
        (("-n", 2, "--hosts", 2, "--rate", "1.2.3MB/s", "ddp.py"), "a rate is such as 25MB/s"),
        (("-n", 2, "--rate", "1MB/s", "ddp.py"), "say how many hosts there are"),
        (("-n", 3, "--hosts", 2, "ddp.py"), "3 ranks do not divide among 2 hosts"),
        (("-n", 2, "--trace", "no/where.json", "ddp.py"), "there is no folder no"),
        (
            ("-n", 2, "--trace", ".", "ddp.py"),
            ". is a folder: name a file to write, such as run.json",
        ),
        (("-n", 2, "--timeline", "..", "ddp.py"), "such as ../run.svg"),
        (("-n", 2, "--timeline", "run.png", "ddp.py"), "--timeline writes an SVG"),
        (("-n", 1_000_000, "ddp.py"), "1000000 ranks are more than there is room for"),
        (("-n", 2, "--deadline", -1, "ddp.py"), "a positive number of seconds"),
        (("ddp.py",), "-n/--ranks"),
        (("--standalone", "--nproc_per_node=2", "ddp.py"), "--standalone is torchrun's"),
        (("--nproc-per-node", 2, "-m", "ddp"), "Here it is -n 4 for four ranks"),
        (("--log-dir", "logs", "-n", 2, "ddp.py"), "Here only -n 4 is needed"),
        (("-n", 2, "nowhere.py", "--log-dir", "x"), "there is no file nowhere.py"),
        (("-n", 2, PROGRAMS, "--log-dir", "x"), f"{PROGRAMS} is a folder: name a program in it"),
        (("-n", 2, NOTEBOOK), f"{NOTEBOOK} is a notebook: open it in JupyterLab"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_status_2(run, words, sentence) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert done.stderr.count("\n") == 1, done.stderr
