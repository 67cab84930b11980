"""A real SLURM on the loopback interface: several virtual nodes with pretended GPUs, no systemd, nothing left over."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.slurm.settings import ACCOUNT, CPUS, PARTITION, write_settings

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
DATABASE = ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb")
# Debian puts the daemons where the PATH of ordinary users does not look.
SEARCH = f"{os.environ['PATH']}{os.pathsep}/usr/sbin{os.pathsep}/sbin"


def missing(accounting: bool) -> list[str]:
    """The programs that a test cluster needs and that are not installed."""
    wanted = PROGRAMS + (DATABASE if accounting else ())
    return [name for name in wanted if shutil.which(name, path=SEARCH) is None]


class Cluster:
    """One cluster in a folder of its own; `with Cluster() as cluster:` starts it and takes it down."""

    def __init__(self, nodes: int = 3, accounting: bool = True, cpus: int = CPUS) -> None:
        # Munge wants a folder that everybody may enter, and sockets want short names.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.folder.chmod(0o755)
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.accounting, self.cpus = accounting, cpus
        self.host = socket.gethostname().split(".")[0]
        self.ports = _free_ports(nodes + 3)
        self.database: subprocess.Popen | None = None
        self.environment = os.environ | {"PATH": SEARCH, "SLURM_CONF": str(self.folder / "slurm.conf")}
        # A test may itself run inside a job.
        for name in [name for name in self.environment if name.startswith("SLURM_") and name != "SLURM_CONF"]:
            del self.environment[name]

    def __enter__(self) -> "Cluster":
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- daemons --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start every daemon and wait until all nodes are idle."""
        for name in ("munge", "log", "spool", "state", "dev"):
            (self.folder / name).mkdir()
        write_settings(self.folder, self.host, _user(), len(self.nodes), self.ports, self.accounting, self.cpus)
        munge = self.folder / "munge"
        key = munge / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        files = {"key-file": key, "socket": munge / "socket", "pid-file": munge / "pid", "log-file": munge / "log"}
        self.run("munged", *(f"--{name}={file}" for name, file in files.items()), f"--seed-file={munge / 'seed'}")
        if self.accounting:
            self._start_database()
            self.run("slurmdbd")
            self.wait(lambda: self.ask("sacctmgr", "-n", "list", "cluster") is not None, "slurmdbd")
        self.start_controller()
        if self.accounting:
            self.run("sacctmgr", "--immediate", "add", "account", ACCOUNT)
            self.run("sacctmgr", "--immediate", "add", "user", _user(), f"account={ACCOUNT}")
        for node in self.nodes:
            self.run("slurmd", "-N", node)
        question = ("sinfo", "--noheader", "--Node", f"--partition={PARTITION}", "--format=%T")
        self.wait(lambda: (self.ask(*question) or "").split() == ["idle"] * len(self.nodes), "nodes")

    def start_controller(self) -> None:
        """Start slurmctld and wait for its answer."""
        self.run("slurmctld")
        self.wait(lambda: "UP" in (self.ask("scontrol", "ping") or ""), "slurmctld")

    def stop_controller(self) -> None:
        """End slurmctld; jobs go on."""
        self._end(self.folder / "slurmctld.pid")

    def stop(self) -> None:
        """End everything, jobs included, and remove the folder."""
        if (self.folder / "slurmctld.pid").exists():
            self.ask("scancel", "--full", "--signal=KILL", f"--user={os.getuid()}")
        for node in self.nodes:
            self._end(self.folder / f"slurmd.{node}.pid")
        for name in ("slurmctld.pid", "slurmdbd.pid"):
            self._end(self.folder / name)
        if self.database is not None:
            self.database.terminate()
            self.database.wait(30)
        self._end(self.folder / "munge" / "pid")
        self._end_steps()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, file: Path) -> None:
        """End the daemon whose process id stands in a file, and wait until it is gone."""
        try:
            process = int(file.read_text())
            os.kill(process, signal.SIGTERM)
            started = time.monotonic()
            while _alive(process):
                if time.monotonic() > started + 10:
                    os.kill(process, signal.SIGKILL)
                time.sleep(0.05)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            pass

    def _end_steps(self) -> None:
        """What supervises a job outlives its daemon; it is known by this cluster's settings in its environment."""
        for process in _processes():
            if process.settings == str(self.folder / "slurm.conf"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.id, signal.SIGKILL)

    # ---- talking to it --------------------------------------------------------------------------------------------

    def run(self, *command: str) -> str:
        """Run a command of the cluster; a failure shows its message."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}{self.logs()}"
        return done.stdout

    def ask(self, *command: str) -> str | None:
        """The answer of a command of the cluster, or None where there is none."""
        try:
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=10)
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode == 0 else None

    def jobs(self, *states: str) -> dict[str, str]:
        """The rule behind each job that is in one of the states (all that are not over if none is named)."""
        wanted = [f"--states={','.join(states)}"] if states else []
        rows = (self.ask("squeue", "--noheader", "--format=%i|%k", *wanted) or "").split("\n")
        return dict(row.split("|", 1) for row in rows if row)

    def wait(self, condition, what: str, seconds: float = 60) -> None:
        """Wait until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited {seconds} s for {what}{self.logs()}"
            time.sleep(0.2)

    def logs(self) -> str:
        """The last lines of all daemons' logs."""
        files = sorted((self.folder / "log").glob("*.log"))
        return "".join(f"\n--- {file.name}\n" + "\n".join(file.read_text().splitlines()[-15:]) for file in files)

    def _start_database(self) -> None:
        data, log, user = self.folder / "db", self.folder / "log" / "database.log", _user()
        # The environment's settings of another MariaDB must not matter: --no-defaults everywhere.
        self.run(
            *("mariadb-install-db", "--no-defaults", f"--user={user}", f"--datadir={data}", "--skip-test-db"),
            "--auth-root-authentication-method=normal",
        )
        at = f"--socket={self.folder / 'db.sock'}"
        command = [
            *("mariadbd", "--no-defaults", f"--user={user}", f"--datadir={data}", at, f"--log-error={log}"),
            *("--bind-address=127.0.0.1", f"--port={self.ports[2]}", "--innodb-flush-log-at-trx-commit=0"),
        ]
        self.database = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.DEVNULL, start_new_session=True
        )
        client = ("mariadb", "--no-defaults", at, "-uroot", "-e")
        self.wait(lambda: self.ask(*client, "select 1") is not None, "MariaDB")
        self.run(
            *client,
            "create database slurm_acct_db; create user slurm@'127.0.0.1' identified by 'slurm';"
            "grant all on slurm_acct_db.* to slurm@'127.0.0.1'; create user slurm@localhost identified by 'slurm';"
            "grant all on slurm_acct_db.* to slurm@localhost;",
        )


class _Process:
    def __init__(self, folder: Path) -> None:
        self.id = int(folder.name)
        variables = dict(part.split("=", 1) for part in (folder / "environ").read_text().split("\0") if "=" in part)
        self.settings = variables.get("SLURM_CONF")


def _alive(process: int) -> bool:
    """Whether a process runs; one that is over may stay in the table until somebody asks for its status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _processes():
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield _Process(folder)
        except (OSError, UnicodeDecodeError):
            continue


def _free_ports(count: int) -> list[int]:
    """A row of free ports: virtual nodes must have neighbouring ones."""
    for first in range(20000 + os.getpid() % 1000 * 20, 60000, 20):
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(("127.0.0.1", port))
        except OSError:
            continue
        else:
            return list(range(first, first + count))
        finally:
            for opened in sockets:
                opened.close()
    raise RuntimeError("no free ports")


def _user() -> str:
    return pwd.getpwuid(os.getuid()).pw_name
