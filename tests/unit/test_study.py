"""A study: which layers, models and sets it means, what its items need, and what its claims say of made-up models."""

import json
from pathlib import Path

import numpy as np
import pytest
from crossalign.papers.all_claims import judge_run
from tests.unit.figure_check import overlaps
from tests.unit.study_results import MODELS, make_study, study_config

from crossalign.analysis.distances import Panel
from crossalign.catalog.addresses import Base, Tuned
from crossalign.catalog.config import check
from crossalign.catalog.sheets import Sheets
from crossalign.catalog.studied import known_models, layer_sets, model_folder, shape_of, wrong_models
from crossalign.papers import all_of, make
from crossalign.papers.all_items import catalog_of
from crossalign.papers.common.context import Context
from crossalign.papers.common.draw import draw
from crossalign.papers.common.table import write_csv
from crossalign.results.measured import measured_model
from crossalign.results.reading import Results
from crossalign.runtime.errors import UserError

ITEMS = [name for part in ("tables", "figures") for name in all_of(part) if name.startswith("study/")]


@pytest.fixture(scope="module")
def monkeymodule():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def made(root, tmp_path_factory, monkeymodule):
    """Made-up results of two models, with an adjustment to Russian."""
    folder = tmp_path_factory.mktemp("study")
    config = study_config(root, adjusted_languages=["ru"])
    make_study(folder, config, monkeymodule)
    return Context(config, Results(folder))


@pytest.mark.parametrize(
    ("kind", "layers", "sets"),
    [
        ("quarters", 12, ["1-3", "4-6", "7-9", "10-12"]),
        ("quarters", 26, ["1-6", "7-13", "14-20", "21-26"]),
        ("quarters", 4, ["1", "2", "3", "4"]),
        ("quarters", 2, ["1", "2"]),
        ("pairs", 12, ["1-2", "3-4", "5-6", "7-8", "9-10", "11-12"]),
        ("pairs", 5, ["1-2", "3-4", "5"]),
    ],
)
def test_sets_of_layers_cover_a_model_of_any_depth(root, kind, layers, sets):
    config = study_config(
        root, layer_sets=kind, models={"one": {"folder": "somewhere", "layers": layers, "neurons": 8}}
    )
    assert list(layer_sets(config, "one").values()) == sets


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_made_whole_and_can_be_read(made, name):
    """Nothing is missing where all that the catalog asks for is there, nothing else is read, no text covers another."""
    results = Results(made.results.folder)
    found = make(name, Context(made.config, results))
    assert not found.missing
    assert results.asked <= catalog_of(made.config).needs(name).runs
    if "figure" in name:
        assert overlaps(draw(found)) == []
        assert all(series.drawn for panel in found.panels for series in panel.series)
    else:
        assert all(cell.shown for cell in found.cells() if cell.keys.get("model") != "printed" and not cell.fact)


def test_only_pretrained_models_are_compared(made):
    sheets = Sheets(catalog_of(made.config))
    compared = {address.rpartition("/")[0] for address in sheets.rows if address.startswith("similarity/")}
    assert compared == {f"similarity/models/{name}" for name in MODELS}
    # Three tasks and NLI; REF and four sets of layers but for NLI and the adjusted models, whose tasks are two.
    assert sum(address.startswith("tuned/") for address in sheets.rows) == 2 * 2 * (3 * 5 + 1 + 2)
    assert sheets.hub_models() == ["deep-model-270m"]


def test_a_study_without_adjustment_leaves_its_items_out(root):
    catalog = catalog_of(study_config(root))
    assert {"study/table6", "study/table7"}.isdisjoint(catalog.items)
    assert catalog.left_out("study/table6") == "study.adjusted_languages names no languages"
    assert len(catalog.items) == len(ITEMS) - 2


def test_models_come_from_folders_the_hub_and_the_register(root):
    config = study_config(root, models=MODELS | {"xlmr-base": {}})
    sheets = Sheets(catalog_of(config))
    assert sheets.hub_models() == ["deep-model-270m", "xlmr-base"]
    assert sheets.model(Base("mbert"))[0].endswith("resources/demo/models/mbert/model.safetensors")
    assert sheets.model(Base("xlmr-base")) == ["resources/downloads/models/xlmr-base/complete.json"]
    row = known_models(config)["deep-model-270m"]
    assert (row.hub, row.revision, row.layers) == ("owner/Deep_Model-270M", "0" * 40, 26)
    assert list(layer_sets(config, "xlmr-base").values())[-1] == "10-12"


