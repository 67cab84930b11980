"""Running text out of archives: addresses, one transfer for many sets, mirrors, the lock, no network."""

import gzip
import io
import json
import tarfile
from dataclasses import replace

import pytest

from crossalign.fetch.listing import missing, missing_message
from crossalign.fetch.lock import read_lock
from crossalign.fetch.register import Dataset, check_url
from crossalign.fetch.sources import obtain
from crossalign.fetch.texts import parse_texts
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

FILES = {
    "repo-1/data/en/b.txt": "Second file.\n42\nIts end.\n",
    "repo-1/data/en/a.txt": "First  file.\n",
    "repo-1/data/en/wiki.txt": "Too much.\n",
    "repo-1/data/de/a.txt": "Erste Datei.\n",
    "repo-1/README.md": "# Title\n\nRead me.\n",
}


def tar(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


def row(url: str, lang: str = "en", **changes) -> Dataset:
    fields = {"path": f"text/open/x_{lang}.txt", "version": "1", "url": url, "mirror": None, "bytes": None}
    return Dataset(**(fields | {"checksum": None, "licence": "CC0-1.0", "use": ""} | changes))


@pytest.fixture
def archive(web) -> str:
    return web.serve("/archive/1.tar.gz", gzip.compress(tar(FILES), mtime=0), chunked=True)


def english(archive: str) -> Dataset:
    return row(f"text:{archive}#lines?files=*/data/en/*.txt&not=*/wiki*")


def test_one_archive_serves_many_sets_and_is_fetched_once(web, place, archive):
    target = obtain(english(archive), place)
    assert target.read_text() == "Second file.\nIts end.\nFirst file.\n"
    assert obtain(row(f"text:{archive}#lines?files=*/data/de/*", "de"), place).read_text() == "Erste Datei.\n"
    assert len(web.gets()) == 1
    kept = f"archives{archive.removeprefix('http:/')}"
    assert sorted(read_lock(place.lock)) == [kept, "text/open/x_de.txt", "text/open/x_en.txt"]
    # Both the archive and the lines are what they were at first sight, or refused.
    target.unlink()
    with (place.downloads / kept).open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(UserError, match=r"1.tar.gz: wrong checksum.*Delete this file"):
        obtain(english(archive), place)
    (place.downloads / kept).unlink()
    web.serve("/archive/1.tar.gz", gzip.compress(tar(FILES | {"repo-1/data/en/c.txt": "More.\n"}), mtime=0))
    with pytest.raises(UserError, match=f"delete the row of {kept} from"):
        obtain(english(archive), place)


def test_several_archives_and_single_files_make_one_set(web, place, archive):
    web.serve("/raw/x.json", json.dumps({"a": [{"context": "Third."}]}).encode())
    url = f"text:{archive}#markdown?files=*.md|{web.url}/raw/x.json#values?option=context"
    assert obtain(row(url), place).read_text() == "Read me.\nThird.\n"


def test_a_share_of_the_files_and_the_first_words_of_each(web, place):
    files = {f"r/{number}.txt": f"File {number}.\nIts second line.\nIts third line.\n" for number in range(200)}
    archive = web.serve("/a.tar.gz", gzip.compress(tar(files)))
    lines = obtain(row(f"text:{archive}#lines?share=0.25&words=3"), place).read_text().splitlines()
    drawn = [line for line in lines if line.startswith("File")]
    assert 30 <= len(drawn) <= 70
    assert drawn == sorted(drawn, key=lambda line: int(line[5:-1]))
    assert len(lines) == 2 * len(drawn)
    assert "Its second line." in lines and "Its third line." not in lines
    more = obtain(row(f"text:{archive}#lines?share=0.5&words=1", "de"), place).read_text().splitlines()
    assert set(drawn) < set(more)


def test_without_a_network_an_archive_in_place_is_enough(web, place, archive):
    here = english(archive)
    kept = place.downloads / f"archives{archive.removeprefix('http:/')}"
    offline = replace(place, offline=True)
    with pytest.raises(UserError, match=f"network is switched off: get it from {archive} and put it at {kept}"):
        obtain(here, offline)
    assert missing([here], place.downloads) == [here]
    assert missing_message([here], place.downloads).endswith(f"      from {archive}\n      to   {kept}")
    kept.write_bytes(web.resources["/archive/1.tar.gz"].content)
    assert missing([here], place.downloads) == []
    assert obtain(here, offline).read_text().startswith("Second file.")
    assert web.asked == []


def test_what_cannot_be_read_is_named(web, place, archive):
    with pytest.raises(UserError, match=r"1.tar.gz: no file fits \*/data/fr/\*"):
        obtain(row(f"text:{archive}#lines?files=*/data/fr/*"), place)
    with pytest.raises(UserError, match="README.md cannot be read as values: Expecting value"):
        obtain(row(f"text:{archive}#values?files=*.md"), place)
    assert not (place.downloads / "text/open/x_en.txt").exists()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("text:https://e.org/a.tar.gz", "'' is no reader: known are lines, "),
        ("text:https://e.org/a.tar.gz#lines?file=*", "unknown file; known are option, files"),
        ("text:https://e.org/a.tar.gz#lines?words=ten", "invalid literal"),
        ("text:https://e.org/a.tar.gz#lines?files", "bad query field"),
        ("text:http://e.org/a.tar.gz#lines", "plain http"),
        ("text:hub://datasets/a/b/c.txt#lines", "text comes from https"),
        ("text:https://e.org/../a.txt#lines", "must be relative"),
    ],
)
def test_wrong_addresses(url, message):
    with pytest.raises(ValueError, match=message):
        check_url(url, None)


def test_parts_of_an_address():
    first, second = parse_texts("text:https://e.org/a.zip#lines?files=a/*,b/*&share=0.5|https://e.org/b.txt#lines")
    assert (first.path, first.files, first.share) == ("archives/e.org/a.zip", ("a/*", "b/*"), 0.5)
    assert (second.path, second.files, second.words) == ("archives/e.org/b.txt", ("*",), None)
    assert check_url("text:https://e.org/a.zip#lines?files=a/*|https://e.org/b.txt#lines", None)
