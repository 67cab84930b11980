"""What several unit tests read and none changes."""

import pytest
from tests.unit.made_results import load, make_results

from crossalign.papers.common.context import Context
from crossalign.results.reading import Results


@pytest.fixture(scope="session")
def made(root, tmp_path_factory):
    """The papers' config with made-up results of two seeds."""
    folder = tmp_path_factory.mktemp("made")
    config = load(root)
    make_results(folder, config)
    return Context(config, Results(folder))
