"""The story of a run: its start, failures, errors and the last words, as people read them."""

import io
import json

import pytest

from crossalign.catalog.config import load
from crossalign.progress.failure import failure, items_behind, tail
from crossalign.progress.screen import Screen
from crossalign.progress.story import Run, Story
from crossalign.progress.summary import summary
from crossalign.results.claims.claim import COLUMNS


class Look:
    """An early look that only notes what is asked of it."""

    def __init__(self):
        self.wanted, self.closed, self.finished = 0, False, 0

    def want(self):
        self.wanted += 1

    def tick(self):
        pass

    def finish(self):
        self.finished += 1

    def close(self):
        self.closed = True


class Told:
    """A story, and what it has told."""

    def __init__(self, results):
        self.stream, self.now = io.StringIO(), 0.0
        self.look = Look()
        run = Run(results, "make demo", "snakemake --unlock --profile profiles/demo", "make plan")
        screen = Screen(self.stream, self.clock)
        self.story = Story(run, screen, self.look, self.clock)

    def clock(self):
        return self.now

    @property
    def text(self):
        return self.stream.getvalue()


@pytest.fixture
def told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Told(tmp_path / "results" / "demo")


def play(told, *jobs):
    """Jobs one after another, each a minute long."""
    told.story.plan(dict.fromkeys(jobs, 1) | {"total": len(jobs)})
    for number, rule in enumerate(jobs):
        told.story.start(number, rule, {"paper": "anc", "item": "table1"})
        told.now += 60
        told.story.finish(number)


