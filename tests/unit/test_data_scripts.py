"""The prepare programs from raw files, in the form of the archives upstream, to sets that the checks find sound."""

import gzip
import importlib
import io
import json
import lzma
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.prepared import validate

from crossalign.runtime.errors import UserError

TREE = "# sent_id = s{0}\n# text = w{0} x\n1\tw{0}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tx\t_\tX\t_\t_\t1\tdep:y\t_\t_\n\n"


def tar(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.fixture
def put(tmp_path):
    """Writes a file: text, bytes, or the members of a zip file."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            with zipfile.ZipFile(path, "w") as archive:
                for member, inside in content.items():
                    archive.writestr(member, inside)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def run(monkeypatch):
    """Runs a prepare program in this process; `refused` is the error that it must end with."""

    def call(kind, options, source, out=None, refused=None):
        sources = [source] if isinstance(source, Path) else source
        words = ["--source", *sources, *(["--out", out] if out else []), *options.split()]
        monkeypatch.setattr(sys, "argv", [f"prepare_{kind}.py", *map(str, words)])
        main = importlib.import_module(f"prepare_{kind}").main
        if refused is None:
            return main()
        with pytest.raises(UserError, match=refused):
            main()

    return call


def report_of(path):
    return json.loads(path.with_name(path.stem + ".report.json").read_text(encoding="utf-8"))


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def squad(*triples):
    paragraphs = [
        {"context": context, "qas": [{"id": i, "question": q, "answers": [{"text": context[:2], "answer_start": 0}]}]}
        for i, q, context in triples
    ]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def test_trees_folds_cover_everything_once(run, put, tmp_path):
    train = put("train.conllu", "".join(TREE.format(n) for n in range(5)))
    test = put("test.conllu", "".join(TREE.format(n) for n in range(4, 16)))
    tested = []
    for fold in (1, 2, 3):
        parts = {}
        for part in ("train", "dev", "test"):
            out = tmp_path / f"fold{fold}" / f"{part}.conllu"
            run("trees", f"--fold {fold} --folds 3 --part {part}", [train, test], out)
            text = out.read_text(encoding="utf-8")
            parts[part] = {line for line in text.splitlines() if line.startswith("# sent_id")}
            assert validate("trees", out) == len(parts[part])
            assert report_of(out)["read"] == 17
        assert sum(map(len, parts.values())) == len(set.union(*parts.values())) == 17
        tested.append(parts["test"])
    assert sum(map(len, tested)) == len(set.union(*tested)) == 17
    assert "# sent_id = s4#2" in set.union(*tested)


def test_trees_transliterated_and_errors_that_leave_no_file(run, put, tmp_path):
    out = tmp_path / "out" / "test.conllu"
    run("trees", "--transliterate ug", put("test.conllu", TREE.format(1).replace("w1", "ئۇيغۇر")), out)
    assert out.read_text(encoding="utf-8") == TREE.format(1).replace("w1", "uyğur").replace("dep:y", "dep")
    assert report_of(out)["transliterated"] == "ug"
    out = tmp_path / "none" / "out.conllu"
    raw = put("bad.conllu", TREE.format(1) + "1\tx\n")
    run("trees", "", raw, out, refused=f"{raw}, line 6: 2 columns")
    run("trees", "", put("bad.conllu", ""), out, refused=r"nothing to keep \(no items in it\)")
    run("trees", "", tmp_path / "no.conllu", out, refused="no.conllu: no such file")
    run("trees", "--fold 1", raw, out, refused="--fold and --part go together")
    assert list(out.parent.iterdir()) == []


def test_ner_from_the_nested_archive(run, put, tmp_path):
    content = {"xmf.tar.gz": tar({"dev": "xmf:ჸუდე\tB-LOC\nxmf::\tO\n\n", "train": "broken"})}
    source, out = put("panx_dataset.zip", content), tmp_path / "dev.jsonl"
    run("ner", "--format wikiann --split dev --lang xmf", source, out)
    assert out.read_text(encoding="utf-8") == '{"id":"xmf-dev-1","tokens":["ჸუდე",":"],"tags":["B-LOC","O"]}\n'
    run("ner", "--format wikiann --split dev --lang xmf --transliterate xmf", source, out)
    assert rows_of(out)[0]["tokens"] == ["'ude", ":"]
    assert report_of(out)["tags"][0] == "O"
    run("ner", "--format wikiann --split dev --lang de", source, out, refused="de.tar.gz")


def test_nli_from_archives(run, put, tmp_path):
    out = tmp_path / "out.jsonl"
    row = {"gold_label": "entailment", "sentence1": "a", "sentence2": "b", "pairID": "1e"}
    multinli = put("multinli_1.0.zip", {"multinli_1.0/multinli_1.0_train.jsonl": json.dumps(row) + "\n"})
    run("nli", "--format multinli --lang en --split train", multinli, out)
    assert out.read_text(encoding="utf-8") == '{"id":"1e","premise":"a","hypothesis":"b","label":"entailment"}\n'
    table = "language\tgold_label\tsentence1\tsentence2\tpairID\n"
    for lang in ("en", "es"):
        table += "".join(f"{lang}\tneutral\t{lang} p{n}\t{lang} h{n}\t{n}\n" for n in range(20))
    xnli = put("XNLI-1.0.zip", {"XNLI-1.0/xnli.test.tsv": table})
    run("nli", "--format xnli --split test --lang es --mix-with-english --coin-seed 3", xnli, out)
    assert validate("nli", out) == 20
    assert {row["premise"][:2] + row["hypothesis"][:2] for row in rows_of(out)} == {"enes", "esen"}
    assert report_of(out)["coin_seed"] == 3
    refused = "in another language"
    run("nli", "--format xnli --split test --lang en --mix-with-english", xnli, out, refused=refused)


def test_qa_from_archives(run, put, tmp_path):
    out = tmp_path / "out.jsonl"
    member = "MLQA_V1/test/test-context-es-question-en.json"
    mlqa = put("MLQA_V1.zip", {member: squad(("1", "why?", "el perro"))})
    run("qa", "--format mlqa --question-lang en --context-lang es --split test", mlqa, out)
    expected = '{"id":"1","question":"why?","context":"el perro","answers":[{"text":"el","start":0}]}\n'
    assert out.read_text(encoding="utf-8") == expected
    member = "mlqa-translate-train/vi_squad-translate-train-train-v1.1.json"
    translated = put("mlqa-translate-train.tar.gz", tar({member: squad(("1", "q", "con chó"))}))
    run("qa", "--format mlqa-translated --question-lang vi --split train", translated, out)
    assert validate("qa", out) == 1
    run("qa", "--format mlqa-translated --question-lang vi", translated, out, refused="needs --split")
    member = "tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-russian.json"
    tydi = put("tydiqa-goldp-v1.1-dev.tgz", tar({member: squad(("1", "q", "собака"))}))
    run("qa", "--format tydiqa --split dev --question-lang ru", tydi, out)
    assert validate("qa", out) == 1
    refused = "--question-lang de: TyDi QA has ar, bn"
    run("qa", "--format tydiqa --split dev --question-lang de", tydi, out, refused=refused)


def test_cross_lingual_xquad_knows_its_files(run, put, tmp_path):
    texts = {"es": "el perro", "en": "the dog"}
    spanish, english = (put(f"xquad.{lang}.json", squad(("1", f"{lang}?", text))) for lang, text in texts.items())
    options, out = "--format xquad-cross --question-lang es", tmp_path / "out.jsonl"
    run("qa", f"{options} --context-lang en", [spanish, english], out)
    assert [(row["question"], row["context"]) for row in rows_of(out)] == [("es?", "the dog")]
    run("qa", options, spanish, out)
    assert rows_of(out)[0]["context"] == "el perro"
    refused = "where the file of language 'es' should stand"
    run("qa", f"{options} --context-lang en", [english, spanish], out, refused=refused)
    run("qa", options, [spanish, english], out, refused="one file if both")


def test_bitext(run, put, tmp_path):
    rows = [f"{1 + n / 100}\tNumber {n}, yes.\tNúmero {n}, sí.\n" for n in range(30)]
    source, out = put("WikiMatrix.en-es.tsv.gz", gzip.compress("".join(rows).encode())), tmp_path / "pool.tsv"
    run("bitext", "--lang es --pool 10", source, out)
    assert out.read_text(encoding="utf-8").splitlines()[0] == "1.29\tNumber 29 , yes .\tNúmero 29 , sí ."
    assert validate("bitext", out) == 10
    counts = {"read": 30, "kept": 10, "dropped": {"score below the pool": 20}, "repaired": {}}
    assert report_of(out) == counts | {"best_score": 1.29, "worst_score": 1.2, "pool_full": True}
    out.unlink()
    run("bitext", "--lang es", put(source.name, source.read_bytes()[:-20]), out, refused="damaged or incomplete")
    assert not out.exists()


def test_text_and_its_latin_copy_hold_out_the_same_lines(run, put, tmp_path):
    text = "".join(f"بۇ بىر جۈملە {'ئا' * n}\n\n" for n in range(100))
    source, sizes = put("ug.txt.xz", lzma.compress(text.encode())), []
    for name, more in (("ug", ""), ("ug+latn", "--transliterate ug")):
        train, dev = tmp_path / name / "train.txt", tmp_path / name / "dev.txt"
        options = f"--out-train {train} --out-dev {dev} --format cc100 --lang ug --dev-share 0.2 {more}"
        run("text", options, source)
        sizes.append((validate("text", train), [len(line) for line in dev.read_text(encoding="utf-8").splitlines()]))
        assert report_of(dev)["dropped"]["in the train part"] == sizes[-1][0]
        assert validate("text", dev) == len(sizes[-1][1]) == 100 - sizes[-1][0] > 5
    # The length of a line tells which it is, in both scripts.
    ranks = [[sorted(lengths).index(length) for length in lengths] for _, lengths in sizes]
    assert ranks[0] == ranks[1]
    options = f"--out-train {tmp_path}/a/t.txt --out-dev {tmp_path}/a/d.txt --format lines --lang ug --dev-share 0.0001"
    run("text", options, source, refused="0 held out; each needs at least one: give a longer text")
    assert not list((tmp_path / "a").iterdir())


def test_wikipedia(run, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source, train, dev = tmp_path / "wo.parquet", tmp_path / "train.txt", tmp_path / "dev.txt"
    articles = [f"Title number {'x' * n}\n\nFirst sentence {'y' * n}. Second sentence {'z' * n}." for n in range(1, 30)]
    parquet.write_table(arrow.table({"id": list("abc") * 10, "text": [*articles, ""]}), source)
    run("text", f"--out-train {train} --out-dev {dev} --format wikipedia --lang wo --dev-share 0.2", source)
    assert validate("text", train) + validate("text", dev) == 87
    assert report_of(train)["articles"] == 30


def test_parallel(run, put, tmp_path):
    source = put("XNLI-15way.zip", {"XNLI-15way/xnli.15way.orig.tsv": "ar\tfr\nx\tOui .\ny\tNon\n"})
    out = tmp_path / "out.txt"
    run("parallel", "--format xnli15 --lang fr", source, out)
    assert out.read_text(encoding="utf-8") == "Oui .\nNon\n"
    table = put("fr.tsv", "premise\thypo\tlabel\na\tC' est bon .\tneutral\nb\tOui .\tneutral\n")
    run("parallel", "--format extension --lang fr --rows 1", table, out)
    assert out.read_text(encoding="utf-8") == "C'est bon.\n"
    assert validate("parallel", out) == 1
    run(
        "parallel",
        "--format extension --lang fr",
        table,
        out,
        refused="2 rows, but 10000 are asked for .anc.sentences of",
    )
    run("parallel", "--format pud --lang fr", put("test.conllu", TREE.format(1) + TREE.format(2)), out)
    assert out.read_text(encoding="utf-8") == "w1 x\nw2 x\n"


def test_mixtures(run, put, tmp_path):
    """Counts by source, and pairs in the order of reading."""
    bible = put("bible/eng.txt", "".join(f"This is verse number {word}\n" for word in "abcdefgh" * 5))
    ntrex = put("ntrex/eng.txt", "".join(f"News of the day {word}\n" for word in "abcdefghijklmnop"))
    parts = f"--out-train {tmp_path}/train.txt --out-dev {tmp_path}/dev.txt"
    run("text", f"{parts} --format open --lang en --dev-share 0.3", [bible, ntrex])
    report = report_of(tmp_path / "train.txt")
    assert (report["from bible"], report["from ntrex"], report["dropped"]["duplicate"]) == (40, 16, 32)
    tatoeba = put("tatoeba/eng-hin.test.txt", "eng\thin\tYes, sir.\tहाँ।\neng\thin\tNo.\tनहीं।\n")
    run("bitext", "--format mix --lang hi --pool 9", tatoeba, tmp_path / "pool.tsv")
    assert (tmp_path / "pool.tsv").read_text(encoding="utf-8").splitlines()[0] == "1.0\tYes , sir .\tहाँ ।"


def test_programs_end_with_a_sentence_and_no_traceback(root, put, tmp_path):
    def end(*words):
        done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, cwd=root)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    code, told = end("scripts/prepare_trees.py", "--source", tmp_path / "no.conllu", "--out", tmp_path / "x.conllu")
    assert (code, told) == (1, f"error: {tmp_path / 'no.conllu'}: no such file\n")
