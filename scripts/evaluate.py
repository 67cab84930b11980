r"""Score one tuned model on all its target sets.

In: the tuned model, the base model that it was tuned from, and prepared sets as NAME=FILE. Out: scores in percent,
{set: {metric: value}}, and per-example predictions for significance tests (compressed JSON lines, which
`crossalign.tasks.predictions` reads).

Example:
    python scripts/evaluate.py --base resources/demo/models/mbert --tuned tuned/model --out scores.json \
        --predictions predictions.jsonl.gz --sets trees/de_pud/test=results/demo/data/trees/de_pud/test.conllu
"""

import argparse
import gc
import logging
from pathlib import Path

from crossalign.engine.programs import add_tokens, named_sets, set_name
from crossalign.runtime.errors import run_main
from crossalign.runtime.stages import Stages

log = logging.getLogger("evaluate")
stages = Stages()


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuned", required=True, type=Path, help="folder with the tuned model")
    parser.add_argument("--base", required=True, type=Path, help="folder of the model that it was tuned from")
    parser.add_argument("--sets", required=True, nargs="+", metavar="[NAME=]FILE")
    parser.add_argument("--out", required=True, type=Path, help="scores (JSON)")
    parser.add_argument("--predictions", type=Path, help="predictions (.jsonl.gz)")
    add_tokens(parser)
    parser.add_argument("--code-hash", default="", help="identifies the code, for --tokens")
    parser.add_argument("--max-length", type=int, help="tokens per example; as in training if not given")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--precision", default="auto", help="auto, fp32 or bf16")
    return parser.parse_args()


def main() -> None:
    """Load, predict, score, write."""
    args = parse_args()
    files = named_sets(args.sets, "--sets", set_name)

    from concurrent.futures import ThreadPoolExecutor

    from crossalign.engine.device import choose_device, choose_precision
    from crossalign.engine.examples import Encoded
    from crossalign.engine.folders import load_config
    from crossalign.engine.task_model import load_tuned_model, predict_all, read_info
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
        return load_tuned_model(args.tuned, args.base, task).place(device, choose_precision(args.precision, device))

    stages.end("start")
    with ThreadPoolExecutor(1) as helper:
        # The model gets to the GPU while this thread reads and tokenises.
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
    if args.predictions:
        write_predictions(args.predictions, task.name, task.labels, rows)
    write_scores(args.out, scores)
    stages.end("write")
    log.info("seconds: %s", stages)


if __name__ == "__main__":
    gc.disable()  # millions of small objects and no cycles that matter: looking for them would take long
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
