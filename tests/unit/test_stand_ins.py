"""Stand-ins for models and data: published shapes and layouts that load, the mirror, and a disk that is full."""

import errno
import json
import math
import os

import pytest
from tools import make_rehearsal, stand_ins
from tools.stand_ins import PUBLISHED, model_bytes, published, shapes, write_model

from crossalign.catalog.config import load
from crossalign.engine.folders import load_encoder
from crossalign.engine.weights import _UNNEEDED, PREFIXES, plain_name
from crossalign.fetch.models import obtain_model
from crossalign.fetch.register import read_models
from crossalign.fetch.sources import Mirror, Settings
from crossalign.runtime.errors import UserError

PIECES = ["the", "cat", "s", "##at", "##s", "m", "##m", "t", "##t", "a", "##a", "c", "##c", "."]


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name not in ("embert-hi", "scale-pre")])
def test_shapes_have_the_published_number_of_parameters(name, root):
    known = read_models(root / "resources" / "models.tsv")[name].parameters
    tensors = {plain_name(key, PREFIXES): shape for key, shape in shapes(PUBLISHED[name].config).items()}
    count = sum(math.prod(shape) for key, shape in tensors.items() if not _UNNEEDED.match(key))
    assert known is None or count == known


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_layout_loads(name, tmp_path):
    layout = published(name, len(PIECES), tiny=True)
    folder = tmp_path / name
    sums = write_model(folder, layout, PIECES, 1)
    assert set(sums) == {file.name for file in folder.iterdir()} - {"SHA256SUMS"}
    encoder, tokenizer = load_encoder(folder)
    assert encoder.config.layers == (layout.config.get("num_hidden_layers") or layout.config["num_layers"])
    assert tokenizer.get_vocab_size() == layout.config["vocab_size"] == encoder.config.vocab_size
    if layout.config["model_type"].startswith("xlm-roberta"):
        assert tokenizer.token_to_id("<mask>") == tokenizer.get_vocab_size() - 1
    pieces = tokenizer.encode("the cats sat.").tokens
    assert not {"[UNK]", "<unk>"} & set(pieces), pieces
    assert ("[CLS]" in pieces) == (layout.style == "bert")
    shards = sorted(folder.glob("model-*-of-*.safetensors"))
    assert len(shards) == (0 if layout.shard is None else len({*json.loads(
        (folder / "model.safetensors.index.json").read_text())["weight_map"].values()}))  # fmt: skip
    assert (len(shards) > 1) == (name in ("xlmr-xl", "xlmr-xxl", "xglm-7.5b"))
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    assert size == pytest.approx(model_bytes(layout), rel=0.1)


@pytest.mark.parametrize("name", ["mbert", "xlmr-xl", "xglm-1.7b"])
def test_the_library_loads_them_too(name, tmp_path):
    import torch
    from transformers import AutoModel, AutoTokenizer

    write_model(tmp_path, published(name, len(PIECES), tiny=True), PIECES, 1)
    model, told = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    # XLM-R XL was published without a pooler.
    assert {name.split(".")[0] for name in told["missing_keys"]} <= {"pooler"} and not told["mismatched_keys"]
    encoder, tokenizer = load_encoder(tmp_path)
    ids = torch.tensor([AutoTokenizer.from_pretrained(tmp_path)("the cats sat.")["input_ids"]])
    assert ids[0].tolist() == tokenizer.encode("the cats sat.").ids
    with torch.no_grad():
        ours = encoder.eval()(ids, torch.ones_like(ids))
        theirs = model.float().eval()(ids).last_hidden_state
    # The library makes its positions in fp16 where the weights are.
    torch.testing.assert_close(ours, theirs, atol=2e-3, rtol=1e-2)


