"""What every test shares: drivers travel by value, markers skip with a reason, nothing is left."""

from __future__ import annotations

import shutil
import sys

import cloudpickle
import leftovers
import pytest
import sizes
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("corpus_checks")  # tests that two files share

# No property is judged by a clock: on a busy machine one of 2 ms takes a second.
settings.register_profile("course", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("course")

# Files that take a minute or more, begun first, so that none is left alone at the end.
SLOW = (
    "test_launch test_fault_tolerance test_judge test_jobs test_frameworks test_snippets"
    " test_figures"
).split()
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
    " disable-component-update disable-sync disable-dev-shm-usage"
).split()


def pytest_configure(config: pytest.Config) -> None:
    config.leftovers_before = leftovers.begin(part_of_a_session=_is_worker(config))


def _is_worker(config: pytest.Config) -> bool:
    """Whether this process runs a part of the tests for another, which looks for leftovers."""
    return hasattr(config, "workerinput")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for module in {item.module for item in items if hasattr(item, "module")}:
        cloudpickle.register_pickle_by_value(module)  # a rank has no need to import pytest
    items.sort(key=lambda item: item.path.stem not in SLOW)
    _skip(items, "gpu", _why_no_gpu)
    _skip(items, "browser", _why_no_browser)


def _skip(items: list[pytest.Item], marker: str, why_not) -> None:
    marked = [item for item in items if item.get_closest_marker(marker)]
    reason = why_not() if marked else None
    for item in marked if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


def _why_no_gpu() -> str | None:
    import torch

    return None if torch.cuda.is_available() else "no CUDA GPU on this machine"


def _why_no_browser() -> str | None:
    if any(shutil.which(name) for name in CHROMIUM):
        return None
    return "no Chromium on PATH (apt-get install chromium)"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("network"):
        from byhand.runtime import (
            why_no_network,  # tried on ranks, so not while tests are collected
        )

        if reason := why_no_network():
            pytest.skip(reason)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a session that leaves a process or a shared-memory segment behind."""
    _close_the_runtime()
    if _is_worker(session.config):
        return
    mark, pids, segments = session.config.leftovers_before
    left = [f"process {line}" for line in leftovers.processes(mark, pids)]
    left += [f"/dev/shm/{name}" for name in leftovers.abandoned_segments(segments)]
    session.config.left_behind = left
    if left and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _close_the_runtime() -> None:
    runtime = sys.modules.get("byhand.runtime")
    if runtime is not None:
        runtime.shutdown()


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if not config.args_source.name == "ARGS":  # the whole suite
        terminalreporter.section("sizes")
        for line in sizes.table():
            terminalreporter.write_line(line)
    left = getattr(config, "left_behind", [])
    if left:
        terminalreporter.section("left behind by this session", red=True)
        for line in left:
            terminalreporter.write_line(line)


@pytest.fixture(scope="module")
def browser():
    """The system's Chromium, which asks nobody for anything."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, CHROMIUM)))
    with sync_playwright() as engine:
        chromium = engine.chromium.launch(
            executable_path=program, args=[f"--{flag}" for flag in FLAGS]
        )
        yield chromium
        chromium.close()
