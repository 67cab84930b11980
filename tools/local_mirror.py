"""Lay out a mirror of the small run's files from a folder of samples: paths and raw formats of the published files.

The folder has one sub-folder per corpus with gzipped files; docs/notes/small-run/README.md has its layout. Where it
holds a file as published, the mirror has the same bytes and the register's checksum holds. Where it holds a sample or
another packing, the mirror's own checksum does, and `lay_out` says so.
"""

import csv
import gzip
import hashlib
import io
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from crossalign.fetch.register import Dataset
from crossalign.fetch.sources import SUMS
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic
from demo_world.formats import tar_gz_stored, zip_stored

# Sentences of the published Tatoeba test file; in the folder, dev pairs follow the test pairs.
TATOEBA_TEST = {"hin": 5000, "vie": 2500, "slv": 2495}
# This Bible counts the Psalms in another way, so its lines could not be parallel there.
OTHER_COUNT = {"rus": "PSA"}


class Absent(Exception):
    """The folder does not hold what a file of the register is made of."""


@dataclass(frozen=True)
class Laid:
    """One file of the mirror, and whether it is the published one bit by bit (None: the register does not say)."""

    path: str
    bytes: int
    published: bool | None


class Folder:
    """The samples: reading access, with errors that name the file."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UserError(f"{root}: no such folder")
        self.root = root

    def read(self, name: str) -> bytes:
        """A file, unpacked; running text is packed by xz."""
        packed = self.root / f"{name}.xz"
        path, unpack = (packed, lzma) if packed.is_file() else (self.root / f"{name}.gz", gzip)
        try:
            return unpack.decompress(path.read_bytes())
        except FileNotFoundError:
            raise Absent(f"{path} is not there") from None
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise UserError(f"{path}: not a {unpack.__name__} file that can be read ({error})") from None

    def names(self, pattern: str) -> list[str]:
        """The files of a pattern, without their `.gz`, sorted."""
        found = self.root.glob(f"{pattern}.gz")
        return sorted(str(path.relative_to(self.root)).removesuffix(".gz") for path in found)

    def rows(self, name: str, columns: int) -> Iterator[list[str]]:
        """The lines of a tab-separated file."""
        # Not splitlines, which takes rare characters within a sentence for line ends.
        for number, line in enumerate(self.read(name).decode("utf-8").rstrip("\n").split("\n"), 1):
            fields = line.split("\t")
            if len(fields) != columns:
                raise UserError(f"{self.root / name}.gz, line {number}: {len(fields)} fields instead of {columns}")
            yield fields

    @cached_property
    def verses(self) -> list[str]:
        """The verses that any of the Bibles has, in the order of the English books."""
        books = list(dict.fromkeys(verse.partition(" ")[0] for verse, _ in self.rows("bible/eng.tsv", 2)))
        found = {verse for name in self.names("bible/*.tsv") for verse, _ in self.rows(name, 2)}

        def place(verse: str) -> tuple[int, int, int, str]:
            if not (parts := re.fullmatch(r"(\S+) (\d+):(\d+)", verse)):
                raise UserError(f"{self.root / 'bible'}: '{verse}' is no verse; they look like GEN 1:1")
            book = books.index(parts[1]) if parts[1] in books else len(books)
            return book, int(parts[2]), int(parts[3]), verse

        return sorted(found, key=place)


def treebank(folder: Folder, row: Dataset) -> bytes:
    """A treebank's file; of several releases the register's."""
    _, name, file = row.path.split("/")
    split = file.removesuffix(".conllu")
    if name == "en_tweebank":
        return folder.read(f"ud/Tweebank/en-ud-tweet-{split}.conllu")
    found = folder.names(f"ud/*/{name}-ud-{split}.conllu")
    exact = [path for path in found if f"@{row.version}/" in path]
    plain = [path for path in found if "@" not in path]
    if not exact + plain:
        raise Absent(f"no {name}-ud-{split}.conllu.gz below {folder.root / 'ud'}")
    return folder.read((exact + plain)[0])


def tagged(folder: Folder, row: Dataset) -> bytes:
    """Words and tags of a treebank, one sentence a line; the published lines also have the surface of multiwords."""
    _, name, file = row.path.split("/")
    split = file.removesuffix(".txt")
    text = folder.read(f"udpos/{name.removesuffix('pos')}-upos-{split}.conllu").decode("utf-8").strip("\n")
    lines = []
    for block in text.split("\n\n"):
        words = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        lines.append(" ".join(word[1] for word in words) + "\t" + " ".join(word[3] for word in words) + "\n")
    return "".join(lines).encode()


def tydiqa(folder: Folder, row: Dataset) -> bytes:
    """The dev sets with answers, one file per language as in the published archive."""
    files = []
    for name in folder.names("tydiqa_answers/*_tydiqa_dev.json"):
        language = Path(name).name.partition("_")[0]
        files.append((f"tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{language}.json", folder.read(name)))
    if not files:
        raise Absent(f"no tydiqa_answers/*_tydiqa_dev.json.gz below {folder.root}")
    return tar_gz_stored(files)


def open_text(folder: Folder, row: Dataset) -> bytes:
    """Running text as it is stored: source_language.txt here, source/language.txt there."""
    source, _, lang = Path(row.path).stem.rpartition("_")
    return folder.read(f"text/{source}/{lang}.txt")


def wikiann(folder: Folder, row: Dataset) -> bytes:
    """One archive per language. The labelled dev sentences serve as dev and as test: first half, second half."""
    members = []
    for name in folder.names("wikiann/*.dev.tsv"):
        lang = Path(name).name.partition(".")[0]
        blocks = folder.read(name).decode("utf-8").strip("\n").split("\n\n")
        half = len(blocks) // 2
        parts = {"dev": blocks[:half], "test": blocks[half:]}
        if folder.names(f"wikiann/{lang}.train.tsv"):
            train = folder.read(f"wikiann/{lang}.train.tsv").decode("utf-8")
            parts = {"train": train.strip("\n").split("\n\n")} | parts
        files = []
        for split, sentences in parts.items():
            marked = ("\n".join(f"{lang}:{line}" for line in block.split("\n")) for block in sentences)
            files.append((split, ("\n\n".join(marked) + "\n\n").encode()))
        members.append((f"{lang}.tar.gz", tar_gz_stored(files)))
    if not members:
        raise Absent(f"no wikiann/*.dev.tsv.gz below {folder.root}")
    return zip_stored(members)


def _nli_line(premise: str, hypothesis: str, label: str, identity: str) -> str:
    pair = {"gold_label": label, "sentence1": premise, "sentence2": hypothesis, "pairID": identity}
    return json.dumps(pair, ensure_ascii=False) + "\n"


_PROMPT = re.compile(r'For the statement, "(.*)", does the hypothesis "(.*)" represent entailment, .*', re.DOTALL)


def _prompts(folder: Folder) -> Iterator[tuple[str, str, str]]:
    """Further training pairs, which are stored as prompts; a folder need not have them."""
    try:
        text = folder.read("multinli/llmsknow_mnli_train.csv").decode("utf-8")
    except Absent:
        return
    for row in csv.DictReader(io.StringIO(text)):
        if (pair := _PROMPT.fullmatch(row["Question"])) and row["Answer"] in ("entailment", "neutral", "contradiction"):
            yield pair[1].strip(), pair[2].strip(), row["Answer"]


def snli(folder: Folder, row: Dataset) -> bytes:
    """A part of the training pairs."""
    data = folder.read("snli/snli_1.0_train_subset.jsonl")
    return zip_stored([("snli_1.0/snli_1.0_train.jsonl", data)])


def multinli(folder: Folder, row: Dataset) -> bytes:
    """The first training pairs, which the English file of the translated set holds in Moses' tokens."""
    lines = []
    for number, (premise, hypothesis, label) in enumerate(folder.rows("xnli_extension/multinli.train.en.tsv", 3)):
        if number:
            label = "contradiction" if label == "contradictory" else label
            lines.append(_nli_line(premise, hypothesis, label, str(number)))
    for number, (premise, hypothesis, label) in enumerate(_prompts(folder)):
        lines.append(_nli_line(premise, hypothesis, label, f"prompt{number}"))
    return zip_stored([("multinli_1.0/multinli_1.0_train.jsonl", "".join(lines).encode())])


