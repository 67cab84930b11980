"""The logger with real Snakemakes: runs that succeed, fail, are interrupted or killed, with a terminal and without."""

import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pytest

from crossalign.catalog.config import load
from crossalign.runtime.holders import LOCKS, NOTES, PROC

RUN = Path(__file__).resolve().parents[2] / "scripts" / "run.py"
PATIENCE = 120
SNAKEFILE = """
rule all:
    input:
        expand("results/toy/{{n}}.txt", n=range(3)),


rule boil:
    output:
        "results/toy/{{n}}.txt",
    log:
        "results/toy/logs/boil/{{n}}.log",
    shell:
        "{command}"
"""
WRITES = "echo boiling {wildcards.n} > {log}; echo {wildcards.n} > {output}"
# Until somebody says so, but not for ever.
WAITS = "for i in $(seq 3000); do test -e go && break; sleep 0.1; done; "


@pytest.fixture
def toy(tmp_path):
    """A folder with a workflow of three jobs; by default they just write."""
    (tmp_path / "config.yaml").write_text("run: toy\n", encoding="utf-8")

    def make(command=WRITES):
        (tmp_path / "Snakefile").write_text(SNAKEFILE.format(command=command), encoding="utf-8")
        return tmp_path

    return make


def command(folder, *arguments):
    """The words of a run, and how to start it."""
    told = ["--again", "make toy", "--after", "make tea"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    clean = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CROSSALIGN_RUN")}
    environment = clean | {"PATH": path, "XDG_CACHE_HOME": str(folder / "cache"), "TERM": "xterm"}
    return [sys.executable, str(RUN), *told, "--", "--cores", "2", *arguments], {"cwd": folder, "env": environment}


def run(folder, *arguments):
    """Run without a terminal; the status and what was told."""
    words, options = command(folder, *arguments)
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, **options)
    return done.returncode, done.stderr + done.stdout


class Started:
    """A run in the background, in a session of its own; with a terminal of so many columns if they are given."""

    def __init__(self, folder, *arguments, columns=None):
        self.master, slave = pty.openpty() if columns else os.pipe()
        words, options = command(folder, *arguments)
        if columns:
            ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            words = ["setsid", "--ctty", *words]
        options |= {"stdin": slave if columns else subprocess.DEVNULL, "start_new_session": not columns}
        self.process = subprocess.Popen(words, stdout=slave, stderr=slave, **options)
        os.close(slave)
        self.text = ""

    def read(self, until=None):
        """What is told until a text comes, or until the end."""
        deadline = time.monotonic() + PATIENCE
        while until is None or until not in self.text:
            assert time.monotonic() < deadline, self.text
            if not select.select([self.master], [], [], 1)[0]:
                continue
            try:
                heard = os.read(self.master, 65536)
            except OSError:  # how a terminal ends
                heard = b""
            if not heard:
                assert until is None, self.text
                break
            self.text += heard.decode("utf-8", "replace")

    def wait(self):
        self.read()
        return self.process.wait(PATIENCE)


@pytest.fixture
def start():
    """Starts runs, and leaves none behind."""
    started = []

    def begin(folder, *arguments, columns=None):
        if columns and shutil.which("setsid") is None:
            pytest.skip("a terminal is given by setsid")
        started.append(Started(folder, *arguments, columns=columns))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
            each.process.wait()
        os.close(each.master)


