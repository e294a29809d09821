// Inbox and held tray: a list of hexes, and the one that is read.
import { call, query, part } from './api.js';
import { h, icon, mark, setMark, clean, cleanLines, peerText, label, count, when, wholeTime, toast, button, confirmed, dialog } from './dom.js';
import { List } from './list.js';
import { app } from './main.js';
import { compose } from './compose.js';
import { trustDialog, fingerprint } from './peers.js';

/** Hexes whose deletion can still be undone, and how it is done. */
const leaving = new Map();
const flush = () => { for (const end of [...leaving.values()]) end(true); };
addEventListener('pagehide', flush);

const sender = (hex) => hex.peerUUID
  ? { uuid: hex.peerUUID, name: hex.peerName, alias: hex.peerAlias, trust: hex.trust }
  : { uuid: hex.senderUUID, name: hex.senderName, alias: hex.senderAlias };
export const subject = (hex) => clean(hex.subject ?? hex.description) || 'Without a description';
/** The description as a title, where it is short enough for one. */
export const title = (hex) => { const text = clean(hex.description); return text && text.length <= 200 ? text : subject(hex); };
export const sizes = (hex) => [count(hex.linkCount ?? hex.links?.length ?? 0, 'link'),
  hex.hexesInside && `${count(hex.hexesInside, 'hex', 'hexes')} inside`].filter(Boolean).join(' · ');

/** A row of a list of hexes. */
function hexRow() {
  const sign = mark('', 'row-mark'), from = h('bdi.from'), time = h('time.faint'), text = h('span.subject', { dir: 'auto' }), links = h('span.faint');
  return {
    element: h('div.row', null, sign, h('div.lines', null, h('div.line', null, from, time), h('div.line', null, text, links))),
    update(hex) {
      this.element.classList.toggle('unread', hex.unread);
      setMark(sign, hex.color);
      from.textContent = label(sender(hex));
      time.textContent = when(hex.receivedAt);
      const { match } = hex;
      if (match && match.in !== 'sender') {
        text.replaceChildren(clean(match.before) + (/\s$/.test(match.before) ? ' ' : ''), h('mark', null, clean(match.found)),
          (/^\s/.test(match.after) ? ' ' : '') + clean(match.after));
      } else text.textContent = subject(hex);
      links.textContent = hex.linkCount + (hex.linksInside ?? 0) || '';
      links.title = sizes(hex);
      this.element.setAttribute('aria-label', `${hex.unread ? 'Unread. ' : ''}${from.textContent}: ${subject(hex)}, ${sizes(hex)}, ${wholeTime(hex.receivedAt)}`);
    },
  };
}

export class HexView {
  constructor(place, title, empty) {
    Object.assign(this, { place, title, empty, unread: false, from: null });
    this.list = new List({
      name: title, height: 64, row: hexRow, key: (hex) => hex.id,
      onselect: (hex, isOpened) => this.show(hex, isOpened), onopen: (hex) => this.show(hex, true),
    });
    this.input = h('input', { type: 'search', placeholder: 'Search', 'aria-label': `Search in ${title}`, oninput: () => this.typed(),
      onkeydown: (event) => { if (event.key === 'ArrowDown' || event.key === 'Enter') { event.preventDefault(); this.list.move(0); this.list.element.focus(); } } });
    this.filters = h('div.filters');
    this.none = h('div.empty');
    this.element = h('section.column', { 'aria-label': title },
      h('header.top', null, h('h2.title', null, title), h('label.search', null, icon('search'), this.input), this.filters), this.list.element, this.none);
    this.pane = h('section.pane', { 'aria-label': 'The hex', tabindex: -1 });
    this.rest();
  }

  total() {
    const { overview } = app;
    if (!overview || this.from || this.input.value.trim()) return 0;
    return this.place === 'held' ? overview.held : this.unread ? overview.unread : overview.inbox;
  }

  /** Reads the list anew: with other filters, another search. */
  async reload() {
    this.drawFilters();
    const text = searchText(this.input.value);
    const load = async (after, limit, signal) => {
      const members = { location: this.place, unread: this.unread || null, from: this.from?.uuid, limit, after };
      const page = await call('GET', text ? `/v1/search${query({ text, ...members })}` : `/v1/hexes${query(members)}`, undefined, { signal });
      return { items: page.items.filter((hex) => !leaving.has(hex.id)), next: page.next };
    };
    try {
      if (await this.list.show(load, this.total())) this.drawEmpty();
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.list.items = [];
      this.list.redraw();
      this.drawEmpty(error.message);
    }
  }

  async renew() {
    try { await this.list.renew(this.total()); } catch { return; }
    this.drawFilters();
    this.drawEmpty();
  }

