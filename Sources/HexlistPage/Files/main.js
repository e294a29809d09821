// The page as a whole: its sections, keyboard shortcuts and server events.
import { session, call, follow, part } from './api.js';
import { h, icon, clean, button, dialog, ask, setChildren, showBug } from './dom.js';
import { HexView, undo } from './hexes.js';
import { transfersChanged, refreshTransfers } from './files.js';
import { PeersView, pairDialog, pairingsChanged } from './peers.js';
import { OutboxView } from './outbox.js';
import { MineView } from './mine.js';
import { SharesView } from './shares.js';
import { uploads, uploadRequestsChanged } from './uploads.js';
import { compose, restoreDraft, linksIn, filesIn, peersChanged } from './compose.js';

const root = document.getElementById('app');

export const app = {
  overview: null, peers: null, own: null, pairings: null, groups: null, view: null,

  /** Shows a section, and reloads its list. On a narrow screen, an open item is closed, because it would cover the list. */
  go(name, isRestored = false) {
    const view = views[name] ?? views.inbox; // the hash may also be a secret that was used already
    if (this.view === view) {
      this.close();
      return view.reload();
    }
    const isFirst = !this.view;
    this.view = view;
    this.name = views[name] ? name : 'inbox';
    if (!isRestored) this.setAddress(undefined, isFirst);
    document.body.classList.remove('reading');
    main.replaceChildren(view.element, view.pane);
    drawSections();
    return view.reload();
  },
  /**
   * Puts the section and the open item into the hash of the address: Back, Forward and a reload return to them.
   * @param replaces whether to replace the current history entry
   */
  setAddress(id, replaces) {
    const address = `#${this.name}${id === undefined ? '' : `/${encodeURIComponent(id)}`}`;
    if (location.hash !== address) history[replaces ? 'replaceState' : 'pushState'](null, '', address);
  },
  /** Shows the section and the item that a hash names. @param address the hash, `SECTION/ITEM` */
  async restore(address) {
    const [name, id] = address.split('/');
    if (name !== this.name || !this.view) await this.go(name, Boolean(this.view));
    if (id !== undefined) return this.view.openKey(decodeURIComponent(id));
    await this.view.openTop?.();
    this.close();
  },
  close() {
    this.setAddress(this.view.placeKey?.(), true);
    if (!document.body.classList.contains('reading')) return;
    document.body.classList.remove('reading');
    this.view.list.draw();
    this.view.list.element.focus();
  },
  pair: () => pairDialog(),
  inboxOf(peer) {
    views.inbox.from = peer;
    views.inbox.unread = true;
    this.go('inbox');
  },
  async readGroups() {
    this.groups = (await ask('GET', '/v1/groups'))?.items ?? this.groups;
    if (this.name === 'peers') this.view?.reload();
    peersChanged();
  },
};

const hasNoTrustedPeer = () => (app.peers ?? []).every((peer) => peer.trust !== 'trusted');
const views = {
  inbox: new HexView('inbox', 'Inbox', () => [icon('inbox', 'large'), h('h2', 'Nothing here yet'),
    ...(hasNoTrustedPeer() ? [h('p', 'Pair this machine with another one to receive links and files from it.'), button('Pair…', () => pairDialog(), '.strong')]
      : [h('p', 'Links and files from your peers appear here.'), button('Send something', () => compose())])]),
  held: new HexView('held', 'Requests', () => [icon('held', 'large'), h('h2', 'No requests'), h('p', 'Links and files from people you have not paired with wait here until you accept them.')]),
  mine: new MineView(), outbox: new OutboxView(), peers: new PeersView(), files: new SharesView(),
};
const numbers = {
  inbox: (overview) => overview.unread, mine: (overview) => overview.newLinks, held: (overview) => overview.held, outbox: (overview) => overview.outbox.queued + overview.outbox.sending,
};

const main = h('main');
const sections = h('nav', { 'aria-label': 'Sections' });
const notice = h('div.notice', { role: 'status', hidden: true });

function drawSections() {
  const focused = sections.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  setChildren(sections, ...Object.entries(views).map(([name, view]) => {
    const number = app.overview && numbers[name]?.(app.overview);
    return h('button.section', { 'data-name': name, 'aria-current': app.name === name ? 'page' : null, onclick: () => app.go(name) },
      icon(name), h('span.name', view.title), number ? h('span.number', h('span', number > 999 ? '999+' : number), h('span.hidden', { inbox: ' unread', mine: ' new links' }[name] ?? ' waiting')) : null);
  }));
  if (focused && !sections.contains(document.activeElement)) sections.querySelector(`[data-name=${focused}]`)?.focus();
  const unread = app.overview?.unread;
  document.title = `${unread ? `(${unread}) ` : ''}${app.view?.title ?? 'Hexlist'} – Hexlist`;
}

/** Replaces the page by a message that it could not be opened, with the reason, or that it has expired (no `error`, or the status 403). */
function end(error) {
  document.title = 'Hexlist';
  app.view = null;
  const isExpired = !error || error.status === 403;
  root.replaceChildren(h('main.message', icon('hex', 'huge'), h('h1', isExpired ? 'This page has expired' : 'This page could not be opened'),
    h('p', isExpired ? 'Its address works once, and stops working 15 minutes after the page is closed.' : [clean(error.message), error.hint].filter(Boolean).join(' ')),
    h('p', 'To open a new one, choose Hexlist in the menu of your desktop, or run:'), h('pre', 'hexlist web')));
}

// The browser logs uncaught errors; they are also shown. An event without an error object is a warning of the browser, not an error of
// these scripts.
addEventListener('error', (event) => { if (event.error) showBug(event.error); });
addEventListener('unhandledrejection', (event) => showBug(event.reason));