def wait_for(condition, tell=str):
    """Until something is so; if it never is, `tell` says what was instead."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, tell()
        time.sleep(0.1)


def screen(text):
    """What is left to read on a terminal: of each line the last drawing, without colours."""
    text = re.sub(r"\x1b\[\d+m", "", text)
    lines = [line.rpartition("\r\x1b[K")[2] for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(line.rstrip("\r") for line in lines)


def snakemakes_log(folder):
    return (folder / "results" / "toy" / "logs" / "snakemake.log").read_text(encoding="utf-8")


def test_a_run_that_succeeds_without_a_terminal(toy):
    folder = toy(f"echo stray to nowhere >&2; {WRITES}")
    status, text = run(folder)
    assert status == 0
    assert text.splitlines()[:2] == [
        "toy: 4 jobs. Ctrl-C stops the run; to continue: make toy",
        "Snakemake's log: results/toy/logs/snakemake.log",
    ]
    assert re.search(r"^\d of 4, .*: boil \(n \d\)", text, flags=re.MULTILINE)
    assert re.search(r"^Done in \d+ seconds?: 4 jobs\.\nNext:     make tea\n", text, flags=re.MULTILINE)
    assert "\x1b" not in text and "\r" not in text
    # Nothing is lost: what Snakemake says and what jobs say beside their logs.
    log = snakemakes_log(folder)
    for part in ("Building DAG of jobs", "rule boil:", "stray to nowhere", "4 of 4 steps (100%) done"):
        assert part in log
    assert "stray" not in text and "Building DAG" not in text
    assert "4 of 4 steps (100%) done" in next((folder / ".snakemake" / "log").iterdir()).read_text(encoding="utf-8")
    assert not list((folder / NOTES).glob("*.json"))
    # Once more: all is there. And a plan is Snakemake's own.
    status, text = run(folder)
    assert status == 0 and "Nothing is left to do.\nNext:     make tea\n" in text
    status, text = run(folder, "--forceall", "--dry-run")
    assert status == 0 and "rule boil:" in text and "make tea" not in text


def test_a_run_that_fails(toy):
    folder = toy(
        "(echo boiling; test {wildcards.n} != 1 || (echo 'ValueError: too hot'; exit 3)) > {log}; touch {output}"
    )
    status, text = run(folder, "--keep-going")
    assert status == 1
    block = "Failed: boil (n 1) (rule boil)\n  results/toy/logs/boil/1.log:\n    boiling\n    ValueError: too hot\n"
    assert block in text
    end = text.splitlines()[-3:]
    assert re.fullmatch(r"1 of 4 jobs failed after \d+ seconds?; 2 are done and stay done\.", end[0])
    assert end[1:] == ["Snakemake's log: results/toy/logs/snakemake.log", "Try again: make toy"]
    assert "Traceback" not in text and "RuleException" not in text
    assert "CalledProcessError" in snakemakes_log(folder)


def test_what_is_wrong_before_the_first_job_is_told(toy):
    folder = toy()
    status, text = run(folder, "results/toy/none.tea")
    assert status == 1 and "No rule to produce results/toy/none.tea" in text and "Try again: make toy" in text
    (folder / "Snakefile").write_text("rule all:\n    inptu: []\n", encoding="utf-8")
    status, text = run(folder)
    assert status == 1 and "inptu" in text
    assert run(folder, "--no-such-option")[1].count("--no-such-option") == 1


@pytest.mark.parametrize("columns", [None, 100])
def test_a_run_that_is_interrupted(toy, start, columns):
    folder = toy(f"test {{wildcards.n}} = 0 || sleep 600; {WRITES}")
    begun = start(folder, "--cores", "3", columns=columns)
    begun.read(until="1 of 4")
    if columns:
        os.write(begun.master, b"\x03")  # Ctrl-C
    else:
        os.killpg(begun.process.pid, signal.SIGINT)
    assert begun.wait() == 1
    end = screen(begun.text).rstrip("\n").splitlines()
    # A terminal shows what was typed.
    end = [line.removeprefix("^C") for line in end]
    assert re.fullmatch(r"Stopped after \d+ seconds?\. Of 4 jobs 1 are done and stay done\.", end[-2])
    assert end[-1] == "Continue: make toy"
    assert "Failed" not in begun.text and "Error" not in begun.text
    assert "Terminating processes on user request" in snakemakes_log(folder)
    assert not (folder / LOCKS).exists() and not list((folder / NOTES).glob("*.json"))


# Snakemake has announced a job, and its process comes only after Ctrl-C.
LATE = """
import subprocess, time

at_once = subprocess.Popen

def late(command, **options):
    time.sleep(2 if "sleep 600" in str(command) else 0)
    return at_once(command, **options)

