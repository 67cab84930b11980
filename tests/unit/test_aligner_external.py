"""align_bitext.py: the three programs give the same file, and what they do wrong is told."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import align_bitext
from crossalign.alignment.links import parse_links
from crossalign.runtime.errors import run_main

POOL = [
    "1.2\tthe house is small\tdas haus ist klein",
    "1.1\tthe book is small\tdas buch ist klein",
    "1.1\t\tleer",
    "1.1\ta house\tein haus",
    "1.0\ta ||| book\tein ||| buch",
]


@pytest.fixture
def program(tmp_path, monkeypatch, capfd):
    """Runs align_bitext.py in this process on a pool."""

    def run(*flags, lines=POOL, text=None):
        pool, out = tmp_path / "pool.tsv", tmp_path / "links.pharaoh"
        pool.write_bytes(text if text is not None else "".join(f"{line}\n" for line in lines).encode())
        monkeypatch.setattr(sys, "argv", ["align_bitext.py", str(pool), "--out", str(out), *map(str, flags)])
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        code = 0
        try:
            run_main(align_bitext.main)
        except SystemExit as stop:
            code = stop.code
        made = out.read_text().splitlines() if out.exists() else None
        return SimpleNamespace(code=code, err=capfd.readouterr().err, lines=made, out=out)

    return run


def fake(folder: Path, name: str, body: str) -> None:
    """A program of that name, written in Python."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport sys\nargs = sys.argv[1:]\n{body}\n")
    path.chmod(0o755)


# Links every word to the one at the same place, and notes how it was called.
ECHO = """
lines = open(args[args.index('-i') + 1]).read().splitlines()
open(sys.argv[0] + '.log', 'a').write(' '.join(args[2:]) + chr(10))
for line in lines:
    left, right = line.split(' ||| ')
    print(*[f'{k}-{k}' for k in range(min(len(left.split()), len(right.split())))])
"""
ATOOLS = """
open(sys.argv[0] + '.log', 'a').write(' '.join(args[4:]) + chr(10))
assert open(args[1]).read() == open(args[3]).read()
sys.stdout.write(open(args[1]).read())
"""
DIAGONAL = ["0-0 1-1 2-2 3-3", "0-0 1-1 2-2 3-3", "", "0-0 1-1", "0-0 1-1 2-2"]


def test_builtin_is_the_default_and_runs_as_a_program(program):
    done = program()
    assert done.code == 0
    assert len(done.lines) == 5
    assert done.lines[2] == ""
    assert "fast_align.py -i" in done.err
    assert "ITERATION 5 (FINAL)" in done.err
    assert "warning: 1 lines without words" in done.err
    parse_links([line.encode() for line in done.lines], "links")


def test_original_fast_align_is_called_both_ways_and_symmetrised_by_atools(program, tmp_path):
    folder = tmp_path / "bin"
    fake(folder, "fast_align", ECHO)
    fake(folder, "atools", ATOOLS)
    for place in (folder, folder / "fast_align"):
        done = program("--program", "fast_align", "--path", place)
        assert (done.code, done.lines) == (0, DIAGONAL)
    assert (folder / "fast_align.log").read_text().splitlines() == ["-d -o -v", "-d -o -v -r"] * 2
    assert (folder / "atools.log").read_text().splitlines() == ["-c intersect"] * 2
    program("--program", "fast_align", "--path", folder, "--symmetrise", "grow-diag")
    assert (folder / "atools.log").read_text().splitlines()[-1] == "-c grow-diag"
    # Odd spaces do not move positions.
    odd = program("--program", "fast_align", "--path", folder, lines=["1.0\ta\u00a0b c\tx  y\u2028z"])
    assert odd.lines == ["0-0 1-1"]


