// The extension's worker. A browser stops it whenever it likes: what has to last is in its storage, and everything begins again from that.

import { Host, HostError } from "./host.js";
import { canBeSent, countLinks, hexOf, hexOfBookmarks, hexOfTabs, link, linksInText, parts } from "./hexes.js";

const api = globalThis.browser ?? globalThis.chrome;

/** Sends that are remembered, and tabs that are opened at once. */
const most = { sends: 20, opened: 200, tabs: 20_000 };
/** Milliseconds until a program that ended is run again, doubled each time up to the second; the first again after one that lasted as long as that. */
const pauses = { first: 2_000, longest: 60_000 };

let pause = pauses.first;
/** When `begin` last ran the program. */
let begun = 0;
const host = new Host(onEvent, onEnd);

// --- The program

function onEvent(name, value) {
  if (name === "unread") showUnread(value);
  if (name === "row") void rowsChanged([value]);
  if (name === "recipients") void api.storage.session.set({ recipients: Date.now(), fault: null });
  if (name === "daemon") {
    showUnread(0);
    void api.storage.session.set({ fault: value });
  }
}

function onEnd(error) {
  showUnread(0);
  void api.storage.session.set({ fault: error.told });
  if (error.code === "hostMissing") return; // the person has to do something first
  if (Date.now() - begun > pauses.longest) pause = pauses.first;
  setTimeout(() => void begin(), pause);
  pause = Math.min(pause * 2, pauses.longest);
}

function showUnread(count) {
  void api.action.setBadgeText({ text: count > 999 ? "999+" : count > 0 ? String(count) : "" });
  void api.action.setTitle({ title: count > 0 ? `Hexlist: ${count} unread` : "Hexlist" });
  void api.storage.session.set({ unread: count });
}

/** Connects, and takes up what was under way when the worker was stopped. */
async function begin() {
  if (!host.isConnected) begun = Date.now();
  try {
    const counts = await host.request("unread");
    await api.storage.session.set({ name: counts.name, fault: null });
    showUnread(counts.unread);
    await refreshSends();
  } catch (error) {
    if (error instanceof HostError) await api.storage.session.set({ fault: error.told });
    else throw error;
  }
}

// --- Sends
//
// `sends` has a record of each: {id, at, what, links, to, of, done, rows, error}. Its hexes stand beside it until the daemon has them.

let turn = Promise.resolve();

/** One change of the records at a time. */
function change(body) {
  const done = turn.then(async () => {
    const { sends = [] } = await api.storage.local.get("sends");
    const result = body(sends);
    for (const gone of sends.splice(most.sends)) await api.storage.local.remove(`hexes:${gone.id}`);
    await api.storage.local.set({ sends });
    return result;
  });
  turn = done.catch(() => {});
  return done;
}

async function send({ to, hex, what, leftOut }) {
  const hexes = parts(hex);
  const record = { id: crypto.randomUUID(), at: Date.now(), what, links: countLinks(hex), leftOut, to, of: hexes.length, done: 0, rows: [] };
  if (record.links === 0) throw new HostError("badRequest", "There is no link in it that can be sent.", leftOutText(leftOut));
  await api.storage.local.set({ [`hexes:${record.id}`]: hexes });
  await change((sends) => sends.unshift(record));
  return await deliver(record.id);
}

const leftOutText = (count) => (count > 0 ? "Pages of the browser itself and files of this machine mean nothing on another one." : undefined);

const delivering = new Set();

/** Hands a send to the daemon. The same key names the same hex, so a worker that was stopped in between may do it again. */
async function deliver(id) {
  if (delivering.has(id)) return null;
  delivering.add(id);
  try {
    const key = `hexes:${id}`;
    const hexes = (await api.storage.local.get(key))[key] ?? [];
    let record = await change((sends) => sends.find((one) => one.id === id));
    while (record && record.done < hexes.length) {
      try {
        const { rows } = await host.request("send", { to: record.to, hex: hexes[record.done], key: `${id}.${record.done}` });
        record = await change((sends) => {
          const one = sends.find((one) => one.id === id);
          if (!one) return null;
          one.rows.push(...rows);
          one.done += 1;
          delete one.error;
          return one;
        });
      } catch (error) {
        if (!(error instanceof HostError)) throw error;
        return await change((sends) => {
          const one = sends.find((one) => one.id === id);
          if (one) one.error = error.told;
          return one ?? null;
        });
      }
    }
    await api.storage.local.remove(key);
    return record ?? null;
  } finally {
    delivering.delete(id);
  }
}

/** Forgets what was sent, but for what is being handed over. The daemon goes on with what waits there. */
async function clear() {
  const gone = await change((sends) => {
    const kept = sends.filter((record) => delivering.has(record.id));
    return sends.splice(0, sends.length, ...kept).filter((record) => !kept.includes(record));
  });
  await api.storage.local.remove(gone.map((record) => `hexes:${record.id}`));
}

