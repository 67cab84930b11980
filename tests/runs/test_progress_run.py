"""The logger with real Snakemakes: runs that succeed, fail, are interrupted or killed, with a terminal and without."""

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossalign.runtime.holders import PROC
from crossalign.runtime.workarounds import LOCKS

LOGGER = Path(__file__).resolve().parents[2] / "scripts" / "logger"
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


rule page:
    output:
        "results/toy/report/index.html",
    shell:
        "echo page > {{output}}"
"""
WRITES = "echo boiling {wildcards.n} > {log}; echo {wildcards.n} > {output}"
# Until somebody says so, but not for ever.
WAITS = "for i in $(seq 3000); do test -e go && break; sleep 0.1; done; "


@pytest.fixture
def toy(tmp_path):
    """A folder with a workflow of three jobs; by default they just write."""

    def make(command=WRITES):
        (tmp_path / "Snakefile").write_text(SNAKEFILE.format(command=command), encoding="utf-8")
        return tmp_path

    return make


def command(folder, *arguments):
    """The words of a run, and how to start it."""
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache"), "TERM": "xterm", "PYTHONPATH": str(LOGGER)}
    words = [sys.executable, "-m", "snakemake", "--logger", "crossalign", "--cores", "2", *arguments]
    return words, {"cwd": folder, "env": environment}


def run(folder, *arguments):
    """Run without a terminal; the status and what was told."""
    words, options = command(folder, *arguments)
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, **options)
    return done.returncode, done.stderr + done.stdout


class Started:
    """A run in the background, in a session of its own, with a terminal or a pipe."""

    def __init__(self, folder, *arguments, terminal=False):
        self.master, slave = pty.openpty() if terminal else os.pipe()
        words, options = command(folder, *arguments)
        if terminal:
            words = ["setsid", "--ctty", *words]
        options |= {"stdin": slave if terminal else subprocess.DEVNULL, "start_new_session": not terminal}
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

    def begin(folder, *arguments, terminal=False):
        if terminal and shutil.which("setsid") is None:
            pytest.skip("a terminal is given by setsid")
        started.append(Started(folder, *arguments, terminal=terminal))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            os.killpg(each.process.pid, signal.SIGKILL)
            each.process.wait()
        os.close(each.master)


def test_a_run_that_succeeds_without_a_terminal(toy):
    folder = toy()
    status, text = run(folder)
    assert status == 0
    assert re.search(r"^\d of 4 jobs.*: (all|boil)$", text, flags=re.MULTILINE)
    assert re.fullmatch(r"Done in \d+ seconds?: 4 of 4 jobs\.", text.splitlines()[-1])
    assert "rule boil:" not in text and "\x1b" not in text and "\r" not in text
    # Snakemake's own log has the rest.
    assert "4 of 4 steps (100%) done" in next((folder / ".snakemake" / "log").iterdir()).read_text(encoding="utf-8")
    # Once more: all is there. And a plan is Snakemake's own, however it is asked for.
    status, text = run(folder)
    assert status == 0 and "Nothing to be done" in text and "Done" not in text
    page = folder / "results" / "toy" / "report" / "index.html"
    assert run(folder, str(page.relative_to(folder)))[1].endswith(f"1 of 1 jobs. The page: {page.as_uri()}\n")
    status, text = run(folder, "--forceall", "-np")
    assert status == 0 and "rule boil:" in text and "echo boiling 1" in text and "of 4 jobs" not in text


def test_a_failed_job_is_one_sentence_with_its_log(toy):
    folder = toy(
        "(echo boiling; test {wildcards.n} != 1 || (echo 'ValueError: too hot'; exit 3)) > {log}; touch {output}"
    )
    status, text = run(folder, "--keep-going")
    assert status == 1
    said = text.splitlines()
    assert "Failed: boil of results/toy/1.txt: ValueError: too hot (results/toy/logs/boil/1.log)" in said
    assert re.fullmatch(r"Failed after \d+ seconds?: 2 of 4 jobs are done and stay done\.", said[-1])
    assert "Traceback" not in text and "RuleException" not in text
    # Another attempt mends it.
    shutil.rmtree(folder / "results")
    toy("test -e {wildcards.n} || (touch {wildcards.n}; echo cold > {log}; exit 1); touch {output}")
    status, text = run(folder, "--retries", "1")
    assert status == 0 and "boil of results/toy/1.txt: cold (" in text and "Done in" in text.splitlines()[-1]


def test_a_failure_without_a_log_has_snakemakes_reason(toy):
    folder = toy("true")
    status, text = run(folder, "--latency-wait", "0")
    assert status == 1 and "Missing" in text and re.search(r"results/toy/\d.txt", text)
    assert text.splitlines()[-1].startswith("Failed after")


def test_what_is_wrong_before_the_first_job_is_told(toy):
    folder = toy()
    status, text = run(folder, "results/toy/none.tea")
    assert status == 1 and "No rule to produce results/toy/none.tea" in text
    (folder / "Snakefile").write_text("rule all:\n    inptu: []\n", encoding="utf-8")
    status, text = run(folder)
    assert status == 1 and "inptu" in text


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_that_is_interrupted(toy, start, terminal):
    folder = toy(f"test {{wildcards.n}} = 0 || sleep 600; {WRITES}")
    begun = start(folder, "--cores", "3", terminal=terminal)
    begun.read(until="1 of 4")
    if terminal:
        os.write(begun.master, b"\x03")  # Ctrl-C
    else:
        os.killpg(begun.process.pid, signal.SIGINT)
    assert begun.wait() == 1
    assert re.search(r"Stopped after \d+ seconds?: 1 of 4 jobs are done and stay done\.\s*\Z", begun.text)
    assert "Failed" not in begun.text and "Error" not in begun.text
    assert not (folder / LOCKS).exists()


@pytest.mark.skipif(not PROC.is_dir(), reason="processes are looked up in /proc")
def test_after_a_crash_the_same_command_goes_on(toy, start):
    folder = toy(WAITS + WRITES)
    begun = start(folder)
    begun.read(until="Using shell")
    deadline = time.monotonic() + PATIENCE
    while not (notes := list((folder / LOCKS).glob("*.json"))):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert json.loads(notes[0].read_text())["pid"] == begun.process.pid
    # While it is alive, its lock stays.
    status, text = run(folder)
    assert status == 1 and "cannot be locked" in text and "killed run" not in text
    assert any((folder / LOCKS).glob("*.lock"))
    begun.process.kill()
    begun.process.wait()
    (folder / "go").touch()
    status, text = run(folder, "--rerun-incomplete")
    assert status == 0 and f"process {begun.process.pid} on" in text and "it is removed" in text
    assert "Done in" in text and not (folder / LOCKS).exists()
