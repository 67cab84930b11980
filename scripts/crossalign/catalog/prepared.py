"""What the programs that prepare sets are told besides the files."""

from crossalign.catalog.labelled import labelled
from crossalign.catalog.sets import SEVERAL_ROOTS, DataSet
from crossalign.catalog.targets import ner_sentences


def prepare_settings(config: dict, data: DataSet) -> dict[str, object]:
    """What the prepare program of the set's kind must know of it."""
    settings = _of_table(config, data) if labelled(config, data) else _BY_KIND[data.kind](config, data)
    latin = data.languages[0] if data.latin else None
    return {name: value for name, value in (settings | {"transliterate": latin}).items() if value not in (None, False)}


def _of_table(config: dict, data: DataSet) -> dict[str, object]:
    entry = labelled(config, data).entry
    columns = [f"{use}={column}" for use, column in entry.get("columns", {}).items()]
    labels = entry.get("labels")
    labels = [f"{theirs}={ours}" for theirs, ours in labels.items()] if isinstance(labels, dict) else labels
    return {"task": entry["task"], "columns": columns or None, "labels": labels}


def _trees(config: dict, data: DataSet) -> dict[str, object]:
    part = data.split if data.fold else None
    return {"fold": data.fold, "part": part, "several_roots": data.plain in SEVERAL_ROOTS}


def _ner(config: dict, data: DataSet) -> dict[str, object]:
    most = ner_sentences(config, data)
    return {"format": data.family, "lang": data.languages[0], "split": data.split, "max_sentences": most}


def _nli(config: dict, data: DataSet) -> dict[str, object]:
    settings = {"format": data.family, "lang": data.languages[0], "split": data.split}
    if data.family == "xnlimixed":
        settings |= {"format": "xnli", "mix_with_english": True, "coin_seed": config["adjust"]["coin_seed"]}
    return settings


def _qa(config: dict, data: DataSet) -> dict[str, object]:
    # Cross-lingual sets name the question's language and then the context's.
    question, context = data.languages[0], data.languages[-1]
    single = {"xquad": "squad", "squadmt": "mlqa-translated"}.get(data.family, data.family)
    form = "xquad-cross" if data.family == "xquad" and question != context else single
    return {"format": form, "question_lang": question, "context_lang": context, "split": data.split}


def _bitext(config: dict, data: DataSet) -> dict[str, object]:
    adjust, form = config["adjust"], "mix" if data.family == "mix" else None
    return {"format": form, "lang": data.languages[0], "pool": adjust["pool"], "max_words": adjust["max_words"]}


def _text(config: dict, data: DataSet) -> dict[str, object]:
    anc, form = config["anc"], "lines" if data.family == "narabizi" else data.family
    # CC100 is far larger than what is read of it: every language gives the same number of sentences.
    share = anc["pretraining_sentences"] // (1 + len(anc["norm_languages"])) if form == "cc100" else None
    return {
        "format": form,
        "lang": data.languages[0],
        "max_sentences": share,
        "overlap": config["pretrain"].get("overlap") or None,
    }


def _parallel(config: dict, data: DataSet) -> dict[str, object]:
    form = "extension" if data.name == "xnliext" else data.name
    return {"format": form, "lang": data.split, "rows": config["anc"]["sentences"] if form == "extension" else None}


_BY_KIND = {
    "trees": _trees, "ner": _ner, "nli": _nli, "qa": _qa, "bitext": _bitext, "text": _text, "parallel": _parallel,
}  # fmt: skip
