"""Grading on GPUs: what is decided before, what a sandbox lets in, and how ranks live there.

All decisions are functions of numbers and files, tested without a GPU; the last tests need one.
"""

import json
import os
import pickle

import cloudpickle
import pytest
import tiny_course
import torch
import torch.distributed as dist
from click.testing import CliRunner

from autograder.cli import main
from autograder.grade import devices, verdicts
from autograder.grade.engine import Grader
from autograder.grade.journal import Judgement
from autograder.grade.judge import LIMITS, Judge
from autograder.grade.warm_kernel import case_of
from autograder.places import CourseError, Places
from byhand import PerRank, launch
from byhand.runtime import LaunchError
from byhand.runtime.launching import launch_on
from byhand.runtime.process import world as process_group
from byhand.runtime.trace.log import LogWriter
from byhand.runtime.walls import isolation, on_gpu
from byhand.runtime.walls.gpus import (
    MORE,
    NO_GPUS,
    PATIENCE,
    Gpus,
    device_files,
    environment,
)
from byhand.runtime.walls.limits import Walls
from byhand.runtime.walls.on_gpu import GpuWalls
from byhand.runtime.walls.question import Sandbox

META = torch.device("meta")


@pytest.fixture
def with_nccl(monkeypatch):
    """As if NCCL were built into this torch."""
    monkeypatch.setattr(process_group.dist, "is_nccl_available", lambda: True)


# What is decided before grading


def test_unless_asked_and_without_gpus_grading_stays_on_the_cpu():
    lent = [devices.lent(None, 0), devices.lent(None, 4), *(devices.lent(n, 0) for n in ASKED)]
    assert lent == [NO_GPUS] * 4
    assert str(NO_GPUS) == "gloo on the CPU"


ASKED = ("auto", "gloo")


def test_nccl_without_a_gpu_is_refused_in_a_sentence():
    with pytest.raises(CourseError, match="nccl needs a GPU for each rank, and each job has none"):
        devices.lent("nccl", 0, "each job has")


@pytest.mark.parametrize(
    ("asked", "backends"),
    [
        ("gloo", ["gloo", "gloo", "gloo"]),
        ("auto", [process_group.MIXED, process_group.MIXED, "gloo"]),
    ],
)
def test_a_launch_that_says_auto_gets_what_the_instructor_asked_for(with_nccl, asked, backends):
    walls = GpuWalls(gpus=Gpus(2, asked))
    assert [walls.backend("auto", ranks) for ranks in (1, 2, 3)] == backends
    assert walls.backend("gloo", 1) == "gloo", "a test that names a backend means it"


def test_too_few_gpus_at_a_launch_are_nobodys_fault_but_the_machines(with_nccl):
    with pytest.raises(LaunchError, match="3 ranks, 2 GPUs here") as caught:
        GpuWalls(gpus=Gpus(2, "nccl")).backend("auto", 3)
    verdict = verdicts.failed("test", 1, "", caught.value, 30, 0)
    assert verdict.verdict == verdicts.INFRASTRUCTURE


def test_the_command_line_refuses_nccl_before_it_grades_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    arguments = ["grade", "01_ranks", "--backend", "nccl", "--class", str(tmp_path)]
    for more, words in (([], "this machine has none"), (["--slurm"], "each job (--gpus) has none")):
        done = CliRunner().invoke(main, arguments + more)
        assert done.exit_code == 1
        assert f"and {words}" in done.output
    assert not list(tmp_path.iterdir()), "nothing was begun"


# What a sandbox lets in, and what bounds it


def test_only_the_drivers_files_that_are_there_are_let_in(tmp_path):
    for name in ("nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"):
        (tmp_path / name).touch()
    found = [path.rpartition("/")[2] for path in device_files(tmp_path)]
    assert found == ["nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm"]
    assert NO_GPUS.files == ()


