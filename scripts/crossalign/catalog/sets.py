"""Data sets: what a prepared set is called, where it lies, and which downloaded files it is made of.

Names are `<kind>/<name>/<split>`; docs/understand/data.md lists them. Nothing here reads a file but the list of
mixtures.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from crossalign.runtime.errors import UserError

EXTENSIONS = {
    "trees": "conllu",
    "ner": "jsonl",
    "nli": "jsonl",
    "qa": "jsonl",
    "bitext": "tsv",
    "text": "txt",
    "parallel": "txt",
}


@dataclass(frozen=True, order=True)
class DataSet:
    """One split of one prepared set; for `parallel` the split is a language."""

    kind: str
    name: str
    split: str

    def path(self) -> str:
        return f"data/{self.kind}/{self.name}/{self.split}.{EXTENSIONS[self.kind]}"

    @property
    def plain(self) -> str:
        """The name without its suffixes."""
        return self.name.partition("+")[0]

    @property
    def suffixes(self) -> tuple[str, ...]:
        return tuple(self.name.split("+")[1:])

    @property
    def fold(self) -> int | None:
        """Which of the five folds, for a treebank that has no training data of its own."""
        folds = [int(suffix.removeprefix("fold")) for suffix in self.suffixes if suffix.startswith("fold")]
        return folds[0] if folds else None

    @property
    def latin(self) -> bool:
        """Whether it is the transliterated copy."""
        return "latn" in self.suffixes

    @property
    def family(self) -> str:
        """What the set belongs to: wikiann, xnli, squad, …; for treebanks the whole name."""
        return self.plain if self.kind == "trees" else self.plain.partition("_")[0]

    @property
    def languages(self) -> tuple[str, ...]:
        """The language codes in the name: one, or for cross-lingual QA the question's and the context's."""
        if self.kind == "trees":
            return (self.plain.partition("_")[0],)
        if self.kind == "parallel":
            return (self.split,)
        return tuple(self.plain.split("_")[1:])


def pool_set(config: dict, lang: str) -> DataSet:
    """The sentence pairs of a language (`adjust`)."""
    return DataSet("bitext", f"{config['adjust']['bitext']}_{lang}", "pool")


def text_set(config: dict, text: str, split: str = "train") -> DataSet:
    """The raw text behind `mlm-<text>` and `mono-<text>` (`talk`)."""
    lang, plus, suffix = text.partition("+")
    source = config["talk"]["text"].get(lang, "wikipedia")
    return DataSet("text", f"{source}_{lang}{plus}{suffix}", split)


# Tweets: one entry may hold several sentences, each with its own root.
SEVERAL_ROOTS = {"en_lexnorm", "en_tweebank"}

# Treebanks whose few training sentences are pooled with the test sentences before the folds are cut.
POOLED = {"bxr_bdt": ("train", "test"), "olo_kkpp": ("train", "test")}

# Treebanks of which words and tags are there, and no trees.
TAGS_ONLY = {"ar_padtpos"}


def raw_files(data: DataSet) -> list[str]:
    """The paths, in the register of data sets, of the files that `data` is prepared from."""
    languages = data.languages
    match data.kind, data.family:
        case "trees", treebank:
            splits = POOLED.get(treebank, ("test",)) if data.fold else (data.split,)
            ending = "txt" if treebank in TAGS_ONLY else "conllu"
            return [f"ud/{treebank}/{split}.{ending}" for split in splits]
        case "ner", "wikiann":
            return ["ner/wikiann/panx_dataset.zip"]
        case "ner", "conll2003":
            return [f"ner/conll2003/{data.split}.txt"]
        case "nli", "multinli":
            return ["nli/multinli_1.0.zip"]
        case "nli", "xnli" | "xnlimixed":
            return ["nli/XNLI-1.0.zip"]
        case "qa", "squad":
            return [f"qa/squad/{data.split}-v1.1.json"]
        case "qa", "xquad":
            return [f"qa/xquad/xquad.{language}.json" for language in languages]
        case "qa", "mlqa":
            return ["qa/mlqa/MLQA_V1.zip"]
        case "qa", "squadmt":
            return ["qa/mlqa/mlqa-translate-train.tar.gz"]
        case "qa", "tydiqa":
            return ["qa/tydiqa/tydiqa-goldp-v1.1-dev.tgz"]
        case "bitext", "wikimatrix":
            return [f"bitext/wikimatrix/WikiMatrix.en-{languages[0]}.tsv.gz"]
        case "text", "wikipedia":
            return [f"text/wikipedia/{languages[0]}.parquet"]
        case "text", "cc100":
            return [f"text/cc100/{languages[0]}.txt.xz"]
        case ("bitext" | "nli", "mix") | ("text", "open"):
            return list(mixture(f"{data.kind}/{data.plain}"))
        case "text", "narabizi":
            return ["text/narabizi/narabizi.txt"]
        case "parallel", "pud":
            return [f"ud/{data.split}_pud/test.conllu"]
        case "parallel", "xnliext":
            return [f"nli/xnli_extension/{data.split}.tsv"]
        case "parallel", "xnli15":
            return ["nli/XNLI-15way.zip"]
    raise UserError(f"no download is known for the data set {data.path()}")


# Sets that are put together from several small sources: one line per set and file, in the order of reading. The set
# `text/open_wo` is the running text of one language, `bitext/mix_ru` sentence pairs with English; of two files with
# parallel lines the English one comes first.
MIXTURES = Path(__file__).resolve().parents[3] / "resources" / "mixtures.tsv"
COLUMNS = ["set", "path"]


def mixture(name: str) -> tuple[str, ...]:
    """The register's paths of the files behind a set, `text/open_wo`."""
    if not (files := mixed_files(name)):
        raise UserError(f"{MIXTURES}: no files are listed for the set '{name}'")
    return files


def mixed_files(name: str) -> tuple[str, ...]:
    """The same of any set; none if it is no mixture."""
    return _mixtures(MIXTURES).get(name, ())


@cache
def _mixtures(register: Path) -> dict[str, tuple[str, ...]]:
    """The register, read once; a mistake in it is told with its line."""
    found: dict[str, tuple[str, ...]] = {}
    try:
        with register.open(encoding="utf-8", newline="") as stream:
            rows = csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
            if next(rows, []) != COLUMNS:
                raise UserError(f"{register}, line 1: expected the columns {', '.join(COLUMNS)}")
            for row in rows:
                if len(row) != len(COLUMNS) or not all(row):
                    raise UserError(f"{register}, line {rows.line_num}: expected a set and a path; found {row}")
                name, path = row
                if path in found.get(name, ()):
                    raise UserError(f"{register}, line {rows.line_num}: '{path}' stands twice in {name}")
                found[name] = (*found.get(name, ()), path)
    except OSError as error:
        raise UserError(f"{register}: cannot read this register: {error.strerror}") from error
    return found