def test_eflomal_gives_the_same_file(program, tmp_path, monkeypatch):
    body = "import contextlib\nfor flag in ('-f', '-r'):\n  with open(args[args.index(flag) + 1], 'w') as f, "
    body += "contextlib.redirect_stdout(f):\n" + "".join(f"    {line}\n" for line in ECHO.strip().splitlines())
    fake(tmp_path / "bin", "eflomal-align", body)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    done = program("--program", "eflomal")
    assert (done.code, done.lines) == (0, DIAGONAL)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--program fast_align", "error: fast_align is not on PATH: build it from its source"),
        ("--program eflomal", "error: eflomal-align is not on PATH: install the Python package eflomal"),
        ("--program fast_align --path {bin}", "error: atools is not in"),
        ("--program giza", "no alignment program is called 'giza'; choose one of builtin, fast_align, eflomal"),
        ("--symmetrise all", "no symmetrisation is called 'all'"),
    ],
)
def test_missing_programs_and_unknown_names_are_told_in_one_line(program, monkeypatch, tmp_path, flags, message):
    monkeypatch.setenv("PATH", str(tmp_path))
    fake(tmp_path / "bin", "fast_align", ECHO)
    done = program(*flags.format(bin=tmp_path / "bin").split())
    assert (done.code, done.lines) == (1, None)
    assert message in done.err
    assert ("or use the program 'builtin'" in done.err) == (" is not " in message)
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("print('0-0')", "printed 1 lines of links for 4 sentence pairs"),
        ("print('9-9\\n\\n\\n')", "linked words that are not there: 9-9 in line 1"),
        ("print('\\n\\n0-0 5-0\\n')", "linked words that are not there: 5-0 in line 4"),
        ("print('nonsense')", "the links of fast_align, line 1: 'nonsense' is not a list of links"),
        ("sys.exit(3)", "atools ended with status 3"),
    ],
)
def test_a_program_that_errs_is_told_on(program, tmp_path, body, message):
    fake(tmp_path / "bin", "fast_align", ECHO)
    fake(tmp_path / "bin", "atools", body)
    done = program("--program", "fast_align", "--path", tmp_path / "bin")
    assert (done.code, done.lines) == (1, None)
    assert message in done.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1.0\ta b\n", "pool.tsv, line 1: 2 columns instead of score, English words, other words"),
        (b"1.0\ta\tb\n1.0\ta\t\xc3\n", "pool.tsv, line 2: byte 7 is not UTF-8"),
        (b"", "pool.tsv has no lines"),
        (b"1.0\t\tb\n", "none of 1 lines has 1 to 1000 words on both sides"),
    ],
)
def test_a_bad_pool_is_refused_with_its_line(program, text, message):
    done = program(text=text)
    assert (done.code, done.lines) == (1, None)
    assert message in done.err
    assert "Traceback" not in done.err


def test_word_pieces_are_linked_by_their_own_positions(program, tmp_path):
    pieces = ["[UNK]", "the", "house", "das", "ha", "##us", "##es"]
    tokenizer = Tokenizer(models.WordPiece({piece: k for k, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    fake(tmp_path / "bin", "fast_align", ECHO)
    fake(tmp_path / "bin", "atools", ATOOLS)
    flags = ("--program", "fast_align", "--path", tmp_path / "bin", "--pieces", tmp_path / "tokenizer.json")
    done = program(*flags, lines=["1.0\tthe house the\tdas hauses"])
    # das ha ##us ##es: four pieces on one side, three on the other; nothing is cut off.
    assert done.lines == ["0-0 1-1 2-2"]
    assert "cannot read the tokenizer" in program("--pieces", tmp_path / "none.json").err


def test_killed_run_leaves_nothing_and_the_next_one_succeeds(root, tmp_path):
    pool, out, folder = tmp_path / "pool.tsv", tmp_path / "made" / "links", tmp_path / "bin"
    pool.write_text("".join(f"{line}\n" for line in POOL))
    body = "import os, time\nopen(sys.argv[0] + '.pid', 'w').write(str(os.getpid()))\ntime.sleep(60)"
    fake(folder, "fast_align", body)
    fake(folder, "atools", ATOOLS)
    command = [sys.executable, str(root / "scripts" / "align_bitext.py"), str(pool), "--out", str(out)]
    command += ["--program", "fast_align", "--path", str(folder)]
    work = tmp_path / "tmp"
    work.mkdir()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(work)})
    note = folder / "fast_align.pid"
    for _ in range(300):
        if note.exists() and note.read_text():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 143
    assert not out.exists()
    assert list(work.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)
    fake(folder, "fast_align", ECHO)
    subprocess.run(command, stderr=subprocess.DEVNULL, check=True)
    assert out.read_text().splitlines() == DIAGONAL
    assert [path.name for path in out.parent.iterdir()] == ["links"]
