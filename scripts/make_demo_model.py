"""Pretrain one of the demo's own language models on running text of the demo world, on whatever GPU or CPU is there.

Makes the text (--scale pretraining of make_world.py) and the vocabulary, then trains in two stages: most steps see
short blocks, the last ones long blocks. A model whose loss stays where word frequencies bring it begins again with half
the learning rate. What was interrupted goes on where it was (SIGTERM ends with status 75). On a GPU it takes some
minutes, on a CPU core hours.

Example:
    python scripts/make_demo_model.py --model scale-pre --out models/scale-pre --work work
"""

import argparse
import hashlib
import json
import logging
import sys
from itertools import chain
from pathlib import Path
from typing import Any

# The world's package lies beside scripts/.
sys.path.append(str(Path(__file__).resolve().parents[1]))

import torch

from crossalign.catalog.demo_models import PLAN, read_plan
from crossalign.data.lines import Source
from crossalign.data.report import Report
from crossalign.data.text import Cleaning, clean_sentences, read_articles, read_lines
from crossalign.engine.checkpoints import requeued
from crossalign.engine.corpus import lines_of
from crossalign.engine.device import choose_device, choose_precision
from crossalign.engine.encoder import Encoder
from crossalign.engine.identity import folder_identity
from crossalign.engine.pretrain_job import Job, Start, pretrain, starting_point
from crossalign.engine.settings import PretrainSettings
from crossalign.engine.tokenizer import train_vocabulary
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import read_json, write_atomic, write_json
from demo_world.settings import load_settings
from demo_world.write import write_world

# Standard deviation of the noise on copied positions, relative to theirs.
NOISE = 0.25
# A model whose loss stays within this of what word frequencies give has learnt little else.
PLATEAU = 0.5
# How often the learning rate is halved for a model that stays there.
HALVED = 2

Plan = dict[str, Any]
Texts = dict[str, list[Path]]


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="its name in the plan")
    parser.add_argument("--out", required=True, type=Path, help="its folder; a model to go on from lies beside it")
    parser.add_argument("--work", required=True, type=Path, help="folder for texts, the vocabulary and checkpoints")
    parser.add_argument("--plan", type=Path, default=PLAN)
    parser.add_argument("--settings", type=Path, default=PLAN.with_name("world.yaml"), help="of the world")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1, ...")
    return parser.parse_args()


def write_texts(settings: dict[str, Any], texts: dict[str, Any], work: Path) -> Texts:
    """The cleaned files of each language; `texts` are languages by kind, `wikipedia` or `cc100`."""
    raw = {
        (kind, lang): f"text/{kind}/{lang}.{'parquet' if kind == 'wikipedia' else 'txt.xz'}"
        for kind, langs in texts.items()
        for lang in (settings["seen"] if langs == "seen" else langs)
    }
    if not all((work / "world" / path).exists() for path in raw.values()):
        logging.info("making the text of the demo world")
        write_world(settings, work / "world", list(raw.values()), 2, "pretraining")
    files: Texts = {}
    for (kind, lang), path in raw.items():
        source, report = work / "world" / path, Report()
        read = read_articles(source, report) if kind == "wikipedia" else read_lines(Source(source).lines(), report)
        files.setdefault(lang, []).append(work / f"{kind}-{lang}.txt")
        with write_atomic(files[lang][-1]) as stream:
            stream.writelines(f"{sentence}\n" for sentence in clean_sentences(read, Cleaning(), report))
    return files


def stages(plan: Plan, name: str, precision: str) -> tuple[PretrainSettings, PretrainSettings, bool]:
    """Settings of the short and of the long blocks, and whether the long ones begin with the short ones' positions."""
    model, usual = plan["models"][name], plan["defaults"]
    short = PretrainSettings(**usual["training"] | model.get("training", {}), precision=precision)
    values = usual["long"] | model.get("long", {})
    share, copied = values.pop("share"), values.pop("copy_positions")
    steps = max(3, round(short.steps * share))
    long = short.model_dump() | values | {"steps": steps, "seed": short.seed + 1000}
    return short, PretrainSettings(**long), copied


def begin(plan: Plan, name: str, tokenizer: Path, init: Path | None, seed: int) -> Start:
    """What a model starts from: a new one, or the one that it goes on from."""
    model = plan["models"][name]
    if init:
        return starting_point(init, None, "post", None, {}, seed)
    shape = plan["defaults"]["shape"] | model.get("shape", {})
    return starting_point(None, tokenizer, model["norm"], model.get("family"), shape, seed)


def copy_positions(encoder: Encoder, block: int, seed: int) -> None:
    """Let the positions beyond `block` begin as those before it, over and over, with a little noise."""
    table, first = encoder.embeddings.position.weight.data, encoder.config.position_offset
    known = table[first : first + block]
    noise = torch.randn(table.shape, generator=torch.Generator().manual_seed(seed)).to(table) * NOISE * known.std()
    for place in range(first + block, len(table)):
        table[place] = known[(place - first) % block] + noise[place]


def stuck(report: dict[str, Any]) -> bool:
    """Whether a model learnt little more than word frequencies."""
    return report["loss"][-1][1] > report["unigram_entropy"] - PLATEAU


def train(
    plan: Plan, name: str, texts: Texts, tokenizer: Path, init: Path | None, out: Path, work: Path, device: torch.device
) -> None:
    """Both stages."""
    short, long, copied = stages(plan, name, choose_precision("auto", device))
    for halved in range(HALVED + 1):
        place, checkpoints = work / f"short{halved}", work / f"checkpoints{halved}"
        rate = short.learning_rate / 2**halved
        if (report := read_json(place / "training.json")) is None:
            start = begin(plan, name, tokenizer, init, short.seed)
            job = Job(texts, short.model_copy(update={"learning_rate": rate}), place, work / "tokens", checkpoints)
            report = pretrain(start, job, device)
        if not stuck(report):
            break
        logging.warning("%s: the loss stayed at word frequencies with a rate of %g", name, rate)
    # Between the stages nothing is rounded.
    start = starting_point(place, None, "post", None, {}, long.seed)
    if copied:
        copy_positions(start.encoder, short.block, long.seed)
    job = Job(texts, long, out, work / "tokens", work / "checkpoints-long", store="bf16")
    reports = [report, pretrain(start, job, device)]
    write_json(out / "training.json", {"plan": plan["models"][name], "stages": reports}, indent=1)


def main() -> None:
    """Prepare, train, write."""
    args = parse_args()
    plan, settings = read_plan(args.plan), load_settings(args.settings)
    if args.model not in plan["models"]:
        raise UserError(f"--model {args.model}: not one of {', '.join(plan['models'])}")
    model = plan["models"][args.model]
    init = args.out.parent / model["init"] if "init" in model else None
    # Another plan or world, and another model to go on from, never meet what is there.
    about = [model, plan["defaults"], plan["texts"], plan["tokenizers"], settings, init and folder_identity(init)]
    work = args.work / hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]
    device = choose_device(args.device)
    texts = write_texts(settings, plan["texts"][model["texts"]], work)
    tokenizer = work / "tokenizer.json"
    if init is None:
        wanted = plan["tokenizers"][model["tokenizer"]]
        files = list(chain.from_iterable(texts.values()))
        made = train_vocabulary(lambda: chain.from_iterable(map(lines_of, files)), wanted["size"], wanted["style"])
        made.save(str(tokenizer))
    with requeued():
        train(plan, args.model, texts, tokenizer, init, args.out, work, device)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
