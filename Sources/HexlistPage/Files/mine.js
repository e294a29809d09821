// My Hexlist: saved hexes as a tree. Hexes are moved by dragging them, or with a dialog.
import { call, callLines, faultOf, query } from './api.js';
import { h, icon, mark, setMark, head, clean, count, when, wholeTime, toast, copy, button, buttons, ask, selector, dialog, showFault, setChildren } from './dom.js';
import { View, searchField } from './list.js';
import { matchText, subject, title, sizes, hexBody, hexPage, nothingFound, openable, openAll, deleteLater, isBeingDeleted, copyButton, counts, showHits } from './hexes.js';
import { app } from './main.js';
import { compose, linksIn } from './compose.js';
import { addition } from './linkedits.js';
import { historyDialog, trashDialog } from './history.js';
import { readSharing, sharedHex, isWritable, shareMark, shareText, offerCards, shareDialog, renew, mayDelete } from './sharing.js';

const HEX = 'application/x-hexlist';
const carries = (event) => [HEX, 'Files', 'text/uri-list', 'text/html', 'text/plain'].some((type) => event.dataTransfer.types.includes(type));

/** Returns the elements of a badge with the number of new links, as text for screen readers too. The daemon counts up to 1 000. */
const newMark = (number) => [h('span', number > 999 ? '999+' : String(number)), h('span.hidden', number === 1 ? ' new link' : ' new links')];

/** Returns the large icon of a hex, in the colour of the hex: a folder if it contains hexes, otherwise a hexagon. */
function sign(hex) {
  const svg = hex.children?.length ? icon('folder', 'mark big') : mark('', 'big');
  setMark(svg, hex.color);
  return svg;
}

/** Makes a row of the tree. Its items are {node, level, parent}: a hex, its depth from 1, and the hex that contains it. */
function nodeRow(view) {
  let item;
  const twist = h('span.twist', { onclick: (event) => { event.stopPropagation(); view.toggle(item.node); } }, icon('chevron'));
  const hexagon = mark(''), folder = icon('folder', 'mark'), text = h('span.subject', { dir: 'auto' }), shared = h('span.tag.shared', { dir: 'auto', hidden: true }), fresh = h('span.number', { hidden: true }), links = h('span.faint');
  const zone = (event) => {
    const { top, height } = element.getBoundingClientRect();
    return event.dataTransfer.types.includes(HEX) && event.clientY < top + height / 3 ? 'before' : 'into';
  };
  const element = h('div.row.node', {
    draggable: 'true',
    ondragstart: (event) => { event.dataTransfer.setData(HEX, String(item.node.id)); event.dataTransfer.effectAllowed = 'move'; },
    ondragover: (event) => { if (!carries(event)) return; event.preventDefault(); event.stopPropagation(); element.dataset.drop = zone(event); },
    ondragleave: () => delete element.dataset.drop,
    ondrop: (event) => { delete element.dataset.drop; view.dropped(event, item, zone(event)); },
  }, twist, hexagon, folder, text, shared, fresh, links);
  return {
    element,
    update(given) {
      item = given;
      const { node, level } = item, isParent = view.has(node);
      element.style.setProperty('--level', level);
      element.setAttribute('aria-level', level);
      if (isParent) element.setAttribute('aria-expanded', view.open.has(node.id)); else element.removeAttribute('aria-expanded');
      twist.hidden = !isParent;
      hexagon.toggleAttribute('hidden', isParent);
      folder.toggleAttribute('hidden', !isParent);
      for (const each of [hexagon, folder]) setMark(each, node.color);
      const place = node.top ? h('span.faint', ` in ${clean(node.top.subject)}`) : null;
      text.replaceChildren(...(node.match?.in === 'description' ? matchText(node) : [subject(node)]), ...(node.match && node.match.in !== 'description' ? [' – ', ...matchText({ ...node, match: { ...node.match, before: node.match.before.replace(/^.*(?=.{16}$)/s, '…') } })] : []), ...(place ? [place] : []));
      const { links: number, files } = counts(node);
      const dead = node.deadLinks ?? node.links?.filter((link) => link.dead).length;
      links.textContent = [number + files > 0 && (number + files).toLocaleString('en'), dead > 0 && `${dead.toLocaleString('en')} dead`].filter(Boolean).join(' · ');
      links.title = sizes(node);
      const one = sharedHex(node.id);
      shared.textContent = one ? shareMark(one) : '';
      shared.hidden = !shared.textContent;
      fresh.hidden = !one?.new;
      setChildren(fresh, ...(one?.new ? newMark(one.new) : []));
    },
  };
}

