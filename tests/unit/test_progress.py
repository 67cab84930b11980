"""The progress line, jobs in words, the story of a run as people read it, and the early look at its page."""

import io
import json
import os
import pty
import select
import struct
import sys
import termios
import time
from fcntl import ioctl
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from crossalign.catalog.config import load
from crossalign.progress.early import PAUSE, SHARE, EarlyLook
from crossalign.progress.handler import about_early_page
from crossalign.progress.line import USUAL, Screen, Tally, duration, time_left
from crossalign.progress.outcome import items_behind, needed_for, summary
from crossalign.progress.story import Run, Story, tail
from crossalign.progress.words import job_words
from crossalign.results.claims.claim import COLUMNS
from crossalign.runtime.holders import TOKEN

TEXT = "312 of 890, about 4 minutes left: fine-tuning POS on Russian, layers 1-2 re-initialised (mBERT)"
STATE = (TEXT, 312, 890, "results/demo/report/index.html")


def tally(**planned):
    made = Tally()
    made.plan(planned | {"total": sum(planned.values())})
    return made


def run(jobs, rule, numbers, start, seconds):
    for number in numbers:
        jobs.start(number, rule, start)
        jobs.finish(number, start + seconds)


def test_nothing_is_guessed_before_most_of_the_work_is_known():
    jobs = tally(prepare=30, finetune=20)
    jobs.start(0, "prepare", 0.0)
    assert jobs.left(5.0) is None
    run(jobs, "prepare", range(30), 0.0, 1.0)
    assert jobs.left(5.0) is None
    run(jobs, "finetune", [30], 5.0, 10.0)
    assert jobs.left(15.0) is not None


def test_jobs_side_by_side_share_the_time_and_what_they_have_behind_them_is_not_left():
    jobs = tally(finetune=4)
    run(jobs, "finetune", (1, 2), 0.0, 10.0)
    assert jobs.counts == (2, 4)
    jobs.start(3, "finetune", 10.0)
    jobs.start(4, "finetune", 10.0)
    # Of 20 seconds of work 8 are done; two at a time.
    assert jobs.left(14.0) == pytest.approx(12 / 2)
    # One that takes longer than its rule's others is as good as done, not more.
    assert jobs.left(1000.0) == 0.0


def test_rules_count_by_their_own_seconds_and_unseen_ones_in_proportion():
    jobs = tally(prepare=2, finetune=3)
    run(jobs, "prepare", (1, 2), 0.0, 1.0)
    run(jobs, "finetune", (3,), 1.0, 9.0)
    # Eleven seconds of work in ten.
    assert jobs.left(10.0) == pytest.approx(2 * 9 / 1.1)
    jobs = tally(finetune=10, evaluate=10)
    run(jobs, "finetune", (1,), 0.0, 2 * USUAL["finetune"])  # twice as slow as usual
    assert jobs.left(2.0 * USUAL["finetune"]) == pytest.approx(9 * 2 * USUAL["finetune"] + 10 * 2 * USUAL["evaluate"])


def test_times_are_for_people_and_never_exact():
    times = {1: "1 second", 62: "62 seconds", 240: "4 minutes", 5000: "83 minutes", 14400: "4 hours", 2.6e5: "3 days"}
    times |= {5380: "90 minutes", 5400: "2 hours"}
    assert {seconds: duration(seconds) for seconds in times} == times
    assert list(map(time_left, (None, 20, 50, 245))) == [
        "time left not known yet",
        "less than a minute left",
        "about 60 seconds left",
        "about 4 minutes left",
    ]


def test_without_a_terminal_a_line_each_minute_and_at_each_tenth():
    stream, clock = io.StringIO(), SimpleNamespace(now=0.0)
    screen = Screen(stream, lambda: clock.now)
    for second in range(125):
        clock.now = second
        screen.show("3 of 100", 3, 100)
    # After one minute and after two.
    assert len(stream.getvalue().splitlines()) == 2
    for done in range(3, 31):
        screen.show(f"{done} of 100", done, 100, "results/demo/report/index.html")
    lines = stream.getvalue().splitlines()[2:]
    assert lines == [f"{done} of 100 (page: results/demo/report/index.html)" for done in (10, 20, 30)]
    screen.say_wrapped("one two three four " * 20, indent=6)
    assert len(stream.getvalue().splitlines()) == 6
    assert "\x1b" not in stream.getvalue() and "\r" not in stream.getvalue()


