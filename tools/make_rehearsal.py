"""Write the mirror of `make rehearsal`: stand-ins for all data and models, of the published sizes and in their layouts.

Data come from the demo's world in the published numbers, models are written from published configurations with random
weights. Models above rehearsal.max_parameters are left out. OUT.yaml is the config that goes with the mirror. What is
complete already is kept, so the command may be interrupted.

Example:
    python tools/make_rehearsal.py config/rehearsal.yaml --out results/rehearsal/mirror
"""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.catalog.config import check, load
from crossalign.catalog.layers import merge
from crossalign.catalog.sheets import Sheets
from crossalign.fetch.checksums import parse_sums
from crossalign.fetch.register import Model, read_datasets, read_models
from crossalign.fetch.sources import SUMS
from crossalign.papers.all_items import catalog_of
from crossalign.plan.work import published_sizes
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import read_json, sha256, write_atomic, write_json
from demo_world.settings import load_settings
from demo_world.world import World
from demo_world.write import write_world

ROOT = Path(__file__).resolve().parents[1]
# Pieces that the words of the world are cut into, as many as give inputs of the published lengths: 21 a sentence of
# English-EWT. The rest of a published vocabulary stands for other words.
PIECES, TINY_PIECES = 5000, 1500
# Entries of a tiny set, and what the config says else with tiny sets and models.
TINY = 60
TINY_CONFIG: dict[str, Any] = {
    "adjust": {"pool": 400, "pairs": "100", "sizes": {"pairs": ["50", "100"]}, "extended": {"pairs": ["50", "100"]}}
    | {"word_pairs": 20},
    "anc": {"sentences": TINY},
    "finetune": {"defaults": {"max_length": 64}},
    "mlm": {"block": 16, "batch": 4},
    "pretrain": {
        "models": {"mono-*": {"layers": 2, "hidden": 32, "heads": 4, "intermediate": 64, "block": 16, "batch": 4}},
        "vocabularies": {"mono-*": {"size": 500}},
    },
    "bilstm": {"layers": 1, "hidden": 16, "characters": 8, "words": 8},
}


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", type=Path, nargs="+", help="config files, merged over config.yaml")
    parser.add_argument("--out", type=Path, required=True, help="the mirror")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; default: one per core")
    parser.add_argument(
        "--tiny", action="store_true", help="a few entries of each set and a few neurons: tries the layouts on a laptop"
    )
    return parser.parse_args()


def limited(config: dict, models: Mapping[str, Model], most: int) -> dict:
    """What the config says else for want of the models that are too large."""
    large = [name for name in (*config["anc"]["xlmr"], *config["anc"]["xglm"]) if (models[name].parameters or 0) > most]
    if not large:
        return {}
    chosen = {key: [name for name in config["anc"][key] if name not in large] for key in ("xlmr", "xglm")}
    for key, names in chosen.items():
        if not names:
            raise UserError(f"rehearsal.max_parameters: {most} leaves no model of anc.{key}; a larger number is right")
    told = f"{', '.join(large)} left out: more parameters than rehearsal.max_parameters ({most / 1e9:g} billion)"
    return {"anc": chosen, "replaced": {"anc": [told]}}


def world_settings(config: dict, tiny: bool) -> dict[str, Any]:
    """The demo's world in the published numbers."""
    size = published_sizes(ROOT / "resources" / "sizes.tsv")
    base = load_settings(ROOT / "resources" / "demo" / "world.yaml")

    def splits(name: str, usual: Mapping[str, Any] | None = None) -> dict[str, int]:
        found = {split: size(f"{name}/{split}") for split in ("train", "dev", "test")}
        return {split: count for split, count in found.items() if count and (usual is None or split in usual)}

    # A language's sets of WikiANN and texts may be larger or smaller than those of its group.
    wikiann = {code: splits(f"ner/wikiann_{code}") for code in base["languages"]}
    texts = {code: size(f"text/wikipedia_{code}/train") for code in base["unseen"]}
    # Of scored pairs some are doubled, too long or not in the right script.
    pairs = config["adjust"]["pool"] * 8 // 5
    counts = {
        "treebanks": {name: splits(f"trees/{name}", spec) for name, spec in base["treebanks"].items()},
        "pud": {"sentences": size("trees/en_pud/test")},
        "wikiann": {"counts": wikiann},
        "conll2003": {"test": size("ner/conll2003_en/test")},
        "nli": {
            "train": size("nli/multinli_en/train"),
            "xnli": {split: size(f"nli/xnli_en/{split}") for split in ("dev", "test")},
            "extension": {"rows": config["anc"]["sentences"]},
        },
        "qa": {
            **{split: size(f"qa/squad_en/{split}") for split in ("train", "dev")},
            "xquad": {"questions": size("qa/xquad_en/test")},
            "mlqa": {"test": size("qa/mlqa_en/test")},
            "translated": {"train": size("qa/squadmt_es/train")},
            "tydiqa": {"dev": size("qa/tydiqa_ru/dev")},
        },
        "bitext": {"pairs": pairs},
        "text": {"counts": texts, "demo": {"narabizi": size("text/narabizi_qaf/train")}},
    }
    if tiny:
        counts = at_most(counts, TINY) | {"bitext": {"pairs": pairs}}
    override = yaml.safe_load((ROOT / "resources" / "rehearsal" / "world.yaml").read_text(encoding="utf-8"))
    merge(override, counts | ({"qa": counts["qa"] | {"sentences": [1, 2], "questions": 2}} if tiny else {}))
    return load_settings(ROOT / "resources" / "demo" / "world.yaml", override)


