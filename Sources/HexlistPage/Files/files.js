// Saves files of peers into the download folder, and shows the progress. The daemon transfers the files, and sends `transfers` events about
// the progress.
import { call, faultOf, query } from './api.js';
import { h, icon, clean, peerText, bytesText, count, label, button, ask, toast, showFault, setChildren } from './dom.js';
import { isImage, thumbnail } from './images.js';
import { app } from './main.js';

/** Maximum number of open transfers in a `transfers` event; equals `PageEventSource.maximumTransfers` of the daemon. */
const eventLimit = 100;
/** The last known states of transfers, by the URL of the file. */
const transfers = new Map();
/** Ids of transfers that were started for a single file. */
const singles = new Set();
/**
 * Batches of transfers that were started together, as {first, last, hex, summary, isDone}. The key is the id of the hex, or `SERVICE:PATH`.
 */
const batches = new Map();
/** The functions that redraw elements with files, by element. */
const views = new Map();

export const isFile = (link) => link.url.startsWith('hexlist:');
const isOpen = (transfer) => ['waiting', 'running', 'paused'].includes(transfer.state);
/** Whether the file of a transfer is in the cache, and not in the download folder. Such a file can be opened. */
const isCached = (transfer) => /\/[0-9a-f]{64}$/.test(transfer.folder ?? '');
const isSaved = (transfer) => transfer?.state === 'done' && !isCached(transfer);
const folderName = (transfer) => clean(transfer.folder?.split('/').findLast(Boolean)) || 'the download folder';

/** Returns the sizes in bytes of all files in a hex and its folders; an unknown size is undefined. */
export function fileSizes(hex, extra = hex.extra) {
  const own = (hex.links ?? []).flatMap((link, index) => isFile(link) ? [extra?.links?.[index]?.size] : []);
  return [...own, ...(hex.children ?? []).flatMap((child, index) => fileSizes(child, extra?.children?.[index] ?? {}))];
}

/** Returns the URLs of all files in a hex and its folders. */
const fileURLs = (hex) => [...(hex.links ?? []).filter(isFile).map((link) => link.url), ...(hex.children ?? []).flatMap(fileURLs)];

/** Maximum number of hexes, a hex and its folders, whose transfers are read: there is one request for each. */
const readFolders = 30;
/** Reads the transfers of a hex and its folders, including those that ended before this page was opened. */
async function readTransfers(hex) {
  const ids = (hex) => fileURLs(hex).length ? [hex.id, ...(hex.children ?? []).flatMap(ids)] : [];
  const pages = await Promise.all(ids(hex).slice(0, readFolders).map((id) => call('GET', `/v1/transfers${query({ hex: id, limit: 1000 })}`).catch((error) => { faultOf(error); })));
  for (const item of pages.flatMap((page) => page?.items ?? []).sort((one, other) => one.id - other.id)) {
    const known = transfers.get(item.url);
    if (!known || item.id === known.id || !isCached(item)) transfers.set(item.url, item); // a saved file replaces a cached one
  }
  draw();
}

/** Records that the detail pane shows a hex, and reads its transfers. */
export function showTransfers(hex) {
  shown = fileURLs(hex).length ? hex : null;
  readTransfers(hex);
}

/** Matches the names of files that have a button *Open*. The daemon also checks the type and the content (`OpenableFile`). */
const openable = /\.(png|jpe?g|gif|webp|avif|heic|tiff?|bmp|mp3|ogg|oga|opus|flac|m4a|wav|mp4|m4v|mov|mkv|webm|ogv|avi|pdf|txt|md|log)$/i;

/** Opens a received file, or shows it in its folder. A file that no longer exists can be saved again. @param how `open` or `show` */
async function useFile(transfer, how) {
  try {
    await call('POST', `/v1/transfers/${transfer.id}/${how}`);
  } catch (error) {
    const fault = faultOf(error);
    if (fault?.status === 404) transfers.delete(transfer.url);
    showFault(fault);
    draw();
  }
}

function draw() {
  for (const [element, update] of views) if (element.isConnected) update(); else views.delete(element);
}

/** Calls `update`, which draws the contents of an element, now and whenever transfers change. Returns the element. */
function live(element, update) {
  views.set(element, update);
  update();
  return element;
}

/** The open transfers in the last `transfers` event, newest first. */
let listed = [];
/** The hex that the detail pane shows; null if it has no files. */
let shown = null;
/** Whether files of a peer are saved automatically. */
const savesFrom = (uuid) => app.peers?.some((peer) => peer.uuid === uuid && peer.fetchLimit);
/** Ids of open transfers that were started automatically. */
const automatic = new Set();
const isAutomatic = ({ id, hex, peer }) => hex && savesFrom(peer) && !singles.has(id) && ![...batches.values()].some(({ first, last }) => id >= first && id <= last);

/** Returns the number of open transfers of files of a hex. */
export const savingOf = (hex) => listed.filter((transfer) => transfer.hex === hex.id).length;

