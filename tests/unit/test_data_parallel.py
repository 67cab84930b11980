"""Parallel sentences: nothing may fall out of step; small public sources; and the list of mixtures."""

import io

import pytest

from crossalign.catalog import sets
from crossalign.catalog.sets import DataSet, raw_files
from crossalign.data.parallel import first_rows, read_column, read_extension, read_pairs, read_pud, read_text
from crossalign.data.report import Report
from crossalign.fetch.register import read_datasets
from crossalign.runtime.errors import UserError


def lines(text):
    return io.StringIO(text, newline="\n")


def sentence(text):
    return f"{text}\n1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n"


def test_treebank_texts_in_order():
    text = sentence("# text = B  b.") + sentence("# sent_id = a\n# text = A\u00a0a.")
    assert list(read_pud(lines(text), "p")) == ["B b.", "A a."]
    with pytest.raises(UserError, match="p: sentence s7 has no '# text' comment"):
        list(read_pud(lines(sentence("# sent_id = s7")), "p"))


def test_hypotheses_are_detokenised():
    text = "premise\thypo\tlabel\nx\tIt 's good , isn 't it ?\tneutral\nx\tYes &amp; no .\tneutral\n"
    assert list(read_extension(lines(text), "e", "en")) == ["It's good, isn't it?", "Yes & no."]
    with pytest.raises(UserError, match="e, line 2: an empty hypothesis"):
        list(read_extension(lines("hypo\n \n"), "e", "en"))


def test_one_column_of_many():
    assert list(read_column(lines("en\tfr\nyes\toui\nno\tnon\n"), "t", "fr")) == ["oui", "non"]
    with pytest.raises(UserError, match="t, line 1: no column de; the header has 'en fr'"):
        list(read_column(lines("en\tfr\n"), "t", "de"))
    with pytest.raises(UserError, match="t, line 3: an empty sentence in column 'fr'"):
        list(read_column(lines("en\tfr\na\tb\nc\t\n"), "t", "fr"))


def test_rows_are_counted_and_must_be_there():
    report = Report()
    assert list(first_rows("abcd", 3, "t", report)) == ["a", "b", "c"]
    assert report.as_dict()["dropped"] == {"after the rows asked for": 1}
    assert list(first_rows("abcd", 0, "t", Report())) == list("abcd")
    with pytest.raises(UserError, match=r"t: 4 rows, but 5 are asked for \(--rows\)"):
        list(first_rows("abcd", 5, "t", Report()))


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
    table = put(tmp_path, "xnli_extension/en.tsv", "premise\thypo\tlabel\nA .\tB .\tneutral\nC , d .\tE .\tneutral\n")
    assert list(read_text(table, "en")) == ["A.", "B.", "C, d.", "E."]
    assert list(read_text(table, "en", skip_rows=1)) == ["C, d.", "E."]
    tagged = put(tmp_path, "masakhaner/wol.txt", "Ñu O\ndem B-LOC\n\nwaaw O\n")
    assert list(read_text(tagged, "wo")) == ["Ñu dem", "waaw"]
    with pytest.raises(UserError, match="no text is known to lie in a folder 'news'"):
        list(read_text(put(tmp_path, "news/en.txt", "a\n"), "en"))


def test_pairs_in_step(tmp_path):
    english = put(tmp_path, "bible/eng.txt", "one\ntwo\n\nfour\nfive\nsix\n")
    # The other translation has put verses 4 and 5 together: neither pairs with one verse.
    other = put(tmp_path, "bible/rus.txt", "odin\n\ntri\nchetyre pjat\n<range>\nshest\n")
    tatoeba = put(tmp_path, "tatoeba/eng-rus.test.txt", "eng\trus\tYes.\tDa.\n")
    assert list(read_pairs([tatoeba, english, other])) == [("Yes.", "Da."), ("one", "odin"), ("six", "shest")]


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
        list(read_pairs(paths))


def test_every_mixture_is_registered(root):
    known = read_datasets(root / "resources" / "datasets.tsv")
    lines = sets.MIXTURES.read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) > 50
    for line in lines:
        name, path = line.split("\t")
        assert path in known
        kind, _, rest = name.partition("/")
        assert path in raw_files(DataSet(kind, rest, "pool" if kind == "bitext" else "train"))
    assert raw_files(DataSet("text", "mix_ug+latn", "train")) == raw_files(DataSet("text", "mix_ug", "train"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("set\tfile\n", "line 1: expected the columns set, path"),
        ("set\tpath\ntext/mix_wo\n", "line 2: expected a set and a path"),
        ("set\tpath\ntext/mix_wo\ta\ntext/mix_wo\ta\n", "line 3: 'a' stands twice in text/mix_wo"),
        ("set\tpath\n", "no files are listed for the set 'text/mix_wo'"),
    ],
)
def test_mistakes_in_the_list_are_told(tmp_path, monkeypatch, text, message):
    monkeypatch.setattr(sets, "MIXTURES", put(tmp_path, "mixtures.tsv", text))
    with pytest.raises(UserError, match=message):
        sets.mixture("text/mix_wo")
