"""What stands in a run for what a paper measured: artificial languages, another model, or a rehearsal.

Numbers that depend on any of them are shown beside the printed ones and not judged. The base model of a study is
another, and so is a model of `pretrain.models`, unless it is trained as the paper says (`as_published`). It takes
nothing from the paper's models beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from crossalign.catalog.addresses import Adapted, Base, Run
from crossalign.catalog.trained_models import stand_ins


@dataclass(frozen=True)
class StandIn:
    """In two words, and in a sentence."""

    words: str
    reason: str


ARTIFICIAL = StandIn("artificial languages", "the languages of this run are artificial")
OTHER_MODEL = StandIn("another model", "another model stands for the paper's")
REHEARSAL = StandIn("rehearsal", "this is a rehearsal: models have random weights and were hardly trained")


def artificial(config: dict) -> StandIn | None:
    """For what depends on the languages alone."""
    return REHEARSAL if config.get("rehearsal") else ARTIFICIAL if config.get("world") else None


def stand_in(config: dict, runs: Iterable[Run]) -> StandIn | None:
    """For a number that depends on some runs."""
    others = stand_ins(config)
    return artificial(config) or (OTHER_MODEL if any(base_name(run) in others for run in runs) else None)


def base_name(run: Run) -> str:
    """The name of the model that a run began with."""
    if isinstance(run, Base):
        return run.name
    return run.base if isinstance(run, Adapted) else run.model.partition("+")[0]
