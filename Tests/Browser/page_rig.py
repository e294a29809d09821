"""Shared by the tests of the page: machines of a lab, and browsers on them."""
import json, os, shutil, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
LAB = os.path.join(ROOT, "Scripts", "lab")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


try:
    from playwright.sync_api import sync_playwright
except ImportError:
    skip("playwright is not installed; `make test-browser` installs it")
if not CHROMIUM:
    skip("chromium is not installed (apt-get install chromium)")


failed = []


def check(what, good, seen=""):
    """Prints the result of a check, with the value that was seen. Failed ones are in `failed`."""
    print(f"{'ok    ' if good else 'FAILED'} {what}{f': {seen}' if seen != '' else ''}", flush=True)
    if not good:
        failed.append(what)


def lab(*words, status=0):
    run = subprocess.run([LAB, *words], capture_output=True, text=True, timeout=300)
    if status is not None and run.returncode != status:
        sys.exit(f"{' '.join(words)}: {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout


def api(host, method, path, body=None):
    """A reply of the local API of a machine."""
    words = ["curl", "-s", "--max-time", "120", "-X", method, "--unix-socket", lab("path", host, "socket").strip(), f"http://localhost{path}"]
    if body is not None:
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return json.loads(subprocess.run(words, capture_output=True, text=True).stdout or "null")


def until(holds, seconds=60):
    """Waits until `holds()` is true. Returns its last value after the timeout."""
    deadline = time.monotonic() + seconds
    while not (value := holds()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return value


def need_lab(name):
    """Exits with 77 if no lab can be made."""
    reason = subprocess.run([LAB, "check"], capture_output=True, text=True)
    if reason.returncode:
        skip(reason.stdout + reason.stderr)
    os.environ["HEXLIST_LAB"] = f"{name}-{os.getpid()}"


def inside(host, program, *words):
    """Runs a test program on a machine, because the page is on its loopback interface. Returns the exit status."""
    own = [sys.executable, os.path.realpath(program), "--inside", *words]
    variables = [f"{name}={os.environ[name]}" for name in ("PATH", "HEXLIST_LAB", "HEXLIST_LAB_DIR", "HEXLIST_BIN", "HEXLIST_TEST_DESKTOP") if name in os.environ]
    return subprocess.run([LAB, "exec", host, "env", *variables, *own]).returncode


def address(host="ada"):
    return lab("hexlist", host, "web", "--print").strip()


def chromium(play, *arguments):
    return play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *arguments])


BROWSERS = ["chromium"] + (["firefox"] if FIREFOX else [])


def launched(play, browser_name, names=(), scheme="light"):
    """A browser that resolves `names` to 127.0.0.1. `scheme` is for Firefox only, because playwright cannot set it per page there."""
    if browser_name == "chromium":
        rules = ",".join(f"MAP {name} 127.0.0.1" for name in names)
        return chromium(play, *([f"--host-resolver-rules={rules}"] if rules else []))
    return play.firefox.launch(executable_path=FIREFOX, channel="moz-firefox", firefox_user_prefs={
        "network.dns.localDomains": ",".join(names), "layout.css.prefers-color-scheme.content-override": 0 if scheme == "dark" else 1})


def opened(browser, wait=".row", host="ada", **options):
    """A page with the inbox. `page.faults` has its console errors, exceptions and unhandled rejections; `page.streams` each event stream it opened."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    context.set_default_timeout(120_000)  # longer than the default, because other tests run in parallel
    context.add_init_script("addEventListener('unhandledrejection', (event) => console.error(`not caught: ${event.reason}`))")
    page = context.new_page()
    page.faults, page.streams = [], []
    page.on("request", lambda request: page.streams.append(request.url) if "text/event-stream" in request.headers.get("accept", "") else None)
    page.on("console", lambda message: page.faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.goto(address(host))
    page.wait_for_selector(wait)
    return page


def downloads(host="ada"):
    """Names and contents of the files in the download folder, with the folders in it."""
    root = os.path.join(lab("path", host).strip(), "home", "Downloads")
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                found[os.path.relpath(os.path.join(folder, name), root)] = file.read()
    return found


def desktop(name):
    """Records of the desktop of a host: `opened` has the paths given to xdg-open, `bus` the messages on the session bus."""
    with open(os.path.join(os.environ["HEXLIST_TEST_DESKTOP"], name)) as file:
        return file.read()


def make_desktop(folder):
    """Installs an xdg-open that records its argument, for the daemons that are started from now on."""
    opener = os.path.join(folder, "xdg-open")
    with open(opener, "w") as file:
        file.write(f"#!/bin/sh\nprintf '%s\\n' \"$1\" >>'{folder}/opened'\n")
    os.chmod(opener, 0o755)
    os.environ.update({"HEXLIST_TEST_DESKTOP": folder, "DISPLAY": ":99", "PATH": f"{folder}:{os.environ['PATH']}"})
    for name in ("opened", "bus"):
        open(os.path.join(folder, name), "w").close()
