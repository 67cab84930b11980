"""The bar on a terminal, the lines in a log, and that neither changes the loop."""

import io
import logging
import time

import pytest

from crossalign.runtime import meter as meters
from crossalign.runtime.meter import meter, metered


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr(meters.time, "monotonic", lambda: now[0])
    return now


def test_a_log_has_a_line_each_minute(clock, caplog):
    caplog.set_level(logging.INFO)
    with meter(100, "sentences", done=20) as tell:
        for number, second in ((25, 30), (40, 61), (41, 90), (60, 122)):
            clock[0] = second
            tell(number)
    assert caplog.messages == ["40 of 100 sentences, about 4 min left", "60 of 100 sentences, about 3 min left"]


def test_a_terminal_has_a_bar_and_log_lines_stay_whole(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    handler = logging.StreamHandler(terminal)
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [handler])
    for step in metered(range(2, 6)):
        time.sleep(0.12)
        if step == 4:
            logging.getLogger("x").warning("dev score 3")
    text = terminal.getvalue()
    assert "2/6 [" in text and "5/6 [" in text and " steps/s]" in text
    assert any(line.strip("\r ").endswith("dev score 3") for line in text.split("\n"))
    # Left as it was found.
    assert root.handlers == [handler]


def test_a_short_loop_says_nothing(caplog, capsys):
    caplog.set_level(logging.INFO)
    assert list(metered(range(3, 8))) == [3, 4, 5, 6, 7]
    assert not caplog.messages and capsys.readouterr().err == ""


def test_a_loop_that_ends_early_takes_the_bar_away(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    handlers = list(logging.getLogger().handlers)
    with pytest.raises(ValueError, match="stop"):
        for _ in metered(range(9)):
            raise ValueError("stop")
    assert logging.getLogger().handlers == handlers
    assert "\n" not in terminal.getvalue()
