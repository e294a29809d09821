#!/usr/bin/env python3
"""The page for guests in real browsers, on another machine of a lab than the one that invites.

    Tests/Browser/run guest_page.py [--only PART] [--rate RATE] [--check]

Parts: sending, reading, attacks, slow, narrow, cut, speed, inviting, dropping. Prints a line for each check, and the number of failed ones at the end. Exit status: 0 success, 1 a check failed, 77 a requirement is
missing (which is printed).
"""
import argparse, hashlib, http.client, http.server, json, os, re, shutil, socket, statistics, subprocess, sys, tempfile, threading, time

from page_rig import BROWSERS, FIREFOX, LAB, address, api, check, chromium, failed, inside, lab, launched, need_lab, sync_playwright, until

ZBARIMG = shutil.which("zbarimg")
# Uploads whose rates are compared.
SPEED_ROUNDS = 5
HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>"


def invite(**wanted):
    return api("ada", "POST", "/v1/invitations", wanted)


def end():
    for invitation in api("ada", "GET", "/v1/invitations")["items"]:
        api("ada", "DELETE", f"/v1/invitations/{invitation['id']}")


def opened(browser, url, **options):
    """A phone-sized page. `page.faults` has its console errors and exceptions, `page.asked` the lines of its requests."""
    context = browser.new_context(**{"viewport": {"width": 390, "height": 844}, **options})
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.faults, page.asked = [], []
    page.on("console", lambda message: page.faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("request", lambda request: page.asked.append((request.method, request.url, request.headers.get("referer", ""))))
    page.goto(url)
    return page


def file(folder, name, size):
    path = os.path.join(folder, name)
    with open(path, "wb") as new:
        block = os.urandom(1 << 20)
        for start in range(0, size, len(block)):
            new.write(block[: min(len(block), size - start)])
    return path, hashlib.sha256(open(path, "rb").read()).hexdigest()


def digests():
    """The SHA-256 of the files of the newest hex of ada, as its links and the kept files on its disk have them."""
    newest = api("ada", "GET", "/v1/hexes?limit=1")["items"][0]
    links = api("ada", "GET", f"/v1/hexes/{newest['id']}")
    kept = os.path.join(lab("path", "ada", "state").strip(), "files")
    extra = [link.get("sha256") for link in (links["extra"].get("links") or {}).values()]
    on_disk = []
    for digest in extra:
        folder = os.path.join(kept, digest or "-")
        on_disk += [hashlib.sha256(open(os.path.join(folder, name), "rb").read()).hexdigest() for name in (os.listdir(folder) if os.path.isdir(folder) else [])]
    return newest, extra, on_disk


def sending(play, browser_name):
    browser = launched(play, browser_name)
    invitation = invite()
    start = time.monotonic()
    page = opened(browser, invitation["url"])
    page.wait_for_selector("form")
    key = invitation["url"].split("#")[1]
    check(f"{browser_name}: the key is not in the address any more", "#" not in page.url, page.url)
    check(f"{browser_name}: the page says that it is not encrypted", "Not encrypted" in page.inner_text("#note"), page.inner_text("#note"))
    with tempfile.TemporaryDirectory() as folder:
        path, digest = file(folder, "Föto 1.jpg", 5 << 20)
        page.fill("#name", "Anna")
        page.fill("#text", f"Look {HOSTILE} https://example.org/{browser_name}")
        page.set_input_files("#files", [path])
        page.click("button")
        page.wait_for_selector("text=✓ ada has it")
        check(f"{browser_name}: from opening to 'ada has it'", True, f"{time.monotonic() - start:.2f} s")
        newest, known, on_disk = digests()
        check(f"{browser_name}: the hex is in the inbox", newest["peerName"].startswith('"Anna" ') and newest["trust"] == "guest" and newest["linkCount"] == 2, newest["peerName"])
        check(f"{browser_name}: the file is whole", known[-1:] == [digest] and on_disk[-1:] == [digest])
        check(f"{browser_name}: lists name the guest", re.search(r'"Anna" [0-9.]+ \(guest\)', lab("hexlist", "ada", "inbox")) is not None)
        # Phones discard tabs: the text, the name, the guest and a started upload survive.
        big, digest = file(folder, "big.bin", 300 << 20)
        page.fill("#text", "Not lost")
        page.set_input_files("#files", [big])
        page.click("button")
        page.wait_for_function("() => /Sending… [1-9]/.test(document.body.innerText)")
        lab("link", "ada", "down")
        page.wait_for_selector("text=Waiting for the connection")
        page.route("**/g/files/*", lambda route: route.abort())
        lab("link", "ada", "up")
        page.reload()
        page.wait_for_selector("form")
        page.unroute("**/g/files/*")
        check(f"{browser_name}: text and name survive a reload", (page.input_value("#text"), page.input_value("#name")) == ("Not lost", "Anna"))
        pieces = []
        page.on("request", lambda request: pieces.append(request.url.split("at=")[1]) if "at=" in request.url else None)
        page.set_input_files("#files", [big])
        page.click("button")
        page.wait_for_selector("text=✓ ada has it")
        check(f"{browser_name}: a reload resumes the upload", len(pieces) == 1 and 0 < int(pieces[0]) < 300 << 20, pieces)
        check(f"{browser_name}: the resumed file is whole", digests()[2][-1:] == [digest])
        seen = api("ada", "GET", f"/v1/invitations/{invitation['id']}")
        check(f"{browser_name}: a reload is the same guest", len(seen["guests"]) == 1 and len(seen["hexes"]) == 2)
        gone, _ = file(folder, "gone.bin", 1 << 20)
        page.set_input_files("#files", [gone])
        page.wait_for_function("() => document.getElementById('files').files.length === 1")
        os.remove(gone)
        page.click("button")
        page.wait_for_selector("text=gone.bin cannot be read any more. Choose it again.")
        check(f"{browser_name}: a file that was deleted after it was chosen is named", len(api("ada", "GET", f"/v1/invitations/{invitation['id']}")["hexes"]) == 2)
        page.set_input_files("#files", [])
    check(f"{browser_name}: no request line and no Referer has the key", not [asked for asked in page.asked if key in asked[1].split("#")[0] or key in asked[2]])
    check(f"{browser_name}: no fault", not [fault for fault in page.faults if "ERR_FAILED" not in fault and "NetworkError" not in fault and "net::" not in fault], page.faults[:3])
    end()
    page.fill("#text", "Too late")
    page.click("button")
    page.wait_for_selector("#note.e")
    check(f"{browser_name}: after the end nothing is sent", api("ada", "GET", "/v1/hexes?limit=1")["items"][0]["subject"] != "Too late", page.inner_text("#note"))
    browser.close()


def reading(play, browser_name):
    browser = launched(play, browser_name)
    with tempfile.TemporaryDirectory() as folder:
        path, digest = file(folder, "a <b> ünï.bin", 3 << 20)
        hex = api("ada", "POST", "/v1/mine", {"hexDescription": HOSTILE, "links": [
            {"url": "javascript:document.title='owned'", "linkDescription": "click"}, {"url": "https://user@evil.example/", "linkDescription": "u"},
            {"url": "https://www.openstreetmap.org/", "linkDescription": HOSTILE}]})
        page = opened(browser, invite(hexes=[hex["id"]], paths=[path])["url"], accept_downloads=True)
        page.wait_for_selector("form")
        check(f"{browser_name}: hostile text stays text", page.title() == "Hexlist" and page.locator("section img, section script").count() == 0)
        links = page.locator("section a:not(.b)")
        check(f"{browser_name}: only addresses of the web can be opened", links.count() == 1 and links.first.get_attribute("rel") == "noopener noreferrer", links.count())
        check(f"{browser_name}: the host is shown", "www.openstreetmap.org" in page.inner_text("section"))
        with page.expect_download() as download:
            page.click("a.b")
        got = download.value.path()
        check(f"{browser_name}: a file is downloaded whole, with its name", hashlib.sha256(open(got, "rb").read()).hexdigest() == digest, download.value.suggested_filename)
    end()
    browser.close()


def cut(play, browser_name):
    """The network is cut during an upload."""
    browser = launched(play, browser_name)
    page = opened(browser, invite()["url"])
    page.wait_for_selector("form")
    with tempfile.TemporaryDirectory() as folder:
        path, digest = file(folder, "film.bin", 300 << 20)
        for seconds in (6, 30):
            page.set_input_files("#files", [path])
            page.fill("#text", f"Cut {seconds} {browser_name}")
            page.click("button")
            page.wait_for_function("() => /Sending… [1-9]/.test(document.body.innerText)")
            lab("link", "ada", "down")
            time.sleep(seconds)  # the duration of the cut
            lab("link", "ada", "up")
            back = time.monotonic()
            percent = lambda: int((re.search(r"Sending… (\d+)", page.inner_text("body")) or [0, 0])[1])
            stood = percent()
            page.wait_for_function(f"() => document.body.innerText.includes('✓ ada has it') || Number((/Sending… (\\d+)/.exec(document.body.innerText) || [0, 0])[1]) > {stood}")
            resumed = time.monotonic() - back
            page.wait_for_function(f"() => (document.body.innerText.match(/✓ ada has it/g) || []).length >= {1 if seconds == 6 else 2}")
            check(f"{browser_name}: an upload resumes after a cut of {seconds} s", digests()[2][-1:] == [digest], f"{resumed:.1f} s after the network is back")
    end()
    browser.close()


def attacks(play, browser_name):
    """Requests of another site in the browser of a guest, also with a drop token that it knows, and under another DNS name of ada."""
    invitation = invite()
    drop = api("ada", "POST", "/v1/drops", {"name": "known to a site", "address": re.search(r"//(.*):", invitation["url"])[1]})["url"]
    port = int(re.search(r":(\d+)/", invitation["url"])[1])
    host = re.search(r"//(.*):", invitation["url"])[1]
    before = len(api("ada", "GET", "/v1/hexes?limit=200")["items"])

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"<!doctype html><title>site</title><body>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    # The site is not on the loopback interface, because Firefox asks its user before a form is sent from there to another machine.
    own_address = lab("path", "eve", "address").strip()
    site = http.server.ThreadingHTTPServer((own_address, 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    # The browsers run without their own checks of requests into the local network, so that those of hexlistd are tested.
    if browser_name == "chromium":
        browser = chromium(play, f"--host-resolver-rules=MAP rebound.example {host}", "--disable-features=LocalNetworkAccessChecks")
    else:
        browser = play.firefox.launch(executable_path=FIREFOX, channel="moz-firefox", firefox_user_prefs={
            "network.lna.enabled": False, "network.lna.blocking": False})
    guest = opened(browser, invitation["url"])
    guest.wait_for_selector("form")
    token = guest.evaluate("() => sessionStorage.getItem('token')")
    page = browser.new_context().new_page()
    page.goto(f"http://{own_address}:{site.server_port}/")
    own = f"http://{host}:{port}"
    key = invitation["url"].split("#")[1]
    text = json.dumps({"id": "0" * 32, "text": "attack"})
    tries = f"""async () => {{
      const drop = {json.dumps(drop)}, own = {json.dumps(own)}, token = {json.dumps(token)}, text = {json.dumps(text)}, key = {json.dumps(key)};
      const results = window.results = [];
      const attempt = async (url, words) => {{ try {{ const reply = await fetch(url, {{signal: AbortSignal.timeout(5000), ...words}}); results.push(reply.type + ' ' + reply.status); }} catch (error) {{ results.push('blocked'); }} }};
      await attempt(own + '/', {{}});
      await attempt(own + '/g/join', {{method: 'POST', body: JSON.stringify({{key}})}});
      await attempt(own + '/g/join', {{method: 'POST', mode: 'no-cors', body: JSON.stringify({{key}})}});
      await attempt(own + '/g/hexes', {{method: 'POST', body: text, headers: {{Authorization: 'Bearer ' + token}}}});
      await attempt(own + '/g/hexes', {{method: 'POST', mode: 'no-cors', body: text, headers: {{Authorization: 'Bearer ' + token}}}});
      await attempt(own + '/g/hexes', {{method: 'POST', body: text, headers: {{Authorization: 'Bearer ' + token, 'Content-Type': 'application/json'}}}});
      await attempt(own + '/g/files', {{method: 'POST', mode: 'no-cors', body: '{{"name":"a","size":1}}'}});
      await attempt(own + '/guest.js', {{mode: 'no-cors'}});
      await attempt(drop, {{method: 'POST', body: 'attack'}});
      await attempt(drop, {{method: 'POST', mode: 'no-cors', body: 'attack'}});
      await attempt(drop, {{method: 'POST', mode: 'no-cors', referrerPolicy: 'no-referrer', body: new Blob(['attack'])}});
      await attempt(drop, {{mode: 'no-cors'}});
      navigator.sendBeacon(drop, 'attack');
      for (const action of [own + '/g/hexes', drop]) for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {{
        const frame = document.createElement('iframe'), form = document.createElement('form'), field = document.createElement('input');
        frame.name = 'f' + action.length + enctype.length;
        Object.assign(form, {{method: 'POST', action, enctype, target: frame.name}});
        Object.assign(field, {{name: action === drop ? 'text' : text, value: 'attack'}});
        form.append(field);
        document.body.append(frame, form);
        const loaded = new Promise((done) => {{ frame.onload = done; setTimeout(done, 3000); }});
        form.submit();
        await loaded;
      }}
      const frame = document.createElement('iframe');
      frame.src = own + '/';
      document.body.append(frame);
      await new Promise((done) => {{ frame.onload = done; setTimeout(done, 3000); }});
      let inner = 'unreadable';
      try {{ inner = frame.contentDocument && frame.contentDocument.body.innerText ? 'readable' : 'unreadable'; }} catch (error) {{ /* another origin */ }}
      results.push(inner);
      window.isDone = true;
    }}"""
    page.evaluate(f"() => {{ ({tries})(); }}")
    until(lambda: page.evaluate("() => window.isDone"), 120)
    results = page.evaluate("() => window.results")
    check(f"{browser_name}: another site reads nothing", len(results) == 13 and all(one in ("blocked", "unreadable") or one.startswith("opaque") for one in results), results)
    if browser_name == "chromium":
        rebound = browser.new_context().new_page()
        reply = rebound.goto(f"http://rebound.example:{port}/#{key}")
        check(f"{browser_name}: a rebound name is refused", reply.status == 403, reply.status)

    def raw(method, path, headers, body=b""):
        connection = http.client.HTTPConnection(host, port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in {"Host": f"{host}:{port}", "Content-Length": str(len(body)), **headers}.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            return str(error) or "closed"
        finally:
            connection.close()

    bearer = {"Authorization": f"Bearer {token}"}
    sends = [
        ({**bearer}, 403), ({**bearer, "Origin": "http://evil.example"}, 403), ({**bearer, "Origin": "null"}, 403),
        ({**bearer, "Origin": f"http://{host}"}, 403), ({**bearer, "Origin": own, "Host": "evil.example"}, 403),
        ({**bearer, "Origin": own, "Host": None}, 403), ({**bearer, "Origin": own, "Host": f"localhost:{port}"}, 403),
        ({**bearer, "Origin": own, "Sec-Fetch-Site": "cross-site"}, 403), ({"Origin": own}, 403), ({"Origin": own, "Authorization": "Bearer x"}, 403),
        ({"Origin": own, "Authorization": f"Bearer {key}"}, 403),
    ]
    seen = [(raw("POST", "/g/hexes", headers, text.encode()), status) for headers, status in sends]
    seen += [(raw("OPTIONS", "/g/hexes", {"Origin": own}), 405), (raw("PUT", "/g/hexes", {**bearer, "Origin": own}), 405)]
    seen += [(raw("GET", path, bearer), 404) for path in ("/v1/status", "/g/../v1/status", "/metrics", "/g/d/x/identity.pem", "/g/d/..%2f..%2fidentity.pem")]
    # The token of the guest, from ada itself instead of the guest's address.
    words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "-H", f"Origin: {own}", "-H", f"Authorization: Bearer {token}", "-d", text, f"{own}/g/hexes"]
    seen.append((int(lab("exec", "ada", *words)), 403))
    check(f"{browser_name}: {len(seen)} forged requests are refused", all(got == wanted for got, wanted in seen), [one for one in seen if one[0] != one[1]])
    guessed = [raw("POST", "/g/join", {"Origin": own}, json.dumps({"key": "A" * 22}).encode()) for _ in range(8)]
    check(f"{browser_name}: keys cannot be guessed", guessed == [403] * 5 + [429] * 3, guessed)
    check(f"{browser_name}: nothing arrived", len(api("ada", "GET", "/v1/hexes?limit=200")["items"]) == before)
    end()
    api("ada", "DELETE", "/v1/drops/known%20to%20a%20site")
    late = [raw("POST", "/g/hexes", {**bearer, "Origin": own}, text.encode()), raw("GET", "/", {})]
    check(f"{browser_name}: after the end the port speaks no HTTP", all(not isinstance(one, int) for one in late), late)
    log = open(lab("path", "ada", "log").strip(), errors="replace").read()
    check(f"{browser_name}: neither key nor token is in the log or an event", key not in log and token not in log and key not in lab("hexlist", "ada", "events"), len(log))
    browser.close()
    site.shutdown()


def narrow(play, browser_name):
    """Checks the page at a width of 320 px: targets are large enough, and axe has no findings."""
    browser = launched(play, browser_name)
    hex = api("ada", "POST", "/v1/mine", {"hexDescription": "W" * 300, "links": [{"url": "https://example.org/" + "x" * 300, "linkDescription": "y" * 300}]})
    page = opened(browser, invite(hexes=[hex["id"]])["url"], viewport={"width": 320, "height": 568})
    page.wait_for_selector("form")
    check(f"{browser_name}: nothing is wider than 320 px", page.evaluate("() => document.documentElement.scrollWidth") <= 320)
    small = page.evaluate("() => [...document.querySelectorAll('button, input, textarea, a')].map((one) => [one.tagName, one.getBoundingClientRect().height]).filter((one) => one[1] < 44)")
    check(f"{browser_name}: every target is at least 44 px high", not small, small)
    unnamed = page.evaluate("() => [...document.querySelectorAll('input, textarea')].filter((one) => !one.labels.length).length")
    check(f"{browser_name}: every field has a label", unnamed == 0)
    page.keyboard.press("Tab")
    check(f"{browser_name}: focus is visible", page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle") == "solid")
    try:
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(page)
        check(f"{browser_name}: axe has no findings", found.violations_count == 0, [one["id"] for one in found.response["violations"]])
    except ImportError:
        print("skipped: axe, which is not installed")
    end()
    browser.close()


class Nginx:
    """nginx on ada, to compare with: it stores the files of `curl -T`, and those of a browser. `process` is None if it is not installed."""

    CONFIG = """daemon off; master_process off; pid {0}/pid; error_log {0}/log; user root;
events {{ }}
http {{ access_log off; client_body_temp_path {0}/body; client_max_body_size 0; sendfile on;
server {{ listen {1}:8081; location / {{ root {0}/files; dav_methods PUT; }} }} }}"""

    def __init__(self, folder, host):
        self.program, self.host, self.process = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin"), host, None
        if not self.program:
            return
        os.makedirs(os.path.join(folder, "files"))
        with open(os.path.join(folder, "files", "page.html"), "w") as page:
            page.write("<!doctype html><title>nginx</title><input type=file>")
        config = os.path.join(folder, "nginx.conf")
        with open(config, "w") as file:
            file.write(self.CONFIG.format(folder, host))
        self.process = subprocess.Popen([LAB, "exec", "ada", self.program, "-e", os.path.join(folder, "log"), "-c", config, "-p", folder])
        self.address = f"http://{host}:8081"
        until(lambda: subprocess.run(["curl", "-s", "-o", "/dev/null", self.address]).returncode == 0)

    def rate_in(self, browser, path):
        """MB/s of one upload by the browser, in one request."""
        page = browser.new_context().new_page()
        page.goto(f"{self.address}/page.html")
        page.set_input_files("input", [path])
        start = time.monotonic()
        status = page.evaluate("""() => new Promise((done) => {
          const request = new XMLHttpRequest();
          request.open('PUT', '/film.bin');
          request.onload = request.onerror = () => done(request.status);
          request.send(document.querySelector('input').files[0]);
        })""")
        seconds = time.monotonic() - start
        page.context.close()
        if status not in (201, 204):
            sys.exit(f"nginx: {status}")
        return os.path.getsize(path) / 1e6 / seconds

    def rate(self, path):
        """MB/s of one upload by curl."""
        start = time.monotonic()
        status = subprocess.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-T", path, f"{self.address}/film.bin"], capture_output=True, text=True).stdout
        if status not in ("201", "204"):
            sys.exit(f"nginx: {status}")
        return os.path.getsize(path) / 1e6 / (time.monotonic() - start)

    def end(self):
        if self.process:
            self.process.terminate()
            self.process.wait(30)


def speed(play, browser_name):
    """Uploads 300 MB several times, alternately with the same browser's upload to nginx and with `curl -T` to nginx. The rates are printed
    and not checked: Benchmarks/README.md has measured ones."""
    browser = launched(play, browser_name)
    invitation = invite()
    page = opened(browser, invitation["url"])
    page.wait_for_selector("form")
    with tempfile.TemporaryDirectory() as folder:
        path, digest = file(folder, "film.bin", 300_000_000)
        nginx = Nginx(folder, re.search(r"//(.*):", invitation["url"])[1])
        rates, own, curl = [], [], []
        try:
            for number in range(SPEED_ROUNDS):
                if nginx.process:
                    curl.append(nginx.rate(path))
                    own.append(nginx.rate_in(browser, path))
                page.set_input_files("#files", [path])
                start = time.monotonic()
                page.click("button")
                page.wait_for_function(f"() => (document.body.innerText.match(/✓ ada has it/g) || []).length > {number}")
                rates.append(300 / (time.monotonic() - start))
                check(f"{browser_name}: 300 MB are whole", digests()[2][-1:] == [digest], f"{rates[-1]:.0f} MB/s")
        finally:
            nginx.end()
        if nginx.process:
            show = lambda seen: f"{statistics.median(seen):.0f} MB/s ({min(seen):.0f} to {max(seen):.0f})"
            part, of_curl = (statistics.median(rates) / statistics.median(other) for other in (own, curl))
            print(f"       {browser_name}: {show(rates)}, {part:.2f} of its upload to nginx with {show(own)}, {of_curl:.2f} of curl with {show(curl)}", flush=True)
        else:
            print("skipped: the comparison with nginx, which is not installed")
    end()
    browser.close()


def slow(play, browser_name):
    """Five other addresses hold all the connections they can get, with heads that never end. Then bodies that are too large are sent."""
    invitation = invite()
    port = int(re.search(r":(\d+)/", invitation["url"])[1])
    host = re.search(r"//(.*):", invitation["url"])[1]
    attackers = [f"10.77.0.{number}" for number in range(201, 206)]
    for attacker in attackers:
        lab("exec", "eve", "ip", "address", "add", f"{attacker}/24", "dev", "eth0", status=None)
    is_over = threading.Event()
    made = dict.fromkeys(attackers, 0)

    def hold(attacker):
        """Keeps 8 connections open, and adds a byte to each head every second."""
        held = []
        while not is_over.wait(0.2 if len(held) < 8 else 1):
            if len(held) < 8:
                try:
                    held.append(socket.create_connection((host, port), 5, (attacker, 0)))
                    held[-1].sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
                    made[attacker] += 1
                except OSError:
                    pass
            for one in list(held):
                try:
                    one.sendall(b"a")
                except OSError:
                    held.remove(one)
        for one in held:
            one.close()

    threads = [threading.Thread(target=hold, args=(attacker,)) for attacker in attackers]
    for thread in threads:
        thread.start()
    until(lambda: min(made.values()) >= 8)  # all slots are in use
    browser = launched(play, browser_name)
    start = time.monotonic()
    page = opened(browser, invitation["url"])
    page.wait_for_selector("form")
    page.fill("#text", "From a crowd")
    page.click("button")
    page.wait_for_selector("text=✓ ada has it")
    seconds = time.monotonic() - start
    check(f"{browser_name}: a guest sends while five others hold connections", seconds < 10, f"{seconds:.2f} s")
    token = page.evaluate("() => sessionStorage.getItem('token')")
    is_over.set()
    for thread in threads:
        thread.join()
    for attacker in attackers:
        lab("exec", "eve", "ip", "address", "del", f"{attacker}/24", "dev", "eth0", status=None)

    def long(path, length, sent):
        """The status of a reply to a body of `sent` bytes, of which `length` were announced."""
        own = f"{host}:{port}"
        head = f"POST {path} HTTP/1.1\r\nHost: {own}\r\nOrigin: http://{own}\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
        with socket.create_connection((host, port), 20) as one:
            try:
                one.sendall(head.encode() + b" " * sent)
                return one.recv(100).split(b" ")[1].decode()
            except (OSError, IndexError):
                return "closed"

    seen = [long("/g/join", 9_000, 9_000), long("/g/hexes", 600_000, 600_000), long("/g/hexes", 6_000_000, 6_000_000), long("/g/files", 1 << 40, 6_000_000)]
    check(f"{browser_name}: bodies that are too large are refused", all(one in ("413", "closed") for one in seen), seen)
    check(f"{browser_name}: and other requests are answered", page.evaluate("() => fetch('/').then((reply) => reply.status)") == 200)
    end()
    browser.close()


def dialog(browser, button):
    """The page of `hexlist web` on ada with a dialog of Peers open. Returns the page."""
    page = browser.new_context().new_page()
    page.goto(address())
    page.wait_for_selector(".title")
    page.keyboard.press("5")
    page.click(f"button:has-text('{button}')")
    return page


def check_code(browser_name, page, url):
    """Reads the QR code of a dialog, if this machine has zbarimg."""
    if not ZBARIMG:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "code.png")
        page.locator("dialog .code svg").screenshot(path=path)
        read = subprocess.run([ZBARIMG, "--nodbus", "--quiet", "--raw", path], capture_output=True, text=True).stdout.strip()
        check(f"{browser_name}: the code on the page is that address", read == url, read[:20])


def inviting(play, browser_name):
    """The page of `hexlist web` on ada invites: the code and the address are those of one invitation, until it is ended there."""
    browser = launched(play, browser_name)
    page = dialog(browser, "Invite…")
    page.wait_for_selector("dialog .code svg path")
    active = api("ada", "GET", "/v1/invitations")["items"]
    check(f"{browser_name}: the page shows the address of the invitation", len(active) == 1 and page.inner_text("dialog .code code") == active[0]["url"])
    check_code(browser_name, page, active[0]["url"])
    page.click("dialog .buttons button:has-text('Close')")
    page.click("button:has-text('Invite…')")
    page.wait_for_selector("dialog .code svg path")
    check(f"{browser_name}: the page finds its invitation again", page.inner_text("dialog .code code") == active[0]["url"])
    page.click("button:has-text('End it now')")
    check(f"{browser_name}: the page ends it", until(lambda: not api("ada", "GET", "/v1/invitations")["items"]))
    end()
    browser.close()


def dropping(play, browser_name):
    """The page of `hexlist web` on ada adds a drop token, with which curl on another machine sends, and removes it."""
    browser = launched(play, browser_name)
    page = dialog(browser, "Shortcuts…")
    page.fill("dialog form input", "my phone")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog .code svg path")
    url = page.inner_text("dialog .code code")
    known = api("ada", "GET", "/v1/drops")["items"]
    check(f"{browser_name}: the page shows the address of a new drop token", [drop["name"] for drop in known] == ["my phone"] and "/drop/" in url, url.rsplit("/", 1)[0])
    check_code(browser_name, page, url)
    numeric = url if "://1" in url else page.locator("dialog details code").first.text_content()
    phone = opened(browser, numeric)
    check(f"{browser_name}: a browser that opens the address sends nothing, and says so", "for a shortcut" in phone.inner_text("body"), phone.inner_text("body"))
    words = ["curl", "-s", "-d", "https://example.org/dropped", numeric]
    answer = lab("exec", "eve", *words)
    newest = api("ada", "GET", "/v1/hexes?limit=1")["items"][0]
    check(f"{browser_name}: curl on another machine sends with it", answer == "ada has it.\n" and newest["subject"] == "example.org/dropped", answer)
    page.click("dialog button:has-text('Done')")
    page.wait_for_selector("dialog .field:has-text('last used')")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    page.wait_for_selector("text=my phone (drop)")
    page.keyboard.press("5")
    page.click("button:has-text('Shortcuts…')")
    page.click("dialog button:has-text('Remove')")
    page.click("dialog >> nth=1 >> button:has-text('Remove')")
    check(f"{browser_name}: the page removes it", until(lambda: not api("ada", "GET", "/v1/drops")["items"]))
    refused = lab("exec", "eve", *words, status=None)
    check(f"{browser_name}: then the port speaks no HTTP", refused == "", refused)
    browser.close()


PARTS = {"sending": sending, "reading": reading, "attacks": attacks, "slow": slow, "narrow": narrow, "cut": cut, "speed": speed, "inviting": inviting, "dropping": dropping}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--rate", help="limit the cable of the guest's machine to this rate of tc(8), such as 1gbit; without it, processors limit the rates")
    parser.add_argument("--check", action="store_true", help="only say whether this machine can run it")
    parser.add_argument("--inside", nargs="+", metavar="PART", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        with sync_playwright() as play:
            for name in options.inside:
                for browser_name in BROWSERS:
                    PARTS[name](play, browser_name)
        print(f"{len(failed)} failed")
        sys.exit(1 if failed else 0)
    need_lab("guests")
    if options.check:
        return
    if "firefox" not in BROWSERS:
        print("skipped: everything in Firefox, which is not installed (apt-get install firefox-esr)")
    try:
        lab("up", "--owner", str(os.getpid()), "ada", "eve")
        lab("start", "ada")
        if options.rate:
            lab("exec", "eve", "tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", options.rate, "burst", "256kb", "latency", "20ms")
        parts = [options.only] if options.only else list(PARTS)
        # The page of `hexlist web` is on the loopback interface of ada.
        own = ["inviting", "dropping"]
        hosts = {"eve": [part for part in parts if part not in own], "ada": [part for part in parts if part in own]}
        sys.exit(max(inside(host, __file__, *some) for host, some in hosts.items() if some))
    finally:
        lab("down", status=None)


main()
