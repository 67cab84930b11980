"""A results folder that holds the papers' own numbers in the form of our CSV files: where the papers' claims must hold.

What is printed or was read off a figure is taken from resources/papers. Figures of which nothing is known but what
the text says of them (`SHAPES`) get curves of that shape.
"""

import csv
import json
import math
import struct
from collections.abc import Iterable
from pathlib import Path

from scipy import stats
from tests.unit.claim_mutants import hump
from tests.unit.made_results import WHOLE_TALK, load, write_json

from crossalign.catalog.addresses import Tuned
from crossalign.papers.adjust.figures import models
from crossalign.papers.common.context import Context
from crossalign.results.names import PRINTED_MODELS, TASKS, language, model
from crossalign.results.published import PRINTED, claim
from crossalign.results.reading import Results

# Figures without printed numbers or readings.
SHAPES = (
    *(f"align-predict/figure{place}" for place in (1, 3, 4, 5, 6, 7, 8)),
    *("anc/figure8", "anc/figure9", "adjust/figure1", "adjust/figure2", "talk/figure1", "talk/figure2", "talk/figure3"),
)
SIZES = {
    "nli/xnli_en/dev": 2490,
    "qa/squad_en/train": 87599,
    "qa/squad_en/dev": 10570,
    "qa/tydiqa_ru/dev": 812,
    "ner/wikiann_en/train": 20000,
    "ner/wikiann_hi/test": 1000,
    "trees/fr_partut/test": 110,
    **{f"ner/wikiann_{lang}/test": 10000 for lang in ("es", "vi", "ru")},
    **{f"nli/xnli_{lang}/test": 5010 for lang in ("es", "ru", "vi", "hi")},
    **{f"qa/xquad_{lang}/test": 1190 for lang in ("es", "ru", "vi", "hi")},
    **{f"qa/mlqa_{lang}/test": size for lang, size in (("es", 5254), ("vi", 5495), ("hi", 4918))},
    **{f"parallel/pud/{lang}": 1000 for lang in ("en", "ru")},
}
Row = dict[str, str]


def paper_config(root: Path, folder: Path) -> dict:
    """The papers' config: five seeds, the whole studies of the talk, and a model of mBERT's size."""
    config = load(root, seeds=[1, 2, 3, 4, 5], models=str(folder / "models"), talk=WHOLE_TALK)
    write_model(folder / "models/mbert", 178)
    return config


