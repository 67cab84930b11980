"""Every promised file exists, in its original format, with the same bytes each time."""

import gzip
import hashlib
import io
import json
import lzma
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from world_for_tests import small_settings

from crossalign.engine.trees import are_trees
from crossalign.runtime.errors import UserError
from demo_world.files import XNLI_COLUMNS
from demo_world.write import write_world

PUD = ["ar", "cs", "de", "en", "es", "fi", "fr", "hi", "id", "it", "ja", "pl", "pt", "ru", "sv", "tr", "zh"]
TREEBANKS = [
    "en_ewt", "ru_gsd", "ar_padt", "en_partut", "fr_partut", "fr_gsd", "de_gsd", "tr_imst", "id_gsd", "sl_ssj",
    "en_lines", "en_lexnorm", "fo_oft", "pcm_nsc", "gsw_uzh", "bm_crb", "wo_wtb", "qaf_arabizi", "mt_mudt", "bxr_bdt",
    "myv_jr", "olo_kkpp", "ug_udt", *(f"{code}_pud" for code in PUD),
]  # fmt: skip
WIKIANN = [
    "en", "ru", "ar", "zh", "cs", "fi", "fr", "id", "it", "ja", "de", "hi", "pl", "pt", "sl", "sv", "es", "tr", "vi",
    "fo", "xmf", "mt", "mhr", "ug", "sd", "ckb",
]  # fmt: skip
TAGS = {"NOUN", "VERB", "ADJ", "ADV", "PRON", "PROPN", "DET", "ADP", "NUM", "AUX", "CCONJ", "SCONJ", "PART", "PUNCT"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    write_world(small_settings(), folder, jobs=1)
    return folder


def test_checksums_cover_every_file(made: Path) -> None:
    listed = {}
    for line in (made / "SHA256SUMS").read_text().splitlines():
        digest, path = line.split("  ")
        listed[path] = digest
        assert hashlib.sha256((made / path).read_bytes()).hexdigest() == digest
    assert list(listed) == sorted(listed)
    files = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()} - {"SHA256SUMS"}
    assert files == set(listed)


def test_every_byte_is_fixed(made: Path) -> None:
    """On every platform and with every Python; the bytes of parquet files carry the version of pyarrow."""
    listed = [line for line in (made / "SHA256SUMS").read_text().splitlines() if not line.endswith(".parquet")]
    assert hashlib.sha256("\n".join(listed).encode()).hexdigest()[:16] == "4d6b1ef40ff8ea91"


def test_same_bytes_with_other_processes_and_others_with_another_seed(made: Path, tmp_path: Path) -> None:
    paths = write_world(small_settings(), tmp_path, ["ud/tr_", "bitext/wikimatrix/WikiMatrix.en-hi", "qa/mlqa"], jobs=2)
    assert len(paths) > 5
    for path in paths:
        assert (tmp_path / path).read_bytes() == (made / path).read_bytes(), path
    write_world({**small_settings(), "seed": 1}, tmp_path, ["ud/en_ewt/dev"])
    assert (tmp_path / "ud/en_ewt/dev.conllu").read_bytes() != (made / "ud/en_ewt/dev.conllu").read_bytes()


def test_every_treebank_holds_trees_of_its_text(made: Path) -> None:
    assert {path.name for path in (made / "ud").iterdir()} == set(TREEBANKS)
    for path in made.glob("ud/*/*.conllu"):
        for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
            lines = block.split("\n")
            written = next(line[9:] for line in lines if line.startswith("# text = "))
            assert any(line.startswith("# sent_id = ") for line in lines)
            rows = [line.split("\t") for line in lines if not line.startswith("#")]
            assert all(len(row) == 10 and all(row) for row in rows)
            words = [row for row in rows if "-" not in row[0]]
            heads = np.array([int(row[6]) for row in words])
            assert [int(row[0]) for row in words] == list(range(1, len(words) + 1))
            assert [row[7] for row in words if row[6] == "0"] == ["root"]
            assert are_trees(heads[None])[0], f"{path}: cycle in {block}"
            assert _text(rows) == written


def _text(rows: list[list[str]]) -> str:
    out, inside = "", 0
    for row in rows:
        if "-" in row[0]:
            inside = int(row[0].split("-")[1])
        elif int(row[0]) <= inside:
            continue
        out += row[1] + ("" if "SpaceAfter=No" in row[9] else " ")
    return out.strip()


def test_treebanks_have_the_details_of_real_ones(made: Path) -> None:
    def rows(code: str) -> list[list[str]]:
        lines = [line for path in sorted(made.glob(f"ud/{code}_*/*.conllu")) for line in path.read_text().splitlines()]
        return [line.split("\t") for line in lines if line and not line.startswith("#")]

    for code in ("ar", "fr", "de", "it", "mt"):
        assert any("-" in row[0] for row in rows(code)), f"no multiword token in {code}"
    relations = {row[7] for row in rows("en") if "-" not in row[0]}
    assert {"nsubj", "obj", "iobj", "obl", "amod", "det", "case", "nummod", "advmod", "aux", "cop", "mark"} <= relations
    assert {"cc", "conj", "nmod", "nmod:poss", "root", "punct", "flat", "compound", "ccomp", "xcomp"} <= relations
    tags = {row[3] for row in rows("en") if "-" not in row[0]}
    assert tags >= TAGS


