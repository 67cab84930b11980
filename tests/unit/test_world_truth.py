"""What the world says about itself is true: links, labels, answers."""

import pytest
from tools.measure_world import measure_inference, measure_tagging
from world_for_tests import full_world

from crossalign.world.corpora import Mining, links
from crossalign.world.dice import dice
from crossalign.world.reasoning import LABELS, judge, locate
from crossalign.world.render import text, tokens
from crossalign.world.sentences import Event


@pytest.mark.parametrize("code", ["es", "ru", "vi", "hi", "ja", "ar", "fi"])
def test_linked_words_render_the_same_meaning(code: str) -> None:
    world = full_world()
    english, other, grammar = world.renderer("en"), world.renderer(code), world.grammar("wiki")
    rng = dice("links")
    names = total = 0
    for _ in range(150):
        sentence = grammar.sentence(rng)
        left, right = english.render(sentence), other.render(sentence)
        written = (tokens(left), tokens(right))
        found = links(left, right)
        assert len(found) >= len(written[1]) // 3
        for a, b in found:
            ours = {(word.key, word.concept) for word in written[0][a].words}
            theirs = {(word.key, word.concept) for word in written[1][b].words}
            assert {key for key, _ in ours} & {key for key, _ in theirs}
            # Content words carry the same concept, names the same name.
            for key in {key for key, _ in ours} & {key for key, _ in theirs}:
                if key[1] == "":
                    assert {c for k, c in ours if k == key} == {c for k, c in theirs if k == key}
            form, same = written[0][a].form, written[1][b].form
            if written[0][a].words[0].pos == "PROPN" and code in ("es", "vi"):
                total += 1
                names += form[:4] == same[:4]
    # Names look alike in Latin scripts (translated parts such as `university` do not).
    assert code not in ("es", "vi") or names / total > 0.7


def test_low_scores_are_noisier() -> None:
    world = full_world()
    mining = Mining(world.grammar("wiki"), world.renderer("en"), world.renderer("ru"), world.settings["bitext"])
    pairs = mining.draw(dice("noise"), 600)
    density = [len(pair.links) / max(map(len, pair.tokens)) for pair in pairs]
    best, worst = density[:150], density[-150:]
    assert sum(best) / 150 > 1.5 * sum(worst) / 150
    assert sum(not pair.links for pair in pairs[:300]) == 0 < sum(not pair.links for pair in pairs[-100:])
    assert any(max(map(len, pair.tokens)) > 64 for pair in pairs)
    assert len({pair.raw for pair in pairs}) < len(pairs)


def test_labels_follow_from_the_events() -> None:
    world = full_world()
    seen = dict.fromkeys(LABELS, 0)
    for number in range(600):
        pair = world.inference.pair("check", number)
        assert judge(world.concepts, pair.premise, pair.hypothesis) == pair.label
        assert text(world.renderer("en").render(pair.sentences[0])) != text(
            world.renderer("en").render(pair.sentences[1])
        )
        seen[pair.label] += 1
    assert min(seen.values()) > 150


def test_judge_by_hand() -> None:
    world = full_world()
    frame = world.concepts.by_frame["transitive"][0]
    verb, opposite = frame.members[0].id, frame.members[1].id

    def event(
        subject: str = "animal-3", what: str = verb, target: str = "food-2", no: bool = False, **details: str
    ) -> Event:
        return Event(subject, what, target, frame, no, details)

    def label(premise: Event, hypothesis: Event) -> str:
        return judge(world.concepts, premise, hypothesis)

    plain, detailed = event(), event(manner="mannerly-1", year="1990")
    assert label(detailed, plain) == "entailment"
    assert label(plain, detailed) == "neutral"
    assert label(plain, event("animal-0")) == "entailment"
    assert label(event("animal-0"), plain) == "neutral"
    assert label(plain, event("animal-4")) == "contradiction"
    assert label(plain, event(what=opposite)) == "contradiction"
    assert label(plain, event(target="food-3")) == "contradiction"
    assert label(plain, event(no=True)) == "contradiction"
    assert label(event(no=True), plain) == "contradiction"
    # Not to have done something at all implies not to have done it slowly, but not the reverse.
    assert label(event(no=True), event(no=True, manner="mannerly-1")) == "entailment"
    assert label(event(no=True, manner="mannerly-1"), event(no=True)) == "neutral"
    assert label(plain, event(no=True, manner="mannerly-1")) == "neutral"
    assert label(event(year="1990"), event(year="1991")) == "contradiction"
    assert label(event(year="1990"), event(no=True, year="1991")) == "entailment"
    assert label(event(manner="mannerly-1"), event(manner="mannerly-2")) == "neutral"


def test_inference_needs_both_sentences() -> None:
    found = measure_inference(full_world(), count=1500, test=600)
    assert found["hypothesis only"] < 42
    assert found["both"] > 65


def test_tagging_is_learnable_but_not_by_words_alone() -> None:
    found = measure_tagging(full_world(), "en_ewt")
    assert found["context"] > 95
    assert found["unigram"] < 94
    assert found["context, ambiguous"] > found["unigram, ambiguous"] + 15


@pytest.mark.parametrize("code", ["en", "es", "ru", "vi", "hi", "ar", "tr", "zh"])
def test_answers_are_the_asked_part(code: str) -> None:
    world = full_world()
    renderer = world.renderer(code)
    for number in range(60):
        paragraph = world.reading.paragraph("check", number)
        verbs = [event.verb for event in paragraph.events]
        assert len(set(verbs)) == len(verbs)
        for question in paragraph.questions:
            words = renderer.render(paragraph.sentences[question.about])
            start, end = locate(words, paragraph.sentences[question.about], question.ask)
            answer = text(words)[start:end]
            event = paragraph.events[question.about]
            if question.ask == "year":
                # Arabic writes the preposition and a following word together, but not a number.
                assert answer == event.details["year"]
            elif question.ask == "object":
                stem = renderer.language.noun(
                    event.object, "count" in event.details, "count" not in event.details, "acc"
                )
                assert stem in answer
            asked = text(renderer.render(question.sentence))
            assert asked.rstrip("?؟？").rstrip() and asked[-1] in "?؟？"
