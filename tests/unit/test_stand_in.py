"""Models of a run's own: their numbers are not judged, those of the papers' models are; claims say what they saw."""

import copy
import json
import re
import shutil

import pytest
from tests.unit.made_results import load, make_results, merge
from tests.unit.test_claims import render

from crossalign.catalog.addresses import parse
from crossalign.catalog.checksums import registered
from crossalign.catalog.sets import DataSet
from crossalign.catalog.stand_in import ARTIFICIAL, OWN_MODEL, base_name, stand_in
from crossalign.papers import make
from crossalign.papers.all_claims import evidence_of, judge_run
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.context import Context
from crossalign.papers.talk.claims import SHOWN
from crossalign.report.gather import gather
from crossalign.report.page import banner, kind, page
from crossalign.results.claims.claim import FAILS, HOLDS, NOT_RUN, UNCHECKED, UNCLEAR, write_claims
from crossalign.results.names import language
from crossalign.results.reading import Results
from crossalign.results.verdict import ABSENT, JUDGED, LEFT_OUT, OTHER, write_verdicts
from crossalign.runtime.files import write_json

OWN = "not judged (model pretrained here)"
TINY = {"pretrain": {"models": {"tiny": {"vocabulary": "mbert", "text": "mix", "languages": ["en"]}}}}
NOT_JUDGED = "a model pretrained here stands for the paper's"
RANDOM = {"drop": "1-2", "upper": "11-12", "lower": "1-2"}
NO_ARABIC_TREES = {
    **{
        ("align-predict", f"{kind}-ar-parse"): f"align-predict/table1 of this run has no parsing, ar, X, {RANDOM[kind]}"
        for kind in ("drop", "upper")
    },
    **{
        ("talk", f"{kind}-ar"): f"talk/table2 of this run has no parsing, ar, X, {RANDOM[kind]}"
        for kind in ("lower", "upper")
    },
}
# Needs a language, a model or an item that the small run does not have.
OUTSIDE = NO_ARABIC_TREES | {
    ("anc", "anc-peak"): "anc/figure3 of this run has no mBERT",
    ("anc", "mbert-vs-xlmr"): "anc/figure3 of this run has no mBERT",
    ("anc", "anc-known"): "anc/figure3 of this run has no mBERT/XLM-R base",
    ("adjust", "mbert-params"): "mBERT is not part of this run",
    ("adjust", "mono-diff"): "adjust/table8 is not part of this run: SQuAD translated",
    **{
        ("adjust", f"embert-{name}"): "adjust/table9 is not part of this run: no small model"
        for name in ("gain", "qa", "better")
    },
    ("adjust", "qa-falls-where"): "there is no es-mlqa, vi-mlqa among the gains of this run",
    ("adjust", "xquad-mlqa"): "no language of this run has both XQuAD and MLQA",
    ("adjust", "squad-size"): "data/qa/squad_en/train.jsonl is not part of this run",
    ("adjust", "mlqa-size"): "data/qa/mlqa_es/test.jsonl is not part of this run",
    ("align-predict", "grid-batch"): "align-predict/table3 is not part of this run: a search",
    ("align-predict", "grid-lr"): "align-predict/table3 is not part of this run: a search",
    ("align-predict", "domain-ner"): "align-predict/table2 of this run has no other English domain for NER",
    ("talk", "narabizi-raw"): "data/text/narabizi_qaf/train.txt is not part of this run",
    **{
        ("talk", name): "3 of the 15 unseen languages are not part of this run"
        for name in ("hard-count", "translit-langs", "translit-seen")
    },
}
# Of languages that the run has and does not train on.
BEYOND_SLIDES = {
    ("talk", "related-script"): "talk/figure2",
    **{("talk", f"translit-{name}"): "talk/figure3" for name in ("sorani", "relatives", "seen-effect")},
}
# Judged on other languages than the paper's, which must be told.
REPLACED = {
    "without Bulgarian; with Arabic": {f"cka-normformer-{name}" for name in ("high", "drop", "zero", "v2")}
    | {"cka-tuned", "cka-others", "cca-passes", "match-deep", "anc-normformer", "anc-deep", "anc-others"}
    | {"transfer-gap", "norm-transfer"},
    "without Russian; with Arabic": {"scaling-pattern", "clm-pattern"},
    # No NER in Czech, Slovenian, Swedish. In the paper's similarity Swedish counts and Slovenian does not.
    "without Czech, Slovenian": {f"{kind}-{source}-ner" for kind in ("drop", "upper") for source in ("en", "ru", "ar")},
    "without Czech, Swedish": {f"spearman-{kind}-ner" for kind in ("ft", "pre")}
    | {"spearman-strong", "spearman-layer", "spearman-ner-upper", "spearman-ft-varies", "cka-ner-languages"},
    "without Swedish": {f"spearman-{kind}-{task}" for kind in ("ft", "pre") for task in ("parsing", "pos")}
    | {"spearman-pos"},
}


