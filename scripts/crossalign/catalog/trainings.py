"""What the programs that train are told besides files: hyper-parameters, and what an address says of a model."""

from crossalign.catalog.addresses import Adapted, Adjustment, Tuned, is_continual, model_of, trial_of
from crossalign.catalog.config import pair_count
from crossalign.catalog.studied import backend_of
from crossalign.catalog.targets import preset, trials_of
from crossalign.catalog.trained_models import trained_model, trained_vocabulary
from crossalign.engine.settings import (
    AdjustmentSettings,
    BilstmSettings,
    ContinualSettings,
    ModelShape,
    PretrainOptions,
    PretrainSettings,
    Settings,
    Sizes,
    VocabularySettings,
    keys_of,
)


def chosen(values: dict, *kinds: type) -> dict[str, object]:
    """The settings of some trainings; those that are not given are left to the program."""
    return {name: value for name in keys_of(*kinds) if (value := values.get(name)) is not None}


def finetune_settings(config: dict, run: Tuned) -> dict[str, object]:
    """A fine-tuning. A trial of a search has its own batch size and learning rate; what has trials gets neither."""
    values, init = preset(config, run.preset), run.init
    if trial := trial_of(run.init):
        # Its rate is what it is about, so it does not start again with another.
        values, init = values | {"batch": trial[0], "learning_rate": trial[1], "restart_below": None}, trial[2]
    elif trials_of(config, run):
        values |= {"batch": None, "learning_rate": None}
    told = {"task": run.task, "init": "ref" if is_continual(init) else init, "seed": run.seed}
    told |= _backend(config, run.model) | _cut(config) | chosen(values, Settings)
    return told | ({"continual": _continual(config, run)} if is_continual(init) else {})


def _continual(config: dict, run: Tuned) -> dict[str, object]:
    """The second loss of a fine-tuning: on the pairs that its model was adjusted on."""
    values = config["pull"]["continual"] | _pulled(model_of(run).adaptation)
    scope = run.init.partition("-")[2] or values["alpha_scope"]
    return chosen(values | {"alpha_scope": scope}, ContinualSettings)


def adjustment_settings(config: dict, made: Adapted) -> dict[str, object]:
    """How a model is adjusted: what its address says, and the hyper-parameters."""
    values = config["pull"] | _pulled(made.adaptation)
    told = {"seed": made.seed, **_backend(config, made.base), **_cut(config)}
    return told | chosen(values, AdjustmentSettings)


def _pulled(made: Adjustment) -> dict[str, object]:
    return {"pairs": pair_count(made.pairs), "aggregation": made.aggregation, "tokens": made.tokens}


def mlm_settings(config: dict, made: Adapted) -> dict[str, object]:
    """How a model goes on with the raw text of a language (`talk`)."""
    return {"seed": made.seed, **_cut(config)} | chosen(config["mlm"], PretrainSettings, PretrainOptions)


def pretrain_settings(config: dict, name: str) -> dict[str, object]:
    """Shape and training of a model that is pretrained here."""
    values = dict(trained_model(config, name))
    if values["objective"] == "clm":
        values["norm"] = None  # a causal model has one form only
    if values["norm"] != "normformer":
        values["residual_scaling"] = None
    shape = (ModelShape,)
    if values.get("init"):
        # The model of the stage before has its shape, and its own dropout for later.
        shape, values["tuning_dropout"] = (), None
    return {"seed": values["seed"], **_cut(config), **chosen(values, *shape, PretrainSettings, PretrainOptions)}


def vocabulary_settings(config: dict, name: str) -> dict[str, object]:
    """Size and special tokens of a vocabulary that is made here."""
    return chosen(trained_vocabulary(config, name), VocabularySettings)


def bilstm_settings(config: dict, run: Tuned) -> dict[str, object]:
    """Sizes and training of the baseline without pretraining."""
    return {"task": run.task, "seed": run.seed, **_cut(config), **chosen(config["bilstm"], Sizes, BilstmSettings)}


def _backend(config: dict, model: str) -> dict[str, str]:
    """What computes a model, where that is not left to the programs."""
    return {} if (backend := backend_of(config, model)) == "auto" else {"backend": backend}


def _cut(config: dict) -> dict[str, object]:
    """Where a rehearsal cuts a training."""
    return {"rehearse": config["rehearsal"]["steps"]} if config.get("rehearsal") else {}
