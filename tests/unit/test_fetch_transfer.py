"""Transfers from a server that cuts, lies, stalls and redirects."""

import hashlib
import random
from pathlib import Path

import pytest
import requests

from crossalign.fetch.checksums import Expected, WrongContent
from crossalign.fetch.part import claim, part_path
from crossalign.fetch.retry import RetryPolicy, SourceError
from crossalign.fetch.transfer import Session, download
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

CONTENT = random.Random(1).randbytes(300_000)
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
KNOWN = Expected(len(CONTENT), (SHA256,))
ONCE = RetryPolicy(attempts=1)


class Waits(list):
    """Waits that are noted instead of waited for."""

    def policy(self, **settings) -> RetryPolicy:
        return RetryPolicy(**({"timeout": 5, "sleep": self.append} | settings))


@pytest.fixture
def waits() -> Waits:
    return Waits()


def fetch(url: str, target: Path, expected: Expected = KNOWN, policy: RetryPolicy | None = None) -> bytes:
    with claim(target) as part:
        measured = download(url, part, expected, "file", policy or Waits().policy())
        part.finish()
    assert measured.bytes == target.stat().st_size
    return target.read_bytes()


def test_cut_transfers_resume_where_they_ended(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, cuts=[100_000, 50_000])
    assert fetch(url, tmp_path / "deep" / "a", KNOWN, waits.policy()) == CONTENT
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a"]
    assert web.gets()[0].headers["accept-encoding"] == "identity"
    assert web.ranges() == [None, "bytes=100000-", "bytes=150000-"]
    assert [asked.headers.get("if-range") for asked in web.gets()] == [None, '"one"', '"one"']
    # No byte travelled twice.
    assert sum(asked.sent for asked in web.gets()) == len(CONTENT)
    assert waits == [1, 2]


WHEN = "Mon, 01 Jan 2024 00:00:00 GMT"


@pytest.mark.parametrize(
    ("how", "expected", "ranges", "if_range"),
    [
        pytest.param({"chunked": True}, Expected(), [None, "bytes=1000-"], '"one"', id="chunked"),
        pytest.param({"etag": 'W/"w"', "modified": WHEN}, Expected(), [None, "bytes=1000-"], WHEN, id="weak tag"),
        pytest.param({"etag": None}, Expected(), [None, None], None, id="neither validator nor checksum"),
        pytest.param({"etag": None}, KNOWN, [None, "bytes=1000-"], None, id="checksum only"),
        pytest.param({"ranges": False}, KNOWN, [None, "bytes=1000-"], '"one"', id="no ranges"),
        pytest.param({"range_status": 416}, KNOWN, [None, "bytes=1000-", None], '"one"', id="416"),
    ],
)
def test_how_a_cut_transfer_goes_on(web, tmp_path, how, expected, ranges, if_range):
    url = web.serve("/a", CONTENT, cuts=[1000], **how)
    assert fetch(url, tmp_path / "a", expected) == CONTENT
    assert web.ranges() == ranges
    assert web.gets()[1].headers.get("if-range") == if_range


@pytest.mark.parametrize("obeys", [True, False])
def test_file_that_changes_between_two_attempts_is_not_mixed(web, tmp_path, obeys):
    url = web.serve("/a", CONTENT, cuts=[100_000])
    with claim(tmp_path / "a") as part, pytest.raises(SourceError, match="cut after 100000 of 300000"):
        download(url, part, Expected(), "file", ONCE)
    new = CONTENT[::-1]
    web.serve("/a", new, etag='"two"', obeys_if_range=obeys)
    assert fetch(url, tmp_path / "a", Expected()) == new


def test_bad_start_of_a_resumed_file_costs_a_second_transfer(web, tmp_path):
    url = web.serve("/a", CONTENT, cuts=[100_000])
    with claim(tmp_path / "a") as part, pytest.raises(SourceError):
        download(url, part, KNOWN, "file", ONCE)
    part_path(tmp_path / "a").write_bytes(b"x" * 100_000)
    assert fetch(url, tmp_path / "a") == CONTENT
    assert web.ranges() == [None, "bytes=100000-", None]


def test_complete_part_whose_process_died_is_only_verified(web, tmp_path):
    url = web.serve("/a", CONTENT)
    with claim(tmp_path / "a") as part:
        download(url, part, KNOWN, "file", ONCE)
    assert part_path(tmp_path / "a").exists()
    assert fetch(url, tmp_path / "a") == CONTENT
    assert [asked.sent for asked in web.gets()] == [len(CONTENT), 0]


