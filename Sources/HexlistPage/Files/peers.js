// Peers: who is here, who is not and why; pairing; trust; groups.
import { call, faultOf, part } from './api.js';
import { h, icon, twoLines, head, clean, peerText, label, peerName, count, when, wholeTime, button, buttons, field, choice, ask, confirmed, dialog, setChildren } from './dom.js';
import { View } from './list.js';
import { app } from './main.js';
import { compose } from './compose.js';

const states = { verified: 'here', away: 'away', ghost: 'not a peer' };
const idOf = (peer) => peer.state === 'ghost' ? `${peer.uuid}|${peer.name}|${peer.reason}|${peer.endpoints.map((one) => one.host + one.port)}` : peer.uuid;
const rank = (peer) => (peer.state === 'ghost' ? 8 : peer.state === 'away' ? 4 : 0) + (peer.trust === 'trusted' ? 0 : peer.trust === 'stranger' ? 1 : 2);
const groupsOf = (text) => (text ?? '').match(/.{1,4}/g) ?? [];

export function fingerprint(text) {
  return h('code.fingerprint', groupsOf(text).map((four) => h('span', four)));
}

function peerRow() {
  const dot = h('span.dot'), name = h('bdi.from'), note = h('span.faint'), state = h('span.faint.why');
  return {
    element: twoLines(dot, [name, note], [state]),
    update(peer) {
      dot.className = `dot ${peer.state} ${peer.trust}`;
      name.textContent = label(peer);
      note.textContent = peer.trust === 'trusted' ? '' : peer.state === 'ghost' ? '' : peer.trust;
      state.textContent = peer.state === 'ghost' ? clean(peer.why ?? peer.reason) : peer.state === 'verified' ? 'Here' + (peer.unread ? ` · ${peer.unread} unread` : '')
        : `Away${peer.lastSeen ? ` · seen ${when(peer.lastSeen)}` : ''}`;
      this.element.setAttribute('aria-label', `${name.textContent}, ${states[peer.state]}, ${note.textContent || 'trusted'}. ${state.textContent}`);
    },
  };
}

export class PeersView extends View {
  constructor() {
    super({ title: 'Peers', sign: 'peers', reads: 'The peer', list: { height: 60, row: peerRow, key: idOf }, tools: button('Pair…', () => pairDialog(), '.strong') });
    this.all = false;
    this.own = h('div.own');
    this.element.append(this.own);
  }

  async reload() {
    const peers = (app.peers ?? []).filter((peer) => this.all || peer.state !== 'ghost')
      .sort((one, other) => rank(one) - rank(other) || label(one).localeCompare(label(other)));
    const at = this.list.element.scrollTop;
    await this.list.show(async () => ({ items: peers, next: null }));
    this.list.element.scrollTop = at;
    const ghosts = (app.peers ?? []).filter((peer) => peer.state === 'ghost').length;
    setChildren(this.filters, ...(ghosts ? [choice([[false, 'Peers'], [true, `With ${count(ghosts, 'ghost')}`]], this.all, (all) => { this.all = all; this.reload(); })] : []));
    this.look();
    const { overview } = app;
    if (overview) {
      setChildren(this.own, h('details', { open: this.own.querySelector('details')?.open }, h('summary', 'This machine: ', peerText(overview.name)),
        h('p.faint', 'What others compare before they trust it:'), fingerprint(overview.fingerprint)));
    }
    const selected = this.list.item();
    if (selected) this.draw(selected);
    else if (this.list.selected !== null) this.list.select(null); // it is not announced any more
  }
  renew() { return this.reload(); }

  empty() {
    return [icon('peers', 'large'), h('h2', 'Nobody is here yet'),
      h('p', 'Start Hexlist on another machine of this network: it appears here by itself. Then press ', h('b', 'Pair…'), ' on both.'),
      app.overview?.discoveryFault ? h('p.doubt', app.overview.discoveryFault) : ''];
  }

  show(peer) {
    this.drawn = null;
    this.draw(peer);
  }

