// The page as a whole: places, keys, what comes by events.
import { begun, call, follow, part } from './api.js';
import { h, icon, clean, button, dialog, ask, setChildren, showBug } from './dom.js';
import { HexView, undo } from './hexes.js';
import { PeersView, pairDialog, pairingsChanged } from './peers.js';
import { OutboxView } from './outbox.js';
import { MineView } from './mine.js';
import { compose, linksIn, filesIn, peersChanged } from './compose.js';

const root = document.getElementById('app');

export const app = {
  overview: null, peers: null, pairings: null, groups: null, view: null,

  /** Shows a place. */
  go(name) {
    const view = views[name] ?? views.inbox;
    if (this.view === view) return view.reload();
    this.view = view;
    this.name = views[name] ? name : 'inbox';
    history.replaceState(null, '', `#${this.name}`);
    document.body.classList.remove('reading');
    main.replaceChildren(view.element, view.pane);
    drawPlaces();
    return view.reload();
  },
  close() {
    if (!document.body.classList.contains('reading')) return;
    document.body.classList.remove('reading');
    this.view.list.draw();
    this.view.list.element.focus();
  },
  inboxOf(peer) {
    views.inbox.from = peer;
    views.inbox.unread = true;
    this.view = null;
    this.go('inbox');
  },
  async readGroups() {
    this.groups = (await ask('GET', '/v1/groups'))?.items ?? this.groups;
    if (this.name === 'peers') this.view?.reload();
    peersChanged();
  },
};

const nobody = () => (app.peers ?? []).every((peer) => peer.trust !== 'trusted');
const views = {
  inbox: new HexView('inbox', 'Inbox', () => [icon('inbox', 'large'), h('h2', 'Nothing has come yet'),
    ...(nobody() ? [h('p', 'Pair this machine with another one: what it sends appears here at once.'), button('Pair…', () => pairDialog(), '.strong')]
      : [h('p', 'What your peers send appears here at once.'), button('Send them something', () => compose())])]),
  held: new HexView('held', 'Held', () => [icon('held', 'large'), h('h2', 'Nothing is held back'), h('p', 'What strangers send waits here until you accept it, trust them or block them.')]),
  mine: new MineView(), outbox: new OutboxView(), peers: new PeersView(),
};
const numbers = {
  inbox: (overview) => overview.unread, held: (overview) => overview.held, outbox: (overview) => overview.outbox.queued + overview.outbox.sending,
};

const main = h('main');
const places = h('nav', { 'aria-label': 'Places' });
const notice = h('div.notice', { role: 'status', hidden: true });

function drawPlaces() {
  const focused = places.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  setChildren(places, ...Object.entries(views).map(([name, view]) => {
    const number = app.overview && numbers[name]?.(app.overview);
    return h('button.place', { 'data-name': name, 'aria-current': app.name === name ? 'page' : null, onclick: () => app.go(name) },
      icon(name), h('span.name', view.title), number ? h('span.number', h('span', number > 999 ? '999+' : number), h('span.hidden', name === 'inbox' ? ' unread' : ' waiting')) : null);
  }));
  if (focused && !places.contains(document.activeElement)) places.querySelector(`[data-name=${focused}]`)?.focus();
  const unread = app.overview?.unread;
  document.title = `${unread ? `(${unread}) ` : ''}${app.view?.title ?? 'Hexlist'} – Hexlist`;
}

/** Ends the page: it is over, or with an error of its beginning it could not be opened. */
function over(error) {
  document.title = 'Hexlist';
  app.view = null;
  const isOver = !error || error.status === 403;
  root.replaceChildren(h('main.over', icon('hex', 'huge'), h('h1', isOver ? 'This page is over' : 'This page could not be opened'),
    h('p', isOver ? 'A page opens once, and ends 15 minutes after it was left.' : [clean(error.message), error.hint].filter(Boolean).join(' ')),
    h('p', 'Open it again:'), h('pre', 'hexlist web')));
}

// Errors that nothing catches: the console has them, and the person is told. One without an error object is a remark of the browser.
addEventListener('error', (event) => { if (event.error) showBug(event.error); });
addEventListener('unhandledrejection', (event) => showBug(event.reason));

