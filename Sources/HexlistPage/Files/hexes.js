// The sections Inbox and Requests: a list of hexes, and a detail pane for one hex.
import { call, faultOf, query, part } from './api.js';
import { h, icon, mark, setMark, twoLines, head, clean, cleanLines, label, hasKey, peerName, count, when, wholeTime, toast, button, buttons, field, choice, ask, confirmed, setChildren, showFault, copy } from './dom.js';
import { View, searchField } from './list.js';
import { isFile, fileItem, saveAllBar, showTransfers, savingOf } from './files.js';
import { app } from './main.js';
import { compose } from './compose.js';
import { trustDialog, fingerprint } from './peers.js';

/** The deletions that can still be undone, by the id of the hex. `commit` deletes the hex immediately; `undo` keeps it. */
const deletions = new Map();
export const isBeingDeleted = (hex) => deletions.has(hex.id);
addEventListener('pagehide', () => { for (const { commit } of [...deletions.values()]) commit(true); });

/** Deletes hexes after ten seconds, unless the user presses *Undo* before that. `restore` puts their rows back into the list. */
export function deleteLater(hexes, restore) {
  const timer = setTimeout(() => commit(), 10000);
  const close = () => { clearTimeout(timer); closeToast(); return hexes.filter(({ id }) => deletions.delete(id)).length > 0; };
  const commit = async (isClosing) => {
    if (!close()) return;
    try {
      await Promise.all(hexes.map(({ id }) => call('DELETE', `/v1/hexes/${id}`, undefined, { keepalive: isClosing })));
    } catch (error) {
      restore();
      toast(`Not deleted: ${faultOf(error)?.message ?? ''}`);
    }
    app.view?.refresh();
  };
  const undo = () => { if (close()) restore(); };
  for (const { id } of hexes) deletions.set(id, { commit, undo });
  const what = hexes.length === 1 ? `“${subject(hexes[0]).slice(0, 40)}”` : count(hexes.length, 'hex', 'hexes');
  const closeToast = toast(`Deleted ${what}.`, { action: 'Undo', onaction: undo, time: 10000 });
}
/** Makes all deletions now that a toast could still undo, so that the trash lists them. Resolves when they are made. */
export const commitDeletions = () => Promise.all([...deletions.values()].map(({ commit }) => commit()));
export const undo = () => [...deletions.values()].at(-1)?.undo();

const sender = (hex) => hex.peerUUID
  ? { uuid: hex.peerUUID, name: hex.peerName, alias: hex.peerAlias, trust: hex.trust }
  : { uuid: hex.senderUUID, name: hex.senderName, alias: hex.senderAlias };
export const subject = (hex) => clean(hex.subject ?? hex.description) || 'Untitled';
/**
 * Returns the title of a hex in the detail pane: its description (of a text, the first line) if at most 200 characters, otherwise its
 * subject.
 */
export function title(hex) {
  const text = clean(isText(hex) ? cleanLines(hex.description).split('\n')[0] : hex.description);
  return text && text.length <= 200 ? text : subject(hex);
}
/** Counts the contents of a hex: `links`, `files` and `folders` at all levels, and `own`, the links of the hex itself. */
export function counts(hex) {
  const own = hex.links?.length ?? hex.linkCount ?? 0;
  if (!hex.links) return { own, links: own + (hex.linksInside ?? 0), files: 0, folders: hex.hexesInside ?? 0 };
  const files = hex.links.filter(isFile).length;
  const sum = { own: own - files, links: own - files, files, folders: 0 };
  for (const child of hex.children ?? []) {
    const inside = counts(child);
    sum.links += inside.links; sum.files += inside.files; sum.folders += inside.folders + 1;
  }
  return sum;
}
/** Describes the contents of a hex, as `12 links (3 outside folders) · 2 files · 1 folder`, or as `text`. */
export function sizes(hex) {
  const { own, links, files, folders } = counts(hex);
  if (!(links + files + folders) && clean(hex.subject ?? hex.description)) return 'text';
  const here = folders && own && own < links ? ` (${own.toLocaleString('en')} outside folders)` : '';
  return [links > 0 || !(files + folders) ? count(links, 'link') + here : null, files ? count(files, 'file') : null, folders ? count(folders, 'folder') : null].filter(Boolean).join(' · ');
}