def test_of_the_environment_only_which_gpus_and_the_systems_libraries_are_let_in():
    given = {
        "CUDA_VISIBLE_DEVICES": "1",
        "SECRET": "x",
        "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64:/home/me:/usr/../etc",
    }
    made = environment(given)
    assert (made["CUDA_VISIBLE_DEVICES"], made["LD_LIBRARY_PATH"]) == (
        "1",
        "/usr/local/nvidia/lib64",
    )
    assert "SECRET" not in made


def test_memory_has_a_limit_of_its_own_on_a_gpu_and_the_others_stay():
    limits = Gpus(1, "gloo").limits(LIMITS)
    assert limits["device_bytes"] == LIMITS["memory_bytes"]
    assert limits["memory_bytes"] == LIMITS["memory_bytes"] + MORE["memory_bytes"]
    same = ("file_bytes", "scratch_bytes", "output_bytes", "reply_bytes")
    assert {name: limits[name] for name in same} == {name: LIMITS[name] for name in same}
    assert NO_GPUS.limits(LIMITS) == LIMITS


def test_as_many_ranks_try_the_gpus_as_will_use_them_and_with_gloo_two_share_one():
    assert [Gpus(2, name).trial for name in ("gloo", "nccl", "auto")] == [3, 2, 2]
    assert NO_GPUS.trial == 0


def test_questions_have_more_time_on_gpus_unless_the_instructor_says_how_long():
    source = tiny_course.source()
    on_cpu, on_gpus = case_of(source, source), case_of(source, source, gpus=Gpus(1))
    assert [q.limit for q in on_gpus.questions] == [PATIENCE * q.limit for q in on_cpu.questions]
    assert case_of(source, source, 7.0, Gpus(1)).questions[0].limit == 7.0


# How a rank lives on its GPU: `meta` stands for another device, and the CPU for itself


class Holder:
    """An object with tensors in it, as tests give to drivers."""

    def __init__(self):
        self.weight = torch.arange(6.0).reshape(2, 3).T
        self.bias = torch.nn.Parameter(torch.ones(2))


def test_every_tensor_of_a_call_is_moved_wherever_it_is_held():
    inside = torch.ones(2)
    data = cloudpickle.dumps((lambda: inside, (Holder(), {"a": [torch.zeros(3)]}, 5)))
    walls = GpuWalls()
    walls.device = META
    function, (holder, nested, number) = walls.load(pickle.dumps((b"", data)))
    found = [function(), holder.weight, holder.bias, nested["a"][0]]
    assert {tensor.device.type for tensor in found} == {"meta"}
    assert holder.weight.stride() == (1, 3), "still a transposed view"
    assert isinstance(holder.bias, torch.nn.Parameter)
    assert holder.bias.requires_grad
    assert number == 5
    assert Walls().load(pickle.dumps((b"", data)))[1][0].weight.device.type == "cpu"


def test_new_tensors_are_made_on_the_device_and_random_ones_drawn_on_the_cpu():
    seeded = torch.Generator().manual_seed(3)
    with on_gpu.placed(META):
        made = [
            torch.zeros(2),
            torch.tensor([1]),
            torch.randperm(5, generator=seeded),
            torch.randn(2, requires_grad=True),
        ]
        assert torch.zeros(1, device="cpu").device.type == "cpu"
    assert {tensor.device.type for tensor in made} == {"meta"}
    assert made[3].requires_grad
    assert made[3].is_leaf
    assert torch.zeros(1).device.type == "cpu"


def test_random_numbers_are_those_of_the_cpu():
    torch.manual_seed(5)
    expected = torch.randn(3), torch.rand(2, 2), torch.randint(9, (4,))
    torch.manual_seed(5)
    with on_gpu.placed(torch.device("cpu")):
        assert all(
            map(torch.equal, expected, (torch.randn(3), torch.rand(2, 2), torch.randint(9, (4,))))
        )


