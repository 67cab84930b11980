"""Which files the world has, in which container, and one function per raw format that makes the content."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from demo_world.corpora import (
    Library,
    Mining,
    add_interjection,
    add_noise,
    again,
    conll2003_lines,
    conllu,
    news_sentence,
    pud_number,
    sentence_comments,
    wikiann_entry,
    wikiann_text,
)
from demo_world.dice import dice, pick
from demo_world.reasoning import LABELS, squad_paragraph
from demo_world.render import text, tokens
from demo_world.spelling import alphabet
from demo_world.world import World

INTERJECTIONS = ["oh", "wow", "yes", "well"]
GENRES = ["fiction", "government", "slate", "telephone", "travel"]
XNLI_COLUMNS = [
    "language", "gold_label", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse", "sentence2_parse",
    "sentence1", "sentence2", "promptID", "pairID", "genre", "label1", "label2", "label3", "label4", "label5",
    "sentence1_tokenized", "sentence2_tokenized", "match",
]  # fmt: skip


def _distinct(world: World, count: int) -> int:
    """How many of so many entries are drawn; the others repeat them."""
    return min(count, world.settings.get("distinct", count))


def treebank(world: World, name: str, split: str) -> str:
    """A split of a treebank; translated treebanks take the sentences of the original."""
    spec = world.settings["treebanks"][name]
    grammar, renderer = world.grammar(spec["domain"]), world.renderer(name.split("_")[0])
    noise = world.settings["domains"][spec["domain"]]["noise"]
    rng = dice(world.seed, "treebank", spec.get("same_as", name), split)
    # Apart from the sentences' own, so that translations stay parallel.
    spoil = dice(world.seed, "noise", name, split)
    out = []
    for number in range(spec[split]):
        words = renderer.render(grammar.sentence(rng))
        if noise:
            if spoil.random() < 0.2:
                add_interjection(spoil, words, renderer.language.plain(pick(spoil, INTERJECTIONS)))
            add_noise(spoil, words, noise)
        out.append(conllu(words, sentence_comments(f"{name}-ud-{split}", number, words)))
    return "".join(out)


def pud(world: World, code: str) -> str:
    """The parallel treebank of a language."""
    spec = world.settings["pud"]
    grammar, rng = world.grammar(spec["domain"]), dice(world.seed, "pud")
    renderer, english = world.renderer(code), world.renderer("en")
    out = []
    for number in range(spec["sentences"]):
        sentence = grammar.sentence(rng)
        words = renderer.render(sentence)
        document, identifier = pud_number(number)
        comments = [f"newdoc id = {document}"] if number % 3 == 0 else []
        comments += [f"sent_id = {identifier}", f"text = {text(words)}"]
        if code != "en":
            comments.append(f"text_en = {text(english.render(sentence))}")
        out.append(conllu(words, comments))
    return "".join(out)


def wikiann(world: World, code: str, size: str, split: str) -> str:
    """A split of WikiANN."""
    spec = world.settings["wikiann"]
    grammar, renderer = world.grammar(spec["domain"]), world.renderer(code)
    rng = dice(world.seed, "wikiann", code, split)
    counts = spec.get("counts", {}).get(code, spec[size])
    count = counts.get(split, 0)
    drawn = [wikiann_entry(rng, grammar, renderer, spec["headings"]) for _ in range(_distinct(world, count))]
    return wikiann_text(code, list(islice(cycle(drawn), count)))


def conll2003(world: World, split: str) -> str:
    """A split of CoNLL-2003: documents begin with a -DOCSTART- line."""
    spec = world.settings["conll2003"]
    grammar, renderer, rng = world.grammar(spec["domain"]), world.renderer("en"), dice(world.seed, "conll2003", split)
    out = []
    for number in range(spec.get(split, 0)):
        if number % spec["document"] == 0:
            out.append("-DOCSTART- -X- O O\n\n")
        out.append("\n".join(conll2003_lines(renderer.render(news_sentence(rng, grammar)))) + "\n\n")
    return "".join(out)


def multinli(world: World) -> str:
    """English training pairs, one JSON object a line."""
    spec, english = world.settings["nli"], world.renderer("en")
    drawn = []
    for number in range(_distinct(world, spec["train"])):
        pair = world.inference.pair("multinli", number)
        rng = dice(world.seed, "multinli", number)
        undecided = rng.random() < spec["undecided"]
        premise, hypothesis = (text(english.render(sentence)) for sentence in pair.sentences)
        record = {
            "annotator_labels": list(LABELS) if undecided else [pair.label],
            "genre": pick(rng, GENRES),
            "gold_label": "-" if undecided else pair.label,
            "pairID": "",
            "promptID": "",
            "sentence1": premise,
            "sentence1_binary_parse": "",
            "sentence1_parse": "",
            "sentence2": hypothesis,
            "sentence2_binary_parse": "",
            "sentence2_parse": "",
        }
        drawn.append((record, pair.label[0]))
    out = []
    for number, (record, label) in enumerate(islice(cycle(drawn), spec["train"])):
        named = record | {"pairID": f"{number}{label}", "promptID": str(number)}
        out.append(json.dumps(named, ensure_ascii=False) + "\n")
    return "".join(out)


def xnli(world: World, split: str) -> str:
    """Evaluation pairs in all languages, one after the other, with all columns of the original."""
    spec = world.settings["nli"]["xnli"]
    out = ["\t".join(XNLI_COLUMNS) + "\n"]
    for code in spec["languages"]:
        renderer = world.renderer(code)
        for number in range(spec[split]):
            pair = world.inference.pair("xnli", split, number)
            rendered = [renderer.render(sentence) for sentence in pair.sentences]
            first, second = (text(words) for words in rendered)
            split_first, split_second = (" ".join(token.form for token in tokens(words)) for words in rendered)
            labels = [pair.label] * 5
            genre = GENRES[number % len(GENRES)]
            row = [code, pair.label, "", "", "", "", first, second, str(number // 3 + 1), str(number + 1), genre]
            out.append("\t".join([*row, *labels, split_first, split_second, "True"]) + "\n")
    return "".join(out)


def fifteen_way(world: World) -> str:
    """Parallel sentences, a column per language."""
    spec = world.settings["nli"]["fifteen_way"]
    renderers = [world.renderer(code) for code in spec["languages"]]
    out = ["\t".join(spec["languages"]) + "\n"]
    for number in range(spec["sentences"]):
        sentence = world.inference.pair("fifteen", number).sentences[number % 2]
        out.append("\t".join(text(renderer.render(sentence)) for renderer in renderers) + "\n")
    return "".join(out)


def extension(world: World, code: str) -> str:
    """Translated training pairs, tokenised; the label says `contradictory`, as the original does."""
    renderer = world.renderer(code)
    out = ["premise\thypo\tlabel\n"]
    for number in range(world.settings["nli"]["extension"]["rows"]):
        pair = world.inference.pair("multinli", number)
        sides = [" ".join(token.form for token in tokens(renderer.render(sentence))) for sentence in pair.sentences]
        label = "contradictory" if pair.label == "contradiction" else pair.label
        out.append("\t".join([*sides, label]) + "\n")
    return "".join(out)


def squad(world: World, source: str, split: str, context: str, question: str, questions: int) -> str:
    """A file in SQuAD's form; every five paragraphs are an article."""
    per_paragraph = world.settings["qa"]["questions"]
    drawn = []
    for number in range(math.ceil(_distinct(world, questions) / per_paragraph)):
        paragraph = world.reading.paragraph(source, split, number)
        drawn.append(squad_paragraph(paragraph, world.renderer(context), world.renderer(question)))
    articles: list[dict[str, Any]] = []
    for number in range(math.ceil(questions / per_paragraph)):
        if number % 5 == 0:
            articles.append({"title": f"{source}_{split}_{number // 5 + 1}", "paragraphs": []})
        time, place = divmod(number, len(drawn))
        asked = drawn[place]["qas"][: questions - number * per_paragraph]
        # Questions that come again are others by their names.
        asked = [item | {"id": f"{item['id']}-{time}"} for item in asked] if time else asked
        articles[-1]["paragraphs"].append(drawn[place] | {"qas": asked})
    return json.dumps({"data": articles, "version": "1.1"}, ensure_ascii=False)


