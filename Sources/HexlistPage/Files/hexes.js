// Inbox and held tray: a list of hexes, and the one that is read.
import { call, faultOf, query, part } from './api.js';
import { h, icon, mark, setMark, twoLines, head, clean, cleanLines, label, peerName, count, when, wholeTime, toast, button, buttons, field, choice, ask, confirmed, setChildren, showFault } from './dom.js';
import { View, searchField } from './list.js';
import { app } from './main.js';
import { compose } from './compose.js';
import { trustDialog, fingerprint } from './peers.js';

/** Hexes whose deletion can still be undone: how it is done, and how undone. */
const leaving = new Map();
export const isLeaving = (hex) => leaving.has(hex.id);
addEventListener('pagehide', () => { for (const { end } of [...leaving.values()]) end(true); });

/** Deletes a hex ten seconds later: until then nothing is lost. `back` puts it where it was. */
export function leave(hex, back) {
  const timer = setTimeout(() => end(), 10000);
  const close = () => { clearTimeout(timer); drop(); return leaving.delete(hex.id); };
  const end = (isLast) => {
    if (close()) call('DELETE', `/v1/hexes/${hex.id}`, undefined, { keepalive: isLast }).then(() => app.view?.renew(), (error) => { back(); toast(`Not deleted: ${faultOf(error)?.message ?? ''}`); });
  };
  const undo = () => { if (close()) back(); };
  leaving.set(hex.id, { end, undo });
  const drop = toast(`Deleted “${subject(hex).slice(0, 40)}”.`, { action: 'Undo', onaction: undo, time: 10000 });
}
export const undo = () => [...leaving.values()].at(-1)?.undo();

const sender = (hex) => hex.peerUUID
  ? { uuid: hex.peerUUID, name: hex.peerName, alias: hex.peerAlias, trust: hex.trust }
  : { uuid: hex.senderUUID, name: hex.senderName, alias: hex.senderAlias };
export const subject = (hex) => clean(hex.subject ?? hex.description) || 'Without a description';
/** The description as a title, where it is short enough for one. */
export const title = (hex) => { const text = clean(hex.description); return text && text.length <= 200 ? text : subject(hex); };
export const sizes = (hex) => [count(hex.linkCount ?? hex.links?.length ?? 0, 'link'),
  hex.hexesInside && `${count(hex.hexesInside, 'hex', 'hexes')} inside`].filter(Boolean).join(' · ');

/** The subject of a hex, or what was found in it. */
export function found({ match, ...hex }) {
  if (!match || match.in === 'sender') return [subject(hex)];
  return [clean(match.before) + (/\s$/.test(match.before) ? ' ' : ''), h('mark', clean(match.found)), (/^\s/.test(match.after) ? ' ' : '') + clean(match.after)];
}

/** A page of a place or of what a search finds in it, without what is being deleted. */
export async function hexPage(typed, members, signal) {
  const text = searchText(typed);
  const page = await call('GET', text ? `/v1/search${query({ text, ...members })}` : `/v1/hexes${query(members)}`, undefined, { signal });
  return { ...page, items: page.items.filter((hex) => !isLeaving(hex)) };
}
export const nothingFound = () => [h('h2', 'Nothing found'), h('p', 'Words may be anywhere in a hex; ', h('code', 'host:example.org'), ' finds links to a host.')];

/** A row of a list of hexes. */
function hexRow() {
  const sign = mark('', 'row-mark'), from = h('bdi.from'), time = h('time.faint'), text = h('span.subject', { dir: 'auto' }), links = h('span.faint');
  return {
    element: twoLines(sign, [from, time], [text, links]),
    update(hex) {
      this.element.classList.toggle('unread', hex.unread);
      setMark(sign, hex.color);
      from.textContent = label(sender(hex));
      time.textContent = when(hex.receivedAt);
      text.replaceChildren(...found(hex));
      links.textContent = hex.linkCount + (hex.linksInside ?? 0) || '';
      links.title = sizes(hex);
      this.element.setAttribute('aria-label', `${hex.unread ? 'Unread. ' : ''}${from.textContent}: ${subject(hex)}, ${sizes(hex)}, ${wholeTime(hex.receivedAt)}`);
    },
  };
}

