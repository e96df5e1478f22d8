"""A Slurm cluster of two nodes on this machine: Debian's slurm-wlm and munge, one slurmd a node.

    python tests/course/slurm_cluster.py install    install the packages (as root, where apt is)
    python tests/course/slurm_cluster.py start FOLDER   start it; prints what to export
    python tests/course/slurm_cluster.py stop FOLDER    stop it, and every job; nothing is left

Everything it writes is in FOLDER, key and sockets included, and its ports are free ones: a Slurm
that this machine has already is never touched. Starting what runs, and stopping what does not, do
nothing. It works as root, and as an ordinary user once the packages are there.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "squeue", "scontrol")
PACKAGES = ("slurm-wlm", "munge")
DAEMONS = ("munged", "slurmctld", "slurmscriptd", "slurmd", "slurmstepd")
NODES = ("n1", "n2")
WORKING = {"idle", "mixed", "allocated"}
START_SECONDS = 300.0
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])

CONFIGURATION = """\
ClusterName=byhand
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=4
MessageTimeout=5
KillWait=2
CompleteWait=0
JobRequeue=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=16 State=UNKNOWN\n"
PARTITION = "PartitionName=course Nodes={nodes} Default=YES MaxTime=INFINITE State=UP\n"


def why_missing() -> str | None:
    """None where all programs are here; otherwise one sentence."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]
    if not missing:
        return None
    how = f"apt-get install {' '.join(PACKAGES)}"
    return f"Slurm is not installed (no {', '.join(missing)}); as root: {how}"


def install() -> str | None:
    """Install what is missing, where that can be done; None, or why Slurm is still missing."""
    if why_missing() and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", *PACKAGES]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        if subprocess.run(command, env=environment, check=False, **quiet).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=False, **quiet)
            subprocess.run(command, env=environment, check=False, **quiet)
    return why_missing()


class Cluster:
    """The cluster in a folder: `with Cluster(folder) as cluster` starts it, and ends it."""

    def __init__(self, folder: Path | str):
        self.folder = Path(folder).resolve()
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": PATH}

    def start(self) -> None:
        """Start what does not run yet; return when both nodes take jobs.

        Raises:
            RuntimeError: a node did not come up; the message ends with the last words of the logs.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        if not (self.folder / "slurm.conf").exists():
            self._configure()
        if not self._pids("munged"):
            self._run("munged", "--force", *self._munge_options())
        if not self._pids("slurmctld"):
            self._run("slurmctld")
        for node in NODES:
            self.start_node(node)
        self._wait_for_nodes()

    def start_node(self, node: str) -> None:
        """Start a node's slurmd, unless it runs; `scontrol` says when it takes jobs again."""
        if not self._pids("slurmd", node):
            self._run("slurmd", "-N", node)

    def lose_node(self, node: str) -> None:
        """Kill a node's slurmd and all that it runs, as if its power went."""
        _kill(_tree(self._pids("slurmd", node) + self._steps(node)))

    def states(self) -> dict[str, str]:
        """{node: state} as sinfo names it: idle, mixed, allocated, down, ..."""
        lines = self.output("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        return {name: state.rstrip("*") for name, state in map(str.split, lines)}

    def output(self, *command: str) -> str:
        """What a Slurm command prints; "" when it fails."""
        done = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout if done.returncode == 0 else ""

    def stop(self) -> None:
        """End every job and every daemon; return when no process of this cluster is left."""
        until = time.monotonic() + START_SECONDS
        while (pids := self.processes()) and time.monotonic() < until:
            _kill(_tree(pids))
            time.sleep(0.05)

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _configure(self) -> None:
        host, user = socket.gethostname().split(".")[0], getpass.getuser()
        ports = _free_ports(1 + len(NODES))
        text = CONFIGURATION.format(host=host, user=user, folder=self.folder, port=ports[0])
        for node, port in zip(NODES, ports[1:], strict=True):
            text += NODE.format(name=node, host=host, port=port)
            (self.folder / f"spool.{node}").mkdir(exist_ok=True)
        (self.folder / "state").mkdir(exist_ok=True)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.folder / "slurm.conf").write_text(text + PARTITION.format(nodes=",".join(NODES)))

    def _munge_options(self) -> list[str]:
        names = {
            "key-file": "key",
            "socket": "socket",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        return [f"--{option}={self.folder}/munge.{name}" for option, name in names.items()]

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command,
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{command[0]} does not start: {done.stderr.strip()}")

    def _wait_for_nodes(self) -> None:
        until = time.monotonic() + START_SECONDS
        while {(states := self.states()).get(node) for node in NODES} - WORKING:
            if time.monotonic() > until:
                logs = sorted(self.folder.glob("*.log"))
                words = [f"{log.name}: {log.read_text()[-500:]}" for log in logs]
                raise RuntimeError(f"the nodes are {states}\n" + "\n".join(words))
            time.sleep(0.1)

    def processes(self) -> list[int]:
        """The daemons, and the steps of jobs with all that they started."""
        mark = f"SLURM_CONF={self.folder}/slurm.conf".encode()
        ours = [pid for pid in _pids() if mark in _variables(pid)]
        return [pid for pid in ours if _name(pid) in DAEMONS] + _steps(ours)

    def _pids(self, program: str, node: str = "") -> list[int]:
        """The daemons of this cluster by that name (and for that node)."""
        return [pid for pid in self.processes() if _name(pid) == program and node in _words(pid)]

    def _steps(self, node: str) -> list[int]:
        """What runs on a node, marked with its name by slurmd."""
        mark = f"SLURMD_NODENAME={node}".encode()
        return _steps([pid for pid in self.processes() if mark in _variables(pid)])


def _steps(pids: list[int]) -> list[int]:
    """Those of these processes that run in a job, and the slurmstepd above them.

    A shell or a test that merely knows this slurm.conf is none of them.
    """
    tasks = [p for p in pids if any(v.startswith(b"SLURM_JOB_ID=") for v in _variables(p))]
    above = {_parent(pid) for pid in tasks}
    return tasks + [pid for pid in above if _name(pid) == "slurmstepd"]


def _tree(roots: list[int]) -> list[int]:
    """These processes and all below them."""
    parents = {pid: _parent(pid) for pid in _pids()}
    found = list(roots)
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return list(dict.fromkeys(found))


def _kill(pids: list[int]) -> None:
    """Kill all of them at once: none sees another end, and tells Slurm of it."""
    for one in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, one)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def _variables(pid: int) -> list[bytes]:
    """The environment that a process was started with."""
    return _read(pid, "environ").split(b"\0")


def _words(pid: int) -> list[str]:
    """The command line of a process."""
    return ["", *_read(pid, "cmdline").decode(errors="replace").split("\0")]


def _name(pid: int) -> str:
    """The name of a daemon: slurmstepd calls itself "slurmstepd: [4.batch]"."""
    return os.path.basename(_words(pid)[1].strip(": ").partition(":")[0])


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def main() -> None:
    """Do what the command line asks."""
    action, *folder = sys.argv[1:] or ["help"]
    if action == "install":
        sys.exit(install())
    if action not in ("start", "stop") or len(folder) != 1:
        sys.exit(__doc__)
    cluster = Cluster(folder[0])
    getattr(cluster, action)()
    if action == "start":
        for name, value in cluster.environment.items():
            print(f"export {name}={value}")


if __name__ == "__main__":
    main()
