// Files: the shares of this machine and of peers, and remotes of rclone (clouds), shown as folders.
import { call, faultOf, query, part } from './api.js';
import { h, icon, twoLines, head, clean, peerText, bytesText, count, when, wholeTime, toast, button, buttons, field, ask, copy, confirmed, setChildren, showFault } from './dom.js';
import { View } from './list.js';
import { app } from './main.js';
import { compose } from './compose.js';
import { saveFrom, batchBar } from './files.js';

const orders = [['name', 'By name'], ['size', 'Largest first'], ['time', 'Newest first']];
const isFolder = (entry) => entry.kind !== 'file';
const serviceName = (service) => service.kind === 'own' ? 'My shares' : clean(service.name);
const kindText = (service) => service.kind === 'own' ? 'shared by this machine' : service.kind === 'peer' ? 'shares of a peer' : clean(service.service) || 'cloud';

function entryRow() {
  const sign = h('span.sign'), name = h('span.subject', { dir: 'auto' }), time = h('time.faint'), under = h('span.faint');
  return {
    element: twoLines(sign, [name, time], [under]),
    update(entry) {
      sign.replaceChildren(icon(entry.isService ? entry.kind === 'peer' ? 'peers' : 'files' : isFolder(entry) ? 'folder' : 'file'));
      name.textContent = entry.isService ? serviceName(entry) : clean(entry.name);
      time.textContent = entry.modified ? when(entry.modified) : '';
      under.textContent = entry.isService ? entry.usable ? kindText(entry) : clean(entry.why) || 'not available' : isFolder(entry) ? 'Folder' : entry.size === undefined ? 'File' : bytesText(entry.size);
      this.element.classList.toggle('off', entry.usable === false);
      this.element.setAttribute('aria-label', `${name.textContent}, ${under.textContent}`);
    },
  };
}

export class SharesView extends View {
  constructor() {
    super({ title: 'Files', sign: 'folder', reads: 'The file', actions: () => this.service ? this.markedActions() : [], list: { height: 56, row: entryRow, key: (entry) => entry.key } });
    /** The open service; null for the list of services. */
    this.service = null;
    /** The names of the open folders in the service. */
    this.path = [];
    this.order = 'name';
    this.crumbs = h('nav.crumbs', { 'aria-label': 'Folders' });
    this.filters.before(this.crumbs);
    this.list.element.addEventListener('keydown', (event) => this.keydown(event));
  }

  /** Returns the open folder as in the hash of the address, `SERVICE:FOLDER/FOLDER/`; undefined for the list of services. */
  placeKey() { return this.service ? `${this.service.name}:${this.path.map((name) => `${name}/`).join('')}` : undefined; }

  async reload(force) {
    this.draw();
    const { service, path, order } = this, base = path.join('/');
    const load = service ? async (after, limit, signal) => {
      const page = await call('GET', `/v1/services/${part(service.name)}/files${query({ path: base, sort: order, limit, after, force: force || null })}`, undefined, { signal });
      const items = page.items.map((entry) => ({ ...entry, path: [...path, entry.name].join('/'), key: `${this.placeKey()}${entry.name}` }));
      return { ...page, items };
    } : async (after, limit, signal) => {
      const { items } = await call('GET', '/v1/services', undefined, { signal });
      return { items: items.map((entry) => ({ ...entry, isService: true, key: `${entry.name}:` })), next: null };
    };
    await this.fetchList(load, 0);
  }
  /** Does nothing. A folder is listed only when it is opened or by *Reload*, because each listing costs the peer or the cloud a request. */
  refresh() {}

  draw() {
    this.element.querySelector('.select').hidden = !this.service;
    const crumb = (text, go, isLast) => isLast ? h('b', { 'aria-current': 'location' }, peerText(text)) : button(peerText(text), go, '.link');
    const names = this.service ? [['Files', () => this.open(null)], [serviceName(this.service), () => this.open(this.service)], ...this.path.map((name, index) => [clean(name), () => this.open(this.service, this.path.slice(0, index + 1))])] : [];
    setChildren(this.crumbs, ...names.flatMap(([text, go], index) => [...(index ? [h('span.faint', { 'aria-hidden': 'true' }, '›')] : []), crumb(text, go, index === names.length - 1)]));
    setChildren(this.filters, ...(this.service ? [
      h('select.sender', { 'aria-label': 'Order', onchange: (event) => { this.order = event.target.value; this.reload(); } }, orders.map(([value, text]) => h('option', { value, selected: value === this.order }, text))),
      button('Reload', () => this.reload(true), '.link')] : []));
  }

  empty() {
    return this.service ? [icon('folder', 'large'), h('h2', 'This folder is empty')]
      : [icon('files', 'large'), h('h2', 'No shares yet'), h('p', 'Folders that you or your peers share, and clouds that are set up in rclone, appear here.')];
  }

