"""fast_align.py and align_bitext.py: every flag, every bad input, no half files; the original program by subprocess."""

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
import fast_align
from crossalign.runtime.errors import run_main

LINES = [
    "das haus ist klein ||| the house is small",
    "das buch ist klein ||| the book is small",
    "ein haus ||| a house",
    "ein buch ||| a book",
    "das kleine buch ||| the small book",
]
POOL = [
    "1.2\tthe house is small\tdas haus ist klein",
    "1.1\tthe book is small\tdas buch ist klein",
    "1.1\t\tleer",
    "1.1\ta house\tein haus",
    "1.0\ta ||| book\tein ||| buch",
]
DIAGONAL = ["0-0 1-1 2-2 3-3", "0-0 1-1 2-2 3-3", "", "0-0 1-1", "0-0 1-1 2-2"]


@pytest.fixture
def call(monkeypatch, capfdbinary):
    """Calls a program in this process: exit status, standard output and standard error."""

    def run(module, *argv):
        monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, argv)])
        monkeypatch.setattr(signal, "signal", lambda *_: None)
        code = 0
        try:
            run_main(module.main)
        except SystemExit as stop:
            code = stop.code
        out, err = (stream.decode() for stream in capfdbinary.readouterr())
        return SimpleNamespace(code=code, out=out, err=err, lines=out.splitlines())

    return run


@pytest.fixture
def program(tmp_path, call):
    """fast_align.py on a bitext."""

    def run(*flags, lines=LINES, text=None):
        path = tmp_path / "bitext"
        path.write_bytes(text if text is not None else "".join(f"{line}\n" for line in lines).encode())
        return call(fast_align, *([] if "-i" in flags else ["-i", path]), "--threads", 1, *flags)

    return run


@pytest.fixture
def pool(tmp_path, call):
    """align_bitext.py on a pool; `lines` are those of its file, None without one."""

    def run(*flags, lines=POOL, text=None):
        path, out = tmp_path / "pool.tsv", tmp_path / "links.pharaoh"
        path.write_bytes(text if text is not None else "".join(f"{line}\n" for line in lines).encode())
        done = call(align_bitext, path, "--out", out, *flags)
        done.lines = out.read_text().splitlines() if out.exists() else None
        return done

    return run


def links(line):
    return [tuple(map(int, link.split("-"))) for link in line.split()]


def test_usual_flags_print_one_line_of_links_per_pair(program):
    done = program("-d", "-o", "-v")
    assert done.code == 0
    assert len(done.lines) == 5
    assert links(done.lines[2]) == [(0, 0), (1, 1)]
    # Forward: one source word per target word, in the order of the target.
    targets = [j for _, j in links(done.lines[0])]
    assert targets == sorted(set(targets))
    # Flags may be joined, and long.
    assert program("-dov", "-I5").out == done.out
    long = ("--favor_diagonal", "--optimize_tension", "--variational_bayes", "--iterations", "5")
    assert program(*long).out == done.out
    assert done.err.count("ITERATION") == 5
    assert done.err.count("model al-feat") == 3 * 8
    assert done.err.count("size counts: 3") == 5
    wanted = ("target length = source length * 1", "perplexity: 1e+09", "posterior p0: 0.08", "final tension: ")
    assert all(each in done.err for each in wanted)


def test_reverse_prints_source_target_links_in_source_order(program):
    lines = ["a b b b ||| A B", "a ||| A", "b ||| B", "b c ||| C B", "c ||| C"]
    forward, reverse = program("-d", "-v", lines=lines), program("-d", "-v", "-r", lines=lines)
    # Each target word has one link forward, each source word one in reverse.
    assert [j for _, j in links(forward.lines[0])] == [0, 1]
    assert [i for i, _ in links(reverse.lines[0])] == [0, 1, 2, 3]
    assert links(reverse.lines[3]) == [(0, 1), (1, 0)]
    swapped = program("-d", "-v", lines=[" ||| ".join(reversed(line.split(" ||| "))) for line in lines])
    assert [[(j, i) for i, j in links(line)] for line in swapped.lines] == [links(line) for line in reverse.lines]


