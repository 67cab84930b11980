r"""Fine-tune one model on one task with one seed.

Reads a model folder and prepared train and dev sets; writes OUT/model (what training changed) and OUT/training.json.
Goes on from the newest checkpoint, unless other code wrote it. SIGTERM saves a checkpoint and ends with status 75,
which asks to be started again. With the setting `restart_below` a training that its dev set shows to have failed starts
again with half the rate. With --sets it then tests the model.

Example:
    python scripts/finetune.py --model resources/demo/models/mbert --task parsing --init random-1-2 --seed 1 \
        --train results/demo/data/trees/en_ewt/train.conllu --dev results/demo/data/trees/en_ewt/dev.conllu \
        --settings '{"learning_rate": 1.5e-3, "epochs": 2}' --out tuned
"""

import argparse
import gc
import logging
import time
from pathlib import Path

from crossalign.engine.identity import folder_identity
from crossalign.engine.programs import (
    add_backend,
    add_precision,
    add_run,
    add_tokens,
    circumstances,
    leave,
    run_program,
)
from crossalign.engine.settings import ContinualSettings, Settings, checked
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.stages import Stages

log = logging.getLogger("finetune")
stages = Stages()

# How often a training that failed may start again, each time with half the rate.
RESTARTS = 2


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, type=Path, help="folder with config.json, safetensors, tokenizer")
    parser.add_argument("--task", required=True, help="pos, parsing, ner, nli or qa")
    parser.add_argument("--train", required=True, type=Path)
    parser.add_argument("--dev", type=Path, nargs="?")
    parser.add_argument("--init", default="ref", help="ref, random-1-2, random-all, ...")
    add_run(parser)
    add_tokens(parser)
    add_precision(parser)
    add_backend(parser)
    parser.add_argument(
        "--trials", nargs="*", type=Path, metavar="FILE",
        help="training.json of trials: batch and rate are those of the best on the dev set",
    )  # fmt: skip
    group = parser.add_argument_group("continual learning: a second loss on word-linked sentence pairs")
    group.add_argument(
        "--continual-bitext", type=Path, nargs="?", help="the pool of sentence pairs; switches the loss on"
    )
    group.add_argument("--continual-links", type=Path, nargs="?", help="its links")
    group.add_argument(
        "--continual-reference", type=Path, nargs="?", help="folder of the model as it was before its adjustment"
    )
    group = parser.add_argument_group("test: by this process, which has everything loaded")
    group.add_argument("--sets", nargs="*", metavar="[NAME=]FILE", help="sets to test the model on")
    group.add_argument("--test-code", nargs="?", default="", help="identifies the code of the test, for --tokens")
    return read_args(parser, settings=True)


def main() -> None:
    """Train, then do what else is asked for; only then is no checkpoint needed any more."""
    args = parse_args()
    checkpoints = train(args)
    if args.sets:
        test(args)
    for restart, checkpoint in enumerate(checkpoints):
        checkpoint.remove()
        if restart and checkpoint.path and checkpoint.path.parent.exists():
            checkpoint.path.parent.rmdir()


