// Creates hexes from tabs, bookmarks and text. Pure functions that do not call the browser.
//
// A hex has the form that `hexlist browser` accepts: `{description, links: [{url, title}], hexes: [the hexes inside it, in the same
// form]}`.
import { addressesInText } from "./linktext.js";

/** Maximum links, hexes and levels of one hex (Docs/Protocol.md). */
export const limits = { links: 5000, hexes: 5000, levels: 8 };
/** Maximum bytes of one hex as JSON. Below the limit of 1 MiB for messages to the host and for frames to peers. */
const maximumBytes = 700_000;
/** Maximum bytes of a URL, and characters of a title. A longer URL is left out; a longer title is cut. */
const urlBytes = 32 << 10;
const titleLength = 500;

/** URL schemes that are never sent: they only work in this browser or on this machine, or they run scripts. */
const localSchemes = new Set([
  "about", "blob", "brave", "chrome", "chrome-extension", "chrome-search", "chrome-untrusted", "data", "devtools", "edge", "file",
  "filesystem", "jar", "javascript", "moz-extension", "opera", "resource", "vbscript", "view-source", "vivaldi", "wyciwyg",
]);
const encoder = new TextEncoder();

/** Patterns of URLs that embed the URL of a page. Group `address` holds it percent-encoded, group `plain` unencoded. */
const wrappers = [
  /^(?:about:reader|chrome-distiller:[^?#]*|read:[^?#]*)\?(?:[^#]*&)?url=(?<address>[^&#]+)/i, // reader views of Firefox, Chromium and Edge
  /^view-source:(?<plain>.+)/is,
  /^(?:chrome|moz)-extension:[^#]*suspended\.html[?#](?:.*&)?ur[il]=(?<plain>.+)/is, // tabs suspended by an extension
];

/** Returns the URL of the page that a tab shows, without the URL of a reader view, source view or suspended tab around it. */
function shownAddress(url) {
  for (const wrapper of wrappers) {
    const { address, plain } = wrapper.exec(url ?? "")?.groups ?? {};
    try {
      const shown = plain ?? (address && decodeURIComponent(address));
      if (/^(?:https?|ftp):\/\//i.test(shown ?? "")) return shown;
    } catch {
      // The embedded URL is not valid percent-encoding, so the outer URL is kept.
    }
  }
  return url;
}

export function canBeSent(url) {
  const address = shownAddress(url);
  const scheme = /^([a-z][a-z0-9+.-]+):./i.exec(address ?? "")?.[1].toLowerCase();
  return scheme !== undefined && !localSchemes.has(scheme) && encoder.encode(address).length <= urlBytes;
}

export function link(address, title) {
  const url = shownAddress(address);
  const text = (title ?? "").trim().slice(0, titleLength);
  return text && text !== url ? { url, title: text } : { url };
}

export function hexOf(description, links = [], hexes = []) {
  return { description: (description ?? "").trim().slice(0, titleLength), links, hexes };
}

/** Returns the number of links in a hex and in all hexes inside it. */
export function countLinks(hex) {
  return hex.hexes.reduce((sum, inside) => sum + countLinks(inside), hex.links.length);
}

// --- Tabs

/** Returns whether any tab is in a tab group or was opened from another of the tabs. */
export function haveStructure(tabs) {
  const ids = new Set(tabs.map((tab) => tab.id));
  return tabs.some((tab) => isGrouped(tab) || ids.has(tab.openerTabId));
}

const isGrouped = (tab) => (tab.groupId ?? -1) !== -1;

/**
 * Creates a hex from tabs. With `keepsStructure`, each tab group becomes a hex inside it, and so does each tree: a tab with the tabs opened
 * from it.
 * @param groups the titles of tab groups, by id
 * @returns the hex, and the number of tabs left out because their URLs cannot be sent
 */
export function hexOfTabs(tabs, groups = new Map(), keepsStructure = true) {
  const sent = tabs.filter((tab) => canBeSent(tab.url));
  const leftOut = tabs.length - sent.length;
  if (!keepsStructure) return { hex: hexOf("", sent.map(linkOf)), leftOut };
  const hex = hexOf("");
  addForest(hex, sent.filter((tab) => !isGrouped(tab)), 1);
  for (const id of new Set(sent.filter(isGrouped).map((tab) => tab.groupId))) {
    const group = hexOf(groups.get(id) || "Tab group");
    addForest(group, sent.filter((tab) => tab.groupId === id), 2);
    hex.hexes.push(group);
  }
  // If all tabs belong to one group or tree, its hex is returned without an enclosing one.
  return { hex: hex.links.length === 0 && hex.hexes.length === 1 ? hex.hexes[0] : hex, leftOut };
}

const linkOf = (tab) => link(tab.url, tab.title);

/** Adds tabs to a hex at this level. A tab from which others were opened becomes a hex with all of them. */
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
  // A cycle of tabs that opened each other has no root, so its tabs are added here.
  for (const tab of tabs) if (!added.has(tab.id)) addTree(hex, tab, opened, level, added);
}

/** Adds a tab and the tabs opened from it. `added` prevents endless loops. Levels below `limits.levels` are merged into the last. */
function addTree(hex, tab, opened, level, added) {
  if (added.has(tab.id)) return;
  added.add(tab.id);
  const inside = (opened.get(tab.id) ?? []).filter((child) => !added.has(child.id));
  if (inside.length === 0) {
    hex.links.push(linkOf(tab));
  } else if (level < limits.levels) {
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

/** Creates a hex from a bookmark folder. Folders below `limits.levels` are merged into the last level. */
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
        if (level < limits.levels) {
          const inside = hex(child, level + 1);
          if (countLinks(inside) > 0) result.hexes.push(inside);
        } else addBookmarks(result, child, level);
      }
    }
  };
  return { hex: hex(folder, 1), leftOut };
}

/** Returns the bookmark folders that contain links, depth first, as {id, title, level, links}. */
export function foldersOf(roots) {
  const folders = [];
  const add = (node, level) => {
    const index = folders.length;
    if (node.title) folders.push({ id: node.id, title: node.title, level, links: 0 });
    let links = 0;
    for (const child of node.children ?? []) {
      if (child.url !== undefined) links += canBeSent(child.url) ? 1 : 0;
      else links += add(child, node.title ? level + 1 : level);
    }
    if (node.title) folders[index].links = links;
    return links;
  };
  for (const root of roots) add(root, 0);
  return folders.filter((folder) => folder.links > 0);
}

// --- Text

/** Returns the links in a text that can be sent. */
export function linksInText(text) {
  return [...new Set(addressesInText(text ?? "").map(({ url }) => url))].filter(canBeSent).map((url) => link(url));
}

// --- Splitting

/** Splits a hex that exceeds a limit into several hexes, named like `Reading (1 of 3)`. */
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
const fits = (size) => size.links <= limits.links && size.hexes <= limits.hexes && size.bytes <= maximumBytes;
const sizeOfLink = (item) => ({ links: 1, hexes: 0, bytes: encoder.encode(JSON.stringify(item)).length + 24 });

function sizeOf(hex) {
  let size = { links: 0, hexes: 1, bytes: encoder.encode(JSON.stringify(hex.description)).length + 80 };
  for (const item of hex.links) size = sum(size, sizeOfLink(item));
  for (const inside of hex.hexes) size = sum(size, sizeOf(inside));
  return size;
}
