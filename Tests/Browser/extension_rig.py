"""Common code of the extension's tests: the host as run by a browser, pages to send, Chromium and Firefox."""

import base64
import http.server
import json
import os
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "Faults"))
import rig

EXTENSION = os.path.realpath(os.path.join(HERE, "..", "..", "Browser"))
with open(os.path.join(EXTENSION, "manifest.json")) as file:
    MANIFEST = json.load(file)
CHROMIUM_ID = "pamclaachjdhfkjccgmdmcncljffaodl"
FIREFOX_ID = MANIFEST["browser_specific_settings"]["gecko"]["id"]
ORIGIN = f"chrome-extension://{CHROMIUM_ID}/"
# Firefox chooses a different one for each installation; the preference extensions.webextensions.uuids fixes it.
FIREFOX_UUID = "6f1a3c52-7b0e-4a58-9d3f-1c2b3a4d5e6f"


def need_chromium(folder):
    if not shutil.which("chromium"):
        raise rig.Unavailable("chromium is not installed")
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        raise rig.Unavailable("playwright is not there (pip install playwright==1.64.1)")


def need_firefox(folder):
    if not shutil.which("firefox-esr"):
        raise rig.Unavailable("firefox-esr is not installed")
    try:
        import marionette_driver  # noqa: F401
    except ImportError:
        raise rig.Unavailable("marionette_driver is not there (pip install marionette-driver==3.7.1)")


def install(daemon, *flags):
    done = daemon.hexlist("browser", "--install", *flags, "--json")
    if done.returncode != 0:
        raise rig.Failure(f"browser --install: {done.stderr}")
    return json.loads(done.stdout)["written"]


class Host:
    """`hexlist browser` as run by a browser."""

    def __init__(self, daemon, callers=(ORIGIN,)):
        self.process = subprocess.Popen([os.path.join(rig.BIN, "hexlist"), "browser", "--", *callers], env=daemon.environment(),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=rig.die_with_parent)
        self.last, self.read, self.events = 0, b"", []

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.write(struct.pack("=I", len(body)) + body)

    def receive(self):
        """The next message and its bytes; None at the end."""
        end = time.monotonic() + rig.STALL_LIMIT
        while True:
            if len(self.read) >= 4:
                length = struct.unpack("=I", self.read[:4])[0]
                if length > 512 << 10:
                    raise rig.Failure(f"a message of {length} bytes")
                if len(self.read) >= 4 + length:
                    body, self.read = self.read[4:4 + length], self.read[4 + length:]
                    return json.loads(body)
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise rig.Failure("the host says nothing")
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self.read += data

    def answer(self, number=None):
        """The reply to a request; messages received meanwhile are added to `events`."""
        while True:
            message = self.receive()
            if message is None:
                raise rig.Failure("the host ended")
            if "event" in message:
                self.events.append(message)
            elif message.get("id") == number:
                return message

    def ask(self, operation, **members):
        self.last += 1
        self.send(dict(members, id=self.last, operation=operation))
        return self.answer(self.last)

    def ok(self, operation, **members):
        message = self.ask(operation, **members)
        if "reply" not in message:
            raise rig.Failure(f"{operation}: {message}")
        return message["reply"]

    def until_event(self, holds, what):
        while True:
            for message in self.events:
                if holds(message):
                    self.events.remove(message)
                    return message
            message = self.receive()
            if message is None:
                raise rig.Failure(f"the host ended before {what}")
            if "event" in message:
                self.events.append(message)

    def end(self):
        """Closes the host's input. Returns its exit status."""
        self.process.stdin.close()
        status = self.process.wait(rig.STALL_LIMIT)
        self.process.stdout.close()
        return status


