"""The doctor says what works here, and how to mend what does not."""

import importlib.metadata
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from byhand.runtime import system
from byhand.tools import doctor


def test_the_table_names_every_part_of_the_machine_once(capsys):
    status = doctor.main()
    lines = capsys.readouterr().out.splitlines()
    names = [line[:16].strip() for line in lines[1:] if line[:1].strip()]
    assert names[: len(doctor.CHECKS)] == list(doctor.CHECKS)
    assert status == 0, "ranks run in this very test suite, so the lectures run here"


def test_what_the_lectures_need_decides_the_exit_status(monkeypatch, capsys):
    def no_sockets():
        raise doctor.Missing("no sockets", "allow sockets")

    for name, status in (("ranks", 1), ("bubblewrap", 0)):
        monkeypatch.setattr(doctor, "CHECKS", {name: no_sockets})
        assert doctor.main() == status
        assert "no    no sockets\n" + 23 * " " + "→ allow sockets" in capsys.readouterr().out


def test_the_oldest_torch_is_the_one_that_the_package_asks_for(monkeypatch):
    oldest = ".".join(map(str, doctor.OLDEST_TORCH))
    assert f"torch>={oldest}" in importlib.metadata.requires("byhand")
    monkeypatch.setattr(torch, "__version__", f"{oldest}.0+cu128")
    assert doctor.torch_version() == f"{oldest}.0+cu128"
    monkeypatch.setattr(torch, "__version__", "2.8.1")
    with pytest.raises(doctor.Missing, match=r"2\.8\.1"):
        doctor.torch_version()


def test_a_missing_package_is_a_line_of_the_table(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('gone', name='torch')")
    here = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "byhand.tools.doctor"]
    done = subprocess.run(command, env=here, capture_output=True, text=True)
    assert done.returncode == 1
    assert "torch is not installed\n" in done.stdout
    assert "→ pip install torch, or in the course's folder: make course" in done.stdout
    assert done.stdout.endswith("before this is mended: torch, ranks.\n")
    assert not done.stderr


def test_what_could_not_be_tried_is_said_where_it_runs(monkeypatch):
    on_wsl = platform.uname()._replace(release="6.6.87.2-microsoft-standard-WSL2")
    monkeypatch.setattr(doctor.platform, "uname", lambda: on_wsl)
    assert "/mnt/c is slow; not tried" in doctor.system()
    monkeypatch.setattr(system, "PORTABLE", True)
    assert doctor.system().endswith(doctor.ON_PORTABLE)
    assert doctor.ON_PORTABLE in Path(__file__).parents[2].joinpath("README.md").read_text()


@pytest.mark.parametrize("check", ["virtual_network", "bubblewrap"])
def test_what_the_kernel_refuses_is_told(monkeypatch, check):
    for name in ("byhand.runtime.why_no_network", "byhand.runtime.walls.isolation.why_no_sandbox"):
        monkeypatch.setattr(name, lambda: "unshare: Operation not permitted")
    with pytest.raises(doctor.Missing, match="unshare: Operation not permitted"):
        getattr(doctor, check)()


def test_gpus_are_named_and_what_uses_them(monkeypatch):
    cuda = torch.cuda
    monkeypatch.setattr(cuda, "device_count", lambda: 0)
    assert "--backend changes nothing" in doctor.gpus()
    monkeypatch.setattr(cuda, "device_count", lambda: 2)
    monkeypatch.setattr(cuda, "get_device_name", "card {}".format)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    assert "card 0, card 1: ranks use NCCL up to 2 ranks, gloo beyond; graded" in doctor.gpus()
