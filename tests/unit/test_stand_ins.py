"""Stand-ins for models and data: published sizes and layouts that load, and the mirror that holds them."""

import json
import os

import pytest
from tools import make_rehearsal, stand_ins
from tools.stand_ins import PUBLISHED, empty_model, published, write_model

from crossalign.catalog.config import load
from crossalign.engine.folders import load_encoder
from crossalign.engine.weights import _UNNEEDED, PREFIXES, plain_name
from crossalign.fetch.models import obtain_model
from crossalign.fetch.register import read_models
from crossalign.fetch.sources import Mirror, Settings
from crossalign.runtime.errors import UserError

PIECES = ["the", "cat", "s", "##at", "##s", "m", "##m", "t", "##t", "a", "##a", "c", "##c", "."]


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "embert-hi" and not name.startswith("scale-")])
def test_models_have_the_published_number_of_parameters(name, root):
    known = read_models(root / "resources" / "models.tsv")[name].parameters
    named = empty_model(PUBLISHED[name]).named_parameters(remove_duplicate=False)
    tied = ("lm_head.decoder.", "cls.predictions.decoder.", "lm_head.weight")
    tensors = {plain_name(key, PREFIXES): value for key, value in named if not key.startswith(tied)}
    count = sum(value.numel() for key, value in tensors.items() if not _UNNEEDED.match(key))
    assert known is None or count == known


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_layout_loads(name, tmp_path):
    layout = published(name).tiny(len(PIECES))
    sums = write_model(tmp_path / name, layout, PIECES, 1)
    assert set(sums) == {file.name for file in (tmp_path / name).iterdir()} - {"SHA256SUMS"}
    encoder, tokenizer = load_encoder(tmp_path / name)
    assert encoder.config.layers == (layout.config.get("num_hidden_layers") or layout.config["num_layers"])
    assert tokenizer.get_vocab_size() == layout.config["vocab_size"] == encoder.config.vocab_size
    if layout.config["model_type"].startswith("xlm-roberta"):
        assert tokenizer.token_to_id("<mask>") == tokenizer.get_vocab_size() - 1
    pieces = tokenizer.encode("the cats sat.").tokens
    assert not {"[UNK]", "<unk>"} & set(pieces), pieces
    assert ("[CLS]" in pieces) == (layout.style == "bert")


def test_large_models_lie_in_several_files_and_downloads_link_them(tmp_path, monkeypatch):
    monkeypatch.setattr("crossalign.fetch.sources.LARGE", 50_000)
    monkeypatch.setattr(stand_ins, "SHARD_UNIT", "KB")
    folder = tmp_path / "mirror" / "models" / "xlmr-xl"
    sums = write_model(folder, published("xlmr-xl").tiny(len(PIECES)), PIECES, 1)
    lines = [f"{digest}  models/xlmr-xl/{name}\n" for name, digest in sums.items()]
    (tmp_path / "mirror" / "SHA256SUMS").write_text("".join(lines))
    place = Settings(tmp_path / "d", tmp_path / "lock", Mirror(f"file://{tmp_path / 'mirror'}", own_checksums=True))
    fetched = obtain_model("xlmr-xl", "facebook/xlm-roberta-xl", "a" * 40, place).parent
    weights = max(folder.glob("model-*-of-*.safetensors"), key=lambda file: file.stat().st_size)
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
    settings = make_rehearsal.world_settings(load([root / "config/rehearsal.yaml"]), tiny=False)
    assert (settings["nli"]["train"], settings["qa"]["train"]) == (392702, 87599)
    assert settings["treebanks"]["en_ewt"] | {"domain": ""} == {"domain": "", "train": 12543, "dev": 2002, "test": 2077}
    assert settings["wikiann"]["counts"]["hi"] == {"train": 5000, "dev": 1000, "test": 1000}
    assert settings["text"]["counts"]["ckb"] == 380000
    assert settings["bitext"]["pairs"] > 250000


def test_an_interrupted_mirror_keeps_what_is_complete(tmp_path, monkeypatch):
    settings = make_rehearsal.world_settings(load([]) | {"adjust": load([])["adjust"] | {"pool": 50}}, tiny=True)
    monkeypatch.setattr(make_rehearsal, "pieces_of", lambda *told: PIECES)
    out, write = tmp_path / "mirror", stand_ins.write_model

    def mirror():
        paths = ["ud/en_ewt/train.conllu", "text/wikipedia/wo.parquet"]
        make_rehearsal.write_mirror(out, paths, ["mbert", "xlmr-base"], settings, True, 1)

    def full(folder, *more):
        if folder.name == "xlmr-base":
            raise OSError(os.strerror(28))
        write(folder, *more)

    monkeypatch.setattr(stand_ins, "write_model", full)
    with pytest.raises(OSError, match="No space left"):
        mirror()
    assert not (out / "SHA256SUMS").exists() or "xlmr-base" not in (out / "SHA256SUMS").read_text()
    kept = {
        file: file.stat().st_mtime_ns for file in [out / "ud/en_ewt/train.conllu", *(out / "models/mbert").iterdir()]
    }
    monkeypatch.setattr(stand_ins, "write_model", write)
    mirror()
    assert kept == {file: file.stat().st_mtime_ns for file in kept}
    listed = (out / "SHA256SUMS").read_text()
    assert "models/xlmr-base/model.safetensors" in listed and "ud/en_ewt/train.conllu" in listed
    # Stand-ins of two sizes do not mix.
    stamp = out / "settings.json"
    stamp.write_text(json.dumps(json.loads(stamp.read_text()) | {"tiny": False}))
    with pytest.raises(UserError, match="holds stand-ins of other settings"):
        mirror()
