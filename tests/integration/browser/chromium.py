"""A headless Chromium for tests, driven by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/)."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import websocket

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
LIMIT = 120.0
"""Seconds for an answer, on a busy machine."""
_KEYS = {
    "Enter": 13,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Home": 36,
    "End": 35,
    "Tab": 9,
}


READY = "document.documentElement?.dataset.ready"
# Relative luminance and contrast as in WCAG 2.1; text on a background of its own or of an element around it.
CONTRAST = """
(() => {
  const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const part = c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = colour => colour.slice(0, 3).reduce((sum, c, i) => sum + part(c / 255) * [0.2126, 0.7152, 0.0722][i], 0);
  const back = node => {
    for (; node; node = node.parentElement) {
      const found = rgb(getComputedStyle(node).backgroundColor);
      if (found.length === 3 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  const bad = new Set();
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
    if (!text || !node.checkVisibility() || node.matches(":disabled, option")) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(back(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.add(`${node.tagName}.${node.className}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return [...bad];
})()
"""
"""Texts whose contrast is below 4.5, as WCAG 2.1 has it for AA."""


class Browser:
    """One page. `console` has what scripts logged, and exceptions; `requests` the URLs that were asked for."""

    def __init__(self, home: Path) -> None:
        if PROGRAM is None:
            raise RuntimeError("there is no chromium")
        # No network, no sandbox of its own: tests may run as root.
        self._process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
             "--remote-debugging-port=0", "--remote-allow-origins=*", f"--user-data-dir={home}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + LIMIT
        port = home / "DevToolsActivePort"
        while not (port.exists() and port.read_text().count("\n") >= 1):
            if self._process.poll() is not None or time.monotonic() > end:
                self.close()
                raise RuntimeError("chromium does not start")
            time.sleep(0.1)
        number, path = port.read_text().splitlines()[:2]
        self._socket = websocket.create_connection(f"ws://127.0.0.1:{number}{path}", timeout=LIMIT)
        self._number = 0
        self._session: str | None = None
        self.console: list[str] = []
        self.requests: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False, ready: str = READY) -> None:
        """Load a page, and wait until the expression `ready` is true: its script reports so (`data-ready` of the root element)."""
        self.console.clear()
        self.requests.clear()
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Page.navigate", url=url)
        self.wait(ready)

    def wait(self, expression: str) -> Any:
        """Return the value of an expression once it is true."""
        end = time.monotonic() + LIMIT
        while not (found := self.run(expression)):
            if time.monotonic() > end:
                raise AssertionError(f"{expression} is never true: {self.console}")
            time.sleep(0.05)
        return found

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        done = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{expression}: {json.dumps(done['exceptionDetails'])[:2000]}")
        return done["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"windowsVirtualKeyCode": _KEYS[key]} if key in _KEYS else {}
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {}), **code)

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Write a PNG of the page."""
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        self._socket.send(json.dumps({**message, **({"sessionId": self._session} if self._session else {})}))
        while True:
            got = json.loads(self._socket.recv())
            if got.get("id") == self._number:
                if "error" in got:
                    raise AssertionError(f"{method}: {got['error']}")
                return got["result"]
            self._take(got.get("method", ""), got.get("params", {}))

    def _take(self, method: str, params: dict[str, Any]) -> None:
        if method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(json.dumps(params["exceptionDetails"])[:2000])
        elif method == "Log.entryAdded":
            self.console.append(f"{params['entry']['level']}: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