def write_model(folder: Path, millions: int) -> None:
    """The head of a model's file; the numbers themselves are never read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}", encoding="utf-8")
    head = json.dumps({"bert.weight": {"dtype": "F32", "shape": [millions * 1000, 1000], "data_offsets": [0, 0]}})
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head.encode())


def write(path: Path, rows: Iterable[Row]) -> None:
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write_paper(folder: Path, config: dict) -> None:
    """Everything that the claims look at."""
    for path in sorted(PRINTED.glob("*/table*.csv")):
        item = f"{path.parent.name}/{path.stem}"
        write(folder / f"tables/{item}.csv", table_rows(item, read(path)))
    for item, rows in figures(config).items():
        write(folder / f"figures/{item}.csv", rows)
    for name, kept in SIZES.items():
        write_json(folder / f"data/{name}.report.json", {"read": kept, "kept": kept})
    text = folder / "data/text/narabizi_qaf/train.txt"
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_bytes(b"x" * 10_000_000)
    rows = [{"kind": kind, "left": "0.0", "right": "0.5", "count": "3"} for kind in ("related", "unrelated")]
    shares = {"auc": 0.5, "top10": 0.05, "top100": 0.25, "pairs": 3}
    for lang in config["adjust"]["languages"]:
        for run in models(Context(config, Results(folder)), lang, ["nli"]).values():
            path = folder / f"distances/{run.path()}/{lang}.csv"
            write(path, rows)
            path.with_suffix(".json").write_text(json.dumps(shares if isinstance(run, Tuned) else {}), encoding="utf-8")


def table_rows(item: str, rows: list[Row]) -> Iterable[Row]:
    """A printed table in the columns of ours."""
    paper = item.partition("/")[0]
    if item == "talk/table3":
        yield from ({"language": row["language"], "field": "script", "text": row["script"], "mean": ""} for row in rows)
        return
    for place, row in enumerate(rows):
        number = numeric(row["value"])
        found = {name: row[name] for name in row if name not in ("value", "flag", "significance")}
        found |= {"text": "" if number else row["value"], "mean": row["value"] if number else "", "std": ""}
        found |= {"n": "", "wanted": "", "mark": row.get("significance", ""), "missing": "" if row["value"] else "x"}
        if number and (row.get("kind") or item.endswith(("table4", "talk/table5"))):
            found |= {"n": "1" if paper == "anc" else "5", "wanted": "1" if paper == "anc" else "5"}
        if item == "align-predict/table5":
            found["std"] = spread(rows, place, row["task"])
        elif paper == "align-predict" and "task" in row and "kind" in row:
            spread_of_task = float(claim(paper, f"std-{row['task']}-median"))
            found["std"] = str(spread_of_task * (math.sqrt(2) if row["kind"] == "delta" else 1))
        if row.get("metric") == "spearman":
            found["languages"] = "17"
            yield found
            t = float(row["value"]) * math.sqrt(15 / (1 - float(row["value"]) ** 2))
            yield found | {"metric": "p", "mean": f"{2 * stats.t.sf(t, 15):.6f}"}
            continue
        yield found


def numeric(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def spread(rows: list[Row], place: int, task: str) -> str:
    """The caption's standard deviations: the least and the largest once, the median everywhere else."""
    first = next(k for k, row in enumerate(rows) if row["task"] == task)
    which = {first: "min", first + 1: "max"}.get(place, "median")
    return claim("align-predict", f"std-{task}-{which}")


def points(panel: str, series: str, values: Iterable[float], xs: Iterable | None = None) -> list[Row]:
    values = list(values)
    return [
        {"panel": panel, "series": series, "x": str(x), "y": f"{y:.4f}", "std": "", "n": "1", "wanted": "1"}
        for x, y in zip(xs or range(len(values)), values, strict=True)
    ]


def figures(config: dict) -> dict[str, list[Row]]:
    """Readings, and shapes as the text tells them."""
    found = readings()
    names = {"pretrained": 0.78} | {TASKS[task]: 0.781 for task in ("parsing", "pos")} | {"NER": 0.782}
    similar = config["align-predict"]["similarity_languages"]

    # Fine-tuning for NER changes the upper layers.
    away = {"NER": [0.0] * 7 + [0.1] * 6}

    def shape(name: str, top: float) -> list[float]:
        return [y - by for y, by in zip(hump(top, 5), away.get(name, [0.0] * 13), strict=True)]

    def tuned(languages: list[str]) -> list[Row]:
        panels = [f"English-{language(lang)}" for lang in languages]
        return [row for panel in panels for name, top in names.items() for row in points(panel, name, shape(name, top))]

    found["align-predict/figure1"] = tuned(["ru"])
    found["align-predict/figure5"] = tuned([lang for lang in similar if lang != "ru"])
    found["talk/figure1"] = tuned(["de"])
    others = [lang for lang in config["align-predict"]["languages"] if lang != "en"]
    found["align-predict/figure4"] = [
        row
        for lang in others
        for row in points("English with every target, NER", language(lang), shape("NER", names["NER"]))
    ]
    for place in (6, 7, 8):
        found[f"align-predict/figure{place}"] = [
            row
            for lang in similar
            for name, top in (("REF", 0.78), ("layers 1-2", 0.5), ("layers 11-12", 0.77))
            for row in points(f"English-{language(lang)}", name, hump(top, 5))
        ]
    title = "correlation of gap and similarity"
    by_layer = {"pretrained": hump(0.8, 6, 0.1), "fine-tuned": hump(0.8, 6, 0.03)}
    upper = {"NER, fine-tuned": [0.4, *[0.5] * 6, 0.3, 0.4, 0.6, 0.7, 0.5, 0.2]}
    found["align-predict/figure3"] = [
        row | {"sampling": "0.1", "lead_sampling": "0.02"}
        for task in ("Parsing", "POS", "NER")
        for kind in ("fine-tuned", "pretrained")
        for row in points(title, f"{task}, {kind}", upper.get(f"{task}, {kind}", by_layer[kind]))
    ]
    langs = [f"English-{language(lang)}" for lang in config["anc"]["norm_languages"]]
    found["anc/figure8"] = [
        row
        for name in langs
        for panel, values in (("CKA", [0.5] * 6 + [0.05] * 6 + [0.6]), ("ANC", [0.5] * 13))
        for row in points(panel, name, values)
    ]
    # The plain formula of PWCCA gives less than what the authors' library does, and what the paper tells of.
    indexes = {"PWCCA": 0.3, "SVCCA": 0.6, "PWCCA (authors' library)": 0.6}
    found["anc/figure9"] = [
        row for name in langs for panel, value in indexes.items() for row in points(panel, name, [value] * 13)
    ]
    return found | histograms(config) | unseen(config)


