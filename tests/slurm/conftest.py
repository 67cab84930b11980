"""Fixtures of the tests on a real SLURM."""

import pytest
from tests.slurm.cluster import Cluster, missing


def started(accounting: bool):
    """A cluster for as long as it is needed; without the programs the tests are skipped."""
    absent = missing(accounting)
    if absent:
        pytest.skip(
            f"no SLURM: {', '.join(absent)} not installed (.ci/install-system-packages installs what is needed)"
        )
    with Cluster(accounting=accounting) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster():
    """A cluster with accounting."""
    yield from started(accounting=True)


@pytest.fixture(scope="module")
def plain_cluster():
    """A cluster without accounting."""
    yield from started(accounting=False)