def test_downloads_link_large_files_of_the_mirror(tmp_path, monkeypatch):
    monkeypatch.setattr("crossalign.fetch.sources.LARGE", 50_000)
    folder = tmp_path / "mirror" / "models" / "xlmr-xl"
    sums = write_model(folder, published("xlmr-xl", len(PIECES), tiny=True), PIECES, 1)
    lines = [f"{digest}  models/xlmr-xl/{name}\n" for name, digest in sums.items()]
    (tmp_path / "mirror" / "SHA256SUMS").write_text("".join(lines))
    place = Settings(tmp_path / "d", tmp_path / "lock", Mirror(f"file://{tmp_path / 'mirror'}", own_checksums=True))
    fetched = obtain_model("xlmr-xl", "facebook/xlm-roberta-xl", "a" * 40, place).parent
    assert not [file for file in fetched.iterdir() if ".part" in file.name]
    weights = next(file for file in folder.iterdir() if file.name.startswith("model-00001"))
    assert weights.samefile(fetched / weights.name)
    assert not (folder / "config.json").samefile(fetched / "config.json")
    # A mirror whose file is not what its list says is found out, link or not.
    (fetched / weights.name).unlink()
    (fetched / "complete.json").unlink()
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match="wrong content|sha256"):
        obtain_model("xlmr-xl", "facebook/xlm-roberta-xl", "a" * 40, place)
    assert not (fetched / weights.name).exists()


def test_models_that_are_too_large_are_left_out_and_told(root):
    config, models = load([]), read_models(root / "resources" / "models.tsv")
    told = make_rehearsal.limited(config, models, 3 * 10**9)
    assert told["anc"] == {"xlmr": ["xlmr-base", "xlmr-large"], "xglm": ["xglm-564m", "xglm-1.7b", "xglm-2.9b"]}
    assert "xlmr-xxl" in told["replaced"]["anc"][0] and "3 billion" in told["replaced"]["anc"][0]
    assert make_rehearsal.limited(config, models, 10**11) == {}
    with pytest.raises(UserError, match="rehearsal.max_parameters: 1000 leaves no model of anc.xlmr"):
        make_rehearsal.limited(config, models, 1000)


def test_the_world_has_the_published_numbers(root):
    settings = make_rehearsal.world_settings(load([root / "config.rehearsal.yaml"]), tiny=False)
    assert settings["nli"]["train"] == 392702
    assert settings["treebanks"]["en_ewt"] | {"domain": ""} == {"domain": "", "train": 12543, "dev": 2002, "test": 2077}
    assert settings["wikiann"]["counts"]["hi"] == {"train": 5000, "dev": 1000, "test": 1000}
    assert settings["text"]["counts"]["ckb"] == 380000
    assert settings["bitext"]["pairs"] > 250000
    assert settings["qa"]["train"] == 87599


def small_mirror(out, monkeypatch, jobs=1):
    settings = make_rehearsal.world_settings(load([]) | {"adjust": load([])["adjust"] | {"pool": 50}}, tiny=True)
    monkeypatch.setattr(make_rehearsal, "pieces_of", lambda *told: PIECES)
    paths = ["ud/en_ewt/train.conllu", "text/wikipedia/wo.parquet"]
    make_rehearsal.write_mirror(out, paths, ["mbert", "xlmr-base"], settings, True, jobs)


def test_a_disk_without_room_is_told_before_anything_is_written(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    with pytest.raises(UserError, match=r"the disk has 1 kB free, and .* needed; make room, or set rehearsal.max_par"):
        small_mirror(tmp_path / "mirror", monkeypatch)
    assert not any((tmp_path / "mirror").iterdir())


def test_a_disk_that_fills_up_costs_nothing_that_is_complete(tmp_path, monkeypatch):
    out, save = tmp_path / "mirror", stand_ins.save_file

    def full(values, path, **more):
        if "xlmr-base" in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save(values, path, **more)

    monkeypatch.setattr(stand_ins, "save_file", full)
    with pytest.raises(UserError, match="the disk is full; what is complete stays"):
        small_mirror(out, monkeypatch)
    assert not (out / "SHA256SUMS").exists() or "xlmr-base" not in (out / "SHA256SUMS").read_text()
    complete = [out / "ud/en_ewt/train.conllu", *(out / "models/mbert").iterdir()]
    kept = {file: file.stat().st_mtime_ns for file in complete}
    monkeypatch.setattr(stand_ins, "save_file", save)
    small_mirror(out, monkeypatch)
    assert kept == {file: file.stat().st_mtime_ns for file in kept}
    listed = (out / "SHA256SUMS").read_text()
    assert "models/xlmr-base/model.safetensors" in listed and "ud/en_ewt/train.conllu" in listed


def test_stand_ins_of_two_sizes_do_not_mix(tmp_path, monkeypatch):
    small_mirror(tmp_path / "mirror", monkeypatch)
    stamp = tmp_path / "mirror" / "settings.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"tiny": False}))
    with pytest.raises(UserError, match="holds stand-ins of other settings"):
        small_mirror(tmp_path / "mirror", monkeypatch)