def test_null_word_alpha_tension_and_iterations_matter(program):
    sizes = [len(line.split("|||")[1].split()) for line in LINES]
    assert [len(links(line)) for line in program("-N").lines] == sizes
    assert "".join(program("-d", "-q", "0.999999", "-I", "2").lines) == ""
    # The perplexity tells models apart that link these few words alike.
    base = program("-v", "-d").err
    for flags in (("-d", "-a", "0.5"), ("-d", "-I", "2"), (), ("-d", "-T", "9")):
        assert program("-v", *flags).err != base
    assert program("-v", "-T", "4").err == base, "-T implies -d, as in fast_align"


def test_out_appears_complete_or_stays_as_it_was(program, tmp_path):
    out = tmp_path / "links"
    done = program("-d", "--out", out)
    assert done.out == ""
    assert out.read_text() == program("-d").out
    out.write_text("old")
    assert program("-d", "--out", out, lines=[*LINES, "no separator"]).code == 1
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bitext", "links"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a ||| b\nc d e\n", "line 2: no '|||'; each line must be 'source words ||| target words'"),
        (b"a ||| b\nc ||| \xff\n", "line 2: byte 7 is not UTF-8"),
        (b"", "has no lines"),
        (b" ||| a\n", "no pair can be aligned (line 1: no words on one side)"),
    ],
)
def test_bad_input_is_refused_with_its_line(program, text, message):
    done = program("-d", text=text)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert message in done.err
    assert "Traceback" not in done.err


def test_empty_and_overlong_pairs_are_skipped_named_and_counted(program):
    lines = [LINES[0], "||| the", "das |||", "w " * 10_000 + "||| x", *LINES[1:]]
    done = program("-d", "-v", lines=[*lines, *["x |||"] * 25])
    assert done.code == 0
    assert done.lines[1:4] == ["", "", ""]
    assert "line 2: no words on one side; left without links" in done.err
    assert "line 4: 10000 words on one side, at most 1000 are aligned" in done.err
    assert done.err.count("warning: ") == 11
    assert "28 lines in all are left without links" in done.err
    assert len(done.lines) == 33
    assert [line for line in done.lines if line] == program("-d", "-v").lines


def test_odd_white_space_stays_inside_words(program):
    lines = ["a\u00a0b c ||| x\u3000y z", "d\x0be f ||| g h"]
    done = program("-N", "-d", lines=lines)
    assert [len(links(line)) for line in done.lines] == [2, 2]
    assert program("-N", "-d", text=b"a b ||| c d\r\na\tb ||| c d\r\n").lines == ["0-0 1-1", "0-0 1-1"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("-v", "-a", "0"), "-a 0: alpha must be greater than 0"),
        (("-I", "0"), "-I 0: at least one iteration"),
        (("-q", "1"), "-q 1: the probability of no link must be at least 0 and less than 1"),
        (("-T", "0"), "-T 0: the tension must be greater than 0 and at most 500"),
        (("--symmetrise", "grow"), "no symmetrisation is called 'grow'"),
        (("--symmetrise", "union", "-r"), "--symmetrise runs both directions"),
        (("--threads", "0"), "--threads 0: at least 1"),
    ],
)
def test_bad_flags_are_refused(program, flags, message):
    done = program(*flags)
    assert done.code == 1
    assert message in done.err


# ---- align_bitext.py ------------------------------------------------------------------------------------------------

# Links every word to the one at the same place, and notes how it was called.
ECHO = """
lines = open(args[args.index('-i') + 1]).read().split(chr(10))[:-1]
open(sys.argv[0] + '.log', 'a').write(' '.join(args[2:]) + chr(10))
for line in lines:
    left, right = line.split(' ||| ')
    print(*[f'{k}-{k}' for k in range(min(len(left.split(' ')), len(right.split(' '))))])
"""