def xnli(folder: Folder, row: Dataset) -> bytes:
    """All languages below each other, as in the published tables; pairs are numbered by row."""
    members = []
    for split in ("dev", "test"):
        lines = ["language\tgold_label\tsentence1\tsentence2\tpairID\n"]
        for name in folder.names(f"xnli/*.{split}.tsv"):
            lang = Path(name).name.partition(".")[0]
            for number, (premise, hypothesis, label) in enumerate(folder.rows(name, 3)):
                if number:
                    lines.append(f"{lang}\t{label}\t{premise}\t{hypothesis}\t{number}\n")
        if len(lines) == 1:
            raise Absent(f"no xnli/*.{split}.tsv.gz below {folder.root}")
        members.append((f"XNLI-1.0/xnli.{split}.tsv", "".join(lines).encode()))
    return zip_stored(members)


def squad_train(folder: Folder, row: Dataset) -> bytes:
    """The first articles of the training file."""
    return folder.read("squad/squad1.1.train.first-articles.json")


def squad_dev(folder: Folder, row: Dataset) -> bytes:
    """The answerable half of a part of the dev file of version 2, in the form of version 1.1."""
    found = json.loads(folder.read("squad/squad2.0.dev.cs224n-half.json"))
    for article in found["data"]:
        for paragraph in article["paragraphs"]:
            asked = [question for question in paragraph["qas"] if not question["is_impossible"]]
            paragraph["qas"] = [{name: question[name] for name in ("id", "question", "answers")} for question in asked]
    return json.dumps(found | {"version": "1.1"}, ensure_ascii=False).encode()


