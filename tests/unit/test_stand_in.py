"""Models of a run's own: their numbers are not judged, those of the papers' models are."""

import re

import pytest
from tests.unit.made_results import load, make_results
from tests.unit.pretrained import pretrained_run

from crossalign.catalog.addresses import parse
from crossalign.catalog.stand_in import ARTIFICIAL, OTHER_MODEL, base_name, stand_in
from crossalign.papers import make
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.context import Context
from crossalign.report.gather import gather
from crossalign.report.page import banner, kind
from crossalign.results.reading import Results
from crossalign.results.verdict import ABSENT, JUDGED, OTHER
from crossalign.runtime.files import write_json

OWN = "not judged (another model)"
TINY = {"pretrain": {"models": {"tiny": {"vocabulary": "mbert", "text": "cc100", "languages": ["en"]}}}}


@pytest.fixture(scope="module")
def small(root, tmp_path_factory):
    """A finished small run with made-up numbers."""
    folder = tmp_path_factory.mktemp("small") / "results" / "small"
    config = pretrained_run(root)
    make_results(folder, config)
    return config, folder


def records(config, folder, item):
    return list(make(item, Context(config, Results(folder))).tidy())


def test_the_base_of_every_kind_of_run():
    paths = {
        "models/small": "small",
        "models/small+mlm-wo/seed1": "small",
        "tuned/small+adjust-hi-10k-avg-all/adjust-nli-multinli_en/ref/seed1": "small",
        "tuned/bilstm/unseen-parsing-wo_wtb/ref/seed1": "bilstm",
    }
    assert {path: base_name(parse(path)) for path in paths} == paths
    own = {"pretrain": {"models": {"defaults": {}, "small": {}, "papers": {"as_published": True}}}}
    found = {path: stand_in(own, [parse(path)]) for path in paths}
    assert set(found.values()) == {OTHER_MODEL, None} and found["tuned/bilstm/unseen-parsing-wo_wtb/ref/seed1"] is None
    assert stand_in(own, []) is None
    assert stand_in(own | {"world": "world.yaml"}, []) == ARTIFICIAL
    assert stand_in(own, [parse("models/defaults"), parse("models/papers")]) is None


def test_numbers_of_own_models_are_not_judged_and_facts_are(small):
    config, folder = small
    judged, spared = set(), 0
    for item in catalog_of(config).items:
        for row in records(config, folder, item):
            assert row["verdict"] in ("", OWN, OTHER, *ABSENT, *JUDGED), item
            spared += row["verdict"] == OWN
            if row["verdict"] in JUDGED:
                judged.add((item, row["field"]))
    assert spared > 500
    fields = ("family", "script", "word_order")
    facts = {("talk/table3", field) for field in fields[:2]} | {("adjust/table1", field) for field in fields}
    # Which scripts and which labelled data the languages of the slides have.
    assert judged == facts | {("talk/table4", "script"), ("talk/table4", "annotated data")}
    # Counted in another text than the talk's.
    texts = [row for row in records(config, folder, "talk/table3") if row.get("field") == "raw_sentences"]
    assert {(row["verdict"], row["reason"]) for row in texts if row["mean"]} == {(OTHER, "another text")}
    assert sum(bool(row["mean"]) for row in texts) == len(config["talk"]["languages"])
    assert kind(OWN) == kind(OTHER) == "moot"


def test_an_own_model_beside_the_papers_takes_nothing_from_them(root, tmp_path):
    """As docs/extend/model.md adds one: figures 3 and 5 of `anc` get a panel more."""
    plain = load(root, items=["anc/figure3", "anc/figure5"])
    changed = load(root, items=["anc/figure3", "anc/figure5"], **TINY)
    changed["anc"]["known_models"] = ["tiny", *plain["anc"]["known_models"]]
    changed["anc"]["xlmr"] = ["tiny", *plain["anc"]["xlmr"]]
    make_results(tmp_path, changed)
    for item in ("anc/figure3", "anc/figure5"):
        before, after = records(plain, tmp_path, item), records(changed, tmp_path, item)
        assert [row for row in after if row["panel"] != "tiny"] == before
        assert any(row["panel"] == "tiny" for row in after)
    assert any(row["verdict"] in JUDGED for row in records(changed, tmp_path, "anc/figure3"))


def test_one_study_with_an_own_base_leaves_the_others_judged(root, tmp_path):
    items = ["align-predict/table4", "talk/table5", "adjust/table2", "adjust/table1"]
    config = load(root, items=items, **TINY)
    config["align-predict"]["base"] = "tiny"
    make_results(tmp_path, config)
    labels = {item: {row["verdict"] for row in records(config, tmp_path, item)} - {""} for item in items}
    # The talk shows the same models again.
    assert labels["align-predict/table4"] == labels["talk/table5"] == {OWN}
    assert labels["adjust/table2"] <= set(JUDGED) and labels["adjust/table1"] & set(JUDGED)


def test_the_page_says_which_fine_tunings_have_learnt_nothing(small, tmp_path):
    config, _ = small
    results = tmp_path / "results"
    losses = {
        "small/adjust-nli-mix_en/ref/seed1": [1.11, 1.10],  # guesses
        "small/pos-en_ewt/random-1-2/seed1": [2.0, 0.9, 2.1],  # collapsed
        "small-2/pos-en_ewt/random-1-2/seed2": [2.0, 0.9, 0.5],
        "small/ner-wikiann_en/grid-32-2e-4-random-1-4/seed1": [1.6, 1.56, 1.55],  # a trial may fail
        "small/parsing-en_ewt/ref/seed1": [3.0],  # one epoch tells nothing
        "small-2+adjust-hi-10k-avg-all/adjust-nli-mix_en/continual/seed2": [1.2, 1.1],
    }
    for name, loss in losses.items():
        write_json(results / "tuned" / name / "training.json", {"loss": loss})
    shown = banner(gather(config, results, tmp_path / "index.html"))
    assert "2 fine-tunings learnt nothing" in shown
    told = re.findall(r"<li><code>tuned/([^<]*)</code></li>", shown)
    assert told == ["small/adjust-nli-mix_en/ref/seed1", "small/pos-en_ewt/random-1-2/seed1"]