def train(args: argparse.Namespace) -> list:
    """Train and write the result; the checkpoints of all attempts."""
    started = time.monotonic()

    from crossalign.engine.checkpoints import Saving, requeued
    from crossalign.engine.device import choose_device, choose_precision, wake
    from crossalign.engine.examples import Encoded
    from crossalign.engine.finetune import FineTuning
    from crossalign.engine.folders import load_encoder
    from crossalign.engine.task_model import save_tuned
    from crossalign.runtime.files import write_json
    from crossalign.tasks import get_task

    device = choose_device(args.device)
    awake = wake(device)
    given = checked(
        {name: value for name, value in args.settings.items() if name != "continual"}, Settings, place=args.place
    )
    chosen, trials = _chosen(args, given)
    settings = Settings(**given | chosen, seed=args.seed, precision=choose_precision(args.precision, device))
    settings.check_dev(args.dev)
    stages.end("start")
    gc.disable()  # until training: of the many small objects that are read none can go yet
    task = get_task(args.task)
    examples = task.read(args.train)[: settings.examples]
    task = task.with_labels_of(examples)
    dev = task.read(args.dev) if args.dev else []
    stages.end("read")
    restarts: list[dict] = []
    checkpoints = []
    while True:
        encoder, tokenizer = load_encoder(args.model, args.backend)
        auxiliary, continual = _continual(args, encoder, tokenizer, device, settings.precision)
        awake()
        stages.end("load")
        training = FineTuning(
            encoder, tokenizer, task, examples, dev, settings, args.init, device, _folder(args, len(restarts)),
            args.code_hash, auxiliary, saving=Saving(steps=args.save_steps, rehearse=args.rehearse),
            identity=[folder_identity(args.model), continual],
            encode=Encoded(args.tokens, args.code_hash, args.model, {"train": args.train, "dev": args.dev}),
        )  # fmt: skip
        checkpoints.append(training.checkpoints)
        gc.enable()
        stages.end("prepare")
        with requeued():
            model = training.run()
        stages.end("train")
        if not training.failed or len(restarts) == RESTARTS:
            break
        score, rate = training.last_score, settings.learning_rate
        log.warning("dev %s %.2f at the end, with learning rate %g: again with half of it", task.metric, score, rate)
        restarts.append({"learning_rate": rate, "dev": round(score, 4), "seconds": round(training.progress.seconds, 2)})
        settings = settings.model_copy(update={"learning_rate": rate / 2})
        del encoder, auxiliary, training, model  # before the next ones need their memory
    info = {"init": args.init, "seed": args.seed, "recipe": args.code_hash, "settings": settings.model_dump()}
    info["backend"] = encoder.backend
    if continual:
        info["continual"] = continual
    if trials:
        info["trials"] = trials
    if restarts:
        info["restarts"] = restarts
    save_tuned(args.out / "model", args.model, model, task, info)
    history = training.progress
    history.seconds += sum(attempt["seconds"] for attempt in restarts)
    report = {
        **info,
        "task": task.name,
        "examples": len(training.train_store),
        "steps": history.step,
        **history.course(),
        **circumstances(history, device, started),
    }
    write_json(args.out / "training.json", report)
    stages.end("write")
    log.info("seconds: %s", stages)
    return checkpoints


def test(args: argparse.Namespace) -> None:
    """Test the model; the other program has its own name for what this one has written."""
    places = ["--tuned", args.out / "model", "--base", args.model, "--out", args.out / "scores.json"]
    places += ["--predictions", args.out / "predictions.jsonl.gz", "--code-hash", args.test_code]
    places += ["--tokens", args.tokens] if args.tokens else []
    run_program(str(Path(__file__).with_name("evaluate.py")), *places, "--sets", *args.sets)


def _folder(args: argparse.Namespace, restart: int) -> Path | None:
    """Where an attempt keeps its checkpoints: that of one is none of another."""
    return args.checkpoints and (args.checkpoints / f"restart{restart}" if restart else args.checkpoints)


def _chosen(args: argparse.Namespace, given: dict) -> tuple[dict, list]:
    """The settings that trials decide, and their account; nothing where there are none."""
    if not args.trials:
        return {}, []
    if {"batch", "learning_rate"} & given.keys():
        raise UserError("give either --trials or the settings batch and learning_rate")

    from crossalign.engine.finetune import best_settings
    from crossalign.tasks import get_task

    chosen, trials = best_settings(args.trials, args.task, args.init, get_task(args.task).metric)
    log.info("best of %d trials: batch %d, learning rate %g", len(trials), chosen["batch"], chosen["learning_rate"])
    return chosen, trials


def _continual(args: argparse.Namespace, encoder, tokenizer, device, precision: str) -> tuple:
    """The second loss and its account, or None twice."""
    files = {name: getattr(args, f"continual_{name}") for name in ("bitext", "links", "reference")}
    missing = [f"--continual-{name}" for name, value in files.items() if value is None]
    if len(missing) == len(files) and not args.settings.get("continual"):
        return None, None
    if missing:
        raise UserError(f"continual learning also needs {', '.join(missing)}")

    from crossalign.engine.adjust import continual, load_reference
    from crossalign.engine.pairs import read_sample

    settings = ContinualSettings(**checked(args.settings.get("continual", {}), ContinualSettings, place=args.place))
    reference = load_reference(files["reference"], encoder)
    # The sample is the one that an adjustment of the same seed and size used.
    sample = read_sample(files["bitext"], files["links"], settings.pairs, args.seed)
    auxiliary, account = continual(settings, sample, reference, tokenizer, args.seed, device, precision)
    return auxiliary, account | {"reference": folder_identity(files["reference"])}


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
    leave()