def test_parallel_treebanks_have_the_same_sentences(made: Path) -> None:
    numbers = []
    for path in sorted(made.glob("ud/*_pud/test.conllu")):
        lines = path.read_text(encoding="utf-8").splitlines()
        numbers.append([line for line in lines if line.startswith("# sent_id")])
    assert len(numbers) == 17
    assert all(ids == numbers[0] for ids in numbers)
    assert numbers[0][:2] == ["# sent_id = n01001011", "# sent_id = n01001013"]


def test_wikiann(made: Path) -> None:
    with zipfile.ZipFile(made / "ner/wikiann/panx_dataset.zip") as archive:
        assert sorted(archive.namelist()) == sorted(f"{code}.tar.gz" for code in WIKIANN)
        for code in WIKIANN:
            with tarfile.open(fileobj=io.BytesIO(archive.read(f"{code}.tar.gz"))) as inner:
                assert inner.getnames() == ["train", "dev", "test", "extra"]
                content = inner.extractfile("train").read().decode()
            blocks = content.strip().split("\n\n")
            assert len(blocks) == 6
            for block in blocks:
                before = "O"
                for line in block.split("\n"):
                    form, tag = line.split("\t")
                    assert form.startswith(f"{code}:") and len(form) > len(code) + 1
                    assert tag == "O" or tag[2:] in ("PER", "ORG", "LOC")
                    assert not tag.startswith("I-") or before[2:] == tag[2:]
                    before = tag


def test_conll2003(made: Path) -> None:
    lines = (made / "ner/conll2003/test.txt").read_text().splitlines()
    assert lines[0] == "-DOCSTART- -X- O O" and lines[1] == ""
    tags = {line.split(" ")[3] for line in lines if line}
    assert all(len(line.split(" ")) == 4 for line in lines if line)
    assert "I-PER" in tags and "B-PER" not in tags


def test_inference_files(made: Path) -> None:
    with zipfile.ZipFile(made / "nli/multinli_1.0.zip") as archive:
        rows = [
            json.loads(line) for line in archive.read("multinli_1.0/multinli_1.0_train.jsonl").decode().splitlines()
        ]
    assert len(rows) == 60 and {"gold_label", "sentence1", "sentence2", "pairID", "genre"} <= set(rows[0])
    with zipfile.ZipFile(made / "nli/XNLI-1.0.zip") as archive:
        table = [line.split("\t") for line in archive.read("XNLI-1.0/xnli.test.tsv").decode().splitlines()]
    assert table[0] == XNLI_COLUMNS and all(len(row) == len(XNLI_COLUMNS) for row in table)
    by_language: dict[str, list[tuple[str, str]]] = {}
    for row in table[1:]:
        by_language.setdefault(row[0], []).append((row[1], row[9]))
    assert len(by_language) == 11 and all(rows == by_language["en"] for rows in by_language.values())
    labels = []
    for path in sorted((made / "nli/xnli_extension").glob("*.tsv")):
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
        assert rows[0] == ["premise", "hypo", "label"]
        labels.append([row[2] for row in rows[1:]])
    assert len(labels) == 9 and all(column == labels[0] for column in labels)
    assert set(labels[0]) <= {"entailment", "neutral", "contradictory"}
    with zipfile.ZipFile(made / "nli/XNLI-15way.zip") as archive:
        table = [line.split("\t") for line in archive.read("XNLI-15way/xnli.15way.orig.tsv").decode().splitlines()]
    assert len(table) == 6 and {len(row) for row in table} == {11}


def _questions(made: Path) -> dict[str, dict]:
    found = {str(path.relative_to(made)): json.loads(path.read_text()) for path in made.glob("qa/*/*.json")}
    with zipfile.ZipFile(made / "qa/mlqa/MLQA_V1.zip") as archive:
        found |= {name: json.loads(archive.read(name)) for name in archive.namelist()}
    for name in ("mlqa/mlqa-translate-train.tar.gz", "tydiqa/tydiqa-goldp-v1.1-dev.tgz"):
        with tarfile.open(made / "qa" / name) as archive:
            found |= {member.name: json.load(archive.extractfile(member)) for member in archive}
    return found


def test_answers_stand_where_their_offsets_say(made: Path) -> None:
    files = _questions(made)
    assert "MLQA_V1/test/test-context-en-question-hi.json" in files
    assert "mlqa-translate-train/vi_squad-translate-train-train-v1.1.json" in files
    assert "tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-russian.json" in files
    ids = {}
    for name, content in files.items():
        ids[name] = []
        for paragraph in (p for article in content["data"] for p in article["paragraphs"]):
            for question in paragraph["qas"]:
                ids[name].append(question["id"])
                assert question["question"]
                for answer in question["answers"]:
                    start = answer["answer_start"]
                    assert answer["text"].strip() == answer["text"] != ""
                    assert paragraph["context"][start : start + len(answer["text"])] == answer["text"]
        assert len(set(ids[name])) == len(ids[name])
    assert len({tuple(ids[f"qa/xquad/xquad.{code}.json"]) for code in ("en", "es", "ru", "vi", "hi")}) == 1
    assert len(ids["qa/squad/train-v1.1.json"]) == 11


