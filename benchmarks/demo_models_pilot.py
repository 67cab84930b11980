"""Short trials of benchmarks/demo_models.py: which learning rate and initialiser leave the plateau soonest."""

from pathlib import Path
from typing import Any

from crossalign.training.corpus import encode_texts
from crossalign.training.pretrain import Pretraining

# Changes of the defaults of models.yaml.
TRIALS: dict[str, dict[str, dict[str, float]]] = {
    "as planned": {},
    "rate 2e-3": {"training": {"learning_rate": 2e-3}},
    "std 0.02, rate 2e-3": {"shape": {"initializer_range": 0.02}, "training": {"learning_rate": 2e-3}},
    "std 0.03, rate 3e-3": {"shape": {"initializer_range": 0.03}, "training": {"learning_rate": 3e-3}},
}


def trial(bench: Any, name: str, change: dict[str, dict[str, float]], models: Path) -> list[list[float]]:
    """The loss curve of one setting: the planned warm-up, then a constant rate."""
    model = bench.plan["models"][name]
    settings = bench.settings(model, 1.0, **change.get("training", {}))
    if not bench.args.tiny:
        settings.warmup = min(0.9, settings.warmup * settings.steps / bench.args.pilot)
        settings.steps, settings.decay = bench.args.pilot, "constant"
    start = bench.start(model, 1, models, **change.get("shape", {}))
    files = encode_texts(bench.texts(model["texts"]), start.tokenizer, bench.tokens)
    training = Pretraining(start.encoder, start.head, start.tokenizer, files, settings, bench.device)
    training.run()
    return training.curve()


def choose(bench: Any, name: str, models: Path) -> None:
    """Try all, tell the curves, and make the best the default of the plan."""
    curves: dict[str, list[list[float]]] = {}
    for label, change in TRIALS.items():
        try:
            curve = trial(bench, name, change, models)
        except Exception as error:
            # A loss that breaks speaks against the setting, not against the others.
            bench.say(f"trial, {label}: {error}")
            continue
        curves[label] = curve
        marks = [curve[min(len(curve) - 1, len(curve) * i // 10)] for i in range(1, 11)]
        bench.say(f"trial, {label}: " + ", ".join(f"{step}: {loss:.2f}" for step, loss in marks))
    best = min(curves, key=lambda label: sum(loss for _, loss in curves[label][-10:]))
    for part, values in TRIALS[best].items():
        bench.plan["defaults"][part].update(values)
    bench.results["pilot"] = {"curves": curves, "chosen": best, "defaults": bench.plan["defaults"]}
    bench.say(f"chosen: {best}")
