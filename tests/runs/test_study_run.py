"""docs/use/study.md, done to a copy of the repository: a study of one of the demo's models from nothing to its page."""

import csv
import json
import re
import shutil

import pytest
import yaml
from tests.recipes import apply, commands, copy_repository, plan, recipes, run
from tests.workflow import planned

MODEL = "xlmr-base"


@pytest.fixture(scope="module")
def page(root):
    text = (root / "docs" / "use" / "study.md").read_text(encoding="utf-8")
    # What needs a network or a cluster is not run.
    return recipes(re.sub(r"```sh\n.*?```\n", "", text, flags=re.DOTALL))


def make(command, folder):
    """Run a command of the page; the environment is that of the tests."""
    assert command.startswith("make ")
    return run(command.replace("make ", "make -o environment ", 1), folder)


@pytest.fixture(scope="module")
def studied(root, page, tmp_path_factory):
    """The first command of the page."""
    folder = copy_repository(root, tmp_path_factory.mktemp("study"))
    (command,) = commands(page["Try it"])
    done = make(command, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_chosen_item_is_made_of_the_model_in_mberts_place(studied, root):
    results = studied / "results" / MODEL
    made = sorted(
        f"{file.parent.name}/{file.stem}" for kind in ("tables", "figures") for file in results.glob(f"{kind}/*/*.csv")
    )
    chosen = yaml.safe_load((root / "resources/demo/study.yaml").read_text(encoding="utf-8"))["items"]
    assert made == sorted(chosen) and {item.partition("/")[0] for item in made} == {
        "adjust",
        "align-predict",
        "anc",
        "talk",
    }
    for item, column in (("align-predict/table7", "mean"), ("anc/figure3", "y")):
        (file,) = results.glob(f"*/{item}.csv")
        with file.open(encoding="utf-8", newline="") as stream:
            assert any(row[column] for row in csv.DictReader(stream)), file
    bases = {folder.name.partition("+")[0] for folder in (results / "tuned").iterdir()}
    assert bases - {"bilstm", "mono-wo"} == {MODEL}
    shown = (results / "report" / "index.html").read_text(encoding="utf-8")
    assert "finds again in XLM-R base" in shown
    model = yaml.safe_load((results / "models.yaml").read_text(encoding="utf-8"))["study"]["models"][MODEL]
    assert model == {"folder": f"resources/demo/models/{MODEL}", "layers": 12, "neurons": 64}


def test_layers_start_at_random(studied):
    """RANDOM-INIT of different layers gives different models."""
    files = studied.glob(f"results/{MODEL}/tuned/{MODEL}/pos-en_ewt/*/seed1/scores.json")
    scores = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    assert len(scores) == 3 and len(set(map(str, scores))) == 3


def test_the_plan_of_the_page(page, studied, tmp_path):
    folder = shutil.copytree(studied, tmp_path / "copy", symlinks=True)
    apply(page["Your model"], folder)
    (command,) = commands(page["Your model"])
    assert planned(make(command, folder)) == plan(page["Your model"])


def test_a_study_through_slurm_is_the_same_run(studied, tmp_path):
    """A dry run with the profile of the cluster plans what make study plans; what is made stays made."""
    folder = shutil.copytree(studied, tmp_path / "copy", symlinks=True)
    results = folder / "results" / MODEL
    shutil.rmtree(results / f"tuned/{MODEL}/pos-en_ewt/random-1-2")
    (results / "tables/align-predict/table7.html").unlink()
    arguments = f"MODEL=resources/demo/models/{MODEL} CONFIGS=resources/demo/study.yaml"
    dry = 'RUNNER="snakemake --dry-run --quiet rules"'
    by_slurm = make(f"make slurm {arguments} {dry}", folder)
    assert by_slurm.returncode == 0, by_slurm.stdout + by_slurm.stderr
    here = planned(make(f"make study {arguments} {dry}", folder))
    assert planned(by_slurm) == here and sum(here[rule] for rule in here if rule.startswith("finetune")) == 1


def test_a_model_that_is_not_there(studied):
    done = make("make study MODEL=no/such/model/at/all", studied)
    assert done.returncode and "no/such/model/at/all: no such folder" in done.stderr
