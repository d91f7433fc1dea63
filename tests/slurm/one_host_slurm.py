"""A real SLURM on this one host: three nodes, two partitions, one node with a GPU that is no GPU.

It needs root and Debian's packages. Controller and nodes listen on the loopback interface only; there is no
accounting database, and processes are held together without control groups, which containers often lack.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path

PACKAGES = ("slurmctld", "slurmd", "slurm-client", "munge")
NODES = ("c1", "c2", "g1")
# Not a folder of our own: the plugin starts steps without SLURM_CONF in their environment.
CONFIGURATION = Path("/etc/slurm")
MARK = "# Written by tests/slurm/one_host_slurm.py, which removes it."


class UnavailableError(Exception):
    """Raised with the reason why there is no SLURM on this host."""


class OneHostSlurm:
    """A cluster whose keys, logs and state are in `folder`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.socket = folder / "munge.socket"
        self._added_host_line = ""

    def start(self) -> None:
        """Install what is missing, start all daemons and wait for the nodes.

        Raises
        ------
        UnavailableError
            With the reason.
        """
        if os.geteuid() != 0:
            raise UnavailableError("SLURM's daemons take root here, and this is another user")
        _stop_remaining_cluster()
        _install()
        self._configure()
        self._start_daemon(
            "munged", "--force", f"--key-file={self.folder / 'munge.key'}",
            f"--socket={self.socket}", f"--pid-file={self.folder / 'munged.pid'}",
            f"--log-file={self.folder / 'munged.log'}", f"--seed-file={self.folder / 'munge.seed'}",
        )  # fmt: skip
        self._start_daemon("slurmctld", "-c")
        for node in NODES:
            self._start_daemon("slurmd", "-N", node)
        _wait("the nodes are idle", lambda: self.list_states() == ["idle"] * len(NODES))

    def stop(self) -> None:
        """Cancel what runs, stop the daemons and remove the configuration."""
        with suppress(Exception):
            subprocess.run(["scancel", "--user=root"], timeout=10, check=False)
        for name in [*(f"slurmd-{node}" for node in NODES), "slurmctld", "munged"]:
            self._end_daemon(name)
        for file in ("slurm.conf", "gres.conf"):
            path = CONFIGURATION / file
            # Left behind, it makes every later start of Snakemake wait for a controller.
            if path.exists() and MARK in path.read_text():
                path.unlink()
        if self._added_host_line:
            hosts = Path("/etc/hosts")
            hosts.write_text(hosts.read_text().replace(self._added_host_line, ""))

    def list_states(self) -> list[str]:
        """State of each node, such as ``idle`` or ``down``."""
        rows = {line.split()[0]: line.split()[1] for line in _list_lines("sinfo -h -N -o", "%N %T")}
        return [rows.get(node, "missing").rstrip("*") for node in NODES]

    def set_state(self, node: str, state: str) -> None:
        """Set the state of a node, as an administrator does."""
        command = ["scontrol", "update", f"nodename={node}", f"state={state}", "reason=test"]
        subprocess.run(command, check=True)

    def start_at_once(self, number: int) -> None:
        """Start a requeued job without the two minutes that SLURM makes it wait."""
        command = ["scontrol", "update", f"jobid={number}", "starttime=now"]
        _wait(
            f"job {number} is in the queue again",
            lambda: subprocess.run(command, capture_output=True).returncode == 0,
        )

    def list_jobs(self) -> list["SubmittedJob"]:
        """Return all jobs of this cluster's life so far, in the order of submission."""
        submitted_jobs = []
        for line in _list_lines("scontrol -o show", "job"):
            fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if "JobId" in fields:
                submitted_jobs.append(SubmittedJob(fields))
        return sorted(submitted_jobs, key=lambda job: job.number)

    def _configure(self) -> None:
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir(parents=True)
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        host = socket.gethostname().partition(".")[0]
        try:
            socket.gethostbyname(host)
        except OSError:  # daemons look up the host's own name
            self._added_host_line = f"127.0.0.1 {host}\n"
            with Path("/etc/hosts").open("a") as hosts:
                hosts.write(self._added_host_line)
        CONFIGURATION.mkdir(exist_ok=True)
        template = Path(__file__).with_name("slurm.conf").read_text()
        text = template.replace("@HOST@", host).replace("@FOLDER@", str(self.folder))
        (CONFIGURATION / "slurm.conf").write_text(text)
        (CONFIGURATION / "gres.conf").write_text(
            # A GPU without a device file would put its node out of service.
            f"{MARK}\nAutoDetect=off\nNodeName=g1 Name=gpu File=/dev/null\n"
        )

    def _start_daemon(self, *command: str) -> None:
        name = f"{command[0]}-{command[-1]}" if command[0] == "slurmd" else command[0]
        program = shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin")
        subprocess.run([program, *command[1:]], check=True, start_new_session=True)
        _wait(f"{name} runs", lambda: self._find_process(name) is not None)

    def _find_process(self, name: str) -> int | None:
        """Return the number of a daemon's process, if the process with the number in its file is the daemon."""
        with suppress(OSError, ValueError):
            number = int((self.folder / f"{name}.pid").read_text())
            program = Path(f"/proc/{number}/exe").readlink().name  # fails for a zombie
            # Debian's are called slurmctld-wlm and slurmd-wlm.
            return number if program.split("-")[0] == name.split("-")[0] else None
        return None

    def _end_daemon(self, name: str) -> None:
        for kind, seconds in ((signal.SIGTERM, 10), (signal.SIGKILL, 5)):
            number = self._find_process(name)
            if number is None:
                return
            os.kill(number, kind)
            with suppress(UnavailableError):
                _wait(f"{name} has ended", lambda: self._find_process(name) is None, seconds)