@pytest.fixture(scope="module")
def small(root, tmp_path_factory):
    """A finished small run with made-up numbers."""
    folder = tmp_path_factory.mktemp("small") / "results" / "small"
    config = load(root, "config.yaml", "config.small.yaml")
    make_results(folder, config)
    for path in folder.glob("distances/**/*.json"):
        path.write_text(json.dumps({"auc": 0.6, "top10": 0.1, "top100": 0.3, "pairs": 9}), encoding="utf-8")
    for data in ("parallel/pud/en", "parallel/pud/ru", "ner/wikiann_hi/test"):
        path = folder / f"data/{data}.report.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"read": 1000, "kept": 1000}), encoding="utf-8")
    render(config, folder)
    return config, folder


@pytest.fixture(scope="module")
def claims(small):
    return {(claim.paper, claim.id): claim for claim in judge_run(*small)}


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
    assert set(found.values()) == {OWN_MODEL, None} and found["tuned/bilstm/unseen-parsing-wo_wtb/ref/seed1"] is None
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


def test_notes_speak_of_the_languages_that_are_there(small, root):
    config, folder = small
    paper = load(root)
    fewer = copy.deepcopy(config)
    fewer["align-predict"]["languages"] = [
        lang for lang in config["align-predict"]["languages"] if lang not in ("cs", "sl", "sv")
    ]
    said = {
        (name, item): " ".join(make(f"align-predict/{item}", Context(each, Results(folder))).notes)
        for name, each in (("small", config), ("paper", paper), ("fewer", fewer))
        for item in ("table1", "table4", "table6", "table8")
    }
    # Tested on in parsing, without NER and without parallel sentences; Swedish has another treebank than the paper's.
    speaking = {("small", "table1"), ("small", "table6")}
    speaking |= {key for key in said if key[0] == "paper"}
    assert {key for key, notes in said.items() if "Slovenian" in notes} == speaking
    for item in ("table1", "table6"):
        assert "Swedish (sv_lines) is run beside it" in said["small", item]
        assert "Swedish (sv_pud) is run beside it" in said["paper", item]
    assert "Swedish stands in for Slovenian" in said["paper", "table4"]
    notes = make("talk/table3", Context(config, Results(folder))).notes
    names = ", ".join(map(language, config["talk"]["languages"]))
    assert names.startswith("Faroese, Mingrelian, ")
    assert any(f"Raw text of {names}: a mixture" in note for note in notes)
    assert not any("Wikipedia" in note for note in notes)


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
    render(changed, tmp_path)
    found = {claim.id: claim for claim in judge_run(changed, tmp_path) if claim.paper == "anc"}
    assert found["anc-peak"].verdict in (HOLDS, FAILS, UNCLEAR) and "not judged" not in found["anc-peak"].detail


def test_one_study_with_an_own_base_leaves_the_others_judged(root, tmp_path):
    items = ["align-predict/table4", "talk/table5", "adjust/table2", "adjust/table1"]
    config = load(root, items=items, **TINY)
    config["align-predict"]["base"] = "tiny"
    make_results(tmp_path, config)
    labels = {item: {row["verdict"] for row in records(config, tmp_path, item)} - {""} for item in items}
    # The talk shows the same models again.
    assert labels["align-predict/table4"] == labels["talk/table5"] == {OWN}
    assert labels["adjust/table2"] <= set(JUDGED) and labels["adjust/table1"] & set(JUDGED)
    evidence = evidence_of(config, tmp_path)
    standing = {item: evidence.stand_in(item) for item in (*items, "talk/figure2", "align-predict/table1")}
    own = {"align-predict/table4", "align-predict/table1", "talk/table5"}
    assert {item for item, found in standing.items() if found} == own


