r"""Score one tuned model on all its target sets.

In: the tuned model, the base model that it was tuned from, and prepared sets as NAME=FILE. Out: scores in percent,
{set: {metric: value}}, and per-example predictions for significance tests (compressed JSON lines, which
`crossalign.tasks.predictions` reads). With --ahead and without --out they are left in a folder, for the call with both,
which takes them if model, sets, code and options are still the same.

Example:
    python scripts/evaluate.py --base resources/demo/models/mbert --tuned tuned/model --out scores.json \
        --predictions predictions.jsonl.gz --sets trees/de_pud/test=results/demo/data/trees/de_pud/test.conllu
"""

import argparse
import gc
import logging
from pathlib import Path

from crossalign.engine.programs import add_tokens, named_sets
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.stages import Stages

log = logging.getLogger("evaluate")
stages = Stages()


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuned", required=True, type=Path, help="folder with the tuned model")
    parser.add_argument("--base", required=True, type=Path, help="folder of the model that it was tuned from")
    parser.add_argument("--sets", required=True, nargs="+", metavar="NAME=FILE")
    parser.add_argument("--out", type=Path, help="scores (JSON)")
    parser.add_argument("--predictions", type=Path, help="predictions (.jsonl.gz)")
    parser.add_argument("--ahead", type=Path, help="folder of scores that are made ahead: where they lie, or go")
    add_tokens(parser)
    parser.add_argument("--code-hash", default="", help="identifies the code, for --ahead and --tokens")
    parser.add_argument("--max-length", type=int, help="tokens per example; as in training if not given")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--precision", default="auto", help="auto, fp32 or bf16")
    return parser.parse_args()


def main() -> None:
    """Make scores, or take those that were made ahead."""
    args = parse_args()
    files = named_sets(args.sets)
    if args.ahead is None and args.out is None:
        raise UserError("nothing says where the scores go: give --out FILE or --ahead FOLDER")
    if args.ahead is not None and not args.code_hash:
        raise UserError("--ahead needs --code-hash: without it the scores of any code would fit")
    if args.ahead is None:
        evaluate(args, files, args.out, args.predictions)
        return

    from crossalign.tasks import ahead

    options = args.code_hash, args.max_length, args.device, args.precision
    missing = [str(file) for file in files.values() if not file.is_file()]
    key = None if missing else ahead.identity(args.tuned, args.base, files, *options)
    if args.out is None:
        ahead.forget(args.ahead)
        if key is None:
            log.info("not evaluated ahead: %s is not there yet", missing[0])
            return
        evaluate(args, files, args.ahead / ahead.SCORES, args.ahead / ahead.PREDICTIONS)
        ahead.leave(args.ahead, key)
        return
    if key and ahead.take(args.ahead, key, args.out, args.predictions):
        log.info("the process that trained the model has made these scores")
    else:
        evaluate(args, files, args.out, args.predictions)
    ahead.forget(args.ahead)


def evaluate(args: argparse.Namespace, files: dict[str, Path], out: Path, predictions: Path | None) -> None:
    """Load, predict, score, write."""
    from concurrent.futures import ThreadPoolExecutor

    from crossalign.engine.device import choose_device, choose_precision
    from crossalign.engine.examples import Encoded
    from crossalign.engine.folders import load_config
    from crossalign.engine.task_model import load_tuned_model, predict_all, read_info, warm_up
    from crossalign.engine.tokenizer import load_tokenizer
    from crossalign.tasks import get_task
    from crossalign.tasks.evaluation import evaluate_sets
    from crossalign.tasks.predictions import write_predictions, write_scores

    device = choose_device(args.device)
    info = read_info(args.tuned, args.base)
    task = get_task(info["task"], info["labels"])
    config = load_config(args.base, info["backend"])
    task.causal = config.causal

    def load():
        model = load_tuned_model(args.tuned, args.base, task).place(device, choose_precision(args.precision, device))
        if device.type == "cuda":
            warm_up(model, task, device)
        return model

    stages.end("start")
    with ThreadPoolExecutor(1) as helper:
        # A GPU is made ready while this thread reads and tokenises.
        model = helper.submit(load).result if device.type == "cuda" else load
        sets = {name: task.read(file) for name, file in sorted(files.items())}
        stages.end("read")
        tokenizer = load_tokenizer(args.base, config.vocab_size)
        longest = min(args.max_length or info["settings"]["max_length"], config.max_length)

        def predict(examples):
            ready = model()
            stages.end("load")
            return predict_all(ready, task, examples, device)

        encode = Encoded(args.tokens, args.code_hash, args.base, files) if args.tokens and args.code_hash else None
        scores, rows = evaluate_sets(task, sets, tokenizer, longest, predict, stages.end, encode)
    for name, values in scores.items():
        log.info("%s: %s %.2f", name, task.metric, values[task.metric])
        unseen = values.get("unseen_labels", 0)
        if unseen:
            log.warning(
                "%s: %d words have a label that was not in the training data; they count as errors", name, unseen
            )
    if predictions:
        write_predictions(predictions, task.name, task.labels, rows)
    write_scores(out, scores)
    stages.end("write")
    log.info("seconds: %s", stages)


if __name__ == "__main__":
    gc.disable()  # millions of small objects and no cycles that matter: looking for them would take long
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
