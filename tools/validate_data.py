"""Check prepared files: format, labels, trees, offsets, order, and that each report fits its file.

Example:
    python tools/validate_data.py results/demo/data/trees/en_ewt/*.conllu
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.data.conllu import read_sentences
from crossalign.data.lines import numbered, read_rows, shown, wrong
from crossalign.data.ner import to_iob2
from crossalign.data.nli import LABELS
from crossalign.data.report import Report, report_path
from crossalign.data.text import squeeze
from crossalign.runtime.errors import UserError, run_main


def validate(kind: str, path: str | Path, several_roots: bool = False, tags_only: bool = False) -> int:
    """Check a prepared file, and its report if there is one; return how many items it has.

    Kinds: trees, ner, nli, qa, bitext, text, parallel. The first fault is raised with its line.
    """
    path = Path(path)
    if kind not in CHECKS:
        raise UserError(f"kind '{kind}' is none of {', '.join(CHECKS)}")
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    with path.open(encoding="utf-8", newline="\n") as stream:
        form = {"several_roots": several_roots, "tags_only": tags_only} if kind == "trees" else {}
        count = CHECKS[kind](stream, str(path), **form)
    if not count:
        raise UserError(f"{path}: empty")
    if report_path(path).is_file():
        _check_report(report_path(path), count)
    return count


def kind_of(path: str | Path) -> str:
    """The kind of a prepared file by its place: `…/data/<kind>/<name>/<split>.<ext>`."""
    parts = Path(path).parts
    for place in range(len(parts) - 3):
        if parts[place] == "data" and parts[place + 1] in CHECKS:
            return parts[place + 1]
    raise UserError(f"{path}: not in a folder data/<kind>/; say which kind it is")


def _check_trees(stream: IO[str], name: str, several_roots: bool, tags_only: bool) -> int:
    report = Report()
    for _ in read_sentences(stream, name, report, tags_only, several_roots):
        pass
    # The reader mends and skips; a prepared file leaves nothing to mend or skip.
    skipped = [key for key in ("multiword_tokens", "empty_nodes", "subtypes_cut") if report.counts[key]]
    left = [*report.repaired, *skipped]
    if left:
        raise UserError(f"{name}: not a prepared file: {', '.join(left)}")
    return report.read


def _check_rows(stream: IO[str], name: str, keys: list[str], check: Callable[[dict], str | None]) -> int:
    seen: set[str] = set()
    for number, row in read_rows(stream, name):
        fault = f"keys {list(row)} instead of {keys}" if list(row) != keys else None
        if not fault and (not isinstance(row["id"], str) or not row["id"] or row["id"] in seen):
            fault = f"id {shown(str(row['id']))} is empty, no text, or used before"
        fault = fault or check(row)
        if fault:
            raise wrong(name, number, fault)
        seen.add(row["id"])
    return len(seen)


def _ner_fault(row: dict) -> str | None:
    tokens, tags = row["tokens"], row["tags"]
    if not _texts(tokens) or not _texts(tags) or not tokens:
        return "tokens and tags must be lists of text that is not empty"
    if len(tokens) != len(tags):
        return f"{len(tokens)} tokens, {len(tags)} tags"
    for tag in tags:
        if tag != "O" and (tag[:2] not in ("B-", "I-") or not tag[2:].isupper()):
            return f"tag {shown(tag)} is not O, B-CLASS or I-CLASS"
    return "an entity does not begin with B-" if to_iob2(tags)[1] else None


def _nli_fault(row: dict) -> str | None:
    if not isinstance(row["premise"], str) or not isinstance(row["hypothesis"], str):
        return "premise and hypothesis must be text"
    return None if row["label"] in LABELS else f"label {shown(str(row['label']))} is none of {', '.join(LABELS)}"


def _qa_fault(row: dict) -> str | None:
    if not _texts([row["question"], row["context"]]):
        return "question and context must be text that is not empty"
    if not isinstance(row["answers"], list) or not row["answers"]:
        return "no answers"
    for answer in row["answers"]:
        if not isinstance(answer, dict) or list(answer) != ["text", "start"] or not _texts([answer["text"]]):
            return f"answer {shown(str(answer))} is not text and start"
        start = answer["start"]
        if not isinstance(start, int) or start < 0 or not row["context"].startswith(answer["text"], start):
            return f"answer {shown(answer['text'])} does not stand at {start}"
    return None


def _texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) and value for value in values)


def _check_bitext(stream: IO[str], name: str) -> int:
    seen: set[int] = set()
    count, previous = 0, float("inf")
    for number, line in numbered(stream, name):
        fields = line.split("\t")
        try:
            score = float(fields[0])
        except ValueError:
            raise wrong(name, number, f"score {shown(fields[0])} is not a number") from None
        if len(fields) != 3 or any(not side or side != squeeze(side) for side in fields[1:]):
            raise wrong(name, number, "not score, English words and other words with single spaces")
        if not score <= previous:
            raise wrong(name, number, f"score {score} after {previous}: the best pair comes first")
        pair = hash(line.partition("\t")[2])
        if pair in seen:
            raise wrong(name, number, "a pair that came before")
        seen.add(pair)
        count, previous = number, score
    return count


def _check_lines(stream: IO[str], name: str) -> int:
    number = 0
    for number, line in numbered(stream, name):
        if not line or line != squeeze(line):
            raise wrong(name, number, f"empty, or spaces to squeeze: {shown(line)}")
    return number


def _check_report(path: Path, count: int) -> None:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        fits = report["read"] == report["kept"] + sum(report["dropped"].values())
        repaired = report["repaired"].values()
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: not a report with read, kept, dropped and repaired") from None
    if not fits or report["kept"] != count or not all(repaired):
        raise UserError(f"{path}: says {report['read']} read, {report['kept']} kept; the file has {count} items")


CHECKS: dict[str, Callable[..., int]] = {
    "trees": _check_trees,
    "ner": partial(_check_rows, keys=["id", "tokens", "tags"], check=_ner_fault),
    "nli": partial(_check_rows, keys=["id", "premise", "hypothesis", "label"], check=_nli_fault),
    "qa": partial(_check_rows, keys=["id", "question", "context", "answers"], check=_qa_fault),
    "bitext": _check_bitext,
    "text": _check_lines,
    "parallel": _check_lines,
}


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--kind", choices=sorted(CHECKS), help="default: by the folder, …/data/<kind>/…")
    parser.add_argument("--several-roots", action="store_true", help="trees: sentences may have several roots (tweets)")
    parser.add_argument("--tags-only", action="store_true", help="trees: sentences may have tags and no tree")
    return parser.parse_args()


def main() -> None:
    """Check file by file; the first fault ends it."""
    args = parse_args()
    for path in args.files:
        kind = args.kind or kind_of(path)
        count = validate(kind, path, args.several_roots, args.tags_only)
        print(f"{path}: {kind}, {count} items, sound")


if __name__ == "__main__":
    run_main(main)