def tatoeba(folder: Folder, row: Dataset) -> bytes:
    """Four columns, as published. Where test and dev are two files of the register, the sample is cut in two."""
    _, other, split, _ = re.split(r"[-.]", Path(row.path).name)
    lines = [f"eng\t{other}\t{left}\t{right}\n" for left, right in folder.rows(f"tatoeba/eng-{other}.tsv", 2)]
    cut = TATOEBA_TEST.get(other, len(lines))
    return "".join(lines[:cut] if split == "test" else lines[cut:]).encode()


def bible(folder: Folder, row: Dataset) -> bytes:
    """One verse a line, line n being the same verse in every language of the folder; blank where there is none."""
    lang = Path(row.path).stem
    verses = dict(folder.rows(f"bible/{lang}.tsv", 2))
    left_out = f"{OTHER_COUNT.get(lang, '-')} "
    lines = ("" if verse.startswith(left_out) else verses.get(verse, "") for verse in folder.verses)
    return "".join(f"{line}\n" for line in lines).encode()


def same(pattern: str) -> Callable[[Folder, Dataset], bytes]:
    """A file that is kept as it was published."""
    return lambda folder, row: folder.read(pattern.format(Path(row.path).stem))


# By the path in the register: the first that fits.
MAKERS: dict[str, Callable[[Folder, Dataset], bytes]] = {
    r"ud/.+\.txt": tagged,
    r"ud/.+": treebank,
    r"ner/wikiann/.+": wikiann,
    r"nli/multinli.+": multinli,
    r"nli/snli.+": snli,
    r"nli/XNLI-1\.0\.zip": xnli,
    r"nli/xnli_extension/.+": same("xnli_extension/multinli.train.{}.tsv"),
    r"qa/squad/train-.+": squad_train,
    r"qa/squad/dev-.+": squad_dev,
    r"qa/xquad/.+": same("xquad/{}.json"),
    r"qa/tydiqa/.+\.tgz": tydiqa,
    r"qa/tydiqa/.+": same("tydiqa/{}.json"),
    r"qa/qamr/.+sentences\.tsv": same("qa_more/qamr.{}.tsv"),
    r"qa/qamr/.+": same("qa_more/qamr.filtered.{}.tsv"),
    r"qa/qed/.+": same("qa_more/{}.jsonlines"),
    r"qa/covidqa/.+": same("qa_more/{}.json"),
    r"text/open/.+": open_text,
    r"bitext/tatoeba/.+": tatoeba,
    r"text/ntrex/.+": same("ntrex/{}.txt"),
    r"text/bible/.+": bible,
    r"text/masakhaner/.+": same("masakhaner2/{}.train.txt"),
}


def lay_out(rows: Mapping[str, Dataset], source: Path, out: Path) -> tuple[list[Laid], dict[str, str]]:
    """Write every file that the folder allows, and SHA256SUMS last; return them, and what is absent with the reason."""
    folder = Folder(source)
    laid: list[Laid] = []
    absent: dict[str, str] = {}
    sums: dict[str, str] = {}
    for path, row in rows.items():
        make = next((make for pattern, make in MAKERS.items() if re.fullmatch(pattern, path)), None)
        try:
            if make is None:
                raise Absent("nothing in such a folder can stand for it")
            data = make(folder, row)
        except Absent as reason:
            absent[path] = str(reason)
            continue
        with write_atomic(out / path, "wb") as stream:
            stream.write(data)
        sums[path] = hashlib.sha256(data).hexdigest()
        laid.append(Laid(path, len(data), _published(row, data, sums[path])))
    with write_atomic(out / SUMS) as stream:
        stream.writelines(f"{digest}  {path}\n" for path, digest in sorted(sums.items()))
    return laid, absent


def _published(row: Dataset, data: bytes, digest: str) -> bool | None:
    kind, _, value = (row.checksum or "").partition(":")
    if kind == "git":
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == value
    return digest == value if kind else None
