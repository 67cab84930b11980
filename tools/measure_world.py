"""How hard and how related the world is, measured without any language model.

Prints Markdown tables: kinship of the lexicons, part-of-speech tagging, natural language inference.

Example:
    python tools/measure_world.py --settings resources/demo/world.yaml
"""

import argparse
import difflib
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

from crossalign.runtime.errors import run_main
from demo_world.dice import dice, shuffle
from demo_world.settings import load_settings
from demo_world.world import World

Example = tuple[list[str], str]
UYGHUR_LATIN = dict(zip("بپتجچخدرزژسشفقكگڭلمنھۋياەىوۇۆۈ", "bptcçhdrzjsşfkkgnlmnhvyaeiouöü", strict=True)) | {"ئ": ""}


def uyghur_to_latin(word: str) -> str:
    """Letter by letter with Turkish conventions."""
    return "".join(UYGHUR_LATIN.get(letter, letter) for letter in word)


def lexicon(world: World, code: str) -> dict[str, str]:
    """Written stem of every content word, the general vocabulary without inflection."""
    language = world.renderer(code).language
    return {
        name: language.spell(stem) for name, stem in language.stems.items() if not world.concepts.all[name].function
    }


def similarity(
    first: dict[str, str], second: dict[str, str], change: Callable[[str], str] = str
) -> tuple[float, float]:
    """Share of meanings with the same word, and mean likeness of the words (matching letters over all letters)."""
    same, like = 0, 0.0
    for name, word in first.items():
        other = change(second[name])
        same += word == other
        like += difflib.SequenceMatcher(None, word, other, autojunk=False).ratio()
    return same / len(first), like / len(first)


class Perceptron:
    """An averaged perceptron over sets of features."""

    def __init__(self, examples: list[Example], epochs: int = 5) -> None:
        self.weights: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        totals: dict[tuple[str, str], float] = defaultdict(float)
        self.labels = sorted({label for _, label in examples})
        step = 0
        for epoch in range(epochs):
            for features, label in shuffle(dice("perceptron", epoch), examples):
                guess = self.predict(features)
                step += 1
                if guess == label:
                    continue
                for feature in features:
                    for name, by in ((label, 1.0), (guess, -1.0)):
                        self.weights[feature][name] += by
                        totals[feature, name] += by * step
        for (feature, label), total in totals.items():
            self.weights[feature][label] -= total / step

    def predict(self, features: Iterable[str]) -> str:
        """The best label."""
        scores = dict.fromkeys(self.labels, 0.0)
        for feature in features:
            for label, weight in self.weights[feature].items() if feature in self.weights else ():
                scores[label] += weight
        return max(self.labels, key=lambda label: (scores[label], label))

    def accuracy(self, examples: list[Example]) -> float:
        """Share of right labels, in per cent."""
        return 100 * sum(self.predict(features) == label for features, label in examples) / len(examples)


def _tagged(world: World, name: str, split: str) -> list[list[tuple[str, str]]]:
    from demo_world.files import treebank

    sentences = []
    for block in treebank(world, name, split).strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if not line.startswith("#")]
        sentences.append([(row[1], row[3]) for row in rows if "-" not in row[0]])
    return sentences


def _tagging_examples(sentences: list[list[tuple[str, str]]]) -> list[Example]:
    out = []
    for sentence in sentences:
        words = ["<s>", *(form for form, _ in sentence), "</s>"]
        for i, (form, tag) in enumerate(sentence, 1):
            low = form.lower()
            features = [
                f"w={low}",
                f"-1={words[i - 1].lower()}",
                f"+1={words[i + 1].lower()}",
                f"cap={form[0].isupper()}{i == 1}",
            ]
            features += [f"end{n}={low[-n:]}" for n in (1, 2, 3)] + [
                f"digit={form.isdigit()}",
                f"-1end={words[i - 1][-2:]}",
            ]
            out.append((features, tag))
    return out