export class HexView extends View {
  /** @param nothing the children that stand where there is none of the place */
  constructor(place, title, nothing) {
    super({ title, sign: 'hex', reads: 'The hex', list: { height: 64, row: hexRow, key: (hex) => hex.id } });
    Object.assign(this, { place, nothing, unread: false, from: null });
    this.filters.before(searchField(this));
  }

  total() {
    const { overview } = app;
    if (!overview || this.from || this.input.value.trim()) return 0;
    return this.place === 'held' ? overview.held : this.unread ? overview.unread : overview.inbox;
  }

  /** Reads the list anew: with other filters, another search. */
  async reload() {
    this.drawFilters();
    const load = (after, limit, signal) => hexPage(this.input.value,
      { location: this.place, unread: this.unread || null, from: this.from?.uuid, limit, after }, signal);
    await this.fetchList(load, this.total());
  }

  async renew() {
    this.drawFilters();
    await this.renewList();
  }

  drawFilters() {
    const parts = [];
    if (this.place === 'inbox') {
      parts.push(choice([[false, 'All'], [true, `Unread${app.overview?.unread ? ` ${app.overview.unread.toLocaleString('en')}` : ''}`]],
        this.unread, (unread) => { this.unread = unread; this.reload(); }));
    }
    if (this.from) parts.push(h('button.chip', { onclick: () => { this.from = null; this.reload(); } }, 'From ', peerName(this.from), icon('close')));
    const focused = this.filters.contains(document.activeElement) && [...this.filters.querySelectorAll('button')].indexOf(document.activeElement);
    setChildren(this.filters, ...parts);
    if (focused !== false) this.filters.querySelectorAll('button')[focused]?.focus();
  }

  empty() {
    if (this.input.value.trim()) return nothingFound();
    if (this.unread) return [icon('check', 'large'), h('h2', 'All read'), button('Show all', () => { this.unread = false; this.reload(); })];
    return this.nothing();
  }

  rest() { super.rest(); this.hex = this.current = null; }

