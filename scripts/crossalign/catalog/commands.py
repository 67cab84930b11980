"""Command lines: how the rules tell the programs what to do."""

import shlex

from crossalign.catalog.addresses import Adapted, Adjustment, Tuned, is_continual, model_of, trial_of
from crossalign.catalog.config import pair_count
from crossalign.catalog.sets import SEVERAL_ROOTS, DataSet
from crossalign.catalog.targets import preset, trials_of
from crossalign.catalog.trained_models import own_models, own_vocabularies
from crossalign.fetch.register import Dataset


def options(**values: object) -> str:
    """Options in the order given, quoted for the shell; those that are None, False or empty are left out."""
    words: list[str] = []
    for name, value in values.items():
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif value not in (None, False, ""):
            words += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(words)


def prepare_options(config: dict, data: DataSet) -> str:
    """What the prepare program of the set's kind must know of it."""
    latin = data.languages[0] if data.latin else None
    match data.kind:
        case "trees":
            part = data.split if data.fold else None
            roots = data.plain in SEVERAL_ROOTS
            return options(fold=data.fold, part=part, several_roots=roots, transliterate=latin)
        case "ner":
            return options(format=data.family, lang=data.languages[0], split=data.split, transliterate=latin)
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
            # The rows whose similarity is measured are not learnt.
            skip = anc["sentences"] if form == "mix" else None
            return options(
                format=form, lang=data.languages[0], skip_rows=skip, max_sentences=share, transliterate=latin
            )
        case _:
            form = {"xnliext": "extension"}.get(data.name, data.name)
            rows = config["anc"]["sentences"] if form == "extension" else None
            return options(format=form, lang=data.split, rows=rows)


def file_options(row: Dataset) -> str:
    """What the register says of a file itself: when that changes the file is another one."""
    return options(url=row.url, bytes=row.bytes, checksum=row.checksum, version=row.version)


def way_options(settings: dict) -> str:
    """How files are fetched; none of this changes what they are."""
    return options(
        base_mirror=settings["mirror"],
        base_mirror_checksums=settings["mirror_checksums"] == "mirror",
        offline=settings["offline"],
        attempts=settings["attempts"],
        downloads=settings["folder"],
        lock=settings["lock"],
    )


def finetune_options(config: dict, run: Tuned) -> str:
    """The hyper-parameters of a fine-tuning; a trial of a search has its own batch size and learning rate.

    What has trials gets neither: they say which are best.
    """
    values = preset(config, run.preset)
    init = run.init
    if trial := trial_of(init):
        values, init = values | {"batch": trial[0], "learning_rate": trial[1]}, trial[2]
    elif trials_of(config, run):
        values |= {"batch": None, "learning_rate": None}
    elif is_continual(init):
        init = "ref"
    return options(
        task=run.task,
        init=init,
        seed=run.seed,
        batch=values["batch"],
        learning_rate=values["learning_rate"],
        epochs=values["epochs"],
        warmup=str(values["warmup"]),
        decay=values["schedule"],
        beta1=values["betas"][0],
        beta2=values["betas"][1],
        eps=values["epsilon"],
        weight_decay=str(values["weight_decay"]),
        clip=values["clip"],
        max_length=values["max_length"],
        selection=values["selection"],
        patience=values["patience"] or None,
        examples=values.get("examples"),
    )


def adjustment_options(config: dict, made: Adapted) -> str:
    """How a model is adjusted: what its address says, and the hyper-parameters."""
    values = config["adjustment"]
    return options(
        **_pulled(made.adaptation),
        seed=made.seed,
        batch=values["batch"],
        epochs=values["epochs"],
        learning_rate=values["learning_rate"],
        warmup=str(values["warmup"]),
        beta1=values["betas"][0],
        beta2=values["betas"][1],
        eps=values["epsilon"],
    )


