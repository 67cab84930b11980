"""The catalog holds every run of the papers, once, and nothing else."""

from collections import Counter

import pytest
import yaml
from made_results import WHOLE_TALK, load

from crossalign.analysis.indexes import ANC, CCA, CKA
from crossalign.catalog.addresses import Adapted, Adjustment, Base, Mlm, Tuned, format_rate, model_of, parse
from crossalign.catalog.prepared import prepare_settings
from crossalign.catalog.runs import count, kind_of
from crossalign.catalog.sets import DataSet
from crossalign.catalog.sheets import Sheets
from crossalign.catalog.targets import KINDS, evaluation_sets, training_sets
from crossalign.fetch.register import read_datasets, read_models
from crossalign.papers import all_of, make
from crossalign.papers.align_predict.correlation import similarity_targets
from crossalign.papers.all_items import ITEMS, PAPERS, catalog_of
from crossalign.papers.common.context import Context
from crossalign.results.reading import Curve, Results
from crossalign.runtime.errors import UserError


@pytest.fixture(scope="module")
def config(root):
    return yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8"))


def runs_of(config, *papers):
    catalog = catalog_of(config)
    return catalog.runs([item for item in catalog.items if item.partition("/")[0] in papers])


def test_there_are_48_items(config):
    # Those of the papers; people may add their own.
    counts = {"align-predict": 16, "anc": 11, "adjust": 11, "talk": 10}
    assert sum(counts.values()) == 48
    assert all(len(PAPERS[paper]) >= count for paper, count in counts.items())
    assert list(catalog_of(config).items) == list(ITEMS)


def test_runs_of_each_paper_and_of_all_after_sharing(config):
    # papers/INVENTORY: runs of each document with sharing; the talk's are those that align-predict has not.
    runs = {paper: runs_of(config, paper) for paper in ("align-predict", "anc", "adjust")}
    assert {paper: count(found)["fine-tuning"] for paper, found in runs.items()} == {
        "align-predict": 535, "anc": 3, "adjust": 420
    }  # fmt: skip
    assert count(runs["adjust"])["adjustment"] == 80
    for init in ("continual", "continual-both"):
        assert sum(isinstance(run, Tuned) and run.init == init for run in runs["adjust"]) == 60
    trials = Counter(run.task for run in runs["align-predict"] if kind_of(run) == "grid trial")
    assert trials == {"parsing": 60, "ner": 60, "pos": 180}
    assert count(catalog_of(config).runs())["fine-tuning"] == 1073


def test_finetunings_per_item(config):
    expected = {"align-predict/table1": 315, "align-predict/table2": 105, "align-predict/table4": 15}
    expected |= {"align-predict/table5": 195, "align-predict/figure4": 5, "align-predict/figure6": 35}
    expected |= {"adjust/table2": 65, "adjust/table5": 90, "adjust/table6": 75, "adjust/table7": 75}
    expected |= {"adjust/table8": 55, "adjust/table9": 45, "adjust/figure1": 3, "adjust/figure2": 27}
    expected |= {"talk/figure2": 100, "talk/figure3": 35, "anc/table1": 3, "anc/figure8": 1, "anc/figure5": 0}
    catalog = catalog_of(config)
    assert {item: count(catalog.needs(item).runs)["fine-tuning"] for item in expected} == expected


def test_what_a_change_of_the_config_adds(config):
    ref = Tuned("mbert", "parsing", "en_ewt", "ref", 1)
    old = catalog_of(config)
    assert sum(ref in old.needs(item).runs for item in ITEMS) >= 6
    # One more seed adds runs and changes none; one more language adds no training.
    new = catalog_of(config | {"seeds": [*config["seeds"], 6]})
    assert old.runs() < new.runs()
    assert {run.seed for run in new.runs() - old.runs()} == {6}
    paper = config["align-predict"]
    wider = catalog_of(config | {"align-predict": paper | {"languages": [*paper["languages"], "vi"]}})
    assert wider.runs() == old.runs()
    assert wider.sets() > old.sets()


def test_adjust_may_have_fewer_seeds(config):
    fewer = config | {"adjust": config["adjust"] | {"seeds": [2, 3]}}
    old, new = (catalog_of(one) for one in (config, fewer))
    adjusted = [run for run in new.runs() if getattr(run, "preset", "").startswith("adjust-")]
    assert {run.seed for run in adjusted} == {2, 3}
    assert new.runs(["align-predict/table1"]) == old.runs(["align-predict/table1"])
    assert count(new.needs("adjust/table8").runs)["fine-tuning"] == 22
    # The histograms and the word pairs, which are none of those adjusted on, go by the first seed of these.
    assert {run.seed for run in new.needs("adjust/figure2").runs if hasattr(run, "seed")} == {2}
    for catalog, seed in ((old, 1), (new, 2)):
        words = (row for address, row in Sheets(catalog).rows.items() if "/words/" in address)
        assert {row["settings"]["skip_seeds"] for row in words} == {seed}


def test_training_sets_of_ner_are_whole_where_test_sets_are_not(config):
    fewer = config | {"ner_sentences": 2000}
    for split, told in (("train", False), ("dev", True), ("test", True)):
        settings = prepare_settings(fewer, DataSet("ner", "wikiann_de", split))
        assert settings.get("max_sentences") == (2000 if told else None)
    assert "max_sentences" not in prepare_settings(config, DataSet("ner", "wikiann_de", "test"))


def test_every_download_is_registered(config, root):
    for norm_models in ("public", "pretrain"):
        chosen = {"talk": config["talk"] | WHOLE_TALK, "anc": config["anc"] | {"norm_models": norm_models}}
        catalog = catalog_of(config | chosen)
        assert not set(catalog.files()) - set(read_datasets(root / "resources" / "datasets.tsv"))
        assert not set(catalog.models()) - set(read_models(root / "resources" / "models.tsv"))


