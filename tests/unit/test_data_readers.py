"""The readers of raw data: what they skip, mend, drop and count, and that they name the line they refuse."""

import io
import json
from collections import Counter
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossalign.alignment.bitext import filter_links
from crossalign.catalog import sets
from crossalign.catalog.sets import DataSet, raw_files
from crossalign.data.bitext import Pool, read_scored
from crossalign.data.conllu import NO_HEAD, Sentence, assign_folds, part_of, read_sentences, write_sentences
from crossalign.data.lines import read_rows, write_rows
from crossalign.data.ner import FORMATS, read_ner
from crossalign.data.nli import coin, mix_with_english, read_multinli, read_pairs, read_xnli
from crossalign.data.parallel import read_column, read_pud, read_text
from crossalign.data.parallel import read_pairs as pairs_in_step
from crossalign.data.qa import cross_questions, prepare_questions, read_questions
from crossalign.data.report import Report
from crossalign.data.text import (
    Cleaning,
    clean_sentences,
    detokeniser,
    is_held_out,
    read_articles,
    read_lines,
    split_sentences,
    tidy,
    tokeniser,
)
from crossalign.fetch.register import read_datasets
from crossalign.runtime.errors import UserError


def lines(text):
    return io.StringIO(text, newline="\n")


def word(index, form="a", tag="NOUN", head="0", deprel="root"):
    return f"{index}\t{form}\t_\t{tag}\t_\t_\t{head}\t{deprel}\t_\t_"


def read_trees(text, **options):
    report = Report()
    sentences = list(read_sentences(lines(text), "x.conllu", report, **options))
    return sentences, report


GOOD = "\n".join(
    [
        "# newdoc id = d",
        "# sent_id = s1",
        "# text = Vámonos ya",
        "1-2\tVámonos" + "\t_" * 8,
        word(1, "Vamos", "VERB"),
        word(2, "nos", "PRON", "1", "expl:pv"),
        "2.1\tx" + "\t_" * 8,
        word(3, "ya", "ADV", "1", "advmod"),
    ]
)


def test_skips_ranges_empty_nodes_and_subtypes():
    (sentence,), report = read_trees(GOOD + "\n\n")
    assert sentence == Sentence(
        "s1", "Vámonos ya", ["Vamos", "nos", "ya"], ["VERB", "PRON", "ADV"], [0, 1, 1], ["root", "expl", "advmod"]
    )
    report.kept = 1
    counts = {"comments": 1, "empty_nodes": 1, "multiword_tokens": 1, "subtypes_cut": 1, "words": 3}
    assert report.as_dict() == {"read": 1, "kept": 1, "dropped": {}, "repaired": {}, **counts}


@pytest.mark.parametrize(
    "text", [GOOD, GOOD + "\n", GOOD + "\n\n\n\n", "\ufeff" + GOOD.replace("\n", "\r\n") + "\r\n\r\n"]
)
def test_ends_of_lines_and_files_may_vary(text):
    assert read_trees(text)[0] == read_trees(GOOD + "\n\n")[0]


def test_identifiers_are_made_and_made_unique():
    text = "\n\n".join(["# sent_id s\n" + word(1), "# sent_id = s\n" + word(1), word(1)])
    sentences, report = read_trees(text)
    assert [sentence.sent_id for sentence in sentences] == ["s", "s#2", "3"]
    assert report.repaired == {"repeated identifier made unique": 1, "sentence without identifier numbered": 1}


def test_old_conjunction_tag_is_renamed_and_odd_words_are_counted():
    lines = [word(1, "100\u00a0000", tag="CONJ"), word(2, "thái độ", tag="_", head="1"), word(3, "b", head="1")]
    (sentence,), report = read_trees("\n".join(lines))
    assert sentence.forms == ["100\u00a0000", "thái độ", "b"]
    assert report.counts["forms_with_spaces"] == 2
    assert sentence.upos == ["CCONJ", "_", "NOUN"]
    assert report.repaired["tag CONJ renamed CCONJ"] == 1
    assert report.counts["words_without_tag"] == 1


def test_several_roots_only_on_request():
    lines = "\n".join([word(1), word(2)])
    sentences, report = read_trees(lines, several_roots=True)
    assert sentences[0].heads == [0, 0]
    assert report.counts["sentences_with_several_roots"] == 1
    with pytest.raises(UserError, match="its own ancestor"):
        read_trees("\n".join([word(1), word(2), word(3, head="3")]), several_roots=True)


