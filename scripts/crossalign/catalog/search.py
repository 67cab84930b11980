"""Batch size and learning rate searched anew for every initialisation (`align-predict`, footnote 1 and A.1.1).

Where `align-predict.search_per_init` asks for it, a fine-tuning has trials: the same training with other settings. It
takes over the settings of the trial with the best score on the source's dev set.
"""

from dataclasses import replace

from crossalign.catalog.addresses import Tuned, trial_init
from crossalign.catalog.targets import recipe
from crossalign.papers.align_predict.items import PAPER, TASKS


def trials_of(config: dict, run: Tuned) -> list[Tuned]:
    """The trials behind a fine-tuning; none where its settings are those of its recipe.

    One seed is searched with, the first; all seeds of an initialisation then have the same settings.
    """
    paper = config[PAPER]
    # A config of an earlier run, of which a page is made again, lacks the key.
    wanted = paper.get("search_per_init")
    whole = run.init == "ref" or run.init.startswith("random-")
    if not wanted or not whole or run.recipe not in TASKS or run.model != paper["base"]:
        return []
    own = recipe(config, run.recipe)
    given = paper["grid"] if wanted is True else wanted
    return [
        replace(run, init=trial_init(batch, rate, run.init), seed=config["seeds"][0])
        for batch in given.get("batch", [own["batch"]])
        for rate in given.get("learning_rate", [own["learning_rate"]])
    ]