/**
 * Asks the user for a folder of My Hexlist, in a tree or by a search.
 * @param moved the id of the hex that is to be moved, which is left out of the tree
 * @param choose called with the chosen folder, or with undefined for the top level
 * @param hasTop whether the top level can be chosen
 */
function folderDialog(title, moved, choose, hasTop = true) {
  const list = h('div.choices'), input = h('input', { type: 'search', placeholder: 'Search', 'aria-label': 'Search for a folder' });
  const element = dialog(title, () => [h('label.search', icon('search'), input), list]);
  const pick = (folder) => { element.close(); choose(folder); };
  const row = (node, level) => {
    const children = h('div', { hidden: true });
    const twist = h('button.quiet.twist', { 'aria-label': `Show folders in ${subject(node)}`, 'aria-expanded': 'false', onclick: async () => {
      children.hidden = !children.hidden;
      twist.setAttribute('aria-expanded', String(!children.hidden));
      if (children.firstChild) return;
      const whole = await ask('GET', `/v1/hexes/${node.id}`);
      children.replaceChildren(...(whole?.children ?? []).filter(({ id }) => id !== moved).map((child) => row(child, level + 1)));
    } }, icon('chevron'));
    if (!(node.hexesInside ?? node.children?.length)) twist.hidden = true;
    const folder = h('div.folder-row', twist, h('button', { onclick: () => pick(node) }, mark(node.color), h('span', { dir: 'auto' }, subject(node)), node.top ? h('span.faint', `in ${clean(node.top.subject)}`) : null));
    folder.style.setProperty('--level', level);
    return h('div', folder, children);
  };
  let last;
  const load = async () => {
    const typed = input.value, loading = last = Symbol(typed);
    const page = await hexPage(typed, { location: 'mine', limit: 500 }).catch((error) => { showFault(faultOf(error)); });
    if (loading !== last || !page) return;
    const top = hasTop && !typed.trim() ? [h('div.folder-row', button('Top level', () => pick(undefined)))] : [];
    list.replaceChildren(...top, ...page.items.filter(({ id }) => id !== moved).map((node) => row(node, 0)));
  };
  input.addEventListener('input', load);
  load();
}

/** Makes a control with the choices "All of My Hexlist" (value true) and, if a hex is selected, that hex (value false). */
const allOr = (selected) => selector([[true, 'All of My Hexlist'], ...(selected ? [[false, `“${subject(selected).slice(0, 30)}”`]] : [])], !selected);

export class MineView extends View {
  constructor() {
    const chooser = h('input', { type: 'file', hidden: true, 'aria-label': 'File to import', accept: '.html,.htm,.json,.ndjson,.csv,.md,.opml,.xml,.xbel,.txt', onchange: () => { const [file] = chooser.files; chooser.value = ''; if (file) this.importFile(file); } });
    super({
      title: 'My Hexlist', sign: 'mine', reads: 'The hex', tools: [button('Import…', () => chooser.click(), '.link'), button('Export…', () => this.exportDialog(), '.link'), button('Check links…', () => this.checkDialog(), '.link'), button('Feeds…', () => this.feedDialog(), '.link'), button('History…', () => historyDialog(() => this.refresh()), '.link'), button('Trash…', () => trashDialog(() => this.refresh()), '.link'), button('New…', () => compose({ into: null }))],
      list: { height: 40, row: () => nodeRow(this), key: ({ node }) => node.id, isTree: true },
    });
    Object.assign(this, { open: new Set(), nodes: [], inside: new Map() });
    this.filters.before(searchField(this));
    /** The element with the progress of an import, an export or a check of links. */
    this.job = h('div.job', { hidden: true, role: 'status' });
    /** The hexes that others want to share. */
    this.offers = h('div.offers');
    this.filters.after(this.offers, this.job, chooser);
    this.list.element.addEventListener('keydown', (event) => this.keydown(event));
    this.element.addEventListener('dragover', (event) => { if (carries(event)) event.preventDefault(); });
    document.addEventListener('visibilitychange', () => this.markSeen(this.hex));
    this.element.addEventListener('drop', (event) => this.dropped(event));
  }
  showNothing() { super.showNothing(); this.hex = this.drawn = this.fresh = null; }

