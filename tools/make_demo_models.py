"""Make the demo's own language models on whatever GPU or CPU is there: text, vocabularies, both stages of training.

Reads the plan (resources/demo/models.yaml) and the running text of the demo world (--scale pretraining), which is made
on the spot unless --world names one. Models that are finished as the plan says are left alone; what was interrupted
goes on where it was (SIGTERM ends with status 75). On a GPU all take some minutes, on a CPU core each takes hours.

Example:
    python tools/make_demo_models.py --out models --models mbert --factor 0.01
"""

import argparse
import hashlib
import json
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.runtime.errors import run_main

ROOT = Path(__file__).resolve().parents[1]


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", type=Path, help="folder that make_world.py --scale pretraining wrote")
    parser.add_argument("--out", required=True, type=Path, help="folder for the model folders")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these, and those that they go on from")
    work = ROOT / "results/demo-models"
    parser.add_argument("--work", type=Path, default=work, help="folder for texts, vocabularies and checkpoints")
    parser.add_argument("--plan", type=Path, default=ROOT / "resources/demo/models.yaml")
    parser.add_argument("--settings", type=Path, default=ROOT / "resources/demo/world.yaml", help="of the world")
    parser.add_argument("--sentences", type=int, default=0, help="at most so many of each text, for trials (0: all)")
    parser.add_argument("--factor", type=float, default=1.0, help="share of the planned steps, for trials")
    parser.add_argument("--recipe", default="", help="identifies the code; checkpoints of another recipe are refused")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    parser.add_argument("--list", action="store_true", help="print the models and whether they are finished, no more")
    return parser.parse_args()


def prepare(args: argparse.Namespace, plan: dict, names: list[str], work: Path) -> None:
    """Texts and vocabularies that the models need and that are not there yet."""
    from itertools import chain

    from tools import demo_models

    from crossalign.engine.corpus import lines_of
    from crossalign.engine.tokenizer import train_vocabulary
    from crossalign.runtime.files import write_atomic
    from demo_world.settings import load_settings
    from demo_world.write import default_jobs, write_world

    vocabularies = dict.fromkeys(demo_models.vocabulary_of(plan, name) for name in names)
    sets = [plan["models"][name]["texts"] for name in names] + [plan["tokenizers"][v]["texts"] for v in vocabularies]
    texts = list(dict.fromkeys(chain.from_iterable(plan["texts"][name] for name in sets)))
    world = args.world
    if world is None:
        world = work / "world"
        if not (world / "SHA256SUMS").exists() and not all(
            demo_models.text_file(work, text).exists() for text in texts
        ):
            logging.info("making the text of the demo world")
            write_world(load_settings(args.settings), world, list(demo_models.TEXT), default_jobs(), "pretraining")
    demo_models.write_texts(world, texts, work, args.sentences)
    for name in vocabularies:
        target, wanted = work / f"{name}.tokenizer.json", plan["tokenizers"][name]
        if not target.exists():
            files = [demo_models.text_file(work, text) for text in plan["texts"][wanted["texts"]]]
            lines = lambda files=files: chain.from_iterable(map(lines_of, files))  # noqa: E731
            tokenizer = train_vocabulary(lines, wanted["size"], wanted["style"], up_to=args.sentences > 0)
            with write_atomic(target) as stream:
                stream.write(tokenizer.to_str(pretty=False))
            logging.info("vocabulary %s: %d pieces", name, tokenizer.get_vocab_size())


def main() -> None:
    """Prepare, train, write."""
    args = parse_args()

    from tools import demo_models

    from crossalign.engine.checkpoints import requeued
    from crossalign.engine.device import choose_device, choose_precision

    plan = demo_models.read_plan(args.plan, args.settings)
    names = demo_models.chosen_models(plan, args.models)
    trial = {"sentences": args.sentences, "factor": args.factor}
    plan["trial"] = trial if trial != {"sentences": 0, "factor": 1.0} else None
    missing = [name for name in names if not demo_models.finished(args.out / name, name, plan)]
    if args.list:
        print("\n".join(f"{name}\t{'missing' if name in missing else 'finished'}" for name in names))
        return
    if not missing:
        logging.info("all models are finished")
        return
    # Other texts or another world never meet what is there.
    about = json.dumps([plan["texts"], plan["tokenizers"], plan["world"], args.sentences], sort_keys=True)
    work = args.work / hashlib.sha256(about.encode()).hexdigest()[:12]
    device = choose_device(args.device)
    prepare(args, plan, missing, work)
    for name in missing:
        texts = demo_models.by_language(work, plan["texts"][plan["models"][name]["texts"]])
        vocabulary = work / f"{demo_models.vocabulary_of(plan, name)}.tokenizer.json"
        logging.info("%s", name)
        with requeued():
            demo_models.train_model(
                plan, name, texts, vocabulary, args.out, work, device, choose_precision("auto", device), args.recipe,
                args.factor,
            )  # fmt: skip
        demo_models.write_provenance(args.out / name, name, plan, f"python tools/make_demo_models.py --models {name}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