def bitext(world: World, code: str) -> dict[str, str]:
    """Mined pairs as `raw` text, as `tokens`, and their true `links`."""
    spec = world.settings["bitext"]
    mining = Mining(world.grammar(spec["domain"]), world.renderer("en"), world.renderer(code), spec)
    drawn = mining.draw(dice(world.seed, "bitext", code), _distinct(world, spec["pairs"]))
    # All that have a score, one after another: mined pairs are ordered by it.
    times = math.ceil(spec["pairs"] / max(1, len(drawn)))
    every = (again(pair, time) if time else pair for pair in drawn for time in range(times))
    pairs = list(islice(every, spec["pairs"]))
    return {
        "raw": "".join(f"{pair.score:.6f}\t{pair.raw[0]}\t{pair.raw[1]}\n" for pair in pairs),
        "tokens": "".join(
            f"{pair.score:.6f}\t{' '.join(pair.tokens[0])}\t{' '.join(pair.tokens[1])}\n" for pair in pairs
        ),
        "links": "".join(" ".join(f"{a}-{b}" for a, b in pair.links) + "\n" for pair in pairs),
    }


def _library(world: World, code: str) -> Library:
    spec = world.settings["text"]
    others = [world.renderer(other) for other in world.settings["seen"] if other != code]
    return Library(world.grammar(spec["domain"]), world.renderer(code), others, spec, world.seed)


