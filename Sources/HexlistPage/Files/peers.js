// Peers: the machines on the network, pairing, trust and groups.
import { call, faultOf, part } from './api.js';
import { h, icon, copy, twoLines, head, clean, peerText, bytesText, label, peerName, when, wholeTime, button, buttons, field, ask, confirmed, dialog, setChildren } from './dom.js';
import { View } from './list.js';
import { app } from './main.js';
import { compose } from './compose.js';
import { codeImage, dropDialog, inviteDialog } from './invite.js';
import { ownText, addOwnDialog, removeOwn } from './sharing.js';

const states = { verified: 'online', away: 'away', ghost: 'not usable' };
/** The reasons of ghosts that are never listed: announcements of this machine itself, and further announcements of a listed peer. */
const hiddenReasons = ['self', 'duplicate'];
const isListed = (peer, showsDetails) => peer.state !== 'ghost' || (showsDetails && !hiddenReasons.includes(peer.reason));
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
      note.textContent = peer.own ? 'own' : peer.trust === 'trusted' ? '' : peer.state === 'ghost' ? '' : peer.trust;
      state.textContent = peer.state === 'ghost' ? clean(peer.why ?? peer.reason) : peer.state === 'verified' ? 'Online' + (peer.unread ? ` · ${peer.unread} unread` : '')
        : `Away${peer.lastSeen ? ` · last seen ${when(peer.lastSeen)}` : ''}`;
      this.element.setAttribute('aria-label', `${name.textContent}, ${states[peer.state]}, ${note.textContent || 'trusted'}. ${state.textContent}`);
    },
  };
}

const MB = 1e6, GB = 1e9;
/** The choices for the limit of automatic downloads, in bytes. */
const downloadLimits = [100 * MB, GB, 5 * GB, 20 * GB];
/** The limit, in bytes, that the pairing dialog offers for another machine of the same user. */
const ownMachineLimit = GB;
/**
 * Sets the limit of automatic downloads from a peer.
 * @param limit maximum bytes for each hex and for each day; 0 for no automatic downloads
 */
const setDownloads = (peer, limit) => ask('PATCH', `/v1/peers/${part(peer.uuid ?? peer.peer)}`, { fetchLimit: limit, ...(limit && { fetchTo: 'downloads' }) },
  limit ? `Files from ${label(peer)} are saved automatically from now on.` : `Files from ${label(peer)} are only saved if you choose it.`);

/** Makes the control that sets the limit of automatic downloads from a trusted peer. */
function downloads(peer) {
  const limit = peer.fetchLimit ?? 0, isCached = peer.fetchTo !== 'downloads';
  const limits = [...new Set([...downloadLimits, ...(limit ? [limit] : [])])].sort((one, other) => one - other);
  const place = isCached ? 'They are kept for a while in the cache; Save copies them into the download folder.' : 'They are saved into the download folder.';
  return [
    h('label.field', h('span', 'Files it sends'), h('select', { onchange: (event) => setDownloads(peer, Number(event.target.value)) },
      h('option', { value: 0, selected: !limit }, 'saved when you choose it'),
      limits.map((bytes) => h('option', { value: bytes, selected: bytes === limit }, `all saved, up to ${bytesText(bytes)} a day`)))),
    limit > 0 && h('p.faint.under-field', `${place} The limit is for each hex and for each day${peer.fetchedToday ? `; today ${bytesText(peer.fetchedToday)}` : ''}.`),
  ];
}

export class PeersView extends View {
  constructor() {
    super({ title: 'Peers', sign: 'peers', reads: 'The peer', list: { height: 60, row: peerRow, key: idOf }, tools: [button('Shortcuts…', () => dropDialog(), '.link', { title: 'Receive from a shortcut on a phone' }), button('Invite…', () => inviteDialog(), '.link', { title: 'Receive from a phone without Hexlist' }), button('Pair…', () => pairDialog(), '.strong')] });
    this.showsDetails = false;
    this.own = h('div.own');
    this.element.append(this.own);
  }