def test_claims_of_the_small_run(claims):
    outside = {key: claims[key] for key in OUTSIDE}
    for key, claim in outside.items():
        assert claim.verdict == UNCHECKED and claim.detail.startswith(OUTSIDE[key]), claim
        assert not claim.command and not claim.measured
    for key, claim in claims.items():
        if key in OUTSIDE or claim.kind == "background":
            continue
        if key in BEYOND_SLIDES:
            assert claim.verdict == NOT_RUN and claim.command
            assert claim.detail == f"{BEYOND_SLIDES[key]} {SHOWN}"
        elif claim.verdict == NOT_RUN:
            # Sizes of sets, which this made-up run has not prepared.
            assert claim.detail.partition(" lacks ")[2].startswith("data/"), claim
        elif claim.kind == "setting":
            assert claim.verdict == UNCHECKED
            assert claim.detail.startswith("not judged: this run has settings of its own size")
        elif claim.kind == "number" and key not in (("align-predict", "pud-sentences"), ("adjust", "wikiann-test-hi")):
            assert claim.verdict == UNCHECKED and claim.detail.startswith(f"not judged: {NOT_JUDGED}")
        else:
            assert claim.verdict in (HOLDS, FAILS, UNCLEAR), claim
            assert (f"not judged in amount: {NOT_JUDGED}" in claim.detail) == (claim.kind == "both")


def test_claims_on_other_languages_say_so(claims):
    told = {words: set() for words in REPLACED}
    for claim in claims.values():
        _, found, rest = claim.detail.partition("other languages than the paper's: ")
        if found:
            told[next(words for words in REPLACED if rest.startswith(words))].add(claim.id)
    assert told == REPLACED


def test_the_papers_run_has_the_papers_languages(root, tmp_path):
    config = load(root)
    for claim in judge_run(config, tmp_path):
        assert "other languages" not in claim.detail and "not part of this run" not in claim.detail


def test_systems_are_called_by_the_model_that_is_there(claims, small):
    assert claims["talk", "wo-category"].measured.startswith("Wolof: BiLSTM ")
    assert ", small after MLM " in claims["talk", "wo-category"].measured
    assert " points in small and " in claims["talk", "translit-effect"].measured
    assert {row["series"] for row in records(*small, "talk/figure2")} >= {"small", "small+MLM"}