/** Returns the subject of a hex or, for a search result, the text around the match, with the match marked. */
export function matchText({ match, ...hex }) {
  if (!match || match.in === 'sender') return [subject(hex)];
  return [clean(match.before) + (/\s$/.test(match.before) ? ' ' : ''), h('mark', clean(match.found)), (/^\s/.test(match.after) ? ' ' : '') + clean(match.after)];
}

/**
 * Loads a page of the hexes in a location or, if `typed` is not empty, of search results in it. Leaves out hexes whose deletion can be
 * undone.
 */
export async function hexPage(typed, members, signal) {
  const text = searchText(typed);
  const page = await call('GET', text ? `/v1/search${query({ text, ...members })}` : `/v1/hexes${query(members)}`, undefined, { signal });
  return { ...page, items: page.items.filter((hex) => !isBeingDeleted(hex)) };
}
export const nothingFound = () => [h('h2', 'Nothing found'), h('p', 'Try fewer words, or ', h('code', 'host:example.org'), ' for links to one site.')];

function hexRow() {
  const sign = mark('', 'row-mark'), from = h('bdi.from'), time = h('time.faint'), text = h('span.subject', { dir: 'auto' }), links = h('span.faint');
  return {
    element: twoLines(sign, [from, time], [text, links]),
    update(hex) {
      this.element.classList.toggle('unread', hex.unread);
      setMark(sign, hex.color);
      from.textContent = label(sender(hex));
      time.textContent = when(hex.receivedAt);
      text.replaceChildren(...matchText(hex));
      const saving = savingOf(hex);
      links.textContent = saving ? `saving ${count(saving, 'file')}…` : hex.linkCount + (hex.linksInside ?? 0) || '';
      links.title = sizes(hex);
      this.element.setAttribute('aria-label', `${hex.unread ? 'Unread. ' : ''}${from.textContent}: ${subject(hex)}, ${sizes(hex)}, ${wholeTime(hex.receivedAt)}`);
    },
  };
}

export class HexView extends View {
  /**
   * @param location the location in the API: `inbox` or `held`
   * @param nothing returns the elements to show if there are no hexes
   */
  constructor(location, title, nothing) {
    super({ title, sign: 'hex', reads: 'The hex', actions: () => this.markedActions(), list: { height: 64, row: hexRow, key: (hex) => hex.id } });
    Object.assign(this, { location, nothing, unread: false, from: null });
    this.filters.before(searchField(this));
  }

  total() {
    const { overview } = app;
    if (!overview || this.from || this.input.value.trim()) return 0;
    return this.location === 'held' ? overview.held : this.unread ? overview.unread : overview.inbox;
  }

  /** Loads the list with the current filters and search. */
  async reload() {
    this.drawFilters();
    const load = (after, limit, signal) => hexPage(this.input.value,
      { location: this.location, unread: this.unread || null, from: this.from?.uuid, limit, after }, signal);
    await this.fetchList(load, this.total());
  }

  async refresh() {
    this.drawFilters();
    await this.refreshList();
  }

  drawFilters() {
    const parts = [];
    if (this.location === 'inbox') {
      parts.push(choice([[false, 'All'], [true, `Unread${app.overview?.unread ? ` ${app.overview.unread.toLocaleString('en')}` : ''}`]],
        this.unread, (unread) => { this.unread = unread; this.reload(); }));
    }
    if (this.location === 'inbox') {
      const senders = (app.peers ?? []).filter((peer) => peer.uuid && peer.state !== 'ghost' && (peer.trust === 'trusted' || peer.unread || peer.uuid === this.from?.uuid))
        .sort((one, other) => label(one).localeCompare(label(other)));
      parts.push(h('select.sender', { 'aria-label': 'Sender', onchange: (event) => { this.from = senders.find((peer) => peer.uuid === event.target.value) ?? null; this.reload(); } },
        h('option', { value: '' }, 'All senders'), senders.map((peer) => h('option', { value: peer.uuid, selected: peer.uuid === this.from?.uuid }, label(peer)))));
      if (app.overview?.unread && !this.input.value.trim()) parts.push(button('Mark all read', () => this.markAllRead(), '.link'));
    }
    const focused = this.filters.contains(document.activeElement) && [...this.filters.querySelectorAll('button')].indexOf(document.activeElement);
    setChildren(this.filters, ...parts);
    if (focused !== false) this.filters.querySelectorAll('button')[focused]?.focus();
  }