class Pages:
    """A web server at one of this host's addresses: `/NAME` is a page of that title with links and an image."""

    def __init__(self, address):
        self.address = address

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                name = re.sub(r"[^a-z0-9-]", "", self.path)
                body = (f"<!doctype html><meta charset=utf-8><title>Page {name}</title><h1>{name}</h1><p id=links>Read <a href=/one>the first</a>, "
                        f"<a href=/two>the second</a> and <a href='javascript:1'>no third</a>.</p><img id=image src=/dot.svg width=40 height=40>")
                is_image = self.path.endswith(".svg")
                if is_image:
                    body = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><rect width='9' height='9'/></svg>"
                self.send_response(200)
                self.send_header("content-type", "image/svg+xml" if is_image else "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, name):
        return f"http://{self.address}:{self.port}/{name}"


def copy_of_the_extension(folder, *permissions, hosts=()):
    """The extension with permissions granted that a user would grant by a click, because a program cannot answer the browser's prompt."""
    place = os.path.join(folder, "extension")
    shutil.copytree(EXTENSION, place)
    manifest = dict(MANIFEST)
    manifest["permissions"] = manifest["permissions"] + list(permissions)
    manifest["host_permissions"] = list(hosts)
    manifest["optional_permissions"] = [one for one in manifest["optional_permissions"] if one not in permissions]
    with open(os.path.join(place, "manifest.json"), "w") as file:
        json.dump(manifest, file)
    return place


def newest(daemon):
    """The newest hex of a daemon's inbox, with links and inner hexes."""
    items = daemon.api("GET", "/v1/hexes?limit=1")["items"]
    return daemon.api("GET", f"/v1/hexes/{items[0]['id']}") if items else None


def urls(hex):
    return [link["url"] for link in hex["links"]] + [url for child in hex.get("children", []) for url in urls(child)]


def await_hex(daemon, holds, what):
    def look():
        hex = newest(daemon)
        return hex if hex and holds(hex) else None
    return rig.until(look, what)


class Popup:
    """The extension's popup in any form: `js` evaluates an expression in it, `click` is a user's click."""

    def find(self, selector):
        return f"document.querySelector({json.dumps(selector)})"

    def text(self, selector):
        return self.js(f"{self.find(selector)}.textContent.trim()")

    def shows(self, selector, text, limit=40):
        """Waits until an element has a text."""
        seen = [""]

        def look():
            seen[0] = self.js(f"{self.find(selector)}?.textContent ?? ''")
            return seen[0] if text in seen[0] else None
        try:
            return rig.until(look, text, limit, 0.05)
        except rig.Failure:
            raise rig.Failure(f"{selector} shows {seen[0]!r} and not {text!r}; all: {self.js('document.body.innerText')}")

    def until(self, expression, what):
        return rig.until(lambda: self.js(expression), what, 40, 0.05)

    def choose(self, what=None, to=(), note=None):
        if what:
            self.click(f"input[name=what][value={what}]")
        for peer in to:
            self.until(f"{self.find(f'input[name=to][value={json.dumps(peer)}]')} !== null", f"{peer} among those to send to")
            if not self.js(f"{self.find(f'input[name=to][value={json.dumps(peer)}]')}.checked"):
                self.click(f"input[name=to][value={json.dumps(peer)}]")
        if note is not None:
            self.js(f"{{ const note = {self.find('#note')}; note.value = {json.dumps(note)}; }} true")

    def send(self, what=None, to=(), note=None, expects="delivered"):
        self.choose(what, to, note)
        self.click("#submit")
        return self.shows("#outcome", expects)


class PagePopup(Popup):
    """The popup's page in a tab of Chromium."""

    def __init__(self, page):
        self.page = page

    def js(self, expression):
        return self.page.evaluate(expression)

    def click(self, selector):
        self.page.click(selector)

    def close(self):
        self.page.close()


class RealPopup(Popup):
    """The popup at Chromium's toolbar button. Playwright does not treat it as a page, so it is used through the protocol."""

    def __init__(self, browser, page):
        self.session = browser.context.new_cdp_session(page)
        self.page, self.last, self.answers = page, 0, {}
        self.session.on("Target.receivedMessageFromTarget", self.received)

        def look():
            found = [one for one in self.session.send("Target.getTargets")["targetInfos"] if one["url"] == browser.address()]
            return found[0]["targetId"] if found else None
        self.target = rig.until(look, "the popup")
        self.target_session = self.session.send("Target.attachToTarget", {"targetId": self.target, "flatten": False})["sessionId"]
        self.until("document.readyState === 'complete'", "the popup")

    def received(self, event):
        message = json.loads(event["message"])
        if "id" in message:
            self.answers[message["id"]] = message

    def call(self, method, **parameters):
        self.last += 1
        number = self.last
        self.session.send("Target.sendMessageToTarget", {
            "sessionId": self.target_session, "message": json.dumps({"id": number, "method": method, "params": parameters})})
        end = time.monotonic() + rig.STALL_LIMIT
        while number not in self.answers:
            if time.monotonic() > end:
                raise rig.Failure("the popup does not answer")
            self.page.wait_for_timeout(10)
        return self.answers.pop(number)["result"]

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, userGesture=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise rig.Failure(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def click(self, selector):
        self.until(f"{self.find(selector)} !== null", selector)
        self.js(f"{self.find(selector)}.click()")

    def close(self):
        self.session.send("Target.closeTarget", {"targetId": self.target})


class Chromium:
    """Debian's Chromium with the extension, for the user of a daemon, on its host."""

    name = "Chromium"

    def __init__(self, playwright, daemon, extension=EXTENSION, installs=True):
        if installs:
            install(daemon, "--chromium")
        self.daemon = daemon
        program = os.path.join(daemon.folder, "chromium-there")
        with open(program, "w", opener=lambda path, flags: os.open(path, flags, 0o700)) as file:
            file.write(f"#!/bin/sh\nexec {shlex.join([*daemon.entered, shutil.which('chromium')])} \"$@\"\n")
        self.context = playwright.chromium.launch_persistent_context(
            os.path.join(daemon.folder, "chromium"), executable_path=program, headless=False,
            env=daemon.environment(), no_viewport=True,
            args=["--headless=new", "--no-sandbox", "--window-size=1000,1000", "--screen-info={1600x1200}", f"--disable-extensions-except={extension}", f"--load-extension={extension}"])
        if not self.context.service_workers:
            self.context.wait_for_event("serviceworker", timeout=30_000)
        # The worker starts before its functions are defined.
        rig.until(lambda: self.worker_js("typeof chrome.contextMenus") == "object", "the worker")

    @property
    def worker(self):
        return self.context.service_workers[-1]

    def worker_js(self, expression):
        return self.worker.evaluate(expression)

    def address(self, name="popup.html"):
        return f"{ORIGIN}{name}"

    def visit(self, url):
        page = self.context.new_page()
        page.goto(url)
        return page

    def popup(self):
        page = self.visit(self.address())
        page.set_viewport_size({"width": 360, "height": 640})
        return PagePopup(page)

    def real_popup(self, page):
        page.bring_to_front()
        self.worker_js("chrome.action.openPopup()")
        return RealPopup(self, page)

    def menu(self, page, item, **info):
        """Chooses an entry of the menu. Chromium's menu needs a screen, so the extension's click handler is called directly."""
        page.bring_to_front()
        self.worker_js("(async () => { const [tab] = await chrome.tabs.query({ active: true, lastFocusedWindow: true }); "
                       f"chrome.contextMenus.onClicked.dispatch({json.dumps(dict(info, menuItemId=item, pageUrl=page.url))}, tab); }})()")
        return RealPopup(self, page)

    def badge(self):
        return self.worker_js("chrome.action.getBadgeText({})")

    def tabs(self):
        return self.worker_js("chrome.tabs.query({})")

    def groups(self):
        return {group["id"]: group["title"] for group in self.worker_js("chrome.tabGroups.query({})")}

    def stop_worker(self):
        page = self.visit(self.address("icons/16.png"))
        session = self.context.new_cdp_session(page)
        states = []
        session.on("ServiceWorker.workerVersionUpdated", lambda event: states.extend(one["runningStatus"] for one in event["versions"]))
        session.send("ServiceWorker.enable")
        session.send("ServiceWorker.stopAllWorkers")
        end = time.monotonic() + 20
        while "stopped" not in states and time.monotonic() < end:
            page.wait_for_timeout(50)
        page.close()
        if "stopped" not in states:
            raise rig.Failure(f"the worker does not stop: {states}")

    def close(self):
        self.context.close()


class TabPopup(Popup):
    """The popup's page in a tab of Firefox."""

    def __init__(self, browser):
        self.browser = browser
        self.handle = browser.visit(browser.address())

    def js(self, expression):
        self.browser.driver.switch_to_window(self.handle, focus=False)
        script = expression.removesuffix("true") + "return true;" if expression.startswith("{ ") else f"return ({expression});"
        return self.browser.driver.execute_script(script)

    def click(self, selector):
        self.until(f"{self.find(selector)} !== null", selector)
        # Activating a tab makes it the only highlighted one.
        self.browser.driver.switch_to_window(self.handle, focus=not self.js("document.hasFocus()"))
        self.browser.driver.find_element("css selector", selector).click()

    def close(self):
        self.browser.driver.switch_to_window(self.handle)
        self.browser.driver.close()
        self.browser.driver.switch_to_window(self.browser.driver.window_handles[0])


class Firefox:
    """Debian's Firefox with the extension, for the user of a daemon; on this process's host, because Marionette listens on its loopback."""

    name = "Firefox"

    def __init__(self, daemon, extension=EXTENSION, installs=True):
        from marionette_driver.addons import Addons
        from marionette_driver.marionette import Marionette
        if installs:
            install(daemon, "--firefox")
        self.daemon = daemon
        profile = os.path.join(daemon.folder, "firefox")
        os.makedirs(profile, exist_ok=True)
        port = rig.free_port()
        preferences = {
            "marionette.port": port, "extensions.webextensions.uuids": json.dumps({FIREFOX_ID: FIREFOX_UUID}),
            "extensions.webextOptionalPermissionPrompts": False, "browser.shell.checkDefaultBrowser": False,
            "datareporting.policy.dataSubmissionEnabled": False, "app.update.enabled": False, "browser.startup.page": 0,
            "browser.tabs.groups.enabled": True, "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
        }
        with open(os.path.join(profile, "user.js"), "w") as file:
            file.write("".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items()))
        self.process = subprocess.Popen(
            [shutil.which("firefox-esr"), "--headless", "--marionette", "-remote-allow-system-access", "--no-remote", "--profile", profile], env=daemon.environment(),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=rig.die_with_parent)
        self.driver = Marionette(host="127.0.0.1", port=port)
        self.driver.raise_for_port(timeout=60)
        self.driver.start_session()
        self.driver.timeout.page_load = 60
        Addons(self.driver).install(extension, temp=True)

    def chrome(self, script, *arguments):
        with self.driver.using_context("chrome"):
            return self.driver.execute_async_script(
                "const [...all] = arguments; const done = all.pop(); (async (...args) => {" + script + "})(...all).then(done, (e) => done('failed: ' + e))",
                script_args=arguments)

    def address(self, name="popup.html"):
        return f"moz-extension://{FIREFOX_UUID}/{name}"

    def visit(self, url):
        handle = self.driver.open(type="tab", focus=True)["handle"]
        self.driver.switch_to_window(handle)
        self.driver.navigate(url)
        return handle

    def popup(self):
        return TabPopup(self)

    def menu(self, handle, item, selector=None, label=None):
        """Chooses an entry of the page's menu, as a user does."""
        from marionette_driver.marionette import ActionSequence
        self.driver.switch_to_window(handle)
        target = self.driver.find_element("css selector", selector or "h1")
        actions = ActionSequence(self.driver, "pointer", "mouse", {"pointerType": "mouse"})
        actions.pointer_move(0, 0, origin=target).pointer_down(button=2).pointer_up(button=2).perform()
        result = self.chrome("""
            const [label] = args;
            const menu = document.getElementById("contentAreaContextMenu");
            for (let i = 0; i < 200 && menu.state !== "open"; i++) await new Promise((r) => setTimeout(r, 50));
            const labels = [];
            const search = async (popup) => {
              for (const item of popup.children) {
                if (item.hidden) continue;
                labels.push(item.label);
                if (item.label === label) { (item.parentNode ?? popup).activateItem(item); return true; }
                if (item.localName === "menu" && item.label === "Hexlist") {
                  item.openMenu(true);
                  for (let i = 0; i < 200 && item.menupopup.state !== "open"; i++) await new Promise((r) => setTimeout(r, 50));
                  if (await search(item.menupopup)) return true;
                }
              }
              return false;
            };
            const found = await search(menu);
            if (!found) menu.hidePopup();
            return found ? "" : labels.join(", ");""".replace("const [label] = args;", "const label = args[0];"), label)
        if result:
            raise rig.Failure(f"no {label} in the menu: {result}")
        # Marionette cannot reach the popup at the button. A tab with the same page has the same draft.
        self.chrome("""for (let i = 0; i < 40; i++) {
              const panels = [...document.querySelectorAll("panel")].filter((panel) => panel.state === "open");
              if (panels.length > 0) { for (const panel of panels) panel.hidePopup(); break; }
              await new Promise((r) => setTimeout(r, 50));
            }
            return "";""")
        return self.popup()

    def badge(self):
        return self.chrome("""
            const { AddonManager } = ChromeUtils.importESModule("resource://gre/modules/AddonManager.sys.mjs");
            const extension = WebExtensionPolicy.getByID(args[0]).extension;
            return extension.apiManager.global.browserActionFor?.(extension)?.action?.getProperty(gBrowser.selectedTab, "badgeText") ?? "";""",
                           FIREFOX_ID)

    def tabs(self):
        return self.chrome("return gBrowser.tabs.map((tab) => ({ url: tab.linkedBrowser.currentURI.spec, group: tab.group?.label ?? null }));")

    def stop_worker(self):
        state = self.chrome("""
            const { extension } = WebExtensionPolicy.getByID(args[0]);
            await extension.terminateBackground({ ignoreDevToolsAttached: true, disableResetIdleForTest: true });
            return extension.backgroundState;""", FIREFOX_ID)
        if state != "stopped":
            raise rig.Failure(f"the background does not stop: {state}")

    def close(self):
        try:
            self.driver.quit()
        except Exception:
            pass
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
