"""Transfers from a server that cuts, lies, stalls and sends people around."""

import hashlib
import io
import random
import urllib.request
from pathlib import Path

import pytest

from crossalign.fetch import transfer
from crossalign.fetch.checksums import Expected, WrongContent
from crossalign.fetch.part import claim, part_path
from crossalign.fetch.progress import Progress, size
from crossalign.fetch.transfer import download
from crossalign.fetch.web import Patience, SourceError, _Redirects
from crossalign.runtime.errors import UserError

pytest_plugins = ("tests.http_server",)

CONTENT = random.Random(1).randbytes(300_000)
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
GIT = "git:" + hashlib.sha1(b"blob 300000\0" + CONTENT).hexdigest()
KNOWN = Expected(len(CONTENT), (SHA256,))


class Waits(list):
    """Waits that are noted instead of waited for."""

    def patience(self, **settings) -> Patience:
        return Patience(**({"timeout": 5, "sleep": self.append} | settings))


@pytest.fixture
def waits() -> Waits:
    return Waits()


def fetch(url: str, target: Path, expected: Expected = KNOWN, patience: Patience | None = None) -> bytes:
    with claim(target) as part:
        measured = download(url, part, expected, "file", patience or Patience(timeout=5, sleep=lambda seconds: None))
        part.finish()
    assert measured.bytes == target.stat().st_size
    return target.read_bytes()


def test_whole_file(web, tmp_path):
    assert fetch(web.serve("/a", CONTENT), tmp_path / "deep" / "a") == CONTENT
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a"]
    assert web.gets()[0].headers["accept-encoding"] == "identity"


def test_git_blob_id_is_checked(web, tmp_path):
    url = web.serve("/a", CONTENT)
    assert fetch(url, tmp_path / "a", Expected(None, (GIT,))) == CONTENT
    with pytest.raises(WrongContent, match=f"expected git:{'0' * 40}, got {GIT}"):
        fetch(url, tmp_path / "b", Expected(None, ("git:" + "0" * 40,)))


def test_cut_transfers_are_continued_where_they_ended(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, cuts=[100_000, 50_000])
    assert fetch(url, tmp_path / "a", KNOWN, waits.patience()) == CONTENT
    assert web.ranges() == [None, "bytes=100000-", "bytes=150000-"]
    assert [asked.headers.get("if-range") for asked in web.gets()] == [None, '"one"', '"one"']
    # No byte travelled twice.
    assert sum(asked.sent for asked in web.gets()) == len(CONTENT)
    assert waits == [1, 2]


def test_cut_chunked_transfer_is_continued(web, tmp_path):
    url = web.serve("/a", CONTENT, cuts=[100_000], chunked=True)
    assert fetch(url, tmp_path / "a", Expected()) == CONTENT
    assert web.ranges() == [None, "bytes=100000-"]


def test_last_modified_serves_where_the_tag_is_weak(web, tmp_path):
    when = "Mon, 01 Jan 2024 00:00:00 GMT"
    url = web.serve("/a", CONTENT, cuts=[1000], etag='W/"weak"', modified=when)
    assert fetch(url, tmp_path / "a", Expected()) == CONTENT
    assert web.gets()[1].headers["if-range"] == when


def test_without_validator_and_checksum_nothing_is_continued(web, tmp_path):
    url = web.serve("/a", CONTENT, cuts=[1000], etag=None)
    assert fetch(url, tmp_path / "a", Expected()) == CONTENT
    assert web.ranges() == [None, None]


def test_without_validator_a_checksum_allows_to_continue(web, tmp_path):
    url = web.serve("/a", CONTENT, cuts=[1000], etag=None)
    assert fetch(url, tmp_path / "a", KNOWN) == CONTENT
    assert web.ranges() == [None, "bytes=1000-"]


def test_server_without_ranges_starts_over(web, tmp_path):
    url = web.serve("/a", CONTENT, cuts=[100_000], ranges=False)
    assert fetch(url, tmp_path / "a") == CONTENT
    assert [asked.sent for asked in web.gets()] == [100_000, len(CONTENT)]


def test_416_starts_over(web, tmp_path):
    url = web.serve("/a", CONTENT, cuts=[100_000], range_status=416)
    assert fetch(url, tmp_path / "a") == CONTENT
    assert web.ranges() == [None, "bytes=100000-", None]


