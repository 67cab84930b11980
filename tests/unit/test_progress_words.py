"""Jobs in words that say what the job is about; that every rule has some is tested with the lists of rules."""

import pytest

from crossalign.progress.words import job_words

POS = {"model": "mbert", "preset": "pos", "source": "ru_gsd", "init": "random-1-2", "seed": "1"}
LATIN = POS | {"preset": "unseen-parsing", "source": "ug_udt+latn", "init": "ref"}
ADJUSTED = {"model": "mbert+adjust-hi-30k-avg-all", "preset": "adjust-nli", "source": "multinli_en"}
TRIAL = {"preset": "parsing", "source": "en_ewt", "init": "grid-16-2.5e-5"}
GERMAN = {"model": "mono-gsw", "preset": "ner", "source": "wikiann_de", "init": "ref"}
WOLOF = {"preset": "unseen-parsing", "source": "wo_wtb", "seed": "1"}
RANDOM = {"address": "tuned/mbert/ner-wikiann_en/random-all/seed1", "corpus": "pud"}


@pytest.mark.parametrize(
    ("rule", "wildcards", "words"),
    [
        ("finetune_random", POS, "fine-tuning POS on Russian, layers 1-2 re-initialised (mBERT)"),
        ("finetune", LATIN, "fine-tuning parsing on Uyghur in Latin script (mBERT)"),
        (
            "finetune",
            POS | ADJUSTED | {"init": "continual"},
            "fine-tuning NLI on English, continual (mBERT adjusted to Hindi)",
        ),
        ("finetune_random", POS | TRIAL, "fine-tuning parsing on English, batch 16, learning rate 2.5e-5 (mBERT)"),
        ("evaluate", POS | GERMAN, "testing NER learnt on German (monolingual model of Swiss German)"),
        ("train_bilstm", WOLOF, "training parsing on Wolof (BiLSTM)"),
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
            RANDOM,
            "comparing languages in mBERT fine-tuned for NER on English, all layers re-initialised",
        ),
        ("make_table", {"paper": "align-predict", "item": "table3"}, "making table 3 of align-predict"),
        ("make_figure", {"paper": "anc", "item": "figure11"}, "making figure 11 of anc"),
        ("make_report", {}, "writing the page"),
        ("all", {}, "collecting the results"),
        # A rule without words, and wildcards that are no address, are told as they are.
        ("boil_water", {"pot": "red", "cups": "2"}, "boil water (pot red, cups 2)"),
        ("boil_water", {}, "boil water"),
        ("embed_sentences", {"address": "elsewhere"}, "embed sentences (address elsewhere)"),
        ("prepare_trees", {}, "prepare trees"),
    ],
)
def test_jobs_are_told_in_words(rule, wildcards, words):
    assert job_words(rule, wildcards) == words
