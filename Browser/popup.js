// The popup: sends tabs and bookmarks, and shows the inbox. Text of peers is inserted as text nodes only, never as HTML.

import { canBeSent, foldersOf, haveStructure, hexOf, link } from "./hexes.js";

const api = globalThis.browser ?? globalThis.chrome;
const $ = (id) => document.getElementById(id);
/** Maximum numbers: links listed for a hex, tabs opened without a question, and tabs opened at once. */
const limits = { listed: 500, unasked: 20, opened: 200 };
/** Number of recipients from which a search field is shown. */
const manyRecipients = 7;

/** Sends a message to the service worker. @returns the worker's reply; throws {code, message, hint}. */
async function ask(message) {
  const answer = await api.runtime.sendMessage(message);
  if (!answer) throw { code: "internal", message: "The extension is not answering.", hint: "Close this window and try again." };
  if (answer.error) throw answer.error;
  return answer.value;
}

const askHost = (operation, members) => ask({ do: "host", operation, members });

function element(name, { text, children = [], ...attributes } = {}) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") node.className = value;
    else if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

/** Wraps text of a peer or a page in `bdi`, so that its writing direction does not affect the text around it. */
const isolated = (text, attributes = {}) => element("span", { ...attributes, children: [element("bdi", { text })] });

const count = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
const countLinks = (number) => count(number, "link", "links");

function ago(time) {
  const seconds = (Date.now() - time) / 1000;
  if (seconds < 90) return "just now";
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString("en", { day: "numeric", month: "short", year: "numeric" });
}

function showFault(fault) {
  $("fault").hidden = !fault;
  if (!fault) return;
  $("fault-message").textContent = fault.message;
  $("fault-hint").textContent = fault.hint ?? "";
}

/** Runs an action. If it fails, shows the error in `output`, or without `output` at the top of the popup. */
async function attempt(body, output) {
  try {
    await body();
  } catch (error) {
    if (error instanceof Error) console.error(error); // an unexpected exception; errors of the worker are plain objects
    if (output) output.textContent = [error.message, error.hint].filter(Boolean).join(" ");
    else showFault(error);
  }
}

// --- Tabs of the popup

const tabNames = ["send", "inbox"];

function select(selected, focuses = false) {
  for (const name of tabNames) {
    const tab = $(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === selected));
    tab.tabIndex = name === selected ? 0 : -1;
    $(name).hidden = name !== selected;
  }
  if (focuses) $(`tab-${selected}`).focus();
  if (selected === "inbox") void attempt(() => loadInbox());
}

for (const name of tabNames) {
  $(`tab-${name}`).addEventListener("click", () => select(name));
  $(`tab-${name}`).addEventListener("keydown", (event) => {
    if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) {
      event.preventDefault();
      select(tabNames[1 - tabNames.indexOf(name)], true);
    }
  });
}

// --- What to send

/** The things that the user can choose to send: {id, title, detail, isOff}. */
let choices = [];
let draft = null;
let page = null;
let windowId;
let tabs = [];

async function readTabs() {
  tabs = await api.tabs.query({ currentWindow: true });
  windowId = tabs[0]?.windowId;
  page = tabs.find((tab) => tab.active);
}

function showChoices(selected) {
  choices = [];
  if (draft) choices.push({ id: "draft", title: draft.what, detail: draft.fault ?? draftDetail(), isOff: Boolean(draft.fault) });
  if (!isWindow) {
    const url = page?.url;
    choices.push({
      id: "page", title: "This page", isOff: !canBeSent(url),
      detail: canBeSent(url) ? page.title || url : "Browser pages cannot be sent",
    });
    const highlighted = tabs.filter((tab) => tab.highlighted);
    if (highlighted.length > 1) choices.push({ id: "highlighted", title: count(highlighted.length, "selected tab", "selected tabs") });
    choices.push({ id: "window", title: tabs.length === 1 ? "The tab in this window" : `All ${tabs.length} tabs in this window` });
  }
  choices.push({ id: "bookmarks", title: "A bookmark folder" });
  const wanted = choices.find((choice) => choice.id === selected && !choice.isOff) ?? choices.find((choice) => !choice.isOff);
  $("choices").replaceChildren(
    ...choices.map((choice) => {
      const text = element("span", { class: "text", children: [element("span", { text: choice.title })] });
      if (choice.detail) text.append(isolated(choice.detail, { class: "faint" }));
      const radio = element("input", { type: "radio", name: "what", value: choice.id, checked: choice === wanted, disabled: choice.isOff ?? false });
      return element("label", { children: [radio, text] });
    }),
  );
  choiceChanged();
}