class SubmittedJob:
    """A job as SLURM knows it."""

    def __init__(self, fields: dict[str, str]):
        self.number = int(fields["JobId"])
        # "rule_NAME_wildcards_…", or "rule_MODEL/REVISION_RULES…" of a group.
        self.comment = fields.get("Comment", "").removeprefix("rule_")
        self.state = fields["JobState"]
        self.node = fields.get("NodeList", "")
        self.partition = fields["Partition"]
        # The requested resources: without a database, SLURM does not list GPUs under TRES.
        self.has_gpu = any(
            "gres:gpu" in fields.get(f"TresPer{scope}", "") for scope in ("Job", "Node")
        )
        trackable_resources = dict(item.split("=") for item in fields["TRES"].split(","))
        unit = {"M": 1, "G": 1024}[trackable_resources["mem"][-1]]
        self.megabytes = round(float(trackable_resources["mem"][:-1]) * unit)
        self.restarts = int(fields["Restarts"])
        self.log = fields["StdOut"]

    def __repr__(self):
        gpu = " with a GPU" if self.has_gpu else ""
        return f"{self.number} {self.comment} {self.state} on {self.node}{gpu}"


def _stop_remaining_cluster() -> None:
    configuration = CONFIGURATION / "slurm.conf"
    if not configuration.exists():
        return
    text = configuration.read_text()
    if MARK not in text:
        raise UnavailableError(f"{configuration} belongs to a cluster that is not ours")
    folder = re.search(r"^SlurmctldPidFile=(.*)/slurmctld.pid$", text, re.MULTILINE).group(1)
    OneHostSlurm(Path(folder)).stop()


def _install() -> None:
    """Install Debian's packages, without starting the services that they bring."""
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Abbrev}", *PACKAGES]
    if not shutil.which("apt-get"):
        raise UnavailableError("SLURM is installed from Debian's packages, and there is no apt-get")
    process = subprocess.run(query, capture_output=True, text=True)
    if process.returncode == 0 and process.stdout.split() == ["ii"] * len(PACKAGES):
        return
    policy = Path("/usr/sbin/policy-rc.d")
    is_ours = not policy.exists()
    if is_ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        for command in ("apt-get update -qq", "apt-get install -y -qq --no-install-recommends"):
            packages = PACKAGES if "install" in command else ()
            run = subprocess.run(
                [*command.split(), *packages], env=environment, capture_output=True, text=True
            )
            if run.returncode:
                raise UnavailableError(f"`{command}` fails: {run.stderr.strip()[-300:]}")
    finally:
        if is_ours:
            policy.unlink()


def _list_lines(command: str, last: str) -> list[str]:
    run = subprocess.run([*command.split(), last], capture_output=True, text=True, timeout=60)
    return run.stdout.splitlines()


def _wait(event: str, holds, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise UnavailableError(f"SLURM does not start: waited {seconds:.0f} s until {event}")
        time.sleep(0.1)
