"""A real Slurm of two nodes: ranks on both, notebooks and a class as arrays, a node that dies."""

import contextlib
import json
import os
import resource
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
import pytest
import slurm_cluster
import tiny_course
import torch
import torch.distributed as dist
from click.testing import CliRunner
from soak import rows
from waiting import wait_until

import byhand
from autograder.batch import slurm
from autograder.batch.commands import run
from autograder.batch.grade_work import GradeWork
from autograder.batch.grading import GradeOptions, grade
from autograder.batch.slurm import Request
from autograder.cli import main
from autograder.places import CourseError
from byhand.runtime import DeadlineError, LaunchError, VirtualNetwork
from byhand.runtime.launching import launch_on
from byhand.runtime.process.member import Member
from byhand.runtime.slurm import placement
from byhand.runtime.slurm.launcher import SlurmLauncher
from byhand.runtime.slurm.node import received
from byhand.runtime.walls import isolation

pytestmark = pytest.mark.slurm
SANDBOXED = not isolation.why_no_sandbox()
NAME = [tiny_course.ASSIGNMENT]
OPTIONS = GradeOptions(sandboxed=SANDBOXED, progress=False)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster, which this process then submits to; when it is stopped, none of it is left."""
    reason = slurm_cluster.install()
    if reason:
        pytest.skip(reason)
    with (
        pytest.MonkeyPatch.context() as patch,
        slurm_cluster.Cluster(tmp_path_factory.mktemp("slurm")) as cluster,
    ):
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        patch.setattr(slurm, "POLL_SECONDS", 0.5)
        yield cluster
    assert cluster.processes() == []


@contextlib.contextmanager
def allocation(cluster):
    """Both nodes, as salloc gives them: what a notebook under Slurm finds in its environment."""
    command = ["salloc", "--no-shell", "--no-kill", "--nodes=2", "--job-name=notebook"]
    subprocess.run(command, check=True, capture_output=True)
    (job,) = cluster.output("squeue", "--noheader", "--name=notebook", "--format=%i").split()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_JOB_ID", job)
        patch.setenv("SLURM_JOB_NUM_NODES", "2")
        yield
    subprocess.run(["scancel", job], check=True)


@pytest.fixture(scope="module")
def launcher(cluster):
    """Ranks on both nodes; in the end they have left neither messages nor temporary folders."""
    temporary = cluster.folder / "tmp"
    temporary.mkdir()
    with allocation(cluster), pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYHAND_SHARED", str(cluster.folder))
        patch.setenv("TMPDIR", str(temporary))
        yield SlurmLauncher()
        assert list(cluster.folder.glob(".byhand-*")) == []
        left = [path.name for path in temporary.iterdir()]
        # torch's cache, and the folder of a kernel that died with its node
        known = ("torchinductor_", "autograder-")
        assert [name for name in left if not name.startswith(known)] == []


def add(rank, world_size, x):
    print("rank", rank)
    total = x + rank
    dist.all_reduce(total)
    return total, os.environ.get("SLURMD_NODENAME"), os.environ["LOCAL_RANK"]


LINE = add.__code__.co_firstlineno + 3


def raises(rank, world_size):
    if rank == 2:
        raise ValueError("not this rank")
    dist.barrier()


def one_call_fewer(rank, world_size):
    if rank < 3:
        dist.all_reduce(torch.ones(2))


def dies(rank, world_size):
    if rank == 3:
        os.kill(os.getpid(), 11)
    dist.barrier()


def sleeps(rank, world_size):
    time.sleep(60)


def joins_twice(rank, world_size):
    x = torch.ones(1)
    for _ in range(2):
        byhand.setup(rank, world_size)
        dist.all_reduce(x)
        byhand.cleanup()
    dist.init_process_group("gloo")
    dist.all_reduce(x)
    return x.item()


def test_neighbouring_ranks_share_a_node():
    assert placement(5, 2) == [0, 0, 0, 1, 1]
    assert placement(1, 2) == [0]
    assert placement(8, 3) == [0, 0, 0, 1, 1, 1, 2, 2]


def test_a_rank_that_ends_before_it_reads_its_call_has_nothing_to_say():
    member, (rank, *_) = Member.create(0)
    member.control.send(b"the call")
    rank.close()
    assert received(member) == b""
    assert not member.started(), "and what was seen once is known"
    member.close()


def test_outside_an_allocation_the_error_says_how_to_get_one(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(LaunchError, match="start it with salloc or sbatch, or by autograder run"):
        byhand.launch(sleeps, 2, launcher="slurm")
    with pytest.raises(ValueError, match=r'"local" or "slurm", not .flux.'):
        byhand.launch(sleeps, 2, launcher="flux")


def test_the_same_launch_runs_on_both_nodes_and_brings_everything_back(launcher):
    x = torch.arange(3.0)
    here, there = byhand.launch(add, 4, args=(x,)), launch_on(launcher, add, 4, args=(x,))
    values, nodes, local_ranks = zip(*there.results, strict=True)
    assert nodes == ("n1", "n1", "n2", "n2")
    assert local_ranks == ("0", "1", "0", "1")
    assert torch.equal(torch.stack(values), torch.stack([x * 4 + 6] * 4))
    assert there.output == [f"rank {rank}\n" for rank in range(4)] == here.output
    assert there.ledger.sent_bytes() == here.ledger.sent_bytes() == 4 * 18
    assert there.peak_bytes == here.peak_bytes
    assert {event.source for event in there.ledger.events} == {f"test_slurm.py:{LINE}"}


def test_ranks_may_join_by_themselves_and_arguments_differ_by_rank(launcher):
    assert launch_on(launcher, joins_twice, 3, setup=False).results == [27.0] * 3
    given = byhand.PerRank([torch.zeros(1), torch.ones(1)])
    run = launch_on(launcher, add, 2, args=(given,))
    assert [value.item() for value, _, _ in run.results] == [2.0, 2.0]


def test_an_error_on_another_node_names_rank_and_line(launcher):
    with pytest.raises(
        byhand.RankError, match=r"rank 2 raised ValueError at test_slurm.py"
    ) as error:
        launch_on(launcher, raises, 4)
    assert error.value.rank == 2
    with pytest.raises(byhand.RankError, match=r"rank 3 died: .* SIGSEGV"):
        launch_on(launcher, dies, 4)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_why_a_rank_on_a_node_could_not_start_is_told(launcher):
    with pytest.raises(LaunchError, match=r'rank \d could not start: ValueError: backend "nccl"'):
        launch_on(launcher, add, 4, args=(torch.ones(1),), backend="nccl")


def test_a_shared_folder_that_is_not_there_is_told_with_what_to_do(launcher, monkeypatch, tmp_path):
    monkeypatch.setenv("BYHAND_SHARED", str(tmp_path / "nowhere"))
    with pytest.raises(
        LaunchError, match=r"BYHAND_SHARED=.*/nowhere: No such file .*\. Set BYHAND"
    ):
        launch_on(launcher, sleeps, 4)


def test_a_deadlock_across_nodes_is_named_as_on_one(launcher):
    with pytest.raises(byhand.DeadlockError) as error:
        launch_on(launcher, one_call_fewer, 4)
    assert "rank 3 returned after 0 such calls" in error.value.reason
    assert [report.state for report in error.value.reports] == ["waiting"] * 3 + ["returned"]
    assert error.value.reports[1].source.startswith("test_slurm.py:")


def test_the_deadline_holds_on_every_node(launcher):
    with pytest.raises(DeadlineError) as error:
        launch_on(launcher, sleeps, 4, deadline=1.0)
    assert [report.state for report in error.value.reports] == ["running"] * 4


NOTEBOOK = """
import os, time
from byhand import launch
def step(rank, world_size, path):
    open(f"{path}/{os.getpid()}", "w").close()
    time.sleep(600)