def claims_file(results, *rows):
    results.mkdir(parents=True, exist_ok=True)
    lines = [",".join(COLUMNS), *(",".join(row.get(name, "") for name in COLUMNS) for row in rows)]
    (results / "claims.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def claim(name, verdict, paper="anc", fact="", **rest):
    return (
        {"id": name, "paper": paper, "item": "anc/table1", "claim": f"claim {name}", "verdict": verdict}
        | rest
        | {"fact": fact or name}
    )


def test_a_run_that_succeeds(told):
    results = told.story.run.results
    (results / "report").mkdir(parents=True)
    (results / "report" / "index.html").write_text("page", encoding="utf-8")
    claims_file(results, claim("a", "holds"), claim("b", "does not hold", measured="0.3"))
    play(told, "make_table", "make_verdicts", "make_report", "all")
    told.story.end()
    lines = told.text.splitlines()
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
    assert told.look.wanted == 0  # the run has not written its config yet
    told.story.start(1, "make_table", {"paper": "anc", "item": "table1"})
    assert told.look.wanted == 1
    told.story.finish(1)
    assert told.look.wanted == 2
    told.story.start(2, "make_verdicts", {})
    assert told.look.closed
    told.story.finish(2)
    assert told.look.wanted == 2


def test_a_run_without_items_has_no_early_look(told):
    play(told, "download_file")
    told.story.end()
    assert told.look.wanted == told.look.finished == 0
    assert "Look meanwhile" not in told.text and "Held" not in told.text


def test_a_run_that_ends_without_its_page_gets_an_early_one(told):
    play(told, "make_table", "adjust")
    told.story.end()
    assert told.look.finished == 1


def test_a_failure_shows_rule_words_and_log(told, tmp_path):
    log = tmp_path / "a.log"
    log.write_text("reading\n\nValueError: no such thing\n", encoding="utf-8")
    told.story.plan({"make_table": 2, "total": 2})
    told.story.start(7, "make_table", {"paper": "anc", "item": "table1"})
    told.story.error("RuleException", 'RuleException:\nCalledProcessError in file "x", line 3:\nCommand …')
    told.story.fail(7, "make_table", ["results/demo/tables/anc/table1.csv"], [str(log)])
    told.story.sentence("Exiting because a job execution failed. Look above for error messages", True)
    told.story.error("WorkflowError", "WorkflowError:\nAt least one job did not complete successfully.")
    told.story.end()
    assert told.text.splitlines()[3:] == [
        "Failed: making table 1 of anc (rule make_table)",
        f"  {log}:",
        "    reading",
        "    ValueError: no such thing",
        "1 of 2 jobs failed after 0 seconds; 0 are done and stay done.",
        "Snakemake's log: results/demo/logs/snakemake.log",
        "Try again: make demo",
    ]


def test_a_failure_that_is_mended_by_another_attempt_is_none(told):
    told.story.plan({"make_table": 1, "total": 1})
    told.story.start(1, "make_table", {"paper": "anc", "item": "table1"})
    told.story.fail(1, "make_table", [], [])
    told.story.sentence("Trying to restart job 1.", False)
    told.story.start(1, "make_table", {"paper": "anc", "item": "table1"})
    told.story.finish(1)
    told.story.end()
    assert "  It is started again.\n" in told.text and "Done in" in told.text and "Try again" not in told.text


def test_an_interrupt_says_how_to_go_on_and_calls_nothing_failed(told):
    told.story.plan({"finetune": 3, "total": 3})
    told.story.start(1, "boil", {})
    told.story.finish(1)
    told.story.start(2, "boil", {})
    told.now = 130
    told.story.interrupted = True
    told.story.fail(2, "boil", [], [])
    told.story.error("WorkflowError", "WorkflowError:\nsomething on the way down")
    told.story.end()
    assert told.text.splitlines()[-2:] == [
        "Stopped after 2 minutes. Of 3 jobs 1 are done and stay done.",
        "Continue: make demo",
    ]
    assert "Failed" not in told.text and "way down" not in told.text
    assert told.look.closed and not told.look.finished


def test_a_scheduler_that_asks_to_end_is_an_interrupt(told):
    told.story.sentence("Will exit after finishing currently running jobs (scheduler).", False)
    assert told.story.interrupted and "when the running jobs are done" in told.text


def test_errors_before_the_first_job_are_shown(told):
    told.story.error("WorkflowError", "WorkflowError:\nconfig.yaml: seed: 0 is not allowed")
    told.story.end()
    assert "seed: 0 is not allowed" in told.text and told.text.endswith("Try again: make demo\n")


def test_warnings_are_shown_and_other_sentences_are_not(told):
    told.story.sentence("Licences of what is going to be downloaded:\n…", True)
    told.story.sentence("Building DAG of jobs...", False)
    assert told.text == "Licences of what is going to be downloaded:\n…\n"


def test_nothing_to_do_shows_the_outcome(told):
    claims_file(told.story.run.results, claim("a", "holds"))
    told.story.sentence("Nothing to be done (all requested files are present and up to date).", False)
    told.story.end()
    assert told.text.splitlines()[0] == "Nothing is left to do."
    assert "Held:     1 of the 1 claims" in told.text


def test_claims_that_cannot_be_read_do_not_cost_the_last_words(told):
    told.story.run.results.mkdir(parents=True)
    (told.story.run.results / "claims.csv").write_text("id,paper\n", encoding="utf-8")
    told.story.sentence("Nothing to be done (all requested files are present and up to date).", False)
    told.story.end()
    assert "claims.csv: the columns" in told.text and told.text.endswith("Next:     make plan\n")


def test_a_lock_that_cannot_be_judged_names_the_command(told, tmp_path):
    (tmp_path / ".snakemake" / "locks").mkdir(parents=True)
    (tmp_path / ".snakemake" / "locks" / "0.output.lock").write_text("x\n", encoding="utf-8")
    told.story.error("LockException", "Error: Directory cannot be locked.")
    assert "nothing says by which run" in told.text
    assert "  snakemake --unlock --profile profiles/demo\n" in told.text


def test_one_fact_counts_once_and_reasons_are_grouped(tmp_path):
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
    held, failed, why = summary(tmp_path)
    assert held == "Held:     1 of the 2 claims that this run can judge (anc 1)"
    assert failed == "Did not:  0"
    assert why.endswith(
        "; 1 unclear (within the noise); 1 not run; 1 on tasks that the models have not learnt;"
        " 2 cannot be checked here (mostly: small models)"
    )


def test_an_example_is_told_without_the_number_behind_it(tmp_path):
    claims_file(tmp_path, claim("a", "does not hold", claim="peaks at layer 5 (CKA: 78 %)", measured="layer 7 (0.63)"))
    assert list(summary(tmp_path))[1] == "Did not:  1 (anc 1), for example “peaks at layer 5”: here layer 7 (0.63)"


def test_no_line_is_endless(tmp_path):
    claims_file(tmp_path, claim("a", "does not hold", measured="9" * 500, detail="x"))
    assert all(len(line) < 400 for line in summary(tmp_path))


def test_nothing_is_summed_up_before_claims_are_judged(tmp_path):
    assert list(summary(tmp_path)) == []


@pytest.fixture(scope="module")
def demo(root, tmp_path_factory):
    file = tmp_path_factory.mktemp("run") / "config.json"
    file.write_text(json.dumps(load([root / "config.demo.yaml"])), encoding="utf-8")
    return file


def test_a_failure_names_the_items_it_was_for(demo):
    tuned = "results/demo/tuned/mbert/pos-ru_gsd/random-1-2/seed1"
    items = items_behind(demo, {f"{tuned}/model/model.safetensors", f"{tuned}/training.json"})
    assert items == items_behind(demo, {f"{tuned}/scores.json"}) and "align-predict/table1" in items
    assert not any(item.startswith("adjust/") for item in items)
    # All data of the demo come from its world.
    assert len(items_behind(demo, {"results/demo/mirror/SHA256SUMS"})) > 30
    assert items_behind(demo, {"results/demo/tables/anc/table1.csv"}) == ["anc/table1"]
    assert items_behind(demo, {"elsewhere"}) == []
    assert items_behind(demo.with_name("none.json"), {tuned}) == []
    lines = list(failure("finetune", "fine-tuning", [f"{tuned}/model/model.safetensors"], [], demo.parent))
    assert lines[0] == "Failed: fine-tuning (rule finetune)" and lines[1].startswith("  needed for table 1 of align-pr")


def test_only_the_end_of_a_log_is_shown(tmp_path):
    log = tmp_path / "long.log"
    log.write_bytes(b"\xff bad\n" + b"".join(b"line %d\n\n" % number for number in range(100_000)))
    assert tail(log, 3) == ["line 99997", "line 99998", "line 99999"]
    assert tail(tmp_path / "none.log") == []
    log.write_text("x" * 1000, encoding="utf-8")
    assert tail(log) == ["x" * 300]


def test_the_page_that_is_there_early_is_no_news():
    from crossalign.progress.handler import about_early_page

    words = "the following output files of rule make_report were not present when the DAG was created:\n{'%s'}"
    assert about_early_page(words % "results/demo/report/index.html")
    assert not about_early_page(words % "results/demo/tables/anc/table1.csv")
