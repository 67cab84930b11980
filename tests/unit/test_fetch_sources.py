"""One file of the register: order of sources, mirrors, the lock, people's own files, killed processes."""

import hashlib
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from crossalign.fetch.lock import read_lock
from crossalign.fetch.register import Dataset
from crossalign.fetch.retry import RetryPolicy
from crossalign.fetch.sources import Mirror, Settings, local_path, obtain
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

CONTENT = random.Random(2).randbytes(400_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PATH = "ud/en_ewt/train.conllu"
COMMIT = "c" * 40


def row(url: str, **changes) -> Dataset:
    fields = {"path": PATH, "version": "r1", "url": url, "mirror": None, "bytes": None, "checksum": None}
    return Dataset(**(fields | {"licence": "CC-BY-4.0", "use": ""} | changes))


@pytest.fixture
def place(tmp_path) -> Settings:
    policy = RetryPolicy(attempts=2, timeout=5, sleep=lambda seconds: None)
    return Settings(tmp_path / "downloads", tmp_path / "lock.tsv", policy=policy)


def make_mirror(folder: Path, content: bytes = CONTENT) -> None:
    (folder / PATH).parent.mkdir(parents=True, exist_ok=True)
    (folder / PATH).write_bytes(content)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(content).hexdigest()}  {PATH}\n")


def command(root: Path, tmp_path: Path, url: str, *more: str) -> list[str]:
    return [
        *(sys.executable, str(root / "scripts" / "download_file.py"), "--path", PATH, "--url", url),
        *("--version", "r1", "--licence", "CC-BY-NC-4.0", "--downloads", str(tmp_path / "downloads")),
        *("--lock", str(tmp_path / "lock.tsv"), "--timeout", "5", "--wait", "0", *more),
    ]


def test_pieces_outlive_failures_and_other_addresses(web, place, tmp_path):
    url = web.serve("/a", CONTENT, cuts=[100_000, 0, 0])
    mirror = web.serve("/b", CONTENT, etag='"other"')
    obtain(row(url, mirror=mirror, checksum=f"sha256:{SHA256}"), place).unlink()
    assert web.ranges("/b") == ["bytes=100000-"]
    # A source that has nothing does not cost what another gave.
    for number, base in enumerate((f"file:{tmp_path}/nothing", web.url + "/nothing")):
        url, settings = web.serve(f"/{number}", CONTENT, cuts=[100_000, 0]), replace(place, mirror=Mirror(base))
        with pytest.raises(UserError, match="cut after 100000"):
            obtain(row(url, path=f"p{number}"), settings)
        obtain(row(url, path=f"p{number}"), settings)
        assert web.ranges(f"/{number}") == [None, "bytes=100000-", "bytes=100000-"]


def test_addresses_are_tried_in_turn_and_every_failure_is_told(web, place, capsys):
    obtain(row(web.serve("/bad", CONTENT[:-1]), mirror=web.serve("/a", CONTENT), checksum=f"sha256:{SHA256}"), place)
    assert [asked.path for asked in web.gets()] == ["/bad", "/a"]
    assert "wrong checksum" in capsys.readouterr().err
    # A published checksum needs no lock.
    assert not place.lock.exists()
    assert [path.name for path in (place.downloads / PATH).parent.iterdir()] == ["train.conllu"]
    (place.downloads / PATH).unlink()
    with pytest.raises(UserError) as error:
        obtain(row(web.url + "/x", mirror=web.serve("/y", b"y"), checksum=f"sha256:{SHA256}"), place)
    text = str(error.value)
    assert "/x: HTTP 404" in text
    assert f"/y: wrong checksum: expected sha256:{SHA256}, got sha256:{hashlib.sha256(b'y').hexdigest()}" in text
    assert str(place.downloads / PATH) in text
    assert not list(place.downloads.rglob("*.part*"))


