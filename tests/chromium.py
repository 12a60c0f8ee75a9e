"""A real browser for tests: headless Chromium by its own protocol over two pipes, JSON messages that end in NUL.

`Browser.open` gives a page of a file; the page evaluates expressions, tells what its console said and what it asked the
network for, takes a picture, and is as wide as it is told.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 60
"""Seconds for one answer."""
_START = """\
import fcntl, os, sys
down, up = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(down, 3)
os.dup2(up, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str | None:
    """The path of the browser; None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One process, ended with its profile when the context is left."""

    def __enter__(self) -> Self:
        path = chromium()
        assert path is not None
        self._profile = tempfile.mkdtemp(prefix="bncli-chromium-")
        down, self._down = os.pipe()
        self._up, up = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        flags += ["--no-first-run", "--disable-background-networking", f"--user-data-dir={self._profile}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(down), str(up), path, *flags],
            pass_fds=(down, up),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(down)
        os.close(up)
        self._numbers = itertools.count(1)
        self._pending = b""
        self._events: list[dict[str, Any]] = []
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._down)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        os.close(self._up)
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, file: Path, *, width: int = 1300, height: int = 900, dark: bool = False) -> PageOfFile:
        """A page of this file, loaded whole, in a window of this many pixels."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = PageOfFile(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        page.colour("dark" if dark else "light")
        page.call("Page.navigate", {"url": file.resolve().as_uri()})
        page.wait_for("document.readyState === 'complete'")
        return page

    def call(self, method: str, params: dict[str, Any] | None = None, session: str | None = None) -> dict[str, Any]:
        """Sends a command and waits for its answer; events that come in between are kept."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = session
        _write_whole(self._down, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                found: dict[str, Any] = answer["result"]
                return found
            self._events.append(answer)
        raise TimeoutError(method)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            block = os.read(self._up, 1 << 20)
            assert block, "the browser has ended"
            self._pending += block
        text, self._pending = self._pending.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        return message

    def events(self, session: str) -> list[dict[str, Any]]:
        """What a page told so far, unasked."""
        return [event for event in self._events if event.get("sessionId") == session]


def _write_whole(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


class PageOfFile:
    """A page in the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session

    def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self._browser.call(method, params, self._session)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, as JSON."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        end = time.monotonic() + _PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.02)

    def resize(self, width: int, height: int = 900) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", metrics)

    def colour(self, scheme: str) -> None:
        """As a reader has it who prefers `dark` or `light`."""
        self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def press(self, key: str) -> None:
        """A key of the keyboard, by its name."""
        for kind in ("keyDown", "keyUp"):
            codes = {"Tab": 9, "ArrowRight": 39, "ArrowDown": 40, "Enter": 13}
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            what = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": codes[key], **text}
            self.call("Input.dispatchKeyEvent", what)

    def complaints(self) -> list[str]:
        """Everything that the console said, and every exception."""
        self.evaluate("1")
        found = []
        for event in self._browser.events(self._session):
            if event["method"] == "Runtime.exceptionThrown":
                found.append(json.dumps(event["params"]["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded":
                found.append(str(event["params"]["entry"]["text"]))
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(json.dumps(event["params"]["args"]))
        return found

    def requests(self) -> list[str]:
        """Every address that was asked for, that of the page itself among them."""
        events = self._browser.events(self._session)
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def picture(self, top: int = 0, height: int | None = None) -> bytes:
        """PNG of the page, from `top` on, of so many pixels."""
        whole = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": top, "width": whole["width"], "height": height or whole["height"] - top, "scale": 1}
        answer = self.call("Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True})
        return base64.b64decode(answer["data"])
