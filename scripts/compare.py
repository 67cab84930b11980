r"""Compare one language with others, layer by layer, by any of the similarity indexes.

Reads <embeddings>/<language>.npy (layers x sentences x neurons; row n is the same sentence in all languages) and
writes one row per pair, layer, index and control. An index that is not defined for a layer (all sentences have the same
vector there) is `nan`, with a warning. --control length also reads <language>.lengths.npy and writes cka and anc with
the length of sentences controlled for: `strangers` is what translations have over other sentences of the same length,
`length` is what is left when a smooth function of the length is taken out. Of cka, anc and matching, `sampling` is the
standard error by bootstrap over sentences, and `lead_sampling` that of the distance from the highest layer.

Example:
    python scripts/compare.py --embeddings embeddings --reference en --languages de --indexes cka anc \
        --control length --out similarity.csv
"""

import argparse
import csv
import logging
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from crossalign.analysis.bootstrap import standard_errors
from crossalign.analysis.indexes import CCA, CONTROLLED, INDEXES, PAIRWISE
from crossalign.analysis.matrices import CONTROLS, Lengths, open_embeddings, read_lengths
from crossalign.analysis.similarity import Options, Similarity, compare
from crossalign.engine.device import choose_device
from crossalign.runtime.command import read_args
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic

# Multiplications that one core does while PyTorch finds a GPU: less work waits for none.
SMALL = 2e10
COLUMNS = ("pair", "layer", "index", "control", "value", "sampling", "lead_sampling")


def parse_args() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embeddings", type=Path, required=True, help="folder with one .npy file per language")
    parser.add_argument("--reference", required=True, help="the language that the others are compared with")
    parser.add_argument("--languages", nargs="+", required=True)
    parser.add_argument("--indexes", nargs="+", default=["cka", "anc"], help=f"of {', '.join(INDEXES)}; or all")
    parser.add_argument(
        "--svcca-directions", type=int, default=20, help="how many directions SVCCA keeps (default: 20)"
    )
    parser.add_argument(
        "--control", choices=("none", "length"), default="none", help="length: cka and anc under control as well"
    )
    parser.add_argument("--out", type=Path, required=True, help=f"CSV file: {','.join(COLUMNS)}")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:<number>")
    return read_args(parser)


def main() -> None:
    """Compare, then write."""
    args = parse_args()
    indexes = INDEXES if args.indexes == ["all"] else tuple(dict.fromkeys(args.indexes))
    options = Options(indexes, args.svcca_directions, resample=True)
    if args.control == "length" and not set(CONTROLLED).intersection(options.indexes):
        raise UserError(f"--control length is for the indexes {' and '.join(CONTROLLED)}; add one to --indexes")
    languages = list(dict.fromkeys(args.languages))
    everyone = list(dict.fromkeys([args.reference, *languages]))
    arrays = open_embeddings(args.embeddings, everyone)
    lengths = {}
    if args.control == "length":
        read = read_lengths(args.embeddings, everyone, arrays[args.reference].shape[1])
        lengths = {lang: Lengths(read[lang]) for lang in everyone}
    if args.device == "auto" and multiplications(arrays, args.reference, options) < SMALL:
        args.device = "cpu"
    device = choose_device(args.device)
    layers = []
    for layer in range(len(arrays[args.reference])):
        chosen = (args.reference, *languages)
        found = compare(
            arrays[args.reference][layer],
            [arrays[lang][layer] for lang in languages],
            options,
            device,
            [f"{args.embeddings / lang}.npy, layer {layer}" for lang in chosen],
            [lengths[lang] for lang in chosen] if lengths else (),
        )
        for lang, pair in zip(languages, found, strict=True):
            warn(f"{args.reference}-{lang}, layer {layer}", pair)
        layers.append(found)
        logging.info("layer %d done", layer)
    with write_atomic(args.out) as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(COLUMNS)
        for place, lang in enumerate(languages):
            rows.writerows(rows_of(f"{args.reference}-{lang}", [found[place] for found in layers]))


def rows_of(name: str, layers: list[Similarity]) -> Iterator[tuple]:
    """One row per layer, index and control of a pair, with standard errors: as the papers measure first."""
    keys = [("none", index) for index in layers[0].values]
    keys += [(control, index) for control in CONTROLS for index in CONTROLLED if control in layers[0].controlled]
    values = [{"none": layer.values} | layer.controlled for layer in layers]
    keys = [(control, index) for control, index in keys if index in values[0][control]]
    curves = {key: [layer[key[0]][key[1]] for layer in values] for key in keys}
    errors = {key: standard_errors(curves[key], [layer.draws.get(key) for layer in layers]) for key in keys}
    for layer in range(len(layers)):
        for control, index in keys:
            numbers = (curves[control, index][layer], *(errors[control, index][layer] or ()))
            told = [f"{number:.10g}" for number in numbers]
            yield name, layer, index, control, *told, *[""] * (3 - len(told))


def multiplications(arrays: dict[str, np.ndarray], reference: str, options: Options) -> float:
    """How many a comparison takes at least: products of neurons, and of sentences where an index looks at all pairs."""
    total = 0.0
    for array in arrays.values():
        layers, sentences, neurons = array.shape
        total += 2.0 * layers * sentences * neurons * arrays[reference].shape[2]
        if set(PAIRWISE).intersection(options.indexes):
            total += 2.0 * layers * sentences**2 * neurons
    return total


def warn(where: str, pair: Similarity) -> None:
    """Say which values mean nothing."""
    if undefined := [name for name, value in pair.values.items() if math.isnan(value)]:
        logging.warning("%s: not defined (all sentences have the same vector): %s", where, ", ".join(undefined))
    elif undefined := [name for name, value in pair.controlled.get("length", {}).items() if math.isnan(value)]:
        logging.warning("%s: nothing is left without the length: %s", where, ", ".join(sorted(undefined)))
    if pair.saturated and (moot := [name for name in CCA if name in pair.values and name != "svcca"]):
        logging.warning("%s: too few sentences for so many neurons, always 1: %s", where, ", ".join(moot))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run_main(main)
