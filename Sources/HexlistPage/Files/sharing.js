// Shared hexes: the offers of others, the members of a hex, and the marks in My Hexlist.
import { call, part } from './api.js';
import { h, ask, clean, count, label, peerName, toast, button, buttons, confirmed, dialog } from './dom.js';
import { app } from './main.js';

/** The shared hexes by their ids, and the offers that the user has not declined. */
let shared = new Map(), offers = [];

/** Reads the shared hexes and the offers. Throws a Fault. */
export async function readSharing() {
  const lists = await call('GET', '/v1/lists');
  shared = new Map(lists.shared.filter(({ hex }) => hex).map((one) => [one.hex, one]));
  offers = lists.offers.filter(({ declined }) => !declined);
}

/** Returns the shared hex with an id; undefined if it is not shared. */
export const sharedHex = (id) => shared.get(id);
/** Whether the user may change a hex. @param one the shared hex that is or contains it; undefined if there is none */
export const isWritable = (one) => !one || one.access === 'write';

const members = (one) => one.peers.filter(({ access }) => access !== 'none');
const owner = (one) => one.peers.length ? label(one.peers[0]) : 'another person';

/** Returns the mark of a shared hex in the tree: `Shared with 2`, `From ada`, or nothing after the sharing has ended. */
export function shareMark(one) {
  if (!one.owned) return `From ${owner(one)}`;
  const number = members(one).length;
  return number ? `Shared with ${number.toLocaleString('en')}` : '';
}

/** Describes with whom a hex is shared, or who shares it. */
export function shareText(one) {
  if (!one.owned) {
    const access = { write: 'you can edit it', read: 'you can only read it' }[one.access] ?? 'no longer shared with you, so it stays as it is';
    return [`From ${owner(one)} · ${access}`, ...one.peers.map(({ message }) => clean(message)).filter(Boolean)].join(' · ');
  }
  return members(one).length ? `Shared with ${members(one).map((peer) => `${label(peer)} (${memberText(peer)})`).join(', ')}` : 'No longer shared';
}

function memberText({ access, state, behind, indirect, message }) {
  if (access === 'none') return 'had access before';
  const parts = [access === 'write' ? 'can edit' : 'can read', indirect ? 'via another machine' : state === 'offered' ? 'has not joined yet' : state === 'left' ? 'has left' : behind ? `${count(behind, 'change')} to send` : '', clean(message)];
  return parts.filter(Boolean).join(', ');
}

/** Makes a card for each offer. @param refresh called after an answer */
export function offerCards(refresh) {
  return offers.map((offer) => {
    const title = `“${clean(offer.title) || 'Untitled'}”`;
    const join = async () => { if (await ask('POST', `/v1/lists/${offer.number}/join`, undefined, offer.further ? 'Confirmed.' : `${title} is in My Hexlist now.`)) refresh(); };
    const decline = async () => {
      if (!await ask('POST', `/v1/lists/${offer.number}/decline`)) return;
      toast('Declined.', { action: 'Join after all', onaction: join, time: 9000 });
      refresh();
    };
    const access = offer.access === 'write' ? 'you can edit it' : 'you can read it';
    const text = offer.further ? [peerName(offer), ` offers ${title}, which you have. Does this machine belong to the same person?`]
      : [peerName(offer), ` wants to share ${title} with you (${count(offer.links, 'link')}; ${access}).`];
    return h('div.card.offer', h('p', { dir: 'auto' }, text), h('div.tools', button(offer.further ? 'No' : 'Decline', decline), button(offer.further ? 'Yes' : 'Join', join, '.strong')));
  });
}

const accesses = [['none', 'no access'], ['read', 'can read'], ['write', 'can edit']];

