"""What several unit tests read and none changes."""

import pytest
from tests.unit.paper_results import paper_config, write_paper


@pytest.fixture(scope="session")
def paper(root, tmp_path_factory):
    """The config and the folder of the papers' own numbers."""
    folder = tmp_path_factory.mktemp("paper")
    config = paper_config(root, folder)
    write_paper(folder, config)
    return config, folder
