// The service worker of the extension. The browser may stop it at any time, therefore its state is kept in extension storage.

import { Host, HostError } from "./host.js";
import { canBeSent, countLinks, hexOf, hexOfBookmarks, hexOfTabs, link, linksInText, parts } from "./hexes.js";

const api = globalThis.browser ?? globalThis.chrome;

/** Maximum numbers: sends in the list, tabs opened at once, and tabs of a window in one send. */
const limits = { sends: 20, opened: 200, tabs: 20_000 };
/** Delays in milliseconds before restarting the host. Each is twice the last; reset to `first` after the host ran for `longest`. */
const backoff = { first: 2_000, longest: 60_000 };

let pause = backoff.first;
/** The time at which `begin` last started the host, in milliseconds since 1970. */
let startedAt = 0;
const host = new Host(onEvent, onEnd);

// --- The host

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
  void api.storage.session.set({ fault: error.json });
  if (error.code === "hostMissing") return; // a retry cannot help until the user installs the host
  if (Date.now() - startedAt > backoff.longest) pause = backoff.first;
  setTimeout(() => void begin(), pause);
  pause = Math.min(pause * 2, backoff.longest);
}

function showUnread(count) {
  void api.action.setBadgeText({ text: count > 999 ? "999+" : count > 0 ? String(count) : "" });
  void api.action.setTitle({ title: count > 0 ? `Hexlist: ${count} unread` : "Hexlist" });
  void api.storage.session.set({ unread: count });
}

/** Connects to the host, and resumes sends that were interrupted because the browser stopped this worker. */
async function begin() {
  if (!host.isConnected) startedAt = Date.now();
  try {
    const counts = await host.request("unread");
    await api.storage.session.set({ name: counts.name, fault: null });
    showUnread(counts.unread);
    await refreshSends();
  } catch (error) {
    if (error instanceof HostError) await api.storage.session.set({ fault: error.json });
    else throw error;
  }
}

// --- Sends
//
// `sends` in local storage is a list with one record per send: `{id, at, what, links, to, of, done, rows, error}`. The hexes of a send are
// stored separately, under `hexes:ID`, until the daemon has accepted all of them.

let lastChange = Promise.resolve();

/** Runs `body` on the list of sends and stores the list. Changes run one after the other, so that none overwrites another. */
function change(body) {
  const done = lastChange.then(async () => {
    const { sends = [] } = await api.storage.local.get("sends");
    const result = body(sends);
    for (const gone of sends.splice(limits.sends)) await api.storage.local.remove(`hexes:${gone.id}`);
    await api.storage.local.set({ sends });
    return result;
  });
  lastChange = done.catch(() => {});
  return done;
}

async function send({ to, hex, what, leftOut }) {
  const hexes = parts(hex);
  const record = { id: crypto.randomUUID(), at: Date.now(), what, links: countLinks(hex), leftOut, to, of: hexes.length, done: 0, rows: [] };
  if (record.links === 0) throw new HostError("badRequest", "None of these links can be sent.", leftOutText(leftOut));
  await api.storage.local.set({ [`hexes:${record.id}`]: hexes });
  await change((sends) => sends.unshift(record));
  return await deliver(record.id);
}

const leftOutText = (count) => (count > 0 ? "Browser pages and local files cannot be opened on another machine." : undefined);

const delivering = new Set();

/** Passes the hexes of a send to the daemon. Safe to repeat after an interruption: each hex has an idempotency key. */
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
          if (one) one.error = error.json;
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

/** Removes all sends from the list, except those still being passed to the daemon. The daemon continues its deliveries. */
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

const isPending = (row) => row.state === "queued" || row.state === "sending";

/** Updates the states of rows that were not final, and resumes interrupted sends. */
async function refreshSends() {
  const { sends = [] } = await api.storage.local.get("sends");
  const ids = sends.flatMap((record) => record.rows.filter(isPending).map((row) => row.row)).slice(0, 1000);
  // A reply has room for 100 rows even if each has the longest possible message.
  for (let from = 0; from < ids.length; from += 100) {
    await rowsChanged((await host.request("rows", { ids: ids.slice(from, from + 100) })).rows);
  }
  for (const record of sends) if (record.done < record.of && !record.error) await deliver(record.id);
}

// --- Receiving

/** Requests all pages of the content of a hex. */
async function wholeHex(id) {
  let page = await host.request("hex", { hex: id });
  const { hex, items } = page;
  while (page.next) {
    page = await host.request("hex", { hex: id, after: page.next });
    items.push(...page.items);
  }
  return { hex, items };
}

/** Opens the links of a hex that are safe to open, with one tab group for the hex itself and one for each hex inside it. */
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
      if (result.opened + result.failed >= limits.opened) break;
      try {
        const tab = await api.tabs.create({ url, active: false, windowId });
        tabIds.push(tab.id);
        first ??= tab.id;
        result.opened += 1;
      } catch {
        result.failed += 1; // the browser refuses this URL
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
    // The tabs stay open, but ungrouped.
  }
}