launch(step, 4, args=(%r,), launcher="slurm")
"""


def test_the_ranks_end_with_the_process_that_launched_them(launcher, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", NOTEBOOK % str(tmp_path)])
    wait_until(lambda: len(list(tmp_path.iterdir())) == 4)
    process.kill()
    process.wait()
    pids = [path.name for path in tmp_path.iterdir()]
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))


def test_where_open_files_run_out_a_sentence_names_the_limit_and_none_stays_open(launcher):
    before, limits = os.listdir("/proc/self/fd"), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        with pytest.raises(LaunchError, match=r"64 ranks need more .* its 256 \(ulimit -n\)"):
            launch_on(launcher, sleeps, 64)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert os.listdir("/proc/self/fd") == before


def test_a_virtual_network_belongs_to_one_machine(launcher):
    with pytest.raises(ValueError, match="the network is the real one"):
        launch_on(launcher, sleeps, 4, network=VirtualNetwork())


def test_a_lost_node_ends_the_launch_with_its_name(cluster, launcher, tmp_path):
    """The last test of `launcher`, which it costs a node."""
    started = tmp_path / "started"

    def wait_to_be_lost(rank, world_size):
        started.touch()
        time.sleep(60)

    def lose():
        wait_until(started.exists)
        cluster.lose_node("n2")

    threading.Thread(target=lose).start()
    with pytest.raises(LaunchError, match=r"(?s)lost a node of the allocation; .*n2"):
        launch_on(launcher, wait_to_be_lost, 4)
    cluster.start()


def notebook(path, *sources, parameters=""):
    """A notebook of code cells, after a parameters cell if given."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    if parameters:
        cells.insert(0, nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    book = nbformat.v4.new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, path)
    return path