def test_files_with_tags_only():
    text = "\n".join([word(1, head="_", deprel="_"), word(2, head="_", deprel="_")])
    (sentence,), report = read_trees(text, tags_only=True)
    assert sentence.heads == [NO_HEAD, NO_HEAD]
    assert report.counts["sentences_without_tree"] == 1
    with pytest.raises(UserError, match="line 2: a word without a head in a sentence that has heads"):
        read_trees("\n".join([word(1), word(2, head="_", deprel="_")]), tags_only=True)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(3, 7), st.integers(0, 99))
def test_equal_items_share_a_fold_and_folds_are_even(keys, folds, seed):
    assigned = assign_folds(keys, folds, seed)
    assert len({(key, fold) for key, fold in zip(keys, assigned, strict=True)}) == len(set(keys))
    sizes = Counter(dict(zip(keys, assigned, strict=True)).values())
    assert max(sizes.values()) - min(sizes[fold] for fold in range(folds)) <= 1


def test_rotations_test_each_fold_once_and_hold_out_the_next():
    rotations = [[part_of(fold, rotation, 5) for fold in range(5)] for rotation in range(1, 6)]
    assert rotations[0] == ["test", "dev", "train", "train", "train"]
    assert rotations[4] == ["dev", "train", "train", "train", "test"]
    for fold in range(5):
        assert Counter(rotation[fold] for rotation in rotations) == {"test": 1, "dev": 1, "train": 3}


def test_the_draw_is_fixed_for_ever():
    assert assign_folds(range(10), 5, 1) == [2, 4, 0, 1, 1, 4, 3, 0, 2, 3]
    assert assign_folds(range(10), 5, 2) != assign_folds(range(10), 5, 1)


def read_entities(text, form="wikiann", lang="en"):
    report = Report()
    rows = list(read_ner(lines(text), "f", FORMATS[form], lang, "dev", report))
    assert report.as_dict()["kept"] == len(rows)
    return rows, report


def test_wikiann_prefix_and_colons_in_tokens():
    rows, report = read_entities("en:R.E.M.\tB-ORG\nen::\tO\nen:12:30\tO\n\nen:x\tO\n")
    assert rows == [
        {"id": "en-dev-1", "tokens": ["R.E.M.", ":", "12:30"], "tags": ["B-ORG", "O", "O"]},
        {"id": "en-dev-2", "tokens": ["x"], "tags": ["O"]},
    ]
    assert (report.counts["tokens"], report.counts["entities"]) == (4, 1)
    assert read_entities("en:a\tO\r\n\r\nen:b\tB-LOC")[0] == read_entities("en:a\tO\n\nen:b\tB-LOC\n\n")[0]


def test_tokens_without_anything_visible_are_removed_and_the_entity_still_begins_with_b():
    rows, report = read_entities("en:\tB-PER\nen:Ann\tI-PER\nen:\u00a0\tO\n\nen:\u200b\tO\n\n")
    assert rows == [{"id": "en-dev-1", "tokens": ["Ann"], "tags": ["B-PER"]}]
    assert report.dropped == {"no token left": 1}
    assert report.repaired == {"token without visible characters removed": 3, "I- without B- made B-": 1}


def test_conll2003_iob1_documents_and_misc():
    text = "-DOCSTART- -X- -X- O\n\nEU NNP I-NP I-ORG\nGerman JJ I-NP I-MISC\nFrench JJ I-NP B-MISC\n. . O O\n\n"
    rows, report = read_entities(text, "conll2003")
    assert rows == [
        {"id": "en-dev-1", "tokens": ["EU", "German", "French", "."], "tags": ["B-ORG", "B-MISC", "B-MISC", "O"]}
    ]
    assert report.counts["document_starts"] == 1
    assert report.counts["tags_made_iob2"] == 2
    assert read_entities(text.replace("O\n\nEU", "O\nEU"), "conll2003")[0] == rows
    assert not report.repaired


def test_half_a_surrogate_pair_is_refused(tmp_path):
    with (tmp_path / "x").open("w", encoding="utf-8") as stream, pytest.raises(UserError, match="item '7': half"):
        write_rows([{"id": "7", "text": "\ud800"}], stream)


XNLI_HEADER = "language\tgold_label\tsentence1\tsentence2\tpromptID\tpairID\n"