/** Handles a `transfers` event, which has the open transfers, newest first. */
export function transfersChanged(items) {
  listed = items;
  for (const item of items) transfers.set(item.url, item);
  for (const item of items) if (isAutomatic(item)) automatic.add(item.id);
  refreshTransfers();
  // Short transfers of the shown hex may have begun and ended since the last event.
  if (shown && savesFrom(shown.peerUUID) && !fileURLs(shown).some((url) => transfers.has(url))) readTransfers(shown);
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
  if (!isOpen(transfer) && automatic.delete(id)) readAutomatic(transfer);
  else if (!isOpen(transfer) && singles.delete(id)) {
    if (transfer.state === 'done') toast(`Saved “${clean(transfer.file)}” in ${folderName(transfer)}.`);
    else if (transfer.state === 'failed') toast(`“${clean(transfer.file)}” was not saved: ${clean(transfer.message)}`, { time: 9000 });
  }
  draw();
}

/** Shows a message that the files of a hex were saved automatically; does nothing while transfers of the hex are open. */
async function readAutomatic({ hex }) {
  if (savingOf({ id: hex })) return;
  const items = (await call('GET', `/v1/transfers${query({ hex, limit: 1000 })}`).catch((error) => { faultOf(error); }))?.items ?? [];
  const saved = items.filter(isSaved), [first] = saved;
  if (first) toast(saved.length === 1 ? `Saved “${clean(first.file)}” in ${folderName(first)}.` : `${count(saved.length, 'file')} from ${label(first)} saved in ${folderName(first)}.`);
  if (shown?.id === hex) readTransfers(shown);
}

/** Reads the totals of a batch, with one request at a time. If this is called during a request, the request is repeated after it. */
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
  if (batch.hex) await readTransfers(batch.hex);
  if (done || failed) toast(`${count(done, 'file')} saved${failed ? `, ${failed} failed` : ''}${cancelled ? `, ${cancelled} cancelled` : ''}.`, { time: 9000 });
}

/** Starts saving files of a hex. @param links numbers of the links, from 1; undefined for all files */
async function save(hex, links) {
  const start = await ask('POST', '/v1/transfers', { hex: hex.id, links, folder: links ? undefined : true });
  if (!start) return null;
  if (start.first === undefined) toast(start.present > 1 ? 'These files are in the download folder already.' : 'This file is in the download folder already.');
  else if (start.known && start.first === start.last) toast('This file is being saved already.');
  return start;
}

async function saveOne(hex, index, link) {
  const start = await save(hex, [index + 1]);
  if (!start) return;
  if (start.first === undefined) {
    transfers.set(link.url, { url: link.url, state: 'done' });
    await readTransfers({ ...hex, children: [] });
  } else {
    singles.add(start.first);
    const transfer = await ask('GET', `/v1/transfers/${start.first}`);
    if (transfer) transfers.set(link.url, transfer);
    if (transfer && !isOpen(transfer)) readEnded(transfer);
  }
  draw();
}

/** Saves a file or folder of a service into the download folder. */
export async function saveFrom(service, path) {
  const start = await ask('POST', '/v1/transfers', { service, path });
  if (!start) return;
  if (start.first === undefined) return toast('Already in the download folder.');
  begin(`${service}:${path}`, start);
}

/**
 * Makes the progress bar of a batch with a button *Cancel*. The element is empty while no such batch is running.
 * @param id the key of the batch
 */
export function batchBar(id) {
  const element = h('div.save-all');
  return live(element, () => {
    const batch = batches.get(id);
    if (batch) return drawProgress(element, batch);
    element.batch = null;
    element.replaceChildren();
  });
}

async function saveAll(hex) {
  const start = await save(hex);
  if (start?.first === undefined) return start && readTransfers(hex);
  begin(hex.id, start, hex);
}

/** Adds a batch for the transfers that a request has started. @param id the key of the batch @param hex the hex with the files, if any */
function begin(id, { first, last }, hex) {
  const batch = { first, last, hex, summary: { running: 0, soon: 1, waiting: 0, done: 0, failed: 0, cancelled: 0, bytes: 0, size: 0 } };
  batches.set(id, batch);
  draw();
  readBatch(id, batch);
}

/** Draws the progress of a batch. Its bar and button are made once, because a click needs the same element at mouse-down and mouse-up. */
function drawProgress(element, batch) {
  if (element.batch !== batch) element.replaceChildren(h('progress', { 'aria-label': 'Saving files' }), h('span.faint'), button('Cancel', () => cancelBatch(batch)));
  element.batch = batch;
  const { done, failed, cancelled, running, soon, waiting, bytes, size } = batch.summary, all = done + failed + cancelled + running + soon + waiting, [bar, text] = element.children;
  [bar.max, bar.value] = [size || 1, bytes];
  text.textContent = `${done} of ${count(all, 'file')} · ${bytesText(bytes)} of ${bytesText(size)}${waiting && !running ? ' · waiting for the sender' : ''}`;
}

/** Cancels the open transfers of a batch. They are listed in pages, and a cancelled transfer leaves the list. */
async function cancelBatch({ first, last }) {
  for (let after; ;) {
    const page = await ask('GET', `/v1/transfers${query({ state: ['waiting', 'running', 'paused'], limit: 200, after })}`);
    if (!page) return;
    for (const { id } of page.items) if (id >= first && id <= last) await call('POST', `/v1/transfers/${id}/cancel`).catch(faultOf);
    if (!page.next) return refreshTransfers();
    after = page.next;
  }
}

