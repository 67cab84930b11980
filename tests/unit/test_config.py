"""A wrong config is refused before any job starts, and the message says what to write instead."""

import copy

import pytest
import yaml
from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from crossalign.catalog.config import check
from crossalign.runtime.errors import UserError


@pytest.fixture(scope="module")
def config(root):
    return yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8"))


DELETE = object()

# (key, value, words that the message must hold)
BAD = [
    ("sedes", [1], ["unknown key 'sedes'", "did you mean 'seeds'"]),
    ("run", "", ["run", "folder name"]),
    ("run", "../away", ["run", "'../away'"]),
    ("run", "a b; rm -rf x", ["run", "folder name"]),
    ("papers", [], ["papers"]),
    ("papers", ["align_predict"], ["papers[0]", "align-predict, anc, adjust, talk"]),
    ("items", ["align-predict/table9"], ["unknown item 'align-predict/table9'", "did you mean"]),
    ("items", [], ["items"]),
    ("items", "some", ["items", "'some'", "`all`, or a list"]),
    ("seeds", [], ["seeds", "at least one"]),
    ("seeds", [0], ["seeds[0]", "0"]),
    ("seeds", [1, 1], ["seeds"]),
    ("seeds", ["one"], ["seeds[0]", "'one'"]),
    ("seeds", 5, ["seeds", "5 is not allowed", "a list of whole numbers"]),
    ("downloads.mirror", "ftp://host", ["downloads.mirror", "ftp://host", "https:// or file://"]),
    ("downloads.mirror_checksums", "mirror", ["downloads.mirror_checksums", "downloads.mirror"]),
    ("downloads.offline", "yes", ["downloads.offline", "'yes'"]),
    ("downloads.attempts", 0, ["downloads.attempts", "1 to 20"]),
    ("downloads.folder", DELETE, ["downloads", "'folder' is missing"]),
    ("align-predict.languages", ["en", "ru", "ar", "xx"], ["unknown language 'xx'", "known are"]),
    ("align-predict.languages", ["English"], ["align-predict.languages[0]", "language code"]),
    ("align-predict.sources", ["en", "vi"], ["'vi' is not among align-predict.languages", "no treebank"]),
    ("align-predict.layer_pairs", ["12-13"], ["layer_pairs[0]", "'12-13' is impossible", "layers 1 to 12"]),
    ("align-predict.layer_sets", ["0"], ["layer_sets[0]", "layers 1 to 12"]),
    ("align-predict.layer_sets", ["4-1"], ["runs backwards"]),
    ("align-predict.layer_pairs", ["first"], ["layer_pairs[0]", '"1-2"']),
    ("align-predict.base", "mbret", ["align-predict.base", "unknown model 'mbret'", "mbert"]),
    ("align-predict.treebanks", {"en": "EWT"}, ["align-predict.treebanks.en", "'EWT'", "en_ewt"]),
    ("align-predict.grid.learning_rate", [0], ["learning_rate[0]", "above 0"]),
    ("anc.norm_models", "both", ["anc.norm_models", "public, pretrain"]),
    ("anc.xglm", ["xglm-9b"], ["anc.xglm", "unknown model 'xglm-9b'"]),
    ("anc.sentences", 20000, ["anc.sentences", "15001"]),
    ("adjust.aggregation", "mean", ["adjust.aggregation", "start, end, avg, subword"]),
    ("adjust.pool", 1000, ["adjust.pool", "250000"]),
    ("adjust.sizes.lang", "fr", ["adjust.sizes.lang", "'fr'"]),
    ("adjust.pairs", "30K", ["adjust.pairs", "30k"]),
    ("pretraining.residual_scaling", "on", ["pretraining.residual_scaling", "'on'", "ResScale"]),
    ("pretraining.attention_dropout", 1, ["pretraining.attention_dropout", "null: as dropout"]),
    ("mlm.epsilon", 0, ["mlm.epsilon", "above 0"]),
    ("mlm.monolingual.epsilon", DELETE, ["mlm.monolingual", "'epsilon' is missing"]),
    ("talk.scope", "all", ["talk.scope", "slides, full"]),
    ("talk.transliterated", {"en": ["ner"]}, ["talk.transliterated", "'en'"]),
    ("talk.folded", ["en_ewt"], ["talk.folded", "'en_ewt'"]),
    ("talk.profile_languages", ["sd"], ["talk.treebanks", "'sd'"]),
    ("aligner.program", "giza", ["aligner.program", "builtin, fast_align, eflomal"]),
    ("finetune.pos.learning_rate", -5e-5, ["finetune.pos.learning_rate", "-5e-05", "above 0"]),
    ("finetune.pos.learning_rate", "5e-5", ["finetune.pos.learning_rate", "'5e-5'", "5.0e-5"]),
    ("finetune.pos.batch", 0, ["finetune.pos.batch", "whole number"]),
    ("finetune.pos.batch", 16.5, ["finetune.pos.batch", "16.5"]),
    ("finetune.pos.epochs", DELETE, ["finetune.pos", "'epochs'"]),
    ("finetune.adjust-qa.max_length", 4, ["finetune.adjust-qa.max_length", "at least 8"]),
    ("finetune.adjust-nli.patience", 3, ["finetune.adjust-nli.patience", "selection: best"]),
    ("finetune.defaults.warmup", 10, ["finetune.defaults.warmup", "0 to 1"]),
    ("finetune.chess", {"batch": 1}, ["unknown key 'chess'"]),
    ("adjustment.betas", [0.9], ["adjustment.betas", "two"]),
    ("mlm.masking", 1, ["mlm.masking", "1"]),
    ("similarity.index", "cca", ["similarity.index", "cka"]),
    ("similarity.control", "strangers", ["similarity.control", "length", "none"]),
]


def changed(config, key, value):
    config = copy.deepcopy(config)
    place = config
    *parents, last = key.split(".")
    for parent in parents:
        place = place[parent]
    if value is DELETE:
        del place[last]
    else:
        place[last] = value
    return config


def test_the_paper_config_is_good(config):
    check(config)


@pytest.mark.parametrize("name", ["config.demo.yaml"])
def test_the_other_configs_are_good_merged_over_it(config, root, name):
    merged = copy.deepcopy(config)
    update_config(merged, load_configfile(root / name))
    check(merged)


@pytest.mark.parametrize(("key", "value", "words"), BAD, ids=[f"{key}-{index}" for index, (key, *_) in enumerate(BAD)])
def test_bad_configs_are_refused(config, key, value, words):
    with pytest.raises(UserError) as caught:
        check(changed(config, key, value))
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert key.split(".")[0] in message


def test_all_errors_are_told_at_once(config):
    wrong = changed(changed(config, "seeds", []), "talk.scope", "none")
    with pytest.raises(UserError) as caught:
        check(wrong)
    assert "seeds" in str(caught.value)
    assert "talk.scope" in str(caught.value)


def test_every_key_of_the_schema_is_described(root):
    schema = yaml.safe_load((root / "resources" / "schemas" / "config.schema.yaml").read_text(encoding="utf-8"))

    def described(node, place):
        if "$ref" in node:
            return
        assert place == "" or "description" in node, f"{place} has no description"
        for name, child in node.get("properties", {}).items():
            described(child, f"{place}.{name}")

    described(schema, "")
    for name, definition in schema["$defs"].items():
        assert "description" in definition, name
