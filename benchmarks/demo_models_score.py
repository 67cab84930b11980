"""How multilingual a demo model is: zero-shot tagging and sentence matching, beside random weights and majority."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crossalign.engine.encoder import Encoder, restore_vocabulary
from crossalign.engine.finetune import FineTuning
from crossalign.engine.hyperparameters import Settings
from crossalign.engine.random_init import fresh_encoder
from crossalign.engine.task_model import iterate_batches, make_store, predict_all
from crossalign.engine.tokens import Specials, text_ids
from crossalign.tasks import get_task
from crossalign.tasks.evaluation import evaluate_sets


def random_copy(encoder: Encoder, seed: int) -> Encoder:
    """A model of the same shape that was never trained."""
    return fresh_encoder(encoder.config, seed)


def tag(
    encoder: Encoder, tokenizer: Any, sets: dict[str, list], settings: Settings, device: torch.device
) -> dict[str, float]:
    """Fine-tune on the set `train`, return the accuracy on all others."""
    task = get_task("pos")
    full = encoder.embeddings.word.weight.detach().clone()
    tuning = FineTuning(encoder, tokenizer, task, sets["train"], sets["dev"], settings, device=device)
    model = tuning.run()
    restore_vocabulary(model.encoder, full)
    model.to(device)
    tests = {name: records for name, records in sets.items() if name not in ("train", "dev")}
    scores, _ = evaluate_sets(
        task, tests, tokenizer, encoder.config.max_length, lambda examples: predict_all(model, task, examples, device)
    )
    return {name: values["accuracy"] for name, values in scores.items()}


def majority(records: list[dict]) -> float:
    """Accuracy of the set's own most frequent tag."""
    tags = Counter(tag for record in records for tag in record["upos"])
    return 100 * tags.most_common(1)[0][1] / sum(tags.values())


def embed(encoder: Encoder, tokenizer: Any, texts: list[str], device: torch.device) -> np.ndarray:
    """Mean vectors of the tokens of each sentence without the special ones: layers x sentences x neurons."""
    specials = Specials.of(tokenizer)
    table = text_ids(tokenizer, texts)
    room = specials.room(encoder.config.max_length)
    store = make_store(encoder, [{"input_ids": specials.single(table[text][:room])} for text in texts], {})
    encoder.to(device).eval()
    result = np.zeros((len(encoder.layers) + 1, len(texts), encoder.config.hidden), dtype=np.float32)
    with torch.inference_mode():
        for members, batch, states in iterate_batches(encoder, store, device, all_layers=True):
            inside = batch["attention_mask"].clone()
            inside[:, 0] = False
            ends = torch.as_tensor(store.lengths[members] - 1, device=device)
            inside[torch.arange(len(members), device=device), ends] = False
            weights = inside.float()[..., None]
            for layer, state in enumerate(states):
                result[layer, members] = ((state.float() * weights).sum(1) / weights.sum(1)).cpu().numpy()
    return result


def matching(left: np.ndarray, right: np.ndarray) -> list[float]:
    """Per layer the percentage of sentences whose translation has the highest cosine of all in the other language."""
    scores = []
    for a, b in zip(left.astype(np.float64), right.astype(np.float64), strict=True):
        a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (a, b))
        scores.append(100 * float((np.argmax(a @ b.T, axis=1) == np.arange(len(a))).mean()))
    return scores


def match_all(
    encoder: Encoder, tokenizer: Any, parallel: dict[str, list[str]], device: torch.device
) -> dict[str, list[float]]:
    """Matching of English with every other language, layer by layer."""
    vectors = {lang: embed(encoder, tokenizer, texts, device) for lang, texts in parallel.items()}
    return {lang: matching(vectors["en"], vectors[lang]) for lang in sorted(vectors) if lang != "en"}


def read_sets(folder: Path, limit: int | None = None) -> tuple[dict[str, list], dict[str, list[str]]]:
    """Records of the treebanks, and the texts of the parallel ones."""
    task = get_task("pos")
    records = {name: task.read(folder / f"en_ewt-{name}.conllu")[:limit] for name in ("train", "dev")}
    records["en_ewt"] = task.read(folder / "en_ewt-test.conllu")[:limit]
    parallel = {}
    for path in sorted(folder.glob("*_pud-test.conllu")):
        lang = path.name.split("_")[0]
        records[lang] = task.read(path)[:limit]
        with path.open(encoding="utf-8", newline="\n") as stream:
            texts = [line.partition("=")[2].strip() for line in stream if line.startswith("# text =")]
        parallel[lang] = texts[:limit]
    return records, parallel


def read_premises(folder: Path, limit: int | None = None) -> dict[str, list[str]]:
    """The premises of the extended XNLI, line by line parallel."""
    files = sorted(folder.glob("xnliext-*.txt"))
    return {path.stem.partition("-")[2]: path.read_text(encoding="utf-8").splitlines()[:limit] for path in files}


def table(results: dict[str, Any]) -> str:
    """Markdown: one row per language."""
    tagged, random_tagged, matched, random_matched = (
        results[key] for key in ("pos", "pos_random", "matching", "matching_random")
    )
    layers = len(next(iter(matched.values())))
    shown = sorted({0, layers // 4, layers // 2, 3 * layers // 4, layers - 1})
    lines = [
        "| set | POS zero-shot | random weights | majority | matching by layer "
        + ", ".join(map(str, shown))
        + " | best | random weights, best |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in results["order"]:
        runs = [run[name] for run in tagged]
        cells = [
            name,
            f"{np.mean(runs):.1f} ({', '.join(f'{value:.1f}' for value in runs)})",
            f"{np.mean([run[name] for run in random_tagged]):.1f}",
            f"{results['majority'][name]:.1f}",
        ]
        if name in matched:
            scores = matched[name]
            cells += [", ".join(f"{scores[layer]:.0f}" for layer in shown), f"{max(scores):.0f}"]
            cells.append(f"{max(random_matched[name]):.0f}")
        else:
            cells += ["", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def score(
    encoder: Encoder, tokenizer: Any, sets: dict[str, list], parallel: dict[str, list[str]], rate: float, epochs: int,
    seeds: list[int], precision: str, device: torch.device,
) -> dict[str, Any]:  # fmt: skip
    """Everything that `table` shows."""
    import copy

    results: dict[str, Any] = {
        "matching": match_all(copy.deepcopy(encoder), tokenizer, parallel, device),
        "matching_random": match_all(random_copy(encoder, 1), tokenizer, parallel, device),
        "majority": {name: majority(records) for name, records in sets.items() if name not in ("train", "dev")},
        "pos": [],
        "pos_random": [],
    }
    for seed in seeds:
        settings = Settings(
            learning_rate=rate, batch=16, epochs=epochs, selection="last", seed=seed, precision=precision
        )
        results["pos"].append(tag(copy.deepcopy(encoder), tokenizer, sets, settings, device))
        results["pos_random"].append(tag(random_copy(encoder, seed), tokenizer, sets, settings, device))
    means = {name: np.mean([run[name] for run in results["pos"]]) for name in results["majority"]}
    results["order"] = sorted(means, key=lambda name: (name not in ("en_ewt", "en"), -means[name]))
    return results
