"""Messages of docs/use/troubleshooting.md that no other test brings about: what has to go wrong goes wrong here."""

import contextlib
import os
import shutil
import subprocess
import sys

import pytest
import torch
from tests.engine_toys import ToyTask, all_values, same, toy_encoder, toy_records

from crossalign.data.lines import Source
from crossalign.embedding.model import load_model
from crossalign.engine.finetune import FineTuning
from crossalign.engine.settings import Settings
from crossalign.engine.weights import Shards
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)


def download_model(web, tmp_path, root, **variables):
    """The program that fetches a model, with a hub on the loopback."""
    environment = os.environ | {"HF_ENDPOINT": web.url, "HF_HOME": str(tmp_path / "home"), **variables}
    command = [sys.executable, str(root / "scripts" / "download_model.py"), "--name", "mbert", "--hub", "own/bert"]
    places = ["--downloads", str(tmp_path / "downloads"), "--lock", str(tmp_path / "lock.tsv")]
    return subprocess.run([*command, "--revision", "1" * 40, *places], env=environment, capture_output=True, text=True)


def test_a_model_whose_owner_asks_for_consent(web, tmp_path, root):
    web.serve(
        f"/api/models/own/bert/revision/{'1' * 40}", b"", statuses=[403] * 9, headers={"X-Error-Code": "GatedRepo"}
    )
    done = download_model(web, tmp_path, root)
    assert done.returncode == 1
    assert "its owner asks for consent first" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_hub_that_is_switched_off(web, tmp_path, root):
    done = download_model(web, tmp_path, root, HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert "HF_HUB_OFFLINE is set" in done.stderr
    assert web.asked == []


def test_a_text_in_another_encoding(tmp_path):
    file = tmp_path / "text"
    file.write_bytes(b"eins\nzwei\n" + "drei für\n".encode("latin-1") * 5000)
    with pytest.raises(UserError, match=r"text: not UTF-8 after line \d+: .*; convert the file to UTF-8"):
        list(Source(file).lines())


def test_a_gpu_that_another_program_has_filled(root, monkeypatch):
    def read(*_):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Shards, "read", read)
    with pytest.raises(UserError, match="mbert: no memory left on cpu for its weights"):
        load_model(root / "resources/demo/models/mbert", torch.device("cpu"))


def test_a_step_that_cannot_be_captured_runs_all_the_same(monkeypatch, caplog):
    """The same weights as with static shapes and no attempt to capture."""

    def tuned(capture, static):
        settings = Settings(learning_rate=1e-3, batch=8, epochs=2, selection="last")
        tuning = FineTuning(toy_encoder(), None, ToyTask(), toy_records(), [], settings, capture=capture)
        tuning.engine.static = static
        return tuning

    def refuse(*_):
        raise RuntimeError("operation not permitted when stream is capturing")

    refused = tuned(capture=True, static=True)
    monkeypatch.setattr(refused.engine, "_record", refuse)
    refused.run()
    assert "the step cannot be captured as a CUDA graph (operation not permitted" in caplog.text
    assert caplog.text.count("cannot be captured") == 1
    plain = tuned(capture=False, static=True)
    plain.run()
    assert same(all_values(refused.model), all_values(plain.model))


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), torch.OutOfMemoryError("CUDA out of memory")])
def test_a_capture_that_breaks_off_tells_its_cause(monkeypatch, cause):
    """Ending such a capture raises an error of its own; steps must not run eagerly after Ctrl-C because of that."""

    @contextlib.contextmanager
    def graph(*_, **__):
        try:
            yield
        finally:
            raise RuntimeError("capturing stream has unjoined work")

    def work():
        raise cause

    settings = Settings(learning_rate=1e-3, batch=8, epochs=1, selection="last")
    engine = FineTuning(toy_encoder(), None, ToyTask(), toy_records(), [], settings).engine
    for name, value in (("CUDAGraph", object), ("graph_pool_handle", object), ("graph", graph)):
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(engine, "_warm_up", lambda *_: None)
    with pytest.raises(type(cause)):
        engine._record((0, True, True), work)


def test_a_python_that_is_too_old(root, tmp_path):
    if shutil.which("make") is None:
        pytest.skip("no make")
    for name in ("Makefile", "requirements.txt"):
        shutil.copy(root / name, tmp_path)
    old = tmp_path / "python-old"
    pretend = "import sys; sys.version_info = (3, 9, 2); exec(sys.argv[1])"
    old.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{pretend}' \"$2\"\n", encoding="utf-8")
    old.chmod(0o755)
    done = subprocess.run(["make", f"PYTHON={old}", "demo"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "Python 3.11 or newer is needed" in done.stderr
    assert not (tmp_path / ".venv").exists()
