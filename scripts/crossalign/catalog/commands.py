"""Command lines: how the rules tell the programs what to do."""

import shlex

from crossalign.catalog.addresses import Adapted, Adjustment, Tuned, is_continual, model_of, trial_of
from crossalign.catalog.config import pair_count
from crossalign.catalog.labelled import labelled
from crossalign.catalog.sets import SEVERAL_ROOTS, DataSet
from crossalign.catalog.studied import backend_of
from crossalign.catalog.targets import ner_sentences, preset, trials_of
from crossalign.catalog.trained_models import trained_model, trained_vocabulary
from crossalign.engine.hyperparameters import (
    AdjustmentSettings,
    BilstmSettings,
    ContinualSettings,
    Settings,
    Sizes,
    described,
)
from crossalign.engine.pretrain_settings import ModelShape, PretrainOptions, PretrainSettings, VocabularySettings
from crossalign.fetch.labelled import HubSplit
from crossalign.fetch.register import Dataset

# Of each Wikipedia that stands for open text: about what the largest open texts have.
OPEN_SENTENCES = 300_000


def options(**values: object) -> str:
    """Options in the order given, quoted for the shell; those that are None, False or empty are left out."""
    words: list[str] = []
    for name, value in values.items():
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif isinstance(value, list):
            words += [f"--{name.replace('_', '-')}", *map(str, value)]
        elif value not in (None, False, ""):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def prepare_options(config: dict, data: DataSet) -> str:
    """What the prepare program of the set's kind must know of it."""
    latin = data.languages[0] if data.latin else None
    if own := labelled(config, data):
        columns = [f"{use}={column}" for use, column in own.entry.get("columns", {}).items()]
        labels = own.entry.get("labels")
        labels = [f"{theirs}={ours}" for theirs, ours in labels.items()] if isinstance(labels, dict) else labels
        return options(task=own.entry["task"], columns=columns or None, labels=labels)
    match data.kind:
        case "trees":
            part = data.split if data.fold else None
            roots = data.plain in SEVERAL_ROOTS
            return options(fold=data.fold, part=part, several_roots=roots, transliterate=latin)
        case "ner":
            return options(
                format=data.family,
                lang=data.languages[0],
                split=data.split,
                max_sentences=ner_sentences(config, data),
                transliterate=latin,
            )
        case "nli":
            mixed = data.family == "xnlimixed"
            return options(
                format="xnli" if mixed else data.family,
                lang=data.languages[0],
                split=data.split,
                mix_with_english=mixed,
                coin_seed=config["adjust"]["coin_seed"] if mixed else None,
            )
        case "qa":
            # Cross-lingual sets name the question's language and then the context's.
            question, context = data.languages[0], data.languages[-1]
            single = {"xquad": "squad", "squadmt": "mlqa-translated"}.get(data.family, data.family)
            form = "xquad-cross" if data.family == "xquad" and question != context else single
            return options(format=form, question_lang=question, context_lang=context, split=data.split)
        case "bitext":
            adjust = config["adjust"]
            form = "mix" if data.family == "mix" else None
            return options(format=form, lang=data.languages[0], pool=adjust["pool"], max_words=adjust["max_words"])
        case "text":
            form = "lines" if data.family == "narabizi" else data.family
            # CC100 is far larger than what is read of it: every language gives the same number of sentences.
            anc = config["anc"]
            share = anc["pretraining_sentences"] // (1 + len(anc["norm_languages"])) if form == "cc100" else None
            if form == "wikipedia" and config.get("open_text") == "wikipedia":
                share = OPEN_SENTENCES
            # The rows whose similarity is measured are not learnt.
            skip = anc["sentences"] if form == "mix" else None
            return options(
                format=form,
                lang=data.languages[0],
                skip_rows=skip,
                max_sentences=share,
                overlap=config["pretrain"].get("overlap") or None,
                transliterate=latin,
            )
        case _:
            form = {"xnliext": "extension"}.get(data.name, data.name)
            rows = config["anc"]["sentences"] if form == "extension" else None
            return options(format=form, lang=data.split, rows=rows)


