// The outbox: hexes that were sent, with the state of each.
import { call, faultOf, query } from './api.js';
import { h, icon, twoLines, head, clean, peerText, bytesText, count, label, peerName, when, wholeTime, button, buttons, choice, ask, confirmed } from './dom.js';
import { View } from './list.js';
import { app } from './main.js';
import { hexBody, sizes } from './hexes.js';
import { pairDialog } from './peers.js';

/** Words for the states of a hex. */
const words = { queued: 'waiting', sending: 'sending', stored: 'delivered', held: 'waiting for approval', rejected: 'refused', expired: 'expired', cancelled: 'cancelled', failed: 'failed' };
/** Words for the states of the files of a delivered hex. The hex has only links to them; the receiver downloads them afterwards. */
const fileWords = { offered: 'not downloaded yet', fetched: 'downloaded', expired: 'files expired', withdrawn: 'files withdrawn' };
/** Returns the state of the files of a row that was delivered; undefined for a row without files. */
const filesState = (row) => row.state === 'stored' && row.code !== 'delivered' ? row.files?.state : undefined;
const word = (row) => fileWords[filesState(row)] ?? words[row.state];
/**
 * Explanations of the values of `waitingFor`. Those of the values in `ofPeer` continue a sentence that begins with the name of the peer.
 */
const waits = {
  peer: 'is away; this will be sent when it is back', route: 'is away, and no route reaches it', receipt: 'is away; this is in its mailbox, encrypted', session: 'is being contacted', window: 'is busy', retry: 'did not answer; trying again',
  conflict: 'stopped: two machines use the same identity', turn: 'other transfers go first', trust: 'too long to send before that machine trusts this one: pair with it',
  answer: 'has not answered yet: accept it there', pin: 'requires a PIN; `hexlist peer set --pin` sets it',
};
const ofPeer = ['peer', 'route', 'receipt', 'session', 'window', 'retry', 'answer', 'pin'];
/** Explains the state of an outbox row or of a send result. */
export function rowText(row) {
  const message = clean(row.message ?? row.lastError);
  switch (row.state) {
    case 'queued': case 'sending': return (waits[row.waitingFor] ?? 'sent, not confirmed yet') + (row.nextAttemptAt ? ` (next attempt ${when(row.nextAttemptAt)})` : '');
    case 'stored': return row.code === 'delivered' ? message || 'confirmed by LocalSend' : row.files ? fileText(row.files) : 'received';
    case 'held': return 'received, and waiting to be accepted there';
    case 'expired': return 'not delivered in time';
    default: return row.code === 'declined' ? 'declined there' : message || words[row.state];
  }
}

const problems = { changed: 'changed since it was sent', missing: 'was deleted or moved since it was sent', notAllowed: 'can no longer be read' };
/** Describes how many files of a delivered hex the receiver has, and the last file that it requested but could not get. */
function fileText({ state, count: all, fetched, failed, failedName, problem }) {
  const files = count(all, 'file');
  if (state === 'fetched') return all === 1 ? 'received, and the file was downloaded' : `received, and all ${files} were downloaded`;
  const had = `received; ${all === 1 ? 'the file was not' : `${fetched || 'none'} of ${files} ${fetched === 1 ? 'was' : 'were'}`} downloaded`;
  if (state === 'expired') return `${had} before the time for it was over`;
  if (state === 'withdrawn') return `${had} before ${all === 1 ? 'it was' : 'they were'} withdrawn`;
  const inVain = failed > 0 ? `. “${clean(failedName ?? 'A file')}”${failed > 1 ? ` and ${failed - 1} more` : ''} ${problems[problem] ?? problems.changed}: send it again` : '';
  return `${had} ${fetched ? 'so far' : 'yet'}${inVain}`;
}

/** Explains the state of an outbox row in a sentence that begins with the name of the peer. */
export const rowSentence = (row) => `${label(row)}${ofPeer.includes(row.waitingFor) ? '' : ':'} ${rowText(row)}`;

/**
 * Returns the CSS class of a row's icon, for the state of the hex or of its files. A file that could not be downloaded counts as a failure.
 */
function signOf(row) {
  const files = filesState(row);
  return files === 'offered' ? row.files.failed ? 'failed' : 'held' : files === 'expired' || files === 'withdrawn' ? 'expired' : row.state;
}

function outboxRow() {
  const sign = h('span.state'), to = h('bdi.from'), time = h('time.faint'), text = h('span.subject', { dir: 'auto' }), state = h('span.faint');
  return {
    element: twoLines(sign, [to, time], [text, state]),
    update(row) {
      sign.className = `state ${signOf(row)}`;
      to.textContent = `To ${label(row)}`;
      time.textContent = when(row.createdAt);
      text.textContent = clean(row.subject) || 'Untitled';
      const files = filesState(row) === 'offered' && row.files.fetched ? ` (${row.files.fetched} of ${row.files.count})` : '';
      state.textContent = word(row) + files;
      this.element.setAttribute('aria-label', `${to.textContent}: ${text.textContent}, ${state.textContent}, ${wholeTime(row.createdAt)}`);
    },
  };
}