function rowsChanged(rows) {
  const by = new Map(rows.map((row) => [row.row, row]));
  return change((sends) => {
    for (const record of sends) record.rows = record.rows.map((row) => by.get(row.row) ?? row);
  });
}

const waits = (row) => row.state === "queued" || row.state === "sending";

/** Asks what became of rows that waited, and goes on with sends that were interrupted. */
async function refreshSends() {
  const { sends = [] } = await api.storage.local.get("sends");
  const ids = sends.flatMap((record) => record.rows.filter(waits).map((row) => row.row)).slice(0, 1000);
  // So many fit in an answer, whatever peers said of theirs.
  for (let from = 0; from < ids.length; from += 100) {
    await rowsChanged((await host.request("rows", { ids: ids.slice(from, from + 100) })).rows);
  }
  for (const record of sends) if (record.done < record.of && !record.error) await deliver(record.id);
}

// --- What came

/** A hex with all that is in it. */
async function wholeHex(id) {
  let page = await host.request("hex", { hex: id });
  const { hex, items } = page;
  while (page.next) {
    page = await host.request("hex", { hex: id, after: page.next });
    items.push(...page.items);
  }
  return { hex, items };
}

/** Opens the links that `hexlist open` would open, and no others: a group of tabs for the hex, and for each hex inside. */
async function open({ hex: id, windowId }) {
  const { hex, items } = await wholeHex(id);
  const groups = [{ title: hex.subject, urls: [] }];
  for (const item of items) {
    if (item.hex !== undefined) groups.push({ title: item.hex, urls: [] });
    else if (item.opens !== undefined) groups.at(-1).urls.push(item.url);
  }
  const result = { opened: 0, failed: 0, of: groups.reduce((sum, group) => sum + group.urls.length, 0) };
  let first;
  for (const group of groups) {
    const tabIds = [];
    for (const url of group.urls) {
      if (result.opened + result.failed >= most.opened) break;
      try {
        const tab = await api.tabs.create({ url, active: false, windowId });
        tabIds.push(tab.id);
        first ??= tab.id;
        result.opened += 1;
      } catch {
        result.failed += 1; // the browser itself does not open it
      }
    }
    if (tabIds.length > 0) await makeGroup(tabIds, group.title, windowId);
  }
  if (result.opened > 0) {
    await host.request("mark", { ids: [id], unread: false });
    await api.tabs.update(first, { active: true });
  }
  return result;
}

async function makeGroup(tabIds, title, windowId) {
  if (!api.tabs.group) return;
  try {
    const groupId = await api.tabs.group({ tabIds, createProperties: windowId === undefined ? undefined : { windowId } });
    await api.tabGroups?.update(groupId, { title: title.slice(0, 60) });
  } catch {
    // Tabs without a group, or a group without a name, are open all the same.
  }
}

/** Makes a folder of bookmarks of the links that may be opened, with folders in it for hexes inside. */
async function bookmark({ hex: id }) {
  const { hex, items } = await wholeHex(id);
  const folders = [await api.bookmarks.create({ title: hex.subject || "Hexlist" })];
  let [saved, leftOut] = [0, 0];
  for (const item of items) {
    if (item.hex !== undefined) {
      folders.length = item.level;
      folders.push(await api.bookmarks.create({ parentId: folders.at(-1).id, title: item.hex || "Hexlist" }));
    } else if (item.opens !== undefined) {
      await api.bookmarks.create({ parentId: folders.at(-1).id, title: item.title || item.url, url: item.url });
      saved += 1;
    } else leftOut += 1;
  }
  return { saved, leftOut, folder: hex.subject };
}

// --- What is open

async function hexOfWindow({ windowId, highlighted, keeps }) {
  const tabs = await api.tabs.query(highlighted ? { windowId, highlighted: true } : { windowId });
  if (tabs.length > most.tabs) throw new HostError("tooLarge", `${tabs.length} tabs are too many.`, "Highlight those you want to send.");
  const groups = new Map();
  try {
    for (const group of (await api.tabGroups?.query({ windowId })) ?? []) groups.set(group.id, group.title);
  } catch {
    // Groups keep their tabs, without names.
  }
  return hexOfTabs(tabs, groups, keeps);
}

/** What the popup chose, as a hex. */
async function hexOfChoice(choice) {
  switch (choice.from) {
    case "draft":
      return { hex: choice.hex, leftOut: 0 };
    case "window":
    case "highlighted":
      return await hexOfWindow({ windowId: choice.windowId, highlighted: choice.from === "highlighted", keeps: choice.keeps });
    case "bookmarks": {
      const [node] = await api.bookmarks.getSubTree(choice.folder);
      return hexOfBookmarks(node.url === undefined ? node : { title: node.title, children: [node] });
    }
    default:
      throw new HostError("badRequest", "There is nothing to send.");
  }
}

// --- The menu