def multinli(**fields):
    return json.dumps({"gold_label": "neutral", "sentence1": "a", "sentence2": "b", "pairID": "1n"} | fields) + "\n"


def test_multinli_drops_pairs_without_label():
    report = Report()
    rows = list(read_multinli(lines(multinli() + multinli(gold_label="-", pairID="2")), "m", report))
    assert rows == [{"id": "1n", "premise": "a", "hypothesis": "b", "label": "neutral"}]
    assert report.as_dict() == {"read": 2, "kept": 1, "dropped": {"no label": 1}, "repaired": {}, "neutral": 1}


def test_xnli_takes_one_language_and_no_quoting():
    text = XNLI_HEADER + 'de\tneutral\t"x\ty\t1\t9\n' + "fr\tentailment\tp\tq\t1\t9\n"
    rows = list(read_xnli(lines(text), "x", "de", report := Report()))
    assert rows == [{"id": "9", "premise": '"x', "hypothesis": "y", "label": "neutral"}]
    assert report.read == 1
    with pytest.raises(UserError, match="x: no rows of language 'es'; it has de, fr"):
        list(read_xnli(lines(text), "x", "es", Report()))


def test_extension_labels_crlf_and_odd_line_separators():
    # U+0085 and U+2028 are line breaks to str.splitlines, but text here.
    text = "premise\thypo\tlabel\r\na\u0085b\tc\u2028\tcontradictory\r\n \td\tentailment\r\n"
    rows = list(read_pairs(lines(text), "e", report := Report()))
    assert rows[0] == {"id": "1", "premise": "a\u0085b", "hypothesis": "c\u2028", "label": "contradiction"}
    assert report.counts["pairs_with_empty_sentence"] == 1
    assert list(read_pairs(lines("label\thypothesis\tpremise\nneutral\th\tp\n"), "e", Report()))[0]["hypothesis"] == "h"


def pair(identity, language, label="neutral"):
    return {"id": identity, "premise": f"{language} p", "hypothesis": f"{language} h", "label": label}


def test_mixed_set_has_one_english_side_the_same_for_every_language():
    names = [str(number) for number in range(1000)]
    english = [pair(name, "en") for name in names]
    sides = []
    for language in ("es", "hi"):
        report = Report()
        mixed = list(mix_with_english([pair(name, language) for name in names], english, 1, report))
        assert all({row["premise"][:2], row["hypothesis"][:2]} == {"en", language} for row in mixed)
        sides.append([row["premise"].startswith("en") for row in mixed])
        assert report.counts["english_premise"] == sum(sides[-1])
    assert sides[0] == sides[1]
    assert 440 < sum(sides[0]) < 560
    assert sides[0] != [coin(2, name) for name in names]
    # The coin is fixed for ever.
    assert "".join("HT"[coin(1, str(number))] for number in range(16)) == "HHTTTHHTHHTTHTTH"


def test_mixing_needs_the_same_pairs():
    with pytest.raises(UserError, match="pair '2' has no English original"):
        list(mix_with_english([pair("2", "es")], [pair("1", "en")], 1, Report()))
    with pytest.raises(UserError, match="pair '1' has another label in English"):
        list(mix_with_english([pair("1", "es")], [pair("1", "en", "entailment")], 1, Report()))


CONTEXT = "one two one three"


def squad(*qas, context=CONTEXT):
    return io.StringIO(json.dumps({"data": [{"paragraphs": [{"context": context, "qas": list(qas)}]}]}))


def qa(identity, *answers, **more):
    answers = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": identity, "question": f"q{identity}", "answers": answers, **more}


def prepare(*qas, **options):
    report = Report()
    rows = list(prepare_questions(read_questions(squad(*qas, **options), "f.json"), report))
    assert report.as_dict()["kept"] == len(rows)
    return rows, report


def test_right_offsets_stay():
    rows, report = prepare(qa("a", ("one", 8), ("two", 4)))
    answers = [{"text": "one", "start": 8}, {"text": "two", "start": 4}]
    assert rows == [{"id": "a", "question": "qa", "context": CONTEXT, "answers": answers}]
    assert not report.repaired
    # Offsets count characters, also beyond the basic plane.
    rows, report = prepare(qa("a", ("b", 2)), context="😀 b")
    assert rows[0]["answers"][0]["start"] == 2
    assert not report.repaired


