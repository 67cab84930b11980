"""fast_align.py as a drop-in program: every flag, every bad input, no half files."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

import fast_align
from crossalign.runtime.errors import run_main

LINES = [
    "das haus ist klein ||| the house is small",
    "das buch ist klein ||| the book is small",
    "ein haus ||| a house",
    "ein buch ||| a book",
    "das kleine buch ||| the small book",
]


@pytest.fixture
def program(tmp_path, monkeypatch, capsysbinary):
    """Runs the program in this process: exit status, standard output and standard error as text."""

    def run(*flags, lines=LINES, text=None):
        path = tmp_path / "bitext"
        path.write_bytes(text if text is not None else "".join(f"{line}\n" for line in lines).encode())
        argv = ["fast_align.py", *(["-i", str(path)] if "-i" not in flags else []), "--threads", "1", *map(str, flags)]
        monkeypatch.setattr(sys, "argv", argv)
        code = 0
        try:
            run_main(fast_align.main)
        except SystemExit as stop:
            code = stop.code
        out, err = capsysbinary.readouterr()
        return SimpleNamespace(code=code, out=out.decode(), err=err.decode(), lines=out.decode().splitlines())

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


def test_standard_error_speaks_like_fast_align(program):
    done = program("-d", "-o", "-v")
    assert done.err.count("ITERATION") == 5
    assert "ITERATION 5 (FINAL)" in done.err
    wanted = ("log_e likelihood: ", "cross entropy: ", "perplexity: 1e+09", "posterior p0: 0.08", "final tension: ")
    assert all(each in done.err for each in wanted)
    assert "expected target length = source length * 1" in done.err
    assert done.err.count("model al-feat") == 3 * 8
    assert done.err.count("size counts: 3") == 5


def test_reverse_prints_source_target_links_in_source_order(program):
    lines = ["a b b b ||| A B", "a ||| A", "b ||| B", "b c ||| C B", "c ||| C"]
    forward, reverse = program("-d", "-v", lines=lines), program("-d", "-v", "-r", lines=lines)
    # Each target word has one link forward, each source word one in reverse.
    assert [j for _, j in links(forward.lines[0])] == [0, 1]
    assert [i for i, _ in links(reverse.lines[0])] == [0, 1, 2, 3]
    assert links(reverse.lines[3]) == [(0, 1), (1, 0)]
    swapped = program("-d", "-v", lines=[" ||| ".join(reversed(line.split(" ||| "))) for line in lines])
    assert [[(j, i) for i, j in links(line)] for line in swapped.lines] == [links(line) for line in reverse.lines]


def test_the_null_word_takes_words_and_none_links_every_word(program):
    sizes = [len(line.split("|||")[1].split()) for line in LINES]
    assert [len(links(line)) for line in program("-N").lines] == sizes
    assert "".join(program("-d", "-q", "0.999999", "-I", "2").lines) == ""


def test_scores_follow_the_links_and_alpha_tension_and_iterations_matter(program):
    scored = program("-d", "-v", "-s")
    base, pairs = scored.out, [line.split(" ||| ") for line in scored.lines]
    assert [before for before, _ in pairs] == program("-d", "-v").lines
    assert all(float(score) < 0 for _, score in pairs)
    assert program("-d", "-v", "-s", "-a", "0.5").out != base
    assert program("-d", "-v", "-s", "-I", "2").out != base
    assert program("-v", "-s").out != base
    assert program("-v", "-s", "-T", "4").out == base, "-T implies -d, as in fast_align"
    assert program("-d", "-v", "-s", "-T", "9").out != base


def test_table_and_forced_alignment(program, tmp_path):
    table = tmp_path / "table"
    trained = program("-d", "-o", "-v", "-p", table, "-t", "-1e9")
    tension = trained.err.split("final tension: ")[-1].split()[0]
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert all(len(row) == 3 and float(row[2]) <= 0 for row in rows)
    assert ["<eps>", "the"] in [row[:2] for row in rows]
    forced = program("-f", table, "-T", tension, "-m", "1.0")
    assert [line.split(" ||| ")[2] for line in forced.lines] == trained.lines
    assert [line.rsplit(" ||| ", 2)[0] for line in forced.lines] == LINES
    pruned = tmp_path / "pruned"
    program("-d", "-v", "-p", pruned, "-t", "-1.5")
    assert 0 < len(pruned.read_text().splitlines()) < len(rows)


def test_both_directions_in_one_go(program):
    done = program("-d", "-o", "-v", "--symmetrise", "intersection")
    forward, reverse = program("-d", "-o", "-v"), program("-d", "-o", "-v", "-r")
    for line, one, other in zip(done.lines, forward.lines, reverse.lines, strict=True):
        assert set(links(line)) == set(links(one)) & set(links(other))
    assert done.err.count("INITIAL PASS") == 2


def test_input_from_standard_input(root):
    command = [sys.executable, str(root / "scripts" / "fast_align.py"), "-i", "-", "-d"]
    done = subprocess.run(command, input="\n".join(LINES).encode(), capture_output=True, check=True)
    assert len(done.stdout.splitlines()) == 5


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
        (b"a|||b\n", "line 1: no '|||'"),
        (b"a ||| b\nc ||| \xff\n", "line 2: byte 7 is not UTF-8"),
        (b"", "has no lines"),
        (b" ||| a\n", "no pair can be aligned (line 1: no words before '|||')"),
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
    assert "line 2: no words before '|||'; left without links" in done.err
    assert "line 3: no words after '|||'; left without links" in done.err
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
        (("-T", "1e4"), "-T 10000: the tension must be"),
        (("--symmetrise", "grow"), "no symmetrisation is called 'grow'"),
        (("--symmetrise", "union", "-r"), "--symmetrise runs both directions"),
        (("-f", "/nowhere"), "cannot read /nowhere"),
        (("-i", "/nowhere/bitext"), "error: cannot read /nowhere/bitext: No such file"),
        (("--threads", "0"), "--threads 0: at least 1"),
    ],
)
def test_bad_flags_are_refused(program, flags, message):
    done = program(*flags)
    assert done.code == 1
    assert message in done.err