def test_text_files(made: Path) -> None:
    import pyarrow.parquet

    for code in [*small_settings()["seen"], *small_settings()["unseen"]]:
        table = pyarrow.parquet.read_table(made / f"text/wikipedia/{code}.parquet").to_pydict()
        assert list(table) == ["id", "url", "title", "text"] and all(table["text"])
    with lzma.open(made / "text/cc100/et.txt.xz", "rt", encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    assert len([line for line in lines if line]) == 15 and "" in lines
    assert len((made / "text/narabizi/narabizi.txt").read_text().splitlines()) == 6


@pytest.mark.parametrize("code", ["es", "ru", "vi", "hi"])
def test_bitext_goes_line_by_line_with_the_tokens_of_moses(made: Path, code: str) -> None:
    sacremoses = pytest.importorskip("sacremoses")
    packed = (made / f"bitext/wikimatrix/WikiMatrix.en-{code}.tsv.gz").read_bytes()
    raw = [line.split("\t") for line in gzip.decompress(packed).decode().splitlines()]
    lines = (made / f"truth/bitext-{code}.tsv").read_text(encoding="utf-8").splitlines()
    split = [line.split("\t") for line in lines]
    links = (made / f"truth/links-{code}.txt").read_text().split("\n")[:-1]
    assert len(raw) == len(split) == len(links) == 60
    scores = [float(score) for score, *_ in raw]
    assert scores == sorted(scores, reverse=True) and [row[0] for row in raw] == [row[0] for row in split]
    for side, language in ((1, "en"), (2, code)):
        tokeniser = sacremoses.MosesTokenizer(language)
        for texts, tokens, pairs in zip(raw, split, links, strict=True):
            written = tokens[side].split(" ")
            assert tokeniser.tokenize(texts[side], escape=False) == written
            assert all(int(pair.split("-")[side - 1]) < len(written) for pair in pairs.split())


def test_errors_name_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file of the world starts with nowhere/"):
        write_world(small_settings(), tmp_path, ["nowhere/"])
    with pytest.raises(UserError, match="jobs is 0"):
        write_world(small_settings(), tmp_path, jobs=0)
    with pytest.raises(UserError, match="scale 'huge' is unknown"):
        write_world(small_settings(), tmp_path, scale="huge")


def test_large_sets_repeat_their_entries(made: Path, tmp_path: Path) -> None:
    only = ["nli/multinli", "qa/squad/train", "bitext/wikimatrix/WikiMatrix.en-hi", "truth/links-hi", "truth/bitext-hi"]
    only += ["text/wikipedia/ug", "text/narabizi", "ner/wikiann"]
    write_world({**small_settings(), "distinct": 4}, tmp_path, only)
    before, after = _inference_records(made), _inference_records(tmp_path)
    assert len(after) == len(before) == 60
    assert [record["sentence1"] for record in after] == [record["sentence1"] for record in before[:4]] * 15
    assert len({record["pairID"] for record in after}) == 60
    asked = [_asked_in(folder / "qa/squad/train-v1.1.json") for folder in (made, tmp_path)]
    assert len(asked[0]) == len(asked[1]) == len({item["id"] for item in asked[1]}) == 11
    assert len({item["question"] for item in asked[1]}) < len({item["question"] for item in asked[0]})
    packed = (tmp_path / "bitext/wikimatrix/WikiMatrix.en-hi.tsv.gz").read_bytes()
    raw = gzip.decompress(packed).decode().splitlines()
    assert len(set(raw)) == len(raw) == 60  # a pair that came twice would be dropped
    assert [float(line.split("\t")[0]) for line in raw] == sorted(float(line.split("\t")[0]) for line in raw)[::-1]
    assert raw[1] == raw[0].replace("\t", "\t1 ")
    links = (tmp_path / "truth/links-hi.txt").read_text().splitlines()
    assert links[1].split() == [
        "0-0",
        *("-".join(str(int(n) + 1) for n in pair.split("-")) for pair in links[0].split()),
    ]
    lines = (tmp_path / "text/narabizi/narabizi.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 6 and lines[4] == f"1 {lines[0]}"


def _inference_records(folder: Path) -> list[dict]:
    with zipfile.ZipFile(folder / "nli/multinli_1.0.zip") as archive:
        lines = archive.read("multinli_1.0/multinli_1.0_train.jsonl").decode().splitlines()
    return [json.loads(line) for line in lines]


def _asked_in(file: Path) -> list[dict]:
    articles = json.loads(file.read_text(encoding="utf-8"))["data"]
    return [item for article in articles for paragraph in article["paragraphs"] for item in paragraph["qas"]]
