"""How fast raw files are prepared, against the plain libraries doing the same job in the same run.

Each format is read from memory and written to memory, by our reader with all its checks and counts, and by a short
program around `conllu`, `csv`, `json` or `sacremoses` without any. Both must write the same text. The seconds are
processor time, the best of several rounds in turn. For scored bitext the plain program tokenises every pair; ours only
those whose score can win a place, which is where its lead comes from. Needs the folder of real data of the tests.

Usage: python benchmarks/prepare.py [--rounds 5] [--shared FOLDER]
"""

import csv
import io
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from common import new_parser, print_row, print_table, shared_folder, text_of

from crossalign.data.bitext import Pool, read_scored
from crossalign.data.conllu import read_sentences, write_sentences
from crossalign.data.lines import write_rows
from crossalign.data.ner import FORMATS, read_ner
from crossalign.data.nli import read_pairs
from crossalign.data.qa import prepare_questions, read_questions
from crossalign.data.report import Report
from crossalign.data.text import Cleaning, clean_sentences, read_lines, tokeniser
from crossalign.data.transliteration import transliterator

Job = Callable[[str], str]


def stream(text: str) -> io.StringIO:
    """The text as an open file."""
    return io.StringIO(text, newline="\n")


def written(write: Callable, items: Iterable) -> str:
    """What a writer makes of some items."""
    out = io.StringIO(newline="\n")
    write(items, out)
    return out.getvalue()