  empty() {
    if (this.input.value.trim()) return nothingFound();
    if (this.unread) return [icon('check', 'large'), h('h2', 'All read'), button('Show all', () => { this.unread = false; this.reload(); })];
    return this.nothing();
  }

  showNothing() { super.showNothing(); this.hex = this.current = null; }

  async show(hex, isOpened) {
    clearTimeout(this.soon);
    this.current = hex.id;
    // The hex is fetched after a pause, so that nothing is fetched while the arrow keys move quickly through the list.
    if (!isOpened) await new Promise((resolve) => { this.soon = setTimeout(resolve, 90); });
    let whole;
    try {
      whole = await call('GET', `/v1/hexes/${hex.id}`);
    } catch (error) {
      const fault = faultOf(error);
      if (fault?.status === 404) { this.list.remove(hex.id); this.drawEmpty(); } else showFault(fault);
      return;
    }
    if (this.current !== hex.id) return;
    this.hex = whole;
    this.fill(this.detail(whole));
    showHits(this);
    if (this.location === 'inbox') showTransfers(whole);
    this.pane.scrollTop = 0;
    if (whole.unread && whole.location === 'inbox') this.soon = setTimeout(() => this.setUnread(false), 300);
  }

  detail(hex) {
    const who = sender(hex), links = openable(hex);
    const actions = this.location === 'held' ? [
      button('Accept', () => this.accept(), '.strong'),
      hex.trust !== 'trusted' && hasKey(hex.trust) && button('Trust sender…', () => trustDialog({ ...who, uuid: hex.peerUUID })),
      hasKey(hex.trust) && button('Block', () => this.block(who)),
      button('Delete', () => this.remove()),
    ] : [
      links.length > 0 && button(links.length === 1 ? 'Open' : `Open all ${links.length}`, () => this.openLinks(), '.strong'),
      copyButton(hex),
      button('Add to My Hexlist', () => this.save(), '', { title: 'Save to My Hexlist (s)' }),
      button('Forward…', () => compose({ hex })),
      button('Mark unread', () => this.setUnread(true)),
      button('Delete', () => this.remove()),
    ];
    const note = hex.trust === 'stranger' ? h('span.tag.doubt', 'stranger') : hex.trust === 'blocked' ? h('span.tag.bad', 'blocked') : null;
    const claim = hex.peerUUID && hex.senderUUID !== hex.peerUUID && h('p.faint', 'Originally by ', peerName({ uuid: hex.senderUUID, name: hex.senderName, alias: hex.senderAlias }), ' (not checked).');
    const peer = this.location === 'held' && (app.peers ?? []).find((one) => one.uuid === hex.peerUUID && one.fingerprint);
    return [
      head(mark(hex.color, 'big'), title(hex), [peerName(who), ' ', note, ' · ', h('time', { datetime: hex.receivedAt }, wholeTime(hex.receivedAt))], claim),
      buttons(actions),
      peer && field('Fingerprint', fingerprint(peer.fingerprint)),
      this.location === 'inbox' && saveAllBar(hex),
      ...hexBody(this.location === 'held' ? withoutOpening(hex) : hex, {
        canSaveFiles: this.location === 'inbox', isTrusted: hex.trust === 'trusted',
        // A shown hex is unread only if the user marked it as unread again. Then a link is marked as read when it is opened.
        opened: (owner, index) => this.hex?.unread && ask('PATCH', '/v1/hexes', { links: [[owner.id, index + 1]], unread: false }),
      }),
    ];
  }

  async setUnread(unread) {
    const { hex } = this;
    clearTimeout(this.soon);
    if (!hex || hex.unread === unread) return;
    hex.unread = unread;
    this.list.replace({ id: hex.id, unread });
    if (await ask('PATCH', `/v1/hexes/${hex.id}`, { unread })) return;
    hex.unread = !unread;
    this.list.replace({ id: hex.id, unread: !unread });
  }

  async markAllRead() {
    const which = this.from ? { from: this.from.uuid } : { all: true };
    if (await ask('PATCH', '/v1/hexes', { ...which, unread: false }, 'Marked as read.')) this.refresh();
  }