  /** Loads the tree or the search results. @param isSame whether the search is unchanged; then the current rows stay after a failure */
  async reload(isSame) {
    const load = async (after, limit, signal) => {
      const page = await hexPage(this.input.value, { location: 'mine', limit: after ? limit : Math.min(1000, Math.max(limit, this.nodes.length)), after }, signal);
      await Promise.all(page.items.filter((node) => this.open.has(node.id)).map((node) => this.fetch(node)));
      this.nodes = after ? this.nodes.concat(page.items) : page.items;
      return { items: this.rows(page.items), next: page.next };
    };
    await readSharing().catch((error) => { const fault = faultOf(error); if (fault?.status) showFault(fault); });
    setChildren(this.offers, ...offerCards(() => this.refresh()));
    await this.fetchList(load, 0, isSame);
    const found = this.list.items.length;
    setChildren(this.filters, ...(this.input.value.trim() && found ? [h('span.faint', { role: 'status' }, `${found.toLocaleString('en')}${this.list.next ? ' or more' : ''} found`)] : []));
  }

  /**
   * Calls `work(signal, progress)`, and shows its progress with a button *Cancel* while it runs. Returns its result, or null after an
   * error.
   */
  async run(text, work) {
    const abort = new AbortController(), bar = h('progress', { 'aria-label': text }), label = h('span.faint', text);
    this.job.replaceChildren(label, bar, button('Cancel', () => abort.abort(), '.link'));
    this.job.hidden = false;
    try {
      return await work(abort.signal, (done, of) => { [bar.max, bar.value] = [of || 1, done]; label.textContent = `${text} ${done.toLocaleString('en')} of ${of.toLocaleString('en')}`; });
    } catch (error) {
      showFault(faultOf(error));
      return null;
    } finally { this.job.hidden = true; }
  }

  /** Imports a file of bookmarks or links. @param into the id of the folder that gets its hexes; by default the top level */
  async importFile(file, into) {
    const path = `/v1/import${query({ file: file.name, progress: 'true', in: into })}`;
    const done = await this.run(`Importing ${clean(file.name)}…`, (signal, progress) => callLines(path, file, { signal, online: ({ progress: now }) => now && progress(now.done, now.of) }));
    if (!done) return;
    const { added, addedInside = 0, addedLinks = 0, unchanged, extended = 0, newHexes = 0, newLinks = 0, refused, skipped = 0 } = done.result;
    const parts = [added && `${count(addedLinks, 'link')} in ${count(added + addedInside, 'hex', 'hexes')} added`, extended && `${count(newLinks, 'new link')}${newHexes ? ` and ${count(newHexes, 'new folder')}` : ''} added to what was there`, unchanged && `${unchanged.toLocaleString('en')} unchanged`,
      refused.length && `${refused.length} could not be imported`, skipped && `${count(skipped, 'entry', 'entries')} without a link skipped`].filter(Boolean);
    toast(`Imported “${clean(file.name)}”: ${parts.join(', ') || 'nothing new'}.`, { time: 9000 });
    this.refresh();
  }

  /** Opens a dialog that makes, lists and removes feed addresses: URLs from which feed readers on this machine read links. */
  feedDialog() {
    const selected = this.list.item()?.node, search = this.input.value.trim();
    const feeds = [[{}, 'All of My Hexlist'], search && [{ text: search, location: 'mine' }, `Search “${search.slice(0, 30)}”`], selected && [{ hex: selected.id }, `“${subject(selected).slice(0, 30)}”`]].filter(Boolean);
    const wanted = selector(feeds, feeds.at(-1)[0]), list = h('ul.links');
    const show = async () => {
      const page = await ask('GET', '/v1/feeds');
      if (page) list.replaceChildren(...page.items.map((feed) => h('li', h('div.link-text', h('span', { dir: 'auto' }, clean(feed.title)), h('div.under', h('span', `made ${when(feed.createdAt)}`), h('span', feed.usedAt ? `read ${when(feed.usedAt)}` : 'never read'))),
        h('div.tools', button('Remove', async () => { if (await ask('DELETE', `/v1/feeds/${feed.id}`, undefined, 'Feed address removed.')) show(); })))));
    };
    dialog('Feeds', () => [h('p', 'A feed reader on this machine can read links from an address. It works until you remove it.'), wanted.element,
      buttons(button('Copy feed address', async () => {
        const feed = await ask('POST', '/v1/feeds', wanted.value);
        if (!feed) return;
        await copy(feed.url);
        show();
      }, '.strong')), list]);
    show();
  }

