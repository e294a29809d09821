// My Hexlist: what was kept, as a tree. Hexes are moved by dragging, or by a list.
import { call, query } from './api.js';
import { h, icon, mark, clean, toast, button, dialog } from './dom.js';
import { app } from './main.js';
import { subject, title, sizes, hexBody, openable, openAll, quietly, backButton } from './hexes.js';
import { compose, linksIn } from './compose.js';

export class MineView {
  constructor() {
    this.title = 'My Hexlist';
    this.open = new Set();
    this.items = [];
    this.tree = h('div.tree', { role: 'tree', 'aria-label': 'My Hexlist' });
    this.none = h('div.empty');
    this.more = button('Show more', () => this.page(), '.more', { hidden: true });
    this.element = h('section.column', { 'aria-label': 'My Hexlist' }, h('header.top', null, h('h2.title', null, 'My Hexlist'), button('New…', () => compose({ into: null }))),
      h('div.list', null, this.tree, this.more, this.none));
    this.pane = h('section.pane', { 'aria-label': 'The hex', tabindex: -1 });
    this.tree.addEventListener('keydown', (event) => this.keydown(event));
    const end = this.element.querySelector('.list');
    end.addEventListener('dragover', (event) => { if (this.accepts(event)) event.preventDefault(); });
    end.addEventListener('drop', (event) => this.dropped(event, null));
    this.rest();
  }
  rest() { this.current = null; this.pane.replaceChildren(h('div.rest', null, icon('mine', 'huge'))); }

  async reload() {
    const known = new Map(this.items.map((node) => [node.id, node.children]));
    const wanted = Math.min(1000, Math.max(200, this.items.length));
    const page = await quietly(() => call('GET', `/v1/hexes${query({ location: 'mine', limit: wanted })}`));
    if (!page) return;
    this.items = page.items.map((hex) => ({ ...hex, children: known.get(hex.id) }));
    this.next = page.next;
    await Promise.all(this.items.filter((node) => this.open.has(node.id)).map((node) => this.fetch(node)));
    this.draw();
  }
  renew() { return this.reload(); }
  async page() {
    const page = await quietly(() => call('GET', `/v1/hexes${query({ location: 'mine', limit: 500, after: this.next })}`));
    if (page) { this.items.push(...page.items); this.next = page.next; this.draw(); }
  }

  async fetch(node) {
    const whole = await call('GET', `/v1/hexes/${node.id}`).catch(() => null);
    if (whole) node.children = whole.children ?? [];
  }

  /** The rows that are seen: each {node, level, parent}. */
  rows(nodes = this.items, level = 1, parent = null) {
    return nodes.flatMap((node) => [{ node, level, parent }, ...(this.open.has(node.id) && node.children ? this.rows(node.children, level + 1, node) : [])]);
  }
  has(node) { return node.hexesInside > 0 || node.children?.length > 0; }

  draw() {
    this.shown = this.rows();
    const focused = this.tree.contains(document.activeElement);
    this.tree.hidden = !this.shown.length;
    this.tree.replaceChildren(...this.shown.map((row) => this.row(row)));
    this.none.hidden = this.items.length > 0;
    this.more.hidden = !this.next;
    if (!this.items.length) this.none.replaceChildren(icon('mine', 'large'), h('h2', null, 'Nothing kept yet'), h('p', null, 'Save a hex of the inbox, or drop links here.'));
    if (focused) this.tree.querySelector('[tabindex="0"]')?.focus();
  }

  row({ node, level }) {
    const isSelected = this.current === node.id, isParent = this.has(node);
    const element = h('div.node', {
      role: 'treeitem', tabindex: isSelected || (this.current === null && node === this.shown[0]?.node) ? 0 : -1, 'aria-level': level, 'aria-selected': String(isSelected),
      'aria-expanded': isParent ? String(this.open.has(node.id)) : null, draggable: 'true', 'data-id': node.id,
      onclick: () => this.show(node, true),
      ondragstart: (event) => { event.dataTransfer.setData('application/x-hexlist', String(node.id)); event.dataTransfer.effectAllowed = 'move'; event.stopPropagation(); },
      ondragover: (event) => { if (!this.accepts(event)) return; event.preventDefault(); event.stopPropagation(); element.dataset.drop = this.zone(event, element); },
      ondragleave: () => delete element.dataset.drop,
      ondrop: (event) => { delete element.dataset.drop; this.dropped(event, node, this.zone(event, element)); },
    }, h('span.twist', { onclick: (event) => { event.stopPropagation(); this.toggle(node); } }, isParent ? icon('chevron') : ''), mark(node.color), h('span.subject', { dir: 'auto' }, subject(node)),
    h('span.faint', null, String((node.linkCount ?? node.links?.length ?? 0) + (node.linksInside ?? 0) || '')));
    element.style.setProperty('--level', level);
    return element;
  }

  accepts(event) { return ['application/x-hexlist', 'text/uri-list', 'text/html', 'text/plain'].some((type) => event.dataTransfer.types.includes(type)); }
  zone(event, element) {
    const { top, height } = element.getBoundingClientRect();
    return event.dataTransfer.types.includes('application/x-hexlist') && event.clientY < top + height / 3 ? 'before' : 'into';
  }
  parentOf(id) { return this.shown.find((row) => row.node.id === id)?.parent; }