  draw(peer) {
    const told = JSON.stringify([peer, app.groups], (key, value) => key === 'lastOK' || key === 'lastSeen' ? undefined : value);
    if (told === this.drawn || this.pane.querySelector('input:focus')) return;
    this.drawn = told;
    const id = part(peer.uuid ?? '');
    const act = (path, done) => () => ask('POST', `/v1/peers/${id}/${path}`, undefined, done);
    const isPeer = peer.state !== 'ghost';
    const change = (members, done) => ask('PATCH', `/v1/peers/${id}`, members, done);
    const name = h('input', { value: peer.alias ?? '', maxlength: 200, placeholder: clean(peer.name), 'aria-label': 'Name it has here' });
    const receive = h('select', { 'aria-label': 'What is done with its hexes', onchange: (event) => change({ receive: event.target.value }) },
      ...[['inbox', 'into the inbox'], ['held', 'are held back'], ['nothing', 'are refused']].map(([value, text]) => h('option', { value, selected: (peer.receive ?? 'inbox') === value }, text)));
    this.fill(
      head(h(`span.dot.big.${peer.state}.${peer.trust}`), label(peer),
        [isPeer ? peer.trust : 'ghost', peer.state === 'verified' ? 'here' : peer.state === 'away' ? `away${peer.lastSeen ? `, seen ${wholeTime(peer.lastSeen)}` : ''}` : clean(peer.reason)].join(' · ')),
      peer.why && peer.state !== 'verified' && h('p.why', clean(peer.why)),
      isPeer && buttons(
        peer.trust !== 'blocked' && button('Send…', () => compose({ to: peer }), '.strong'),
        peer.trust === 'stranger' && button('Pair', () => pairDialog(peer)),
        peer.trust === 'stranger' && button('Trust…', () => trustDialog(peer)),
        peer.unread > 0 && button(`Read ${peer.unread}`, () => app.inboxOf(peer)),
        peer.trust === 'trusted' && button('No longer trust', act('untrust', 'It is a stranger again: what it sends is held back.')),
        peer.trust === 'blocked' ? button('Unblock', act('unblock', 'It is a stranger now.'))
          : button('Block', async () => { if (await confirmed('Block this peer?', `What ${label(peer)} sends is refused from now on.`, 'Block')) act('block', 'It is blocked.')(); }),
        peer.state === 'away' && button('Forget', async () => { if (await confirmed('Forget this peer?', 'Its hexes stay; its trust and its name here go.', 'Forget') && await act('forget')()) this.list.select(null); })),
      isPeer && h('form.field', { onsubmit: (event) => { event.preventDefault(); name.blur(); change({ alias: name.value.trim() || null }, 'Named.'); } }, h('span', 'Called'), name, h('button', { type: 'submit' }, 'Name it')),
      isPeer && peer.trust === 'trusted' && h('label.field', h('span', 'Its hexes'), receive),
      isPeer && peer.trust === 'trusted' && h('label.field.check', h('input', { type: 'checkbox', checked: peer.notify !== false, onchange: (event) => change({ notify: event.target.checked }) }), h('span', 'Notifications tell of them')),
      isPeer && this.groups(peer),
      peer.fingerprint && field('Fingerprint', fingerprint(peer.fingerprint)),
      peer.uuid && field('UUID', h('code', peer.uuid)),
      peer.endpoints.length > 0 && field('At', h('span', peer.endpoints.slice(0, 4).map((one) => h('div', h('code', `${clean(one.host)} : ${one.port}`))))));
  }

  groups(peer) {
    const names = new Set((app.groups ?? []).map((group) => group.name));
    const input = h('input', { placeholder: 'Add to a group', 'aria-label': 'Add to a group', list: 'groups', maxlength: 64 });
    const change = async (name, how) => { if (await ask('POST', `/v1/groups/${part(name)}/${how}`, { peers: [peer.uuid] })) app.readGroups(); };
    return field('Groups', h('div.chips',
      (peer.groups ?? []).map((name) => h('button.chip', { title: 'Take it out', 'aria-label': `Take it out of ${clean(name)}`, onclick: () => change(name, 'remove') }, '@', clean(name), icon('close'))),
      h('form', { onsubmit: (event) => { event.preventDefault(); const name = input.value.trim(); input.value = ''; input.blur(); if (name) change(name, 'add'); } }, input,
        h('datalist', { id: 'groups' }, [...names].map((name) => h('option', { value: name }))))));
  }
}

/** Trust by the whole fingerprint, which a person compared. */
export function trustDialog(given) {
  const peer = (app.peers ?? []).find((one) => one.uuid === given.uuid && one.state !== 'ghost') ?? given;
  dialog('Trust this machine?', (close) => [
    h('p', 'It says it is ', h('b', peerName({ ...peer, alias: null })), '. Anyone can say so. Read its fingerprint on its own screen (there: Peers, “This machine”, or ', h('code', 'hexlist id'), ') and compare all of it:'),
    peer.fingerprint ? fingerprint(peer.fingerprint) : h('p', 'Its key is not known yet: it has to be here once.'),
    h('p.faint', 'Pairing is easier: six digits instead.'),
    buttons(button('Cancel', close), button('Pair instead', () => { close(); pairDialog(peer); }),
      peer.fingerprint && button('It is the same: trust', () => {
        close();
        ask('POST', `/v1/peers/${part(peer.uuid)}/trust`, { fingerprint: peer.fingerprint, name: peer.name }, `${label(peer)} is trusted.`);
      }, '.strong')),
  ]);
}

// Pairing: one dialog that follows what happens.
let pairing = null;
const ends = {
  rejected: 'The other side said no.', wrongCode: 'The digits were not the same.', timeout: 'Nobody answered in time.', expired: 'Nobody answered in time.',
  refused: 'The other machine takes no request now. Press Pair there too.', withdrawn: 'It was taken back.', givenUp: 'The other side gave up.', lost: 'The connection broke.',
};

