"""What things are called in tables and figures. One name for one thing, everywhere."""

from crossalign.results.published import languages
from crossalign.tasks import declared

TASKS = {name: task.label for name, task in declared.TASKS.items()}
METRICS = {name: task.metric for name, task in declared.TASKS.items()}

MODELS = {
    "mbert": "mBERT",
    "xlmr-base": "XLM-R base",
    "xlmr-large": "XLM-R large",
    "xlmr-xl": "XLM-R XL",
    "xlmr-xxl": "XLM-R XXL",
    "xglm-564m": "XGLM 564M",
    "xglm-1.7b": "XGLM 1.7B",
    "xglm-2.9b": "XGLM 2.9B",
    "xglm-4.5b": "XGLM 4.5B",
    "xglm-7.5b": "XGLM 7.5B",
    "scale-post": "Post-LN",
    "scale-pre": "Pre-LN",
    "scale-normformer": "NormFormer",
    "scale-normformer-v2": "NormFormer, second run",
    "embert-hi": "Extended mBERT",
}

# What was done about the length of sentences, which alone makes translations alike.
CONTROLS = {
    "none": "as measured",
    "strangers": "minus strangers of the same length",
    "length": "length taken out",
}


def language(code: str) -> str:
    """The name of a language; an unknown code is its own name."""
    return languages().get(code, {}).get("name", code)


def model(name: str) -> str:
    """The name of a model."""
    return MODELS.get(name, name)


def systems(base: str) -> dict[str, str]:
    """The four systems of the talk, of which two begin with the model `base`."""
    return {"bilstm": "BiLSTM", "mono": "MLM from scratch", "mbert": model(base), "mlm": f"{model(base)}+MLM"}


def task(name: str) -> str:
    """A task and its metric: Parsing (LAS)."""
    return f"{TASKS[name]} ({METRICS[name]})"


def init(name: str) -> str:
    """An initialisation: `random-1-2` -> layers 1-2."""
    if name == "ref":
        return "REF"
    layers = name.removeprefix("random-")
    return "all layers" if layers == "all" else f"layers {layers}" if "-" in layers else f"layer {layers}"