/**
 * Makes an element with the button *Save all*, with the progress of the batch, or with the folder of the saved files. Returns null for a
 * hex without files, and for a folder with a single file.
 * @param extra the unknown members of the hex, which contain the sizes of files
 * @param isFolder whether the hex is a folder in another one
 */
export function saveAllBar(hex, extra = hex.extra, isFolder = false) {
  const sizes = fileSizes(hex, extra), total = sizes.reduce((sum, size) => sum + (size ?? 0), 0), urls = fileURLs(hex);
  if (!sizes.length || (isFolder && sizes.length === 1)) return null;
  const element = h('div.save-all');
  return live(element, () => {
    const batch = batches.get(hex.id), saved = urls.map((url) => transfers.get(url)).filter((transfer) => isSaved(transfer) && transfer.id);
    if (batch) return drawProgress(element, batch);
    element.batch = null;
    if (saved.length === urls.length) {
      setChildren(element, h('span.saved', icon('check'), urls.length === 1 ? `Saved in ${folderName(saved[0])}` : `All saved in ${folderName(saved[0])}`),
        button('Show in folder', () => useFile(saved[0], 'show')));
      return;
    }
    setChildren(element, button(isFolder ? 'Save folder' : sizes.length === 1 ? 'Save file' : `Save all ${count(sizes.length, 'file')}`, () => saveAll(hex), isFolder ? '' : '.strong'), h('span.faint', bytesText(total)));
  });
}

const waits = { peer: 'the sender is away', link: 'no connection to the sender', disk: 'the disk is full' };
function stateText(transfer) {
  switch (transfer.state) {
    case 'waiting': return `Waiting${waits[transfer.waitingFor] ? `: ${waits[transfer.waitingFor]}` : '…'}`;
    case 'running': return transfer.size ? `${bytesText(transfer.bytes)} of ${bytesText(transfer.size)}` : bytesText(transfer.bytes);
    case 'paused': return `Trying again later: ${clean(transfer.message)}`;
    case 'done': return isCached(transfer) ? '' : `Saved in ${folderName(transfer)}`;
    case 'failed': return `Not saved: ${clean(transfer.message)}`;
    default: return 'Cancelled';
  }
}

/**
 * Makes the row of a file.
 * @param size in bytes, if known
 * @param canSaveFiles whether the row has buttons to save and open the file
 * @param isTrusted whether the sender is trusted, so that an image has a thumbnail
 */
export function fileItem(hex, index, link, size, { canSaveFiles: canSave, isTrusted }) {
  const under = h('div.under'), tools = h('div.tools'), name = clean(link.linkDescription) || 'Unnamed file', picture = h('span.picture', icon(isImage(name) ? 'image' : 'file'));
  const element = h('li.file', picture, h('div.file-text', h('span.file-name', { dir: 'auto' }, peerText(name)), under), tools);
  return live(element, () => {
    const transfer = transfers.get(link.url);
    if (transfer?.state === 'done' && transfer.id && isTrusted && isImage(name) && !picture.querySelector('canvas')) picture.append(thumbnail(transfer) ?? '');
    under.replaceChildren(h('span', size === undefined ? 'File' : bytesText(size)), ...(transfer ? [h(`span${transfer.state === 'failed' ? '.doubt' : ''}`, stateText(transfer))] : []));
    if (!canSave) return tools.replaceChildren();
    const use = (how) => useFile(transfers.get(link.url), how); // finds the transfer at each click, because `setChildren` keeps equal buttons of earlier transfers
    const labelled = (text, act) => button(text, act, '', { 'aria-label': `${text} ${name}` });
    if (transfer && isOpen(transfer)) {
      if (tools.running !== transfer.id) tools.replaceChildren(h('progress', { 'aria-label': `Saving ${name}` }), labelled('Cancel', async () => {
        const ended = await ask('POST', `/v1/transfers/${transfer.id}/cancel`);
        if (ended) { transfers.set(link.url, ended); draw(); }
      }));
      tools.running = transfer.id;
      [tools.firstChild.max, tools.firstChild.value] = [transfer.size || size || 1, transfer.bytes];
      return;
    }
    tools.running = null;
    if (transfer?.state === 'failed' || transfer?.state === 'cancelled') {
      setChildren(tools, labelled('Retry', async () => {
        const again = await ask('POST', `/v1/transfers/${transfers.get(link.url).id}/retry?force`);
        if (again) { singles.add(again.id); transfers.set(link.url, again); draw(); }
      }));
    } else if (transfer?.state === 'done') {
      setChildren(tools, ...!transfer.id ? [] : [openable.test(name) ? labelled('Open', () => use('open')) : '',
        isCached(transfer) ? labelled('Save', () => saveOne(hex, index, link)) : labelled('Show in folder', () => use('show'))]);
    } else setChildren(tools, labelled('Save', () => saveOne(hex, index, link)));
  });
}