@pytest.mark.parametrize(("start", "place"), [(1, 0), (4, 0), (5, 8), (99, 8), (-5, 0)])
def test_wrong_offsets_move_to_the_nearest_place(start, place):
    rows, report = prepare(qa("a", ("one", start)))
    assert rows[0]["answers"] == [{"text": "one", "start": place}]
    assert report.repaired == {"answer offset": 1}


def test_what_has_no_answer_is_dropped_and_counted():
    rows, report = prepare(
        qa("a", ("four", 0)),
        qa("b", ("four", 0), ("two", 4)),
        qa("c"),
        qa("d", ("", 0)),
        qa("e", ("one", 0), is_impossible=True),
        {"id": "f", "question": "?", "is_impossible": True},
    )
    assert [row["id"] for row in rows] == ["b"]
    assert report.dropped == {"answer not in context": 1, "no answer": 2, "impossible": 2}
    assert report.counts["answers_not_in_context"] == 2


def test_cross_lingual_sets_join_by_identifier_and_must_be_parallel():
    spanish = read_questions(squad(qa("b"), qa("a")), "es")
    english = read_questions(squad(qa("a", ("one", 0)), qa("b", ("two", 4))), "en")
    joined = list(cross_questions(({**q, "question": "¿" + q["id"]} for q in spanish), english, "es", "en"))
    assert [(q["id"], q["question"], q["answers"][0][0]) for q in joined] == [("a", "¿a", "one"), ("b", "¿b", "two")]

    def questions(*names):
        return read_questions(squad(*(qa(name) for name in names)), "x")

    with pytest.raises(UserError, match="es: no question 'b', which en has"):
        list(cross_questions(questions("a"), questions("a", "b"), "es", "en"))
    with pytest.raises(UserError, match="en: no question 'c', which es has"):
        list(cross_questions(questions("a", "c"), questions("a"), "es", "en"))


def pool_of(rows, size=100, max_words=4):
    report = Report()
    pool = Pool(size, max_words, str.split, str.split, report)
    for number, (score, english, other) in enumerate(rows, 1):
        pool.add(number, score, english, other)
    kept = list(pool.rows())
    report.kept = len(kept)
    return kept, report.as_dict()


def test_drops_empty_long_and_double_pairs():
    rows = [("2", "", "x"), ("2", "a", " \u00a0 "), ("2", "a b c d e", "x"), ("2", "a", "v w x y z")]
    rows += [("1", "a b", "x"), ("3", "a  b ", "x"), ("2", "a b", "x")]
    kept, report = pool_of(rows)
    assert kept == [("3", "a b", "x")]
    assert report["dropped"] == {"duplicate": 2, "empty side": 2, "too long": 2}


SCORES = st.sampled_from(["1.0", "1.1", "1.2", "1.3"])
ROWS = st.lists(st.tuples(SCORES, st.sampled_from("abcdefgh"), st.sampled_from("xy")), max_size=40)


@given(ROWS, st.integers(1, 8))
def test_pool_equals_a_plain_sort(rows, size):
    best = {}
    for number, (score, *pair) in enumerate(rows):
        rank = (-float(score), number)
        if tuple(pair) not in best or rank < best[tuple(pair)]:
            best[tuple(pair)] = rank
    expected = sorted(best.items(), key=lambda item: item[1])[:size]
    kept, report = pool_of(rows, size)
    assert [tuple(row[1:]) for row in kept] == [pair for pair, _ in expected]
    assert [-float(row[0]) for row in kept] == [rank[0] for _, rank in expected]
    assert report["read"] == len(rows)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3))), st.text("ab", min_size=4, max_size=4))
def test_links_left_are_a_matching_of_the_given_ones(links, target):
    source = "abab"
    kept = filter_links(links, source, target)
    assert set(kept) <= set(links)
    assert len({i for i, _ in kept}) == len({j for _, j in kept}) == len(kept)
    for i, j in set(links) - set(kept):
        crowded = any((k == i) != (m == j) for k, m in links)
        assert crowded or source[i] == target[j]


def test_moses_tokens():
    assert " ".join(tokeniser("en")("Mr. O'Neil's 3.5% & <x>\u00a0ok…")) == "Mr. O 'Neil 's 3.5 % & < x > ok …"
    assert tokeniser("es")("¿Qué? ¡Sí!") == ["¿", "Qué", "?", "¡", "Sí", "!"]
    assert tokeniser("hi")("यह घर है।") == ["यह", "घर", "है", "।"]
    assert detokeniser("fr")("L' eau , c' est bon !") == "L'eau, c'est bon !"
    assert detokeniser("en")("It 's fine , isn 't it ?") == "It's fine, isn't it?"