class Terminal:
    """A terminal of so many columns, and what was written to it."""

    def __init__(self, columns=80, **options):
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(slave, "w", encoding=options.pop("encoding", "utf-8"), errors="replace")
        self.screen = Screen(self.stream, lambda: 0.0, **options)

    def text(self):
        """All of it: a terminal may hand over in pieces what was written in one go."""
        self.stream.flush()
        parts = [os.read(self.master, 65536)]
        while select.select([self.master], [], [], 0.2)[0]:
            parts.append(os.read(self.master, 65536))
        return b"".join(parts).decode()


@pytest.fixture
def coloured(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("columns", [20, 41, 80, 100, 200])
def test_the_line_fits_the_terminal(columns, coloured, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal(columns)
    terminal.screen.show(*STATE)
    drawn = terminal.text().removeprefix("\r\x1b[K")
    assert len(drawn) < columns and "\n" not in drawn
    assert drawn.lstrip("█░ ").startswith("312 of 890"[: columns - 2])
    assert drawn.count("█") == min(20, (columns - 1) // 10) * 312 // 890 * (columns > 41)
    # Where to look is on the line if there is room, and what does not fit ends with a mark.
    assert drawn.endswith("results/demo/report/index.html" if columns == 200 else "…")


@pytest.mark.parametrize(
    ("variables", "options", "drawn"),
    [
        ({}, {}, "\r\x1b[K\x1b[32m███░░░░\x1b[0m 5 of 10"),
        ({}, {"colour": False}, "\r\x1b[K███░░░░ 5 of 10"),
        ({"NO_COLOR": "1"}, {}, "\r\x1b[K███░░░░ 5 of 10"),
        ({}, {"colour": False, "encoding": "ascii"}, "\r\x1b[K###---- 5 of 10"),
        ({"TERM": "dumb"}, {}, "5 of 10\r\n"),
    ],
)
def test_colours_and_letters_only_where_they_are_wanted(coloured, monkeypatch, variables, options, drawn):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal(**options)
    terminal.screen.show("5 of 10", 5, 10)
    assert terminal.text() == drawn


def test_what_stays_replaces_the_line_and_is_broken_between_words(coloured):
    terminal = Terminal(20, colour=False)
    terminal.screen.show(*STATE)
    terminal.text()
    terminal.screen.say("Failed: something")
    assert terminal.text() == "\r\x1b[KFailed: something\r\n"
    # Nothing to take away any more.
    terminal.screen.clear()
    terminal.screen.say_wrapped("Why:  one two three four", indent=6)
    assert terminal.text() == "Why:  one two three\r\n      four\r\n"
    # A terminal that has gone ends nothing.
    os.close(terminal.master)
    terminal.screen.say("still here")


POS = {"model": "mbert", "preset": "pos", "source": "ru_gsd", "init": "random-1-2", "seed": "1"}
LATIN = POS | {"preset": "unseen-parsing", "source": "ug_udt+latn", "init": "ref"}
ADJUSTED = LATIN | {"model": "mbert+adjust-hi-30k-avg-all", "preset": "adjust-nli", "source": "multinli_en"}
ADJUSTED |= {"init": "continual"}
TRIAL = POS | {"preset": "parsing", "source": "en_ewt", "init": "grid-16-2.5e-5"}
BOTH = POS | {"init": "grid-16-2e-5-random-1-2"}
SCOPED = ADJUSTED | {"init": "continual-both"}
GERMAN = POS | {"model": "mono-gsw", "preset": "ner", "source": "wikiann_de", "init": "ref"}
WOLOF = {"preset": "unseen-parsing", "source": "wo_wtb", "seed": "1"}
MLM = {"base": "mbert", "adaptation": "mlm-ug+latn"}
RANDOM = {"address": "tuned/mbert/ner-wikiann_en/random-all/seed1", "corpus": "pud"}
ALL_AGAIN = "comparing languages in mBERT fine-tuned for NER on English, all layers re-initialised"


@pytest.mark.parametrize(
    ("rule", "wildcards", "words"),
    [
        ("finetune_random", POS, "fine-tuning POS on Russian, layers 1-2 re-initialised (mBERT)"),
        ("finetune", LATIN, "fine-tuning parsing on Uyghur in Latin script (mBERT)"),
        ("finetune", ADJUSTED, "fine-tuning NLI on English, continual (mBERT adjusted to Hindi)"),
        ("finetune_random", TRIAL, "fine-tuning parsing on English, batch 16, learning rate 2.5e-5 (mBERT)"),
        (
            "finetune_random",
            BOTH,
            "fine-tuning POS on Russian, layers 1-2 re-initialised, batch 16, learning rate 2e-5 (mBERT)",
        ),
        ("finetune", SCOPED, "fine-tuning NLI on English, continual (mBERT adjusted to Hindi)"),
        ("evaluate", GERMAN, "testing NER learnt on German (monolingual model of Swiss German)"),
        ("train_bilstm", WOLOF, "training parsing on Wolof (BiLSTM)"),
        ("prepare_trees", {"name": "ru_gsd", "split": "train"}, "preparing treebank ru_gsd (train)"),
        ("prepare_parallel", {"name": "pud", "split": "ja"}, "preparing PUD in Japanese"),
        ("prepare_text", {"name": "wikipedia_ug"}, "preparing text wikipedia_ug"),
        ("align_bitext", {"name": "wikimatrix_hi", "split": "pool"}, "aligning words of English and Hindi"),
        ("adapt_to_text", MLM, "continuing MLM of mBERT on Uyghur in Latin script"),
        ("adjust_model", {"base": "mbert", "adaptation": "adjust-es-30k-avg-all"}, "adjusting mBERT to Spanish"),
        ("pretrain", {"trained": "mono-ug.latn"}, "pretraining a monolingual model of Uyghur in Latin script"),
        ("pretrain", {"trained": "scale-pre"}, "pretraining Pre-LN"),
        ("embed_sentences", {"address": "models/xlmr-base", "corpus": "pud"}, "sentence vectors of XLM-R base"),
        ("compare_languages", RANDOM, ALL_AGAIN),
        ("make_table", {"paper": "align-predict", "item": "table3"}, "making table 3 of align-predict"),
        ("make_report", {}, "writing the page"),
        # A rule without words, and wildcards that are no address, are told as they are.
        ("boil_water", {"pot": "red", "cups": "2"}, "boil water (pot red, cups 2)"),
        ("embed_sentences", {"address": "elsewhere"}, "embed sentences (address elsewhere)"),
        ("prepare_trees", {}, "prepare trees"),
    ],
)
def test_jobs_are_told_in_words(rule, wildcards, words):
    assert job_words(rule, wildcards) == words


TABLE = {"paper": "anc", "item": "table1"}
UP_TO_DATE = "Nothing to be done (all requested files are present and up to date)."


@pytest.fixture
def told(tmp_path, monkeypatch):
    """A story, its clock, its early look, which only notes what is asked of it, and what it has told."""
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results" / "demo"
    results.mkdir(parents=True)
    time, stream = SimpleNamespace(now=0.0), io.StringIO()
    run = Run(results, "make demo", "snakemake --unlock --profile profiles/demo", "make plan")
    look = Mock(EarlyLook, closed=False)
    story = Story(run, Screen(stream, lambda: time.now), look, lambda: time.now)
    return SimpleNamespace(story=story, time=time, look=look, results=results, text=stream.getvalue)


def play(told, *jobs):
    """Jobs one after another, each a minute long, and the end."""
    told.story.plan(dict.fromkeys(jobs, 1) | {"total": len(jobs)})
    for number, rule in enumerate(jobs):
        told.story.start(number, rule, TABLE)
        told.time.now += 60
        told.story.finish(number)
    told.story.end()


def claims_file(results, *rows):
    lines = [",".join(COLUMNS), *(",".join(row.get(name, "") for name in COLUMNS) for row in rows)]
    (results / "claims.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def claim(name, verdict, **rest):
    return {"id": name, "paper": "anc", "item": "anc/table1", "claim": f"claim {name}", "verdict": verdict} | rest


def test_a_run_that_succeeds(told):
    (told.results / "report").mkdir()
    (told.results / "report" / "index.html").write_text("page", encoding="utf-8")
    claims_file(told.results, claim("a", "holds"), claim("b", "does not hold", measured="0.3"))
    play(told, "make_table", "make_verdicts", "make_report", "all")
    lines = told.text().splitlines()
    assert lines[0] == "demo: 4 jobs. Ctrl-C stops the run; to continue: make demo"
    assert lines[1].startswith("Look meanwhile: file:///") and "demo/report/index.html" in lines[1]
    end = lines[lines.index("Done in 4 minutes: 4 jobs.") :]
    assert end[1].startswith("Page:     file:///")
    assert end[2:] == [
        "Held:     1 of the 2 claims that this run can judge (anc 1)",
        "Did not:  1 (anc 1), for example “claim b”: here 0.3",
        "Why:      the page has the numbers beside each claim",
        "Next:     make plan",
    ]


def test_jobs_one_at_a_time_are_named_though_none_runs_between_them(told):
    told.story.plan({"make_table": 4, "total": 4})
    for number in range(4):
        told.story.start(number, "make_table", TABLE)
        told.time.now += 61
        told.story.tick()
        told.story.finish(number)
    told.time.now += 61
    told.story.tick()
    lines = told.text().splitlines()
    assert [line.partition(",")[0] for line in lines if ", " in line and " of 4" in line] == [
        f"{done} of 4" for done in range(4)
    ]
    assert not any("choosing" in line for line in lines)
    assert lines[-1] == "4 of 4: ending the run"


def test_the_early_look_follows_items_and_stops_for_the_rules_that_end_the_run(told):
    told.story.plan({"make_table": 2, "make_verdicts": 1, "make_report": 1, "total": 4})
    assert told.look.want.call_count == 0  # the run has not written its config yet
    told.story.start(1, "make_table", TABLE)
    assert told.look.want.call_count == 1
    told.story.finish(1)
    assert told.look.want.call_count == 2 and not told.look.close.called
    told.story.start(2, "make_verdicts", {})
    told.story.finish(2)
    assert told.look.want.call_count == 2 and told.look.close.called


@pytest.mark.parametrize(("jobs", "looks"), [(["download_file"], 0), (["make_table", "adjust"], 1)])
def test_a_run_that_ends_without_its_page_gets_an_early_one_if_it_has_items(told, jobs, looks):
    play(told, *jobs)
    assert told.look.finish.call_count == looks and told.look.want.called == bool(looks)
    assert told.text().count("Look meanwhile") == looks and "Held" not in told.text()


@pytest.mark.parametrize("mended", [False, True])
def test_a_failure_shows_rule_words_and_log_and_is_none_if_another_attempt_mends_it(told, tmp_path, mended):
    log = tmp_path / "a.log"
    log.write_text("reading\n\nValueError: no such thing\n", encoding="utf-8")
    told.story.plan({"make_table": 1, "total": 1})
    told.story.start(7, "make_table", TABLE)
    told.story.fail(7, "make_table", ["results/demo/tables/anc/table1.csv"], [str(log), "none.log"])
    assert told.story.tally.counts == (0, 1) and not told.story.tally.running
    failed = [
        "Failed: making table 1 of anc (rule make_table)",
        f"  {log}:",
        "    reading",
        "    ValueError: no such thing",
        "  nothing in none.log",
    ]
    if mended:
        told.story.sentence("Trying to restart job 7.", False)
        told.story.start(7, "make_table", TABLE)
        told.story.finish(7)
        end = ["  It is started again.", "Done in 0 seconds: 1 job.", "Next:     make plan"]
    else:
        told.story.error("RuleException", 'RuleException:\nCalledProcessError in file "x", line 3:\nCommand …')
        told.story.sentence("Exiting because a job execution failed. Look above for error messages", True)
        told.story.error("WorkflowError", "WorkflowError:\nAt least one job did not complete successfully.")
        end = [
            "1 of 1 jobs failed after 0 seconds; 0 are done and stay done.",
            "Snakemake's log: results/demo/logs/snakemake.log",
            "Try again: make demo",
        ]
    told.story.end()
    assert [line for line in told.text().splitlines()[3:] if not line.startswith("1 of 1, ")] == [*failed, *end]


def test_an_interrupt_says_how_to_go_on_and_calls_nothing_failed(told):
    told.story.plan({"finetune": 3, "total": 3})
    for job in (1, 2):
        told.story.start(job, "boil", {})
    told.story.finish(1)
    told.time.now = 130
    told.story.interrupted = True
    told.story.fail(2, "boil", [], [])
    told.story.error("WorkflowError", "WorkflowError:\nsomething on the way down")
    told.story.end()
    end = ["Stopped after 2 minutes. Of 3 jobs 1 are done and stay done.", "Continue: make demo"]
    assert told.text().splitlines()[-2:] == end
    assert "Failed" not in told.text() and "way down" not in told.text()
    assert told.look.close.called and not told.look.finish.called


@pytest.mark.parametrize(
    ("sentence", "serious", "words"),
    [
        ("Will exit after finishing currently running jobs (scheduler).", False, "The run stops when the running jobs"),
        ("Licences of what is going to be downloaded:\n…", True, "Licences of what is going to be downloaded:\n…\n"),
        ("Building DAG of jobs...", False, ""),
    ],
)
def test_sentences_of_snakemake(told, sentence, serious, words):
    told.story.sentence(sentence, serious)
    assert told.text().startswith(words) and bool(told.text()) == bool(words)
    assert told.story.interrupted == ("exit" in sentence)


def test_nothing_to_do_shows_the_outcome_even_if_claims_cannot_be_read(told):
    claims_file(told.results, claim("a", "holds"))
    told.story.sentence(UP_TO_DATE, False)
    told.story.end()
    assert told.text().startswith("Nothing is left to do.\nHeld:     1 of the 1 claims")
    (told.results / "claims.csv").write_text("id,paper\n", encoding="utf-8")
    told.story.end()
    assert "claims.csv: the columns" in told.text() and told.text().endswith("Next:     make plan\n")


def test_one_fact_counts_once_reasons_are_grouped_and_an_example_is_short(tmp_path):
    assert list(summary(tmp_path)) == [], "claims are not judged yet"
    rows = [
        claim("a", "holds", fact="one"),
        claim("b", "holds", paper="talk", fact="one"),
        claim("c", "unclear"),
        claim("d", "cannot be checked", detail="not learnt: QA"),
        claim("e", "cannot be checked", detail="not judged: small models"),
        claim("f", "cannot be checked", detail="small models"),
        claim("g", "not run"),
    ]
    claims_file(tmp_path, *rows)
    assert list(summary(tmp_path)) == [
        "Held:     1 of the 2 claims that this run can judge (anc 1)",
        "Did not:  0",
        "Why:      the page has the numbers beside each claim; 1 unclear (within the noise); 1 not run;"
        " 1 on what the models have not learnt; 2 cannot be checked here (mostly: small models)",
    ]
    claims_file(tmp_path, claim("a", "does not hold", claim="peaks at layer 5 (CKA: 78 %)", measured="9" * 500))
    told = f"Did not:  1 (anc 1), for example “peaks at layer 5”: here {'9' * 99}…"
    assert list(summary(tmp_path))[1] == told


def test_a_failure_names_the_items_it_was_for(root, tmp_path):
    demo = tmp_path / "config.json"
    demo.write_text(json.dumps(load([root / "config.demo.yaml"])), encoding="utf-8")
    tuned = "results/demo/tuned/mbert/pos-ru_gsd/random-1-2/seed1"
    items = items_behind(demo, {f"{tuned}/model/model.safetensors", f"{tuned}/training.json"})
    assert items == items_behind(demo, {f"{tuned}/scores.json"}) and "align-predict/table1" in items
    assert not any(item.startswith("adjust/") for item in items)
    # All data of the demo come from its world.
    world = {"results/demo/mirror/SHA256SUMS"}
    assert len(items_behind(demo, world)) > 30
    assert needed_for(demo, world).endswith(f" and {len(items_behind(demo, world)) - 3} more")
    assert needed_for(demo, {"results/demo/tables/anc/table1.csv"}) == "table 1 of anc"
    assert needed_for(demo, {f"{tuned}/scores.json"}).startswith("table 1 of align-predict, ")
    assert needed_for(demo, {"elsewhere"}) == needed_for(demo.with_name("none.json"), {tuned}) == ""


def test_only_the_end_of_a_log_is_shown(tmp_path):
    log = tmp_path / "long.log"
    log.write_bytes(b"\xff bad\n" + b"".join(b"line %d\n\n" % number for number in range(100_000)))
    assert tail(log, 3) == ["line 99997", "line 99998", "line 99999"]
    assert tail(tmp_path / "none.log") == []
    log.write_text("x" * 1000, encoding="utf-8")
    assert tail(log) == ["x" * 300]


def test_the_page_that_is_there_early_is_no_news():
    words = "the following output files of rule make_report were not present when the DAG was created:\n{'%s'}"
    assert about_early_page(words % "results/demo/report/index.html")
    assert not about_early_page(words % "results/demo/tables/anc/table1.csv")


@pytest.fixture
def look(tmp_path):
    """Makes a look whose maker has the file `out` to write, and a clock that stands still; wanted and begun."""
    (tmp_path / "report").mkdir()
    draft, page = tmp_path / "report" / ".early.html", tmp_path / "report" / "index.html"
    made = []

    def make(body, begin=True):
        time_now = SimpleNamespace(now=1000.0)
        command = [sys.executable, "-c", f"import os, sys, time; out = sys.argv[1]; {body}", str(draft)]
        early = EarlyLook(command, draft, page, tmp_path / "logs" / "early.log", lambda: time_now.now)
        made.append(early)
        early.time = time_now
        early.tick()
        assert early.process is None, "nothing is new yet"
        if begin:
            early.want()
            early.tick()
        return early

    yield make
    for each in made:
        each.close()


def settle(look):
    """Wait for the maker, and let the look notice."""
    look.process.wait(60)
    look.tick()


def test_never_two_at_once_and_slow_makers_are_started_less_often(look):
    early = look("open(out, 'w').write(str(os.getpid())); time.sleep(0.2)")
    first = early.process
    assert early.next == early.time.now + PAUSE
    early.want()
    early.time.now += 2 * PAUSE
    early.tick()
    assert early.process is first
    settle(early)
    assert early.page.read_text() == str(first.pid) and not early.draft.exists()
    # It took two pauses by the clock, so the next has to wait for a multiple of that.
    assert early.process is None and early.next == early.time.now + SHARE * 2 * PAUSE
    early.time.now = early.next - 1
    early.tick()
    assert early.process is None
    early.time.now += 1
    early.tick()
    settle(early)
    assert early.page.read_text() != str(first.pid)


def test_a_maker_that_fails_or_cannot_be_started_changes_nothing_but_its_log(look):
    early = look("open(out, 'w').write('half'); sys.exit('no config yet')")
    early.page.write_text("before")
    settle(early)
    assert early.page.read_text() == "before" and "no config yet" in early.log.read_text()
    early = look("pass", begin=False)
    early.command = ["/no/such/program"]
    early.want()
    early.tick()
    assert early.process is None and not early.finish()


@pytest.mark.parametrize("works_on", [True, False])
def test_after_closing_no_early_page_is_written(look, works_on):
    """Whether the maker is still at work or has ended and nobody has looked yet."""
    early = look(f"open(out, 'w').write('early'); time.sleep({600 * works_on})")
    maker = early.process
    while not (early.draft.exists() if works_on else maker.poll() is not None):
        time.sleep(0.02)
    early.page.write_text("the run's own")
    early.close()
    assert maker.returncode is not None and not early.draft.exists()
    early.want()
    early.tick()
    assert early.process is None and not early.finish() and early.page.read_text() == "the run's own"


def test_the_last_look_waits_for_the_maker_which_is_no_job_and_of_low_priority(look, monkeypatch):
    monkeypatch.setenv(TOKEN, "secret")
    told = f"os.environ.get('{TOKEN}', 'none') + ' ' + str(os.nice(0))"
    early = look(f"time.sleep(0.2); open(out, 'w').write({told})", begin=False)
    assert early.finish() and early.page.read_text() == "none 19"
    assert os.nice(0) < 19
    assert not look("time.sleep(600)", begin=False).finish(patience=0.1)


def test_the_last_look_begins_again_when_the_maker_at_work_has_not_seen_everything(look):
    body = "time.sleep(0.2); open(out, 'w').write(str(os.getpid()))"
    early = look(body)
    first = early.process
    early.want()
    assert early.finish() and not early.wanted
    assert early.page.read_text() not in ("", str(first.pid))
    # One that has seen everything is waited for, and no other is started.
    early = look(body)
    first = early.process
    assert early.finish() and early.page.read_text() == str(first.pid)
    # One that does not end is left alone.
    early = look("time.sleep(600)")
    first = early.process
    early.want()
    assert not early.finish(patience=0.1) and early.process is first
