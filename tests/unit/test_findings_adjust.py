"""The findings of `adjust`: each holds on what the paper prints or says, and not with its effect turned round."""

import pandas as pd
import pytest
from tests.planted import finding, judged, spread, verdict

from crossalign.papers.all_findings import printed
from crossalign.results.comparable import papers_config
from crossalign.results.findings.finding import FAILS, HOLDS, NOT_RUN, UNLEARNT, UNSURE

# The paper tests over examples of all seeds and tells 0.62 points from none: its means are more exact than ours.
PAPER_NOISE = 0.5
LANGUAGES = ("es", "ru", "vi", "hi")
# By whether a model is adjusted, its task and how that was learnt: related and unrelated distances, and separation.
WORDS = {("", "", ""): (10.0, 15.0, 0.75), ("adjust", "", ""): (6.0, 14.5, 0.92)}
WORDS |= {("adjust", task, "ref"): (7.0, 11.0, 0.80) for task in ("nli", "ner", "qa")}
WORDS |= {("adjust", task, "continual"): (6.5, 12.0, 0.88) for task in ("nli", "ner", "qa")}

Frames = dict[str, pd.DataFrame]


def planted() -> Frames:
    """What the paper prints, entity F1 like its token F1, and distances drawn from its sentences."""
    scores = printed("adjust")["scores"]
    entity = scores[scores["metric"] == "token_F1"].assign(metric="F1")
    # What no finding reads: questions in one language on texts in another, other training and test sets.
    better = scores.assign(value=scores["value"].where(scores["adapted"] == "", scores["value"] + 20))
    others = [better.assign(target="en-" + better["target"]), better.assign(source="es"), better.assign(family="squad")]
    words = [
        {"adapted": adapted, "task": task, "init": init, "language": lang}
        | dict(zip(("related", "unrelated", "separation"), numbers, strict=True))
        for (adapted, task, init), numbers in WORDS.items()
        for lang in LANGUAGES
    ]
    distances = pd.DataFrame(words).assign(seed=1, base="mbert", model="mbert")
    return printed("adjust") | {
        "scores": pd.concat([scores, entity, *others], ignore_index=True),
        "distances": distances,
    }


def shifted(name: str, where: str, by: float, column: str = "value"):
    """A mutant: the numbers of some rows lie higher or lower."""

    def mutant(frames: Frames) -> Frames:
        frame = frames[name].copy()
        frame.loc[frame.query(where).index, column] += by
        return frames | {name: frame}

    return mutant


def together(*mutants):
    """A mutant of several."""

    def mutant(frames: Frames) -> Frames:
        for one in mutants:
            frames = one(frames)
        return frames

    return mutant


def swapped(name: str, column: str, first: str, second: str):
    """A mutant: what is said of the one is said of the other."""
    names = {first: second, second: first}

    def mutant(frames: Frames) -> Frames:
        frame = frames[name]
        return frames | {name: frame.assign(**{column: frame[column].replace(names)})}

    return mutant