  typed() {
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.reload(), 40);
  }

  drawFilters() {
    const parts = [];
    if (this.place === 'inbox') {
      const choose = (unread) => () => { this.unread = unread; this.reload(); };
      parts.push(h('div.choice', { role: 'group', 'aria-label': 'Which' },
        button('All', choose(false), '', { 'aria-pressed': String(!this.unread) }),
        button(`Unread${app.overview?.unread ? ` ${app.overview.unread.toLocaleString('en')}` : ''}`, choose(true), '', { 'aria-pressed': String(this.unread) })));
    }
    if (this.from) parts.push(h('button.chip', { type: 'button', onclick: () => { this.from = null; this.reload(); } }, 'From ', peerText(label(this.from)), icon('close')));
    const focused = this.filters.contains(document.activeElement) && [...this.filters.querySelectorAll('button')].indexOf(document.activeElement);
    this.filters.replaceChildren(...parts);
    if (focused !== false) this.filters.querySelectorAll('button')[focused]?.focus();
  }

  drawEmpty(fault) {
    this.none.hidden = this.list.items.length > 0;
    if (this.none.hidden) return;
    if (fault) this.none.replaceChildren(h('p', null, fault));
    else if (this.input.value.trim()) this.none.replaceChildren(h('h2', null, 'Nothing found'), h('p', null, 'Words may be anywhere in a hex; ', h('code', null, 'host:example.org'), ' finds links to a host.'));
    else if (this.unread) this.none.replaceChildren(icon('check', 'large'), h('h2', null, 'All read'), button('Show all', () => { this.unread = false; this.reload(); }));
    else this.none.replaceChildren(...this.empty());
  }

  /** The pane without a hex. */
  rest() {
    this.current = null;
    this.pane.replaceChildren(h('div.rest', null, icon('hex', 'huge')));
  }

  async show(hex, isOpened) {
    clearTimeout(this.soon);
    if (!hex) { app.close(); return this.rest(); }
    if (isOpened) app.open(this);
    this.current = hex.id;
    // Who goes through the list with the arrows fetches only where he stays.
    if (!isOpened) await new Promise((resolve) => { this.soon = setTimeout(resolve, 90); });
    let whole;
    try {
      whole = await call('GET', `/v1/hexes/${hex.id}`);
    } catch (error) {
      if (error.status === 404) { this.list.remove(hex.id); this.drawEmpty(); } else toast(error.message);
      return;
    }
    if (this.current !== hex.id) return;
    this.hex = whole;
    this.pane.replaceChildren(...this.detail(whole));
    this.pane.scrollTop = 0;
    if (isOpened && !this.list.isWide()) this.pane.focus();
    if (whole.unread && whole.location === 'inbox') this.soon = setTimeout(() => this.setUnread(false), 300);
  }

  detail(hex) {
    const who = sender(hex), links = openable(hex);
    const actions = this.place === 'held' ? [
      button('Accept', () => this.accept(), '.strong'),
      hex.trust !== 'trusted' && button('Trust the sender…', () => trustDialog({ ...who, uuid: hex.peerUUID })),
      button('Block', () => this.block(who)),
      button('Delete', () => this.remove()),
    ] : [
      links.length > 0 && button(links.length === 1 ? 'Open' : `Open all ${links.length}`, () => this.open(), '.strong'),
      button('Save', () => this.save(), '', { title: 'Into My Hexlist (s)' }),
      button('Send on…', () => compose({ hex })),
      button('Mark unread', () => this.setUnread(true)),
      button('Delete', () => this.remove()),
    ];
    const note = hex.trust === 'stranger' ? h('span.tag.doubt', null, 'stranger') : hex.trust === 'blocked' ? h('span.tag.bad', null, 'blocked') : null;
    const claim = hex.peerUUID && hex.senderUUID !== hex.peerUUID && h('p.faint', null, 'It says it was made by ', peerText(label({ uuid: hex.senderUUID, name: hex.senderName, alias: hex.senderAlias })), '.');
    const peer = this.place === 'held' && (app.peers ?? []).find((one) => one.uuid === hex.peerUUID && one.fingerprint);
    return [
      backButton(),
      h('div.head', null, mark(hex.color, 'big'), h('div', null, h('h2', { dir: 'auto' }, title(hex)),
        h('p.faint', null, peerText(label(who)), ' ', note, ' · ', h('time', { datetime: hex.receivedAt }, wholeTime(hex.receivedAt))), claim)),
      h('div.buttons', null, actions),
      peer && h('div.field', null, h('span', null, 'Fingerprint'), fingerprint(peer.fingerprint)),
      ...hexBody(this.place === 'held' ? closed(hex) : hex),
    ].filter(Boolean);
  }

  async setUnread(unread) {
    const { hex } = this;
    clearTimeout(this.soon);
    if (!hex || hex.unread === unread) return;
    hex.unread = unread;
    this.list.replace({ id: hex.id, unread });
    await quietly(() => call('PATCH', `/v1/hexes/${hex.id}`, { unread }));
  }

  open() {
    const id = this.list.selected;
    if (this.place === 'held') return toast('Accept it first: what is held comes from somebody who is not trusted.');
    if (this.hex?.id === id) openAll(openable(this.hex));
    else if (id) this.show(this.list.item(), true);
  }

  async save() {
    const { hex } = this;
    if (!hex || this.place === 'held') return;
    if (await quietly(() => call('POST', '/v1/mine/save', { ids: [hex.id] }))) {
      toast('Saved to My Hexlist.', { action: 'Look', onaction: () => app.go('mine') });
    }
  }

  /** Deletes ten seconds later: until then nothing is lost. */
  remove() {
    const { hex } = this;
    if (!hex || leaving.has(hex.id)) return;
    const putBack = this.list.remove(hex.id);
    this.drawEmpty();
    const end = (isLast) => {
      if (!leaving.delete(hex.id)) return;
      drop();
      call('DELETE', `/v1/hexes/${hex.id}`, undefined, { keepalive: isLast }).catch((error) => { putBack(); toast(`Not deleted: ${error.message}`); });
    };
    leaving.set(hex.id, end);
    this.undo = () => { if (leaving.delete(hex.id)) { drop(); putBack(); this.drawEmpty(); this.list.select(hex, false); } };
    const drop = toast(`Deleted “${subject(hex).slice(0, 40)}”.`, { action: 'Undo', onaction: () => this.undo(), time: 10000, onend: () => end(false) });
  }

  async accept() {
    const { hex } = this;
    if (hex && await quietly(() => call('POST', '/v1/hexes/accept', { ids: [hex.id] }))) {
      this.list.remove(hex.id);
      this.drawEmpty();
      toast('Accepted: it is in the inbox.', { action: 'Look', onaction: () => app.go('inbox') });
    }
  }

  async block(who) {
    if (!await confirmed('Block this sender?', `What ${label(who)} sends is refused from now on, also from here. You can unblock it under Peers.`, 'Block')) return;
    if (await quietly(() => call('POST', `/v1/peers/${part(who.uuid)}/block`))) toast(`${label(who)} is blocked.`);
  }
}