const draftDetail = () => (draft.hex?.links.length === 1 ? draft.hex.links[0].title || draft.hex.links[0].url : "");
const chosen = () => new FormData($("form")).get("what");
document.documentElement.classList.toggle("fluid", !api.extension.getViews({ type: "popup" }).includes(window));
const isWindow = new URLSearchParams(location.search).has("window");

function choiceChanged() {
  const what = chosen();
  const isTabs = what === "window" || what === "highlighted";
  $("keep-row").hidden = !isTabs || !haveStructure(what === "window" ? tabs : tabs.filter((tab) => tab.highlighted));
  $("folder-row").hidden = what !== "bookmarks" || $("folder").options.length === 0;
  showSubmit();
}

$("choices").addEventListener("change", () => {
  choiceChanged();
  if (chosen() === "bookmarks") void attempt(askForFolders, $("outcome"));
});

/**
 * Requests permissions. The browser asks the user the first time, and this prompt may close the popup; `remember` stores the form before.
 * A click handler has to call this function before its first await.
 */
const requestPermissions = (...permissions) => api.permissions.request({ permissions });

async function askForFolders() {
  void remember();
  if (!(await requestPermissions("bookmarks"))) throw { message: "Allow access to bookmarks to send them." };
  await showFolders();
}

async function showFolders(selected) {
  const folders = foldersOf(await api.bookmarks.getTree());
  $("folder").replaceChildren(
    ...folders.map((folder) =>
      element("option", { value: folder.id, text: `${"\u2003".repeat(folder.level)}${folder.title} (${folder.links})`, selected: folder.id === selected }),
    ),
  );
  choiceChanged();
  if (folders.length === 0) $("outcome").textContent = "There are no bookmark folders with links.";
}

// --- Recipients

let recipients = [];
const to = new Set();

async function loadRecipients() {
  let page = await askHost("recipients");
  const all = [...page.items];
  while (page.next) {
    page = await askHost("recipients", { after: page.next });
    all.push(...page.items);
  }
  recipients = all;
  const known = new Set(all.map((one) => one.to));
  for (const one of to) if (!known.has(one)) to.delete(one);
  showRecipients();
}

function showRecipients() {
  $("find").hidden = recipients.length < manyRecipients;
  $("nobody").hidden = recipients.length > 0;
  const wanted = $("find").value.trim().toLowerCase();
  const listed = recipients.filter((one) => to.has(one.to) || one.label.toLowerCase().includes(wanted)).slice(0, 200);
  const focused = document.activeElement?.name === "to" ? document.activeElement.value : null;
  $("recipients").replaceChildren(
    ...listed.map((one) => {
      const detail = one.members !== undefined ? count(one.members, "machine", "machines") : one.here ? "" : "away; delivered when it is back";
      const text = element("span", { class: "text", children: [isolated(one.label)] });
      if (detail) text.append(element("span", { class: "faint", text: detail }));
      const box = element("input", { type: "checkbox", name: "to", value: one.to, checked: to.has(one.to) });
      return element("label", { children: [box, text] });
    }),
  );
  if (focused) $("recipients").querySelector(`[value="${CSS.escape(focused)}"]`)?.focus();
  showSubmit();
}

$("find").addEventListener("input", showRecipients);
$("recipients").addEventListener("change", ({ target }) => {
  if (target.checked) to.add(target.value);
  else to.delete(target.value);
  showSubmit();
});

function showSubmit() {
  const names = recipients.filter((one) => to.has(one.to)).map((one) => one.label);
  $("submit").disabled = names.length === 0 || !chosen();
  $("submit").textContent = names.length === 0 ? "Send" : names.length === 1 ? `Send to ${names[0]}` : `Send to ${names.length}`;
}

// --- Sending