  /** Opens a folder of a service, or the list of services. */
  async open(service, path = []) {
    Object.assign(this, { service, path });
    this.list.selected = null;
    this.showNothing();
    document.body.classList.remove('reading');
    app.setAddress(this.placeKey());
    await this.reload();
    this.list.element.focus();
  }
  enter(entry) {
    if (entry.usable === false) return toast(clean(entry.why) || 'This is not available now.');
    return entry.isService ? this.open(entry) : this.open(this.service, entry.path.split('/'));
  }
  up() { if (this.path.length) this.open(this.service, this.path.slice(0, -1)); else if (this.service) this.open(null); }

  /** Opens the folder or file that the hash of the address names; if `key` is undefined, opens the list of services. */
  async openKey(key) {
    const at = key?.indexOf(':') ?? -1, name = key?.slice(0, at), names = key?.slice(at + 1).split('/') ?? [], file = names.pop();
    if ((key === undefined && this.service) || (key !== undefined && `${name}:${names.map((one) => `${one}/`).join('')}` !== this.placeKey())) {
      const known = at < 0 ? null : this.service?.name === name ? this.service : (await ask('GET', '/v1/services'))?.items.find((one) => one.name === name) ?? null;
      Object.assign(this, { service: known, path: known ? names : [] });
      this.list.select(null);
      await this.reload();
    }
    const entry = file && this.list.item(key);
    if (entry) this.list.select(entry, true); else app.close();
  }

  openTop() { return this.service ? this.openKey(undefined) : null; }

  keydown(event) {
    const entry = this.list.item();
    if (event.key === 'ArrowLeft' || event.key === 'Backspace') this.up();
    else if (event.key === 'ArrowRight' && entry && isFolder(entry)) this.enter(entry);
    else return;
    event.preventDefault();
  }

  select(entry, isOpened) {
    if (entry && isOpened && isFolder(entry)) this.enter(entry); else super.select(entry, isOpened);
  }

  show(entry) {
    const { service } = this, name = entry.isService ? serviceName(entry) : clean(entry.name);
    const under = entry.isService ? kindText(entry) : [isFolder(entry) ? 'Folder' : entry.size === undefined ? 'File' : bytesText(entry.size), entry.modified && wholeTime(entry.modified)].filter(Boolean).join(' · ');
    const act = service && { service, entries: [entry] };
    this.fill(
      head(icon(isFolder(entry) ? 'folder' : 'file', 'large'), name, under),
      entry.usable === false && h('p.why', clean(entry.why)),
      buttons(
        isFolder(entry) && entry.usable !== false && button('Open', () => this.enter(entry), '.strong'),
        act && service.kind !== 'own' && button(isFolder(entry) ? 'Save folder' : 'Save', () => save(act), isFolder(entry) ? '' : '.strong'),
        act && !isFolder(entry) && button('Send to…', () => sendLinks(act)),
        act && !isFolder(entry) && button('Copy link', () => copyLinks(act))),
      act && batchBar(`${service.name}:${entry.path}`),
      act && field('In', h('span', peerText([serviceName(service), ...this.path].join(' › ')))),
      act && h('p.faint', service.kind === 'own' ? 'A link works for the peers to whom you share this folder.' : service.kind === 'peer' ? `A link works for the peers to whom ${serviceName(service)} shares this folder.` : 'A link is public: whoever has it can read the file.'));
  }

  markedActions() {
    const { service } = this, act = { service, entries: this.list.markedItems }, hasFolders = act.entries.some(isFolder);
    const then = (how) => async () => { if (await how(act) !== false) this.list.unmark(); };
    return [
      ...(service.kind !== 'own' ? [button('Save', then(save))] : []),
      ...(hasFolders ? [] : [button('Send to…', then(sendLinks)), button('Copy links', then(copyLinks))]),
    ];
  }
}

async function save({ service, entries }) {
  for (const entry of entries) await saveFrom(service.name, entry.path);
}

/** Makes links to files. Asks the user before it makes public links. Returns null if no link was made. */
async function links({ service, entries }) {
  if (service.kind === 'rclone' && !await confirmed('Make a public link?', `Anyone who has ${entries.length === 1 ? 'the link can read this file' : 'the links can read these files'}.`, entries.length === 1 ? 'Make the link' : 'Make the links')) return null;
  const names = new Map(entries.map((entry) => [entry.path, clean(entry.name)]));
  try {
    const lines = await call('POST', `/v1/services/${part(service.name)}/links`, { paths: [...names.keys()] }, { read: (text) => text.trim().split('\n').map((line) => JSON.parse(line)) });
    const made = lines.filter((line) => line.url), failed = lines.find((line) => line.code || line.error);
    if (failed) showFault(failed.error ?? failed);
    return made.length ? made.map((line) => ({ url: line.url, linkDescription: names.get(line.path) })) : null;
  } catch (error) {
    showFault(faultOf(error));
    return null;
  }
}
async function sendLinks(act) {
  const made = await links(act);
  if (!made) return false;
  compose({ links: made });
  return true;
}
async function copyLinks(act) {
  const made = await links(act);
  if (!made) return false;
  await copy(made.map((link) => link.url).join('\n'));
  return true;
}