/** The words that are searched for: the last one as it begins, while it is typed. */
const searchText = (typed) => {
  const text = typed.trim();
  return /[\p{L}\p{N}]$/u.test(text) && !/["“]|\S:\S*$/.test(text) ? `${text}*` : text;
};

export async function quietly(body) {
  try {
    return await body() ?? true;
  } catch (error) {
    if (error.name !== 'AbortError') toast([error.message, error.hint].filter(Boolean).join(' '), { time: 9000 });
    return null;
  }
}

export const backButton = () => h('button.quiet.back', { type: 'button', onclick: () => app.close() }, icon('back'), 'Back');

/** A hex whose links can be read and not clicked: of somebody who is not trusted. */
const closed = (hex) => ({ ...hex, links: hex.links?.map((link) => ({ ...link, opens: undefined, service: link.opens ?? link.service })), children: hex.children?.map(closed) });

// The links of a hex, and the hexes inside it.
export function openable(hex) {
  return [...(hex.links ?? []), ...(hex.children ?? []).flatMap(openable)].filter((link) => link.opens);
}

export async function openAll(links) {
  if (links.length > 10 && !await confirmed('Open them all?', `${links.length} tabs will open.`, `Open ${links.length}`)) return;
  for (const link of links) h('a', { href: link.url, target: '_blank', rel: 'noopener noreferrer' }).click();
  if (links.length > 1) toast('If only one opened: let this page open several, by the sign in the address bar.', { time: 8000 });
}

const shownAtOnce = 200;
export function linkList(links) {
  const list = h('ul.links');
  const add = (from, to) => list.append(...links.slice(from, to).map(linkItem));
  add(0, shownAtOnce);
  if (links.length <= shownAtOnce) return list;
  const more = button(`Show all ${links.length.toLocaleString('en')}`, () => { more.remove(); add(shownAtOnce, links.length); });
  return h('div', null, list, more);
}

function linkItem(link) {
  const text = clean(link.linkDescription), url = clean(link.url);
  const name = text || url.replace(/^https?:\/\//, '').slice(0, 300);
  const before = link.before && `here before, ${when(link.before.receivedAt)}`;
  const under = [link.opens && text ? h('span', null, clean(link.opens)) : null, link.service !== 'Unknown' && h('span', null, clean(link.service)),
    before && h('span', null, before), link.notOpened && h('span.doubt', null, `not opened: ${clean(link.notOpened)}`)].filter(Boolean);
  const title = link.opens
    ? h('a', { href: link.url, target: '_blank', rel: 'noopener noreferrer', dir: 'auto', title: url, draggable: 'true' }, name)
    : h('span', { dir: 'auto' }, name);
  return h('li', null, title, under.length > 0 && h('div.under', null, under));
}

export function hexBody(hex) {
  const lines = cleanLines(hex.description);
  const children = (hex.children ?? []).map((child) => h('details.inside', { open: (hex.children.length <= 3) },
    h('summary', { dir: 'auto' }, mark(child.color), subject(child), h('span.faint', null, ` ${sizes(child)}`)), h('div', null, hexBody(child))));
  return [
    lines && lines !== title(hex) && h('p.description', { dir: 'auto' }, lines),
    hex.links?.length ? linkList(hex.links) : null,
    ...children,
    !hex.links?.length && !children.length && h('p.faint', null, 'There are no links in it.'),
  ].filter(Boolean);
}
