// The outbox: what was sent, and what each row waits for.
import { call, faultOf, query } from './api.js';
import { h, icon, twoLines, head, clean, label, peerName, when, wholeTime, button, buttons, choice, ask } from './dom.js';
import { View } from './list.js';
import { app } from './main.js';
import { pairDialog } from './peers.js';

const words = { queued: 'waits', sending: 'on its way', stored: 'there', held: 'there, held back', rejected: 'refused', expired: 'given up', cancelled: 'taken back', failed: 'failed' };
const waits = {
  peer: 'is away; it goes out by itself when that machine is back', conflict: 'held back: two machines have one identity', session: 'is being dialled', turn: 'other transfers go first',
  window: 'takes no more for now', retry: 'is tried again', trust: 'too long until that machine trusts this one: pair with it',
};
/** What a row, or what became of a send, says. */
export function rowText(row) {
  const told = clean(row.message ?? row.lastError);
  switch (row.state) {
    case 'queued': case 'sending': return (waits[row.waitingFor] ?? 'on its way, not confirmed yet') + (row.nextAttemptAt ? ` (next at ${when(row.nextAttemptAt)})` : '');
    case 'stored': return 'it is there';
    case 'held': return 'it is there, and held back until its person accepts it';
    case 'expired': return 'given up: it was not delivered in time';
    default: return told || words[row.state];
  }
}

function outboxRow() {
  const sign = h('span.state'), to = h('bdi.from'), time = h('time.faint'), text = h('span.subject', { dir: 'auto' }), state = h('span.faint');
  return {
    element: twoLines(sign, [to, time], [text, state]),
    update(row) {
      sign.className = `state ${row.state}`;
      to.textContent = `To ${label(row)}`;
      time.textContent = when(row.createdAt);
      text.textContent = clean(row.subject) || 'A hex';
      state.textContent = words[row.state];
      this.element.setAttribute('aria-label', `${to.textContent}: ${text.textContent}, ${words[row.state]}, ${wholeTime(row.createdAt)}`);
    },
  };
}

const notThere = ['queued', 'sending', 'failed', 'rejected'];

export class OutboxView extends View {
  constructor() {
    super({ title: 'Outbox', sign: 'outbox', reads: 'What was sent', list: { height: 60, row: outboxRow, key: (row) => row.outboxID } });
    this.waiting = true;
  }
  rest() { super.rest(); this.row = null; }

  total() {
    const counts = Object.entries(app.overview?.outbox ?? {}).filter(([state]) => !this.waiting || notThere.includes(state));
    return counts.reduce((sum, [, number]) => sum + number, 0);
  }

  async reload() {
    this.filters.replaceChildren(choice([[true, 'Not there yet'], [false, 'All']], this.waiting, (waiting) => { this.waiting = waiting; this.reload(); }));
    const state = this.waiting ? notThere : [];
    const load = (after, limit, signal) => call('GET', `/v1/outbox${query({ state, limit, after })}`, undefined, { signal });
    await this.fetchList(load, this.total());
  }
  async renew() {
    await this.renewList();
    if (this.row) {
      const row = await call('GET', `/v1/outbox/${this.row.outboxID}`).catch((error) => { faultOf(error); }); // a row may be gone
      if (row && this.row?.outboxID === row.outboxID) this.show(row);
    }
  }

  empty() {
    return [icon('outbox', 'large'), h('h2', this.waiting ? 'Nothing waits' : 'Nothing was sent yet'),
      h('p', this.waiting ? 'What you send to a machine that is away waits here until it is back.' : 'Press New hex, or drop links anywhere on this page.')];
  }

  show(row) {
    this.row = row;
    const act = (how, done) => async () => { const changed = await ask('POST', `/v1/outbox/${row.outboxID}/${how}`, undefined, done); if (changed) this.show(changed); };
    const isOpen = ['queued', 'sending'].includes(row.state);
    this.fill(
      head(h(`span.state.big.${row.state}`), clean(row.subject) || 'A hex', ['To ', peerName(row), ' · ', wholeTime(row.createdAt)]),
      h('p', h('b.state-word', words[row.state]), ': ', isOpen && ['peer', 'session', 'window', 'retry'].includes(row.waitingFor) ? [peerName(row), ' '] : '', rowText(row), '.'),
      isOpen && (row.lastError || row.message) && h('p.faint', clean(row.message ?? row.lastError)),
      buttons(
        (isOpen || ['failed', 'rejected'].includes(row.state)) && button('Try again now', act('retry', 'It is tried now.'), '.strong'),
        isOpen && button('Take it back', act('cancel', 'Taken back.')),
        row.trust === 'stranger' && button('Pair', () => pairDialog({ ...row, uuid: row.peer }))));
  }
}
