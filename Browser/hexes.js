// Hexes made of what is open: values only, nothing of the browser is asked here.
//
// A hex is {description, links: [{url, title}], hexes: [hexes inside it]}, as the host takes it.

/** Bounds of one hex (Docs/Protocol.md). */
export const most = { links: 5000, hexes: 5000, levels: 8 };
/** Bytes of one hex as JSON: a message to the host has 1 MiB, a frame to a peer too. */
const bytes = 700_000;
/** Bytes of a link that is sent, and characters of a title. */
const urlBytes = 32 << 10;
const titleLength = 500;

/** Addresses that mean something on this machine only, or run something. */
const own = new Set([
  "about", "blob", "brave", "chrome", "chrome-extension", "chrome-search", "chrome-untrusted", "data", "devtools", "edge", "file",
  "filesystem", "jar", "javascript", "moz-extension", "opera", "resource", "vbscript", "view-source", "vivaldi", "wyciwyg",
]);
const encoder = new TextEncoder();

/** Pages of browsers and extensions that show another page: their addresses, with the address of that page in `address`. */
const frames = [
  /^(?:about:reader|chrome-distiller:[^?#]*|read:[^?#]*)\?(?:[^#]*&)?url=(?<address>[^&#]+)/i, // the reader views of Firefox, Chromium and Edge
  /^view-source:(?<plain>.+)/is,
  /^(?:chrome|moz)-extension:[^#]*suspended\.html[?#](?:.*&)?ur[il]=(?<plain>.+)/is, // tabs that an extension put to sleep
];

/** The address of the page that is shown: of a reader view, the source of a page and a sleeping tab, that of the page itself. */
function shownAddress(url) {
  for (const frame of frames) {
    const { address, plain } = frame.exec(url ?? "")?.groups ?? {};
    try {
      const shown = plain ?? (address && decodeURIComponent(address));
      if (/^(?:https?|ftp):\/\//i.test(shown ?? "")) return shown;
    } catch {
      // An address that cannot be decoded is none.
    }
  }
  return url;
}

export function canBeSent(url) {
  const address = shownAddress(url);
  const scheme = /^([a-z][a-z0-9+.-]+):./i.exec(address ?? "")?.[1].toLowerCase();
  return scheme !== undefined && !own.has(scheme) && encoder.encode(address).length <= urlBytes;
}

export function link(address, title) {
  const url = shownAddress(address);
  const text = (title ?? "").trim().slice(0, titleLength);
  return text && text !== url ? { url, title: text } : { url };
}

export function hexOf(description, links = [], hexes = []) {
  return { description: (description ?? "").trim().slice(0, titleLength), links, hexes };
}

/** Links with those of the hexes inside. */
export function countLinks(hex) {
  return hex.hexes.reduce((sum, inside) => sum + countLinks(inside), hex.links.length);
}

// --- Tabs

/** Whether tabs have groups or trees that a hex can keep. */
export function hasShape(tabs) {
  const ids = new Set(tabs.map((tab) => tab.id));
  return tabs.some((tab) => isGrouped(tab) || ids.has(tab.openerTabId));
}

const isGrouped = (tab) => (tab.groupId ?? -1) !== -1;

/**
 * The hex of tabs. With `keeps`, each group and each tree (a tab with those opened from it) is a hex inside.
 * @param groups titles of groups by their id
 * @returns the hex, and how many tabs cannot be sent
 */
export function hexOfTabs(tabs, groups = new Map(), keeps = true) {
  const sent = tabs.filter((tab) => canBeSent(tab.url));
  const leftOut = tabs.length - sent.length;
  if (!keeps) return { hex: hexOf("", sent.map(linkOf)), leftOut };
  const hex = hexOf("");
  addForest(hex, sent.filter((tab) => !isGrouped(tab)), 1);
  for (const id of new Set(sent.filter(isGrouped).map((tab) => tab.groupId))) {
    const group = hexOf(groups.get(id) || "Tab group");
    addForest(group, sent.filter((tab) => tab.groupId === id), 2);
    hex.hexes.push(group);
  }
  // A window that is one group or tree is that.
  return { hex: hex.links.length === 0 && hex.hexes.length === 1 ? hex.hexes[0] : hex, leftOut };
}

const linkOf = (tab) => link(tab.url, tab.title);

/** Adds tabs to a hex of this level: those that others were opened from as hexes inside. */
function addForest(hex, tabs, level) {
  const ids = new Set(tabs.map((tab) => tab.id));
  const opened = new Map();
  const roots = [];
  for (const tab of tabs) {
    if (ids.has(tab.openerTabId) && tab.openerTabId !== tab.id) {
      if (!opened.has(tab.openerTabId)) opened.set(tab.openerTabId, []);
      opened.get(tab.openerTabId).push(tab);
    } else roots.push(tab);
  }
  const added = new Set();
  for (const tab of roots) addTree(hex, tab, opened, level, added);
  // A ring of openers has no root.
  for (const tab of tabs) if (!added.has(tab.id)) addTree(hex, tab, opened, level, added);
}

/** Without recursion into a ring, and no deeper than hexes go: what is deeper is told in the last level. */
function addTree(hex, tab, opened, level, added) {
  if (added.has(tab.id)) return;
  added.add(tab.id);
  const inside = (opened.get(tab.id) ?? []).filter((child) => !added.has(child.id));
  if (inside.length === 0) {
    hex.links.push(linkOf(tab));
  } else if (level < most.levels) {
    const tree = hexOf(tab.title || tab.url, [linkOf(tab)]);
    hex.hexes.push(tree);
    for (const child of inside) addTree(tree, child, opened, level + 1, added);
  } else {
    const waiting = [tab];
    while (waiting.length > 0) {
      const next = waiting.shift();
      hex.links.push(linkOf(next));
      for (const child of opened.get(next.id) ?? []) {
        if (!added.has(child.id)) {
          added.add(child.id);
          waiting.push(child);
        }
      }
    }
  }
}

// --- Bookmarks

/** The hex of a folder of bookmarks, with folders as hexes inside. */
export function hexOfBookmarks(folder) {
  let leftOut = 0;
  const hex = (node, level) => {
    const result = hexOf(node.title || "Bookmarks");
    addBookmarks(result, node, level);
    return result;
  };
  const addBookmarks = (result, node, level) => {
    for (const child of node.children ?? []) {
      if (child.url !== undefined) {
        if (canBeSent(child.url)) result.links.push(link(child.url, child.title));
        else if (child.type !== "separator") leftOut += 1;
      } else if (child.children) {
        if (level < most.levels) {
          const inside = hex(child, level + 1);
          if (countLinks(inside) > 0) result.hexes.push(inside);
        } else addBookmarks(result, child, level);
      }
    }
  };
  return { hex: hex(folder, 1), leftOut };
}

/** The folders of a tree of bookmarks, in order: {id, title, level, links}. */
export function foldersOf(roots) {
  const folders = [];
  const add = (node, level) => {
    const place = folders.length;
    if (node.title) folders.push({ id: node.id, title: node.title, level, links: 0 });
    let links = 0;
    for (const child of node.children ?? []) {
      if (child.url !== undefined) links += canBeSent(child.url) ? 1 : 0;
      else links += add(child, node.title ? level + 1 : level);
    }
    if (node.title) folders[place].links = links;
    return links;
  };
  for (const root of roots) add(root, 0);
  return folders.filter((folder) => folder.links > 0);
}

// --- Text

/** The links that a text has in it. */
export function linksInText(text) {
  const found = (text ?? "").match(/\b(?:https?|ftp):\/\/[^\s<>"'`]+/gi) ?? [];
  return [...new Set(found.map(withoutPunctuation))].filter(canBeSent).map((url) => link(url));
}

const brackets = { ")": "(", "]": "[", "}": "{", "\u00bb": "\u00ab", "\u201d": "\u201c" };

/** An address without the punctuation behind it, and without brackets at its end that were opened before it. */
function withoutPunctuation(url) {
  const open = {};
  for (const character of url) open[character] = (open[character] ?? 0) + 1;
  let end = url.length;
  for (; end > 0; end -= 1) {
    const last = url[end - 1];
    const isOpenedBefore = last in brackets && open[last] > (open[brackets[last]] ?? 0);
    if (!isOpenedBefore && !".,;:!?*_\u3001\u3002\uff0c\uff01\uff09\u300d\u300b".includes(last)) break;
    open[last] -= 1;
  }
  return url.slice(0, end);
}

// --- Too much for one hex

/** The hex, or several that each can be sent: `Reading (1 of 3)`. */
export function parts(hex) {
  const pieces = divide(hex);
  if (pieces.length === 1) return pieces;
  return pieces.map((piece, index) => ({ ...piece, description: `${hex.description} (${index + 1} of ${pieces.length})`.trim() }));
}

function divide(hex) {
  if (fits(sizeOf(hex))) return [hex];
  const pieces = [];
  let piece, size;
  const begin = () => {
    piece = hexOf(hex.description);
    size = sizeOf(piece);
  };
  const put = (added, add) => {
    if (!fits(sum(size, added)) && (piece.links.length > 0 || piece.hexes.length > 0)) {
      pieces.push(piece);
      begin();
    }
    add(piece);
    size = sum(size, added);
  };
  begin();
  for (const item of hex.links) put(sizeOfLink(item), (piece) => piece.links.push(item));
  for (const inside of hex.hexes) for (const part of divide(inside)) put(sizeOf(part), (piece) => piece.hexes.push(part));
  pieces.push(piece);
  return pieces;
}

const sum = (a, b) => ({ links: a.links + b.links, hexes: a.hexes + b.hexes, bytes: a.bytes + b.bytes });
const fits = (size) => size.links <= most.links && size.hexes <= most.hexes && size.bytes <= bytes;
const sizeOfLink = (item) => ({ links: 1, hexes: 0, bytes: encoder.encode(JSON.stringify(item)).length + 24 });

function sizeOf(hex) {
  let size = { links: 0, hexes: 1, bytes: encoder.encode(JSON.stringify(hex.description)).length + 80 };
  for (const item of hex.links) size = sum(size, sizeOfLink(item));
  for (const inside of hex.hexes) size = sum(size, sizeOf(inside));
  return size;
}
