"""A page in headless Chromium, by its DevTools protocol over two pipes: nothing but Chromium itself is needed."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

def runs(path):
    """Whether it is a browser: Ubuntu's chromium-browser is a script that asks for a snap."""
    try:
        return subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


PROGRAM = next((path for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
                if (path := shutil.which(name)) and runs(path)), None)


class Browser:
    def __init__(self):
        self._profile = tempfile.TemporaryDirectory(prefix="shardscope-chromium-")
        to_read, to_write, from_read, from_write = [*os.pipe(), *os.pipe()]
        # The protocol's pipes are descriptors 3 and 4 there.
        def pipes():
            os.dup2(to_read, 13), os.dup2(from_write, 14)
            os.dup2(13, 3), os.dup2(14, 4)
        self._process = subprocess.Popen(
            [PROGRAM, "--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-component-update", "--disable-background-networking", "--hide-scrollbars",
             f"--user-data-dir={self._profile.name}"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self._profile.name})
        os.close(to_read), os.close(from_write)
        self._out, self._in, self._rest, self._next = to_write, from_read, b"", 0
        self.events = []
        target = self._call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = self._call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        try:
            self._call("Browser.close", {})
            self._process.wait(timeout=20)
        except (AssertionError, OSError, TimeoutError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._out), os.close(self._in)
        self._profile.cleanup()

    def _message(self, seconds):
        deadline = time.monotonic() + seconds
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError(f"Chromium said nothing for {seconds} s")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise AssertionError(f"Chromium ended with {self._process.wait()}")
            self._rest += part
        one, self._rest = self._rest.split(b"\0", 1)
        return json.loads(one)

    def _call(self, method, parameters, session=None, seconds=60):
        self._next += 1
        number = self._next
        os.write(self._out, json.dumps({"id": number, "method": method, "params": parameters,
                                        **({"sessionId": session} if session else {})}).encode() + b"\0")
        while True:
            message = self._message(seconds)
            if message.get("id") == number:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def call(self, method, **parameters):
        return self._call(method, parameters, self._session)

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def open(self, path, width, height, scheme):
        """At a width in CSS pixels; as a phone's below 600."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if width < 600 else 1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message(60))
        # What is drawn after loading has been drawn in the second frame after it.
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" and len(key) == 1 else "")
        self.value("new Promise(done => requestAnimationFrame(() => done(1)))")

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events if event.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """What the page threw, and what its console or Chromium has against it."""
        out = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                out.append(event["params"]["exceptionDetails"])
            if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] in ("error", "warning"):
                out.append(event["params"]["entry"])
            if event.get("method") == "Runtime.consoleAPICalled" and event["params"]["type"] in ("error", "warning", "assert"):
                out.append(event["params"])
        return out

    def printed(self):
        """The page as a PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def picture(self):
        """PNG of the whole page, in base64."""
        return self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
