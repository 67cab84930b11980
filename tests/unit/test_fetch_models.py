"""Models from a hub on the loopback: which files, which commit, never pickles, never code."""

import hashlib
import json
import random
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from crossalign.fetch.lock import read_lock
from crossalign.fetch.models import obtain_model, wanted_names
from crossalign.fetch.sources import Mirror, Settings
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

ONE, TWO = "1" * 40, "2" * 40
HUB = "own/bert"
WEIGHTS = random.Random(3).randbytes(200_000)
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "tokenizer.json": b"{}",
    "tokenizer_config.json": b"{}",
    "vocab.txt": b"[PAD]\n",
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"pickle",
    "tf_model.h5": b"h5",
    "flax_model.msgpack": b"flax",
    "modeling_bert.py": b"import os",
    "README.md": b"# read me",
    "onnx/model.safetensors": b"not at the top",
}
TAKEN = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt"]


def names(place: Settings) -> list[str]:
    return sorted(path.name for path in (place.downloads / "models" / "mbert").iterdir())


def test_only_safe_files_are_taken_and_listed_last(web, place):
    web.publish("models", HUB, ONE, FILES)
    mark = obtain_model("mbert", HUB, ONE, place)
    assert mark == place.downloads / "models" / "mbert" / "complete.json"
    assert names(place) == sorted([*TAKEN, "complete.json"])
    content = json.loads(mark.read_text())
    assert (content["revision"], content["commit"], content["hub"]) == (ONE, ONE, HUB)
    assert [file["file"] for file in content["files"]] == TAKEN
    weights = next(file for file in content["files"] if file["file"] == "model.safetensors")
    assert weights == {"file": "model.safetensors", "bytes": 200_000, "sha256": hashlib.sha256(WEIGHTS).hexdigest()}
    assert not any(asked.path.endswith((".bin", ".py", ".h5", ".msgpack")) for asked in web.asked)


SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json"]
TOKENISER = ["sentencepiece.bpe.model", "special_tokens_map.json"]


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        (["config.json", "model.safetensors", *TOKENISER], ["x.model"]),
        (SHARDS, []),
        (["model.safetensors"], ["model.fp16.safetensors"]),
        (["weights.safetensors"], ["code.py", "weights.pt"]),
        ([], ["pytorch_model.bin", "training_args.bin", "tokenizer.py"]),
    ],
)
def test_choice_of_files(taken, left):
    assert wanted_names([*left, *taken]) == taken


def test_branch_is_locked_to_its_commit(web, place):
    web.publish("models", HUB, ONE, FILES, ("main", "refs/pr/3"))
    obtain_model("mbert", HUB, "main", place)
    row = read_lock(place.lock)["models/mbert/config.json"]
    assert row.version == f"main@{ONE}"
    assert row.url == f"hub://models/{HUB}/config.json"
    # The branch moves on; the lock does not.
    web.publish("models", HUB, TWO, FILES | {"config.json": b'{"new": 1}'}, ("main",))
    web.publish("models", HUB, ONE, FILES)
    (place.downloads / "models" / "mbert" / "config.json").unlink()
    mark = obtain_model("mbert", HUB, "main", place)
    assert json.loads(mark.read_text())["commit"] == ONE
    assert (mark.parent / "config.json").read_bytes() == FILES["config.json"]
    obtain_model("mbert", HUB, "refs/pr/3", place)
    assert read_lock(place.lock)["models/mbert/config.json"].version == f"refs/pr/3@{ONE}"