@pytest.mark.parametrize("obeys", [True, False])
def test_file_that_changes_between_two_attempts_is_not_mixed(web, tmp_path, obeys):
    url = web.serve("/a", CONTENT, cuts=[100_000])
    with claim(tmp_path / "a") as part, pytest.raises(SourceError, match="cut after 100000 of 300000"):
        download(url, part, Expected(), "file", Patience(attempts=1))
    new = CONTENT[::-1]
    web.serve("/a", new, etag='"two"', obeys_if_range=obeys)
    assert fetch(url, tmp_path / "a", Expected()) == new


def test_bad_start_of_a_continued_file_costs_a_second_transfer(web, tmp_path):
    url = web.serve("/a", CONTENT, cuts=[100_000])
    with claim(tmp_path / "a") as part, pytest.raises(SourceError):
        download(url, part, KNOWN, "file", Patience(attempts=1))
    part_path(tmp_path / "a").write_bytes(b"x" * 100_000)
    assert fetch(url, tmp_path / "a") == CONTENT
    assert web.ranges() == [None, "bytes=100000-", None]


def test_complete_part_whose_process_died_is_only_verified(web, tmp_path):
    url = web.serve("/a", CONTENT)
    with claim(tmp_path / "a") as part:
        download(url, part, KNOWN, "file")
    assert part_path(tmp_path / "a").exists()
    assert fetch(url, tmp_path / "a") == CONTENT
    assert len(web.gets()) == 1


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
    ],
)
def test_wrong_lengths(web, tmp_path, waits, how, expected, message):
    with pytest.raises((SourceError, WrongContent), match=message):
        fetch(web.serve("/a", CONTENT, **how), tmp_path / "a", expected, waits.patience())
    assert not (tmp_path / "a").exists()


