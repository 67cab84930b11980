"""Numbers in the documents are those of the published files, the registers and the catalog."""

import csv
import re

import pandas as pd
import pytest
import yaml

from crossalign.catalog.addresses import Tuned
from crossalign.catalog.config import load
from crossalign.papers.all_items import catalog_of
from demo_world.meanings import Concepts

PRETRAINED = "docs/results/pretrained-here"


def text(root, page):
    return (root / page).read_text(encoding="utf-8")


def test_costs_are_in_the_note_that_they_cite(root):
    note = text(root, "docs/notes/performance.md")
    with (root / "resources/costs.tsv").open(encoding="utf-8", newline="") as stream:
        sources = [row["source"] for row in csv.DictReader(stream, delimiter="\t")]
    cited = [number for source in sources for number in re.findall(r"docs/notes/performance\.md: ([\d,]+)", source)]
    assert len(cited) == 6 and [number for number in cited if number not in note] == []
    runs = {run for source in sources for run in re.findall(r"the (run of [^(]+?) \(docs/notes", source)}
    assert runs == {"run of 10 min 26 s"} and "the run of 10 min 26 s" in note
    assert "evaluation alone" in note and "The rehearsal on an H200" in note


def test_losses_of_the_models_pretrained_here(root):
    table = pd.read_csv(root / PRETRAINED / "tables/align-predict/table1.csv").query("source == 'en'")
    means = table.set_index(["task", "target", "layers"])["mean"]
    page = text(root, f"{PRETRAINED}/README.md")
    layers = ["ref", "1-2", "3-4", "5-6", "7-8", "9-10", "11-12"]
    rows = re.findall(r"^\| (parsing|POS|NER), (English|the others) \| (.+) \|$", page, re.MULTILINE)
    assert len(rows) == 6
    for task, tested, cells in rows:
        told = [float(cell.replace("−", "-")) for cell in cells.split(" | ")]
        target = "en" if tested == "English" else "X"
        assert told == pytest.approx([means[task.lower(), target, each] for each in layers], abs=0.0501), (task, tested)


def test_what_length_hides_in_the_models_pretrained_here(root):
    claims = pd.read_csv(root / PRETRAINED / "claims.csv").dropna(subset=["controlled"])
    peaks = claims[claims["id"].str.contains("cka-peak|cka-ner-lang|normformer-high|anc-norm|anc-others|en-de")]
    assert len(peaks) == 10 and peaks["controlled"].value_counts().to_dict() == {"unclear": 7, "does not hold": 3}
    assert "none of ten claims about peaks held, and seven were unclear" in text(
        root, "docs/understand/length-control.md"
    )
    curves = [pd.read_csv(root / PRETRAINED / f"figures/align-predict/figure{number}.csv") for number in (1, 5)]
    curves = pd.concat(curves).query("series == 'pretrained'")
    highest = {
        key: group.loc[group["y"].idxmax(), "x"]
        for key, group in curves.dropna(subset=["y"]).groupby(["panel", "control"])
    }
    others = {panel for panel, _ in highest} - {"English-Russian"}
    assert {highest[panel, "strangers"] for panel in others} == {7}
    assert {highest[panel, "none"] for panel, _ in highest} == {0}
    assert others == {f"English-{name}" for name in ("French", "German", "Turkish", "Indonesian", "Arabic")}


def test_the_search_adds_as_many_trainings_as_the_documents_say(root):
    def tuned(search):
        config = load([])
        config = config | {"align-predict": config["align-predict"] | {"search_per_init": search}}
        return sum(isinstance(run, Tuned) for run in catalog_of(config).runs())

    few = tuned(False)
    told = f"it adds {tuned(True) - few} trainings to {few:,}"
    assert told in text(root, "docs/understand/differences.md")


def test_the_demo_world_has_about_as_many_concepts_as_told(root):
    world = yaml.safe_load(text(root, "resources/demo/world.yaml"))
    (told,) = re.findall(r"about (\d+) concepts", text(root, "docs/understand/demo-world.md"))
    assert abs(len(Concepts(world["concepts"], world["seed"]).all) - int(told)) < 10