def plain_rows(rows: Iterable[dict]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


def our_trees(text: str) -> str:
    return written(write_sentences, read_sentences(stream(text), "x"))


def plain_trees(text: str) -> str:
    import conllu

    out = io.StringIO()
    for sentence in conllu.parse_incr(stream(text)):
        out.write(f"# sent_id = {sentence.metadata['sent_id']}\n# text = {sentence.metadata['text']}\n")
        for word in sentence:
            if isinstance(word["id"], int):
                relation = word["deprel"].split(":")[0]
                out.write(f"{word['id']}\t{word['form']}\t_\t{word['upos']}\t_\t_\t{word['head']}\t{relation}\t_\t_\n")
        out.write("\n")
    return out.getvalue()


def our_entities(text: str) -> str:
    return written(write_rows, read_ner(stream(text), "x", FORMATS["wikiann-plain"], "en", "train", Report()))


def plain_entities(text: str) -> str:
    items, tokens, tags = [], [], []
    for row in [*csv.reader(stream(text), delimiter="\t", quoting=csv.QUOTE_NONE), []]:
        if row:
            tokens.append(row[0])
            tags.append(row[1])
        elif tokens:
            items.append({"id": f"en-train-{len(items) + 1}", "tokens": tokens, "tags": tags})
            tokens, tags = [], []
    return plain_rows(items)


def our_pairs(text: str) -> str:
    return written(write_rows, read_pairs(stream(text), "x", Report()))


def plain_pairs(text: str) -> str:
    rows = csv.DictReader(stream(text), delimiter="\t", quoting=csv.QUOTE_NONE)
    return plain_rows(
        {"id": str(number), "premise": row["premise"], "hypothesis": row["hypo"],
         "label": row["label"].replace("contradictory", "contradiction")}
        for number, row in enumerate(rows, 1)
    )  # fmt: skip


def our_questions(text: str) -> str:
    return written(write_rows, prepare_questions(read_questions(stream(text), "x"), Report()))


def plain_questions(text: str) -> str:
    paragraphs = [paragraph for article in json.loads(text)["data"] for paragraph in article["paragraphs"]]
    return plain_rows(
        {"id": qa["id"], "question": qa["question"], "context": paragraph["context"],
         "answers": [{"text": answer["text"], "start": answer["answer_start"]} for answer in qa["answers"]]}
        for paragraph in paragraphs
        for qa in paragraph["qas"]
    )  # fmt: skip


POOL = 2000


def our_bitext(text: str) -> str:
    pool = Pool(POOL, 64, tokeniser("en"), tokeniser("es"), Report())
    for row in read_scored(stream(text), "x"):
        pool.add(*row)
    return "".join("\t".join(row) + "\n" for row in pool.rows())


def plain_bitext(text: str) -> str:
    from sacremoses import MosesTokenizer

    english, other = MosesTokenizer("en"), MosesTokenizer("es")
    pairs = {}
    for score, *sides in csv.reader(stream(text), delimiter="\t", quoting=csv.QUOTE_NONE):
        words = [moses.tokenize(side, escape=False) for moses, side in zip((english, other), sides, strict=True)]
        if all(0 < len(side) <= 64 for side in words):
            pairs.setdefault(tuple(map(" ".join, words)), score)
    best = sorted(pairs.items(), key=lambda item: -float(item[1]))[:POOL]
    return "".join(f"{score}\t{english}\t{other}\n" for (english, other), score in best)


def our_text(text: str) -> str:
    numbered = enumerate(text.split("\n"), 1)
    return "".join(line + "\n" for line in clean_sentences(read_lines(numbered, Report()), Cleaning(), Report()))


def our_latin(lang: str) -> Job:
    return lambda text: "".join(transliterator(lang).line(line) + "\n" for line in text.splitlines())


def scored(text: str) -> str:
    """Sentence pairs with made-up scores in no order, in the layout of WikiMatrix."""
    return "".join(f"{1 + number * 7919 % 1000 / 2000:.4f}\t{line}\n" for number, line in enumerate(text.splitlines()))


# name, file, change of the raw text, ours, plain libraries, their names, how many units there are
JOBS = [
    ("CoNLL-U", "ud/UD_English-EWT/en_ewt-ud-dev.conllu.gz", str, our_trees, plain_trees, "conllu", "# sent_id"),
    ("NER columns", "wikiann/en.train.tsv.gz", str, our_entities, plain_entities, "csv + json", "\n\n"),
    ("NLI table", "xnli_extension/multinli.train.fr.tsv.gz", str, our_pairs, plain_pairs, "csv + json", "\n"),
    ("SQuAD JSON", "xquad/xquad.ru.json.gz", str, our_questions, plain_questions, "json", '"question"'),
    ("scored bitext", "tatoeba/eng-spa.tsv.gz", scored, our_bitext, plain_bitext, "csv + sacremoses", "\n"),
    ("raw text", "ntrex/rus.txt.gz", str, our_text, None, "", "\n"),
    ("Uyghur to Latin", "ntrex/uig.txt.gz", str, our_latin("ug"), None, "", "\n"),
    ("Russian to Latin", "ntrex/rus.txt.gz", str, our_latin("ru"), None, "", "\n"),
    ("Japanese to Latin", "ntrex/jpn.txt.gz", str, our_latin("ja"), None, "", "\n"),
]


def seconds(job: Job, text: str) -> float:
    """Processor time of one run."""
    start = time.process_time()
    job(text)
    return time.process_time() - start


def main() -> None:
    """Measure and print a Markdown table."""
    parser = new_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shared", type=Path, default=shared_folder())
    args = parser.parse_args()
    if not (args.shared / "data").is_dir():
        sys.exit(f"error: no real data at {args.shared} (--shared or CROSSALIGN_SHARED names the folder)")
    print_table(["format", "sentences", "sentences/s", "peer", "peer sentences/s", "ratio"])
    for name, path, change, ours, plain, peer, mark in JOBS:
        text = change(text_of(args.shared / "data" / path))
        count = text.count(mark)
        if plain and ours(text) != plain(text):
            sys.exit(f"error: {name}: the two programs write different text")
        best, best_plain = float("inf"), float("inf")
        for _ in range(args.rounds):
            best = min(best, seconds(ours, text))
            if plain:
                best_plain = min(best_plain, seconds(plain, text))
        theirs = [peer, f"{count / best_plain:,.0f}", f"{best_plain / best:.1f}"] if plain else ["–"] * 3
        print_row([name, count, f"{count / best:,.0f}", *theirs])


if __name__ == "__main__":
    main()
