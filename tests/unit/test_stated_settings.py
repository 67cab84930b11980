"""The settings that the papers state are those of config.yaml."""

import inspect

import pytest

from crossalign.analysis.significance import permutation_test
from crossalign.catalog.config import pair_count
from crossalign.papers.adjust.arms import LEVEL
from crossalign.results.comparable import papers_config
from crossalign.results.published import claims

CONFIG = papers_config()
ALIGN, ANC, ADJUST, TALK = (CONFIG[paper] for paper in ("align-predict", "anc", "adjust", "talk"))


def preset(task, key):
    return (CONFIG["finetune"]["defaults"] | CONFIG["finetune"][task])[key]


@pytest.mark.parametrize(
    ("paper", "name", "ours"),
    [
        # Swedish stands beside the 17: the row that the paper calls Slovenian is probably Swedish.
        ("align-predict", "languages", len(ALIGN["languages"]) - len(ALIGN["extra_targets"])),
        ("align-predict", "targets", len(ALIGN["languages"]) - len(ALIGN["extra_targets"]) - len(ALIGN["sources"])),
        ("align-predict", "sources", len(ALIGN["sources"])),
        ("align-predict", "seeds", len(CONFIG["seeds"])),
        ("align-predict", "grid-batch", ALIGN["grid"]["batch"]),
        ("align-predict", "grid-lr", ALIGN["grid"]["learning_rate"]),
        *(("align-predict", "warmup", 100 * preset(task, "warmup")) for task in ("parsing", "pos", "ner")),
        ("align-predict", "epochs-parsing", preset("parsing", "epochs")),
        *(("align-predict", "epochs-pos-ner", preset(task, "epochs")) for task in ("pos", "ner")),
        ("anc", "matching-n", ANC["sentences"]),
        ("anc", "parallel-n", ANC["sentences"]),
        ("anc", "xnli-langs", ANC["xnli_languages"]),
        ("anc", "norm-langs", ANC["norm_languages"]),
        ("anc", "scaling-langs", ANC["scaling_languages"]),
        ("adjust", "seeds", len(CONFIG["seeds"])),
        ("adjust", "p-threshold", LEVEL),
        ("adjust", "perm-iterations", inspect.signature(permutation_test).parameters["iterations"].default),
        ("adjust", "main-size", pair_count(ADJUST["pairs"])),
        ("adjust", "pool-size", ADJUST["pool"]),
        ("adjust", "alpha", CONFIG["pull"]["continual"]["alpha"]),
        *(("adjust", "bs-target", preset(f"adjust-{task}", "batch")) for task in ("nli", "ner", "qa")),
        ("adjust", "bs-align", CONFIG["pull"]["continual"]["batch"]),
        ("talk", "unseen-listed", len(TALK["languages"])),
        ("talk", "translit-langs", len(TALK["transliterated"])),
    ],
)
def test_a_stated_setting(paper, name, ours):
    stated = claims(paper)[name]["value"].split(";")
    found = ours if isinstance(ours, list) else [ours]
    assert [
        float(one) if isinstance(our, int | float) else one for one, our in zip(stated, found, strict=True)
    ] == found


def test_the_best_epoch_counts_and_the_rate_decays():
    for task in ("parsing", "pos", "ner"):
        assert (preset(task, "selection"), preset(task, "schedule")) == ("best", "linear")
