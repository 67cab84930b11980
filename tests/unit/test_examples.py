"""Examples as arrays, and the folder in which those of a set wait for the next job."""

from pathlib import Path

import numpy as np
import pytest
from test_evaluate import FILES, LABELS
from tokenizers_for_tests import bert_tokenizer

from crossalign.engine.batches import Store
from crossalign.engine.examples import Encoded, FlatExamples
from crossalign.tasks import get_task

TOKENIZER = bert_tokenizer()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model").mkdir()
    TOKENIZER.save(str(tmp_path / "model/tokenizer.json"))
    return tmp_path


def files_of(folder, name):
    files = {split: folder / f"{name}-{split}" for split in ("train", "dev")}
    for path, text in zip(files.values(), FILES[name], strict=True):
        path.write_text(text)
    return files


def plain(example):
    return {name: np.asarray(example[name]).tolist() for name in example}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", FILES)
def test_kept_examples_are_those_of_the_task(folder, name, training):
    files, task = files_of(folder, name), get_task(name, LABELS.get(name))
    records = task.read(files["dev"])
    usual = task.examples(records, TOKENIZER, 24, training=training)
    encode = Encoded(folder / "tokens", "code", folder / "model", files)
    for _ in range(2):  # made, then read
        kept = encode("dev", task, records, TOKENIZER, 24, training)
        assert isinstance(kept, FlatExamples) and list(map(plain, kept)) == list(map(plain, usual))
        one, other = (vars(Store(examples, task.fields)) for examples in (usual, kept))
        one["fields"] = other["fields"] = None
        for key, value in (one | one.pop("values")).items():
            now = (other | other["values"])[key]
            assert np.array_equal(value, now) and getattr(value, "dtype", None) == getattr(now, "dtype", None)
    assert len(list((folder / "tokens").iterdir())) == 1


def test_another_set_code_vocabulary_task_or_length_is_another_file(folder):
    files, task = files_of(folder, "ner"), get_task("ner", LABELS["ner"])
    records = task.read(files["dev"])
    tokens = folder / "tokens"

    def kept(code="code", task=task, records=records, length=24, training=False, name="dev"):
        before = set(tokens.glob("*"))
        Encoded(tokens, code, folder / "model", files)(name, task, records, TOKENIZER, length, training)
        return len(set(tokens.glob("*")) - before)

    assert (kept(), kept()) == (1, 0)
    decoder = get_task("ner", LABELS["ner"])
    decoder.causal = True
    changes = [{"code": "other"}, {"length": 20}, {"training": True}, {"records": records[:1]}, {"name": "train"}]
    changes += [{"task": get_task("ner", ["O", "B-PER"])}, {"task": decoder}]
    for change in changes:
        assert (kept(**change), kept(**change)) == (1, 0), change
    files["dev"].write_text(files["dev"].read_text().replace("Paris", "mat"))
    assert (kept(), kept()) == (1, 0)
    (folder / "model/tokenizer.json").open("a").write(" ")
    assert (kept(), kept()) == (1, 0)


def test_a_damaged_file_is_made_again_and_none_is_left_half(folder, monkeypatch):
    files, task = files_of(folder, "nli"), get_task("nli")
    records = task.read(files["dev"])
    encode = Encoded(folder / "tokens", "code", folder / "model", files)
    whole = list(map(plain, encode("dev", task, records, TOKENIZER, 24)))
    (file,) = (folder / "tokens").iterdir()
    content = file.read_bytes()
    half = file.with_name(f".{file.name}.x1.part")
    half.touch()  # as a job leaves it that is killed while it writes
    for damaged in (content[:-1], b"", content[:40]):
        file.write_bytes(damaged)
        assert list(map(plain, encode("dev", task, records, TOKENIZER, 24))) == whole
        assert file.read_bytes() == content and not half.exists()
    file.unlink()
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        encode("dev", task, records, TOKENIZER, 24)
    assert not list((folder / "tokens").iterdir())


def test_without_folder_or_code_nothing_is_kept(folder):
    files, task = files_of(folder, "nli"), get_task("nli")
    records = task.read(files["dev"])
    for place, code in ((None, "code"), (folder / "tokens", "")):
        assert isinstance(Encoded(place, code, folder / "model", files)("dev", task, records, TOKENIZER, 24), list)
    assert not (folder / "tokens").exists()