@given(
    st.text(max_size=30) | st.text("ab.&<>'\"-,… 1$%|[]@\x07", max_size=30), st.sampled_from(["en", "es", "ru", "vi"])
)
def test_tokenising_only_adds_spaces(text, lang):
    words = tokeniser(lang)(text)
    assert " ".join(words).split() == words
    assert "".join(words) == tidy(text).replace(" ", "")
    assert len(words) >= len(tidy(text).split())


def sentence(text):
    return f"{text}\n1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


def test_treebank_texts_in_order():
    text = sentence("# text = B  b.") + sentence("# sent_id = a\n# text = A\u00a0a.")
    assert list(read_pud(lines(text), "p")) == ["B b.", "A a."]
    with pytest.raises(UserError, match="p: sentence s7 has no '# text' comment"):
        list(read_pud(lines(sentence("# sent_id = s7")), "p"))


def test_one_column_of_many():
    assert list(read_column(lines("en\tfr\nyes\toui\nno\tnon\n"), "t", "fr")) == ["oui", "non"]
    with pytest.raises(UserError, match="t, line 1: no column de; the header has 'en fr'"):
        list(read_column(lines("en\tfr\n"), "t", "de"))
    with pytest.raises(UserError, match="t, line 3: an empty sentence in column 'fr'"):
        list(read_column(lines("en\tfr\na\tb\nc\t\n"), "t", "fr"))


def put(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_texts_by_folder(tmp_path):
    verses = put(tmp_path, "bible/eng.txt", "In the beginning\n\n<range>\nLet there be light\n")
    assert list(read_text(verses, "en")) == ["In the beginning", "Let there be light"]
    pairs = put(tmp_path, "tatoeba/eng-deu.test.txt", "deu\teng\tHallo!\tHello!\neng\tdeu_Latn\tBye.\tTschüss.\n")
    assert list(read_text(pairs, "en")) == ["Hello!", "Bye."]
    assert list(read_text(pairs, "de")) == ["Hallo!", "Tschüss."]
    tagged = put(tmp_path, "masakhaner/wol.txt", "Ñu O\ndem B-LOC\n\nwaaw O\n")
    assert list(read_text(tagged, "wo")) == ["Ñu dem", "waaw"]
    with pytest.raises(UserError, match="no text is known to lie in a folder 'news'"):
        list(read_text(put(tmp_path, "news/en.txt", "a\n"), "en"))


def test_pairs_in_step(tmp_path):
    english = put(tmp_path, "bible/eng.txt", "one\ntwo\n\nfour\nfive\nsix\n")
    # The other translation has put verses 4 and 5 together: neither pairs with one verse.
    other = put(tmp_path, "bible/rus.txt", "odin\n\ntri\nchetyre pjat\n<range>\nshest\n")
    tatoeba = put(tmp_path, "tatoeba/eng-rus.test.txt", "eng\trus\tYes.\tDa.\n")
    assert list(pairs_in_step([tatoeba, english, other])) == [("Yes.", "Da."), ("one", "odin"), ("six", "shest")]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tatoeba/a.txt": "eng\trus\tYes.\n"}, "a.txt, line 1: 3 fields instead of two languages"),
        ({"tatoeba/a.txt": "deu\trus\tJa.\tDa.\n"}, "one of the languages must be eng"),
        ({"ntrex/eng.txt": "a\n"}, "the file with the same lines in the other language is not given"),
        ({"ntrex/eng.txt": "a\nb\n", "ntrex/rus.txt": "a\n"}, "differ in their number of lines"),
        ({"ntrex/eng.txt": "a\n", "bible/rus.txt": "a\n"}, "lie in different folders"),
        ({"xnli_extension/en.tsv": "premise\thypo\n"}, "no sentence pairs; they are read from bible, ntrex, tatoeba"),
    ],
)
def test_bad_pairs_are_told(tmp_path, files, message):
    paths = [put(tmp_path, name, text) for name, text in files.items()]
    with pytest.raises(UserError, match=message):
        list(pairs_in_step(paths))