  /** Asks the user whether to check all links or those of the selected hex, and starts the check. */
  checkDialog() {
    const selected = this.list.item()?.node;
    const scope = allOr(selected);
    dialog('Check links', (close) => [scope.element,
      h('p', 'Hexlist asks the server of each link whether the page still exists, and marks links that are dead. This takes a while, and the page has to stay open.'),
      buttons(button('Check', () => { close(); this.checkLinks(scope.value ? {} : { hexes: [selected.id] }); }, '.strong'))]);
  }
  async checkLinks(links) {
    const done = await this.run('Checking links…', (signal, progress) => callLines('/v1/mine/check', links, { signal, online: ({ progress: now }) => now && progress(now.done, now.of) }));
    this.refresh();
    if (!done) return;
    const { reachable, dead, unclear, skipped, unmarked } = done.result;
    const parts = [`${dead.toLocaleString('en')} dead`, unclear && `${unclear.toLocaleString('en')} unclear`, skipped && `${skipped.toLocaleString('en')} left out`, unmarked && `${unmarked.toLocaleString('en')} reachable again`].filter(Boolean);
    const show = () => { this.input.value = 'is:dead'; this.reload(); };
    toast(`${count(reachable + dead + unclear + skipped, 'link')} checked: ${parts.join(', ')}.`, dead ? { action: 'Show dead links', onaction: show, time: 15000 } : { time: 9000 });
  }