/** Stores the state of the form, for the next popup and because a permission prompt of the browser may close this one. */
function remember() {
  return Promise.all([
    api.storage.local.set({ to: [...to].slice(0, 100) }),
    api.storage.session.set({ form: { what: chosen(), note: $("note").value, at: Date.now() } }),
  ]);
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  void attempt(sendChosen, $("outcome"));
});

async function sendChosen() {
  const what = chosen();
  const choice = draft && what === "draft" ? (draft.choice ?? { from: "draft", hex: draft.hex }) : choiceOf(what);
  void remember();
  if (choice.from === "window" || choice.from === "highlighted") {
    if (!(await requestPermissions("tabs", "tabGroups"))) throw { message: "Allow access to tabs to send them.", hint: "This page can be sent without." };
  }
  if (choice.from === "bookmarks") {
    if (!(await requestPermissions("bookmarks"))) throw { message: "Allow access to bookmarks to send them." };
    if (!choice.folder) {
      await showFolders();
      throw { message: $("folder").options.length > 0 ? "Choose a folder, then press Send." : "There are no bookmark folders with links." };
    }
  }
  $("submit").disabled = true;
  $("outcome").textContent = "Sending…";
  try {
    const title = choices.find((one) => one.id === what)?.title ?? "";
    const record = await ask({ do: "send", choice, to: [...to], note: $("note").value.trim(), what: what === "page" ? page.title || title : title });
    $("outcome").textContent = record ? outcome(record) : "";
    $("outcome").scrollIntoView({ block: "nearest" });
    if (record && !record.error) {
      $("note").value = "";
      await api.storage.session.remove(["form", "draft"]);
    }
  } finally {
    showSubmit();
  }
}

function choiceOf(what) {
  switch (what) {
    case "page":
      return { from: "draft", hex: hexOf("", [link(page.url, page.title)]) };
    case "bookmarks":
      return { from: "bookmarks", folder: $("folder").value };
    default:
      return { from: what, windowId, keepsStructure: $("keep").checked };
  }
}

/** Returns the result of a send on one line. */
function outcome(record) {
  if (record.error) return `Not sent: ${record.error.message} ${record.error.hint ?? ""}`.trim();
  const states = Map.groupBy(record.rows, (row) => row.state);
  const results = [...states].map(([state, rows]) => (record.rows.length === 1 ? wordOf(state) : `${rows.length} ${wordOf(state)}`)).join(", ");
  const hexes = record.of > 1 ? ` in ${record.of} parts` : "";
  return `${countLinks(record.links)}${hexes}: ${results}.${leftOut(record)}`;
}

const leftOut = (record) =>
  record.leftOut > 0 ? ` ${count(record.leftOut, "browser page or local file", "browser pages or local files")} left out.` : "";

const words = {
  stored: ["delivered", "good"], held: ["waiting for approval", "good"], queued: ["waiting", ""], sending: ["waiting", ""], rejected: ["refused", "bad"],
  failed: ["failed", "bad"], expired: ["expired", "bad"], cancelled: ["cancelled", ""],
};

const wordOf = (state) => words[state]?.[0] ?? state;

function showSends(sends = []) {
  $("lately").hidden = sends.length === 0;
  $("sends").replaceChildren(
    ...sends.slice(0, 8).map((record) => {
      const head = element("div", { class: "state", children: [
        isolated(record.what), element("span", { class: "faint", text: `${countLinks(record.links)}, ${ago(record.at)}` }),
      ] });
      const lines = record.rows.slice(0, 12).map((row) => {
        const style = words[row.state]?.[1] ?? "";
        const label = element("span", { children: [element("bdi", { text: row.label })] });
        if (row.why) label.append(element("span", { class: "faint", text: ` – ${row.why}` }));
        return element("div", { class: "state", children: [label, element("span", { class: style, text: wordOf(row.state) })] });
      });
      if (record.rows.length > 12) lines.push(element("div", { class: "faint", text: `and ${record.rows.length - 12} more` }));
      if (record.error) {
        lines.push(element("div", { class: "bad", text: outcome(record) }));
        const retry = element("button", { type: "button", class: "quiet", text: "Try again", "aria-label": `Try again: ${record.what}` });
        retry.addEventListener("click", () => void attempt(() => ask({ do: "retry", id: record.id }), $("outcome")));
        lines.push(retry);
      }
      return element("li", { children: [head, ...lines] });
    }),
  );
}

