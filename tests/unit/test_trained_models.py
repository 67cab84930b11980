"""Models and vocabularies that a config describes, items that it leaves out with a reason, and one run of them."""

import copy

import pytest
from tests.unit.pretrained import pretrained_run

from crossalign.catalog.addresses import Base
from crossalign.catalog.config import check, load
from crossalign.catalog.prepared import prepare_settings
from crossalign.catalog.sets import DataSet
from crossalign.catalog.sheets import Sheets
from crossalign.catalog.trained_models import stand_ins, texts_of, trained_model, trained_models, trained_vocabulary
from crossalign.catalog.trainings import finetune_settings, pretrain_settings, vocabulary_settings
from crossalign.papers.all_items import ITEMS, catalog_of
from crossalign.runtime.errors import UserError


@pytest.fixture(scope="module")
def small(root):
    return pretrained_run(root)


def test_entries_take_the_defaults(small):
    models = trained_models(small)
    assert not {"defaults", "mono-*"} & models.keys()
    assert (models["small"]["hidden"], models["scale-pre"]["norm"], models["scale-pre"]["layers"]) == (768, "pre", 12)
    assert stand_ins(small) == models.keys()
    assert trained_models({}) == {}


def test_models_of_one_language_and_of_the_papers(root):
    paper = load([])
    assert trained_models(paper) == {} and trained_model(paper, "scale-post") is None
    mono = trained_model(paper, "mono-ug.latn")
    assert (mono["vocabulary"], mono["epochs"], mono["hidden"]) == ("mono-ug.latn", 20, 768)
    assert texts_of(mono, "dev") == [DataSet("text", "wikipedia_ug+latn", "dev")]
    assert texts_of(trained_vocabulary(paper, "mono-qaf")) == [DataSet("text", "narabizi_qaf", "train")]
    paper["anc"]["norm_models"] = "pretrain"
    # Trained as the paper says, its numbers are judged.
    assert "scale-post" in trained_models(paper) and stand_ins(paper) == set()
    assert {run.name for run in catalog_of(paper).runs(["anc/figure4"])} >= {"scale-post", "xlmr-base"}
    assert trained_vocabulary(paper, "xlmr-base") is None


def test_models_of_one_language_have_stages(small):
    first, last = (trained_model(small, name) for name in ("mono-ug.latn.stage1", "mono-ug.latn"))
    assert (first["block"], last["block"], last["init"]) == (32, 128, "mono-ug.latn.stage1")
    for entry in (first, last):
        assert (entry["vocabulary"], texts_of(entry)) == ("mono-ug.latn", [DataSet("text", "open_ug+latn", "train")])
    assert pretrain_settings(small, "mono-wo.stage1")["dropout"] == 0
    rows = Sheets(catalog_of(small)).rows
    assert "vocabulary" in rows["models/mono-wo.stage1"] and "vocabulary" not in rows["models/mono-wo"]
    assert rows["models/mono-wo"]["original"][0] == "results/small/models/mono-wo.stage1/model.safetensors"


def test_nothing_is_fetched_that_is_made_here(small):
    catalog = catalog_of(small)
    assert catalog.models() == []
    assert catalog.vocabularies() == ["small", "small-causal", "small-roberta"]
    texts = {data.name for data in catalog.sets_of(Base("scale-pre")) if data.split == "dev"}
    assert texts == {"cc100_en", "cc100_fr", "cc100_et", "cc100_ar"}


def test_settings(small):
    masked = pretrain_settings(small, "scale-normformer-v2.stage1")
    told = {"objective": "mlm", "norm": "normformer", "residual_scaling": True, "exponent": 0.0, "seed": 2}
    told |= {"dropout": 0.0, "epsilon": 1e-12, "block": 32, "tuning_dropout": 0.1}
    assert masked.items() >= told.items() and "attention_dropout" not in masked
    causal = pretrain_settings(small, "small-causal-4x128")
    assert not {"norm", "residual_scaling"} & causal.keys()
    assert "residual_scaling" not in pretrain_settings(small, "scale-pre")
    changed = copy.deepcopy(small)
    changed["pretrain"]["models"]["small"]["attention_dropout"] = 0.0
    assert pretrain_settings(changed, "small")["attention_dropout"] == 0
    assert vocabulary_settings(small, "small-causal") == {"size": 50000, "style": "xglm", "lines": 60000}
    # Pairs have a form of their own.
    pairs = prepare_settings(small, DataSet("bitext", "mix_ru", "pool"))
    assert (pairs["format"], pairs["lang"]) == ("mix", "ru")
    tuned = (run for run in catalog_of(small).runs() if getattr(run, "preset", "") == "adjust-nli")
    run = next(run for run in tuned if run.init == "ref")
    assert finetune_settings(small, run)["examples"] == small["finetune"]["adjust-nli"]["examples"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("pretrain.models.small.vocabulary", "large", "pretrain.models.small.vocabulary: 'large' is not among"),
        ("pretrain.models.small.heads", 5, "768 neurons cannot be shared among 5 heads"),
        ("pretrain.models.small.languages", ["xx"], "pretrain.models.small.languages: unknown language 'xx'"),
        ("pretrain.models.small.width", 3, "pretrain.models.small: unknown key 'width'"),
        ("pretrain.models.mono-wo", {}, "names that begin with mono- belong"),
        ("pretrain.models.defaults", {"norm": "post"}, "pretrain.models.small: 'layers' is given neither here nor in"),
        ("pretrain.vocabularies.small.style", "gpt", "pretrain.vocabularies.small.style: 'gpt'"),
        ("pretrain.models", {}, "align-predict.base: unknown model 'small'"),
        ("anc.schemes", ["small", "scale-new"], "'scale-new' cannot be pretrained, as it is not among pretrain.models"),
        ("align-predict.layer_pairs", ["13-14"], "small has the layers 1 to 12"),
        ("models", "some/folder", "a model of this name lies in the folder of `models` already"),
        ("items", ["talk/figure4"], "skip: 'talk/figure4' stands among items too"),
    ],
)
def test_mistakes_are_told(small, key, value, message):
    config = copy.deepcopy(small)
    if key == "models":
        config["pretrain"]["models"]["mbert"] = config["pretrain"]["models"]["small"]
    *folders, last = key.split(".")
    place = config
    for name in folders:
        place = place[name]
    place[last] = value
    with pytest.raises(UserError) as told:
        check(config)
        catalog_of(config)
    assert message in str(told.value)


def test_every_item_is_made_or_says_why_not(small, tmp_path):
    made = set(catalog_of(small).items)
    papers = {item for item in ITEMS if item.partition("/")[0] in small["papers"]}
    assert made | set(small["skip"]) == papers and not made & set(small["skip"]) and len(made) == 43
