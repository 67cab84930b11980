"""Score one tuned model on all its target sets.

In: the tuned model, the base model that it was tuned from, and prepared sets as NAME=FILE. Out: scores in percent,
{set: {metric: value}}, and per-example predictions for significance tests (compressed JSON lines, which
`crossalign.tasks.predictions` reads).
"""

import argparse
import logging
from pathlib import Path

from crossalign.errors import UserError, run_main

log = logging.getLogger("evaluate")


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuned", required=True, type=Path, help="folder with the tuned model")
    parser.add_argument("--base", required=True, type=Path, help="folder of the model that it was tuned from")
    parser.add_argument("--sets", required=True, nargs="+", metavar="NAME=FILE")
    parser.add_argument("--out", required=True, type=Path, help="scores (JSON)")
    parser.add_argument("--predictions", type=Path, help="predictions (.jsonl.gz)")
    parser.add_argument("--max-length", type=int, help="tokens per example; as in training if not given")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--precision", default="auto", help="auto, fp32 or bf16")
    return parser.parse_args()


def named_files(pairs: list[str]) -> dict[str, Path]:
    """The files of `--sets` by name."""
    files: dict[str, Path] = {}
    for pair in pairs:
        name, sign, file = pair.partition("=")
        if not (name and sign and file):
            raise UserError(f"--sets {pair}: NAME=FILE was expected, such as fr_pud=data/trees/fr_pud/test.conllu")
        if name in files:
            raise UserError(f"--sets {pair}: the name '{name}' is given twice")
        files[name] = Path(file)
    return files


def main() -> None:
    """Load, predict, score, write."""
    args = parse_args()
    files = named_files(args.sets)

    from crossalign.tasks.evaluation import evaluate_sets
    from crossalign.tasks.predictions import write_predictions, write_scores
    from crossalign.training.device import choose_device, choose_precision
    from crossalign.training.predict import predict_all
    from crossalign.training.tuned import load_tuned

    device = choose_device(args.device)
    tuned = load_tuned(args.tuned, args.base)
    # Reading may fail, and does so in a moment; the model moves to the device after it.
    sets = {name: tuned.task.read(file) for name, file in sorted(files.items())}
    model = tuned.model.place(device, choose_precision(args.precision, device))
    wanted = args.max_length or tuned.info["settings"]["max_length"]
    longest = min(wanted, model.encoder.config.max_length)
    scores, rows = evaluate_sets(
        tuned.task, sets, tuned.tokenizer, longest, lambda examples: predict_all(model, tuned.task, examples, device)
    )
    for name, values in scores.items():
        log.info("%s: %s %.2f", name, tuned.task.metric, values[tuned.task.metric])
        unseen = values.get("unseen_labels", 0)
        if unseen:
            log.warning(
                "%s: %d words have a label that was not in the training data; they count as errors", name, unseen
            )
    if args.predictions:
        write_predictions(args.predictions, tuned.task.name, tuned.task.labels, rows)
    write_scores(args.out, scores)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
