"""Drives a headless Chromium over its debugging pipe: a real browser for the page's tests without another package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BINARY = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60
"""Seconds until a browser that does not answer counts as broken."""


class Browser:
    """One page in one browser. Commands are those of the DevTools protocol."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = requests, answers
        self._buffer = b""
        self._last = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._requests, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._answers], [], [], PATIENCE)[0]:
                raise TimeoutError(f"Chromium said nothing for {PATIENCE} s")
            data = os.read(self._answers, 1 << 16)
            if not data:
                raise RuntimeError("Chromium has ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(line)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, url: str) -> None:
        """Load a page and wait until it is loaded."""
        start = len(self.events)
        self.call("Page.navigate", url=url)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events[start:]):
            self._receive()

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression in the page; raises RuntimeError with the text of an exception."""
        result = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"].get("exception", {}).get("description", str(result)))
        return result["result"].get("value")

    def view(self, width: int, height: int = 900, *, dark: bool = False, media: str = "") -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def key(self, key: str) -> None:
        """Press and release one key; printable ones also type their character."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Tab": 9, "Escape": 27}.get(key, 0)
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def requested(self) -> list[str]:
        """URLs that were asked for since the browser started."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Uncaught exceptions and console errors, policy violations among them."""
        found = [
            str(event["params"]["exceptionDetails"])
            for event in self.events
            if event["method"] == "Runtime.exceptionThrown"
        ]
        entries = [event["params"]["entry"] for event in self.events if event["method"] == "Log.entryAdded"]
        return found + [entry["text"] for entry in entries if entry["level"] in {"warning", "error"}]


@contextmanager
def chromium(profile: Path) -> Iterator[Browser]:
    """A browser with a throw-away profile directory."""
    if BINARY is None:
        raise FileNotFoundError("chromium")
    requests_read, requests_write = os.pipe()
    answers_read, answers_write = os.pipe()
    # Chromium reads commands from descriptor 3 and answers on 4. A shell moves them there, which spares a preexec_fn
    # (unsafe with threads); first to high numbers, so that one move cannot overwrite the other.
    wrapper = f'exec 8<&{requests_read} 9>&{answers_write} && exec "$@" 3<&8 4>&9 8<&- 9>&-'
    process = subprocess.Popen(
        [
            "bash", "-c", wrapper, "chromium", BINARY,
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
            f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
        ],
        pass_fds=(requests_read, answers_write),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(requests_read)
    os.close(answers_write)
    try:
        yield Browser(requests_write, answers_read)
    finally:
        os.close(requests_write)  # the end of the pipe is the end of the browser
        try:
            process.wait(timeout=PATIENCE)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            os.close(answers_read)