LAUNCHING = """import os
from byhand import launch
def where(rank, world_size):
    return os.environ["SLURMD_NODENAME"]
print("ranks on", *launch(where, world_size).results)"""


def test_a_notebook_run_on_two_nodes_has_its_ranks_on_both(cluster, tmp_path):
    path = notebook(tmp_path / "book.ipynb", LAUNCHING, parameters="world_size = 4")
    out = tmp_path / "out"
    options = ["--slurm", "--nodes", "2", "--no-html", "--out", str(out), "-p", "world_size", "3"]
    result = CliRunner().invoke(run, [str(path), *options])
    assert result.exit_code == 0, result.output
    (log,) = out.glob("*/book.log")
    assert "ranks on n1 n1 n2" in log.read_text()


def test_each_notebook_is_a_job_with_a_log_and_a_line_in_the_table(cluster, tmp_path):
    notebook(tmp_path / "bad.ipynb", "1", "1 / 0", "2")
    notebook(tmp_path / "good.ipynb", "print('x is', x)", parameters="x = 4")
    out = tmp_path / "out"
    options = ["--slurm", "--sbatch", "cpus-per-task=1", "--out", str(out), "-p", "x", "7"]
    result = CliRunner().invoke(run, [str(tmp_path), *options])
    assert result.exit_code == 1
    assert "1 of 2 notebooks ran" in result.output
    assert 'code cell 3 "' in result.output
    assert "raised ZeroDivisionError" in result.output
    assert sorted(path.name for path in out.glob("*/*") if path.parent.name != "slurm") == [
        "bad.ipynb",
        "bad.log",
        "good.html",
        "good.ipynb",
        "good.log",
    ]
    (log,) = out.glob("*/good.log")
    assert "x is 7" in log.read_text()


@dataclass(frozen=True)
class Stubborn:
    """Work whose item n is done the n-th time only; before, it waits to be killed, or fails."""

    folder: Path
    refuses: str = ""

    @contextlib.contextmanager
    def worker(self):
        if self.refuses:
            raise CourseError(self.refuses)
        yield self.do, lambda: None

    def is_doubtful(self, result):
        return False

    def do(self, item):
        attempt = 1 + len(list(self.folder.glob(f"{item} *")))
        (self.folder / f"{item} {attempt}").touch()
        if attempt < item:
            time.sleep(60)
        return attempt


def reports(tmp_path, work, items, **sbatch):
    return slurm.on_slurm(Request(sbatch=sbatch), tmp_path / "jobs", processes=1)(work, items)


def test_a_job_that_is_cancelled_is_lost_and_the_others_count(cluster, tmp_path):
    def lose_the_second():
        wait_until((tmp_path / "2 1").exists)
        (job,) = [job for job in slurm._queued() if job.endswith("_1")]
        subprocess.run(["scancel", job], check=True)

    threading.Thread(target=lose_the_second).start()
    found = list(reports(tmp_path, Stubborn(tmp_path), [1, 2]))
    assert [(r.item, r.result) for r in found] == [(0, 1), (1, None)]
    assert found[1].why == "its job was cancelled; the same command does the rest"
    assert list(tmp_path.glob("jobs/*/*")), "what the jobs wrote stays, to be read"


def test_a_job_that_slurm_begins_again_goes_on_from_its_record(tmp_path):
    shard = slurm.Shard(0, Stubborn(tmp_path), {4: 1, 7: 1, 9: 1}, tmp_path, 1)
    shard.record.write_text('[7, 1, ""]\n[4, 1')
    shard.do()
    assert [(r.item, r.result) for r in shard.news()] == [(7, 1), (4, 1), (9, 2)]
    assert len(list(tmp_path.glob("1 *"))) == 2, "what was done is not done again"


def test_work_that_a_job_refuses_is_lost_with_its_last_words(cluster, tmp_path):
    (report,) = reports(tmp_path, Stubborn(tmp_path, "the disk of this node is full"), [1])
    assert "the disk of this node is full" in report.why


def queued_names(cluster):
    return cluster.output("squeue", "--noheader", "--format=%j").split()


