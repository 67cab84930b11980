"""Small public sources, each in its own form, read into sentences and sentence pairs; and the list of mixtures."""

import json
import subprocess
import sys

import pytest

from crossalign.catalog import sets
from crossalign.catalog.sets import DataSet, raw_files
from crossalign.data.mixture import read_pairs, read_text
from crossalign.fetch.register import read_datasets
from crossalign.runtime.errors import UserError


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


def test_an_unknown_folder_is_told(tmp_path):
    with pytest.raises(UserError, match="no text is known to lie in a folder 'news'"):
        list(read_text(put(tmp_path, "news/en.txt", "a\n"), "en"))


def test_programs(root, tmp_path):
    """The two programs on a mixture: counts by source, and pairs in the order of reading."""
    bible = put(tmp_path, "bible/eng.txt", "".join(f"This is verse number {word}\n" for word in "abcdefgh" * 5))
    ntrex = put(tmp_path, "ntrex/eng.txt", "".join(f"News of the day {word}\n" for word in "abcdefghijklmnop"))
    out = [f"--out-{part}={tmp_path / part}.txt" for part in ("train", "dev")]
    options = ["--format=mix", "--lang=en", "--dev-share=0.3", "--source", bible, ntrex]
    subprocess.run([sys.executable, root / "scripts/prepare_text.py", *out, *options], check=True, capture_output=True)
    report = json.loads((tmp_path / "train.report.json").read_text(encoding="utf-8"))
    assert (report["from bible"], report["from ntrex"]) == (40, 16)
    assert report["dropped"]["duplicate"] == 32
    tatoeba = put(tmp_path, "tatoeba/eng-hin.test.txt", "eng\thin\tYes, sir.\tहाँ।\neng\thin\tNo.\tनहीं।\n")
    options = ["--format=mix", "--lang=hi", "--pool=9", f"--out={tmp_path / 'pool.tsv'}", "--source", tatoeba]
    subprocess.run([sys.executable, root / "scripts/prepare_bitext.py", *options], check=True, capture_output=True)
    assert (tmp_path / "pool.tsv").read_text(encoding="utf-8").splitlines()[0] == "1.0\tYes , sir .\tहाँ ।"


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