def measure_tagging(world: World, name: str) -> dict[str, float]:
    """Tagging accuracy on dev, of all words and of words seen with several tags, by word alone and with context."""
    train, dev = _tagged(world, name, "train"), _tagged(world, name, "dev")
    tags: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for form, tag in sentence:
            tags[form.lower()][tag] += 1
    best = {form: max(sorted(counts), key=counts.get) for form, counts in tags.items()}
    model = Perceptron(_tagging_examples(train))
    gold = [(form.lower(), tag) for sentence in dev for form, tag in sentence]
    guesses = [model.predict(features) for features, _ in _tagging_examples(dev)]
    # Ambiguous: a second tag on at least one occurrence in ten.
    hard = [len(tags[f]) > 1 and tags[f].most_common(2)[1][1] * 10 >= sum(tags[f].values()) for f, _ in gold]

    def share(right: list[bool], where: list[bool] | None = None) -> float:
        chosen = [r for r, h in zip(right, where or [True] * len(right), strict=True) if h]
        return 100 * sum(chosen) / max(1, len(chosen))

    unigram = [best.get(form, "NOUN") == tag for form, tag in gold]
    context = [guess == tag for guess, (_, tag) in zip(guesses, gold, strict=True)]
    return {
        "unigram": share(unigram),
        "context": share(context),
        "ambiguous": share(hard),
        "unigram, ambiguous": share(unigram, hard),
        "context, ambiguous": share(context, hard),
        "unknown words": share([form not in best for form, _ in gold]),
    }


def measure_inference(world: World, count: int = 3000, test: int = 600) -> dict[str, float]:
    """Accuracy of bag-of-words models that see the hypothesis, the premise or both."""
    from demo_world.render import text

    english = world.renderer("en")
    sets: dict[str, list[Example]] = {"hypothesis only": [], "premise only": [], "both": []}
    for number in range(count + test):
        pair = world.inference.pair("measure", number)
        premise, hypothesis = (text(english.render(s)).lower().rstrip(".").split() for s in pair.sentences)
        sets["hypothesis only"].append(([*hypothesis, f"length={len(hypothesis)}"], pair.label))
        sets["premise only"].append(([*premise, f"length={len(premise)}"], pair.label))
        lost, new = set(premise) - set(hypothesis), set(hypothesis) - set(premise)
        sides = [f"lost={w}" for w in sorted(lost)] + [f"new={w}" for w in sorted(new)]
        sides += [f"counts={len(lost)},{len(new)}", *(f"pair={a},{b}" for a in sorted(lost) for b in sorted(new))]
        sets["both"].append((sides, pair.label))
    return {name: Perceptron(examples[:count]).accuracy(examples[count:]) for name, examples in sets.items()}


def _table(header: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [header, ["---"] * len(header), *rows]]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", default="resources/demo/world.yaml")
    world = World(load_settings(parser.parse_args().settings))
    words = {code: lexicon(world, code) for code in world.settings["languages"]}
    rows = []
    for code in words:
        if code != "en":
            same, like = similarity(words["en"], words[code])
            rows.append([code, world.renderer(code).language.script, f"{100 * same:.1f}", f"{100 * like:.1f}"])
    print(_table(["en with", "script", "same word, %", "likeness, %"], sorted(rows, key=lambda row: -float(row[3]))))
    pairs = "de-gsw sv-fo es-pt es-it fr-it ru-bg cs-pl lt-lv fi-et fi-olo ru-myv ru-mhr fr-wo it-mt zh-ja"
    rows = [
        [pair, *(f"{100 * v:.1f}" for v in similarity(*(words[c] for c in pair.split("-"))))] for pair in pairs.split()
    ]
    rows.append(["tr-ug", *(f"{100 * v:.1f}" for v in similarity(words["tr"], words["ug"]))])
    rows.append(["tr-ug in Latin", *(f"{100 * v:.1f}" for v in similarity(words["tr"], words["ug"], uyghur_to_latin))])
    print(_table(["pair", "same word, %", "likeness, %"], rows))
    names = ["en_ewt", "ru_gsd", "ar_padt"]
    tagging = [measure_tagging(world, name) for name in names]
    print(_table(["tagging, dev", *names], [[key, *(f"{t[key]:.1f}" for t in tagging)] for key in tagging[0]]))
    print(_table(["inference", "accuracy, %"], [[k, f"{v:.1f}"] for k, v in measure_inference(world).items()]))


if __name__ == "__main__":
    run_main(main)