def split_options(split: HubSplit) -> str:
    """Which files of the hub are a split of a labelled set."""
    return options(name=split.name, split=split.split, hub=split.hub, revision=split.revision, files=split.files)


def file_options(row: Dataset) -> str:
    """What the register says of a file itself: when that changes the file is another one."""
    return options(url=row.url, bytes=row.bytes, checksum=row.checksum, version=row.version)


def way_options(settings: dict, output: str, path: str) -> str:
    """How a file is fetched; none of this changes what it is. `output` may lie in a copy of remote storage."""
    return options(
        base_mirror=settings["mirror"],
        base_mirror_checksums=settings["mirror_checksums"] == "mirror",
        offline=settings["offline"],
        attempts=settings["attempts"],
        downloads=output.removesuffix(f"/{path}"),
        lock=settings["lock"],
    )


def training_options(values: dict, *kinds: type, prefix: str = "", **others: object) -> str:
    """The settings of some trainings under their own names; those that are not given are left to the program."""
    names = [each.name for kind in kinds for each, _ in described(kind)]
    # As text, because 0 is a setting too.
    given = {name: values[name] for name in names if values.get(name) is not None}
    told = {prefix + name: value if isinstance(value, bool | list) else str(value) for name, value in given.items()}
    return options(**others, **told)


def finetune_options(config: dict, run: Tuned) -> str:
    """The hyper-parameters of a fine-tuning; a trial of a search has its own batch size and learning rate.

    What has trials gets neither: they say which are best.
    """
    values = preset(config, run.preset)
    init = run.init
    if trial := trial_of(init):
        # Its rate is what it is about, so it does not start again with another.
        values, init = values | {"batch": trial[0], "learning_rate": trial[1], "restart_below": None}, trial[2]
    elif trials_of(config, run):
        values |= {"batch": None, "learning_rate": None}
    elif is_continual(init):
        init = "ref"
    told = forced(config, run.model) | rehearsed(config)
    return training_options(values, Settings, task=run.task, init=init, seed=run.seed, **told)


def forced(config: dict, model: str) -> dict[str, str]:
    """The option for what computes a model, where that is not left to the programs."""
    chosen = backend_of(config, model)
    return {} if chosen == "auto" else {"backend": chosen}


def rehearsed(config: dict) -> dict[str, object]:
    """Where a rehearsal cuts a training."""
    return {"rehearse": config["rehearsal"]["steps"]} if config.get("rehearsal") else {}


def adjustment_options(config: dict, made: Adapted) -> str:
    """How a model is adjusted: what its address says, and the hyper-parameters."""
    values = config["adjustment"] | _pulled(made.adaptation)
    told = forced(config, made.base) | rehearsed(config)
    return training_options(values, AdjustmentSettings, seed=made.seed, **told)


def continual_options(config: dict, run: Tuned) -> str:
    """The second loss of a fine-tuning: on the pairs that its model was adjusted on."""
    values = config["adjustment"]["continual"] | _pulled(model_of(run).adaptation)
    scope = run.init.partition("-")[2] or values["alpha_scope"]
    return training_options(values | {"alpha_scope": scope}, ContinualSettings, prefix="continual_")


def _pulled(made: Adjustment) -> dict[str, object]:
    return {"pairs": pair_count(made.pairs), "aggregation": made.aggregation, "tokens": made.tokens}


def mlm_options(config: dict) -> str:
    """How a model goes on with the raw text of a language (`talk`)."""
    return training_options(config["mlm"], PretrainSettings, PretrainOptions, **rehearsed(config))


def vocabulary_options(config: dict, name: str) -> str:
    """Size and special tokens of a vocabulary that is made here."""
    return training_options(trained_vocabulary(config, name), VocabularySettings)


def pretrain_options(config: dict, name: str) -> str:
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
    return training_options(values, *shape, PretrainSettings, PretrainOptions, seed=values["seed"], **rehearsed(config))


def bilstm_options(config: dict, run: Tuned) -> str:
    """Sizes and training of the baseline without pretraining."""
    return training_options(config["bilstm"], Sizes, BilstmSettings, task=run.task, seed=run.seed, **rehearsed(config))