@pytest.fixture
def original(tmp_path, monkeypatch):
    """Puts a program called fast_align on PATH, written in Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def make(body):
        path = folder / "fast_align"
        path.write_text(f"#!{sys.executable}\nimport sys\nargs = sys.argv[1:]\n{body}\n")
        path.chmod(0o755)
        return path

    return make


def test_the_builtin_aligner_links_a_pool_as_fast_align_links_its_lines(pool, program):
    done = pool("--symmetrise", "union")
    lines = [" ||| ".join(line.replace("|||", "¦¦¦").split("\t")[1:]) for line in POOL]
    both = [program("-d", "-o", "-v", *more, lines=lines).lines for more in ((), ("-r",))]
    assert [links(line) for line in done.lines] == [
        sorted({*links(one), *links(other)}) for one, other in zip(*both, strict=True)
    ]
    assert done.lines == program("-dov", "--symmetrise", "union", lines=lines).lines
    assert (len(done.lines), done.lines[2]) == (5, "")
    assert "pool.tsv, line 3: no words on one side; left without links" in done.err


def test_the_original_is_called_both_ways_and_its_links_stay_in_their_lines(pool, original):
    log = Path(f"{original(ECHO)}.log")
    done = pool("--program", "fast_align")
    assert (done.code, done.lines) == (0, DIAGONAL)
    assert log.read_text().splitlines() == ["-d -o -v", "-d -o -v -r"]
    # Odd spaces do not move positions.
    assert pool("--program", "fast_align", lines=["1.0\ta\u00a0b c\tx  y\u2028z"]).lines == ["0-0 1-1"]
    # Links of both directions, by the method that was asked for.
    original("print('0-0') if '-r' in args else print('0-0 0-1')")
    found = [
        pool("--program", "fast_align", "--symmetrise", way, lines=["1\ta\tb c"]) for way in ("union", "intersect")
    ]
    assert [each.lines for each in found] == [["0-0 0-1"], ["0-0"]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("print('0-0')", "printed 1 lines of links for 4 sentence pairs"),
        ("print('9-9\\n\\n\\n')", "linked words that are not there: 9-9 in line 1"),
        ("print('\\n\\n0-0 5-0\\n')", "linked words that are not there: 5-0 in line 4"),
        ("print('nonsense')", "the links of fast_align, line 1: 'nonsense' is not a list of links"),
        ("sys.exit(3)", "fast_align ended with status 3"),
        (None, "fast_align is not on PATH"),
    ],
)
def test_an_original_that_errs_or_is_missing_is_told_on(pool, original, monkeypatch, tmp_path, body, message):
    original(body) if body else monkeypatch.setenv("PATH", str(tmp_path))
    done = pool("--program", "fast_align")
    assert (done.code, done.lines) == (1, None)
    assert message in done.err


def test_word_pieces_are_linked_by_their_own_positions(pool, original, tmp_path):
    pieces = ["[UNK]", "the", "house", "das", "ha", "##us", "##es"]
    tokenizer = Tokenizer(models.WordPiece({piece: k for k, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_truncation(2)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    original(ECHO)
    flags = ("--program", "fast_align", "--pieces", tmp_path)
    # das ha ##us ##es: four pieces on one side, three on the other; nothing is cut off.
    assert pool(*flags, lines=["1.0\tthe house the\tdas hauses"]).lines == ["0-0 1-1 2-2"]
    assert "cannot read the tokenizer" in pool("--pieces", tmp_path / "none").err


def test_killed_run_leaves_nothing_and_ends_the_program_it_started(root, tmp_path, original):
    path, out, work = tmp_path / "pool.tsv", tmp_path / "made" / "links", tmp_path / "tmp"
    path.write_text("".join(f"{line}\n" for line in POOL))
    work.mkdir()
    place = original("import os, time\nopen(sys.argv[0] + '.pid', 'w').write(str(os.getpid()))\ntime.sleep(60)")
    command = [sys.executable, str(root / "scripts" / "align_bitext.py"), str(path), "--out", str(out)]
    command += ["--program", "fast_align"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(work)})
    note = Path(f"{place}.pid")
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
