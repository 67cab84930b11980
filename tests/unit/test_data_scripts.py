"""The prepare programs from raw files, in the upstream archives' form, to checked sets."""

import gzip
import io
import json
import lzma
import subprocess
import sys
import tarfile
import zipfile

import pytest

from crossalign.data.validate import validate

TREE = "# sent_id = s{0}\n# text = w{0} x\n1\tw{0}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tx\t_\tX\t_\t_\t1\tdep:y\t_\t_\n\n"


def tar(members):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def zipped(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.fixture
def run(root):
    def call(program, *options, fails=False):
        command = [sys.executable, str(root / "scripts" / program), *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
        assert (done.returncode != 0) == fails, done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr if fails else done.stdout

    return call


def report_of(path):
    return json.loads(path.with_name(path.stem + ".report.json").read_text(encoding="utf-8"))


def squad(*triples):
    paragraphs = [
        {"context": context, "qas": [{"id": i, "question": q, "answers": [{"text": context[:2], "answer_start": 0}]}]}
        for i, q, context in triples
    ]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


def test_trees_folds_cover_everything_once(run, tmp_path):
    (tmp_path / "train.conllu").write_text("".join(TREE.format(n) for n in range(5)), encoding="utf-8")
    (tmp_path / "test.conllu").write_text("".join(TREE.format(n) for n in range(4, 16)), encoding="utf-8")
    tested = []
    for fold in (1, 2, 3):
        parts = {}
        for part in ("train", "dev", "test"):
            out = tmp_path / f"fold{fold}" / f"{part}.conllu"
            sources = ["--source", tmp_path / "train.conllu", tmp_path / "test.conllu"]
            run("prepare_trees.py", *sources, "--out", out, "--fold", fold, "--folds", 3, "--part", part)
            text = out.read_text(encoding="utf-8")
            parts[part] = {line for line in text.splitlines() if line.startswith("# sent_id")}
            assert validate("trees", out) == len(parts[part])
            assert report_of(out)["read"] == 17
        assert sum(map(len, parts.values())) == len(set.union(*parts.values())) == 17
        tested.append(parts["test"])
    assert sum(map(len, tested)) == len(set.union(*tested)) == 17
    assert "# sent_id = s4#2" in set.union(*tested)


def test_trees_plain_and_transliterated(run, tmp_path):
    raw = tmp_path / "test.conllu"
    raw.write_text(TREE.format(1).replace("w1", "ئۇيغۇر"), encoding="utf-8")
    run("prepare_trees.py", "--source", raw, "--out", tmp_path / "out" / "test.conllu", "--transliterate", "ug")
    expected = (
        "# sent_id = s1\n# text = uyğur x\n1\tuyğur\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tx\t_\tX\t_\t_\t1\tdep\t_\t_\n\n"
    )
    assert (tmp_path / "out" / "test.conllu").read_text(encoding="utf-8") == expected
    assert report_of(tmp_path / "out" / "test.conllu")["transliterated"] == "ug"


def test_trees_errors_leave_no_file(run, tmp_path):
    raw, out = tmp_path / "test.conllu", tmp_path / "out.conllu"
    raw.write_text(TREE.format(1) + "1\tx\n", encoding="utf-8")
    assert f"error: {raw}, line 6: 2 columns" in run("prepare_trees.py", "--source", raw, "--out", out, fails=True)
    raw.write_text("", encoding="utf-8")
    assert "nothing to keep (no items in it)" in run("prepare_trees.py", "--source", raw, "--out", out, fails=True)
    missing = tmp_path / "no.conllu"
    assert f"error: {missing}: no such file" in run("prepare_trees.py", "--source", missing, "--out", out, fails=True)
    assert "--fold and --part go together" in run(
        "prepare_trees.py", "--source", raw, "--out", out, "--fold", 1, fails=True
    )
    assert not out.exists()
    assert not list(tmp_path.glob("*.report.json"))


def test_ner_from_the_nested_archive(run, tmp_path):
    source, out = tmp_path / "panx_dataset.zip", tmp_path / "dev.jsonl"
    zipped(source, {"xmf.tar.gz": tar({"dev": "xmf:ჸუდე\tB-LOC\nxmf::\tO\n\n", "train": "broken"})})
    options = ["--source", source, "--out", out, "--format", "wikiann", "--split", "dev"]
    run("prepare_ner.py", *options, "--lang", "xmf")
    assert out.read_text(encoding="utf-8") == '{"id":"xmf-dev-1","tokens":["ჸუდე",":"],"tags":["B-LOC","O"]}\n'
    run("prepare_ner.py", *options, "--lang", "xmf", "--transliterate", "xmf")
    assert json.loads(out.read_text(encoding="utf-8"))["tokens"] == ["'ude", ":"]
    assert report_of(out)["tags"][0] == "O"
    assert "de.tar.gz" in run("prepare_ner.py", *options, "--lang", "de", fails=True)


def test_nli_from_archives(run, tmp_path):
    multinli, xnli, out = tmp_path / "multinli_1.0.zip", tmp_path / "XNLI-1.0.zip", tmp_path / "out.jsonl"
    row = {"gold_label": "entailment", "sentence1": "a", "sentence2": "b", "pairID": "1e"}
    zipped(multinli, {"multinli_1.0/multinli_1.0_train.jsonl": json.dumps(row) + "\n"})
    run(
        "prepare_nli.py", "--source", multinli, "--out", out, "--format", "multinli", "--lang", "en", "--split", "train"
    )
    assert out.read_text(encoding="utf-8") == '{"id":"1e","premise":"a","hypothesis":"b","label":"entailment"}\n'
    table = "language\tgold_label\tsentence1\tsentence2\tpairID\n"
    for lang in ("en", "es"):
        table += "".join(f"{lang}\tneutral\t{lang} p{n}\t{lang} h{n}\t{n}\n" for n in range(20))
    zipped(xnli, {"XNLI-1.0/xnli.test.tsv": table})
    options = ["--source", xnli, "--out", out, "--format", "xnli", "--split", "test"]
    run("prepare_nli.py", *options, "--lang", "es", "--mix-with-english", "--coin-seed", 3)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert validate("nli", out) == 20
    assert {row["premise"][:2] + row["hypothesis"][:2] for row in rows} == {"enes", "esen"}
    assert report_of(out)["coin_seed"] == 3
    assert "in another language" in run("prepare_nli.py", *options, "--lang", "en", "--mix-with-english", fails=True)


def test_qa_from_archives(run, tmp_path):
    mlqa, out = tmp_path / "MLQA_V1.zip", tmp_path / "out.jsonl"
    zipped(mlqa, {"MLQA_V1/test/test-context-es-question-en.json": squad(("1", "why?", "el perro"))})
    options = ["--format", "mlqa", "--question-lang", "en", "--context-lang", "es", "--split", "test"]
    run("prepare_qa.py", "--source", mlqa, "--out", out, *options)
    expected = '{"id":"1","question":"why?","context":"el perro","answers":[{"text":"el","start":0}]}\n'
    assert out.read_text(encoding="utf-8") == expected

    translated = tmp_path / "mlqa-translate-train.tar.gz"
    member = "mlqa-translate-train/vi_squad-translate-train-train-v1.1.json"
    translated.write_bytes(tar({member: squad(("1", "q", "con chó"))}))
    options = ["--format", "mlqa-translated", "--question-lang", "vi", "--split", "train"]
    run("prepare_qa.py", "--source", translated, "--out", out, *options)
    assert validate("qa", out) == 1

    tydi = tmp_path / "tydiqa-goldp-v1.1-dev.tgz"
    tydi.write_bytes(tar({"tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-russian.json": squad(("1", "q", "собака"))}))
    options = ["--format", "tydiqa", "--split", "dev"]
    run("prepare_qa.py", "--source", tydi, "--out", out, *options, "--question-lang", "ru")
    assert validate("qa", out) == 1
    message = run("prepare_qa.py", "--source", tydi, "--out", out, *options, "--question-lang", "de", fails=True)
    assert "--question-lang de: TyDi QA has ar, bn" in message


def test_cross_lingual_xquad_knows_its_files(run, tmp_path):
    for lang, text in (("es", "el perro"), ("en", "the dog")):
        (tmp_path / f"xquad.{lang}.json").write_text(squad(("1", f"{lang}?", text)), encoding="utf-8")
    spanish, english, out = tmp_path / "xquad.es.json", tmp_path / "xquad.en.json", tmp_path / "out.jsonl"
    options = ["--out", out, "--format", "xquad-cross", "--question-lang", "es"]
    run("prepare_qa.py", "--source", spanish, english, *options, "--context-lang", "en")
    row = json.loads(out.read_text(encoding="utf-8"))
    assert (row["question"], row["context"]) == ("es?", "the dog")
    run("prepare_qa.py", "--source", spanish, *options)
    assert json.loads(out.read_text(encoding="utf-8"))["context"] == "el perro"
    message = run("prepare_qa.py", "--source", english, spanish, *options, "--context-lang", "en", fails=True)
    assert "where the file of language 'es' should stand" in message
    assert "one file if both" in run("prepare_qa.py", "--source", spanish, english, *options, fails=True)


def test_bitext(run, tmp_path):
    source, out = tmp_path / "WikiMatrix.en-es.tsv.gz", tmp_path / "pool.tsv"
    rows = [f"{1 + n / 100}\tNumber {n}, yes.\tNúmero {n}, sí.\n" for n in range(30)]
    source.write_bytes(gzip.compress("".join(rows).encode()))
    run("prepare_bitext.py", "--source", source, "--out", out, "--lang", "es", "--pool", 10)
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "1.29\tNumber 29 , yes .\tNúmero 29 , sí ."
    assert validate("bitext", out) == 10
    assert report_of(out) == {
        "read": 30,
        "kept": 10,
        "dropped": {"score below the pool": 20},
        "repaired": {},
        "best_score": 1.29,
        "worst_score": 1.2,
        "pool_full": True,
    }
    source.write_bytes(source.read_bytes()[:-20])
    out.unlink()
    assert "error: " in run("prepare_bitext.py", "--source", source, "--out", out, "--lang", "es", fails=True)
    assert not out.exists()


def test_text_and_its_latin_copy_hold_out_the_same_lines(run, tmp_path):
    source = tmp_path / "ug.txt.xz"
    text = "".join(f"بۇ بىر جۈملە {'ئا' * n}\n\n" for n in range(100))
    source.write_bytes(lzma.compress(text.encode()))
    sizes = []
    for name, more in (("ug", []), ("ug+latn", ["--transliterate", "ug"])):
        train, dev = tmp_path / name / "train.txt", tmp_path / name / "dev.txt"
        options = ["--format", "cc100", "--lang", "ug", "--dev-share", 0.2, *more]
        run("prepare_text.py", "--source", source, "--out-train", train, "--out-dev", dev, *options)
        sizes.append((validate("text", train), validate("text", dev)))
        lengths = [len(line.split()[-1]) for line in dev.read_text(encoding="utf-8").splitlines()]
        assert report_of(dev)["dropped"]["in the train part"] == sizes[-1][0]
    assert sizes[0] == sizes[1]
    assert sum(sizes[0]) == 100 and sizes[0][1] == len(lengths) > 5
    options = ["--format", "lines", "--lang", "ug", "--dev-share", 0.0001]
    out = ["--out-train", tmp_path / "a" / "t.txt", "--out-dev", tmp_path / "a" / "d.txt"]
    assert "0 held out; change --dev-share" in run("prepare_text.py", "--source", source, *out, *options, fails=True)
    assert not list((tmp_path / "a").iterdir())


def test_wikipedia(run, tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    source = tmp_path / "wo.parquet"
    articles = [f"Title number {'x' * n}\n\nFirst sentence {'y' * n}. Second sentence {'z' * n}." for n in range(1, 30)]
    parquet.write_table(arrow.table({"id": list("abc") * 10, "text": [*articles, ""]}), source)
    train, dev = tmp_path / "train.txt", tmp_path / "dev.txt"
    options = ["--format", "wikipedia", "--lang", "wo", "--dev-share", 0.2]
    run("prepare_text.py", "--source", source, "--out-train", train, "--out-dev", dev, *options)
    assert validate("text", train) + validate("text", dev) == 87
    assert report_of(train)["articles"] == 30


def test_parallel(run, tmp_path):
    source, out = tmp_path / "XNLI-15way.zip", tmp_path / "fr.txt"
    zipped(source, {"XNLI-15way/xnli.15way.orig.tsv": "ar\tfr\nx\tOui .\ny\tNon\n"})
    run("prepare_parallel.py", "--source", source, "--out", out, "--format", "xnli15", "--lang", "fr")
    assert out.read_text(encoding="utf-8") == "Oui .\nNon\n"
    table = tmp_path / "fr.tsv"
    table.write_text("premise\thypo\tlabel\na\tC' est bon .\tneutral\nb\tOui .\tneutral\n", encoding="utf-8")
    options = ["--source", table, "--out", out, "--format", "extension", "--lang", "fr"]
    run("prepare_parallel.py", *options, "--rows", 1)
    assert out.read_text(encoding="utf-8") == "C'est bon.\n"
    assert validate("parallel", out) == 1
    assert "2 rows, but 10000 are asked for" in run("prepare_parallel.py", *options, fails=True)
    bank = tmp_path / "test.conllu"
    bank.write_text(TREE.format(1) + TREE.format(2), encoding="utf-8")
    run("prepare_parallel.py", "--source", bank, "--out", out, "--format", "pud", "--lang", "fr")
    assert out.read_text(encoding="utf-8") == "w1 x\nw2 x\n"


def test_validate_program(run, tmp_path):
    path = tmp_path / "data" / "text" / "wikipedia_wo" / "dev.txt"
    path.parent.mkdir(parents=True)
    path.write_text("a b\n", encoding="utf-8")
    assert "text, 1 items, sound" in run("validate_data.py", path)
    path.write_text("a  b\n", encoding="utf-8")
    assert f"error: {path}, line 1" in run("validate_data.py", path, fails=True)
    assert "not JSON" in run("validate_data.py", path, "--kind", "ner", fails=True)