  async reload() {
    const peers = (app.peers ?? []).filter((peer) => isListed(peer, this.showsDetails))
      .sort((one, other) => rank(one) - rank(other) || label(one).localeCompare(label(other)));
    const at = this.list.element.scrollTop;
    await this.list.show(async () => ({ items: peers, next: null }));
    this.list.element.scrollTop = at;
    const hasDetails = (app.peers ?? []).some((peer) => peer.state === 'ghost' && isListed(peer, true));
    setChildren(this.filters, ...(hasDetails ? [button('Network details', () => { this.showsDetails = !this.showsDetails; this.reload(); }, '.chip',
      { 'aria-pressed': String(this.showsDetails), title: 'Show announcements on the network that cannot be used, and why' })] : []));
    this.drawEmpty();
    const { overview } = app;
    if (overview) {
      setChildren(this.own, h('details', { open: this.own.querySelector('details')?.open }, h('summary', 'This machine: ', peerText(overview.name)),
        h('p.faint', 'Others compare this fingerprint before they trust this machine:'), fingerprint(overview.fingerprint)));
    }
    const selected = this.list.item();
    if (selected) this.draw(selected);
    else if (this.list.selected !== null) this.list.select(null); // the announcement of the selected ghost is gone
  }
  refresh() { return this.reload(); }

  empty() {
    return [icon('peers', 'large'), h('h2', 'No peers yet'),
      h('p', 'Start Hexlist on another machine on this network, and it appears here. Then press ', h('b', 'Pair…'), ' on both.'),
      app.overview?.discoveryFault ? h('p.doubt', app.overview.discoveryFault) : ''];
  }

  show(peer) {
    this.drawn = null;
    this.draw(peer);
  }

  draw(peer) {
    const own = peer.own && app.own?.find(({ uuid }) => uuid === peer.uuid);
    const json = JSON.stringify([peer, own, app.groups], (key, value) => key === 'lastOK' || key === 'lastSeen' ? undefined : value);
    if (json === this.drawn || this.pane.querySelector('input:focus')) return;
    this.drawn = json;
    const id = part(peer.uuid ?? '');
    const act = (path, done) => () => ask('POST', `/v1/peers/${id}/${path}`, undefined, done);
    const isPeer = peer.state !== 'ghost';
    const change = (members, done) => ask('PATCH', `/v1/peers/${id}`, members, done);
    const name = h('input', { value: peer.alias ?? '', maxlength: 200, placeholder: clean(peer.name), 'aria-label': 'Name on this machine' });
    const opens = h('select', { 'aria-label': 'Open its links', onchange: (event) => change({ openLinks: Number(event.target.value) }) },
      ...[0, 1, 2, 3, 4, 5, 6].map((count) => h('option', { value: count, selected: (peer.openLinks ?? 0) === count },
        count === 0 ? 'never automatically' : count === 1 ? 'the first of each hex, in the browser' : `the first ${count} of each hex, in the browser`)));
    const receive = h('select', { 'aria-label': 'What it sends', onchange: (event) => change({ receive: event.target.value }) },
      ...[['inbox', 'goes to the inbox'], ['held', 'waits under Requests'], ['nothing', 'is refused']].map(([value, text]) => h('option', { value, selected: (peer.receive ?? 'inbox') === value }, text)));
    this.fill(
      head(h(`span.dot.big.${peer.state}.${peer.trust}`), label(peer),
        [isPeer ? peer.trust : 'not usable', peer.state === 'verified' ? 'online' : peer.state === 'away' ? `away${peer.lastSeen ? `, last seen ${wholeTime(peer.lastSeen)}` : ''}` : clean(peer.reason)].join(' · ')),
      peer.why && peer.state !== 'verified' && h('p.why', clean(peer.why)),
      isPeer && buttons(
        peer.trust !== 'blocked' && button('Send…', () => compose({ to: peer }), '.strong'),
        peer.trust === 'stranger' && button('Pair', () => pairDialog(peer)),
        peer.trust === 'stranger' && button('Trust…', () => trustDialog(peer)),
        peer.unread > 0 && button(`Read ${peer.unread}`, () => app.inboxOf(peer)),
        peer.trust === 'trusted' && button('Stop trusting', act('untrust', 'No longer trusted: what it sends now waits under Requests.')),
        peer.trust === 'blocked' ? button('Unblock', act('unblock', 'Unblocked: what it sends now waits under Requests.'))
          : button('Block', async () => { if (await confirmed('Block this peer?', `Nothing more is accepted from ${label(peer)}, and nothing can be sent to it.`, 'Block')) act('block', 'Blocked.')(); }),
        (peer.state === 'away' || peer.trust === 'trusted') && button('Forget…', async () => { if (await confirmed('Forget this peer?', `What it sent stays. Its trust, its groups and the name you gave it are removed${peer.state === 'verified' ? '; it stays in the list while it is online, as a stranger' : ''}.`, 'Forget') && await act('forget')()) this.list.select(null); })),
      isPeer && h('form.field', { onsubmit: (event) => { event.preventDefault(); name.blur(); change({ alias: name.value.trim() || null }, 'Renamed.'); } }, h('span', 'Name'), name, h('button', { type: 'submit' }, 'Rename')),
      isPeer && peer.trust === 'trusted' && h('label.field', h('span', 'What it sends'), receive),
      isPeer && peer.trust === 'trusted' && h('label.field.check', h('input', { type: 'checkbox', checked: peer.notify !== false, onchange: (event) => change({ notify: event.target.checked }) }), h('span', 'Notify me')),
      isPeer && peer.trust === 'trusted' && h('label.field', h('span', 'Open its links'), opens),
      isPeer && peer.trust === 'trusted' && peer.kind !== 'localsend' && downloads(peer),
      own && field('My Hexlist', h('span', ownText(own)), button('Stop…', () => removeOwn(peer))),
      isPeer && peer.trust === 'trusted' && peer.kind !== 'localsend' && !peer.own && field('My Hexlist', h('span.faint', 'separate from the one here'), button('It is my machine…', () => addOwnDialog(peer))),
      isPeer && this.groups(peer),
      peer.fingerprint && field('Fingerprint', fingerprint(peer.fingerprint)),
      peer.uuid && field('UUID', h('code', peer.uuid)),
      peer.endpoints.length > 0 && field('Addresses', h('span', peer.endpoints.slice(0, 4).map((one) => h('div', h('code', `${clean(one.host)} : ${one.port}`))))));
  }

