"""Models that a config describes, items that it leaves out with a reason, and the config of the small run."""

import copy
import re
from pathlib import Path

import pytest

from crossalign.catalog.addresses import Base
from crossalign.catalog.commands import finetune_options, own_model_options, prepare_options, vocabulary_options
from crossalign.catalog.config import check, load
from crossalign.catalog.sets import DataSet
from crossalign.catalog.trained_models import own_models
from crossalign.papers.all_claims import evidence_of
from crossalign.papers.all_items import ITEMS, catalog_of
from crossalign.plan.jobs import planned
from crossalign.report.gather import gather
from crossalign.report.page import page
from crossalign.results.claims.evidence import Outside
from crossalign.runtime.errors import UserError


@pytest.fixture(scope="module")
def small(root):
    return load([root / "config.small.yaml"])


@pytest.fixture
def changed(small):
    def change(key, value):
        config = copy.deepcopy(small)
        *folders, last = key.split(".")
        place = config
        for name in folders:
            place = place[name]
        place[last] = value
        return config

    return change


def test_entries_take_the_defaults(small):
    models = own_models(small)
    assert "defaults" not in models
    assert models["small"]["hidden"] == 384
    assert (models["scale-pre"]["norm"], models["scale-pre"]["layers"]) == ("pre", 12)
    assert own_models({}) == {}


def test_nothing_is_fetched_that_is_made_here(small):
    catalog = catalog_of(small)
    assert catalog.models() == []
    assert catalog.vocabularies() == ["small", "small-causal", "small-roberta"]
    texts = {data.name for data in catalog.sets_of(Base("scale-pre")) if data.split == "dev"}
    assert texts == {"mix_en", "mix_fr", "mix_et", "mix_ar"}


def test_options(small):
    masked = own_model_options(small, "scale-normformer-v2")
    assert "--objective mlm --norm normformer" in masked and "--exponent 0.0" in masked and "--seed 2" in masked
    assert "--norm" not in own_model_options(small, "small-causal-4x128")
    assert "--exponent 0.0 --eps 1e-06 --dropout 0.0 --tuning-dropout 0.1" in masked
    assert vocabulary_options(small, "small-causal") == "--size 30000 --style xglm --most-lines 60000"
    # What is compared is not learnt, and pairs have a form of their own.
    assert "--skip-rows 4000" in prepare_options(small, DataSet("text", "mix_fr", "train"))
    assert prepare_options(small, DataSet("bitext", "mix_ru", "pool")).startswith("--format mix --lang ru")
    tuned = (run for run in catalog_of(small).runs() if getattr(run, "preset", "") == "adjust-nli")
    run = next(run for run in tuned if run.init == "ref")
    assert finetune_options(small, run).endswith("--examples 50000")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("own_models.small", {"vocabulary": "large"}, "own_models.small.vocabulary: 'large' is not among"),
        ("own_models.small", {"heads": 5}, "384 neurons cannot be shared among 5 heads"),
        ("own_models.small", {"languages": ["xx"]}, "own_models.small.languages: unknown language 'xx'"),
        ("own_models.small", {"width": 3}, "own_models.small: unknown key 'width'"),
        ("own_models.mono-wo", {}, "names that begin with mono- belong"),
        ("own_models.defaults", {"layers": 12}, "own_models.small: 'vocabulary' is given neither here nor in"),
        ("own_vocabularies.small", {"style": "gpt"}, "own_vocabularies.small.style"),
        ("own_models", {}, "align-predict.base: unknown model 'small'"),
        ("align-predict.layer_pairs", ["13-14"], "small has the layers 1 to 12"),
        ("skip", {"talk/figure9": "why"}, "skip: unknown item 'talk/figure9'"),
        ("skip", {"talk/figure4": ""}, "skip.talk/figure4"),
        ("replaced", {"walk": ["Faroese"]}, "replaced"),
        ("replaced", {"talk": []}, "replaced.talk"),
        ("items", ["talk/figure4"], "skip: 'talk/figure4' stands among items too"),
        ("adjust.qa", [], "adjust.qa"),
        ("adjust.bitext", "europarl", "adjust.bitext"),
    ],
)
def test_mistakes_are_told(changed, key, value, message):
    with pytest.raises(UserError) as told:
        check(changed(key, value))
    assert message in str(told.value)


def test_every_item_is_made_or_says_why_not(small):
    made = set(catalog_of(small).items)
    assert made | set(small["skip"]) == set(ITEMS)
    assert not made & set(small["skip"])
    assert len(made) == 42


def test_the_small_run_stays_small(small):
    """What 90 minutes of one H200 allow: some 430 fine-tunings, each on some thousand sentences."""
    catalog = catalog_of(small)
    tuned = [run for run in catalog.runs() if run.path().startswith("tuned/")]
    assert 400 < len(tuned) < 450
    tokens = {name: one["steps"] * one["batch"] * one["block"] for name, one in own_models(small).items()}
    assert sum(tokens.values()) < 2e9
    jobs = planned(catalog, ["data"]).jobs
    # The data stage waits for no GPU: links of word pieces need the vocabulary, not the model.
    assert all(job.gpus == 0 for job in jobs.values())
    assert {job.rule for job in jobs.values()} >= {"align_pieces", "train_own_vocabulary"}


def test_what_is_left_out_says_why(small, root, tmp_path):
    with pytest.raises(Outside, match="adjust/table9 is not part of this run: no small model"):
        evidence_of(small, tmp_path).rows("adjust/table9")
    report = gather(small, tmp_path, tmp_path / "report" / "index.html")
    shown = dict(re.findall(r'<article[^>]* data-item="([^"]+)"[^>]*>(.*?)</article>', page(report), re.DOTALL))
    assert "Not part of this run: no small model with a vocabulary" in shown["adjust/table9"]
    assert "snakemake" not in shown["adjust/table9"]
    assert "--profile profiles/small" in shown["adjust/table2"]
    assert "Not made yet" in shown["adjust/table2"]


def test_docs_tell_every_item_that_is_left_out(small, root):
    told = (root / "docs" / "small-run" / "README.md").read_text(encoding="utf-8")
    for item in small["skip"]:
        paper, _, name = item.partition("/")
        assert f"`{paper}` {name.replace('table', 'table ').replace('figure', 'figure ')}" in told, item


def test_profile_and_config_belong_together(root):
    assert "configfile: config.small.yaml" in Path(root / "profiles/small/config.yaml").read_text(encoding="utf-8")