  openLinks() {
    const id = this.list.selected;
    if (this.location === 'held') return toast('Accept it first: its sender is not trusted.');
    if (this.hex?.id === id) openAll(openable(this.hex));
    else if (id) this.select(this.list.item(), true);
  }

  /** Saves the selected hex to My Hexlist. The hex may not be loaded yet. */
  async save() {
    const hex = this.list.item();
    if (!hex || this.location === 'held') return;
    if (await ask('POST', '/v1/mine/save', { ids: [hex.id] })) {
      toast('Saved to My Hexlist.', { action: 'Show', onaction: () => app.go('mine') });
    }
  }

  remove() {
    const hex = this.list.item();
    if (!hex || isBeingDeleted(hex)) return;
    const putBack = this.list.remove(hex.id);
    this.drawEmpty();
    deleteLater([hex], () => { putBack(); this.drawEmpty(); this.list.select(hex, false); });
  }

  /** Makes the buttons for the marked hexes. */
  markedActions() {
    const change = (path, body, done) => async () => {
      const ids = this.list.markedItems.map(({ id }) => id);
      if (await ask(path === '/v1/hexes' ? 'PATCH' : 'POST', path, { ids, ...body }, done)) { this.list.unmark(); this.reload(); }
    };
    return [
      ...(this.location === 'held' ? [button('Accept', change('/v1/hexes/accept', {}, 'Accepted. They are in your inbox now.'))]
        : [button('Mark read', change('/v1/hexes', { unread: false })), button('Mark unread', change('/v1/hexes', { unread: true })),
          button('Add to My Hexlist', change('/v1/mine/save', {}, 'Saved to My Hexlist.'))]),
      button('Delete', () => this.removeMarked()),
    ];
  }

  removeMarked() {
    const hexes = this.list.markedItems;
    this.list.unmark();
    this.list.select(null);
    const putBack = hexes.map(({ id }) => this.list.remove(id)).reverse();
    this.drawEmpty();
    deleteLater(hexes, () => { for (const back of putBack) back(); this.drawEmpty(); });
  }

  async accept() {
    const { hex } = this;
    if (hex && await ask('POST', '/v1/hexes/accept', { ids: [hex.id] })) {
      this.list.remove(hex.id);
      this.drawEmpty();
      toast('Accepted. It is in your inbox now.', { action: 'Show', onaction: () => app.go('inbox') });
    }
  }

  async block(who) {
    if (!await confirmed('Block this sender?', `Nothing more is accepted from ${label(who)}, and nothing can be sent to it. You can unblock it under Peers.`, 'Block')) return;
    ask('POST', `/v1/peers/${part(who.uuid)}/block`, undefined, `${label(who)} is blocked.`);
  }
}

/**
 * Converts the text in the search field to a query of the API. The last word may be incomplete, so it is searched as a prefix (`word*`).
 */