/** The handlers of the events in the event stream, by event name. */
const handlers = {
  overview(value) {
    const before = app.overview;
    app.overview = value;
    self.textContent = clean(value.name);
    notice.hidden = !value.storeFault;
    notice.textContent = value.storeFault ?? '';
    uploadRequestsChanged(value.uploadRequests);
    drawSections();
    refreshTransfers();
    if (!before) return;
    const isNew = ['lastEvent', 'inbox', 'unread', 'held', 'mine', 'mineChange', 'newLinks'].some((key) => before[key] !== value[key]) || JSON.stringify(before.outbox) !== JSON.stringify(value.outbox);
    if (isNew && app.name !== 'peers') app.view?.refresh();
  },
  peers(value) {
    const groups = (peers) => JSON.stringify(peers?.map((peer) => peer.groups));
    const changed = groups(app.peers) !== groups(value.items);
    app.peers = value.items;
    if (changed) app.readGroups();
    if (app.name === 'peers') app.view?.reload();
    peersChanged();
    pairingsChanged();
    if (app.view === views.inbox) app.view.drawEmpty(); // the text of the empty inbox depends on whether any peer is trusted
  },
  own(value) {
    app.own = value.items;
    if (app.name === 'peers') app.view?.reload();
  },
  pairings(value) { app.pairings = value; pairingsChanged(); },
  transfers(value) {
    transfersChanged(value.items);
    if (app.view === views.inbox) app.view.list.redraw(); // rows show that files are being saved
  },
};

const keys = [['j', 'next'], ['k', 'previous'], ['o', 'open its links'], ['s', 'save to My Hexlist'], ['d', 'delete'], ['u', 'undo'], ['m', 'mark as unread'], ['n', 'new hex'], ['/', 'search'], ['1 … 6', 'switch sections'], ['?', 'show these shortcuts']];
const help = () => dialog('Keyboard shortcuts', () => [h('dl.keys', keys.flatMap(([key, does]) => [h('dt', h('kbd', key)), h('dd', does)]))]);

addEventListener('popstate', () => app.restore(location.hash.slice(1)));

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') || event.isComposing) return;
  const { view } = app;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
    if (event.key === 'Escape') { event.target.value = ''; event.target.dispatchEvent(new Event('input')); event.target.blur(); view?.list.element.focus(); }
    return;
  }
  if (!view) return;
  const step = (by) => { view.list.move(by); view.list.element.focus(); };
  const does = {
    j: () => step(view.list.selected === null ? 0 : 1), k: () => step(-1), o: () => view.openLinks?.(), s: () => view.save?.(), d: () => view.remove?.(),
    u: undo, m: () => view.setUnread?.(true), n: () => compose(), '/': () => view.input?.focus(), '?': help,
    Escape: () => app.close(), 1: () => app.go('inbox'), 2: () => app.go('held'), 3: () => app.go('mine'), 4: () => app.go('outbox'), 5: () => app.go('peers'), 6: () => app.go('files'),
  }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
});

// Links and files dropped anywhere on the page start a new hex.
addEventListener('dragover', (event) => { if (!event.dataTransfer.types.includes('application/x-hexlist')) event.preventDefault(); });
addEventListener('drop', (event) => {
  event.preventDefault();
  if (!app.view || event.dataTransfer.types.includes('application/x-hexlist')) return;
  const links = linksIn(event.dataTransfer);
  compose({ links, dropped: links.length ? undefined : filesIn(event.dataTransfer) });
});

/**
 * Actions that run once the page is shown, by the first part of the hash. `hexlist web --at`, `--send` and `--start` make such addresses.
 */
const actions = {
  new: () => compose(),
  pair: () => pairDialog(),
  requests: () => app.go('held'),
  async draft(id) {
    const local = await ask('GET', `/v1/drafts/${part(id ?? '')}`);
    if (local) compose({ local });
  },
  started() {
    const turnOff = async () => { if (await ask('DELETE', '/v1/autostart')) card.replaceChildren('Hexlist no longer starts at login. It runs until you log out.'); };
    const card = h('div.notice', { role: 'status' }, 'Hexlist now starts at every login. ', button('Turn off', turnOff, '.link'));
    notice.after(card);
  },
};

const self = h('bdi');
try {
  const address = await session;
  root.replaceChildren(
    h('aside', h('h1.brand', h('img', { src: '/icon.svg', alt: '' }), h('span', 'Hexlist')), h('button.strong.new', { onclick: () => compose() }, icon('plus'), h('span', 'New hex')), sections,
      h('div.self', h('span.faint', 'This machine'), self, button('Pair…', () => pairDialog(), '.link'), button(['Keys ', h('kbd', '?')], help, '.link'))),
    h('div.work', notice, uploads, main));
  const [verb, id] = address.split('/'), action = Object.hasOwn(actions, verb) ? actions[verb] : null;
  const shown = app.restore(action ? '' : address);
  const [overview, peers, pairings] = await Promise.all([call('GET', '/v1/web'), call('GET', '/v1/peers?all=true'), call('GET', '/v1/pairings')]);
  Object.assign(app, { overview, pairings, peers: peers.items });
  self.textContent = clean(overview.name);
  drawSections();
  app.readGroups();
  await shown;
  app.view.refresh();
  if (action) await action(id); else restoreDraft();
  let lost;
  follow((event, value) => handlers[event]?.(value), (state) => {
    if (state === 'expired') return end();
    clearTimeout(lost);
    if (state === 'lost') lost = setTimeout(() => { notice.hidden = false; notice.textContent = 'Lost contact with Hexlist, retrying… This page continues once it runs again.'; }, 1500);
    else if (!app.overview?.storeFault) notice.hidden = true;
  });
} catch (error) {
  end(error);
  if (error.status === undefined) throw error; // a bug
}
