"""Nothing that is read is ever run: what must not be in the code, and what loaders must not load."""

import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from crossalign.analysis.matrices import open_embeddings
from crossalign.embedding.model import load_model
from crossalign.engine.folders import load_encoder
from crossalign.runtime.errors import UserError

# What runs what it reads, hands text to a shell, or switches protection off.
DANGER = re.compile(
    r"\b(import|from) (_?pickle|cPickle|dill|cloudpickle|joblib|marshal|shelve|jsonpickle)\b|from torch import .*\bload"
    r"|(?<![\w.])(eval|exec|compile|__import__)\(|os\.(system|popen)\(|torch\.(jit\.|hub\.)?(load|save)\("
    r"|yaml\.(unsafe_|full_)?load\(|read_pickle|allow_pickle=True|trust_remote_code=True|shell=True|weights_only=False"
    r"|use_safetensors=False"
)
# A model of the library takes pickled weights unless it is told not to.
LOADED = re.compile(r"\w*Model\w*\.from_pretrained\((?:[^()]|\([^()]*\))*\)")


@pytest.mark.parametrize("folder", ["scripts", "demo_world", "tools", "benchmarks", "profiles", ".ci"])
def test_no_code_runs_what_it_reads(root, folder):
    files = sorted((root / folder).rglob("*.py"))
    files += [file for file in (root / folder).rglob("*") if file.is_file() and is_python(file)]
    assert files or folder == "profiles"
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not DANGER.search(text), f"{file}: {DANGER.search(text)[0]}"
        assert all("use_safetensors=True" in call[0] for call in LOADED.finditer(text)), file


def is_python(file):
    with file.open("rb") as stream:
        return file.suffix == "" and re.match(rb"#!.*python", stream.readline()) is not None


# Interpolations that need no quotes: made of options that are quoted already, of numbers, or of closed sets of words.
QUOTED = {"threads", "params.program", "params.code"}


def test_every_path_in_a_command_is_quoted(root):
    seen = 0
    for file in sorted((root / "rules").glob("*.smk")):
        text = file.read_text(encoding="utf-8")
        for shell in re.findall(r"^ *shell:\n((?: +[\"'][^\n]*[\"']\n?)+)", text, flags=re.MULTILINE):
            for name in re.findall(r"\{([^{}]+)\}", shell):
                seen += 1
                assert name.endswith(":q") or name in QUOTED, f"{file.name}: {{{name}}} needs :q"
            assert shell.count('"$') == shell.count("$"), f"{file.name}: a variable of the shell stands without quotes"
        assert text.count("shell:\n") == len(re.findall(r"^ *shell:\n +[\"']", text, flags=re.MULTILINE)), file
    assert seen > 100


class Harm:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def embedding_model(folder):
    return load_model(folder, torch.device("cpu"))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.ckpt", "tf_model.h5"])
@pytest.mark.parametrize("load", [load_encoder, embedding_model])
def test_pickled_weights_are_refused(root, tmp_path, name, load):
    folder = tmp_path / "model"
    folder.mkdir()
    for kept in ("config.json", "tokenizer.json"):
        shutil.copy(root / "resources" / "demo" / "models" / "mbert" / kept, folder)
    torch.save({"harm": Harm(tmp_path / "pwned")}, folder / name)
    with pytest.raises(UserError, match=r"has no model\.safetensors \(other weight formats are not read\)") as told:
        load(folder)
    assert name == "tf_model.h5" or f"{name} is a pickle, which may run code" in str(told.value)
    # Nor under the right name.
    (folder / name).rename(folder / "model.safetensors")
    with pytest.raises(UserError, match=r"model\.safetensors cannot be read"):
        load(folder)
    assert not (tmp_path / "pwned").exists()


def test_arrays_of_objects_are_refused(root, tmp_path):
    harm = np.array([Harm(tmp_path / "pwned")], dtype=object)
    np.save(tmp_path / "en.npy", harm, allow_pickle=True)
    with pytest.raises(UserError, match=r"en\.npy: not a complete \.npy array: .*Python objects"):
        open_embeddings(tmp_path, ["en"])
    options = [word for name in ("related", "unrelated") for word in (f"--{name}", str(tmp_path / "en.npy"))]
    options += ["--out", str(tmp_path / "x.csv"), "--summary", str(tmp_path / "x.json")]
    program = [sys.executable, str(root / "scripts" / "measure_distances.py")]
    done = subprocess.run([*program, *options], capture_output=True, text=True)
    assert done.returncode == 1
    assert "not a complete .npy array" in done.stderr
    assert not (tmp_path / "pwned").exists()
