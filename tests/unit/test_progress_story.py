"""The story of a run: its start, failures, errors and the last words, as people read them."""

import io
import json
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from crossalign.catalog.config import load
from crossalign.progress.early import EarlyLook
from crossalign.progress.handler import about_early_page
from crossalign.progress.line import Screen
from crossalign.progress.outcome import items_behind, needed_for, summary
from crossalign.progress.story import Run, Story, tail
from crossalign.results.claims.claim import COLUMNS

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


def test_a_failure_shows_rule_words_and_log(told, tmp_path):
    log = tmp_path / "a.log"
    log.write_text("reading\n\nValueError: no such thing\n", encoding="utf-8")
    told.story.plan({"make_table": 2, "total": 2})
    told.story.start(7, "make_table", TABLE)
    told.story.error("RuleException", 'RuleException:\nCalledProcessError in file "x", line 3:\nCommand …')
    told.story.fail(7, "make_table", ["results/demo/tables/anc/table1.csv"], [str(log), "none.log"])
    told.story.sentence("Exiting because a job execution failed. Look above for error messages", True)
    told.story.error("WorkflowError", "WorkflowError:\nAt least one job did not complete successfully.")
    told.story.end()
    assert told.text().splitlines()[3:] == [
        "Failed: making table 1 of anc (rule make_table)",
        f"  {log}:",
        "    reading",
        "    ValueError: no such thing",
        "  nothing in none.log",
        "1 of 2 jobs failed after 0 seconds; 0 are done and stay done.",
        "Snakemake's log: results/demo/logs/snakemake.log",
        "Try again: make demo",
    ]


def test_a_failure_that_is_mended_by_another_attempt_is_none(told):
    told.story.plan({"make_table": 1, "total": 1})
    told.story.start(1, "make_table", TABLE)
    told.story.fail(1, "make_table", [], [])
    assert told.story.tally.counts == (0, 1) and not told.story.tally.running
    told.story.sentence("Trying to restart job 1.", False)
    told.story.start(1, "make_table", TABLE)
    told.story.finish(1)
    told.story.end()
    assert "  It is started again.\n" in told.text() and "Done in" in told.text() and "Try again" not in told.text()


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


def test_errors_before_the_first_job_are_shown(told):
    told.story.error("WorkflowError", "WorkflowError:\nconfig.yaml: seed: 0 is not allowed")
    told.story.end()
    assert "seed: 0 is not allowed" in told.text() and told.text().endswith("Try again: make demo\n")


def test_nothing_to_do_shows_the_outcome_even_if_claims_cannot_be_read(told):
    claims_file(told.results, claim("a", "holds"))
    told.story.sentence(UP_TO_DATE, False)
    told.story.end()
    assert told.text().startswith("Nothing is left to do.\nHeld:     1 of the 1 claims")
    (told.results / "claims.csv").write_text("id,paper\n", encoding="utf-8")
    told.story.end()
    assert "claims.csv: the columns" in told.text() and told.text().endswith("Next:     make plan\n")


def test_a_lock_that_cannot_be_judged_names_the_command(told, tmp_path):
    (tmp_path / ".snakemake" / "locks").mkdir(parents=True)
    (tmp_path / ".snakemake" / "locks" / "0.output.lock").write_text("x\n", encoding="utf-8")
    told.story.error("LockException", "Error: Directory cannot be locked.")
    assert "nothing says by which run" in told.text()
    assert "  snakemake --unlock --profile profiles/demo\n" in told.text()


def test_one_fact_counts_once_and_reasons_are_grouped(tmp_path):
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
        " 1 on tasks that the models have not learnt; 2 cannot be checked here (mostly: small models)",
    ]


def test_an_example_is_short_and_told_without_the_number_behind_it(tmp_path):
    claims_file(tmp_path, claim("a", "does not hold", claim="peaks at layer 5 (CKA: 78 %)", measured="layer 7 (0.63)"))
    assert list(summary(tmp_path))[1] == "Did not:  1 (anc 1), for example “peaks at layer 5”: here layer 7 (0.63)"
    claims_file(tmp_path, claim("a", "does not hold", measured="9" * 500, detail="x"))
    assert all(len(line) < 400 for line in summary(tmp_path))


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
