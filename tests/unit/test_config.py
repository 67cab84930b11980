"""A wrong config is refused before any job starts, and told how to be right. Its page and its schema are up to date."""

import copy
import re
import runpy

import pytest

from crossalign.catalog.config import check, load
from crossalign.catalog.layers import bases, merge
from crossalign.catalog.settings import json_schema
from crossalign.papers.all_items import catalog_of
from crossalign.runtime.errors import UserError

DELETE = object()

# (key, value, words that the message must hold). Of each kind of value one, and all that no kind of value can say.
BAD = [
    ("sedes", [1], ["unknown key 'sedes'", "did you mean 'seeds'"]),
    ("align-predict.search_per_init", {"rate": [1e-3]}, ["search_per_init: unknown key 'rate'", "allowed are batch"]),
    ("downloads.folder", DELETE, ["downloads: the key 'folder' is missing"]),
    ("run", "", ["run: '' is not allowed; expected a folder name below results/ (name of the run"]),
    ("papers", [], ["papers: [] is not allowed", "at least one (the papers to reproduce)"]),
    ("papers", ["align_predict"], ["papers[0]", "one of align-predict, anc, adjust, talk"]),
    ("items", "some", ["items: 'some'", "`all`, or a list"]),
    ("seeds", 5, ["seeds: 5 is not allowed", "a list of whole numbers"]),
    ("adjust.tasks", ["qa", "qa"], ["adjust.tasks", "each only once"]),
    ("downloads.mirror", "ftp://host", ["downloads.mirror: 'ftp://host'", "https:// or file://", "or null"]),
    ("downloads.offline", "yes", ["downloads.offline: 'yes' is not allowed; expected true or false"]),
    ("align-predict.treebanks", {"en": "EWT"}, ["align-predict.treebanks.en: 'EWT'", "en_ewt"]),
    ("align-predict.treebanks", {"EN": "en_ewt"}, ["align-predict.treebanks: 'EN' is not allowed as a key"]),
    ("skip", {"talk/figure4": ""}, ["skip.talk/figure4: ''", "the reason"]),
    ("finetune.pos.learning_rate", "5e-5", ["finetune.pos.learning_rate: '5e-5'", "write 5.0e-5"]),
    ("finetune.pos.batch", 16.5, ["finetune.pos.batch: 16.5", "a whole number from 1 (examples per step)"]),
    ("adjustment", {}, ["the key 'adjustment' is called 'pull' now"]),
    ("pull.betas", [0.9, 1], ["pull.betas[1]: 1", "below 1"]),
    ("pretrain.models.scale-post.residual_scaling", "on", ["scale-post.residual_scaling: 'on'", "ResScale"]),
    ("pretrain.models.scale-post.attention_dropout", 1, ["attention_dropout: 1", "or null", "null: as dropout"]),
    ("pretrain.models.Big", {}, ["pretrain.models: 'Big' is not allowed as a key; expected mono-*, or a name of the"]),
    ("align-predict.lacking.sources", {"qa": ["en"]}, ["'qa' is not allowed as a key; expected 'parsing', 'pos' or"]),
    # What the keys alone do not show.
    ("items", ["align-predict/table9"], ["items[0]: unknown item 'align-predict/table9'", "did you mean"]),
    ("skip", {"talk/figure9": "why"}, ["skip: unknown item 'talk/figure9'"]),
    ("downloads.mirror_checksums", "mirror", ["downloads.mirror_checksums", "downloads.mirror"]),
    ("align-predict.languages", ["en", "ru", "ar", "xx"], ["unknown language 'xx'", "known are"]),
    ("align-predict.sources", ["en", "vi"], ["'vi' is not among align-predict.languages", "no treebank"]),
    ("align-predict.layer_pairs", ["12-13"], ["layer_pairs[0]", "'12-13' is impossible", "layers 1 to 12"]),
    ("align-predict.layer_sets", ["4-1"], ["runs backwards"]),
    ("align-predict.search_per_init", {}, ["search_per_init: {} names no values to try"]),
    ("align-predict.base", "mbret", ["align-predict.base", "unknown model 'mbret'", "mbert"]),
    ("adjust.base", ["mbert", "xlmr-base"], ["adjust.base: mbert, xlmr-base take turns and must have the same"]),
    ("adjust.pool", 1000, ["adjust.pool", "250000"]),
    ("adjust.sizes.lang", "fr", ["adjust.sizes.lang", "'fr'"]),
    ("talk.folded", ["en_ewt"], ["talk.folded", "'en_ewt'"]),
    ("talk.treebanks", {"wo": "wo_wtb"}, ["talk.treebanks", "'gsw'"]),
    ("finetune.pos.epochs", DELETE, ["finetune.pos: 'epochs' is given neither here nor in finetune.defaults"]),
    ("finetune.adjust-nli.patience", 3, ["finetune.adjust-nli.patience", "selection: best"]),
    ("finetune.chess", {"batch": 1}, ["finetune: unknown key 'chess'", "a name is a task (parsing, pos"]),
    # What cannot be quoted away.
    ("run", "demo\n", ["run: 'demo\\n' has a line break"]),
    ("align-predict.treebanks", {"en\n": "en_ewt"}, ["has a line break"]),
    ("downloads.folder", "a\0b", ["has a line break or another control character"]),
    ("downloads.folder", "down{loads}", ["downloads.folder: 'down{loads}'", "a path without braces"]),
    ("downloads.lock", "--offline", ["does not begin with - or ~"]),
]


@pytest.fixture(scope="module")
def config():
    return load([])


