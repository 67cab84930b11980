"""What people type: `make help` lists every target, and every program has a --help with an example that it accepts."""

import argparse
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(
    str(file.relative_to(ROOT))
    for folder in ("scripts", "tools")
    for file in (ROOT / folder).glob("*.py")
    if "run_main(main)" in (text := file.read_text(encoding="utf-8")) or "\n    main()\n" in text
)
# It passes a command on and has no options of its own.
WITHOUT_OPTIONS = {"tools/slurm_here.py"}


class Parsed(Exception):
    """Ends a program where its work would begin."""


def call(program, words, monkeypatch):
    """Run a program in this process, up to its command line."""
    real = argparse.ArgumentParser.parse_args

    def parse_args(self, args=None, namespace=None):
        raise Parsed(real(self, args, namespace))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
    monkeypatch.setattr(sys, "argv", [str(ROOT / program), *words])
    monkeypatch.setenv("COLUMNS", "80")
    runpy.run_path(sys.argv[0], run_name="program")["main"]()


def example(program, monkeypatch, capsys):
    """The command that --help shows, as one line."""
    if program in WITHOUT_OPTIONS:
        call(program, ["--help"], monkeypatch)
    else:
        with pytest.raises(SystemExit) as end:
            call(program, ["--help"], monkeypatch)
        assert end.value.code == 0
    _, label, command = capsys.readouterr().out.partition("\nExample:\n")
    assert label, "no example"
    return re.sub(r"\\\n\s+", "", command.partition("\n\n")[0].strip())


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_has_an_example_that_the_program_accepts(program, monkeypatch, capsys):
    command = example(program, monkeypatch, capsys)
    assert "\n" not in command, "more than one command, or one that argparse has wrapped"
    python, path, *words = shlex.split(command)
    assert (python, path) == ("python", program)
    for word in words:
        tracked = re.fullmatch(r"(?:\w+=)?((?:resources/demo|profiles|config\.)\S*)", word)
        assert tracked is None or (ROOT / tracked[1]).exists(), f"{tracked[1]} is not there"
    if program not in WITHOUT_OPTIONS:
        with pytest.raises(Parsed):
            call(program, words, monkeypatch)


def test_make_help_lists_every_target_once():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)$", makefile, re.MULTILINE)[1].replace("\\\n", " ").split()
    done = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    listed = [line.split()[1] for line in done.stdout.splitlines()]
    assert sorted(listed) == sorted(set(phony) - {"environment", "dev-environment"})
    assert all(re.match(r"make [a-z-]+ +\S", line) for line in done.stdout.splitlines())
    assert all(len(line) <= 120 for line in done.stdout.splitlines())


def test_make_without_a_target_is_the_demo():
    assert ".DEFAULT_GOAL := demo\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
