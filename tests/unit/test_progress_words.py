"""Jobs in words: every rule of the workflow has some, and they say what the job is about."""

import re

import pytest

from crossalign.progress.words import TARGETS, WORDS, item_words, job_words


@pytest.mark.parametrize(
    ("rule", "wildcards", "words"),
    [
        (
            "finetune_random",
            {"model": "mbert", "preset": "pos", "source": "ru_gsd", "init": "random-1-2", "seed": "1"},
            "fine-tuning POS on Russian, layers 1-2 re-initialised (mBERT)",
        ),
        (
            "finetune",
            {"model": "mbert", "preset": "unseen-parsing", "source": "ug_udt+latn", "init": "ref", "seed": "2"},
            "fine-tuning parsing on Uyghur in Latin script (mBERT)",
        ),
        (
            "finetune",
            {
                "model": "mbert+adjust-hi-30k-avg-all",
                "preset": "adjust-nli",
                "source": "multinli_en",
                "init": "continual",
                "seed": "1",
            },
            "fine-tuning NLI on English, continual (mBERT adjusted to Hindi)",
        ),
        (
            "finetune_random",
            {"model": "mbert", "preset": "parsing", "source": "en_ewt", "init": "grid-16-2.5e-5", "seed": "1"},
            "fine-tuning parsing on English, batch 16, learning rate 2.5e-5 (mBERT)",
        ),
        (
            "evaluate",
            {"model": "mono-gsw", "preset": "ner", "source": "wikiann_de", "init": "ref", "seed": "1"},
            "testing NER learnt on German (monolingual model of Swiss German)",
        ),
        (
            "train_bilstm",
            {"preset": "unseen-parsing", "source": "wo_wtb", "seed": "1"},
            "training parsing on Wolof (BiLSTM)",
        ),
        ("prepare_trees", {"name": "ru_gsd", "split": "train"}, "preparing treebank ru_gsd (train)"),
        ("prepare_parallel", {"name": "pud", "split": "ja"}, "preparing PUD in Japanese"),
        ("prepare_text", {"name": "wikipedia_ug"}, "preparing text wikipedia_ug"),
        ("align_bitext", {"name": "wikimatrix_hi", "split": "pool"}, "aligning words of English and Hindi"),
        (
            "adapt_to_text",
            {"base": "mbert", "adaptation": "mlm-ug+latn"},
            "continuing MLM of mBERT on Uyghur in Latin script",
        ),
        ("adjust_model", {"base": "mbert", "adaptation": "adjust-es-30k-avg-all"}, "adjusting mBERT to Spanish"),
        ("pretrain", {"trained": "mono-ug.latn"}, "pretraining a monolingual model of Uyghur in Latin script"),
        ("pretrain", {"trained": "scale-pre"}, "pretraining Pre-LN"),
        ("embed_sentences", {"address": "models/xlmr-base", "corpus": "pud"}, "sentence vectors of XLM-R base"),
        (
            "compare_languages",
            {"address": "tuned/mbert/ner-wikiann_en/random-all/seed1", "corpus": "pud"},
            "comparing languages in mBERT fine-tuned for NER on English, all layers re-initialised",
        ),
        ("make_table", {"paper": "align-predict", "item": "table3"}, "making table 3 of align-predict"),
        ("make_figure", {"paper": "anc", "item": "figure11"}, "making figure 11 of anc"),
        ("make_report", {}, "writing the page"),
        ("all", {}, "collecting the results"),
    ],
)
def test_jobs_are_told_in_words(rule, wildcards, words):
    assert job_words(rule, wildcards) == words


def test_a_rule_without_words_is_told_by_its_name():
    assert job_words("boil_water", {"pot": "red", "cups": "2"}) == "boil water (pot red, cups 2)"
    assert job_words("boil_water", {}) == "boil water"


def test_wildcards_that_are_no_address_are_told_as_they_are():
    assert job_words("embed_sentences", {"address": "elsewhere"}) == "embed sentences (address elsewhere)"
    assert job_words("prepare_trees", {}) == "prepare trees"


def test_items_are_told_in_words():
    assert item_words("talk/figure2") == "figure 2 of talk"


def test_every_rule_of_the_workflow_has_words(root):
    sources = [root / "Snakefile", *sorted((root / "rules").glob("*.smk"))]
    text = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    rules = set(re.findall(r"^ *rule (\w+):", text, flags=re.MULTILINE))
    assert len(rules) > 20
    lacking = {rule for rule in rules if not rule.startswith("prepare_")} - WORDS.keys() - TARGETS
    assert lacking == set()
    # Rules that are made in loops have no name of their own in the text.
    assert {"finetune", "finetune_random"} <= WORDS.keys()