def test_sizes_of_data_are_judged_where_the_files_are_the_published_ones(small, claims):
    config, folder = small
    assert claims["align-predict", "pud-sentences"].verdict == HOLDS
    assert claims["adjust", "wikiann-test-hi"].verdict == HOLDS
    mirror = folder.parent.parent / "mirror"
    changed = copy.deepcopy(config)
    merge(changed, {"downloads": {"mirror": f"file://{mirror}", "mirror_checksums": "mirror"}})
    pud = [DataSet("parallel", "pud", lang) for lang in ("en", "ru")]
    wikiann = [DataSet("ner", "wikiann_hi", "test")]
    unknown = "not known to be the published files: ud/en_pud/test.conllu, ud/ru_pud/test.conllu"
    assert evidence_of(changed, folder).other_data(pud) == unknown
    mirror.mkdir()
    sums = {path: registered()[path] for path in ("ud/en_pud/test.conllu", "ud/ru_pud/test.conllu")}
    sums["ner/wikiann/panx_dataset.zip"] = "sha256:" + "0" * 64
    lines = [f"{digest.removeprefix('sha256:')}  {path}\n" for path, digest in sums.items()]
    (mirror / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    evidence = evidence_of(changed, folder)
    assert evidence.other_data(pud) == ""
    assert evidence.other_data(wikiann) == "not known to be the published files: ner/wikiann/panx_dataset.zip"
    found = {claim.id: claim for claim in judge_run(changed, folder)}
    assert found["pud-sentences"].verdict == HOLDS
    assert found["wikiann-test-hi"].verdict == UNCHECKED and found["wikiann-test-hi"].measured == "1,000 sentences"


def test_the_first_screen_counts_what_is_judged_and_the_claims_say_why_not(small, tmp_path):
    config, folder = small
    paths = [path for kind in ("tables", "figures") for path in folder.glob(f"{kind}/*/*.csv")]
    found = write_verdicts(paths, catalog_of(config).items, folder / "verdicts.csv")
    write_claims(judge_run(config, folder), folder / "claims.csv", folder / "claims.json")
    shown = page(gather(config, folder, tmp_path / "index.html"))
    # A few facts about languages are judged; that all of them are right says nothing of a thousand numbers.
    beside = sum(found.values()) - sum(found[label] for label in ABSENT)
    assert f"<b>{beside}</b> of {sum(found.values())} printed numbers have ours beside them" in shown
    assert (
        f"<b>{found[OWN]}</b> {OWN}" in shown
        and f"<b>{found[LEFT_OUT]}</b> left out" in shown
        and f"<b>{len(config['skip'])}</b> left out" in shown
    )
    assert f'<span class="muted small">{OUTSIDE["adjust", "xquad-mlqa"]}</span>' in shown


def test_the_page_says_which_models_have_not_learnt(small, tmp_path):
    config, _ = small
    results = tmp_path / "results"
    for name, stuck in {"scale-post": True, "small": False, "small-2": True, "mono-wo": True}.items():
        write_json(results / "models" / name / "training.json", {"on_plateau": stuck})
    shown = banner(gather(config, results, tmp_path / "index.html"))
    assert "Not learnt: scale-post, small-2." in shown and "What rests on them says nothing" in shown


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


def test_claims_on_models_that_have_not_learnt_are_not_judged(small, claims, tmp_path):
    config, folder = small
    results = tmp_path / "results" / "small"
    for part in ("tables", "figures", "data", "distances"):
        shutil.copytree(folder / part, results / part)
    for name in ("scale-pre", "mono-wo"):
        write_json(results / "models" / name / "training.json", {"on_plateau": True})
    write_json(results / "models/small/training.json", {"on_plateau": False})
    found = {(claim.paper, claim.id): claim for claim in judge_run(config, results)}
    why = "not learnt: scale-pre still on the plateau where word order means nothing"
    changed = {key for key in found if found[key].verdict != claims[key].verdict}
    assert {("anc", "cka-normformer-drop"), ("anc", "anc-deep"), ("anc", "norm-transfer")} <= changed
    assert {paper for paper, _ in changed} == {"anc"}
    for key in changed:
        assert found[key].verdict == UNCHECKED and found[key].detail.startswith(why) and found[key].measured
    # The three sizes do not rest on it, and what was set is known of any model.
    assert found["anc", "scaling-pattern"] == claims["anc", "scaling-pattern"]
    assert not any("plateau" in claim.detail for claim in found.values() if claim.kind == "setting")


def test_the_page_says_which_models_are_its_own(small, root, tmp_path):
    config, folder = small
    shown = banner(gather(config, folder, tmp_path / "index.html"))
    named = sorted(name for name in config["pretrain"]["models"] if name not in ("defaults", "mono-*"))
    assert {"scale-post", "small", "small-2", "small-8x512", "small-causal-4x128"} <= set(named)
    assert ", ".join(named) in shown
    assert "not judged against the papers" in shown
    assert "<code>align-predict</code>: Tweebank for LexNorm" in shown
    assert "&lt;b&gt;" in banner(gather(config | {"replaced": {"talk": ["<b>"]}}, folder, tmp_path / "index.html"))
    assert "Not learnt" not in shown
    # Described, but behind none of the items.
    assert banner(gather(load(root, **TINY), tmp_path, tmp_path / "index.html")) == ""
    assert "Artificial languages" in banner(gather(config | {"world": "w"}, folder, tmp_path / "index.html"))