$("clear").addEventListener("click", () => void attempt(() => ask({ do: "clear" }), $("outcome")));

// --- The inbox

let next = null;

async function loadInbox() {
  const { items, next: cursor } = await askHost("inbox", { limit: 20 });
  next = cursor;
  const focused = Number(document.activeElement?.dataset.hex);
  $("hexes").replaceChildren(...items.map(rowOf));
  if (focused) $("hexes").querySelector(`[data-hex="${focused}"]`)?.focus();
  $("empty").hidden = items.length > 0;
  $("more").hidden = !next;
}

function rowOf(hex) {
  const time = Date.parse(hex.receivedAt);
  const folders = hex.hexes ? `, ${count(hex.hexes, "folder", "folders")}` : "";
  const text = element("span", { class: "text", children: [
    isolated(hex.subject || "Untitled", { class: "title" }),
    element("span", { class: "faint", children: [
      element("bdi", { text: hex.from }), ` · ${countLinks(hex.links)}${folders} · ${ago(time)}`,
    ] }),
  ] });
  const dot = element("span", { class: "dot", role: "img", "aria-label": hex.unread ? "unread" : "read" });
  const button = element("button", { type: "button", class: hex.unread ? "hex isUnread" : "hex", children: [dot, text] });
  button.dataset.hex = hex.hex;
  button.addEventListener("click", () => void attempt(() => showHex(hex.hex)));
  button.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...$("hexes").querySelectorAll("button")];
    all[all.indexOf(button) + step]?.focus();
  });
  return element("li", { children: [button] });
}

$("more").addEventListener("click", () =>
  void attempt(async () => {
    const page = await askHost("inbox", { limit: 20, after: next });
    next = page.next;
    const rows = page.items.map(rowOf);
    $("hexes").append(...rows);
    rows[0]?.querySelector("button").focus();
    $("more").hidden = !next;
  }),
);

let shown = null;

async function showHex(id) {
  let page = await askHost("hex", { hex: id });
  const { hex, items } = page;
  while (page.next) {
    page = await askHost("hex", { hex: id, after: page.next });
    items.push(...page.items);
  }
  const opens = items.filter((item) => item.opens !== undefined).length;
  shown = { ...hex, opens };
  $("list").hidden = true;
  $("detail").hidden = false;
  $("subject").replaceChildren(isolated(hex.subject || "Untitled"));
  $("from").textContent = hex.from;
  $("when").textContent = ago(Date.parse(hex.receivedAt));
  $("when").dateTime = hex.receivedAt;
  $("open").textContent = opens === 1 ? "Open" : `Open all ${opens}`;
  $("open").disabled = $("save").disabled = opens === 0;
  $("open").dataset.asked = "";
  showMark();
  $("done").textContent = "";
  $("links").replaceChildren(...items.slice(0, limits.listed).map(itemOf));
  if (items.length > limits.listed) $("links").append(element("li", { class: "faint", text: `and ${items.length - limits.listed} more` }));
  $("subject").focus();
}

function itemOf(item) {
  const indent = `${item.level * 14}px`;
  if (item.hex !== undefined) {
    const row = element("li", { class: "inside", children: [isolated(item.hex || "Untitled")] });
    row.style.paddingInlineStart = `${(item.level - 1) * 14}px`;
    return row;
  }
  const row = element("li");
  row.style.paddingInlineStart = indent;
  if (item.opens === undefined) {
    row.append(
      element("div", { children: [isolated(item.title || item.url)] }),
      element("div", { class: "faint", text: `Not clickable: ${item.notOpened}` }),
    );
    return row;
  }
  const anchor = element("a", { href: item.url, target: "_blank", rel: "noopener noreferrer", children: [
    element("div", { class: "link-title", children: [isolated(item.title || item.url)] }),
    element("div", { class: "faint", children: [element("bdi", { text: item.opens })] }),
  ] });
  anchor.addEventListener("click", (event) => {
    event.preventDefault();
    void attempt(async () => {
      await api.tabs.create({ url: item.url, active: event.ctrlKey || event.metaKey ? false : true });
      await markShown(false);
    }, $("done"));
  });
  row.append(anchor);
  return row;
}