def test_every_mixture_is_registered(root):
    known = read_datasets(root / "resources" / "datasets.tsv")
    lines = sets.MIXTURES.read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) > 40
    for line in lines:
        name, path = line.split("\t")
        assert path in known
        kind, _, rest = name.partition("/")
        assert path in raw_files(DataSet(kind, rest, "pool" if kind == "bitext" else "train"))
    assert raw_files(DataSet("text", "open_ug+latn", "train")) == raw_files(DataSet("text", "open_ug", "train"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("set\tfile\n", "line 1: expected the columns set, path"),
        ("set\tpath\ntext/open_wo\n", "line 2: expected a set and a path"),
        ("set\tpath\ntext/open_wo\ta\ntext/open_wo\ta\n", "line 3: 'a' stands twice in text/open_wo"),
        ("set\tpath\n", "no files are listed for the set 'text/open_wo'"),
    ],
)
def test_mistakes_in_the_list_are_told(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(sets, "MIXTURES", put(tmp_path, "mixtures.tsv", text))
    with pytest.raises(UserError, match=message):
        sets.mixture("text/open_wo")


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ('He said: "Go." Then he left...', ['He said: "Go."', "Then he left..."]),
        ("J. R. R. Tolkien met Dr. Smith. They spoke.", ["J. R. R. Tolkien met Dr. Smith.", "They spoke."]),
        (
            "Am 3. Oktober war es kalt. Im Jahr 1990. Danach.",
            ["Am 3. Oktober war es kalt.", "Im Jahr 1990.", "Danach."],
        ),
        ("He stopped. but went on", ["He stopped. but went on"]),
        ("今日は雨です。明日は？「晴れ。」そう。", ["今日は雨です。", "明日は？", "「晴れ。」", "そう。"]),
        ("यह एक है। वह दो है॥ अंत", ["यह एक है।", "वह दो है॥", "अंत"]),
        ("ما هذا؟ هذا كتاب. نعم", ["ما هذا؟", "هذا كتاب.", "نعم"]),
        ("Սա մեկն է։ Սա երկուսն է։", ["Սա մեկն է։", "Սա երկուսն է։"]),
        ("", []),
        (" . ", ["."]),
    ],
)
def test_sentences(paragraph, sentences):
    assert split_sentences(paragraph) == sentences


@given(st.text("aB1.!?…。।؟ \"'») ", max_size=40))
def test_splitting_loses_nothing(paragraph):
    assert "".join("".join(split_sentences(paragraph)).split()) == "".join(paragraph.split())


def clean(sentences, **rules):
    report = Report()
    kept = list(clean_sentences(sentences, Cleaning(**rules), report))
    assert report.as_dict()["kept"] == len(kept)
    return kept, report


def test_cleaning_rules_and_counts():
    good = ["  A  good\u00a0sentence. ", "आपका स्वागत", "so\u00adft hy\u200ephen", "می\u200cخواهم بروم"]
    bad = ["A good sentence.", "ab", "x" * 21, "12 34 56 78 a"]
    kept, report = clean([*good, *bad], max_characters=20)
    assert kept == ["A good sentence.", "आपका स्वागत", "soft hyphen", "می\u200cخواهم بروم"]
    assert report.dropped == {"duplicate": 1, "too short": 1, "too long": 1, "mostly not letters": 1}


def test_reading_stops_at_the_bound():
    kept, report = clean((f"sentence number {'x' * number}" for number in count(1)), max_sentences=3)
    assert len(kept) == 3
    assert report.facts == {"stopped_at_max_sentences": True}


def test_blank_lines_are_counted():
    assert list(read_lines([(1, "a"), (2, ""), (3, " "), (4, "b")], report := Report())) == ["a", "b"]
    assert report.counts["blank_lines"] == 2


def test_holding_out_depends_on_text_and_seed_alone():
    sentences = [f"sentence {number}" for number in range(2000)]
    first = {sentence for sentence in sentences if is_held_out(sentence, 0.1, 1)}
    assert 150 < len(first) < 250
    assert {sentence for sentence in reversed(sentences) if is_held_out(sentence, 0.1, 1)} == first
    assert {sentence for sentence in sentences if is_held_out(sentence, 0.1, 2)} != first