subprocess.Popen = late
"""


def test_a_job_that_starts_just_after_an_interrupt_ends_too(toy, start):
    folder = toy(f"test {{wildcards.n}} = 0 || sleep 600; {WRITES}")
    workflow = folder / "Snakefile"
    workflow.write_text(LATE + workflow.read_text(encoding="utf-8"), encoding="utf-8")
    begun = start(folder, "--cores", "3")
    begun.read(until="toy: 4 jobs")
    wait_for(lambda: snakemakes_log(folder).count("rule boil:") == 3)
    os.killpg(begun.process.pid, signal.SIGINT)
    assert begun.wait() == 1
    assert "are done and stay done.\nContinue: make toy\n" in begun.text


@pytest.mark.skipif(not PROC.is_dir(), reason="processes are looked up in /proc")
def test_after_a_crash_the_same_command_goes_on(toy, start):
    folder = toy(WAITS + WRITES)
    begun = start(folder)
    begun.read(until="toy: 4 jobs")
    wait_for(lambda: "rule boil" in snakemakes_log(folder))
    # While it is alive, its lock stays.
    assert any((folder / LOCKS).glob("*.lock"))
    status, text = run(folder)
    assert status == 1 and f"Another run works in this folder: process {begun.process.pid} on" in text
    assert "unlocked" not in text and any((folder / LOCKS).glob("*.lock"))
    # Killed alone, as the kernel does it when memory is short, it leaves jobs behind: they might still write.
    begun.process.kill()
    begun.process.wait()
    status, text = run(folder)
    assert status == 1 and "jobs of it are still at work: process" in text and "unlocked" not in text
    # They end, and now the same command goes on.
    (folder / "go").touch()
    status, text = run(folder, "--rerun-incomplete")
    assert status == 0
    told = f"process {begun.process.pid} on"
    assert told in text and "The folder is unlocked, and the run goes on." in text
    assert "Done in" in text and not (folder / LOCKS).exists()


def test_the_lock_of_another_host_stays(toy):
    folder = toy()
    (folder / LOCKS).mkdir(parents=True)
    for kind in ("input", "output"):
        (folder / LOCKS / f"0.{kind}.lock").write_text("results/toy/0.txt\n", encoding="utf-8")
    holder = {"host": "login2", "machine": "m", "boot": "b", "space": "s", "user": os.getuid(), "pid": 77}
    holder |= {"ticks": "1", "since": "2026-01-01 10:00:00", "token": "t", "allocation": ""}
    (folder / NOTES).mkdir()
    (folder / NOTES / "login2-77.json").write_text(json.dumps(holder), encoding="utf-8")
    status, text = run(folder)
    assert status == 1 and not (folder / "results" / "toy" / "0.txt").exists()
    assert "process 77 on login2, started 2026-01-01 10:00:00" in text and "ps -p 77" in text
    # The command that is told does it.
    told = next(line.strip() for line in text.splitlines() if "--unlock" in line)
    assert told == "snakemake --unlock --cores 2"
    done = subprocess.run(told, shell=True, capture_output=True, text=True, **command(folder)[1])
    assert done.returncode == 0, done.stderr
    assert run(folder)[0] == 0


ITEM_RUN = """
import shutil
onstart:
    shutil.copy("made.json", "results/toy/config.json")
rule all:
    input: "results/toy/report/index.html"
rule make_table:
    output: "results/toy/tables/anc/{{item}}.csv"
    shell: "{wait} touch {{output}}"
rule make_verdicts:
    input: "results/toy/tables/anc/table1.csv"
    output: "results/toy/claims.csv"
    shell: "sleep 1; touch {{output}}"
rule make_report:
    input: "results/toy/claims.csv"
    output: "results/toy/report/index.html"
    shell: "echo final page > {{output}}"
"""


def test_the_page_can_be_opened_while_the_run_goes(toy, start, root):
    folder = toy()
    (folder / "Snakefile").write_text(ITEM_RUN.format(wait=WAITS), encoding="utf-8")
    (folder / "made.json").write_text(json.dumps(load([root / "config.demo.yaml"])), encoding="utf-8")
    begun = start(folder)
    page = folder / "results" / "toy" / "report" / "index.html"
    log = folder / "results" / "toy" / "logs" / "early_look.log"
    wait_for(page.exists, lambda: log.read_text(encoding="utf-8") if log.exists() else "no early look")
    assert "This run is still going." in page.read_text(encoding="utf-8")
    (folder / "go").touch()
    assert begun.wait() == 0
    assert f"Look meanwhile: {page.as_uri()}" in begun.text
    assert f"Page:     {page.as_uri()}\n" in begun.text
    assert page.read_text(encoding="utf-8") == "final page\n"
    assert [file.name for file in page.parent.iterdir()] == ["index.html"]