  groups(peer) {
    const names = new Set((app.groups ?? []).map((group) => group.name));
    const input = h('input', { placeholder: 'Add to a group', 'aria-label': 'Add to a group', list: 'groups', maxlength: 64 });
    const change = async (name, how) => { if (await ask('POST', `/v1/groups/${part(name)}/${how}`, { peers: [peer.uuid] })) app.readGroups(); };
    return field('Groups', h('div.chips',
      (peer.groups ?? []).map((name) => h('button.chip', { title: 'Remove from this group', 'aria-label': `Remove from ${clean(name)}`, onclick: () => change(name, 'remove') }, '@', clean(name), icon('close'))),
      h('form', { onsubmit: (event) => { event.preventDefault(); const name = input.value.trim(); input.value = ''; input.blur(); if (name) change(name, 'add'); } }, input,
        h('datalist', { id: 'groups' }, [...names].map((name) => h('option', { value: name }))))));
  }
}

/** Asks the user to compare the whole fingerprint, then trusts the peer. */
export function trustDialog(given) {
  const peer = (app.peers ?? []).find((one) => one.uuid === given.uuid && one.state !== 'ghost') ?? given;
  dialog('Trust this machine?', (close) => [
    h('p', 'It calls itself ', h('b', peerName({ ...peer, alias: null })), ', but anyone can use that name. Compare the whole fingerprint with the one on its own screen (Peers, “This machine”):'),
    peer.fingerprint ? fingerprint(peer.fingerprint) : h('p', 'Its fingerprint is not known yet: it has to be online once.'),
    h('p.faint', 'Pairing is easier: you compare six digits.'),
    buttons(button('Cancel', close), button('Pair instead', () => { close(); pairDialog(peer); }),
      peer.fingerprint && button('They match: trust', () => {
        close();
        ask('POST', `/v1/peers/${part(peer.uuid)}/trust`, { fingerprint: peer.fingerprint, name: peer.name }, `${label(peer)} is trusted now.`);
      }, '.strong')),
  ]);
}

/** Makes a section with the QR code of this machine, with which another machine can add this one without finding it on the network. */
function ownCode() {
  const code = h('div.code');
  const load = async () => {
    if (code.firstChild) return;
    const own = await ask('GET', '/v1/identity/code');
    if (!own) return;
    code.replaceChildren(codeImage(own.svg, 'QR code of this machine'), h('p.faint', 'It contains the name, the fingerprint and the address of this machine. The other machine can scan it, or add its text.'), button('Copy as text', () => copy(own.uri)));
  };
  return h('details.own-code', { open: true, ontoggle: (event) => { if (event.target.open) load(); } }, h('summary', 'The code of this machine'), code);
}

