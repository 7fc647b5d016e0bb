"""A headless Chromium driven over its DevTools protocol: pages, keys, scripts. One browser, a profile of its own for each page."""
import base64
import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

connect = pytest.importorskip("websockets.sync.client", reason="needs PyPI websockets").connect
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def die_with_parent():
    """Tests that run too long are killed, and must leave no browser behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Page:
    """What is awaited is polled for; errors of the page's scripts are collected in .errors."""

    def __init__(self, browser, context, session):
        self.browser, self.context, self.session, self.errors = browser, context, session, []

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def js(self, expression):
        r = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in r:
            raise AssertionError(f"{expression}: {r['exceptionDetails'].get('exception', {}).get('description', r)}")
        return r["result"].get("value")

    def wait(self, expression, seconds=15):
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(AssertionError):  # a page between two documents
                if self.js(f"Boolean({expression})"):
                    return
            if time.monotonic() > end:
                shown = self.js("document.body.innerText")[-2000:]
                raise AssertionError(f"waited {seconds} s for {expression}; the page shows: {shown!r} {self.errors}")
            time.sleep(0.02)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait(f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'")

    def reload(self):
        self.js("window.before = true")
        self.call("Page.reload")
        self.wait("!window.before && document.readyState === 'complete'")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, name, code, shift=False):
        text = "\r" if name == "Enter" else ""
        common = {"key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def phone(self):
        self.call("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=2, mobile=True)
        self.call("Emulation.setTouchEmulationEnabled", enabled=True)

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)


class Browser:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="quarry-chromium-", ignore_cleanup_errors=True)
        home = pathlib.Path(self.folder.name)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        # Root in a container: no sandbox, and a small /dev/shm.
        self.process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--lang=en-US", f"--user-data-dir={home}/profile",
             "--remote-debugging-port=0", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env,
            start_new_session=True, preexec_fn=die_with_parent)
        port = home / "profile/DevToolsActivePort"
        end = time.monotonic() + 30
        while not (port.exists() and port.read_text().count("\n")):
            assert time.monotonic() < end and self.process.poll() is None, "chromium did not start"
            time.sleep(0.05)
        number, path = port.read_text().split("\n")[:2]
        self.open = contextlib.ExitStack()
        self.socket = self.open.enter_context(connect(f"ws://127.0.0.1:{number}{path}", max_size=None, proxy=None))
        self.ids, self.pages = itertools.count(1), {}

    def call(self, method, session=None, **params):
        wanted = next(self.ids)
        self.socket.send(json.dumps({"id": wanted, "method": method, "params": params, **({"sessionId": session} if session else {})}))
        while True:
            got = json.loads(self.socket.recv(timeout=60))
            if got.get("id") == wanted:
                assert "error" not in got, f"{method}: {got['error']}"
                return got["result"]
            self.on_event(got)

    def on_event(self, event):
        page, p = self.pages.get(event.get("sessionId")), event.get("params", {})
        if page and event["method"] == "Runtime.exceptionThrown":
            page.errors.append(p["exceptionDetails"])
        elif page and event["method"] == "Log.entryAdded" and p["entry"]["source"] in ("security", "javascript"):
            page.errors.append(p["entry"]["text"])

    def page(self):
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context, width=1100, height=800)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, context, session)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        # A page in the background gets no key presses and draws no frames.
        page.call("Emulation.setFocusEmulationEnabled", enabled=True)
        return page

    def close(self):
        with contextlib.suppress(Exception):
            self.call("Browser.close")
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.open.close()
        self.folder.cleanup()
