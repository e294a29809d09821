#!/usr/bin/env python3
"""The extension in real browsers, headless: everything it sends and shows, once in Chromium and once in Firefox.

    Tests/Browser/extension_items.py --verbose --pictures /tmp/pictures

Three machines of a lab: ada uses Chromium, bob Firefox, cyd neither. Both send a page, links, an image, tabs with groups and trees,
highlighted tabs and bookmarks, to one, to several and to a group, and show received hexes: badge, list, tabs in a group, bookmarks. Pages
sent by ada's Chromium open in bob's Firefox. Chromium's worker is stopped and woken; the host is missing; the daemon and a peer are away; 5
200 tabs; hostile texts. axe reports no problem.

Chromium's menus are not pages, so the test calls the extension's click handler directly, with the needed permissions granted in advance.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import extension_rig as browser
import rig
import rig_hosts

HOSTS = ("ada", "bob", "cyd")
HOSTILE = "<img src=x onerror=document.title='owned'>\u202egnp.exe"


def check(holds, what):
    if not holds:
        raise rig.Failure(str(what))


class Stage:
    def __init__(self, folder, playwright, options, lab):
        self.folder, self.playwright, self.pictures = folder, playwright, options.pictures
        self.ada, self.bob, self.cyd = (rig_hosts.HostDaemon(folder, name, lab, name) for name in HOSTS)
        for daemon in (self.ada, self.bob, self.cyd):
            daemon.start()
        rig.meet(self.ada, self.bob)
        rig.meet(self.ada, self.cyd)
        self.ada.api("POST", "/v1/groups/team/add", {"peers": [self.bob.uuid, self.cyd.uuid]})
        address = lab.run("path", "bob", "address")
        self.pages = browser.Pages(address)
        self.extension = browser.copy_of_the_extension(folder, "tabs", "tabGroups", "bookmarks", hosts=[f"http://{address}/*"])

    def inbox(self, daemon, description):
        return browser.await_hex(daemon, lambda hex: hex["subject"] == description or hex["description"] == description, f"{description} at {daemon.name}")


# --- Chromium


def chromium_sends(stage, it):
    ada, bob, cyd, pages = stage.ada, stage.bob, stage.cyd, stage.pages
    page = it.visit(pages.url("one"))

    popup = it.real_popup(page)
    check("Page one" in popup.js("document.body.innerText"), "the popup does not name the page")
    popup.send("page", [bob.uuid], "The page")
    got = stage.inbox(bob, "The page")
    check(browser.urls(got) == [pages.url("one")] and got["links"][0]["linkDescription"] == "Page one", got)
    popup.close()

    for item, info, expected, description in (
            ("link", {"linkUrl": pages.url("two")}, [pages.url("two")], "The link"),
            ("image", {"srcUrl": pages.url("dot.svg"), "mediaType": "image"}, [pages.url("dot.svg")], "The image"),
            ("page", {}, [pages.url("one")], "From the menu")):
        popup = it.menu(page, item, **info)
        popup.until("document.querySelector('input[name=what][value=draft]')?.checked", "the draft")
        popup.send(None, [bob.uuid], description)
        check(browser.urls(stage.inbox(bob, description)) == expected, description)
        popup.close()
    page.evaluate("getSelection().selectAllChildren(document.getElementById('links'))")
    popup = it.menu(page, "selection", selectionText="Read the first, the second and https://written.example/. No more", frameId=0)
    popup.until("document.querySelector('input[name=what][value=draft]')?.checked", "the draft")
    popup.send(None, [bob.uuid, cyd.uuid], "The selection")
    for daemon in (bob, cyd):
        check(browser.urls(stage.inbox(daemon, "The selection")) == [pages.url("one"), pages.url("two"), "https://written.example/"], "the selected links")
    popup.close()
    popup = it.menu(page, "link", linkUrl="javascript:alert(1)")
    popup.shows("#choices", "only works on this machine")
    check(popup.js("document.querySelector('input[name=what][value=draft]').disabled"), "a script can be sent")
    popup.close()
    page.close()
    return "page, link, image, selection, several peers"


def chromium_tabs(stage, it):
    bob, pages = stage.bob, stage.pages
    urls = {name: pages.url(name) for name in ("alone", "root", "leaf", "branch", "twig", "grouped", "grouped-too")}
    it.worker_js("""(async (urls) => {
        const tab = async (url, openerTabId) => (await chrome.tabs.create({ url, openerTabId, active: false })).id;
        await tab(urls.alone);
        const root = await tab(urls.root);
        await tab(urls.leaf, root);
        const branch = await tab(urls.branch, root);
        await tab(urls.twig, branch);
        const groupId = await chrome.tabs.group({ tabIds: [await tab(urls.grouped), await tab(urls['grouped-too'])] });
        await chrome.tabGroups.update(groupId, { title: 'A group' });
        for (const one of await chrome.tabs.query({ url: 'about:blank' })) await chrome.tabs.update(one.id, { active: true });
    })(%s)""" % json.dumps(urls))
    rig.until(lambda: all(any(tab["url"] == url and tab["title"].startswith("Page") for tab in it.tabs()) for url in urls.values()), "the tabs")
    popup = it.real_popup(it.context.pages[0])
    told = popup.send("window", ["@team"], "The window")
    got = stage.inbox(bob, "The window")
    inside = {child["description"]: child for child in got["children"]}
    check([link["url"] for link in got["links"]] == [urls["alone"]], got)
    check(set(inside) == {"Page root", "A group"}, list(inside))
    check([link["url"] for link in inside["A group"]["links"]] == [urls["grouped"], urls["grouped-too"]], inside["A group"])
    check([link["url"] for link in inside["Page root"]["links"]] == [urls["root"], urls["leaf"]], inside["Page root"])
    check(browser.urls(inside["Page root"]["children"][0]) == [urls["branch"], urls["twig"]], inside["Page root"])
    check("left out" in told, told)
    check(stage.cyd.status()["inbox"] > 0, "the group's other machine has nothing")
    popup.js("document.getElementById('keep').click()")
    popup.send("window", [bob.uuid], "All flat")
    flat = stage.inbox(bob, "All flat")
    check("children" not in flat and len(flat["links"]) == len(urls), flat)
    popup.close()
    it.worker_js("""(async (urls) => {
        const all = await chrome.tabs.query({});
        await chrome.tabs.highlight({ tabs: all.filter((tab) => urls.includes(tab.url)).map((tab) => tab.index) });
    })(%s)""" % json.dumps([urls["alone"], urls["grouped"]]))
    page = next(page for page in it.context.pages if page.url in (urls["alone"], urls["grouped"]))
    it.worker_js("chrome.action.openPopup()")
    popup = browser.RealPopup(it, page)
    popup.send("highlighted", [bob.uuid], "Highlighted")
    check(sorted(browser.urls(stage.inbox(bob, "Highlighted"))) == sorted([urls["alone"], urls["grouped"]]), "the highlighted tabs")
    popup.close()
    for page in it.context.pages[1:]:
        page.close()
    return "a window with a group and a tree, flat, highlighted tabs, a group of peers"


def chromium_bookmarks(stage, it):
    it.worker_js("""(async () => {
        const folder = await chrome.bookmarks.create({ title: 'Recipes' });
        await chrome.bookmarks.create({ parentId: folder.id, title: 'Bread', url: 'https://bread.example/' });
        await chrome.bookmarks.create({ parentId: folder.id, title: 'A script', url: 'javascript:alert(1)' });
        const inside = await chrome.bookmarks.create({ parentId: folder.id, title: 'Soups' });
        await chrome.bookmarks.create({ parentId: inside.id, title: 'Lentils', url: 'https://lentils.example/' });
    })()""")
    popup = it.popup()
    popup.choose("bookmarks")
    popup.until("document.getElementById('folder').options.length > 1", "the folders")
    popup.page.select_option("#folder", label=popup.js("[...document.getElementById('folder').options].find((one) => one.text.includes('Recipes')).text"))
    popup.send(None, [stage.bob.uuid])
    got = stage.inbox(stage.bob, "Recipes")
    check(browser.urls(got) == ["https://bread.example/", "https://lentils.example/"] and got["children"][0]["description"] == "Soups", got)
    popup.close()
    return "a folder with a folder in it"


def chromium_receives(stage, it):
    ada, bob, pages = stage.ada, stage.bob, stage.pages
    before = ada.status()["unread"]
    bob.api("POST", f"/v1/sends?to={ada.uuid}", {
        "description": "To read", "links": [{"url": pages.url("r1"), "linkDescription": "First"}, {"url": "javascript:alert(1)"}, pages.url("r2")],
        "children": [{"description": "More of it", "links": [pages.url("r3")]}]})
    rig.until(lambda: it.badge() == str(before + 1), "the badge")
    popup = it.popup()
    popup.click("#tab-inbox")
    popup.shows("#hexes", "To read")
    popup.click("#hexes li:first-child button")
    popup.shows("#links", "links are blocked")
    check(popup.text("#open") == "Open all 3", popup.text("#open"))
    popup.click("#save")
    popup.shows("#done", "Saved 3 bookmarks")
    tree = it.worker_js("chrome.bookmarks.search({ title: 'To read' }).then(([folder]) => chrome.bookmarks.getSubTree(folder.id))")
    check([child.get("url") or [inside["url"] for inside in child["children"]] for child in tree[0]["children"]]
          == [pages.url("r1"), pages.url("r2"), [pages.url("r3")]], tree)
    popup.click("#open")
    rig.until(lambda: {tab["url"] for tab in it.tabs()} >= {pages.url(name) for name in ("r1", "r2", "r3")}, "the tabs")
    groups = rig.until(lambda: len(it.groups()) == 2 and it.groups(), "the groups")
    where = {tab["url"]: groups.get(tab["groupId"]) for tab in it.tabs()}
    check(where[pages.url("r1")] == where[pages.url("r2")] == "To read" and where[pages.url("r3")] == "More of it", where)
    rig.until(lambda: ada.status()["unread"] == before, "the mark")
    rig.until(lambda: it.badge() == (str(before) if before else ""), "the badge")
    for page in it.context.pages[1:]:
        page.close()
    return "badge, list, bookmarks, tabs in groups"


def chromium_later(stage, it):
    """A hex that is queued, and stored while the worker is stopped; and a worker that is stopped in the middle of a send."""
    ada, bob = stage.ada, stage.bob
    bob.stop()
    rig.until(lambda: ada.api("GET", f"/v1/peers/{bob.uuid}")["state"] == "away", "bob is away")
    page = it.visit(stage.pages.url("one"))
    popup = it.real_popup(page)
    popup.shows("#recipients", "away; delivered when it is back")
    popup.send("page", [bob.uuid], "For later", expects="waiting")
    popup.shows("#sends li", "the peer is away")
    bob.start()
    popup.shows("#sends li .good", "delivered")
    popup.close()

    bob.stop()
    rig.until(lambda: ada.api("GET", f"/v1/peers/{bob.uuid}")["state"] == "away", "bob is away")
    popup = it.real_popup(page)
    popup.send("page", [bob.uuid], "While it slept", expects="waiting")
    popup.close()
    it.stop_worker()
    bob.start()
    stage.inbox(bob, "While it slept")
    popup = it.popup()
    popup.shows("#sends li .good", "delivered")
    check(it.worker_js("chrome.action.getBadgeText({})") is not None, "the worker is not awake")
    # A send whose worker was stopped before the daemon got it continues, once.
    it.worker_js("""chrome.storage.local.get('sends').then(({ sends }) => chrome.storage.local.set({
        sends: [{ id: 'broken-off', at: Date.now(), what: 'Broken off', links: 1, to: ['%s'], of: 1, done: 0, rows: [] }, ...sends],
        'hexes:broken-off': [{ description: 'Broken off', links: [{ url: 'https://example.org/broken-off' }], hexes: [] }],
    }))""" % bob.uuid)
    popup.close()
    it.stop_worker()
    popup = it.popup()
    stage.inbox(bob, "Broken off")
    popup.shows("#sends li .good", "delivered")
    count = sum(item["description"] == "Broken off" for item in bob.api("GET", "/v1/hexes?limit=100")["items"])
    check(count == 1, f"sent {count} times")
    rig.until(lambda: it.worker_js("chrome.storage.local.get(null).then((all) => !Object.keys(all).some((key) => key.startsWith('hexes:')))"), "its hexes to be gone")
    popup.click("#clear")
    popup.until("document.getElementById('lately').hidden", "the list to be gone")
    check(it.worker_js("chrome.storage.local.get('sends').then(({ sends }) => sends.length)") == 0, "sends are left")
    popup.close()
    page.close()
    return "queued then stored, with the popup open, and with the worker stopped; broken off and taken up"


def chromium_why_not(stage, it):
    ada, bob, cyd = stage.ada, stage.bob, stage.cyd
    cyd.api("POST", f"/v1/peers/{ada.uuid}/block", {})
    page = it.visit(stage.pages.url("one"))
    popup = it.real_popup(page)
    told = popup.send("page", [cyd.uuid], "Refused", expects="refused")
    popup.shows("#sends li .bad", "refused")
    popup.close()
    cyd.api("POST", f"/v1/peers/{ada.uuid}/unblock", {})
    cyd.api("POST", f"/v1/peers/{ada.uuid}/trust", {})

    popup = it.real_popup(page)
    popup.choose("page", [bob.uuid], "Tried again")
    ada.stop()
    popup.click("#submit")
    popup.shows("#outcome", "Not sent: hexlistd is not running")
    popup.close()
    popup = it.real_popup(page)
    popup.shows("#fault", "hexlistd is not running")
    ada.start()
    rig.await_sight(ada, bob)
    popup.click("#sends li button")
    popup.shows("#sends li .good", "delivered")
    check(browser.urls(stage.inbox(bob, "Tried again")) == [page.url], "what was tried again")
    popup.close()
    popup = it.real_popup(page)
    popup.until("document.getElementById('fault').hidden", "the fault's end")
    popup.send("page", [bob.uuid], "After all")
    stage.inbox(bob, "After all")
    popup.close()
    page.close()
    return f"blocked ({told.split(': ')[1]}); the daemon away, tried again, and back"


def chromium_many(stage, it):
    """5 200 tabs become two hexes; at most 200 tabs are opened."""
    ada, bob = stage.ada, stage.bob
    popup = it.popup()
    result = popup.js("""(async () => {
        const { hexOfTabs, parts, countLinks } = await import('./hexes.js');
        const tabs = Array.from({ length: 5200 }, (_, id) => ({ id, groupId: -1, url: `https://example.org/${id}/${'x'.repeat(60)}`, title: `Title ${id}` }));
        const { hex } = hexOfTabs(tabs);
        const deep = hexOfTabs(tabs.slice(0, 40).map((tab) => ({ ...tab, openerTabId: tab.id - 1 }))).hex;
        const ring = hexOfTabs(tabs.slice(0, 3).map((tab) => ({ ...tab, openerTabId: (tab.id + 1) % 3 }))).hex;
        const levels = (hex) => 1 + Math.max(0, ...hex.hexes.map(levels));
        const groups = hexOfTabs(tabs.map((tab) => ({ ...tab, groupId: tab.id % 1000 }))).hex;
        const big = parts({ description: 'Big', links: [], hexes: [hex, groups] });
        return { parts: parts(hex).map(countLinks), levels: levels(deep), deep: countLinks(deep), ring: countLinks(ring),
                 groups: parts(groups).map(countLinks), big: big.map(countLinks), sizes: big.map((one) => JSON.stringify(one).length) };
    })()""")
    check(sum(result["parts"]) == 5200 and len(result["parts"]) == 2 and max(result["parts"]) <= 5000, result)
    check(result["levels"] <= 8 and result["deep"] == 40 and result["ring"] == 3, result)
    check(sum(result["groups"]) == 5200 and sum(result["big"]) == 10400 and max(result["sizes"]) < 1 << 20, result)
    record = popup.js("""(async () => {
        const links = Array.from({ length: 5200 }, (_, id) => ({ url: `https://example.org/${id}/${'x'.repeat(60)}`, title: `Title ${id}` }));
        return (await chrome.runtime.sendMessage({ do: 'send', what: 'Many', note: 'Many', to: ['%s'],
                                                   choice: { from: 'draft', hex: { description: '', links, hexes: [] } } })).value;
    })()""" % bob.uuid)
    check(record["of"] == 2 and [row["state"] for row in record["rows"]] == ["stored", "stored"], record)
    stage.inbox(bob, "Many (2 of 2)")
    bob.api("POST", f"/v1/sends?to={ada.uuid}", {"description": "Too many", "links": [f"http://127.0.0.1:9/{number}" for number in range(230)]})
    popup.click("#tab-inbox")
    popup.shows("#hexes", "Too many")
    popup.click("#hexes li:first-child button")
    popup.shows("#links", "http://127.0.0.1:9/229")
    popup.click("#open")
    popup.shows("#done", "Press again")
    check(len(it.tabs()) < 10, "tabs were opened unasked")
    popup.close()
    return f"5 200 links in {result['parts']}, trees of 8 levels; 230 tabs are asked about"


def chromium_hostile(stage, it):
    ada, bob = stage.ada, stage.bob
    bob.api("POST", f"/v1/sends?to={ada.uuid}", {
        "description": HOSTILE, "senderName": HOSTILE, "color": "red;background:url(//evil.example)",
        "links": [{"url": "https://evil.example/?" + HOSTILE.replace(" ", ""), "linkDescription": HOSTILE}, {"url": "javascript:document.title='owned'", "linkDescription": HOSTILE},
                  {"url": "https://fine.example/", "linkDescription": HOSTILE}], "children": [{"description": HOSTILE, "links": ["data:text/html,x"]}]})
    popup = it.popup()
    asked = []
    popup.page.on("request", lambda request: asked.append(request.url))
    popup.click("#tab-inbox")
    popup.shows("#hexes", "onerror")
    popup.click("#hexes li:first-child button")
    popup.shows("#links", "fine.example")
    found = popup.js("""({ images: document.querySelectorAll('main img, main script, main iframe').length, title: document.title,
                           hrefs: [...document.querySelectorAll('#links a')].map((a) => a.href), text: document.body.innerText })""")
    check(found["images"] == 0 and found["title"] == "Hexlist" and found["hrefs"] == ["https://fine.example/"], found)
    check("\u202e" not in found["text"] and "<img src=x" in found["text"], found["text"])
    check(not [url for url in asked if not url.startswith(browser.ORIGIN)], asked)
    # No other page may call the worker, and the worker forwards only messages that the popup may send.
    answers = popup.js("""Promise.all(['trust', 'send', 'rows', 'status'].map((operation) =>
        chrome.runtime.sendMessage({ do: 'host', operation, members: {} })))""")
    check(all("error" in answer for answer in answers), answers)
    page = it.visit(stage.pages.url("one"))
    check(page.evaluate("typeof chrome === 'undefined' || typeof chrome.runtime === 'undefined' || typeof chrome.runtime.sendMessage === 'undefined'"), "a page may write to the extension")
    check(page.evaluate(f"fetch('{browser.ORIGIN}popup.html').then(() => 'read', () => 'refused')") == "refused", "a page reads the extension's files")
    page.close()
    popup.close()
    return "text stays text; pages get nothing"


def looks(stage, it):
    """Checks the popup with axe at a width of 360 px, in the light and the dark scheme, and takes pictures."""
    from axe_playwright_python.sync_playwright import Axe
    for description, links in (("Reading for the weekend", ["https://www.sqlite.org/wal.html Write-Ahead Logging", "https://avahi.org/ Avahi"]),
                               ("קריאה לסוף השבוע", ["https://example.org/ דף ראשון", "javascript:alert(1) no link"]), ("Tabs of the old laptop", ["https://example.net/"])):
        stage.bob.api("POST", f"/v1/sends?to={stage.ada.uuid}", {
            "description": description, "links": [dict(zip(("url", "linkDescription"), link.split(" ", 1))) for link in links],
            "children": [{"description": "Later", "links": [{"url": "https://example.org/later", "linkDescription": "For later"}]}]})
    popup = it.popup()
    page = popup.page
    it.visit(stage.pages.url("one"))
    page.bring_to_front()
    popup.send("window", [stage.bob.uuid, stage.cyd.uuid], "Pictures")
    popup.until("document.querySelectorAll('input[name=to]').length > 2", "the peers")
    views = {"send": lambda: popup.click("#tab-send"), "inbox": lambda: popup.click("#tab-inbox"), "hex": lambda: popup.click("#hexes li:nth-child(2) button")}
    found = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        for width in (320, 360):
            page.set_viewport_size({"width": width, "height": 640})
            for name, show in views.items():
                popup.js("document.getElementById('detail').hidden || document.getElementById('back').click()")
                show()
                popup.until({"send": "!document.getElementById('send').hidden", "inbox": "document.querySelectorAll('#hexes li').length > 1",
                             "hex": "document.querySelectorAll('#links li').length > 0"}[name], name)
                check(popup.js("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than {width} px")
                if stage.pictures:
                    page.screenshot(path=os.path.join(stage.pictures, f"extension-{name}-{scheme}-{width}.png"), full_page=True)
                found += [f"{name}, {scheme}: {one['id']} {[node['html'] for node in one['nodes']]}" for one in Axe().run(page).response["violations"]]
    check(not found, found)
    page.set_viewport_size({"width": 360, "height": 640})
    popup.click("#back")
    popup.js("document.documentElement.dir = 'rtl'")
    popup.click("#tab-send")
    check(popup.js("document.documentElement.scrollWidth <= innerWidth"), "right to left is wider than the window")
    if stage.pictures:
        page.screenshot(path=os.path.join(stage.pictures, "extension-rtl.png"), full_page=True)
    # The popup is operated by keyboard only.
    popup.js("document.documentElement.dir = 'ltr'")
    page.focus("#tab-send")
    page.keyboard.press("ArrowRight")
    popup.until("document.activeElement.id === 'tab-inbox' && !document.getElementById('inbox').hidden", "the inbox by a key")
    page.keyboard.press("Tab")
    popup.until("document.activeElement.className.startsWith('hex')", "the first hex by a key")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    popup.until("document.activeElement.id === 'subject'", "a hex by a key")
    popup.close()
    return "320 and 360 px, light and dark, right to left, keys; axe: 0 violations"


def documents(stage, it):
    """The pictures of Docs/Browser.md: `--only documents --pictures Docs/pictures`."""
    ada, bob = stage.ada, stage.bob
    page = it.context.new_page()
    page.route("https://www.sqlite.org/**", lambda route: route.fulfill(body="<!doctype html><title>Write-Ahead Logging</title>", content_type="text/html"))
    page.goto("https://www.sqlite.org/wal.html")
    for url in ("https://avahi.org/", "https://www.swift.org/documentation/"):
        page.context.route(url, lambda route: route.fulfill(body="<!doctype html><title>A page</title>", content_type="text/html"))
        it.visit(url)
    bob.api("POST", f"/v1/sends?to={ada.uuid}", {"description": "Recipes", "links": ["https://bread.example/"]})
    bob.api("POST", f"/v1/sends?to={ada.uuid}", {
        "description": "Reading for the weekend",
        "links": [{"url": "https://www.sqlite.org/wal.html", "linkDescription": "Write-Ahead Logging"}, {"url": "https://avahi.org/", "linkDescription": "Avahi"}],
        "children": [{"description": "For later", "links": [{"url": "https://www.swift.org/documentation/", "linkDescription": "Swift documentation"}]}]})
    popup = it.real_popup(page)
    popup.choose("window", [bob.uuid], "What I looked at today")
    if stage.pictures:
        popup.picture(os.path.join(stage.pictures, "extension-send.png"))
    popup.click("#tab-inbox")
    popup.shows("#hexes", "Reading for the weekend")
    popup.click("#hexes li:first-child button")
    popup.shows("#links", "Swift documentation")
    if stage.pictures:
        popup.picture(os.path.join(stage.pictures, "extension-hex.png"))
    popup.close()
    for page in it.context.pages[1:]:
        page.close()
    return "two pictures"


def chromium_without_host(stage):
    it = browser.Chromium(stage.playwright, stage.cyd, installs=False)
    try:
        popup = it.popup()
        popup.shows("#fault", "hexlist browser --install")
        if stage.pictures:
            popup.page.screenshot(path=os.path.join(stage.pictures, "extension-missing.png"), full_page=True)
        browser.install(stage.cyd, "--chromium")
        popup.click("#again")
        popup.until("document.querySelectorAll('input[name=to]').length > 0", "peers after --install")
        done = stage.cyd.hexlist("browser", "--remove")
        check("removed" in done.stdout and "hexlist-browser" in done.stdout, done)
    finally:
        it.close()
    return "says so, and finds it without a restart"


CHROMIUM = [chromium_sends, chromium_tabs, chromium_bookmarks, chromium_receives, chromium_later, chromium_why_not, chromium_many, chromium_hostile, looks, documents]


# --- Firefox


def firefox_sends(stage, it):
    ada, pages = stage.ada, stage.pages
    handle = it.visit(pages.url("one"))
    for item, selector, label, expected, description in (
            ("page", "h1", "Send this page…", [pages.url("one")], "F page"),
            ("link", "a", "Send this link…", [pages.url("one")], "F link"),
            ("image", "#image", "Send this image…", [pages.url("dot.svg")], "F image")):
        popup = it.menu(handle, item, selector, label)
        popup.until("document.querySelector('input[name=what][value=draft]')?.checked", "the draft")
        popup.send(None, [ada.uuid], description)
        check(browser.urls(stage.inbox(ada, description)) == expected, description)
        popup.close()
    it.driver.switch_to_window(handle)
    it.driver.execute_script("getSelection().selectAllChildren(document.getElementById('links'))")
    popup = it.menu(handle, "selection", "#links a", "Send the selected links…")
    popup.until("document.querySelector('input[name=what][value=draft]')?.checked", "the draft")
    popup.send(None, [ada.uuid], "F selection")
    check(browser.urls(stage.inbox(ada, "F selection")) == [pages.url("one"), pages.url("two")], "the selected links")
    popup.close()
    return "page, link, image, selection by the real menu"


def firefox_tabs(stage, it):
    ada, pages = stage.ada, stage.pages
    for name in ("alone", "grouped", "grouped-too"):
        it.visit(pages.url(name))
    result = it.chrome("""
        const tabs = gBrowser.tabs.filter((tab) => tab.linkedBrowser.currentURI.spec.includes("/grouped"));
        gBrowser.addTabGroup(tabs, { label: "A group" });
        return tabs.length;""")
    check(result == 2, result)
    popup = it.popup()
    popup.send("window", [ada.uuid], "F window")
    got = stage.inbox(ada, "F window")
    groups = {child["description"]: browser.urls(child) for child in got["children"]}
    check(groups.get("A group") == [pages.url("grouped"), pages.url("grouped-too")], got)
    check(pages.url("alone") in [link["url"] for link in got["links"]], got)
    it.chrome("""gBrowser.addToMultiSelectedTabs(gBrowser.tabs.find((tab) => tab.linkedBrowser.currentURI.spec.endsWith("/alone"))); return "";""")
    popup.js("location.reload() || true")
    popup.send("highlighted", [ada.uuid], "F highlighted")
    check(browser.urls(stage.inbox(ada, "F highlighted")) == [pages.url("alone")], "the highlighted tabs")
    popup.close()
    return "a window with a group, highlighted tabs"


def firefox_bookmarks(stage, it):
    it.chrome("""
        const { PlacesUtils } = ChromeUtils.importESModule("resource://gre/modules/PlacesUtils.sys.mjs");
        const { bookmarks } = PlacesUtils;
        await bookmarks.insertTree({ guid: bookmarks.unfiledGuid, children: [{ title: "Recipes", type: bookmarks.TYPE_FOLDER, children: [
          { title: "Bread", url: "https://bread.example/" }, { title: "A script", url: "javascript:alert(1)" }, { type: bookmarks.TYPE_SEPARATOR },
          { title: "Soups", type: bookmarks.TYPE_FOLDER, children: [{ title: "Lentils", url: "https://lentils.example/" }] }] }] });
        return "";""")
    popup = it.popup()
    popup.choose("bookmarks")
    popup.until("document.getElementById('folder').options.length > 1", "the folders")
    popup.js("{ const folder = document.getElementById('folder'); folder.value = [...folder.options].find((one) => one.text.includes('Recipes')).value; } true")
    popup.send(None, [stage.ada.uuid])
    got = stage.inbox(stage.ada, "Recipes")
    check(browser.urls(got) == ["https://bread.example/", "https://lentils.example/"] and got["children"][0]["description"] == "Soups", got)
    popup.close()
    return "a folder with a folder in it, permission asked at its first use"


def firefox_receives(stage, it, description="To read", sends=True):
    ada, bob, pages = stage.ada, stage.bob, stage.pages
    if sends:
        ada.api("POST", f"/v1/sends?to={bob.uuid}", {
            "description": description, "links": [{"url": pages.url("f1"), "linkDescription": "First"}, {"url": "javascript:alert(1)"}],
            "children": [{"description": "More of it", "links": [pages.url("f2")]}]})
    rig.until(lambda: it.badge() == str(bob.status()["unread"]), "the badge")
    popup = it.popup()
    popup.click("#tab-inbox")
    popup.shows("#hexes", description)
    popup.js(f"[...document.querySelectorAll('#hexes button')].find((one) => one.textContent.includes({json.dumps(description)})).click() || true")
    popup.until("document.querySelectorAll('#links li').length > 0", "the links")
    count = popup.js("document.querySelectorAll('#links a').length")
    popup.click("#save")
    popup.shows("#done", f"Saved {count} bookmark")
    urls = popup.js("[...document.querySelectorAll('#links a')].map((a) => a.href)")
    popup.click("#open")
    rig.until(lambda: {tab["url"] for tab in it.tabs()} >= set(urls), "the tabs")
    rig.until(lambda: description in [tab["group"] for tab in it.tabs()], f"the group {description}")
    groups = {tab["url"]: tab["group"] for tab in it.tabs() if tab["group"]}
    rig.until(lambda: it.badge() == (str(bob.status()["unread"]) if bob.status()["unread"] else ""), "the badge")
    popup.close()
    return groups


def firefox_receives_and_opens(stage, it):
    groups = firefox_receives(stage, it)
    check(groups.get(stage.pages.url("f1")) == "To read" and groups.get(stage.pages.url("f2")) == "More of it", groups)
    return "badge, list, bookmarks, tabs in groups"


def firefox_woken(stage, it):
    """A hex that is queued, and stored while the background page is stopped."""
    ada, bob = stage.ada, stage.bob
    ada.stop()
    rig.until(lambda: bob.api("GET", f"/v1/peers/{ada.uuid}")["state"] == "away", "ada is away")
    popup = it.menu(it.visit(stage.pages.url("one")), "page", "h1", "Send this page…")
    popup.until("document.querySelector('input[name=what][value=draft]')?.checked", "the draft")
    popup.send(None, [ada.uuid], "F while it slept", expects="waiting")
    popup.close()
    it.stop_worker()
    ada.start()
    stage.inbox(ada, "F while it slept")
    popup = it.popup()
    popup.shows("#sends li .good", "delivered")
    popup.close()
    return "queued then stored, with the background stopped"


def firefox_without_host(stage):
    it = browser.Firefox(stage.cyd, installs=False)
    try:
        popup = it.popup()
        popup.shows("#fault", "hexlist browser --install")
        browser.install(stage.cyd, "--firefox")
        popup.click("#again")
        popup.until("document.querySelectorAll('input[name=to]').length > 0", "peers after --install")
    finally:
        it.close()
    return "says so, and finds it without a restart"


FIREFOX = [firefox_sends, firefox_tabs, firefox_bookmarks, firefox_receives_and_opens, firefox_woken]


def between(stage, chromium, firefox):
    """A window of ada's Chromium is opened as tabs in bob's Firefox."""
    names = ["across-one", "across-two"]
    for name in names:
        chromium.visit(stage.pages.url(name))
    popup = chromium.popup()
    popup.send("window", [stage.bob.uuid], "Across")
    popup.close()
    stage.inbox(stage.bob, "Across")
    firefox_receives(stage, firefox, "Across", sends=False)
    check({stage.pages.url(name) for name in names} <= {tab["url"] for tab in firefox.tabs()}, firefox.tabs())
    for page in chromium.context.pages[1:]:
        page.close()
    return "two tabs"


def run(options, folder):
    if not options.inside:
        lab = rig_hosts.Lab(f"extension-{os.getpid()}", *HOSTS)
        try:
            sys.exit(lab.inside("bob", sys.executable, *sys.argv, "--inside"))
        finally:
            lab.down()
    from playwright.sync_api import sync_playwright
    if options.pictures:
        os.makedirs(options.pictures, exist_ok=True)
    chosen = lambda test: options.only is None or test.__name__ in options.only.split(",")
    with sync_playwright() as playwright:
        stage = Stage(folder, playwright, options, rig_hosts.Lab(os.environ["HEXLIST_LAB"]))
        chromium = firefox = None
        try:
            if any(map(chosen, CHROMIUM + [between])):
                chromium = browser.Chromium(playwright, stage.ada, stage.extension)
            for test in filter(chosen, CHROMIUM):
                print(f"{test.__name__}: {test(stage, chromium)}")
            if any(map(chosen, FIREFOX + [between])):
                firefox = browser.Firefox(stage.bob)
            for test in filter(chosen, FIREFOX):
                print(f"{test.__name__}: {test(stage, firefox)}")
            if chosen(between):
                print(f"between: {between(stage, chromium, firefox)}")
        finally:
            for it in (chromium, firefox):
                if it:
                    it.close()
        for test in filter(chosen, [chromium_without_host, firefox_without_host]):
            print(f"{test.__name__}: {test(stage)}")


if __name__ == "__main__":
    rig.main(run, __doc__, needs=[rig.need_lab, browser.need_chromium, browser.need_firefox], options=[
        (["--only"], {"help": "names of tests, separated by commas"}), (["--pictures"], {"help": "a folder for pictures of the popup"}),
        (["--inside"], {"action": "store_true", "help": argparse.SUPPRESS})])