def in_every_way(rank, world_size):
    """Messages of each kind between two ranks, through main memory as from a GPU."""
    other, mine, got = 1 - rank, torch.full((3,), float(rank)), [torch.zeros(3) for _ in range(4)]
    with Everywhere(LogWriter(-1)) as recorder:
        sending = dist.isend(mine, other)
        dist.recv(got[0], other)
        sending.wait()
        arriving = dist.irecv(got[1], other)
        dist.send(mine + 10, other) if rank else arriving.wait()
        arriving.wait() if rank else dist.send(mine + 10, other)
        ops = [dist.P2POp(dist.isend, mine + 20, other), dist.P2POp(dist.irecv, got[2], other)]
        for work in on_gpu._one_by_one(ops):
            work.wait()
        dist.send(mine + 30, other) if rank else dist.recv(got[3])
        waiting = len(recorder._arriving)
    return got, recorder.staged, waiting


class Everywhere(on_gpu.Staging):
    """Takes every tensor for one on a GPU, and counts them."""

    staged = 0

    def stages(self, tensor):
        self.staged += 1
        return True


def test_messages_go_through_main_memory_and_arrive_where_they_belong():
    results = launch(in_every_way, 2).results
    for rank, (got, staged, waiting) in enumerate(results):
        other = 1.0 - rank
        expected = [other, other + 10, other + 20, 31.0 if rank == 0 else 0.0]
        assert [tensor.tolist() for tensor in got] == [[value] * 3 for value in expected]
        assert (staged, waiting) == (7, 0), "each message staged once, and none forgotten"


# Grading, with GPUs that are not there


def judged_by(source, student, launcher):
    """Verdicts of the judge with this launcher, without a kernel around it."""
    asked, namespace = case_of(source, student, gpus=launcher.gpus), {}
    judge = Judge(asked, launcher, namespace)
    for text in asked.preparation:
        exec(text, namespace)
    return [judge.ask(question) for question in asked.questions]


DEVICES = ("/dev/fuse", "/dev/net/tun")  # stand for a GPU's file: no sandbox has them of its own


def _everybody_may_open(path: str) -> bool:
    """As a GPU's file. Root may open any here, and none but these inside a sandbox."""
    return os.path.exists(path) and os.stat(path).st_mode & 0o006 == 0o006


LET_IN = [path for path in DEVICES if _everybody_may_open(path)][:1]


@pytest.fixture(scope="module")
def gpuless():
    """A judge's launcher that was promised two GPUs, and ranks that find none."""
    if why_not := isolation.why_no_sandbox():
        pytest.skip(why_not)
    command = isolation.sandbox_command(devices=LET_IN)
    with Sandbox(command, gpus=Gpus(2, "gloo")) as launcher:
        yield launcher


def opened(path: str) -> tuple[bool, str]:
    import os

    os.close(os.open(path, os.O_RDWR))
    return os.path.isdir("/sys/devices"), os.environ["NCCL_P2P_DISABLE"]


@pytest.mark.skipif(not LET_IN, reason=f"none of {DEVICES} is there for everybody")
def test_a_device_that_is_let_in_can_be_written_to_inside_the_sandbox(gpuless):
    question = gpuless.fresh(limits=Gpus(1).limits(LIMITS))
    run = launch_on(question, opened, 1, tuple(LET_IN), setup=False, alone=True)
    question.close()
    assert run.results[0] == (True, "1")


def test_the_same_checks_pass_by_way_of_a_gpu(gpuless):
    source = tiny_course.source()
    found = judged_by(source, source, gpuless)
    assert {verdict.verdict for verdict in found} == {"passed"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="the GPUs are there")
def test_what_fails_while_the_gpus_do_is_not_the_students_fault(gpuless):
    wrong = tiny_course.answered(tiny_course.source(), total=TOTAL_WRONG)
    found = judged_by(tiny_course.source(), wrong, gpuless)
    assert [v.verdict for v in found] == ["passed", "infrastructure"]
    assert "Expected a cuda device" in found[1].message


TOTAL_WRONG = "def total(tensor):\n    return tensor"


# What is recorded and told


