"""What several unit tests read and none changes."""

import pytest
from tests.unit.made_results import load, make_results
from tests.unit.paper_results import paper_config, write_paper

from crossalign.papers.common.context import Context
from crossalign.results.reading import Results


@pytest.fixture(scope="session")
def paper(root, tmp_path_factory):
    """The config and the folder of the papers' own numbers."""
    folder = tmp_path_factory.mktemp("paper")
    config = paper_config(root, folder)
    write_paper(folder, config)
    return config, folder


@pytest.fixture(scope="session")
def made(root, tmp_path_factory):
    """The papers' config with made-up results of two seeds."""
    folder = tmp_path_factory.mktemp("made")
    config = load(root)
    make_results(folder, config)
    return Context(config, Results(folder))
