"""The packages of the library: arrows point down, nowhere in a circle, and the picture shows them."""

import subprocess
import sys

import pytest
from tools import package_graph


@pytest.fixture(autouse=True)
def read_anew():
    package_graph.modules.cache_clear()
    package_graph.packages.cache_clear()


def test_no_package_imports_from_above():
    assert package_graph.upward() == []


@pytest.mark.parametrize("graph", ["packages", "modules"])
def test_no_circle(graph):
    assert package_graph.circle(getattr(package_graph, graph)()) == []


@pytest.mark.parametrize(
    ("code", "large"),
    [
        ("import crossalign.catalog.inputs, crossalign.catalog.targets", "numpy torch snakemake"),
        ("import crossalign.fetch.listing", "huggingface_hub http.client urllib.request numpy ssl"),
        (
            "from crossalign.papers import all_of; all_of('tables'), all_of('figures')",
            "matplotlib torch pandas scipy transformers",
        ),
    ],
)
def test_planning_waits_for_no_large_library(root, code, large):
    told = f"{code}; import sys; print(*set({large.split()}) & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", told], cwd=root / "scripts", capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr


def test_every_package_has_a_layer():
    assert {name for name in map(package_graph.package, package_graph.modules()) if name} == set(package_graph.LAYER)


def test_the_picture_is_up_to_date(root):
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert package_graph.replaced(text) == text, "run: python tools/package_graph.py --write CONTRIBUTING.md"


def test_imports_inside_functions_count_and_types_do_not(tmp_path, monkeypatch):
    library = tmp_path / "crossalign"
    for name, text in {
        "__init__": "",
        "data/__init__": "",
        "data/one": "def late():\n    from crossalign.runtime import two\n",
        "runtime/__init__": "",
        "runtime/two": "if TYPE_CHECKING:\n    from crossalign.data.one import late\n",
        "runtime/three": "from crossalign.data.one import late\n",
    }.items():
        (library / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (library / f"{name}.py").write_text(text)
    monkeypatch.setattr(package_graph, "LIBRARY", library)
    assert package_graph.modules()["crossalign.data.one"] == {"crossalign.runtime.two"}
    assert package_graph.modules()["crossalign.runtime.two"] == set()
    assert package_graph.upward() == ["crossalign.runtime.three imports crossalign.data.one"]
    assert set(package_graph.circle(package_graph.packages())) == {"data", "runtime"}
