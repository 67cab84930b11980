"""How much disk the models of a run take, before it starts. Imported by the plan, so it stays light."""

from collections.abc import Iterable

from crossalign.addresses import Adapted, Run, Tuned, model_of
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


def tuned_bytes(model: Model) -> int:
    """A fine-tuned model in fp32: what training changed, which is all layers and the embeddings of words that occur."""
    layers, neurons = model.layers or USUAL.layers, model.neurons or USUAL.neurons
    return 4 * (12 * layers * neurons**2 + TOUCHED_ROWS * neurons)


def model_disk(config: dict, runs: Iterable[Run], models: dict[str, Model]) -> dict[str, tuple[int, int]]:
    """Number and bytes of the models of a run, by what becomes of them."""
    found: dict[str, list[int]] = {}
    for run in runs:
        start = model_of(run) if isinstance(run, Tuned) else run
        name = getattr(start, "base", None) or getattr(start, "name", "")
        model = models.get(name, USUAL)
        if isinstance(run, Tuned):
            label = "fine-tuned, kept" if kept(config, run) else "fine-tuned, deleted after their last use"
            found.setdefault(label, []).append(tuned_bytes(model))
        elif isinstance(run, Adapted) or name.startswith("mono-"):
            found.setdefault("adapted or pretrained", []).append(4 * (model.parameters or USUAL.parameters))
    return {label: (len(sizes), sum(sizes)) for label, sizes in sorted(found.items())}


def readable(size: float) -> str:
    """12.3 GB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"