def test_file_is_locked_at_first_sight_and_verified_ever_after(web, place):
    url = web.serve("/a", CONTENT)
    target = obtain(row(url), place)
    locked = read_lock(place.lock)[PATH]
    assert (locked.version, locked.bytes, locked.sha256, locked.url) == ("r1", len(CONTENT), SHA256, url)
    target.unlink()
    web.serve("/a", CONTENT + b"!", etag='"two"')
    with pytest.raises(UserError, match=f"expected 400000 bytes(.|\n)*delete the row of {PATH} from"):
        obtain(row(url), place)
    web.serve("/a", CONTENT[::-1], etag='"three"')
    with pytest.raises(UserError, match=f"expected sha256:{SHA256}, got(.|\n)*delete the row of {PATH} from") as error:
        obtain(row(url), place)
    assert str(place.lock) in str(error.value)
    assert not target.exists()
    # A new version in the register is what a new file should come with.
    assert obtain(row(url, version="r2"), place).read_bytes() == CONTENT[::-1]
    assert read_lock(place.lock)[PATH].version == "r2"
    # It also replaces the old file in place.
    assert obtain(row(web.serve("/b", b"new"), version="r3"), place).read_bytes() == b"new"


def test_file_in_place_is_verified_without_network(web, place):
    target = place.downloads / PATH
    target.parent.mkdir(parents=True)
    target.write_bytes(CONTENT)
    obtain(row(web.url + "/a"), place)
    assert read_lock(place.lock)[PATH].sha256 == SHA256
    target.write_bytes(b"changed")
    with pytest.raises(UserError, match=rf"wrong checksum: expected sha256:{SHA256}.*Delete this file.*delete the row"):
        obtain(row(web.url + "/a"), place)
    with pytest.raises(UserError, match="wrong length: expected 5 bytes, got 7"):
        obtain(row(web.url + "/a", bytes=5), replace(place, lock=place.lock.with_name("other.tsv")))
    assert target.read_bytes() == b"changed"
    assert web.asked == []


def test_register_and_lock_must_agree_on_the_length(web, place):
    obtain(row(web.serve("/a", CONTENT)), place).unlink()
    with pytest.raises(UserError, match="register says 399999 bytes, but it was locked with 400000.*delete the row"):
        obtain(row(web.url + "/a", bytes=399_999), place)
    with pytest.raises(UserError, match="expected 399999 bytes, the server offers 400000"):
        obtain(row(web.url + "/a", bytes=399_999, version="r2"), place)


def test_mirror_comes_first_unless_it_lacks_the_file_or_has_a_wrong_one(web, place, tmp_path):
    settings = replace(place, mirror=Mirror(f"file://{tmp_path}/mirror"))
    known = row(web.serve("/a", CONTENT), checksum=f"sha256:{SHA256}")
    obtain(known, settings).unlink()
    make_mirror(tmp_path / "mirror", b"wrong")
    assert obtain(known, settings).read_bytes() == CONTENT
    assert len(web.gets()) == 2
    make_mirror(tmp_path / "mirror")
    obtain(known, settings)
    assert len(web.gets()) == 2


def test_mirror_whose_checksums_are_the_law(place, tmp_path, monkeypatch):
    make_mirror(tmp_path / "world")
    monkeypatch.chdir(tmp_path)
    settings = replace(place, mirror=Mirror("file:world", own_checksums=True), offline=True)
    # The register speaks of the real file; the mirror serves its own under the same name.
    real = row("manual:https://example.org/form", bytes=7, checksum="git:" + "0" * 40)
    assert obtain(real, settings).read_bytes() == CONTENT
    assert not place.lock.exists()
    with pytest.raises(UserError, match="SHA256SUMS does not list other"):
        obtain(row("https://example.invalid/", path="other"), settings)
    (tmp_path / "world" / PATH).write_bytes(b"damaged")
    (place.downloads / PATH).unlink()
    with pytest.raises(UserError, match=f"expected sha256:{SHA256}"):
        obtain(real, settings)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        *(("file:///a/b", "/a/b"), ("file://a/b", "a/b"), ("file:a/b", "a/b"), ("file:/a/b", "/a/b")),
        *(("file://localhost/a", "/a"), ("file:///a%20b", "/a b"), ("https://a/b", None)),
    ],
)
def test_local_addresses(url, path):
    assert local_path(url) == (Path(path) if path else None)