const menus = {
  page: { title: "Send this page…", contexts: ["page"] },
  selection: { title: "Send the selected links…", contexts: ["selection"] },
  link: { title: "Send this link…", contexts: ["link"] },
  image: { title: "Send this image…", contexts: ["image"] },
  tab: { title: "Send these tabs…", contexts: ["tab"] }, // Firefox
  bookmark: { title: "Send these bookmarks…", contexts: ["bookmark"] }, // Firefox
};

async function makeMenus() {
  await api.contextMenus.removeAll();
  for (const [id, { title, contexts }] of Object.entries(menus)) {
    try {
      api.contextMenus.create({ id, title, contexts }, () => void api.runtime.lastError);
    } catch {
      // a context this browser does not have
    }
  }
}

/** The links in what is selected; run in the page, which is asked for nothing else. */
function selectedLinks() {
  const selection = getSelection();
  const found = [];
  for (const anchor of document.links) {
    if (found.length < 5000 && selection.containsNode(anchor, true)) {
      found.push({ url: anchor.href, title: (anchor.textContent || "").replace(/\s+/g, " ").trim().slice(0, 500) });
    }
  }
  return found;
}

async function linksOfSelection(info, tab) {
  let found = [];
  try {
    const [{ result }] = await api.scripting.executeScript({ target: { tabId: tab.id, frameIds: [info.frameId ?? 0] }, func: selectedLinks });
    found = result ?? [];
  } catch {
    // The browser's own pages, and its shop, let nobody in: what is written in the text can be had.
  }
  const seen = new Set();
  const links = [];
  for (const { url, title } of [...found, ...linksInText(info.selectionText)]) {
    if (typeof url === "string" && canBeSent(url) && !seen.has(url)) {
      seen.add(url);
      links.push(link(url, typeof title === "string" ? title : ""));
    }
  }
  return links;
}

async function draftOf(info, tab) {
  const one = (what, url, title) =>
    canBeSent(url) ? { what, hex: hexOf("", [link(url, title)]) } : { what, fault: "It means nothing on another machine, so it is not sent." };
  switch (info.menuItemId) {
    case "page":
      return one("This page", info.pageUrl, tab?.title);
    case "link":
      return one("This link", info.linkUrl, info.linkText);
    case "image":
      return one("This image", info.srcUrl);
    case "selection": {
      const links = await linksOfSelection(info, tab);
      if (links.length === 0) return { what: "The selected links", fault: "There is no link in what is selected." };
      return { what: links.length === 1 ? "The selected link" : `${links.length} selected links`, hex: hexOf("", links) };
    }
    case "bookmark":
      return { what: "These bookmarks", choice: { from: "bookmarks", folder: info.bookmarkId } };
    default:
      return { what: "These tabs", choice: { from: "highlighted", windowId: tab?.windowId } };
  }
}

api.contextMenus.onClicked.addListener((info, tab) => {
  // Both want the person's click, which is over after the first wait.
  const shown = api.action.openPopup ? api.action.openPopup() : Promise.reject(new Error("no popup"));
  const draft = draftOf(info, tab)
    .catch((error) => {
      console.error(error);
      return { what: menus[info.menuItemId].title, fault: `It could not be read: ${error.message}` };
    })
    .then((draft) => api.storage.session.set({ draft: { ...draft, at: Date.now() } }));
  void Promise.allSettled([shown, draft]).then(([shown]) => {
    if (shown.status === "rejected") return api.windows.create({ url: "popup.html?window", type: "popup", width: 400, height: 640 });
  });
});

// --- The popup

/** What the popup may have of the program as it is. */
const passed = new Set(["recipients", "inbox", "hex", "mark", "unread"]);

async function answer(message) {
  switch (message.do) {
    case "begin":
      await begin();
      return null;
    case "host":
      if (!passed.has(message.operation)) throw new HostError("badRequest", "There is no such operation.");
      return await host.request(message.operation, message.members);
    case "send": {
      const { hex, leftOut } = await hexOfChoice(message.choice);
      hex.description = message.note || hex.description;
      return await send({ to: message.to, hex, what: message.note || message.what, leftOut });
    }
    case "retry":
      return await deliver(message.id);
    case "clear":
      await clear();
      return null;
    case "open":
      return await open(message);
    case "bookmark":
      return await bookmark(message);
    default:
      throw new HostError("badRequest", "There is no such request.");
  }
}

api.runtime.onMessage.addListener((message, sender, respond) => {
  if (sender.id !== api.runtime.id || !sender.url?.startsWith(api.runtime.getURL(""))) return false;
  answer(message).then(
    (value) => respond({ value }),
    (error) => {
      if (!(error instanceof HostError)) console.error(error);
      respond({ error: error instanceof HostError ? error.told : { code: "internal", message: String(error?.message ?? error) } });
    },
  );
  return true;
});

api.runtime.onInstalled.addListener(() => void makeMenus());
api.runtime.onStartup.addListener(() => void makeMenus());
void begin();