  /** Asks for a format, and saves all of My Hexlist or the selected hex as a file. */
  exportDialog() {
    const formats = [['html', 'Bookmarks (HTML)', 'html'], ['csv', 'Table (CSV)', 'csv'], ['markdown', 'Markdown', 'md'], ['opml', 'OPML', 'opml'], ['json', 'JSON, with everything', 'json']];
    const selected = this.list.item()?.node, select = h('select', { 'aria-label': 'Format' }, formats.map(([value, name]) => h('option', { value }, name)));
    const scope = allOr(selected);
    dialog('Export', (close) => [scope.element, h('label', h('h3', 'Format'), select), buttons(button('Export', async () => {
      close();
      const [format, , suffix] = formats.find(([value]) => value === select.value), name = scope.value ? 'My Hexlist' : subject(selected);
      const file = await this.run('Exporting…', (signal) => call('POST', `/v1/export${query({ format })}`, scope.value ? { all: true, location: 'mine' } : { ids: [selected.id] }, { signal, isBinary: true }));
      if (!file) return;
      const url = URL.createObjectURL(new Blob([file], { type: 'application/octet-stream' }));
      h('a', { href: url, download: `${name.replace(/[/\\:*?"<>|]/g, ' ').slice(0, 80)}.${suffix}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
      toast('Exported. The browser saves the file.');
    }, '.strong'))]);
  }
  /** Reloads the list and the open hex, keeping the scroll position. */
  async refresh() {
    const top = this.list.element.scrollTop;
    await this.reload(true);
    this.list.element.scrollTop = top;
    const item = this.hex && this.list.item(this.hex.id);
    if (item) this.show(item);
  }
  empty() {
    return this.input.value.trim() ? nothingFound()
      : [icon('mine', 'large'), h('h2', 'Nothing saved yet'), h('p', 'Save something from your inbox, or drop links here.')];
  }

  async fetch(node) {
    const keep = (hex) => { this.inside.set(hex.id, hex.children ?? []); hex.children?.forEach(keep); };
    await call('GET', `/v1/hexes/${node.id}`).then(keep, (error) => { const fault = faultOf(error); if (fault?.status !== 404) showFault(fault); });
  }
  has(node) { return (this.inside.get(node.id)?.length ?? node.hexesInside ?? node.children?.length) > 0; }
  /** Returns the tree items of these hexes and, for each expanded hex, those of the hexes inside it. */
  rows(nodes = this.nodes, level = 1, parent = null) {
    return nodes.filter((node) => !isBeingDeleted(node)).flatMap((node) => [{ node, level, parent },
      ...(this.open.has(node.id) ? this.rows(this.inside.get(node.id) ?? [], level + 1, node) : [])]);
  }
  redraw() {
    this.list.items = this.rows();
    this.list.redraw();
    this.drawEmpty();
  }

  async toggle(node, isOpen = !this.open.has(node.id)) {
    if (!this.has(node)) return;
    if (isOpen) { this.open.add(node.id); if (!this.inside.has(node.id)) await this.fetch(node); } else this.open.delete(node.id);
    this.redraw();
  }
  keydown(event) {
    const row = this.list.item(), isOpen = row && this.open.has(row.node.id);
    if (!row || !/^Arrow(Left|Right)$/.test(event.key)) return;
    event.preventDefault();
    if (event.key === 'ArrowRight') { if (isOpen) this.list.move(1); else this.toggle(row.node, true); }
    else if (isOpen) this.toggle(row.node, false);
    else if (row.parent) this.list.select(this.list.item(row.parent.id), false);
  }

  async dropped(event, item, zone) {
    event.preventDefault();
    event.stopPropagation();
    const moved = Number(event.dataTransfer.getData(HEX)), node = item?.node;
    if (moved) {
      if (moved === node?.id) return;
      if (zone === 'before') return this.move(moved, { before: node.id }, item.parent);
      // Below the last row: the end of the top level, if it is loaded.
      const last = !node && !this.input.value.trim() && !this.list.next && this.nodes.at(-1);
      return this.move(moved, last && last.id !== moved ? { after: last.id } : { in: node?.id }, node);
    }
    const links = linksIn(event.dataTransfer);
    if (!links.length) {
      const [file] = event.dataTransfer.files;
      return file && this.importFile(file, node?.id);
    }
    if (!node) return compose({ into: null, links });
    if (await this.changed(node.id, links.map((link) => addition(link)), `Added to “${subject(node)}”.`)) this.refresh();
  }
  /** Changes a hex by changes of its nodes, and shows the text `done` or the error. Returns the changed hex; undefined after an error. */
  changed(id, changes, done) { return ask('PATCH', `/v1/mine/${id}`, { changes }, done); }
  /** Moves a hex. @param place the body of the request @param parent the hex that contains it afterwards; undefined or null for the top level, or if it is not known */
  async move(id, place, parent) {
    const moved = await ask('POST', `/v1/mine/${id}/move`, place, parent ? `Moved to “${subject(parent)}”.` : place.before || place.after ? 'Moved.' : 'Moved to the top level.');
    if (!moved) return;
    if (parent) this.open.add(parent.id);
    this.refresh();
  }

  async show({ node }) {
    const hex = await ask('GET', `/v1/hexes/${node.id}`), root = sharedHex(node.id), shared = root ?? this.sharedAround(node);
    if (!hex || this.list.selected !== node.id) return;
    this.keepMarks(hex);
    this.markSeen(hex);
    const json = JSON.stringify([{ ...hex, shared: null }, { ...shared, new: 0 }, this.input.value.trim()]);
    if (this.drawn === json) return;
    Object.assign(this, { hex, drawn: json });
    const links = openable(hex), mayEdit = isWritable(shared);
    this.fill(
      head(sign(hex), title(hex), [sizes(hex), ' · saved ', h('time', { datetime: hex.receivedAt }, wholeTime(hex.receivedAt))], shared && h('p.shared-with', { dir: 'auto' }, root ? shareText(root) : `In “${clean(shared.title)}”. ${shareText(shared)}`)),
      buttons(links.length > 0 && button(links.length === 1 ? 'Open' : `Open all ${links.length}`, () => this.openLinks(), '.strong'),
        copyButton(hex), button('Send…', () => compose({ hex })), mayEdit && button('Edit…', () => compose({ edit: hex })), (!shared || root?.owned) && button('Share…', () => shareDialog(hex, title(hex), () => this.refresh())), root?.needsRenewal && button('Renew…', () => renew(root, title(hex), () => this.refresh())),
        mayEdit && !root && button('Move…', () => this.moveDialog()), mayEdit && button('New folder…', () => { this.open.add(hex.id); compose({ into: hex.id }); }), (mayEdit || root) && button('Delete', () => this.remove())),
      ...hexBody(hex, { tools: mayEdit && ((owner, index) => button(icon('more'), () => this.linkDialog(owner, index), '.quiet', { 'aria-label': `Edit link ${clean(owner.links[index].linkDescription || owner.links[index].url)}` })) }));
    showHits(this);
  }
  /** Keeps the marks of new links while a hex stays open, although its links are marked as seen soon. */
  keepMarks(hex) {
    if (this.fresh?.id !== hex.id) this.fresh = { id: hex.id, links: new Set() };
    const keep = (owner) => {
      for (const link of owner.links ?? []) {
        const key = `${owner.id} ${link.url}`;
        if (link.new) this.fresh.links.add(key); else if (this.fresh.links.has(key)) link.new = true;
      }
      owner.children?.forEach(keep);
    };
    keep(hex);
  }
  /** Marks the links of a shared hex as seen after it was shown for a moment on a visible page. */
  markSeen(hex) {
    clearTimeout(this.soon);
    const { new: number, hex: outer, sequence } = hex?.shared ?? {};
    if (!number || outer || document.hidden) return;
    this.soon = setTimeout(() => { if (this.hex?.id === hex.id && app.view === this && !document.hidden) ask('POST', `/v1/mine/${hex.id}/seen`, { sequence }); }, 300);
  }
  openLinks() { if (this.hex) openAll(openable(this.hex)); }
  /** Returns the shared hex that contains a hex; undefined if there is none. */
  sharedAround(node) {
    for (let around = this.list.item(node.id)?.parent; around; around = this.list.item(around.id)?.parent) if (sharedHex(around.id)) return sharedHex(around.id);
    return node.top && sharedHex(node.top.id);
  }

  moveDialog() {
    const { id } = this.hex;
    folderDialog('Move to', id, (folder) => this.move(id, { in: folder?.id }, folder));
  }

  /** Edits, moves or deletes one link of a hex. */
  linkDialog(hex, index) {
    const link = hex.links[index];
    const url = h('input', { value: link.url, maxlength: 8000, required: true, 'aria-label': 'Address', spellcheck: 'false' });
    const name = h('input', { value: clean(link.linkDescription), maxlength: 2000, 'aria-label': 'Name', dir: 'auto' });
    dialog('Link', (close) => {
      /** Returns the id of the link; undefined after an error. Links of inner hexes come without one, so it is read with their hex. */
      const node = async () => {
        if (link.node) return link.node;
        const whole = await ask('GET', `/v1/hexes/${hex.id}`), isSame = (one) => one?.url === link.url && one.linkDescription === link.linkDescription;
        const found = isSame(whole?.links[index]) ? whole.links[index] : whole?.links.find(isSame);
        if (whole && !found) toast('This link was changed or deleted meanwhile.');
        return found?.node;
      };
      /** Makes the change that a function returns for the id of the link. */
      const change = async (make, done) => {
        const id = await node();
        if (!id || !await this.changed(hex.id, [make(id)], done)) return;
        close();
        this.refresh();
      };
      const remove = (done) => change((id) => ({ remove: id }), done);
      const save = () => {
        const values = { ...(url.value.trim() !== link.url && { url: url.value.trim() }), ...(name.value.trim() !== clean(link.linkDescription) && { title: name.value.trim() }) };
        if (Object.keys(values).length) change((id) => ({ node: id, ...values }), 'Saved.'); else close();
      };
      const move = async (folder) => {
        if (folder.id !== hex.id && await this.changed(folder.id, [addition(link, undefined, false)])) remove(`Moved to “${subject(folder)}”.`);
      };
      return [h('form', { onsubmit: (event) => { event.preventDefault(); save(); } },
        h('label', h('h3', 'Name'), name), h('label', h('h3', 'Address'), url),
        buttons(button('Copy', () => navigator.clipboard.writeText(link.url).then(() => toast('Copied.'))), button('Delete', () => remove('Link deleted.')),
          button('Move…', () => folderDialog('Move link to', null, move, false)), h('button.strong', { type: 'submit' }, 'Save')))];
    });
  }

  async remove() {
    const hex = this.list.item()?.node;
    if (!hex || isBeingDeleted(hex) || !await mayDelete(sharedHex(hex.id), subject(hex)) || isBeingDeleted(hex)) return;
    deleteLater([hex], () => { this.redraw(); this.list.select(this.list.item(hex.id), false); });
    this.redraw();
    this.list.select(null);
  }
}