def test_file_to_be_got_by_hand(web, place):
    by_hand = row("manual:https://example.org/form", licence="LDC-like", checksum=f"sha256:{SHA256}")
    with pytest.raises(UserError, match=f"by a person, .*LDC-like.*see https://example.org/form, .*by-hand/{PATH}"):
        obtain(by_hand, place)
    target = place.downloads / PATH
    assert list(target.parent.iterdir()) == []
    brought = by_hand.by_hand(place.downloads)
    brought.parent.mkdir(parents=True)
    brought.write_bytes(b"something else")
    with pytest.raises(UserError, match="wrong checksum"):
        obtain(by_hand, place)
    brought.write_bytes(CONTENT)
    assert obtain(by_hand, place) == target
    # The workflow may delete what it made; what a person brought stays.
    target.unlink()
    assert obtain(by_hand, replace(place, offline=True)).read_bytes() == brought.read_bytes() == CONTENT


def test_offline_touches_no_network(web, place):
    with pytest.raises(
        UserError, match="network is switched off: get it from http://.*/a and put it at .*train.conllu"
    ):
        obtain(row(web.serve("/a", CONTENT)), replace(place, offline=True, mirror=Mirror(web.url)))
    with pytest.raises(UserError, match="network is switched off"):
        obtain(row(web.url + "/a"), replace(place, offline=True, mirror=Mirror(web.url, own_checksums=True)))
    assert web.asked == []


def test_hub_data_set(web, place, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", web.url)
    web.publish("datasets", "own/repo", COMMIT, {"data/x.parquet": CONTENT, "small.txt": b"text"}, ("main",))
    web.resources[f"/datasets/own/repo/resolve/{COMMIT}/data/x.parquet"].cuts = [150_000]
    target = obtain(row("hub://datasets/own/repo/data/x.parquet", version="main"), place)
    assert target.read_bytes() == CONTENT
    assert len(web.gets(f"/datasets/own/repo/resolve/{COMMIT}/data/x.parquet")) == 2
    assert read_lock(place.lock)[PATH].version == "main"
    assert obtain(row("hub://datasets/own/repo/small.txt", version=COMMIT, path="s"), place).read_bytes() == b"text"
    assert [path.name for path in place.downloads.iterdir() if path.name.startswith(".")] == []
    web.resources[f"/datasets/own/repo/resolve/{COMMIT}/data/x.parquet"].content = CONTENT[::-1]
    with pytest.raises(UserError, match=f"wrong checksum: expected sha256:{SHA256}"):
        obtain(row("hub://datasets/own/repo/data/x.parquet", version=COMMIT, path="x"), place)
    with pytest.raises(UserError, match="y.parquet: dataset own/repo at revision .* has no such file"):
        obtain(row("hub://datasets/own/repo/y.parquet", version=COMMIT, path="y"), place)


def test_two_downloads_of_the_same_file_share_the_work(web, place):
    url = web.serve("/a", CONTENT, drip=(100_000, 0.05))
    wanted = row(url, checksum=f"sha256:{SHA256}")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(obtain, [wanted] * 2, [place] * 2))
    assert (place.downloads / PATH).read_bytes() == CONTENT
    assert len(web.gets()) == 1
    assert [path.name for path in (place.downloads / PATH).parent.iterdir()] == ["train.conllu"]


def test_program_tells_errors_and_licences(web, root, tmp_path):
    done = subprocess.run(command(root, tmp_path, web.url + "/none"), capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{PATH}: licence CC-BY-NC-4.0: for NON-COMMERCIAL use only" in done.stderr
    assert f"error: cannot get {PATH}" in done.stderr
    assert "HTTP 404" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--checksum", "md5:1"], "is not a checksum"),
        (["--bytes", "x"], "bytes 'x' is not a whole number"),
        (["--path", "../x"], "must be relative"),
        (["--base-mirror-checksums"], "needs --base-mirror"),
        (["--attempts", "0"], "--attempts must be at least 1"),
        (["--base-mirror", "here"], "mirror 'here' is not an address"),
    ],
)
def test_program_refuses_bad_options(root, tmp_path, monkeypatch, capsys, more, message):
    import download_file

    monkeypatch.setattr(sys, "argv", command(root, tmp_path, "https://example.invalid/", *more)[1:])
    with pytest.raises(UserError, match=message):
        download_file.main()
    assert not (tmp_path / "downloads").exists()