def test_wrong_bytes_name_both_checksums_and_leave_nothing(web, tmp_path):
    url = web.serve("/a", CONTENT[:-1] + b"!")
    got = hashlib.sha256(CONTENT[:-1] + b"!").hexdigest()
    with pytest.raises(WrongContent, match=f"expected {SHA256}, got sha256:{got}"):
        fetch(url, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []
    assert len(web.gets()) == 1


@pytest.mark.parametrize(
    ("how", "expected", "message"),
    [
        ({}, Expected(299_999), "expected 299999 bytes, the server offers 300000"),
        ({"content_length": 400_000}, KNOWN, "expected 300000 bytes, the server offers 400000"),
        ({"content_length": 200_000}, KNOWN, "expected 300000 bytes, the server offers 200000"),
        ({"chunked": True}, Expected(299_999), "expected 299999 bytes, the server sends more"),
        ({"content_length": 400_000, "ranges": False}, Expected(), "cut after 300000 of 400000 bytes"),
        ({"close_delimited": True}, Expected(300_001), "cut after 300000 of 300001 bytes"),
        ({"close_delimited": True}, Expected(), "does not say how long"),
        ({"headers": {"Content-Type": "text/html; charset=utf-8"}}, Expected(), "web page"),
        ({"headers": {"Content-Encoding": "gzip"}}, KNOWN, "gzip-encoded"),
    ],
)
def test_answers_that_cannot_be_the_file(web, tmp_path, waits, how, expected, message):
    with pytest.raises((SourceError, WrongContent), match=message):
        fetch(web.serve("/a", CONTENT, **how), tmp_path / "a.tsv", expected, waits.policy())
    assert not (tmp_path / "a.tsv").exists()


def test_odd_answers_that_are_the_file(web, tmp_path):
    assert fetch(web.serve("/a", CONTENT, close_delimited=True), tmp_path / "a", Expected(300_000)) == CONTENT
    # Servers label .gz files so; there the bytes are the file.
    url = web.serve("/b", CONTENT, headers={"Content-Encoding": "gzip"})
    assert fetch(url, tmp_path / "b.tsv.gz") == CONTENT


def test_refusals_are_final(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, statuses=[403])
    with pytest.raises(SourceError, match="HTTP 403"):
        fetch(url, tmp_path / "a", KNOWN, waits.policy())
    assert len(web.gets()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("statuses", "headers", "expected"),
    [
        ([408, 429, 500], {}, [1, 2, 4]),
        ([503, 429], {"Retry-After": "7"}, [7, 7]),
        ([503, 503], {"Retry-After": "Fri, 01 Jan 2100 00:00:00 GMT"}, [60, 60]),
        ([503], {"Retry-After": "soon"}, [1]),
    ],
)
def test_transient_errors_are_waited_for(web, tmp_path, waits, statuses, headers, expected):
    url = web.serve("/a", CONTENT, statuses=statuses, headers=headers)
    assert fetch(url, tmp_path / "a", KNOWN, waits.policy()) == CONTENT
    assert waits == expected


def test_waits_grow_to_a_cap_and_end(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, statuses=[500] * 100)
    with pytest.raises(SourceError, match="HTTP 500 .*gave up after 6 attempts"):
        fetch(url, tmp_path / "a", KNOWN, waits.policy(attempts=6, longest_wait=5))
    assert waits == [1, 2, 4, 5, 5]


def test_progress_renews_the_attempts(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, cuts=[50_000] * 5)
    assert fetch(url, tmp_path / "a", KNOWN, waits.policy(attempts=2, real_progress=40_000)) == CONTENT
    assert waits == [1] * 5


def test_silence_times_out(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, drip=(100, 30))
    with pytest.raises(SourceError, match="no answer in time"):
        fetch(url, tmp_path / "a", KNOWN, waits.policy(timeout=0.2, attempts=2))


def test_redirections_are_followed_with_the_range(web, tmp_path):
    web.serve("/a", CONTENT, cuts=[1000])
    web.serve("/old", b"", redirect="/older")
    web.serve("/older", b"", redirect=web.url + "/a")
    assert fetch(web.url + "/old", tmp_path / "a") == CONTENT
    assert web.ranges("/a") == [None, "bytes=1000-"]


def test_redirection_from_https_to_http_is_refused():
    answer = requests.Response()
    answer.url, answer.status_code = "https://example.org/a", 302
    answer.headers["Location"] = "http://example.org/a"
    with pytest.raises(SourceError, match="not https"):
        Session().get_redirect_target(answer)


def test_unwritable_folder(web, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write"):
        fetch(web.serve("/a", CONTENT), tmp_path / "file" / "a")