def test_the_devices_are_recorded_and_part_of_the_key(tmp_path):
    where, NAME = tiny_course.make_course(tmp_path), tiny_course.ASSIGNMENT
    tiny_course.hand_in(where, "ada", tiny_course.source())
    line = Judgement("k", "ada", "01", "now", 1, "none", 1.0, [], [], devices="gloo on 1 GPU")
    assert Judgement.from_line(line.as_line()).devices == "gloo on 1 GPU"
    before = json.loads(line.as_line())
    del before["devices"]
    assert Judgement.from_line(json.dumps(before).encode()).devices == "gloo on the CPU"
    with_gpus = Grader(where, sandboxed=False, gpus=Gpus(1, "gloo"))
    with Grader(where, sandboxed=False) as without, with_gpus:
        keys = {grader.take_in("ada", NAME).key for grader in (without, with_gpus)}
    assert len(keys) == 2


# On a GPU

needs_two = pytest.mark.skipif(
    torch.cuda.device_count() < 2, reason="needs a GPU for each of 2 ranks"
)


def to_the_next(rank, world_size, tensor):
    """What the rank before sent, from a GPU to a GPU, and the sum of all."""
    got, total = torch.empty_like(tensor), tensor.clone()
    sending = dist.isend(tensor, (rank + 1) % world_size)
    dist.recv(got, (rank - 1) % world_size)
    sending.wait()
    dist.all_reduce(total)
    return got, total, tensor.is_cuda, torch.zeros(1).is_cuda


HOG = "def total(tensor):\n    return torch.ones(1 << 32)"
WHERE = "def total(tensor):\n    assert tensor.is_cuda and torch.ones(1).is_cuda\n"


def gpu_command():
    return () if isolation.why_no_sandbox() else isolation.sandbox_command((), device_files())


@pytest.fixture(scope="module")
def on_gpus():
    """Judges the tiny course on this machine's GPUs, with `total` as given: (verdicts, message)."""
    found = torch.cuda.device_count()

    def judge(total: str, backend: str = "gloo") -> tuple[list[str], str]:
        notebook = tiny_course.answered(tiny_course.source(), total=total)
        gpus = Gpus(found, backend)
        with Sandbox(gpu_command(), gpus) as launcher:
            verdicts = judged_by(tiny_course.source(), notebook, launcher)
        return [v.verdict for v in verdicts], verdicts[1].message

    return judge


@pytest.mark.gpu
def test_the_sandbox_reaches_every_gpu(tmp_path):
    found = torch.cuda.device_count()
    assert devices.chosen(Places(tmp_path, tmp_path), "auto", None) == Gpus(found, "auto")


@pytest.mark.gpu
def test_ranks_that_share_a_gpu_are_graded_through_gloo(on_gpus):
    in_place = WHERE + tiny_course.TOTAL.partition("\n")[2]
    assert on_gpus(in_place) == (["passed", "passed"], "")


@pytest.mark.gpu
@pytest.mark.parametrize("ranks", [2, 3])
def test_messages_from_gpus_arrive_and_the_kernels_count_agrees_with_the_ledger(ranks):
    gpus = Gpus(torch.cuda.device_count(), "gloo")
    tensors = [torch.arange(4.0) + 10 * rank for rank in range(ranks)]
    with Sandbox(gpu_command(), gpus) as launcher:
        question = launcher.fresh(limits=gpus.limits(LIMITS))
        run = launch_on(question, to_the_next, ranks, (PerRank(tensors),))
    for rank, (got, total, *on_gpu_too) in enumerate(run.results):
        assert torch.equal(got, tensors[rank - 1])
        assert torch.equal(total, sum(tensors))
        assert on_gpu_too == [True, True]


@pytest.mark.gpu
def test_wrong_answers_and_hogs_fail_on_a_gpu_as_they_do_on_the_cpu(on_gpus):
    assert on_gpus(TOTAL_WRONG)[0] == ["passed", "failed"]
    assert on_gpus(HOG)[0] == ["passed", "resource"]


@pytest.mark.gpu
@needs_two
def test_ranks_with_a_gpu_each_are_graded_through_nccl_and_share_them_when_there_are_more(on_gpus):
    in_place = WHERE + tiny_course.TOTAL.partition("\n")[2]
    assert on_gpus(in_place, "auto") == (["passed", "passed"], "")