const told = {
  overview(value) {
    const before = app.overview;
    app.overview = value;
    self.textContent = clean(value.name);
    notice.hidden = !value.storeFault;
    notice.textContent = value.storeFault ?? '';
    drawPlaces();
    if (!before) return;
    const isNew = ['lastEvent', 'inbox', 'unread', 'held', 'mine'].some((key) => before[key] !== value[key]) || JSON.stringify(before.outbox) !== JSON.stringify(value.outbox);
    if (isNew && app.name !== 'peers') app.view?.renew();
  },
  peers(value) {
    const groups = (peers) => JSON.stringify(peers?.map((peer) => peer.groups));
    const changed = groups(app.peers) !== groups(value.items);
    app.peers = value.items;
    if (changed) app.readGroups();
    if (app.name === 'peers') app.view?.reload();
    peersChanged();
    pairingsChanged();
    if (app.view === views.inbox) app.view.look(); // what it says where nothing is depends on who is trusted
  },
  pairings(value) { app.pairings = value; pairingsChanged(); },
};

const keys = [['j', 'next'], ['k', 'the one before'], ['o', 'open its links'], ['s', 'save it to My Hexlist'], ['d', 'delete it'], ['u', 'undo that'], ['m', 'mark it unread'], ['n', 'new hex'], ['/', 'search'], ['1 … 5', 'the places'], ['?', 'these keys']];
const help = () => dialog('Keys', () => [h('dl.keys', keys.flatMap(([key, does]) => [h('dt', h('kbd', key)), h('dd', does)]))]);

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
    Escape: () => app.close(), 1: () => app.go('inbox'), 2: () => app.go('held'), 3: () => app.go('mine'), 4: () => app.go('outbox'), 5: () => app.go('peers'),
  }[event.key];
  if (!does) return;
  event.preventDefault();
  does();
});

// Links and files that are dropped anywhere begin a hex.
addEventListener('dragover', (event) => { if (!event.dataTransfer.types.includes('application/x-hexlist')) event.preventDefault(); });
addEventListener('drop', (event) => {
  event.preventDefault();
  if (!app.view || event.dataTransfer.types.includes('application/x-hexlist')) return;
  const links = linksIn(event.dataTransfer);
  compose({ links, dropped: links.length ? undefined : filesIn(event.dataTransfer) });
});

/** Opens what `hexlist web --at`, `--send` and `--start` ask for. */
async function begin(place) {
  const [name, id] = place.split('/');
  if (name === 'new') compose();
  if (name === 'pair') pairDialog();
  if (name === 'requests') app.go('held');
  if (name === 'draft') {
    const draft = await ask('GET', `/v1/drafts/${part(id ?? '')}`);
    if (draft) compose({ draft });
  }
  if (name === 'started') {
    const end = async () => { if (await ask('DELETE', '/v1/autostart')) card.replaceChildren('Hexlist starts no longer at login. It runs until you log out.'); };
    const card = h('div.notice', { role: 'status' }, 'Hexlist now starts at every login. ', button('Turn off', end, '.link'));
    notice.after(card);
  }
}

const self = h('bdi');
try {
  const place = await begun;
  root.replaceChildren(
    h('aside', h('h1.brand', h('img', { src: '/icon.svg', alt: '' }), h('span', 'Hexlist')), h('button.strong.new', { onclick: () => compose() }, icon('plus'), h('span', 'New hex')), places,
      h('div.self', h('span.faint', 'This machine'), self, button(['Keys ', h('kbd', '?')], help, '.link'))),
    h('div.work', notice, main));
  const shown = app.go(place);
  const [overview, peers, pairings] = await Promise.all([call('GET', '/v1/web'), call('GET', '/v1/peers?all=true'), call('GET', '/v1/pairings')]);
  Object.assign(app, { overview, pairings, peers: peers.items });
  self.textContent = clean(overview.name);
  drawPlaces();
  app.readGroups();
  await shown;
  app.view.renew();
  await begin(place);
  let away;
  follow((event, value) => told[event]?.(value), (state) => {
    if (state === 'over') return over();
    clearTimeout(away);
    if (state === 'away') away = setTimeout(() => { notice.hidden = false; notice.textContent = 'Hexlist does not answer; it is asked again by itself. Where hexlistd was started anew: hexlist web.'; }, 1500);
    else if (!app.overview?.storeFault) notice.hidden = true;
  });
} catch (error) {
  over(error);
  if (error.status === undefined) throw error; // a bug
}
