"""The data stages for real, in a tiny demo world; then what runs again after a change, and what does not."""

import json
import shutil

import pytest
from tests.prepared import validate
from tests.workflow import copy_project, planned, run_project

from crossalign.catalog.config import load
from crossalign.papers.all_items import catalog_of

# Every kind of data set, few languages.
SMALL = {
    "items": [
        "align-predict/figure1",
        "adjust/table2",
        "adjust/table4",
        "adjust/figure1",
        "talk/figure3",
        "anc/figure2",
    ],
    "align-predict": {
        "languages": ["en", "ru", "ar", "sl"],
        "extra_targets": [],
        "own_treebanks": {"ru": "ru_gsd"},
        "similarity_languages": ["ru", "ar"],
    },
    "adjust": {"languages": ["ru", "hi"], "pool": 3000},
    "anc": {"sentences": 6},
}


@pytest.fixture(scope="module")
def project(root, tmp_path_factory):
    """A copy of the workflow whose demo world is tiny, after one complete run."""
    folder = tmp_path_factory.mktemp("project") / "a project"  # a space, as people have them
    # A little more text than the world's own tests need, so that some of it can be held out.
    copy_project(root, folder, text={"demo": {"unseen": 80}})
    done = run(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(folder, *arguments, changes=None):
    """Run the demo in `folder`, or with --dry-run look at what would run."""
    return run_project(folder, SMALL, ["data"], *arguments, changes=changes)


def would_run(folder, changes=None):
    return planned(run(folder, "--dry-run", changes=changes))


@pytest.fixture
def edited(project):
    """Edit a file of the project; afterwards it is as before."""
    saved = {}

    def edit(name, old, new):
        file = project / name
        text = file.read_text(encoding="utf-8")
        saved.setdefault(file, text)
        assert old in text
        file.write_text(text.replace(old, new, 1), encoding="utf-8")

    yield edit
    for file, text in saved.items():
        file.write_text(text, encoding="utf-8")


def test_every_set_is_made_and_valid(project):
    config = load([project / "config/demo.yaml", project / "config.small.json"])
    sets = catalog_of(config).sets()
    assert {data.kind for data in sets} == {"trees", "ner", "nli", "qa", "bitext", "text", "parallel"}
    for data in sets:
        file = project / "results" / "demo" / data.path()
        validate(data.kind, file)
        report = json.loads(file.with_name(f"{data.split}.report.json").read_text(encoding="utf-8"))
        assert report["kept"] > 0, data
        assert report["read"] >= report["kept"]


def test_bitext_is_linked_line_by_line(project):
    for lang in ("ru", "hi"):
        pool = (project / f"results/demo/data/bitext/wikimatrix_{lang}/pool.tsv").read_text("utf-8").splitlines()
        links = (project / f"results/demo/links/wikimatrix_{lang}/pool.pharaoh").read_text("utf-8").splitlines()
        assert len(pool) == len(links) > 20
        for line, linked in zip(pool, links, strict=True):
            _, english, other = line.split("\t")
            for pair in linked.split():
                i, j = map(int, pair.split("-"))
                assert i < len(english.split())
                assert j < len(other.split())


def test_a_second_run_has_nothing_to_do(project):
    assert would_run(project) == {}


def test_one_changed_row_runs_its_dependants_only(project, edited):
    rows = (project / "resources" / "datasets.tsv").read_text(encoding="utf-8").splitlines()
    row = next(row for row in rows if row.startswith("ud/ru_pud/"))
    edited("resources/datasets.tsv", row, row.replace("\tr2.4\t", "\tr2.5\t"))
    assert would_run(project) == {"download_file": 1, "prepare_trees": 1, "prepare_parallel": 1}


def test_a_changed_key_runs_its_users(project):
    assert would_run(project, {"adjust": {"coin_seed": 2}}) == {"prepare_nli": 2}
    assert set(would_run(project, {"adjust": {"max_words": 50}})) == {"prepare_bitext", "align_bitext"}
    assert set(would_run(project, {"anc": {"sentences": 5}})) == {"prepare_parallel"}
    assert would_run(project, {"aligner": {"symmetrise": "union"}}) == {"align_bitext": 3}


def test_one_more_language_prepares_that_language(project):
    jobs = would_run(project, {"align-predict": {"languages": ["en", "ru", "ar", "sl", "tr"]}})
    assert jobs == {"download_file": 1, "prepare_trees": 1, "prepare_ner": 1}


def test_a_broken_download_is_named(project, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(project, copy)
    mirrored = copy / "results/demo/mirror/ud/ru_pud/test.conllu"
    mirrored.write_text(mirrored.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    for made in ("downloads/ud/ru_pud/test.conllu", "data/parallel/pud/ru.txt"):
        (copy / "results" / "demo" / made).unlink()
    assert run(copy).returncode != 0
    log = copy / "results/demo/logs/download_file/ud/ru_pud/test.conllu.log"
    assert "wrong checksum" in log.read_text(encoding="utf-8")
    assert not (copy / "results/demo/downloads/ud/ru_pud/test.conllu").exists()