def at_most(counts: Any, most: int) -> Any:
    """The same with smaller numbers."""
    return (
        {key: at_most(value, most) for key, value in counts.items()} if isinstance(counts, dict) else min(counts, most)
    )


def check_stamp(out: Path, about: dict[str, Any]) -> None:
    """Refuse to mix stand-ins of two sizes."""
    stamp = out / "settings.json"
    if (known := read_json(stamp)) not in (None, about):
        raise UserError(f"{out} holds stand-ins of other settings ({stamp} says which); delete the folder")
    if known is None:
        write_json(stamp, about)


def pieces_of(settings: dict[str, Any], size: int, lines: int) -> list[str]:
    """Pieces that spell the words of all languages of the world, the more frequent first."""
    from crossalign.engine.tokenizer import SPECIALS, train_vocabulary
    from demo_world.dice import dice
    from demo_world.render import text

    world = World(settings)
    grammar = world.grammar("text")
    sentences = []
    for code in settings["languages"]:
        renderer, rng = world.renderer(code), dice(settings["seed"], "pieces", code)
        sentences += [text(renderer.render(grammar.sentence(rng))) for _ in range(lines)]
    found = train_vocabulary(lambda: sentences, size, up_to=True).get_vocab()
    return [piece for piece in sorted(found, key=found.get) if piece not in SPECIALS["bert"]]


def write_models(names: list[str], out: Path, settings: dict[str, Any], tiny: bool) -> None:
    """The folders of models that are not complete yet."""
    from tools.stand_ins import published, write_model

    left = [name for name in names if not (out / "models" / name / SUMS).exists()]
    pieces = pieces_of(settings, TINY_PIECES if tiny else PIECES, 20 if tiny else 500) if left else []
    for name in left:
        print(f"model {name}", flush=True)
        layout = published(name).tiny(len(pieces)) if tiny else published(name)
        write_model(out / "models" / name, layout, pieces, sum(name.encode()))


def write_sums(out: Path, paths: list[str], models: list[str]) -> None:
    """SHA256SUMS of the whole mirror, last."""
    old = parse_sums((out / SUMS).read_text(encoding="utf-8"), SUMS) if (out / SUMS).exists() else {}
    sums = {path: old.get(path) or sha256(out / path) for path in paths}
    for name in models:
        folder = out / "models" / name
        found = parse_sums((folder / SUMS).read_text(encoding="utf-8"), str(folder / SUMS))
        sums |= {f"models/{name}/{file}": digest for file, digest in found.items()}
    with write_atomic(out / SUMS) as stream:
        stream.writelines(f"{digest}  {path}\n" for path, digest in sorted(sums.items()))


def main() -> None:
    """Write what is missing."""
    args = parse_args()
    config = load(args.configs)
    if not config.get("rehearsal"):
        raise UserError(f"{args.configs[-1]}: no section `rehearsal`; config/rehearsal.yaml has one")
    overlay = limited(config, read_models(ROOT / "resources" / "models.tsv"), config["rehearsal"]["max_parameters"])
    if args.tiny:
        merge(overlay, TINY_CONFIG)
    merge(config, overlay)
    check(config)
    catalog = catalog_of(config)
    paths = [path for path in catalog.files() if path in read_datasets(ROOT / "resources" / "datasets.tsv")]
    models, settings, out = Sheets(catalog).hub_models(), world_settings(config, args.tiny), args.out
    write_mirror(out, paths, models, settings, args.tiny, args.jobs)
    mirror = {"mirror": f"file://{out.absolute()}", "mirror_checksums": "mirror"}
    with write_atomic(out.with_suffix(".yaml")) as stream:
        yaml.safe_dump(overlay | {"downloads": mirror}, stream, allow_unicode=True)
    print(f"{out}: {len(paths)} files and {len(models)} models; config: {out.with_suffix('.yaml')}")


def write_mirror(
    out: Path, paths: list[str], models: list[str], settings: dict[str, Any], tiny: bool, jobs: int
) -> None:
    """All stand-ins that are not there yet."""
    check_stamp(out, {"world": settings, "tiny": tiny})
    if absent := [path for path in paths if not (out / path).exists()]:
        print(f"data: {len(absent)} files", flush=True)
        write_world(settings, out, absent, jobs)
    write_models(models, out, settings, tiny)
    write_sums(out, paths, models)


if __name__ == "__main__":
    run_main(main)