def test_jobs_do_not_outlive_whoever_follows_them(cluster, tmp_path):
    found = reports(tmp_path, Stubborn(tmp_path), [1, 3])
    assert next(found).result == 1
    found.close()
    wait_until(lambda: not any(n.startswith("autograder") for n in queued_names(cluster)))


def test_a_request_that_slurm_refuses_is_a_sentence(cluster, tmp_path):
    with pytest.raises(CourseError, match=r"Slurm refuses the jobs: .*partition"):
        list(reports(tmp_path, Stubborn(tmp_path), [1], partition="nowhere"))
    assert not list(tmp_path.iterdir()), "of a job that never was nothing stays"


def make_class(folder):
    """Four hand-ins; the second of each shard is slow: there is a middle for a node to die in."""
    where = tiny_course.make_course(folder)
    right = tiny_course.solved(tiny_course.released(where))
    wrong = "def total(t):\n    return t"
    slow = "import time\n\ndef double(n):\n    time.sleep(1)\n    return 2 * n"
    for name, answers in {
        "ada": {},
        "ben": {"total": wrong},
        "cem": {"double": slow},
        "dee": {"double": slow, "total": wrong},
    }.items():
        tiny_course.hand_in(where, name, tiny_course.answered(right, **answers))
    return where


@pytest.fixture(scope="module")
def graded_here(tmp_path_factory):
    """That class, graded on this machine."""
    where = make_class(tmp_path_factory.mktemp("here"))
    assert grade(where, NAME, [], OPTIONS).failures == []
    return where


def journal_lines(where):
    return [line for line in where.journal.read_bytes().splitlines() if line]


def test_a_class_graded_while_a_node_dies_has_the_same_gradebook(cluster, graded_here, tmp_path):
    where, lost = make_class(tmp_path), []

    def lose_the_first_to_begin():
        records = where.class_dir / "slurm"
        wait_until(lambda: any(p.stat().st_size > 1 for p in records.glob("*/*.jsonl")))
        shard = next(p for p in records.glob("*/*.jsonl") if p.stat().st_size > 1).stem
        lines = cluster.output("squeue", "--noheader", "--array", "--format=%i %N").split("\n")
        lost.extend(line.split()[1] for line in lines if f"_{shard} " in line)
        cluster.lose_node(lost[0])

    threading.Thread(target=lose_the_first_to_begin).start()
    request = Request(sbatch={"cpus-per-task": 9})  # a node takes one such job
    queue = slurm.on_slurm(request, where.class_dir / "slurm", size=2, processes=1)
    outcome = grade(where, NAME, [], replace(OPTIONS, queue=queue))
    assert outcome.failures == []
    assert len(lost) == 1
    assert rows(where.gradebook) == rows(graded_here.gradebook)
    assert len(journal_lines(where)) == 4, "each counts once"
    assert not list(where.class_dir.glob("slurm/*"))
    cluster.start()


def test_what_the_jobs_of_a_killed_run_judged_is_not_judged_again(cluster, graded_here, tmp_path):
    where = make_class(tmp_path)
    folder = where.class_dir / "slurm" / "20260101-120000-1"
    folder.mkdir(parents=True)
    done = [json.dumps([n, line.decode(), ""]) for n, line in enumerate(journal_lines(graded_here))]
    (folder / "0.jsonl").write_text("\n".join([*done, '[4, "torn']))
    command = ["sbatch", f"--job-name=autograder-{folder.name}", "--output=/dev/null"]
    subprocess.run([*command, "--wrap=sleep 60"], check=True, capture_output=True)
    outcome = grade(where, NAME, [], replace(OPTIONS, queue=asked_for_nothing))
    assert (outcome.new, len(outcome.judgements)) == (0, 4)
    assert rows(where.gradebook) == rows(graded_here.gradebook)
    wait_until(lambda: f"autograder-{folder.name}" not in queued_names(cluster))
    assert not folder.exists()


def asked_for_nothing(work, items):
    assert list(items) == []
    yield from ()


def test_a_node_with_another_environment_judges_nothing(tmp_path):
    where = tiny_course.make_course(tmp_path)
    work = GradeWork(where, {"sandboxed": False, "seed": None, "limit": None}, "torch 1.0")
    told = r"this node has .* has torch 1\.0: use one environment"
    with pytest.raises(CourseError, match=told), work.worker():
        pass


def test_options_of_slurm_without_slurm_are_refused(tmp_path):
    for arguments in (["run", str(tmp_path), "--nodes", "2"], ["grade", "--gpus", "1"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 2
        assert "only with --slurm" in result.output
