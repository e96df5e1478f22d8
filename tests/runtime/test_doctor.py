"""The doctor says what works here, and how to mend what does not."""

import importlib.metadata
import platform
from pathlib import Path

import pytest

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
    monkeypatch.setattr(doctor.torch, "__version__", f"{oldest}.0+cu128")
    assert doctor.torch_version() == f"{oldest}.0+cu128"
    monkeypatch.setattr(doctor.torch, "__version__", "2.8.1")
    with pytest.raises(doctor.Missing, match=r"2\.8\.1"):
        doctor.torch_version()


def test_what_could_not_be_tried_is_said_where_it_runs(monkeypatch):
    on_wsl = platform.uname()._replace(release="6.6.87.2-microsoft-standard-WSL2")
    monkeypatch.setattr(doctor.platform, "uname", lambda: on_wsl)
    assert "/mnt/c is slow; not tried" in doctor.system()
    monkeypatch.setattr(doctor, "PORTABLE", True)
    assert doctor.system().endswith(doctor.ON_PORTABLE)
    assert doctor.ON_PORTABLE in Path(__file__).parents[2].joinpath("README.md").read_text()


@pytest.mark.parametrize("check", ["virtual_network", "bubblewrap"])
def test_what_the_kernel_refuses_is_told(monkeypatch, check):
    for name in ("why_no_network", "why_no_sandbox"):
        monkeypatch.setattr(doctor, name, lambda: "unshare: Operation not permitted")
    with pytest.raises(doctor.Missing, match="unshare: Operation not permitted"):
        getattr(doctor, check)()


def test_gpus_are_named_and_what_uses_them(monkeypatch):
    cuda = doctor.torch.cuda
    monkeypatch.setattr(cuda, "device_count", lambda: 0)
    assert "--backend changes nothing" in doctor.gpus()
    monkeypatch.setattr(cuda, "device_count", lambda: 2)
    monkeypatch.setattr(cuda, "get_device_name", "card {}".format)
    monkeypatch.setattr(doctor.dist, "is_nccl_available", lambda: True)
    assert "card 0, card 1: ranks use NCCL up to 2 ranks, gloo beyond; graded" in doctor.gpus()