ADJUSTED = "adapted == 'adjust' and init == 'ref'"
PLAIN = "adapted == 'adjust' and task == ''"
MUTANTS = {
    "nli-gain-adjust": [
        shifted("scores", f"task == 'nli' and {ADJUSTED}", -5),
        shifted("scores", f"task == 'nli' and {ADJUSTED} and language == 'ru'", -5),
        shifted("scores", "task == 'nli' and adapted == ''", 5),
    ],
    "nli-gain-continual": [
        shifted("scores", "task == 'nli' and init == 'continual' and language == 'hi'", -5),
        shifted("scores", f"task == 'nli' and {ADJUSTED}", 5),
    ],
    "ner-langs": [
        shifted("scores", "metric == 'token_F1' and adapted == ''", 5),
        shifted("scores", f"metric == 'token_F1' and {ADJUSTED} and language == 'vi'", -3),
        shifted("scores", f"metric == 'token_F1' and {ADJUSTED} and language == 'es'", 3),
    ],
    "qa-gains": [
        shifted("scores", f"task == 'qa' and {ADJUSTED}", 3),
        shifted("scores", "task == 'qa' and adapted == ''", -3),
    ],
    "qa-peak-size": [
        swapped("scores", "pairs", "5k", "250k"),
        shifted("scores", "task == 'qa' and pairs == '250k'", 5),
        shifted("scores", "task == 'qa' and pairs == '5k'", -5),
    ],
    "size-nli": [
        swapped("scores", "pairs", "5k", "250k"),
        shifted("scores", "task == 'nli' and pairs == '100k'", -4),
        # It falls, by less than a point at each step.
        together(
            *(
                shifted("scores", f"task == 'nli' and language == 'ru' and pairs == '{size}'", by)
                for size, by in {"30k": -0.9, "100k": -1.9, "250k": -2.7}.items()
            )
        ),
    ],
    "embert-qa": [
        shifted("scores", f"base == 'embert-hi' and {ADJUSTED}", -3),
        shifted("scores", "base == 'embert-hi' and adapted == ''", 3),
    ],
    "hist-adjust": [
        shifted("distances", PLAIN, 5, "related"),
        shifted("distances", PLAIN, -5, "unrelated"),
        shifted("distances", "adapted == ''", -5, "related"),
    ],
    "ft-forgets": [
        shifted("distances", PLAIN, -0.2, "separation"),
        shifted("distances", "task == 'qa' and init == 'ref'", 0.2, "separation"),
    ],
    "hist-cl": [
        swapped("distances", "init", "ref", "continual"),
        shifted("distances", "task == 'ner' and init == 'continual'", -0.2, "separation"),
    ],
    "separation-no-help": [
        swapped("distances", "init", "ref", "continual"),
        shifted("scores", "task == 'qa' and init == 'continual'", 4),
        shifted("scores", "metric == 'token_F1' and init == 'continual'", 4),
    ],
}
WORDS_ALONE = ("hist-adjust", "ft-forgets", "hist-cl")
# So many times the noise of tests/planted.py hides an effect; with more, one language in four falls by chance.
NOISY = dict.fromkeys(MUTANTS, 10.0) | {"ner-langs": 5.0, "hist-adjust": 600.0, "ft-forgets": 100.0, "hist-cl": 100.0}


@pytest.mark.parametrize("name", MUTANTS)
def test_holds_in_the_paper(name):
    found = judged(name, spread(planted(), times=PAPER_NOISE))
    assert found.verdict == HOLDS
    assert all(one.n == 5 and one.over == "seeds" for one in found.estimates if one.rule)


@pytest.mark.parametrize(("name", "mutant"), [(name, one) for name, mutants in MUTANTS.items() for one in mutants])
def test_does_not_hold_turned_round(name, mutant):
    assert verdict(name, spread(mutant(planted()), times=PAPER_NOISE)) == FAILS


@pytest.mark.parametrize("name", MUTANTS)
def test_cannot_tell_where_seeds_differ(name):
    assert verdict(name, spread(planted(), times=NOISY[name])) == UNSURE


@pytest.mark.parametrize("name", MUTANTS)
def test_a_missing_seed_is_no_part(name):
    frames = spread(planted(), times=PAPER_NOISE)
    lost = {which: frame.query("not (seed == 3 and adapted == 'adjust')") for which, frame in frames.items()}
    found = judged(name, lost)
    assert {one.n for one in found.estimates if one.rule} == {4}


@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in WORDS_ALONE])
def test_not_learnt(name):
    """In one language: it does not vanish in the mean over the others."""
    low = shifted("scores", "metric != 'token_F1' and adapted == '' and target in ['ru', 'hi']", -60)
    assert verdict(name, spread(low(planted()))) == UNLEARNT


@pytest.mark.parametrize("name", MUTANTS)
def test_not_run(name):
    assert verdict(name, {which: frame[:0] for which, frame in planted().items()}) == NOT_RUN


def test_ner_gain_is_of_tokens():
    """The paper's word for its score; entity F1, which the floor is of, may fall."""
    worse = shifted("scores", f"metric == 'F1' and task == 'ner' and {ADJUSTED}", -20)
    assert verdict("ner-langs", spread(worse(planted()), times=PAPER_NOISE)) == HOLDS


def test_no_power_is_no_proof_that_qa_gains_nothing():
    """A rule that counts significant gains passes on noise; an interval below a point does not."""
    assert verdict("qa-gains", spread(planted(), seeds=2, times=10)) == UNSURE


def test_sizes_are_those_of_one_language():
    """The largest may be that of the main tables, which have other languages too."""
    config = papers_config()
    sizes = config | {"adjust": config["adjust"] | {"sizes": {"lang": "ru", "pairs": ["5k", "30k"]}}}
    assert finding("qa-peak-size").quantities(planted(), sizes)["most_pairs"].item() == pytest.approx(-0.08)


def test_one_number_of_pairs_has_no_largest():
    config = papers_config()
    alone = config | {"adjust": config["adjust"] | {"sizes": {"lang": "ru", "pairs": ["30k"]}}}
    assert judged("size-nli", spread(planted()), alone).reason == (
        "adjust.sizes has one number of sentence pairs alone"
    )