/** The open pairing dialog, which shows the state of the daemon's pairings; null if it is closed. */
let pairing = null;
const ends = {
  rejected: 'The other side said no.', wrongCode: 'The digits did not match.', timeout: 'No answer in time.', expired: 'No answer in time.',
  refused: 'The other machine is not pairing now. Press Pair… there too.', withdrawn: 'Cancelled.', givenUp: 'The other side cancelled.', lost: 'The connection was lost.',
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
    // This request fails harmlessly if the pairing has ended meanwhile.
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

/** Handles changes of the daemon's pairings. Opens the dialog if there are digits to compare. */
export function pairingsChanged() {
  if (!pairing && running()?.state === 'comparing') pairDialog();
  else drawPairing();
}

function drawPairing() {
  if (!pairing) return;
  const { body } = pairing;
  if (app.pairings) pairing.since ??= lastEnded(); // pairings that ended before the dialog was opened are ignored
  const item = app.pairings?.items.findLast((one) => one.id > pairing.since) ?? running();
  const strangers = (app.peers ?? []).filter((peer) => peer.state === 'verified' && peer.trust === 'stranger');
  const key = JSON.stringify([item, !item && strangers.map(label), pairing.asked]);
  if (key === pairing.drawn) return;
  pairing.drawn = key;
  const again = button('Try again', () => { pairing.asked = null; pairing.since = lastEnded(); ask('POST', '/v1/pairings'); drawPairing(); });
  const close = button('Close', () => pairing.element.close());
  if (item?.state === 'comparing') {
    const answer = (isSame) => ask('POST', `/v1/pairings/${part(item.peer)}/${isSame ? 'confirm' : 'reject'}`, isSame ? { digits: item.digits, id: item.id } : undefined);
    body.replaceChildren(h('p', 'Does the screen of ', h('b', peerName(item)), ' show these digits?'),
      h('p.digits', { 'aria-label': `Digits: ${item.digits.split('').join(' ')}` }, item.digits.slice(0, 3), h('span', ' '), item.digits.slice(3)),
      h('p.faint', 'Look at the other screen before you answer. If the digits differ, someone may be intercepting the connection.'),
      buttons(button('No', () => answer(false)), button('Yes, the same', () => answer(true), '.strong')));
  } else if (item?.state === 'confirmed') {
    body.replaceChildren(h('p', 'Waiting for the answer on the other machine…'), h('p.digits', item.digits.slice(0, 3), h('span', ' '), item.digits.slice(3)));
  } else if (item?.state === 'paired') {
    pairing.isDone = true;
    const close = () => pairing.element.close();
    body.replaceChildren(icon('check', 'large'), h('p', 'Paired with ', h('b', peerName(item)), '. You can send to each other now.'),
      h('p', `Are both machines yours? Then files that it sends can be saved into your download folder automatically, up to ${bytesText(ownMachineLimit)} a day. You can change this under Peers.`),
      buttons(button('Both are mine: save its files', () => { close(); setDownloads(item, ownMachineLimit); }), button('Done', close, '.strong')));
  } else if (item?.state === 'ended') {
    body.replaceChildren(h('p', ends[item.reason] ?? (clean(item.message) || 'Pairing ended.')), item.message && ends[item.reason] ? h('p.faint', clean(item.message)) : '', buttons(close, again));
  } else if (item || pairing.asked) {
    body.replaceChildren(h('p', 'Asking ', h('b', item ? peerName(item) : pairing.asked), '…'),
      h('p', 'Press ', h('b', 'Pair…'), ' there too. Then both screens show six digits.'), buttons(button('Cancel', () => pairing.element.close())));
  } else {
    body.replaceChildren(h('p', 'Press ', h('b', 'Pair…'), ' on the other machine too. Then choose the other machine on one of them:'),
      strangers.length ? h('div.choices', strangers.map((peer) => h('button', { onclick: () => { invite(peer); drawPairing(); } }, h('span.dot.verified.stranger'), peerName(peer))))
        : h('p.faint', 'No new machine found yet. It appears here once it is found.'),
      h('p.faint', 'Other machines can ask to pair for the next two minutes. On a machine without a screen, run ', h('code', 'hexlist pair'), '.'), pairing.code ??= ownCode(), buttons(close));
  }
}
