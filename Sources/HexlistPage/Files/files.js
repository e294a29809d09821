// Saves files of peers into the download folder, and shows the progress. The daemon transfers the files, and reports it in `transfers`
// events.
import { call, faultOf, query } from './api.js';
import { h, clean, peerText, bytesText, count, button, ask, toast } from './dom.js';

/** Maximum number of open transfers in an event; the same as in `PageRoutes`. */
const eventLimit = 100;
/** The last known state of the transfers this page has seen, by the URL of the file. */
const transfers = new Map();
/** Ids of transfers that were started for a single file. */
const singles = new Set();
/** Batches: transfers that were started for all files of a hex, as {first, last, summary, isDone}, by the id of the hex. */
const batches = new Map();
/** Functions that redraw the files on screen, by their element. */
const views = new Map();

export const isFile = (link) => link.url.startsWith('hexlist:');
const isOpen = (transfer) => ['waiting', 'running', 'paused'].includes(transfer.state);
const folderName = (transfer) => clean(transfer.folder?.split('/').findLast(Boolean)) || 'the download folder';

/** Returns the sizes in bytes of all files in a hex and its folders; an unknown size is undefined. */
export function fileSizes(hex, extra = hex.extra) {
  const own = (hex.links ?? []).flatMap((link, index) => isFile(link) ? [extra?.links?.[index]?.size] : []);
  return [...own, ...(hex.children ?? []).flatMap((child, index) => fileSizes(child, extra?.children?.[index] ?? {}))];
}

function draw() {
  for (const [element, update] of views) if (element.isConnected) update(); else views.delete(element);
}

/** Shows an element that `update` redraws whenever transfers change. */
function live(element, update) {
  views.set(element, update);
  update();
  return element;
}

/** The newest open transfers, from the last `transfers` event. */
let listed = [];

/** Handles a `transfers` event, which has the open transfers, newest first. */
export function transfersChanged(items) {
  listed = items;
  for (const item of items) transfers.set(item.url, item);
  refreshTransfers();
}

/**
 * Reads the state of transfers that may have ended. Also called for other events, because a short transfer can begin and end between two
 * `transfers` events.
 */
export function refreshTransfers() {
  const ids = new Set(listed.map((item) => item.id));
  const ended = [...transfers.values()].filter((one) => isOpen(one) && !ids.has(one.id) && (listed.length < eventLimit || one.id > listed.at(-1).id));
  draw();
  for (const one of ended) readEnded(one);
  for (const [id, batch] of batches) if (!batch.isDone) readBatch(id, batch);
}

/** Reads the final state of a transfer that is no longer open. */
async function readEnded({ id, url }) {
  const transfer = await call('GET', `/v1/transfers/${id}`).catch((error) => { faultOf(error); });
  if (!transfer) return;
  transfers.set(url, transfer);
  if (!isOpen(transfer) && singles.delete(id)) {
    if (transfer.state === 'done') toast(`Saved “${clean(transfer.file)}” in ${folderName(transfer)}.`);
    else if (transfer.state === 'failed') toast(`“${clean(transfer.file)}” was not saved: ${clean(transfer.message)}`, { time: 9000 });
  }
  draw();
}

/** Reads the totals of a batch. There is one request at a time; it is repeated if the batch changed meanwhile. */
async function readBatch(id, batch) {
  batch.isStale = batch.isReading;
  if (batch.isReading) return;
  batch.isReading = true;
  const { first, last } = batch;
  batch.summary = await call('GET', `/v1/transfers/summary${query({ first, last })}`).catch((error) => { faultOf(error); }) ?? batch.summary;
  batch.isReading = false;
  const { running, soon, waiting, done, failed, cancelled } = batch.summary;
  batch.isDone = running + soon + waiting === 0;
  if (batch.isDone) batches.delete(id);
  draw();
  if (!batch.isDone) return batch.isStale && readBatch(id, batch);
  if (done || failed) toast(`${count(done, 'file')} saved${failed ? `, ${failed} failed` : ''}${cancelled ? `, ${cancelled} cancelled` : ''}.`, { time: 9000 });
}

/** Starts saving files of a hex. @param links numbers of the links, from 1; undefined for all files */
async function save(hex, links) {
  const start = await ask('POST', '/v1/transfers', { hex: hex.id, links });
  if (!start) return null;
  if (start.first === undefined) toast(start.present > 1 ? 'These files are in the download folder already.' : 'This file is in the download folder already.');
  else if (start.known && start.first === start.last) toast('This file is being saved already.');
  return start;
}

