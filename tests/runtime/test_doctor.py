"""The doctor says what works here, and how to mend what does not."""

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

import pytest

from byhand.tools import doctor


def test_the_table_names_every_part_of_the_machine_once(capsys):
    status = doctor.main()
    lines = capsys.readouterr().out.splitlines()
    names = [line[:16].strip() for line in lines[1:] if line[:1].strip()]
    wanted = [
        "system",
        "Python",
        "torch",
        "gloo",
        "NCCL",
        "devices",
        "cores",
        "ranks",
        "bubblewrap",
    ]
    assert names[:12] == [*wanted, "virtual network", "Slurm", "nbgrader"]
    assert status == 0, "ranks run in this very test suite, so the lectures run here"


def test_the_oldest_torch_is_the_one_that_the_package_asks_for(monkeypatch):
    oldest = ".".join(map(str, doctor.OLDEST_TORCH))
    assert f"torch>={oldest}" in importlib.metadata.requires("byhand")
    for version, works in ((f"{oldest}.0+cu128", True), ("2.8.1", False)):
        monkeypatch.setattr(doctor.torch, "__version__", version)
        assert doctor.torch_version().works is works


def test_what_could_not_be_tried_is_said_where_it_runs(monkeypatch):
    on_wsl = platform.uname()._replace(release="6.6.87.2-microsoft-standard-WSL2")
    monkeypatch.setattr(doctor.platform, "uname", lambda: on_wsl)
    assert "/mnt/c is slow; not tried" in doctor.system().found
    monkeypatch.setattr(doctor, "PORTABLE", True)
    assert doctor.system().found.endswith(doctor.ON_PORTABLE)
    assert doctor.ON_PORTABLE in Path(__file__).parents[2].joinpath("README.md").read_text()


def test_two_ranks_are_really_started():
    assert doctor.ranks().works
    assert "2 ranks" in doctor.ranks().found


def test_a_missing_program_is_found_missing_and_its_package_named(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "which", lambda name, path=None: None)
    for finding in (doctor.slurm(), doctor.nbgrader()):
        assert not finding.works, finding
        assert not finding.needed, "the lectures run without it"
    assert "slurm-wlm" in doctor.table([doctor.slurm()])


def test_alembic_is_found_beside_python_without_an_activated_environment(monkeypatch, tmp_path):
    pytest.importorskip("nbgrader")
    monkeypatch.setenv("PATH", "/nowhere")
    assert doctor.nbgrader().works
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    finding = doctor.nbgrader()
    assert not finding.works
    assert f"neither on PATH nor in {tmp_path}/bin" in finding.found
    assert finding.fix == "pip install alembic"


def test_a_slurm_that_answers_is_described_by_its_partitions(monkeypatch, tmp_path):
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\necho '2 nodes in short*'\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert doctor.slurm() == doctor.Finding(
        "Slurm", True, "2 nodes in short*", doctor.slurm().fix, needed=False
    )


def test_a_slurm_that_does_not_answer_says_what_it_said(monkeypatch, tmp_path):
    sinfo = tmp_path / "sinfo"
    sinfo.write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
    sinfo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    finding = doctor.slurm()
    assert not finding.works
    assert finding.found == "Unable to contact slurm controller"


def test_what_the_lectures_need_decides_the_exit_status(monkeypatch, capsys):
    broken = doctor.Finding("ranks", False, "no sockets", "allow sockets")
    monkeypatch.setattr(doctor, "CHECKS", (lambda: broken,))
    assert doctor.main() == 1
    assert "allow sockets" in capsys.readouterr().out


def test_a_network_that_may_not_be_made_says_why(monkeypatch):
    monkeypatch.setattr(doctor, "why_no_network", lambda: "unshare: Operation not permitted")
    finding = doctor.virtual_network()
    assert (finding.works, finding.found) == (False, "unshare: Operation not permitted")
    assert "figures recorded" in finding.fix


@pytest.mark.gpu
def test_a_gpu_is_named_and_counted_for_nccl():
    import torch

    assert torch.cuda.get_device_name(0) in doctor.devices().found
    assert doctor.nccl().works