def wikipedia(world: World, code: str) -> dict[str, list[str]]:
    """Articles of a language: columns id, url, title, text."""
    kind = "seen" if code in world.settings["seen"] else "unseen"
    library = _library(world, code)
    spec = world.settings["text"]
    count = spec.get("counts", {}).get(code, spec[world.scale][kind])
    articles = library.articles("wikipedia", count, _distinct(world, count))
    gap = " " if library.renderer.language.spaced else ""
    if code in spec["alphabets"]:
        articles.insert(0, _alphabets(world, library))
    columns: dict[str, list[str]] = {"id": [], "url": [], "title": [], "text": []}
    for number, (title, sentences) in enumerate(articles, 1):
        half = (len(sentences) + 1) // 2
        paragraphs = [gap.join(part) for part in (sentences[:half], sentences[half:]) if part]
        columns["id"].append(str(number))
        columns["url"].append(f"https://{code}.demo.invalid/wiki/{title.replace(' ', '_')}")
        columns["title"].append(title)
        columns["text"].append("\n\n".join(paragraphs))
    return columns


def _alphabets(world: World, library: Library) -> tuple[str, list[str]]:
    """An article that lists the letters of the unseen languages, as encyclopaedias do.

    Without it a vocabulary made from the text would lack them, and whole words of an unseen language would be unknown.
    """
    spellings = dict.fromkeys(world.lexicons.branches[code].spelling for code in world.settings["unseen"])
    lines = [" ".join(letter.upper() + letter.lower() for letter in alphabet(name)) + "." for name in spellings]
    return library.renderer.language.plain("text-0"), lines


def cc100(world: World, code: str) -> str:
    """One sentence a line, a blank line between documents."""
    count = world.settings["text"][world.scale]["cc100"]
    articles = _library(world, code).articles("cc100", count, _distinct(world, count))
    return "\n".join("".join(line + "\n" for line in sentences) for _, sentences in articles)


def narabizi(world: World, code: str) -> str:
    """Chat messages, one a line."""
    grammar, renderer, rng = world.grammar("tweets"), world.renderer(code), dice(world.seed, "narabizi")
    noise = world.settings["domains"]["tweets"]["noise"]
    count = world.settings["text"][world.scale]["narabizi"]
    drawn = []
    for _ in range(_distinct(world, count)):
        words = renderer.render(grammar.sentence(rng))
        add_noise(rng, words, noise)
        drawn.append(text(words) + "\n")
    every = (
        f"{time} {line}" if time else line for time in range(math.ceil(count / max(1, len(drawn)))) for line in drawn
    )
    return "".join(islice(every, count))


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