async function saveOne(hex, index, link) {
  const start = await save(hex, [index + 1]);
  if (!start) return;
  if (start.first === undefined) transfers.set(link.url, { url: link.url, state: 'done' });
  else {
    singles.add(start.first);
    const transfer = await ask('GET', `/v1/transfers/${start.first}`);
    if (transfer) transfers.set(link.url, transfer);
    if (transfer && !isOpen(transfer)) readEnded(transfer);
  }
  draw();
}

async function saveAll(hex) {
  const start = await save(hex);
  if (!start || start.first === undefined) return;
  const batch = { first: start.first, last: start.last, summary: { running: 0, soon: 1, waiting: 0, done: 0, failed: 0, cancelled: 0, bytes: 0, size: 0 } };
  batches.set(hex.id, batch);
  readBatch(hex.id, batch);
}

/** Cancels the open transfers of a batch, page by page, because cancelled transfers leave the list. */
async function cancelBatch({ first, last }) {
  for (let after; ;) {
    const page = await ask('GET', `/v1/transfers${query({ state: ['waiting', 'running', 'paused'], limit: 200, after })}`);
    if (!page) return;
    for (const { id } of page.items) if (id >= first && id <= last) await call('POST', `/v1/transfers/${id}/cancel`).catch(faultOf);
    if (!page.next) return refreshTransfers();
    after = page.next;
  }
}

/** Makes the *Save all* button, or the progress of the batch; nothing for a hex without files. */
export function saveAllBar(hex) {
  const sizes = fileSizes(hex), total = sizes.reduce((sum, size) => sum + (size ?? 0), 0);
  if (!sizes.length) return null;
  const element = h('div.save-all');
  return live(element, () => {
    const batch = batches.get(hex.id);
    if (!batch) {
      element.replaceChildren(button(sizes.length === 1 ? 'Save file' : `Save all ${count(sizes.length, 'file')}`, () => saveAll(hex), '.strong'), h('span.faint', bytesText(total)));
      return;
    }
    const { done, failed, cancelled, running, soon, waiting, bytes, size } = batch.summary, all = done + failed + cancelled + running + soon + waiting;
    element.replaceChildren(h('progress', { max: size || 1, value: bytes, 'aria-label': 'Saving files' }),
      h('span.faint', `${done} of ${count(all, 'file')} · ${bytesText(bytes)} of ${bytesText(size)}${waiting && !running ? ' · waiting for the sender' : ''}`),
      button('Cancel', () => cancelBatch(batch)));
  });
}

const waits = { peer: 'the sender is away', link: 'no connection to the sender', disk: 'the disk is full' };
function stateText(transfer) {
  switch (transfer.state) {
    case 'waiting': return `Waiting${waits[transfer.waitingFor] ? `: ${waits[transfer.waitingFor]}` : '…'}`;
    case 'running': return transfer.size ? `${bytesText(transfer.bytes)} of ${bytesText(transfer.size)}` : bytesText(transfer.bytes);
    case 'paused': return `Trying again later: ${clean(transfer.message)}`;
    case 'done': return `Saved in ${folderName(transfer)}`;
    case 'failed': return `Not saved: ${clean(transfer.message)}`;
    default: return 'Cancelled';
  }
}

/** Makes the row of a file. @param size in bytes, if known @param canSave whether the sender is trusted */
export function fileItem(hex, index, link, size, canSave) {
  const under = h('div.under'), tools = h('div.tools'), name = clean(link.linkDescription) || 'Unnamed file';
  const element = h('li.file', h('div.file-text', h('span.file-name', { dir: 'auto' }, peerText(name)), under), tools);
  return live(element, () => {
    const transfer = transfers.get(link.url);
    under.replaceChildren(h('span', size === undefined ? 'File' : bytesText(size)), ...(transfer ? [h(`span${transfer.state === 'failed' ? '.doubt' : ''}`, stateText(transfer))] : []));
    if (!canSave) return tools.replaceChildren();
    const labelled = (text, act) => button(text, act, '', { 'aria-label': `${text} ${name}` });
    if (transfer && isOpen(transfer)) {
      const bar = h('progress', { max: transfer.size || size || 1, value: transfer.bytes, 'aria-label': `Saving ${name}` });
      tools.replaceChildren(bar, labelled('Cancel', async () => {
        const ended = await ask('POST', `/v1/transfers/${transfer.id}/cancel`);
        if (ended) { transfers.set(link.url, ended); draw(); }
      }));
    } else if (transfer?.state === 'failed' || transfer?.state === 'cancelled') {
      tools.replaceChildren(labelled('Retry', async () => {
        const again = await ask('POST', `/v1/transfers/${transfer.id}/retry?force`);
        if (again) { singles.add(again.id); transfers.set(link.url, again); draw(); }
      }));
    } else if (transfer?.state === 'done') tools.replaceChildren();
    else tools.replaceChildren(labelled('Save', () => saveOne(hex, index, link)));
  });
}