def test_close_delimited_file_with_known_length(web, tmp_path):
    assert fetch(web.serve("/a", CONTENT, close_delimited=True), tmp_path / "a", Expected(300_000)) == CONTENT


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_refusals_are_final(web, tmp_path, waits, status):
    url = web.serve("/a", CONTENT, statuses=[status])
    with pytest.raises(SourceError, match=f"HTTP {status}"):
        fetch(url, tmp_path / "a", KNOWN, waits.patience())
    assert len(web.gets()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_trouble_that_passes_is_waited_for(web, tmp_path, waits, status):
    url = web.serve("/a", CONTENT, statuses=[status, status, status])
    assert fetch(url, tmp_path / "a", KNOWN, waits.patience()) == CONTENT
    assert waits == [1, 2, 4]


def test_waits_grow_to_a_cap_and_end(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, statuses=[500] * 100)
    with pytest.raises(SourceError, match="HTTP 500 .*gave up after 6 attempts"):
        fetch(url, tmp_path / "a", KNOWN, waits.patience(attempts=6, longest_wait=5))
    assert waits == [1, 2, 4, 5, 5]


def test_server_says_how_long_to_wait(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, statuses=[503, 429], headers={"Retry-After": "7"})
    assert fetch(url, tmp_path / "a", KNOWN, waits.patience()) == CONTENT
    assert waits == [7, 7]


def test_progress_renews_the_attempts(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, cuts=[50_000] * 5)
    assert fetch(url, tmp_path / "a", KNOWN, waits.patience(attempts=2, real_progress=40_000)) == CONTENT
    assert waits == [1] * 5


def test_server_that_always_starts_over_and_cuts_is_given_up(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, cuts=[200_000] * 100, ranges=False)
    with pytest.raises(SourceError, match="cut after 200000"):
        fetch(url, tmp_path / "a", KNOWN, waits.patience(attempts=3, real_progress=1000))
    assert len(web.gets()) == 3


def test_slow_drip_is_cut_off_and_continued(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, drip=(100, 0.05), drips=1)
    assert fetch(url, tmp_path / "a", KNOWN, waits.patience(window=0.3, slowest=10_000)) == CONTENT
    first, second = web.gets()
    assert second.headers["range"].startswith("bytes=")
    assert second.sent < len(CONTENT)


def test_silence_times_out(web, tmp_path, waits):
    url = web.serve("/a", CONTENT, drip=(100, 30))
    with pytest.raises(SourceError, match="no answer in time"):
        fetch(url, tmp_path / "a", KNOWN, waits.patience(timeout=0.2, attempts=2))


def test_nobody_listens(tmp_path, waits):
    with pytest.raises(SourceError, match="refused"):
        fetch("http://127.0.0.1:9/a", tmp_path / "a", KNOWN, waits.patience())
    assert waits == [1, 2, 4, 8]


def test_redirections_are_followed_with_the_range(web, tmp_path):
    web.serve("/a", CONTENT, cuts=[1000])
    web.serve("/old", b"", redirect="/older")
    web.serve("/older", b"", redirect=web.url + "/a")
    assert fetch(web.url + "/old", tmp_path / "a") == CONTENT
    assert web.ranges("/a") == [None, "bytes=1000-"]


def test_redirection_loop(web, tmp_path, waits):
    web.serve("/a", b"", redirect="/b")
    web.serve("/b", b"", redirect="/a")
    with pytest.raises(SourceError, match="infinite loop"):
        fetch(web.url + "/a", tmp_path / "a", KNOWN, waits.patience())
    assert waits == []


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/a", "data:,x"])
def test_redirection_to_other_schemes_is_refused(web, tmp_path, target):
    with pytest.raises(SourceError, match="refused|not allowed"):
        fetch(web.serve("/a", b"", redirect=target), tmp_path / "a")


def test_redirection_from_https_to_http_is_refused():
    request = urllib.request.Request("https://example.org/a", headers={"Authorization": "secret"})
    with pytest.raises(SourceError, match="not https"):
        _Redirects().redirect_request(request, io.BytesIO(), 302, "Found", {}, "http://example.org/a")
    same = _Redirects().redirect_request(request, io.BytesIO(), 302, "Found", {}, "https://example.org/b")
    other = _Redirects().redirect_request(request, io.BytesIO(), 302, "Found", {}, "https://example.com/b")
    assert same.has_header("Authorization")
    assert not other.has_header("Authorization")


def test_web_page_instead_of_the_file(web, tmp_path):
    url = web.serve("/a", b"<html>please log in</html>", headers={"Content-Type": "text/html; charset=utf-8"})
    with pytest.raises(SourceError, match="web page"):
        fetch(url, tmp_path / "a.tsv", Expected())


def test_encoding_that_was_not_asked_for(web, tmp_path):
    url = web.serve("/a", CONTENT, headers={"Content-Encoding": "gzip"})
    with pytest.raises(SourceError, match="gzip-encoded"):
        fetch(url, tmp_path / "a.tsv")
    # Servers label .gz files so; there the bytes are the file.
    assert fetch(url, tmp_path / "a.tsv.gz") == CONTENT


def test_proxy_is_honoured(web, tmp_path, monkeypatch):
    web.serve("/data/a", CONTENT)
    monkeypatch.setenv("http_proxy", web.url)
    assert fetch("http://mirror.invalid/data/a", tmp_path / "a") == CONTENT
    assert web.gets()[0].headers[":target"] == "http://mirror.invalid/data/a"
    assert web.gets()[0].headers["host"] == "mirror.invalid"


def test_no_proxy_is_honoured(web, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert fetch(web.serve("/a", CONTENT), tmp_path / "a") == CONTENT


def test_full_disk_is_told_before_the_transfer(web, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000}))
    with pytest.raises(UserError, match=r"300.0 kB are needed, but only 1.0 kB are free"):
        fetch(web.serve("/a", CONTENT), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_folder(web, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot write"):
        fetch(web.serve("/a", CONTENT), tmp_path / "file" / "a")


def test_progress_is_rare_in_a_log_and_has_its_numbers():
    log = io.StringIO()
    now = [0.0]
    progress = Progress("file", 0, 2_000_000, log, lambda: now[0])
    for second in range(1, 21):
        now[0] = second
        progress.update(100_000 * second)
    progress.close()
    assert log.getvalue().splitlines() == ["file:  50 % of 2.0 MB, 0.1 MB/s", "file: 100 % of 2.0 MB, 0.1 MB/s"]


def test_progress_renews_its_line_on_a_terminal():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen, now = Terminal(), [0.0]
    progress = Progress("file", 500_000, None, screen, lambda: now[0])
    for tick in range(1, 11):
        now[0] = tick / 2
        progress.update(1_500_000)
    progress.close()
    assert screen.getvalue().count("\r") == 3
    assert "\n" not in screen.getvalue()
    assert "file: 1.5 MB, 0.5 MB/s" in screen.getvalue()


@pytest.mark.parametrize(("count", "text"), [(999, "999 B"), (1000, "1.0 kB"), (2.5e9, "2.5 GB"), (3e15, "3000.0 TB")])
def test_sizes(count, text):
    assert size(count) == text
