// The outbox: what was sent, and what each row waits for.
import { call, query } from './api.js';
import { h, icon, clean, peerText, label, when, wholeTime, toast, button, buttons, choice, ask } from './dom.js';
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
    element: h('div.row', null, sign, h('div.lines', null, h('div.line', null, to, time), h('div.line', null, text, state))),
    update(row) {
      sign.className = `state ${row.state}`;
      to.textContent = `To ${label({ ...row, uuid: row.peer })}`;
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
    try { if (!await this.list.show(load, this.total())) return; } catch (error) { if (error.name !== 'AbortError') toast(error.message); return; }
    this.look();
  }
  async renew() {
    try { await this.list.renew(this.total()); } catch { return; }
    this.look();
    if (this.row) {
      const row = await call('GET', `/v1/outbox/${this.row.outboxID}`).catch(() => null);
      if (row && this.row?.outboxID === row.outboxID) this.show(row);
    }
  }

  look() {
    this.drawEmpty(() => [icon('outbox', 'large'), h('h2', null, this.waiting ? 'Nothing waits' : 'Nothing was sent yet'),
      h('p', null, this.waiting ? 'What you send to a machine that is away waits here until it is back.' : 'Press New hex, or drop links anywhere on this page.')]);
  }

  show(row) {
    this.row = row;
    const who = { ...row, uuid: row.peer };
    const act = (how, done) => async () => { const changed = await ask('POST', `/v1/outbox/${row.outboxID}/${how}`, undefined, done); if (changed) this.show(changed); };
    const isOpen = ['queued', 'sending'].includes(row.state);
    this.fill(
      h('div.head', null, h(`span.state.big.${row.state}`), h('div', null, h('h2', { dir: 'auto' }, clean(row.subject) || 'A hex'), h('p.faint', null, 'To ', peerText(label(who)), ' · ', wholeTime(row.createdAt)))),
      h('p', null, h('b.state-word', null, words[row.state]), ': ', isOpen && ['peer', 'session', 'window', 'retry'].includes(row.waitingFor) ? [peerText(label(who)), ' '] : '', rowText(row), '.'),
      isOpen && (row.lastError || row.message) && h('p.faint', null, clean(row.message ?? row.lastError)),
      buttons(
        (isOpen || ['failed', 'rejected'].includes(row.state)) && button('Try again now', act('retry', 'It is tried now.'), '.strong'),
        isOpen && button('Take it back', act('cancel', 'Taken back.')),
        row.trust === 'stranger' && button('Pair', () => pairDialog(who))));
  }
}