def test_unseen_languages_are_tested_on_their_own_treebanks(made):
    rows = Sheets(catalog_of(made.config)).rows
    sets = rows["tuned/mbert/study-pos-en_ewt/ref/seed1"]["sets"]
    assert "results/study/data/trees/wo_wtb/test.conllu" in sets
    assert "results/study/data/trees/ru_pud/test.conllu" in sets
    # WikiANN has no Wolof.
    ner = rows["tuned/mbert/study-ner-wikiann_en/ref/seed1"]["sets"]
    assert not any("wikiann_wo" in file for file in ner) and any("wikiann_fo" in file for file in ner)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"models": {"a": {"hub": "own/a"}}}, "study.models.a: 'revision' is missing"),
        ({"models": {"a": {"folder": "x", "hub": "own/a"}}}, "study.models.a: 'folder' and 'hub' cannot both be given"),
        ({"models": {"a": {}}}, "study.models.a: neither 'folder' nor 'hub' is given"),
        ({"models": {"a": {"folder": "docs"}}}, "study.models.a.folder: docs has no config.json"),
        ({"models": {"a": {"hub": "own/a", "revision": "main"}}}, "study.models.a: 'layers' is missing"),
        ({"models": {"A B": {"folder": "x"}}}, "study.models: 'A B' is not allowed as a key"),
        (
            {"models": {"модель": {"folder": "x"}}},
            "'модель' is not allowed as a key; expected a name of the letters a-z",
        ),
        (
            {"models": {"mono-x": {"folder": "docs"}}},
            "study.models.mono-x: 'mono-x' means a model that is trained here",
        ),
        (
            {"models": {"bilstm": {"hub": "own/bilstm", "revision": "main"}}},
            "'bilstm' means a model that is trained here",
        ),
        ({"models": {"a": {"folder": "-x"}}}, "expected a path without braces"),
        ({"languages": ["de"]}, "study.languages: 'en' is missing"),
        ({"unseen": ["de"]}, "study.unseen: 'de' stands among study.languages too"),
        ({"unseen": ["ko"]}, "study.unseen: 'ko' has no treebank in talk.treebanks"),
        ({"adjusted_languages": ["xx"]}, "study.adjusted_languages: unknown language 'xx'"),
        ({"layer_sets": "thirds"}, "study.layer_sets: 'thirds' is not allowed; expected one of quarters, pairs"),
    ],
)
def test_a_config_that_cannot_be_studied(root, changes, told):
    config = study_config(root)
    config["study"] |= changes
    with pytest.raises(UserError) as error:
        check(config)
    assert told in str(error.value)


def test_a_pretrained_model_is_studied_by_its_name_alone(root):
    config = study_config(root, models={"scale-post": {}})
    config["anc"]["norm_models"] = "pretrain"
    assert list(wrong_models(config)) == []
    config["study"]["models"]["scale-post"] = {"folder": "resources/demo/models/mbert"}
    assert [problem.partition(";")[0] for problem in wrong_models(config)] == [
        "study.models.scale-post: 'scale-post' means a model that is trained here"
    ]


def test_a_folder_of_the_config_is_found_from_anywhere(root, tmp_path, monkeypatch):
    """Snakemake's --directory changes the working folder; the numbers of the register are those of another model."""
    monkeypatch.chdir(tmp_path)
    config = study_config(root)
    assert model_folder(config, "mbert") == root / "resources/demo/models/mbert"
    assert measured_model(config, "mbert")["neurons_per_layer"] == 64
    assert (tmp_path / Sheets(catalog_of(config)).model(Base("mbert"))[0]).is_file()
    # Of a model without numbers in its entry the planner reads them from there.
    config["study"]["models"]["mbert"] = {"folder": "resources/demo/models/mbert"}
    assert shape_of(config, "mbert") == {"layers": 12, "neurons": 64}
    # What a run fetches lies where the run is.
    assert model_folder(config, "deep-model-270m") == Path("resources/downloads/models/deep-model-270m")


def judged(made, folder):
    """Verdicts on the claims about the models, after all items are made in `folder`."""
    from crossalign.papers.common.figure_files import write_data

    for name in catalog_of(made.config).items:
        found = make(name, Context(made.config, Results(made.results.folder)))
        path = folder / ("figures" if "figure" in name else "tables") / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        (write_data if "figure" in name else write_csv)(found, path)
    return {claim.id: claim for claim in judge_run(made.config, folder)}


def plant(made, model, layers, home, elsewhere):
    """Losses of POS where the lower layers are drawn anew."""
    for seed in made.config["seeds"]:
        reference, drawn = (
            made.results.folder / Tuned(model, "study-pos", "en_ewt", init, seed).path() / "scores.json"
            for init in ("ref", f"random-{layers}")
        )
        scores = json.loads(reference.read_text(encoding="utf-8"))
        for name, metrics in scores.items():
            metrics["accuracy"] -= home if name == "trees/en_pud/test" else elsewhere
        drawn.write_text(json.dumps(scores), encoding="utf-8")


def test_claims_speak_of_every_model(made, tmp_path):
    plant(made, "mbert", "1-3", home=1, elsewhere=15)
    plant(made, "deep-model-270m", "1-6", home=15, elsewhere=1)
    found = judged(made, tmp_path)
    assert {claim.paper for claim in found.values()} == {"study"}
    kinds = {"lower-pos", "lower-parsing", "lower-ner", "upper", "middle-cka", "middle-anc", "neurons"}
    kinds |= {"rho-pos", "rho-parsing", "rho-ner"}
    assert set(found) == {f"{model}-{kind}" for model in MODELS for kind in kinds}
    assert found["mbert-middle-cka"].verdict == "holds" and found["mbert-middle-cka"].controlled == "holds"
    # The made-up curves of shares reach 0.6.
    assert found["mbert-neurons"].verdict == "does not hold"
    assert found["mbert-rho-pos"].verdict == "unclear"
    # A planted effect is found, and the opposite is refuted.
    assert found["mbert-lower-pos"].verdict == "holds", found["mbert-lower-pos"]
    assert found["deep-model-270m-lower-pos"].verdict == "does not hold"
    assert "costs 15.00 points elsewhere and 1.00 in English" in found["mbert-lower-pos"].measured


def test_mean_distances_come_from_the_middle_of_bins():
    assert Panel(0.5, {"related": np.array([0, 2, 2])}, {}).mean("related") == 1.0