def test_evaluation_sets_of_the_main_models(config):
    parsing = evaluation_sets(config, Tuned("mbert", "parsing", "en_ewt", "ref", 1))
    names = {data.name for data in parsing}
    assert {"en_pud", "sv_pud", "sl_ssj", "fr_gsd", "en_ewt"} <= names
    assert DataSet("trees", "en_ewt", "dev") in parsing
    adjusted = evaluation_sets(config, Tuned("mbert+adjust-hi-30k-avg-all", "adjust-qa", "squad_en", "ref", 1))
    assert {data.name for data in adjusted} == {
        *("squad_en", "xquad_hi", "xquad_hi_en", "xquad_en_hi", "mlqa_hi", "mlqa_hi_en", "mlqa_en_hi")
    }


@pytest.mark.parametrize("further", [[], ["config/demo.yaml"], ["config/study.yaml"], ["config/rehearsal.yaml"]])
def test_models_are_tested_on_sets_of_their_task(root, further):
    """Also where two tasks learn from sources of one name, such as the mixtures of a study."""
    config = load(root, "config.yaml", *further)
    tuned = [run for run in catalog_of(config).runs() if isinstance(run, Tuned)]
    assert tuned
    for run in tuned:
        assert {data.kind for data in evaluation_sets(config, run)} == {KINDS[run.task]}, run


def test_an_adjusted_run_starts_from_the_adjustment_of_its_seed():
    tuned = Tuned("mbert+adjust-hi-30k-avg-all", "adjust-nli", "multinli_en", "continual", 3)
    assert model_of(tuned) == Adapted("mbert", Adjustment("hi", "30k", "avg", "all"), 3)
    assert model_of(Tuned("mbert+mlm-wo", "unseen-pos", "wo_wtb", "ref", 3)) == Adapted("mbert", Mlm("wo"), 1)


def test_every_run_of_the_papers_round_trips_and_has_data(config):
    for run in catalog_of(config | {"talk": config["talk"] | WHOLE_TALK}).runs():
        assert parse(run.path()) == run
        if isinstance(run, Tuned):
            assert evaluation_sets(config, run) and "train" in training_sets(config, run), run


@pytest.mark.parametrize(
    "path",
    [
        *("", "models", "tuned/mbert/parsing-en_ewt/ref", "models/mbert+x/seed1", "../x"),
        "tuned/mbert/chess-en_ewt/ref/seed1",
    ],
)
def test_what_is_no_address_is_refused(path):
    with pytest.raises(UserError, match="no run address|no adaptation"):
        parse(path)


def test_rates_in_addresses():
    assert [format_rate(rate) for rate in (1e-5, 2.5e-5, 1e-10)] == ["1e-5", "2.5e-5", "1e-10"]


def test_items_can_be_chosen(config):
    chosen = catalog_of(config | {"items": ["anc/figure5"]})
    assert list(chosen.items) == ["anc/figure5"]
    assert chosen.models() == ["xlmr-base", "xlmr-large", "xlmr-xl", "xlmr-xxl"]
    assert {data.split for data in chosen.sets()} == {"en", "fr", "de", "ru", "et"}


@pytest.mark.parametrize(
    ("run", "corpus", "indexes", "languages"),
    [
        *((Base(name), "xnliext", ANC, "de en et fr ru") for name in ("xlmr-xxl", "xglm-7.5b")),
        (Base("xlmr-base"), "xnliext", ANC, "de en et fr lt lv pl ru"),
        (Base("scale-pre"), "xnliext", (*CKA, *ANC), "bg en et fr"),
        (Base("scale-normformer"), "xnliext", (*CKA, *ANC, *CCA, "matching"), "bg en et fr"),
        (Tuned("scale-normformer", "anc-nli", "multinli_en", "ref", 1), "xnliext", (*CKA, *ANC), "bg en et fr"),
        (Tuned("mbert", "parsing", "en_ewt", "random-1-2", 1), "pud", (*CKA, "cka-rbf"), "ar de en fr id ru tr"),
        (Tuned("mbert", "parsing", "en_ewt", "random-1-2", 1), "xnliext", (), "en"),
    ],
)
def test_no_model_is_compared_more_than_some_item_wants(config, run, corpus, indexes, languages):
    catalog = catalog_of(config)
    assert catalog.indexes(run, corpus) == list(indexes)
    assert catalog.languages(run, corpus) == languages.split()
    chosen = catalog_of(config | {"similarity": config["similarity"] | {"index": "anc"}})
    assert ("anc" in chosen.indexes(run, corpus)) == ("anc" in indexes or corpus == "pud")


def test_whatever_is_drawn_is_wanted(root, tmp_path):
    config = load(root)
    catalog = catalog_of(config)
    asked = set()

    class Asked(Results):
        def curve(self, runs, corpus, pairs, index, control="none"):
            asked.update((run, corpus, pair, index) for run in runs for pair in pairs)
            return Curve()

        def similarity(self, run, corpus):
            # The correlations look at every language with parallel sentences.
            pairs = [f"en-{lang}" for lang in similarity_targets(context.config, "pos")]
            asked.update((run, corpus, pair, config["similarity"]["index"]) for pair in pairs)
            return {}

    context = Context(config, Asked(tmp_path))
    for item in all_of("figures"):
        make(item, context)
    make("align-predict/table4", context)
    assert len(asked) > 300
    for run, corpus, pair, index in asked:
        assert index in catalog.indexes(run, corpus), (run, corpus, index)
        assert pair.removeprefix("en-") in catalog.languages(run, corpus), (run, corpus, pair)