  async show(hex, isOpened) {
    clearTimeout(this.soon);
    this.current = hex.id;
    // Who goes through the list with the arrows fetches only where he stays.
    if (!isOpened) await new Promise((resolve) => { this.soon = setTimeout(resolve, 90); });
    let whole;
    try {
      whole = await call('GET', `/v1/hexes/${hex.id}`);
    } catch (error) {
      const fault = faultOf(error);
      if (fault?.status === 404) { this.list.remove(hex.id); this.look(); } else showFault(fault);
      return;
    }
    if (this.current !== hex.id) return;
    this.hex = whole;
    this.fill(this.detail(whole));
    this.pane.scrollTop = 0;
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
      links.length > 0 && button(links.length === 1 ? 'Open' : `Open all ${links.length}`, () => this.openLinks(), '.strong'),
      button('Save', () => this.save(), '', { title: 'Into My Hexlist (s)' }),
      button('Send on…', () => compose({ hex })),
      button('Mark unread', () => this.setUnread(true)),
      button('Delete', () => this.remove()),
    ];
    const note = hex.trust === 'stranger' ? h('span.tag.doubt', 'stranger') : hex.trust === 'blocked' ? h('span.tag.bad', 'blocked') : null;
    const claim = hex.peerUUID && hex.senderUUID !== hex.peerUUID && h('p.faint', 'It says it was made by ', peerName({ uuid: hex.senderUUID, name: hex.senderName, alias: hex.senderAlias }), '.');
    const peer = this.place === 'held' && (app.peers ?? []).find((one) => one.uuid === hex.peerUUID && one.fingerprint);
    return [
      head(mark(hex.color, 'big'), title(hex), [peerName(who), ' ', note, ' · ', h('time', { datetime: hex.receivedAt }, wholeTime(hex.receivedAt))], claim),
      buttons(actions),
      peer && field('Fingerprint', fingerprint(peer.fingerprint)),
      ...hexBody(this.place === 'held' ? closed(hex) : hex),
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

  openLinks() {
    const id = this.list.selected;
    if (this.place === 'held') return toast('Accept it first: what is held comes from somebody who is not trusted.');
    if (this.hex?.id === id) openAll(openable(this.hex));
    else if (id) this.select(this.list.item(), true);
  }

  // The selected hex may not be open yet.
  async save() {
    const hex = this.list.item();
    if (!hex || this.place === 'held') return;
    if (await ask('POST', '/v1/mine/save', { ids: [hex.id] })) {
      toast('Saved to My Hexlist.', { action: 'Look', onaction: () => app.go('mine') });
    }
  }

  remove() {
    const hex = this.list.item();
    if (!hex || isLeaving(hex)) return;
    const putBack = this.list.remove(hex.id);
    this.look();
    leave(hex, () => { putBack(); this.look(); this.list.select(hex, false); });
  }

  async accept() {
    const { hex } = this;
    if (hex && await ask('POST', '/v1/hexes/accept', { ids: [hex.id] })) {
      this.list.remove(hex.id);
      this.look();
      toast('Accepted: it is in the inbox.', { action: 'Look', onaction: () => app.go('inbox') });
    }
  }

  async block(who) {
    if (!await confirmed('Block this sender?', `What ${label(who)} sends is refused from now on, also from here. You can unblock it under Peers.`, 'Block')) return;
    ask('POST', `/v1/peers/${part(who.uuid)}/block`, undefined, `${label(who)} is blocked.`);
  }
}

/** The words that are searched for: the last one as it begins, while it is typed. */
const searchText = (typed) => {
  const text = typed.trim();
  return /[\p{L}\p{N}]$/u.test(text) && !/["“]|\S:\S*$/.test(text) ? `${text}*` : text;
};

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
function linkList(links, id) {
  const list = h('ul.links');
  const add = (from, to) => list.append(...links.slice(from, to).map((link) => linkItem(link, id)));
  add(0, shownAtOnce);
  if (links.length <= shownAtOnce) return list;
  const more = button(`Show all ${links.length.toLocaleString('en')}`, () => { more.remove(); add(shownAtOnce, links.length); });
  return h('div', list, more);
}

function linkItem(link, id) {
  const text = clean(link.linkDescription), url = clean(link.url);
  const name = text || url.replace(/^https?:\/\//, '').slice(0, 300);
  const before = link.before && `here before, ${when(link.before.receivedAt)}`;
  const under = [link.opens && text ? h('span', clean(link.opens)) : null, link.service !== 'Unknown' && h('span', clean(link.service)),
    before && h('span', before), link.url.startsWith('hexlist:') ? h('span', 'a file: ', h('code', `hexlist fetch ${id}`), ' gets it')
      : link.notOpened && h('span.doubt', `not opened: ${clean(link.notOpened)}`)].filter(Boolean);
  const title = link.opens
    ? h('a', { href: link.url, target: '_blank', rel: 'noopener noreferrer', dir: 'auto', title: url, draggable: 'true' }, name)
    : h('span', { dir: 'auto' }, name);
  return h('li', title, under.length > 0 && h('div.under', under));
}

export function hexBody(hex, id = hex.id) {
  const lines = cleanLines(hex.description);
  const children = (hex.children ?? []).map((child) => h('details.inside', { open: (hex.children.length <= 3) },
    h('summary', { dir: 'auto' }, mark(child.color), subject(child), h('span.faint', ` ${sizes(child)}`)), h('div', hexBody(child, id))));
  return [
    lines && lines !== title(hex) && h('p.description', { dir: 'auto' }, lines),
    hex.links?.length ? linkList(hex.links, id) : null,
    ...children,
    !hex.links?.length && !children.length && h('p.faint', 'There are no links in it.'),
  ].filter(Boolean);
}