def test_articles_in_parquet(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "xx.parquet"
    parquet.write_table(arrow.table({"id": ["1", "2"], "text": ["Title\n\nOne. Two.", None]}), path)
    assert list(read_articles(path, report := Report())) == ["Title", "One.", "Two."]
    assert report.counts["articles"] == 2
    parquet.write_table(arrow.table({"id": ["1"]}), path)
    with pytest.raises(UserError, match="no column 'text'; it has id"):
        list(read_articles(path, Report()))
    path.write_bytes(b"PAR1 nonsense")
    with pytest.raises(UserError, match="not a readable Parquet file"):
        list(read_articles(path, Report()))


def test_trees_are_written_as_they_were_read():
    other = "\n".join(["# sent_id = é", word(1, head="2", deprel="obj"), word(2, "1\u00a00", "_")])
    sentences, _ = read_trees(f"{GOOD}\n\n{other}")
    assert write_sentences(sentences, stream := io.StringIO(newline="\n")) == 2
    again, report = read_trees(stream.getvalue())
    assert again == sentences and not report.repaired and report.read == 2


REFUSED = {
    lambda text: read_trees(text): [
        ("1\ta\tb", "x.conllu, line 1: 3 columns instead of 10, separated by tabs: '1\\ta\\tb'"),
        (word(1) + "\n" + word(3, head="1"), "line 2: word number '3' where 2 should stand"),
        (word(1, form="\u00a0"), "line 1: a word without a form"),
        (word(1, tag="N"), "line 1: 'N' is none of the 17 universal tags"),
        (word(1, head="_"), "line 1: head '_' is not a number (for a file without trees ask for tags only)"),
        (word(1) + "\n" + word(2, head="3"), "line 2: head 3 in a sentence of 2 words"),
        (word(1, deprel="_"), "line 1: a head without a relation"),
        (word(1) + "\n" + word(2), "line 2: a second root"),
        (word(1) + "\n" + word(2, head="2"), "line 2: word 2 is its own ancestor"),
        ("# text = a", "line 1: a sentence without words"),
    ],
    lambda text: read_entities(text): [
        ("en:a\tO\nen:b\n", "f, line 2: 1 columns instead of 2, separated by tabs"),
        ("de:a\tO\n", "f, line 1: token 'de:a' does not start with 'en:'"),
        ("en:a\tB-MISC\n", "f, line 1: tag 'B-MISC' is none of O, B-LOC, I-LOC, B-ORG, I-ORG, B-PER, I-PER"),
    ],
    lambda text: read_entities(text, "conll2003"): [
        ("a b O\n", "f, line 1: 3 columns instead of 4, separated by single spaces"),
    ],
    lambda text: list(read_multinli(lines(text), "m", Report())): [
        (multinli() + multinli(gold_label="maybe"), "m, line 2: label 'maybe' is none of entailment, neutral"),
        (multinli(sentence1=None), "m, line 1: one of pairID, sentence1, sentence2, gold_label is missing or no text"),
        (multinli() + "{\n", "m, line 2: not JSON"),
    ],
    lambda text: list(read_xnli(lines(text), "x", "de", Report())): [
        (XNLI_HEADER + "de\tneutral\ta\n", "x, line 2: 3 fields where the header has 6: "),
        ("language\tsentence1\n", "x, line 1: no column pairID; the header has 'language sentence1'"),
        (XNLI_HEADER + "de\tEntailment\ta\tb\t1\t2\n", "x, line 2: label 'Entailment'"),
    ],
    lambda text: list(read_questions(io.StringIO(text), "f.json")): [
        ("{", "f.json: not JSON: "),
        ('{"data": [{}]}', "f.json: data[0] has no 'paragraphs'"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', "f.json: data[0].paragraphs[0] has no 'context'"),
        (squad(qa(None)).getvalue(), "f.json: data[0].paragraphs[0].qas[0] has no 'id'"),
        (squad(qa("a", ("x", "0"))).getvalue(), "qas[0] has no 'answer_start'"),
    ],
    lambda text: list(read_scored(lines(text), "w")): [
        ("1.1\ta\tb\n1.2\ta\n", "w, line 2: 2 fields instead of score, English, other: '1.2\\ta'"),
        ("nan\ta\tb\n", "w, line 1: score 'nan' is not a number"),
    ],
    lambda text: list(read_rows(text.splitlines(keepends=True), "g")): [
        ('{"a":1}\n{oops\n', "g, line 2: not JSON ("),
        ("3\n", "g, line 1: not a JSON object: '3'"),
    ],
}


@pytest.mark.parametrize(
    ("read", "text", "message"), [(read, *case) for read, cases in REFUSED.items() for case in cases]
)
def test_malformed_lines_are_named(read, text, message):
    with pytest.raises(UserError) as error:
        read(text)
    assert message in str(error.value)