def test_other_revision_replaces_the_files_and_removes_leftovers(web, place):
    index = json.dumps({"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}).encode()
    shards = {"model-1-of-2.safetensors": b"one", "model-2-of-2.safetensors": b"two"}
    rest = {"config.json": b"{}", "model.safetensors.index.json": index, "tokenizer.json": b"{}"}
    web.publish("models", HUB, ONE, FILES)
    web.publish("models", HUB, TWO, rest | shards)
    obtain_model("mbert", HUB, ONE, place)
    mark = obtain_model("mbert", HUB, TWO, place)
    assert names(place) == ["complete.json", "config.json", *shards, "model.safetensors.index.json", "tokenizer.json"]
    assert (mark.parent / "config.json").read_bytes() == b"{}"
    shards.popitem()
    web.publish("models", HUB, "3" * 40, rest | shards)
    mark.unlink()
    with pytest.raises(UserError, match="names files that the source does not have: model-2-of-2.safetensors"):
        obtain_model("mbert", HUB, "3" * 40, place)
    assert not mark.exists()


def test_cut_weights_are_asked_for_again(web, place):
    web.publish("models", HUB, ONE, FILES)
    path = f"/{HUB}/resolve/{ONE}/model.safetensors"
    web.resources[path].cuts = [120_000]
    obtain_model("mbert", HUB, ONE, place)
    assert len(web.gets(path)) == 2
    assert names(place) == sorted([*TAKEN, "complete.json"])


def test_hub_trouble(web, place):
    web.publish("models", HUB, ONE, {"config.json": b"{}", "pytorch_model.bin": b"pickle"})
    with pytest.raises(UserError, match="holds no safetensors.*never fetched; name a converted revision .*refs/pr/N"):
        obtain_model("mbert", HUB, ONE, place)
    assert not (place.downloads / "models" / "mbert").exists()
    web.publish("models", HUB, ONE, FILES)
    vocabulary = web.resources[f"/{HUB}/resolve/{ONE}/vocab.txt"]
    vocabulary.content = b"[BAD]\n"
    with pytest.raises(UserError, match="vocab.txt.*wrong checksum: expected git:"):
        obtain_model("mbert", HUB, ONE, place)
    assert not list(place.downloads.rglob("*.part*"))
    vocabulary.content = FILES["vocab.txt"]
    api = web.resources[f"/api/models/{HUB}/revision/{ONE}"]
    api.statuses = [503, 500]
    obtain_model("mbert", HUB, ONE, place)


@pytest.mark.parametrize("left", ["config.json", "tokenizer.json"])
def test_a_repository_without_what_a_model_needs(web, place, left):
    web.publish("models", HUB, ONE, {name: data for name, data in FILES.items() if name not in (left, "vocab.txt")})
    with pytest.raises(UserError, match=rf"^model mbert: {HUB} at revision 1+ holds no .*{left}"):
        obtain_model("mbert", HUB, ONE, place)
    assert not (place.downloads / "models" / "mbert").exists()


@pytest.mark.parametrize(
    ("code", "said"), [("RepoNotFound", "no such repository .or it is private"), ("", "no such repository or revision")]
)
def test_a_model_that_does_not_exist(web, place, code, said):
    """One sentence, whether the hub says what is missing or not."""
    headers = {"X-Error-Code": code} if code else {}
    web.serve(f"/api/models/own/none/revision/{ONE}", b"", statuses=[404], headers=headers)
    with pytest.raises(UserError) as caught:
        obtain_model("x", "own/none", ONE, place)
    sentence = rf"cannot get model x \(its place: .*/models/x/\): model own/none at revision 1+: the hub knows {said}"
    assert re.match(sentence, str(caught.value)) and "\n" not in str(caught.value)


def test_token_goes_to_the_hub_only(web, place, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    web.publish("models", HUB, ONE, FILES)
    path = f"/{HUB}/resolve/{ONE}/model.safetensors"
    web.serve("/cdn", WEIGHTS)
    # localhost and 127.0.0.1 are different hosts to a client.
    web.resources[path].redirect = web.url.replace("127.0.0.1", "localhost") + "/cdn"
    obtain_model("mbert", HUB, ONE, place)
    assert {asked.headers["authorization"] for asked in web.asked if asked.path == path} == {"Bearer hf_secret"}
    assert "authorization" not in web.gets("/cdn")[0].headers


def make_mirror(folder) -> None:
    (folder / "models" / "mbert").mkdir(parents=True)
    lines = []
    for file in ("config.json", "tokenizer.json", "model.safetensors", "pytorch_model.bin"):
        (folder / "models" / "mbert" / file).write_bytes(FILES[file])
        lines.append(f"{hashlib.sha256(FILES[file]).hexdigest()}  models/mbert/{file}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))


def test_from_a_mirror_offline_or_from_the_hub_where_it_lacks_the_model(web, place, tmp_path):
    make_mirror(tmp_path / "mirror")
    mirror = Mirror(f"file:{tmp_path}/mirror", own_checksums=True)
    mark = obtain_model("mbert", HUB, "main", replace(place, mirror=mirror, offline=True))
    assert names(place) == ["complete.json", "config.json", "model.safetensors", "tokenizer.json"]
    assert json.loads(mark.read_text())["commit"] is None
    assert not place.lock.exists()
    assert web.asked == []
    with pytest.raises(UserError, match="SHA256SUMS lists nothing under models/other/"):
        obtain_model("other", HUB, "main", replace(place, mirror=mirror))
    # Where its checksums are not the only ones that count, the hub is asked next.
    web.publish("models", HUB, ONE, FILES)
    mark = obtain_model("other", HUB, ONE, replace(place, mirror=replace(mirror, own_checksums=False)))
    assert json.loads(mark.read_text())["commit"] == ONE


def test_offline_accepts_what_is_locked_and_in_place(web, place):
    web.publish("models", HUB, ONE, FILES, ("main",))
    mark = obtain_model("mbert", HUB, "main", place)
    before = mark.read_bytes()
    mark.unlink()
    web.asked.clear()
    offline = replace(place, offline=True)
    assert obtain_model("mbert", HUB, "main", offline).read_bytes() == before
    (mark.parent / "vocab.txt").write_bytes(b"changed")
    with pytest.raises(UserError, match="vocab.txt: wrong checksum"):
        obtain_model("mbert", HUB, "main", offline)
    (mark.parent / "vocab.txt").unlink()
    with pytest.raises(UserError, match=r"network is switched off: get it from https://\S+own/bert/tree/main and put"):
        obtain_model("mbert", HUB, "main", offline)
    assert web.asked == []


def test_model_that_a_person_brings(web, place, tmp_path):
    page = "manual:https://example.org/form"
    folder = place.downloads / "models" / "mbert"
    with pytest.raises(UserError, match=r"fetched by a person: see https://example.org/form \(revision v1\), then put"):
        obtain_model("mbert", page, "v1", place)
    folder.mkdir(parents=True)
    for file in ("config.json", "model.safetensors", "vocab.txt", "pytorch_model.bin"):
        (folder / file).write_bytes(FILES[file])
    mark = obtain_model("mbert", page, "v1", replace(place, offline=True))
    assert [file["file"] for file in json.loads(mark.read_text())["files"]] == [
        *("config.json", "model.safetensors", "vocab.txt")
    ]
    row = read_lock(place.lock)["models/mbert/vocab.txt"]
    assert (row.version, row.url) == ("v1", page)
    assert (folder / "pytorch_model.bin").exists()
    (folder / "vocab.txt").write_bytes(b"changed")
    with pytest.raises(UserError, match="vocab.txt: wrong checksum.*delete the row of models/mbert/vocab.txt"):
        obtain_model("mbert", page, "v1", place)
    (folder / "vocab.txt").unlink()
    with pytest.raises(UserError, match="then put vocab.txt into"):
        obtain_model("mbert", page, "v1", place)
    make_mirror(tmp_path / "mirror")
    obtain_model("mbert", page, "v1", replace(place, mirror=Mirror(f"file:{tmp_path}/mirror", own_checksums=True)))
    assert web.asked == []


def test_program(web, place, root, tmp_path):
    web.publish("models", HUB, ONE, FILES, ("main",))
    command = [
        *(sys.executable, str(root / "scripts" / "download_model.py"), "--name", "mbert", "--hub", HUB),
        *("--revision", "main", "--downloads", str(tmp_path / "d"), "--lock", str(tmp_path / "l.tsv")),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "d" / "models" / "mbert" / "complete.json").exists()
    # The library is kept from fetching and storing things of its own.
    assert {asked.path.split("/")[1] for asked in web.asked} == {"api", "own"}
    assert [asked.path for asked in web.asked if asked.path.startswith("/api")] == [f"/api/models/{HUB}/revision/main"]
    assert not (tmp_path / "home").exists()
    bad = subprocess.run([*command, "--name", "../x"], capture_output=True, text=True)
    assert bad.returncode == 1
    assert bad.stderr.startswith("error: name '../x'")
