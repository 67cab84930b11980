"""Which files the world has, in which container, and from which pieces of work they are made."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Part:
    """A piece of work: the maker's name and its arguments. Makers give text, or columns for parquet."""

    maker: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class WorldFile:
    """A file: its path, the container, and the parts (each with a member name inside the container)."""

    path: str
    container: str
    parts: tuple[tuple[str, Part], ...]


def _plain(path: str, maker: str, *arguments: Any, container: str = "plain") -> WorldFile:
    return WorldFile(path, container, (("", Part(maker, arguments)),))


def plan(settings: dict[str, Any]) -> list[WorldFile]:
    """Every file of the world."""
    return [*_annotated(settings), *_inference(settings), *_questions(settings), *_bitext(settings), *_text(settings)]


def _annotated(s: dict[str, Any]) -> Iterator[WorldFile]:
    for name, spec in s["treebanks"].items():
        for split in ("train", "dev", "test"):
            if spec.get(split):
                yield _plain(f"ud/{name}/{split}.conllu", "treebank", name, split)
    for code in s["pud"]["languages"]:
        yield _plain(f"ud/{code}_pud/test.conllu", "pud", code)
    parts = []
    for size in ("large", "small"):
        for code in s["wikiann"][size]["languages"]:
            parts += [
                (f"{code}/{split}", Part("wikiann", (code, size, split))) for split in ("train", "dev", "test", "extra")
            ]
    yield WorldFile("ner/wikiann/panx_dataset.zip", "wikiann", tuple(parts))
    for split in ("train", "dev", "test"):
        yield _plain(f"ner/conll2003/{split}.txt", "conll2003", split)


def _inference(s: dict[str, Any]) -> Iterator[WorldFile]:
    def member(path: str, name: str, maker: str, *arguments: Any) -> WorldFile:
        return WorldFile(path, "zip", ((name, Part(maker, arguments)),))

    yield member("nli/multinli_1.0.zip", "multinli_1.0/multinli_1.0_train.jsonl", "multinli")
    splits = tuple((f"XNLI-1.0/xnli.{split}.tsv", Part("xnli", (split,))) for split in ("dev", "test"))
    yield WorldFile("nli/XNLI-1.0.zip", "zip", splits)
    yield member("nli/XNLI-15way.zip", "XNLI-15way/xnli.15way.orig.tsv", "fifteen_way")
    for code in s["nli"]["extension"]["languages"]:
        yield _plain(f"nli/xnli_extension/{code}.tsv", "extension", code)


def _questions(s: dict[str, Any]) -> Iterator[WorldFile]:
    qa = s["qa"]
    for split in ("train", "dev"):
        yield _plain(f"qa/squad/{split}-v1.1.json", "squad", "squad", split, "en", "en", qa[split])
    for code in qa["xquad"]["languages"]:
        yield _plain(f"qa/xquad/xquad.{code}.json", "squad", "xquad", "test", code, code, qa["xquad"]["questions"])
    codes = qa["mlqa"]["languages"]
    mlqa = tuple(
        (
            f"MLQA_V1/{split}/{split}-context-{c}-question-{q}.json",
            Part("squad", ("mlqa", split, c, q, qa["mlqa"][split])),
        )
        for split in ("dev", "test")
        for c in codes
        for q in codes
    )
    yield WorldFile("qa/mlqa/MLQA_V1.zip", "zip", mlqa)
    # The translated training questions are those of SQuAD.
    translated = []
    for code in qa["translated"]["languages"]:
        for split in ("train", "dev"):
            name = f"mlqa-translate-train/{code}_squad-translate-train-{split}-v1.1.json"
            translated.append((name, Part("squad", ("squad", split, code, code, qa["translated"][split]))))
    yield WorldFile("qa/mlqa/mlqa-translate-train.tar.gz", "tar.gz", tuple(translated))
    tydi = qa["tydiqa"]
    name = f"tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{tydi['name']}.json"
    part = Part("squad", ("tydiqa", "dev", tydi["language"], tydi["language"], tydi["dev"]))
    yield WorldFile("qa/tydiqa/tydiqa-goldp-v1.1-dev.tgz", "tar.gz", ((name, part),))


def _bitext(s: dict[str, Any]) -> Iterator[WorldFile]:
    for code in s["bitext"]["languages"]:
        # One piece of work gives three files, told apart by the member name.
        part = Part("bitext", (code,))
        yield WorldFile(f"bitext/wikimatrix/WikiMatrix.en-{code}.tsv.gz", "gz", (("raw", part),))
        yield WorldFile(f"truth/bitext-{code}.tsv", "plain", (("tokens", part),))
        yield WorldFile(f"truth/links-{code}.txt", "plain", (("links", part),))


def _text(s: dict[str, Any]) -> Iterator[WorldFile]:
    for code in s["text"]["cc100"]:
        yield _plain(f"text/cc100/{code}.txt.xz", "cc100", code, container="xz")
    for code in [*s["seen"], *s["unseen"]]:
        yield _plain(f"text/wikipedia/{code}.parquet", "wikipedia", code, container="parquet")
    if "qaf" in s["unseen"]:
        yield _plain("text/narabizi/narabizi.txt", "narabizi", "qaf")