  async dropped(event, node, zone) {
    event.preventDefault();
    event.stopPropagation();
    const moved = Number(event.dataTransfer.getData('application/x-hexlist'));
    if (moved) {
      if (moved === node?.id) return;
      const parent = zone === 'before' ? this.parentOf(node.id) : node;
      // The order of what is in no other hex is that of its arrival.
      return this.move(moved, parent, zone === 'before' && parent ? node.id : undefined);
    }
    const links = linksIn(event.dataTransfer);
    if (!links.length) return;
    if (!node) return compose({ into: null, links });
    const whole = await quietly(() => call('GET', `/v1/hexes/${node.id}`));
    if (whole && await quietly(() => call('PATCH', `/v1/mine/${node.id}`, { links: [...whole.links.map((_, index) => ({ from: index + 1 })), ...links] }))) {
      toast(`Added to “${subject(node)}”.`);
      await this.reload();
      this.show(node, false);
    }
  }

  async move(id, parent, before) {
    if (!await quietly(() => call('POST', `/v1/mine/${id}/move`, { in: parent?.id, before }))) return;
    if (parent) this.open.add(parent.id);
    await this.reload();
  }

  async toggle(node, isOpen = !this.open.has(node.id)) {
    if (!this.has(node)) return;
    if (isOpen) { this.open.add(node.id); if (!node.children) await this.fetch(node); } else this.open.delete(node.id);
    this.draw();
  }

  keydown(event) {
    const index = this.shown.findIndex((row) => row.node.id === this.current), row = this.shown[index];
    const to = (at) => { const next = this.shown[Math.min(Math.max(at, 0), this.shown.length - 1)]; if (next) this.show(next.node, false); };
    switch (event.key) {
      case 'ArrowDown': to(index + 1); break;
      case 'ArrowUp': to(index - 1); break;
      case 'Home': to(0); break;
      case 'End': to(this.shown.length - 1); break;
      case 'ArrowRight': if (row) { if (this.open.has(row.node.id)) to(index + 1); else this.toggle(row.node, true); } break;
      case 'ArrowLeft': if (row) { if (this.open.has(row.node.id)) this.toggle(row.node, false); else if (row.parent) this.show(row.parent, false); } break;
      case 'Enter': case ' ': if (row) this.show(row.node, true); break;
      default: return;
    }
    event.preventDefault();
  }

  async show(node, isOpened) {
    this.current = node.id;
    if (isOpened) app.open(this);
    this.draw();
    this.tree.querySelector('[aria-selected="true"]')?.focus();
    const hex = await quietly(() => call('GET', `/v1/hexes/${node.id}`));
    if (!hex || this.current !== node.id) return;
    const links = openable(hex);
    this.pane.replaceChildren(...[
      backButton(),
      h('div.head', null, mark(hex.color, 'big'), h('div', null, h('h2', { dir: 'auto' }, title(hex)), h('p.faint', null, sizes(hex)))),
      h('div.buttons', null, links.length > 0 && button(links.length === 1 ? 'Open' : `Open all ${links.length}`, () => openAll(links), '.strong'),
        button('Send…', () => compose({ hex })), button('Rename…', () => this.rename(hex)), button('Move…', () => this.moveDialog(hex)), button('Add inside…', () => compose({ into: hex.id })),
        button('Delete', () => this.remove(hex))),
      ...hexBody(hex),
    ].filter(Boolean));
    if (isOpened && !matchMedia('(min-width: 900px)').matches) this.pane.focus();
  }

  rename(hex) {
    const input = h('input', { value: clean(hex.description), 'aria-label': 'What it is about', dir: 'auto' });
    const element = dialog('Rename', (close) => [h('form', { onsubmit: async (event) => {
      event.preventDefault();
      close();
      if (await quietly(() => call('PATCH', `/v1/mine/${hex.id}`, { description: input.value.trim() }))) { await this.reload(); this.show(hex, false); }
    } }, input, h('div.buttons', null, h('button.strong', null, 'Rename')))]);
    element.querySelector('input').select();
  }

  moveDialog(hex) {
    const inside = (node) => { for (let at = node; at; at = this.parentOf(at.id)) if (at.id === hex.id) return true; return false; };
    dialog('Move into', (close) => [h('div.choices', null,
      button('Out of all others', () => { close(); this.move(hex.id, null); }),
      ...this.shown.filter((row) => !inside(row.node)).slice(0, 300).map((row) => h('button', { type: 'button', onclick: () => { close(); this.move(hex.id, row.node); } }, '\u2003'.repeat(row.level - 1), mark(row.node.color), subject(row.node))))]);
  }

  remove(hex) {
    const end = async (isLast) => {
      if (!this.leaving) return;
      this.leaving = null;
      await call('DELETE', `/v1/hexes/${hex.id}`, undefined, { keepalive: isLast }).catch((error) => toast(`Not deleted: ${error.message}`));
      this.reload();
    };
    this.leaving?.(false);
    this.leaving = end;
    addEventListener('pagehide', () => end(true), { once: true });
    const row = this.tree.querySelector('[aria-selected="true"]');
    if (row) row.hidden = true;
    this.rest();
    app.close();
    this.undo = () => { this.leaving = null; this.draw(); this.show(hex, false); };
    toast(`Deleted “${subject(hex).slice(0, 40)}”.`, { action: 'Undo', onaction: () => this.undo(), time: 10000, onend: () => end(false) });
  }
}
