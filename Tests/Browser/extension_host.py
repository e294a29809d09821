#!/usr/bin/env python3
"""The extension's native messaging host, `hexlist browser`, without a browser: replies and refusals.

    Tests/Browser/extension_host.py --verbose

Two hexlistd that trust each other. Every operation; a send that is queued while the peer is away and later reported as stored; a daemon
that stops and returns; pages of a large hex; hostile texts; and forged messages: another extension's id, invalid lengths, random bytes, a
truncated message, unknown operations and members. The host exits with its standard input, and leaves no process.
"""

import json
import os
import struct
import sys
import unicodedata

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import extension_rig as browser
import rig

HOSTILE = "\u202eevil\x1b]0;x\x07 <img src=x onerror=alert(1)>\u0000\u2028end"


def check(holds, what):
    if not holds:
        raise rig.Failure(str(what))


def operations(ada, bob):
    host = browser.Host(ada)
    there = host.ok("recipients")["items"]
    check([one["to"] for one in there] == [bob.uuid] and there[0]["here"] and there[0]["trusted"] and there[0]["label"] == "bob", there)
    ada.api("POST", "/v1/groups/team/add", {"peers": [bob.uuid]})
    there = host.ok("recipients")["items"]
    check([one["to"] for one in there] == ["@team", bob.uuid] and there[0]["members"] == 1, there)

    hex = {"description": "A window", "links": [{"url": "https://example.org/", "title": "Example"}],
           "hexes": [{"description": "A group", "links": [{"url": "https://example.net/"}]}]}
    rows = host.ok("send", to=["@team"], hex=hex, key="one")["rows"]
    check(len(rows) == 1 and rows[0]["state"] == "stored" and rows[0]["label"] == "bob", rows)
    check(host.ok("send", to=["@team"], hex=hex, key="one")["rows"][0]["row"] == rows[0]["row"], "the same key made another row")
    got = browser.newest(bob)
    check(got["description"] == "A window" and got["links"][0]["linkDescription"] == "Example", got)
    check(got["children"][0]["description"] == "A group", got)

    there = browser.Host(bob)
    unread = there.ok("unread")
    check(unread["unread"] == 1 and unread["name"] == "bob", unread)
    page = there.ok("inbox")
    check([one["subject"] for one in page["items"]] == ["A window"] and page["items"][0]["links"] == 2 and page["items"][0]["from"] == "ada", page)
    whole = there.ok("hex", hex=page["items"][0]["hex"])
    check([item.get("opens") or item.get("hex") for item in whole["items"]] == ["example.org", "A group", "example.net"], whole)
    there.until_event(lambda event: event.get("unread") == 1, "the first count")
    check(there.ok("mark", ids=[got["id"]], unread=False)["changed"] == 1, "nothing was marked")
    there.until_event(lambda event: event["event"] == "unread" and event["unread"] == 0, "the count after marking")
    # The host also reports hexes that another client marked as read or unread, and new hexes.
    bob.api("PATCH", f"/v1/hexes/{got['id']}", {"unread": True})
    there.until_event(lambda event: event["event"] == "unread" and event["unread"] == 1, "the count after marking elsewhere")
    host.ok("send", to=[bob.uuid], hex={"links": [{"url": "https://example.org/2"}]}, key="two")
    there.until_event(lambda event: event["event"] == "unread" and event["unread"] == 2, "the count after an arrival")
    check(host.end() == 0 and there.end() == 0, "a host did not end well")
    return "every operation, live counts"


def later(ada, bob):
    bob.stop()
    rig.until(lambda: ada.api("GET", f"/v1/peers/{bob.uuid}")["state"] == "away", "bob is away")
    host = browser.Host(ada)
    rows = host.ok("send", to=[bob.uuid], hex={"links": [{"url": "https://example.org/later"}]}, key="later")["rows"]
    check(rows[0]["state"] == "queued" and rows[0]["why"].startswith("the peer is away"), rows)
    bob.start()
    told = host.until_event(lambda event: event["event"] == "row" and event["row"]["row"] == rows[0]["row"] and event["row"]["state"] == "stored", "stored")
    check(told["row"]["label"] == "bob", told)
    check(host.ok("rows", ids=[rows[0]["row"]])["rows"][0]["state"] == "stored", "rows")
    check(host.ok("rows", ids=[rows[0]["row"], 999_999])["rows"][0]["state"] == "stored", "a row that is gone hides others")
    host.end()
    return "queued, then stored"