def readings() -> dict[str, list[Row]]:
    """What was read off the figures of `anc`."""
    ours = {printed: model(name) for name, printed in PRINTED_MODELS.items()}
    found: dict[str, list[Row]] = {}
    for row in read(PRINTED / "anc/figure_readings.csv"):
        lang = row["pair"].partition("-")[2]
        series = "mean over the language pairs" if row["pair"] == "mean" else f"English-{language(lang)}"
        found.setdefault(f"anc/{row['figure']}", []).extend(
            points(ours[row["model"]], series, [float(row["value"])], [row["layer"]])
        )
    return found


def histograms(config: dict) -> dict[str, list[Row]]:
    """Adjustment draws related words closer and leaves the others; fine-tuning draws all together and mixes them,
    least so for Spanish NER; continual learning keeps them apart. Centres of related and unrelated words."""
    centres: dict[str, tuple[float, float]] = {"original": (20, 24), "adjusted": (14, 24)}
    for task in ("NLI", "NER", "QA"):
        centres |= {f"original, {task}": (8, 8.3), f"adjusted, {task}": (8, 9), f"continual, {task}": (10, 18)}
    rows = []
    for lang in config["adjust"]["languages"]:
        for name, places in (centres | ({"adjusted, NER": (8, 12)} if lang == "es" else {})).items():
            for kind, place in zip(("related words", "unrelated words"), places, strict=True):
                heights = [math.exp(-((x - place) ** 2) / 20) for x in range(40)]
                rows += points(f"{language(lang)}: {name}", kind, heights)
    return {"adjust/figure2": rows}


def unseen(config: dict) -> dict[str, list[Row]]:
    """Easy, intermediate and hard languages; Uyghur and Sorani profit from Latin script, the others suffer."""
    study = config["talk"]
    hard, easy = {"ug", "sd", "ckb"}, {"gsw", "fo", "xmf", "pcm"}
    rows = []
    for panel, langs in (("Parsing", study["treebanks"]), ("NER", study["ner"])):
        for lang in langs:
            mbert, mlm = (30, 40) if lang in hard else (60, 70) if lang in easy else (40, 60)
            for system, number in {"BiLSTM": 50, "mBERT": mbert, "mBERT+MLM": mlm}.items():
                title = f"{panel}, trained and tested on each language"
                rows += points(title, system, [number], [language(lang)])
    pairs = [(lang, task) for lang, tasks in study["transliterated"].items() for task in tasks]
    pairs += [(lang, "ner") for lang in study["transliterated_seen"]]
    scripts = [
        row
        for lang, task in pairs
        for script, better in (("original", 0), ("Latin", 10 if lang in ("ug", "ckb") else -10))
        for row in points(
            f"{language(lang)}, {TASKS[task]}", f"{script} script", [60 + better, 70 + better], ["mBERT", "mBERT+MLM"]
        )
    ]
    return {"talk/figure2": rows, "talk/figure3": scripts}