/** Saves the links that are safe to open as a bookmark folder, with a subfolder for each hex inside. */
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

// --- Tabs and bookmarks

async function hexOfWindow({ windowId, highlighted, keepsStructure }) {
  const tabs = await api.tabs.query(highlighted ? { windowId, highlighted: true } : { windowId });
  if (tabs.length > limits.tabs) throw new HostError("tooLarge", `${tabs.length} tabs are too many to send at once.`, "Select some of them.");
  const groups = new Map();
  try {
    for (const group of (await api.tabGroups?.query({ windowId })) ?? []) groups.set(group.id, group.title);
  } catch {
    // The tab groups are sent without their names.
  }
  return hexOfTabs(tabs, groups, keepsStructure);
}

/** Creates the hex for the choice that the user made in the popup. */
async function hexOfChoice(choice) {
  switch (choice.from) {
    case "draft":
      return { hex: choice.hex, leftOut: 0 };
    case "window":
    case "highlighted":
      return await hexOfWindow({ windowId: choice.windowId, highlighted: choice.from === "highlighted", keepsStructure: choice.keepsStructure });
    case "bookmarks": {
      const [node] = await api.bookmarks.getSubTree(choice.folder);
      return hexOfBookmarks(node.url === undefined ? node : { title: node.title, children: [node] });
    }
    default:
      throw new HostError("badRequest", "Nothing to send.");
  }
}

// --- The menu

const menus = {
  page: { title: "Send this page…", contexts: ["page"] },
  selection: { title: "Send the selected links…", contexts: ["selection"] },
  link: { title: "Send this link…", contexts: ["link"] },
  image: { title: "Send this image…", contexts: ["image"] },
  tab: { title: "Send these tabs…", contexts: ["tab"] }, // supported only by Firefox
  bookmark: { title: "Send these bookmarks…", contexts: ["bookmark"] }, // supported only by Firefox
};

async function makeMenus() {
  await api.contextMenus.removeAll();
  for (const [id, { title, contexts }] of Object.entries(menus)) {
    try {
      api.contextMenus.create({ id, title, contexts }, () => void api.runtime.lastError);
    } catch {
      // this browser does not support the context
    }
  }
}

/** Returns the links in the selected part of a page. This function is injected into the page and runs there. */
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
    // The browser allows no scripts in its own pages and in the extension store. Only URLs in the selected text are found there.
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
    canBeSent(url) ? { what, hex: hexOf("", [link(url, title)]) } : { what, fault: "This address only works on this machine, so it is not sent." };
  switch (info.menuItemId) {
    case "page":
      return one("This page", info.pageUrl, tab?.title);
    case "link":
      return one("This link", info.linkUrl, info.linkText);
    case "image":
      return one("This image", info.srcUrl);
    case "selection": {
      const links = await linksOfSelection(info, tab);
      if (links.length === 0) return { what: "The selected links", fault: "The selection has no links." };
      return { what: links.length === 1 ? "The selected link" : `${links.length} selected links`, hex: hexOf("", links) };
    }
    case "bookmark":
      return { what: "These bookmarks", choice: { from: "bookmarks", folder: info.bookmarkId } };
    default:
      return { what: "These tabs", choice: { from: "highlighted", windowId: tab?.windowId } };
  }
}

api.contextMenus.onClicked.addListener((info, tab) => {
  // Opening the popup and reading the page both require the user activation of the click, which ends at the first await.
  const shown = api.action.openPopup ? api.action.openPopup() : Promise.reject(new Error("no popup"));
  const draft = draftOf(info, tab)
    .catch((error) => {
      console.error(error);
      return { what: menus[info.menuItemId].title, fault: `Could not be read: ${error.message}` };
    })
    .then((draft) => api.storage.session.set({ draft: { ...draft, at: Date.now() } }));
  void Promise.allSettled([shown, draft]).then(([shown]) => {
    if (shown.status === "rejected") return api.windows.create({ url: "popup.html?window", type: "popup", width: 400, height: 640 });
  });
});

// --- The popup

/** Operations of the host that the popup may request. The worker forwards them unchanged. */
const allowedOperations = new Set(["recipients", "inbox", "hex", "mark", "unread"]);

async function handle(message) {
  switch (message.do) {
    case "begin":
      await begin();
      return null;
    case "host":
      if (!allowedOperations.has(message.operation)) throw new HostError("badRequest", "Unknown operation.");
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
      throw new HostError("badRequest", "Unknown request.");
  }
}

api.runtime.onMessage.addListener((message, sender, respond) => {
  if (sender.id !== api.runtime.id || !sender.url?.startsWith(api.runtime.getURL(""))) return false;
  handle(message).then(
    (value) => respond({ value }),
    (error) => {
      if (!(error instanceof HostError)) console.error(error);
      respond({ error: error instanceof HostError ? error.json : { code: "internal", message: String(error?.message ?? error) } });
    },
  );
  return true;
});

api.runtime.onInstalled.addListener(() => void makeMenus());
api.runtime.onStartup.addListener(() => void makeMenus());
void begin();