export function pairDialog(peer) {
  pairing?.element.close();
  const body = h('div.pairing', { 'aria-live': 'polite' });
  const shown = { body, since: null, drawn: null, isDone: false };
  shown.element = dialog('Pair', () => [body], '.wide');
  shown.element.addEventListener('close', () => {
    if (pairing === shown) pairing = null;
    if (shown.isDone) return;
    const item = running();
    // A pairing that has ended meanwhile cannot be taken back, and need not be.
    if (item) call('POST', `/v1/pairings/${part(item.peer)}/reject`).catch(faultOf);
    call('DELETE', '/v1/pairings').catch(faultOf);
  });
  pairing = shown;
  if (peer) invite(peer);
  else if (!running()) ask('POST', '/v1/pairings');
  drawPairing();
}
const invite = async (peer) => {
  if (pairing) pairing.asked = label(peer);
  if (!await ask('POST', '/v1/pairings', { peer: peer.uuid }) && pairing) { pairing.asked = null; drawPairing(); }
};
const isOver = (item) => item.state === 'ended' || item.state === 'paired';
const lastEnded = () => Math.max(0, ...(app.pairings?.items ?? []).filter(isOver).map((item) => item.id));
const running = () => app.pairings?.items.findLast((item) => !isOver(item));

/** Called with each change of the pairings: digits open the dialog wherever one is. */
export function pairingsChanged() {
  if (!pairing && running()?.state === 'comparing') pairDialog();
  else drawPairing();
}

function drawPairing() {
  if (!pairing) return;
  const { body } = pairing;
  if (app.pairings) pairing.since ??= lastEnded(); // pairings that ended before the dialog are not its own
  const item = app.pairings?.items.findLast((one) => one.id > pairing.since) ?? running();
  const strangers = (app.peers ?? []).filter((peer) => peer.state === 'verified' && peer.trust === 'stranger');
  const key = JSON.stringify([item, !item && strangers.map(label), pairing.asked]);
  if (key === pairing.drawn) return;
  pairing.drawn = key;
  const again = button('Again', () => { pairing.asked = null; pairing.since = lastEnded(); ask('POST', '/v1/pairings'); drawPairing(); });
  const close = button('Close', () => pairing.element.close());
  if (item?.state === 'comparing') {
    const answer = (isSame) => ask('POST', `/v1/pairings/${part(item.peer)}/${isSame ? 'confirm' : 'reject'}`, isSame ? { digits: item.digits, id: item.id } : undefined);
    body.replaceChildren(h('p', 'Does the screen of ', h('b', peerName(item)), ' show these digits?'),
      h('p.digits', { 'aria-label': `Digits: ${item.digits.split('').join(' ')}` }, item.digits.slice(0, 3), h('span', ' '), item.digits.slice(3)),
      h('p.faint', 'Look at the other screen before you answer. If they differ, somebody may be in between.'),
      buttons(button('No', () => answer(false)), button('Yes, the same', () => answer(true), '.strong')));
  } else if (item?.state === 'confirmed') {
    body.replaceChildren(h('p', 'You said yes. Waiting for the other side…'), h('p.digits', item.digits.slice(0, 3), h('span', ' '), item.digits.slice(3)));
  } else if (item?.state === 'paired') {
    pairing.isDone = true;
    body.replaceChildren(icon('check', 'large'), h('p', 'Paired with ', h('b', peerName(item)), '. Hexes go both ways now.'), buttons(button('Done', () => pairing.element.close(), '.strong')));
  } else if (item?.state === 'ended') {
    body.replaceChildren(h('p', ends[item.reason] ?? (clean(item.message) || 'It ended.')), item.message && ends[item.reason] ? h('p.faint', clean(item.message)) : '', buttons(close, again));
  } else if (item || pairing.asked) {
    body.replaceChildren(h('p', 'Asking ', h('b', item ? peerName(item) : pairing.asked), '…'),
      h('p', 'Press ', h('b', 'Pair…'), ' there too (or run ', h('code', 'hexlist pair'), '). Then both screens show six digits.'), buttons(button('Cancel', () => pairing.element.close())));
  } else {
    body.replaceChildren(h('p', 'Press ', h('b', 'Pair…'), ' on the other machine too (or run ', h('code', 'hexlist pair'), ' there), and choose one of them on one side:'),
      strangers.length ? h('div.choices', strangers.map((peer) => h('button', { onclick: () => { invite(peer); drawPairing(); } }, h('span.dot.verified.stranger'), peerName(peer))))
        : h('p.faint', 'No new machine is seen yet. This list fills by itself.'),
      h('p.faint', 'This machine takes requests for two minutes.'), buttons(close));
  }
}