def continual_options(config: dict, run: Tuned) -> str:
    """The second loss of a fine-tuning: on the pairs that its model was adjusted on."""
    values = config["adjustment"]["continual"]
    pulled = {f"continual_{name}": value for name, value in _pulled(model_of(run).adaptation).items()}
    scope = run.init.partition("-")[2] or values["alpha_scope"]
    return options(**pulled, continual_batch=values["batch"], alpha=str(values["alpha"]), alpha_scope=scope)


def _pulled(made: Adjustment) -> dict[str, object]:
    return {"pairs": pair_count(made.pairs), "aggregation": made.aggregation, "tokens": made.tokens}


def mlm_options(config: dict) -> str:
    """How a model goes on with the raw text of a language (`talk`)."""
    values = config["mlm"]
    return options(
        block=values["block"],
        batch=values["batch"],
        epochs=values["epochs"],
        learning_rate=values["learning_rate"],
        eps=values["epsilon"],
        hidden_share=values["masking"],
        selection="best",
    )


def monolingual_options(config: dict) -> str:
    """Shape and training of a model that knows one language only (`talk`)."""
    common, values = config["mlm"], config["mlm"]["monolingual"]
    return options(
        family="bert",
        **{name: values[name] for name in ("layers", "hidden", "heads", "intermediate", "initializer_range")},
        **_dropout(values),
        block=common["block"],
        batch=common["batch"],
        epochs=values["epochs"],
        learning_rate=values["learning_rate"],
        eps=values["epsilon"],
        hidden_share=common["masking"],
        selection="best",
    )


def pretraining_options(config: dict, name: str) -> str:
    """Shape, norm scheme and training of one of the models that differ in normalisation (`anc`)."""
    values = config["pretraining"]
    # scale-<norm>, or scale-<norm>-v2 for a second random start.
    _, norm, *second = name.split("-")
    return options(
        norm=norm,
        residual_scaling=_scaled(values, norm),
        **{key: values[key] for key in ("layers", "hidden", "heads", "intermediate", "block", "batch", "steps")},
        learning_rate=values["learning_rate"],
        warmup=str(values["warmup"]),
        weight_decay=str(values["weight_decay"]),
        eps=values["epsilon"],
        **_dropout(values),
        hidden_share=values["masking"],
        # ANC 4.1: all languages alike.
        exponent="0.0",
        seed=2 if second else 1,
    )


def vocabulary_options(config: dict, name: str) -> str:
    """Size and special tokens of a vocabulary of one's own."""
    values = own_vocabularies(config)[name]
    return options(size=values["size"], style=values["style"], most_lines=values["lines"])


def own_model_options(config: dict, name: str) -> str:
    """Shape and training of a model of one's own."""
    values = own_models(config)[name]
    masked = values["objective"] == "mlm"
    shape = ("layers", "hidden", "heads", "intermediate", "block", "batch", "steps", "learning_rate")
    return options(
        objective=values["objective"],
        # A causal model has one form only, and its positions are waves anyway.
        norm=values["norm"] if masked else None,
        residual_scaling=masked and _scaled(values, values["norm"]),
        position_waves=str(values["position_waves"]) if masked and values.get("position_waves") else None,
        **{key: values[key] for key in shape},
        **{key: str(values[key]) for key in ("initializer_range", "warmup", "weight_decay", "exponent")},
        eps=values.get("epsilon"),
        **_dropout(values),
        tuning_dropout=str(values.get("tuning_dropout", values["dropout"])),
        hidden_share=values["masking"],
        seed=values["seed"],
        store=values["store"],
    )


def _dropout(values: dict) -> dict[str, str | None]:
    # As text, because a share of 0 is a setting too.
    shares = {name: values.get(name) for name in ("dropout", "attention_dropout")}
    return {name: None if share is None else str(share) for name, share in shares.items()}


def _scaled(values: dict, norm: str) -> bool:
    return norm == "normformer" and bool(values.get("residual_scaling"))


def bilstm_options(config: dict, run: Tuned) -> str:
    """Sizes and training of the baseline without pretraining."""
    return options(task=run.task, seed=run.seed, **{name: str(value) for name, value in config["bilstm"].items()})