/** Makes the list of the files that the receiver of a row downloads from this machine. */
function offersList(offers) {
  const left = offers.filter((offer) => !offer.fetched).length;
  const state = (offer) => offer.fetched ? h('span.saved', icon('check'), 'downloaded')
    : offer.problem ? h('span.doubt', `${problems[offer.problem] ?? clean(offer.problem)}: send it again`) : h('span', `until ${when(offer.ends)}`);
  return [
    left > 0 && h('p.faint', `${count(left, 'file')} to download from here. Keep this machine on until ${left === 1 ? 'it is' : 'they are'} saved there.`),
    h('ul.links', offers.map((offer) => h('li.file', h('div.file-text', h('span.file-name', { dir: 'auto' }, peerText(offer.name)), h('div.under', h('span', bytesText(offer.size)), state(offer)))))),
  ];
}

/** Converts a HexJM to the JSON form of stored hexes, `HexJSON`. */
const stored = (hex) => ({
  description: hex.hexDescription ?? hex.description ?? '', extra: {},
  links: (hex.links ?? []).map((link) => typeof link === 'string' ? { url: link } : { url: link.url ?? '', linkDescription: link.linkDescription, service: link.service ?? 'Unknown' }),
  children: (hex.children ?? []).map(stored),
});
/** Makes the elements for the content of a row's hex. The daemon stores the content until the hex is delivered. */
function content(row) {
  if (!row.hex) return ['stored', 'held'].includes(row.state) ? [h('p.faint', 'Its content is with the receiver; it is not kept here after delivery.')] : [];
  const hex = stored(row.hex);
  return [h('p.faint', sizes(hex)), ...hexBody(hex)];
}

const pending = ['queued', 'sending', 'failed', 'rejected'];

export class OutboxView extends View {
  constructor() {
    super({ title: 'Outbox', sign: 'outbox', reads: 'Sent hex', list: { height: 60, row: outboxRow, key: (row) => row.outboxID } });
    this.waiting = true;
  }
  showNothing() { super.showNothing(); this.row = null; }

  total() {
    const counts = Object.entries(app.overview?.outbox ?? {}).filter(([state]) => !this.waiting || pending.includes(state));
    return counts.reduce((sum, [, number]) => sum + number, 0);
  }

  async reload() {
    this.filters.replaceChildren(choice([[true, 'Pending'], [false, 'All']], this.waiting, (waiting) => { this.waiting = waiting; this.reload(); }));
    const state = this.waiting ? pending : [];
    const files = this.waiting ? 'offered' : undefined; // includes delivered hexes whose files are not downloaded yet
    const load = (after, limit, signal) => call('GET', `/v1/outbox${query({ state, files, order: 'newest', limit, after })}`, undefined, { signal });
    await this.fetchList(load, this.total());
  }
  async refresh() {
    await this.refreshList();
    if (this.row) {
      const row = await call('GET', `/v1/outbox/${this.row.outboxID}`).catch((error) => { faultOf(error); }); // the row may be gone
      if (row && this.row?.outboxID === row.outboxID) this.show({ ...row, isWhole: true });
    }
  }

  empty() {
    return [icon('outbox', 'large'), h('h2', this.waiting ? 'Nothing pending' : 'Nothing sent yet'),
      h('p', this.waiting ? 'Hexes for a machine that is away wait here until it is back.' : 'Press New hex, or drop links anywhere on this page.')];
  }

  async show(row) {
    this.row = row;
    const act = (how, done) => async () => { const changed = await ask('POST', `/v1/outbox/${row.outboxID}/${how}`, undefined, done); if (changed) this.show({ ...changed, isWhole: true }); };
    const isOpen = ['queued', 'sending'].includes(row.state);
    this.fill(
      head(h(`span.state.big.${signOf(row)}`), clean(row.subject) || 'Untitled', ['To ', peerName(row), ' · ', wholeTime(row.createdAt)]),
      h('p', h('b.state-word', word(row)), ': ', isOpen && ofPeer.includes(row.waitingFor) ? [peerName(row), ' '] : '', rowText(row), '.'),
      isOpen && (row.lastError || row.message) && h('p.faint', clean(row.message ?? row.lastError)),
      buttons(
        (isOpen || ['failed', 'rejected'].includes(row.state)) && button('Retry now', act('retry', 'Retrying.'), '.strong'),
        isOpen && button('Cancel sending', act('cancel', 'Cancelled.')),
        filesState(row) === 'offered' && button('Withdraw files…', async () => {
          if (await confirmed('Withdraw the files?', `${label(row)} can no longer download them. The hex stays there.`, 'Withdraw')) act('cancel', 'The files are withdrawn.')();
        }),
        row.trust === 'stranger' && button('Pair', () => pairDialog({ ...row, uuid: row.peer }))),
      row.offers?.length && offersList(row.offers), row.isWhole && content(row));
    if (row.isWhole) return; // otherwise the row is from a list, and has neither content nor offers, so the whole row is fetched
    const whole = await call('GET', `/v1/outbox/${row.outboxID}`).catch((error) => { faultOf(error); });
    if (whole && this.row?.outboxID === row.outboxID) this.show({ ...whole, isWhole: true });
  }
}