def changed(config, key, value):
    config = copy.deepcopy(config)
    *parents, last = key.split(".")
    place = config
    for parent in parents:
        place = place[parent]
    if value is DELETE:
        del place[last]
    else:
        place[last] = value
    return config


@pytest.mark.parametrize(("key", "value", "words"), BAD, ids=[f"{key}-{index}" for index, (key, *_) in enumerate(BAD)])
def test_bad_configs_are_refused(config, key, value, words):
    with pytest.raises(UserError) as caught:
        check(changed(config, key, value))
        catalog_of(changed(config, key, value))
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert key.split(".")[0] in message


def test_all_errors_are_told_at_once(config):
    with pytest.raises(UserError, match=r"(?s)seeds: \[\].*talk.ner: 'none'"):
        check(changed(changed(config, "seeds", []), "talk.ner", "none"))


@pytest.mark.parametrize("name", ["config/demo.yaml", "config/study.yaml"])
def test_the_other_configs_are_good_merged_over_it(config, root, name):
    assert load([root / name])["run"] != config["run"]


def test_a_config_is_laid_over_what_it_extends(root, tmp_path):
    files = {"mine": "extends: base.yaml\nseeds: [7]\n", "base": "extends: demo\nanc: {sentences: 5}\nseeds: [8]\n"}
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    mine, demo = tmp_path / "mine.yaml", load([root / "config/demo.yaml"])
    assert load([mine]) == demo | {"seeds": [7], "anc": demo["anc"] | {"sentences": 5}}
    assert bases([root / "config/demo.yaml", mine]) == [tmp_path / "base.yaml"]
    assert load([mine, root / "config/demo.yaml"])["seeds"] == demo["seeds"]  # as with Snakemake the last one counts


def test_configs_of_the_project_by_their_old_names_are_told_the_new_ones(root, tmp_path):
    with pytest.raises(UserError, match=r"config\.demo\.yaml: this config is .*config/demo\.yaml now$"):
        load([root / "config.demo.yaml"])
    (tmp_path / "mine.yaml").write_text(f"extends: {root}/config.study.yaml\n")
    with pytest.raises(UserError, match=r"config/study\.yaml now$"):
        load([tmp_path / "mine.yaml"])


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("domo", "a.yaml: extends 'domo', which is no file beside it and none of paper, demo"),
        ("b.yaml", "b.yaml: 'extends' leads in a circle: a.yaml -> b.yaml -> a.yaml"),
    ],
)
def test_what_cannot_be_extended_is_told(tmp_path, told, words):
    (tmp_path / "a.yaml").write_text(f"extends: {told}\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\n")
    with pytest.raises(UserError) as error:
        load([tmp_path / "a.yaml"])
    assert words in str(error.value) and "\n" not in str(error.value)


def test_other_values_that_are_good(config):
    merged = copy.deepcopy(config)
    merge(merged, {"finetune": {"anc-qa": {"batch": 8, "learning_rate": 1, "epochs": 1, "clip": 0}}})
    merge(merged, {"align-predict": {"search_per_init": {"batch": [8]}}, "downloads": {"mirror": "file:///é $x;"}})
    check(merged)


@pytest.mark.parametrize(
    ("family", "task", "languages", "taken"),
    [
        ("ewt", "pos", {"wo": "wol", "en": "eng"}, "en_ewt"),
        ("mix", "nli", ["wo", "en"], "mix_en"),
        ("conll2003", "ner", ["de"], "conll2003_de"),
        ("pud", "pos", ["wo"], ""),
        ("pud", "ner", ["de"], ""),
    ],
)
def test_no_labelled_set_takes_the_place_of_another(config, family, task, languages, taken):
    entry = {"hub": "own/set", "revision": "1" * 40, "splits": {"test": "{lang}/test*"}, "task": task}
    config = config | {"datasets": {family: entry | {"languages": languages}}}
    if not taken:
        check(config)
        return
    with pytest.raises(UserError) as error:
        check(config)
    assert f"datasets.{family}: this is the name of a set that the workflow has already ({taken})" in str(error.value)


@pytest.fixture(scope="module")
def table(root):
    """(section, key) -> the cells of its row in config/README.md."""
    found = {}
    for part in re.split(r"^## ", (root / "config/README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        section = part.partition("\n")[0]
        for line in part.splitlines():
            if line.startswith("| `"):
                key, *cells = (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|")))
                assert (section, key.strip("`")) not in found
                found[section, key.strip("`")] = cells
    return found


def test_page_and_schema_are_up_to_date(root):
    program = runpy.run_path(str(root / "scripts" / "document_config.py"), run_name="program")
    for place, text in program["documents"]().items():
        assert (root / place).read_text(encoding="utf-8") == text, "run: python scripts/document_config.py"


def test_every_key_is_on_the_page_and_has_a_meaning(table, config):
    def rows(value, path=()):
        for key, inner in value.items():
            yield (*path, key)
            # Entries of treebanks, of presets and of trained models are told in one row.
            if isinstance(inner, dict) and (*path, key) not in table:
                yield from rows(inner, (*path, key))

    sections = {section for section, _ in table}
    for path in rows(config):
        named = re.sub(r"^(models|vocabularies)\.[^.]+\.", r"\1.<name>.", ".".join(path[1:]))
        above = [named.rsplit(".", drop)[0] for drop in range(named.count(".") + 1)]
        shown = (
            any((path[0], name) in table for name in above) if path[0] in sections else ("The run", path[0]) in table
        )
        assert shown or len(path) == 1, f"{path} is not on the page"
    assert all(meaning and values for meaning, values, _ in table.values())
    for name, part in json_schema()["$defs"].items():
        assert all("description" in inner or "$ref" in inner for inner in part["properties"].values()), name