async function markShown(unread) {
  await askHost("mark", { ids: [shown.hex], unread });
  shown.unread = unread;
  showMark();
}

const showMark = () => ($("mark").textContent = shown.unread ? "Mark as read" : "Mark as unread");

$("mark").addEventListener("click", () => void attempt(() => markShown(!shown.unread), $("done")));

$("back").addEventListener("click", () => {
  const id = shown?.hex;
  $("detail").hidden = true;
  $("list").hidden = false;
  void attempt(async () => {
    await loadInbox();
    $("hexes").querySelector(`[data-hex="${Number(id)}"]`)?.focus();
  });
});

$("open").addEventListener("click", () =>
  void attempt(async () => {
    if (shown.opens > limits.unasked && $("open").dataset.asked !== "yes") {
      $("open").dataset.asked = "yes";
      const number = shown.opens.toLocaleString("en");
      $("done").textContent = shown.opens > limits.opened
        ? `${number} links; at most ${limits.opened} open at once. Press again to open the first ${limits.opened}.`
        : `${number} links. Press again to open them all.`;
      return;
    }
    $("done").textContent = "Opening…";
    const { opened, failed, of } = await ask({ do: "open", hex: shown.hex, windowId });
    shown.unread = false;
    showMark();
    const rest = of - opened - failed;
    $("done").textContent =
      `Opened ${count(opened, "tab", "tabs")}.` +
      (failed > 0 ? ` The browser refused ${failed}.` : "") + (rest > 0 ? ` ${rest} not opened: save them as bookmarks.` : "");
  }, $("done")),
);

$("save").addEventListener("click", () =>
  void attempt(async () => {
    if (!(await requestPermissions("bookmarks"))) throw { message: "Allow access to bookmarks to save them." };
    $("done").textContent = "Saving…";
    const { saved, leftOut } = await ask({ do: "bookmark", hex: shown.hex });
    $("done").textContent =
      `Saved ${count(saved, "bookmark", "bookmarks")} in a new folder.` + (leftOut > 0 ? ` ${countLinks(leftOut)} left out: not clickable.` : "");
  }, $("done")),
);

// --- Changes

function showUnread(number) {
  $("unread").hidden = !number;
  $("unread").textContent = number > 999 ? "999+" : String(number ?? "");
  $("unread").setAttribute("aria-label", `${number} unread`);
}

api.storage.onChanged.addListener((changes, area) => {
  if (area === "local" && changes.sends) showSends(changes.sends.newValue);
  if (area !== "session") return;
  if (changes.unread) {
    showUnread(changes.unread.newValue);
    if (!$("inbox").hidden && $("detail").hidden) void attempt(() => loadInbox());
  }
  if (changes.name) $("name").textContent = changes.name.newValue;
  if (changes.fault) showFault(changes.fault.newValue);
  if (changes.recipients) void attempt(() => loadRecipients());
  if (changes.draft?.newValue) {
    draft = changes.draft.newValue;
    showChoices("draft");
    select("send");
  }
});

$("again").addEventListener("click", () => void start());

async function start() {
  showFault(null);
  await attempt(async () => {
    await ask({ do: "begin" });
    const { fault } = await api.storage.session.get("fault");
    if (fault) throw fault;
    await loadRecipients();
  });
}

async function load() {
  const [{ to: earlier = [], sends }, session] = await Promise.all([
    api.storage.local.get(["to", "sends"]), api.storage.session.get(["draft", "form", "unread", "name"]), readTabs(),
  ]);
  for (const one of earlier) to.add(one);
  showSends(sends);
  showUnread(session.unread);
  $("name").textContent = session.name ?? "";
  // A draft or a form is only restored within two minutes.
  const isRecent = (stored) => stored && Date.now() - stored.at < 120_000;
  draft = isRecent(session.draft) ? session.draft : null;
  if (isRecent(session.form)) $("note").value = session.form.note;
  showChoices(draft ? "draft" : isRecent(session.form) ? session.form.what : undefined);
  if (chosen() === "bookmarks" && (await api.permissions.contains({ permissions: ["bookmarks"] }))) await showFolders();
  await start();
}

void attempt(load);
