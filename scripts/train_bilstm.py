r"""Train a BiLSTM on one task with one seed and score it on its target sets.

Reads prepared train and dev sets and, as NAME=FILE, the sets to score. Writes OUT/scores.json,
OUT/predictions.jsonl.gz, OUT/training.json and OUT/model, as a fine-tuned transformer has them. Goes on from the newest
checkpoint, unless other code wrote it. SIGTERM saves a checkpoint and ends with status 75, which asks to be started
again.

Example:
    python scripts/train_bilstm.py --task parsing --train results/demo/data/trees/gsw_uzh+fold1/train.conllu \
        --dev results/demo/data/trees/gsw_uzh+fold1/dev.conllu --settings '{"epochs": 4}' --out bilstm \
        --sets trees/gsw_uzh+fold1/test=results/demo/data/trees/gsw_uzh+fold1/test.conllu
"""

import argparse
import logging
import time
from pathlib import Path

from crossalign.engine.programs import add_run, circumstances, named_sets, set_name
from crossalign.engine.settings import BilstmSettings, Sizes, checked, part
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import run_main

log = logging.getLogger("train_bilstm")


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--task", required=True, help="parsing, pos or ner")
    add("--train", required=True, type=Path)
    add("--dev", type=Path, help="decides which epoch is kept and when to stop")
    add("--sets", nargs="+", default=[], metavar="[NAME=]FILE", help="such as trees/wo_wtb/test=FILE")
    add_run(parser)
    return read_args(parser, settings=True)


def main() -> None:
    """Train, score, write."""
    args = parse_args()
    started = time.monotonic()
    files = named_sets(args.sets, "--sets", set_name)

    from crossalign.engine.bilstm import Lexicon
    from crossalign.engine.bilstm_training import WordTraining, save_word_model
    from crossalign.engine.checkpoints import Saving, requeued
    from crossalign.engine.device import choose_device
    from crossalign.runtime.files import write_json
    from crossalign.tasks.evaluation import evaluate_sets
    from crossalign.tasks.predictions import write_predictions, write_scores
    from crossalign.tasks.words import get_word_task

    task = get_word_task(args.task)
    given = checked(args.settings, Sizes, BilstmSettings, place=args.place)
    sizes = Sizes(**part(Sizes, given))
    chosen = {"selection": "best" if args.dev else "last"} | part(BilstmSettings, given)
    settings = BilstmSettings(**chosen, seed=args.seed)
    settings.check_dev(args.dev)
    train = task.read(args.train)
    task = task.with_labels_of(train)
    dev = task.read(args.dev) if args.dev else []
    sets = {name: task.read(file) for name, file in sorted(files.items())}
    device = choose_device(args.device)
    training = WordTraining(
        task, Lexicon.of(task.words(train)), sizes, train, dev, settings, device, args.checkpoints, args.code_hash,
        Saving(steps=args.save_steps, rehearse=args.rehearse), settings.least_steps,
    )  # fmt: skip
    with requeued():
        model = training.run()
    info = {"init": "ref", "seed": args.seed, "recipe": args.code_hash, "settings": settings.model_dump()}
    save_word_model(args.out / "model", model, info)
    scores, rows = evaluate_sets(task, sets, model.lexicon, 0, lambda examples: model.predict(examples, device))
    for name, values in scores.items():
        log.info("%s: %s %.2f", name, task.metric, values[task.metric])
    write_predictions(args.out / "predictions.jsonl.gz", task.name, task.labels, rows)
    report = {
        **info,
        "sizes": sizes.model_dump(),
        "task": task.name,
        "examples": len(training.train_store),
        "steps": training.progress.step,
        "passes_per_epoch": training.passes,
        **training.progress.course(),
        **circumstances(training.progress, device, started),
    }
    write_json(args.out / "training.json", report)
    write_scores(args.out / "scores.json", scores)
    training.checkpoints.remove()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