const searchText = (typed) => {
  const text = typed.trim();
  return /[\p{L}\p{N}]$/u.test(text) && !/["“]|\S:\S*$/.test(text) ? `${text}*` : text;
};

/** Returns a copy of a hex whose links are shown as text and cannot be clicked, because its sender is not trusted. */
const withoutOpening = (hex) => ({ ...hex, links: hex.links?.map((link) => ({ ...link, opens: undefined, service: link.opens ?? link.service })), children: hex.children?.map(withoutOpening) });

/**
 * Folds a text for comparison: removes accents, and converts it to lower case. Returns the result with the original position of each
 * character.
 */
function folded(text) {
  let result = '';
  const positions = [];
  for (let at = 0; at < text.length; at++) {
    const part = text[at].normalize('NFD').replace(/\p{M}/gu, '').toLowerCase();
    for (let index = 0; index < part.length; index++) positions.push(at);
    result += part;
  }
  return { text: result, positions };
}

/**
 * Marks the searched words in the detail pane of a view. Shows the number of hits with buttons to step through them, and scrolls to the
 * first hit in an element that contains all words. A folder with the current hit is unfolded.
 */
export async function showHits(view) {
  const typed = view.input.value.trim(), { pane } = view, first = pane.firstChild;
  if (!typed) return;
  await Promise.all([...pane.querySelectorAll('.link-list')].map((list) => list.filled));
  if (pane.firstChild !== first) return; // another hex was opened meanwhile
  const words = typed.split(/\s+/).map((word) => folded(word.replace(/^[a-z]+:/, '').replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '')).text).filter(Boolean), hits = [];
  const walker = document.createTreeWalker(pane, NodeFilter.SHOW_TEXT, (node) => node.parentElement.closest(searched) ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  for (const node of nodes) hits.push(...markWords(node, words));
  if (!hits.length) return;
  // Begins with the first hit in an element that contains all words.
  let now = Math.max(0, hits.findIndex((hit) => { const { text } = folded(hit.closest(searched).textContent); return words.every((word) => text.includes(word)); }));
  const text = h('span', { role: 'status' }), step = (by) => {
    hits[now].classList.remove('now');
    now = (now + by + hits.length) % hits.length;
    hits[now].classList.add('now');
    for (let folder = hits[now].closest('details'); folder; folder = folder.parentElement.closest('details')) folder.open = true;
    scrollTo(hits[now]);
    text.textContent = hits.length === 1 ? '1 hit' : `Hit ${now + 1} of ${hits.length.toLocaleString('en')}`;
  };
  pane.querySelector('.buttons')?.after(h('div.hits', text, hits.length > 1 && [button('Previous', () => step(-1)), button('Next', () => step(1))]));
  step(0);
}
/**
 * Scrolls to a hit, repeatedly in 6 frames: rows outside the screen have estimated heights, and get their real heights when they come near
 * it.
 */
function scrollTo(hit, frames = 5) {
  hit.scrollIntoView({ block: 'center' });
  if (frames > 0) requestAnimationFrame(() => scrollTo(hit, frames - 1));
}
/** CSS selectors of the elements of the detail pane in which hits are marked. */
const searched = '.link-text, .file-name, .description, .note, summary, h2';

/**
 * Wraps each occurrence of one of the words, at the beginning of a word of a text node, in a `mark` element. Returns the marks in order.
 */
function markWords(node, words) {
  const { text, positions } = folded(node.data), ranges = [], marks = [];
  for (const word of words) {
    for (let at = -1; (at = text.indexOf(word, at + 1)) >= 0;) {
      if (!/[\p{L}\p{N}]/u.test(text[at - 1] ?? '')) ranges.push([positions[at], positions[at + word.length - 1] + 1]);
    }
  }
  let end = node.data.length;
  for (const [from, to] of ranges.sort(([one], [other]) => other - one)) {
    if (to > end) continue; // the match overlaps the one after it
    end = from;
    node.splitText(to);
    const found = h('mark', node.splitText(from).data);
    node.nextSibling.replaceWith(found);
    marks.unshift(found);
  }
  return marks;
}

/** Returns the links of a hex and of its folders that may be opened. */
export function openable(hex) {
  return [...(hex.links ?? []), ...(hex.children ?? []).flatMap(openable)].filter((link) => link.opens);
}

export async function openAll(links) {
  if (links.length > 10 && !await confirmed('Open them all?', `${links.length} tabs will open.`, `Open ${links.length}`)) return;
  for (const link of links) h('a', { href: link.url, target: '_blank', rel: 'noopener noreferrer' }).click();
  if (links.length > 1) toast('Only one tab opened? Allow pop-ups for this page (icon in the address bar).', { time: 8000 });
}

/** Whether a hex is a text without links, files and folders. */
const isText = (hex) => !hex.links?.length && !hex.children?.length && clean(hex.description) !== '';
/**
 * Makes the button that copies the links of a hex, one per line, or the text of a hex without links and folders; false if there is neither.
 */
export function copyButton(hex) {
  const links = (hex.links ?? []).filter((link) => !isFile(link));
  if (isText(hex)) return button('Copy', () => copy(hex.description), '.strong');
  return links.length > 0 && button(links.length === 1 ? 'Copy link' : 'Copy links', () => copy(links.map((link) => clean(link.url)).join('\n')));
}

/** Number of links that are added to the page in one frame. */
const linksAtOnce = 200;
/** Number of links in one `ul` of a list of links. `linksAtOnce` is a multiple of it. */
const chunkSize = 40;

/**
 * Makes the elements for the description, links and folders of a hex.
 * @param options `canSaveFiles`: whether files have a button *Save*; `isTrusted`: whether the sender is trusted; `tools(hex, index, link)`:
 * returns the controls of a link; `opened(hex, index)`: called when a link is opened
 * @param extra the unknown members of the hex, which contain the sizes of files
 */
export function hexBody(hex, options = {}, extra = hex.extra) {
  const lines = cleanLines(hex.description);
  const folders = (hex.children ?? []).map((child, index) => h('details.inside', { open: hex.children.length <= 3 },
    h('summary', { dir: 'auto' }, icon('folder'), subject(child), h('span.faint', ` ${sizes(child)}`)), h('div', options.canSaveFiles && saveAllBar(child, extra?.children?.[index] ?? {}, true), hexBody(child, options, extra?.children?.[index] ?? {}))));
  return [
    isText(hex) ? h('p.description.text', { dir: 'auto' }, lines) : lines && lines !== title(hex) && h('p.description', { dir: 'auto' }, lines),
    hex.links?.length ? linkList(hex, options, extra) : null,
    extra?.hex?.note && h('p.note', { dir: 'auto' }, clean(extra.hex.note)),
    ...folders,
    !hex.links?.length && !folders.length && !isText(hex) && h('p.faint', 'No links.'),
  ].filter(Boolean);
}

function linkList(hex, options, extra) {
  const { links } = hex, list = h('div.link-list');
  // The links are in several `ul` elements, because the browser does not lay out those outside the screen (`content-visibility`). There is
  // not one element for each link, because the browser checks each of them in every frame.
  const add = (from) => {
    for (let at = from; at < Math.min(from + linksAtOnce, links.length); at += chunkSize) {
      const chunk = h('ul.links', links.slice(at, at + chunkSize).map((link, index) => linkItem(hex, at + index, options, extra)));
      chunk.style.setProperty('--links', chunk.children.length);
      list.append(chunk);
    }
  };
  add(0);
  // A long list is filled frame by frame, so that the page stays responsive. `filled` resolves when the list is complete, or was removed.
  list.filled = new Promise((resolve) => {
    const next = (from) => {
      if (from >= links.length || !list.isConnected) return resolve();
      add(from);
      requestAnimationFrame(() => next(from + linksAtOnce));
    };
    requestAnimationFrame(() => next(linksAtOnce));
  });
  return list;
}

function linkItem(hex, index, options, extra) {
  const link = hex.links[index];
  const fresh = link.new && h('span.fresh', { title: 'New' }, h('span.hidden', 'New'));
  if (isFile(link)) {
    const item = fileItem(hex, index, link, extra?.links?.[index]?.size, options);
    if (fresh) item.querySelector('.picture').append(fresh);
    return item;
  }
  const text = clean(link.linkDescription), url = clean(link.url);
  const name = text || url.replace(/^https?:\/\//, '').slice(0, 300);
  const own = extra?.links?.[index], added = Number(own?.addDate), note = clean(own?.note), tags = Array.isArray(own?.tags) ? own.tags.map(clean).filter(Boolean) : [];
  const before = link.before && `already received ${when(link.before.receivedAt)}`;
  const under = [link.opens && text ? h('span', clean(link.opens)) : null, link.service !== 'Unknown' && h('span', clean(link.service)),
    added > 0 && h('span', `added ${when(added * 1000)}`), tags.length > 0 && h('span', tags.map((tag) => `#${tag}`).join(' ')), before && h('span', before), link.dead && h('span.doubt', `dead: the page is gone (${link.dead.status}), found ${when(link.dead.since)}`), link.notOpened && h('span.doubt', `not clickable: ${clean(link.notOpened)}`)].filter(Boolean);
  const title = link.opens
    ? h('a', { href: link.url, target: '_blank', rel: 'noopener noreferrer', dir: 'auto', title: url, draggable: 'true', onclick: options.opened && (() => options.opened(hex, index)) }, name)
    : h('span', { dir: 'auto' }, name);
  return h('li', h('span.sign', icon('link'), fresh), h('div.link-text', title, note && h('p.note', { dir: 'auto' }, note), under.length > 0 && h('div.under', under)), options.tools && h('div.tools', options.tools(hex, index, link)));
}
