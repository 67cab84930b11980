"""Drive Chromium without a driver: the DevTools protocol over a pair of pipes, messages ended by a zero byte."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Chromium expects its ends of the pipes as files 3 and 4; only a program that is about to become it can see to that.
LAUNCH = (
    "import fcntl, os, sys; ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 20) for end in sys.argv[1:3]]; "
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4); os.execvp(sys.argv[3], sys.argv[3:])"
)
FLAGS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--hide-scrollbars"),
)


def find_browser() -> str | None:
    """The browser: CROSSALIGN_BROWSER names one, otherwise Chromium or Chrome on the PATH."""
    return os.environ.get("CROSSALIGN_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A running Chromium; a context manager that ends it."""

    def __init__(self, program: str, patience: float = 60.0) -> None:
        self.patience = patience
        self.number = 0
        self.rest = b""
        self.events: list[dict] = []
        self.profile = tempfile.TemporaryDirectory(prefix="crossalign-browser-", ignore_cleanup_errors=True)
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        command = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), program, *FLAGS]
        command += [f"--user-data-dir={self.profile.name}", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, pass_fds=(theirs_in, theirs_out), **quiet)
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *problem: object) -> None:
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        os.close(self.to)
        os.close(self.back)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def receive(self, until: float) -> dict:
        """The next message."""
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.back], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self.back, 1 << 20) if ready else b""
            if not piece:
                raise TimeoutError("the browser did not answer" if not ready else "the browser ended")
            self.rest += piece
        message, _, self.rest = self.rest.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, params: dict | None = None, session: str | None = None) -> dict:
        """Call a method of the protocol; events that arrive meanwhile are kept."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self.patience
        while (answer := self.receive(until)).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def page(self, path: Path, width: int = 1200, height: int = 900, scheme: str = "light") -> "Page":
        """A new tab of this many pixels, in which a file is open."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        tab = Page(self, self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        tab.call("Emulation.setDeviceMetricsOverride", **screen)
        tab.scheme(scheme)
        tab.open(path)
        return tab


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict:
        return self.browser.call(method, params, self.session)

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.browser.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def run(self, script: str) -> Any:
        """The value of an expression, waited for where it is a promise; `$` finds an element, `$$` all of them."""
        short = "const $ = (s) => document.querySelector(s), $$ = (s) => [...document.querySelectorAll(s)];"
        wrapped = f"(() => {{ {short} return ({script}); }})()"
        answer = self.call("Runtime.evaluate", expression=wrapped, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = 20.0) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + seconds
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {script}")
            time.sleep(0.03)

    def text(self, selector: str) -> str:
        return self.run(f"$('{selector}').textContent")

    def count(self, selector: str) -> int:
        return self.run(f"$$('{selector}').length")

    def shown(self, selector: str) -> int:
        """How many elements can be seen."""
        return self.run(f"$$('{selector}').filter((node) => node.checkVisibility()).length")

    def click(self, selector: str) -> None:
        """Click all of them."""
        self.run(f"$$('{selector}').forEach((node) => node.click())")

    def choose(self, field: str, value: str) -> None:
        """Give a field a value as a person would."""
        self.run(f"Object.assign($('#{field}'), {{ value: '{value}' }})")
        for event in ("input", "change"):
            self.run(f"$('#{field}').dispatchEvent(new Event('{event}', {{ bubbles: true }}))")

    def unfold(self, view: str = "both") -> None:
        """Lay out all items, also those out of sight, open all folds, and show the numbers of a view."""
        self.run("$$('article').forEach((item) => (item.style.contentVisibility = 'visible'))")
        self.run("$$('details').forEach((fold) => (fold.open = true))")
        self.click(f"[data-view={view}]")

    def problems(self) -> list[str]:
        """What the console, the log and failed scripts told since the page was opened."""
        told = []
        for event in self.browser.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    told.append(str(params["exceptionDetails"]))
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning"):
                    told.append(str(params["args"]))
                case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                    told.append(str(params["entry"]))
        return told

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        sent = (event for event in self.browser.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def scheme(self, name: str) -> None:
        """The system's preference: light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def press(self, key: str, code: int = 0) -> None:
        """Press a key, such as Tab or ArrowRight."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def move(self, x: float, y: float) -> None:
        """Move the mouse."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path: Path) -> None:
        """What is seen, as PNG; for people who change the page."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