/** Opens a dialog with the members of a hex. @param refresh called after a change */
export function shareDialog(hex, title, refresh) {
  const one = sharedHex(hex.id), known = new Map((one?.peers ?? []).map((peer) => [peer.uuid, peer]));
  const others = (app.peers ?? []).filter((peer) => peer.trust === 'trusted' && peer.state !== 'ghost' && !peer.own && peer.kind !== 'localsend' && !known.has(peer.uuid));
  const rows = [...known.values(), ...others].map((peer) => {
    const before = peer.access ?? 'none', name = label(peer);
    const select = h('select', { 'aria-label': `Access of ${name}` }, accesses.map(([value, text]) => h('option', { value, selected: value === before }, text)));
    return { peer, before, select, element: h('li', h('div.link-text', peerName(peer), known.has(peer.uuid) && h('div.under', memberText(peer))), h('div.tools', select)) };
  });
  dialog(`Share “${title.slice(0, 40)}”`, (close) => [
    h('p', 'Changes then appear on both sides. Members keep what they have received.'),
    rows.length ? h('ul.links.members', rows.map(({ element }) => element)) : h('p.faint', 'There is nobody yet with whom you could share it. Pair with the other person’s machine first.'),
    buttons(one?.owned && button('Renew…', () => { close(); renew(one, title, refresh); }), button('Cancel', close), rows.length > 0 && button('Save', async () => {
      const changed = rows.filter(({ before, select }) => select.value !== before);
      if (!changed.length) return close();
      const ended = changed.every(({ select }) => select.value === 'none');
      const done = ended ? 'No longer shared with them. They keep a copy.' : 'Saved. New members are asked to join.';
      if (!await ask('PUT', `/v1/mine/${hex.id}/share`, { with: changed.map(({ peer, select }) => ({ peer: peer.uuid, access: select.value })) }, done)) return;
      close();
      refresh();
    }, '.strong'))]);
}

/**
 * Asks whether an own shared hex is to be replaced by a copy without its deleted hexes and links, and replaces it.
 * @param refresh called afterwards
 */
export async function renew(one, title, refresh) {
  const asked = members(one).filter(({ state }) => state !== 'left').map(label), text = [`The deleted hexes and links of “${title}” leave the trash for good, and its changes cannot be undone.`,
    asked.length > 0 && `${asked.join(', ')} ${asked.length === 1 ? 'has' : 'have'} to join it again, and changes that have not arrived yet are left out.`, one.needsRenewal && 'It has nearly the maximum of hexes and links, deleted ones included.'];
  if (!await confirmed('Renew the shared hex?', text.filter(Boolean).join(' '), 'Renew')) return;
  const done = await ask('POST', `/v1/mine/${one.hex}/renew`);
  if (!done) return;
  toast(done.removed ? `Renewed, without ${count(done.removed, 'deleted hex or link', 'deleted hexes and links')}.` : 'Renewed.');
  refresh();
}

/** Asks before a shared hex is deleted. Resolves to true for a hex that is not shared. */
export async function mayDelete(one, title) {
  if (!one || (one.owned && !members(one).length) || (!one.owned && one.access === 'none')) return true;
  return confirmed('Delete a shared hex?', one.owned ? `“${title}” is shared with ${members(one).map((peer) => label(peer)).join(', ')}. They keep a copy, and get no later changes.`
    : `You stop following “${title}” from ${owner(one)}. Nothing changes there.`, 'Delete');
}

// Own machines

const ownStates = {
  inSync: 'up to date', away: 'not online', waiting: 'waits until this machine is added there, too', joining: 'the two My Hexlists are being merged', exchanging: 'changes are on their way',
};
/** Describes the state of the exchange of My Hexlist with an own machine. */
export function ownText({ state, message, behind }) {
  return [clean(message) || ownStates[state] || state, behind ? `${count(behind, 'change')} to send` : ''].filter(Boolean).join(' · ');
}

/** Asks whether My Hexlist is to be merged with that of a trusted peer, and adds the peer to the own machines. */
export async function addOwnDialog(peer) {
  const id = part(peer.uuid), preview = await ask('GET', `/v1/own/${id}`);
  if (!preview) return;
  const size = ({ hexes, links }) => `${count(hexes, 'hex', 'hexes')} and ${count(links, 'link')}`;
  dialog('Is it your machine?', (close) => [
    h('p', 'Then both can have one My Hexlist: everything in both is merged, and later changes appear on the other machine. A copy of the present state is saved first.'),
    h('p', preview.same ? 'Both have the same My Hexlist already.' : `Here: ${size(preview.here)}. There: ${preview.there ? size(preview.there) : 'not known yet'}.`),
    preview.problem && h('p.doubt', clean(preview.problem)),
    h('p', preview.confirmed ? ['The merge begins now, because this machine was added on ', peerName(peer), ' already.'] : ['Add this machine on ', peerName(peer), ', too. The merge begins then.']),
    buttons(button('Cancel', close), button('It is mine: merge', () => { close(); ask('POST', `/v1/own/${id}`, undefined, 'Added to your machines.'); }, '.strong'))]);
}

export async function removeOwn(peer) {
  if (await confirmed('Stop exchanging My Hexlist?', `Both machines keep everything. ${label(peer)} stays trusted.`, 'Stop')) ask('DELETE', `/v1/own/${part(peer.uuid)}`, undefined, 'My Hexlist is no longer exchanged.');
}