def daemon_away(ada, bob):
    host = browser.Host(ada)
    host.ok("unread")
    ada.stop()
    event = host.until_event(lambda event: event["event"] == "daemon", "the daemon's end")
    check(event["daemon"]["code"] == "daemonUnreachable" and "hexlistd" in event["daemon"]["hint"], event)
    fault = host.ask("recipients")["error"]
    check(fault["code"] == "daemonUnreachable", fault)
    ada.start()
    rig.await_sight(ada, bob)
    check(host.ok("recipients")["items"], "nobody after the daemon's return")
    host.until_event(lambda event: event["event"] == "unread", "the count after the daemon's return")
    host.end()
    return "told, and found again"


def pages(ada, bob):
    links = [{"url": f"https://example.org/{number}/" + "x" * 60, "linkDescription": f"Link {number} " + "\u202e" * 8} for number in range(4_000)]
    bob.api("POST", f"/v1/sends?to={ada.uuid}", {"description": "Many", "links": links})
    host = browser.Host(ada)
    rig.until(lambda: browser.newest(ada) and browser.newest(ada)["description"] == "Many", "the large hex")
    items, after, count = [], None, 0
    while True:
        page = host.ok("hex", hex=browser.newest(ada)["id"], **({"after": after} if after else {}))
        items += page["items"]
        count += 1
        after = page.get("next")
        if not after:
            break
    check([item["url"] for item in items] == [link["url"] for link in links], f"{len(items)} items")
    check(count > 1 and not any("\u202e" in item["title"] for item in items), "no pages, or texts that are not clean")
    for number in range(150):
        bob.api("POST", f"/v1/sends?to={ada.uuid}&wait=queued", {"description": f"n{number} " + "\u202e\u0007" * 100, "links": [f"https://example.org/{number}"]})
    rig.until(lambda: ada.status()["inbox"] >= 151, "150 hexes")
    seen, after = [], None
    while True:
        page = host.ok("inbox", limit=100, **({"after": after} if after else {}))
        seen += [item["hex"] for item in page["items"]]
        after = page.get("next")
        if not after:
            break
    check(len(seen) == len(set(seen)) == ada.status()["inbox"], f"{len(seen)} of {ada.status()['inbox']} hexes")
    host.end()
    return f"{count} pages of a hex of 4 000 links, {len(seen)} hexes"


