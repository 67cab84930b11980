"""How much disk the models of a run take, before it starts. Imported by the plan, so it stays light."""

from collections.abc import Callable, Iterable

from crossalign.catalog.addresses import Adapted, Run, Tuned
from crossalign.catalog.trained_models import trained_model
from crossalign.fetch.register import Model

# Word pieces that occur in a training set, hence rows of the embeddings that a fine-tuning writes: English EWT has
# about 12,000 of mBERT's, MultiNLI 25,000.
TOUCHED_ROWS = 20_000
# A model whose size the register does not say, such as one of a single language: as BERT base.
USUAL = Model("", "", "", None, "", "", 110_000_000, 12, 768, "", "")


def kept(config: dict, run: Tuned) -> bool:
    """Whether a fine-tuned model stays on disk after its last use; `rules/finetune.smk` does so."""
    whole = run.model == "bilstm" or not run.init.startswith(("random-", "grid-"))
    return config["keep_models"] == "all" or run.model == "bilstm" or (whole and config["keep_models"] == "ref")


def tuned_bytes(shape: tuple[int, int]) -> int:
    """A fine-tuned model in fp32: what training changed, which is all layers and the embeddings of words that occur."""
    layers, neurons = shape
    return 4 * (12 * layers * neurons**2 + TOUCHED_ROWS * neurons)


def model_disk(
    config: dict, runs: Iterable[Run], models: dict[str, Model], shape: Callable[[Run], tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Number and bytes of the models that a run makes, by what becomes of them; `shape` tells layers and neurons."""
    found: dict[str, list[int]] = {}
    for run in runs:
        if isinstance(run, Tuned):
            label = "fine-tuned, kept" if kept(config, run) else "fine-tuned, deleted after their last use"
            found.setdefault(label, []).append(tuned_bytes(_shape(config, run, shape)))
        else:
            name = run.base if isinstance(run, Adapted) else run.name
            whole = 4 * (models.get(name, USUAL).parameters or USUAL.parameters)
            # Models that are made here or lie in a folder may have any size, whatever the register says of their names.
            known = config["models"] == "hub" and not trained_model(config, name)
            size = whole if known else tuned_bytes(shape(run))
            found.setdefault("adapted or pretrained", []).append(size)
    return {label: (len(sizes), sum(sizes)) for label, sizes in sorted(found.items())}


def _shape(config: dict, run: Tuned, shape: Callable[[Run], tuple[int, int]]) -> tuple[int, int]:
    """A BiLSTM starts from no model; its layers count as much as those of an encoder as wide."""
    return (config["bilstm"]["layers"], config["bilstm"]["hidden"]) if run.model == "bilstm" else shape(run)


def readable(size: float) -> str:
    """12.3 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
