"""Every curve of every figure is among what the comparison of its model is asked for, and not much more."""

import subprocess
import sys

import pytest
from made_results import load

from crossalign.analysis.similarity import INDEXES
from crossalign.catalog import wanted
from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.runs import Catalog
from crossalign.catalog.wanted import wanted_indexes, wanted_languages
from crossalign.papers import all_of, make
from crossalign.papers.align_predict.correlation import similarity_targets
from crossalign.papers.common.context import Context
from crossalign.results.reading import Curve, Results


@pytest.fixture(scope="module")
def catalog(root):
    return Catalog(load(root))


def test_large_models_are_asked_for_anc_alone(catalog):
    for name in ("xlmr-xxl", "xglm-7.5b", "mbert"):
        assert wanted_indexes(catalog, Base(name), "xnliext") == ["anc", "anc-signed"]
    assert wanted_languages(catalog, Base("xlmr-xxl"), "xnliext") == ["de", "en", "et", "fr", "ru"]
    assert wanted_languages(catalog, Base("xlmr-base"), "xnliext") == ["de", "en", "et", "fr", "lt", "lv", "pl", "ru"]


def test_the_normalisation_schemes(catalog):
    tuned = Tuned("scale-normformer", "anc-nli", "multinli_en", "ref", 1)
    assert wanted_indexes(catalog, Base("scale-pre"), "xnliext") == ["cka", "cka-uncentred", "anc", "anc-signed"]
    assert wanted_indexes(catalog, tuned, "xnliext") == ["cka", "cka-uncentred", "anc", "anc-signed"]
    normformer = wanted_indexes(catalog, Base("scale-normformer"), "xnliext")
    assert normformer == [name for name in INDEXES if name != "cka-rbf"]
    assert wanted_languages(catalog, tuned, "xnliext") == ["bg", "en", "et", "fr"]


def test_random_layers_are_compared_in_fewer_languages_than_the_pretrained_model(catalog):
    random = Tuned("mbert", "parsing", "en_ewt", "random-1-2", 1)
    assert wanted_languages(catalog, random, "pud") == ["ar", "de", "en", "fr", "id", "ru", "tr"]
    assert len(wanted_languages(catalog, Base("mbert"), "pud")) == 17
    assert wanted_indexes(catalog, random, "pud") == ["cka", "cka-uncentred", "cka-rbf"]
    assert wanted_indexes(catalog, random, "xnliext") == []


def test_the_index_of_the_config_is_among_them(root):
    catalog = Catalog(load(root, similarity={"index": "anc"}))
    assert "anc" in wanted_indexes(catalog, Base("mbert"), "pud")


def test_whatever_is_drawn_is_wanted(root, tmp_path):
    config = load(root)
    catalog = Catalog(config)
    asked = set()

    class Asked(Results):
        def curve(self, runs, corpus, pairs, index, control="none"):
            asked.update((run, corpus, pair, index) for run in runs for pair in pairs)
            return Curve()

        def similarity(self, run, corpus):
            # The correlations look at every language with parallel sentences.
            pairs = [f"en-{lang}" for lang in similarity_targets(context)]
            asked.update((run, corpus, pair, config["similarity"]["index"]) for pair in pairs)
            return {}

    context = Context(config, Asked(tmp_path))
    for item in all_of("figures"):
        make(item, context)
    make("align-predict/table4", context)
    assert len(asked) > 300
    for run, corpus, pair, index in asked:
        assert index in wanted_indexes(catalog, run, corpus), (run, corpus, index)
        assert pair.removeprefix("en-") in wanted_languages(catalog, run, corpus), (run, corpus, pair)


def test_the_order_is_that_of_the_indexes():
    assert wanted._ORDER == INDEXES


def test_planning_needs_no_numpy(root):
    code = "import sys; import crossalign.catalog.wanted; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root / "scripts")
    assert done.stdout.strip() == "False", done.stderr