def hostile_texts(ada, bob):
    bob.api("POST", f"/v1/sends?to={ada.uuid}", {
        "description": HOSTILE, "senderName": HOSTILE, "color": HOSTILE,
        "links": [{"url": "javascript:alert(1)", "linkDescription": HOSTILE}, {"url": "https://user@evil.example/", "linkDescription": HOSTILE},
                  {"url": "file:///etc/passwd"}, {"url": "https://fine.example/", "linkDescription": HOSTILE}, {"url": "x" * 60_000}],
        "children": [{"description": HOSTILE, "links": [{"url": "data:text/html,<script>1</script>"}]}]})
    host = browser.Host(ada)
    got = rig.until(lambda: host.ok("inbox", limit=1)["items"], "the hostile hex")[0]
    whole = host.ok("hex", hex=got["hex"])
    text = json.dumps(whole, ensure_ascii=False) + json.dumps(got, ensure_ascii=False)
    for character in "\u202e\x1b\x07\u2028\x00":
        check(character not in text and json.dumps(character)[1:-1] not in json.dumps(whole), f"{character!r} came through: {text}")
    check([item["url"] for item in whole["items"] if "opens" in item] == ["https://fine.example/"], whole)
    check(all(len(item["url"]) <= 310 for item in whole["items"] if "notOpened" in item), "a link that is not opened is not cut")
    # Held and own hexes are not shown in the extension.
    mine = ada.api("POST", "/v1/mine", {"description": "Mine", "links": ["https://example.org/"]})
    check(host.ask("hex", hex=mine["id"])["error"]["code"] == "notFound", "a hex of My Hexlist was read")
    with open(os.path.join(browser.HERE, "..", "HostileTexts", "texts.json")) as file:
        texts = json.load(file)
    bob.api("POST", f"/v1/sends?to={ada.uuid}", {
        "description": "Texts", "links": [{"url": "https://fine.example/", "linkDescription": text} for text in texts],
        "children": [{"description": text, "links": ["https://fine.example/"]} for text in texts]})
    got = rig.until(lambda: next((one for one in host.ok("inbox", limit=1)["items"] if one["subject"] == "Texts"), None), "the texts")
    items, after = [], None
    while after != "":
        page = host.ok("hex", hex=got["hex"], **({"after": after} if after else {}))
        items, after = items + page["items"], page.get("next", "")
    check(len(items) == 3 * len(texts), f"{len(items)} items of {len(texts)} texts")
    for item in items:
        for scalar in item.get("title", "") + item.get("hex", ""):
            # Joiners, which scripts and emoji need, are format characters that may be shown.
            check(scalar in "\u200c\u200d" or unicodedata.category(scalar) not in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"), f"{scalar!r} in {item}")
    host.end()
    return f"clean, one of six links opens; {len(texts)} texts in two places"


def forged(ada, bob):
    def refused(callers):
        host = browser.Host(ada, callers)
        host.process.stdin.close()
        status = host.process.wait(rig.STALL_LIMIT)
        check(status == 1 or not callers and status == 2, f"{callers}: status {status}")
        check(host.process.stdout.read() == b"", "it answered")
        return host.process.stderr.read().decode()
    check("Only the Hexlist extension" in refused(["chrome-extension://" + "a" * 32 + "/"]), "another extension")
    refused([browser.ORIGIN + "x"])
    refused(["/x.json", "other@example.org"])
    refused([browser.FIREFOX_ID])
    check("--install" in refused([]), "by hand")

    host = browser.Host(ada)
    before = ada.status()["outbox"]
    right = {"to": [bob.uuid], "hex": {"links": [{"url": "https://example.org/"}]}, "key": "k"}
    wrong = [
        {}, {"id": 1}, {"id": 0, "operation": "unread"}, {"id": "1", "operation": "unread"}, {"operation": "unread"},
        *({"id": 7, "operation": name} for name in ("trust", "pair", "block", "delete", "accept", "config", "status", "backup", "offers", "peers", "", "../v1/status")),
        {"id": 7, "operation": "inbox", "location": "held"}, {"id": 7, "operation": "inbox", "limit": 101}, {"id": 7, "operation": "inbox", "limit": 0},
        {"id": 7, "operation": "inbox", "path": "/v1/config"}, {"id": 7, "operation": "hex", "hex": "1/../../status"}, {"id": 7, "operation": "hex"},
        {"id": 7, "operation": "hex", "hex": 1, "after": "-1"}, {"id": 7, "operation": "mark", "ids": [], "unread": False},
        {"id": 7, "operation": "mark", "ids": [-1], "unread": False}, {"id": 7, "operation": "mark", "ids": list(range(1, 1_002)), "unread": False},
        {"id": 7, "operation": "mark", "all": True, "unread": False}, {"id": 7, "operation": "unread", "x": 1},
        *({"id": 7, "operation": "send", **right, **change} for change in (
            {"to": []}, {"to": [bob.uuid] * 101}, {"to": bob.uuid}, {"toAll": True}, {"force": True}, {"key": ""}, {"key": "k" * 101},
            {"hex": {}}, {"hex": {"links": []}}, {"hex": {"links": ["https://example.org/"]}}, {"hex": {"links": [{"url": "example.org"}]}},
            {"hex": {"links": [{"url": "https://example.org/", "service": "x"}]}}, {"hex": {"links": [{"url": "https://example.org/"}], "senderUUID": ada.uuid}},
            {"hex": {"links": [{"url": "https://example.org/"}], "extra": {}}})),
    ]
    deep = {"links": [{"url": "https://example.org/"}]}
    for _ in range(8):
        deep = {"links": [], "hexes": [deep]}
    wrong.append({"id": 7, "operation": "send", **right, "hex": deep})
    for message in wrong:
        host.send(message)
        number = message.get("id") if isinstance(message.get("id"), int) else None
        reply = host.answer(number)
        check(reply.get("error", {}).get("code") == "badRequest", f"{message} was answered {reply}")
    for garbage in (b"x", b"[]", b"null", b"{", b"\xff\xfe", b"{\"id\":7,\"operation\":\"unread\"} x", b"[" * 1000, b"\"" + b"a" * 100_000 + b"\""):
        host.send(garbage)
        check(host.answer()["error"]["code"] == "badRequest", garbage[:20])
    check(host.ask("send", to=["nobody"], hex=right["hex"], key="nobody")["error"]["code"] == "notFound", "a peer nobody knows")
    check(host.ask("hex", hex=999_999)["error"]["code"] == "notFound", "a hex that is not there")
    check(ada.status()["outbox"] == before, "something was sent")
    check(host.ok("unread") is not None and host.end() == 0, "it goes on after all that")

    for data, what in ((struct.pack("=I", 0), "no length"), (struct.pack("=I", (1 << 20) + 1), "one byte too many"), (b"\xff\xff\xff\xff", "4 GiB"),
                       (b"GET / HTTP/1.1\r\n\r\n", "another protocol")):
        host = browser.Host(ada)
        host.write(data)
        check(host.answer()["error"]["code"] == "tooLarge", what)
        check(host.process.wait(rig.STALL_LIMIT) != 0, f"it goes on after {what}")
    host = browser.Host(ada)
    host.write(struct.pack("=I", 100) + b"{\"id\":1")
    check(host.end() != 0, "a message that ends in the middle is a good end")
    # A message of the maximum length, a message that arrives byte by byte, and many messages at once.
    host = browser.Host(ada)
    body = json.dumps({"id": 1, "operation": "unread"}).encode()
    host.send(body + b" " * ((1 << 20) - len(body)))
    check("reply" in host.answer(1), "the longest message")
    for byte in struct.pack("=I", len(body)) + body:
        host.write(bytes([byte]))
    check("reply" in host.answer(1), "byte by byte")
    host.write((struct.pack("=I", len(body)) + body) * 500)
    for _ in range(500):
        check("reply" in host.answer(1), "many at once")
    check(host.end() == 0, "the end")
    return f"{len(wrong) + 8} messages, 5 callers, 5 frames"


def nothing_left(ada, bob):
    host = browser.Host(ada)
    host.send({"id": 1, "operation": "send", "to": [bob.uuid], "hex": {"links": [{"url": "https://example.org/end"}]}, "key": "end"})
    check(host.end() == 0, "it did not end with its input")
    children = [name for name in os.listdir("/proc") if name.isdigit() and os.path.exists(f"/proc/{name}/stat")
                and open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()[1] == str(host.process.pid)]
    check(not children, f"children are left: {children}")
    host = browser.Host(ada)
    host.ok("unread")
    host.process.stdout.close()
    host.send({"id": 2, "operation": "unread"})
    host.process.stdin.close()
    check(host.process.wait(rig.STALL_LIMIT) == 0, "a browser that reads no more")
    return "ends with its input"


TESTS = [operations, later, daemon_away, pages, hostile_texts, forged, nothing_left]


def run(options, folder):
    ada, bob = rig.pair(folder, "ada", "bob")
    for test in TESTS:
        if options.only in (None, test.__name__):
            print(f"{test.__name__}: {test(ada, bob)}")


if __name__ == "__main__":
    rig.main(run, __doc__, options=[(["--only"], {"help": "one of " + ", ".join(test.__name__ for test in TESTS)})])
