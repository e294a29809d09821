// My Hexlist: what was kept, as a tree. Hexes are moved by dragging, or by a list.
import { call, faultOf } from './api.js';
import { h, icon, mark, setMark, head, toast, button, buttons, ask, dialog, showFault } from './dom.js';
import { View, searchField } from './list.js';
import { found, subject, title, sizes, hexBody, hexPage, nothingFound, openable, openAll, leave, isLeaving } from './hexes.js';
import { compose, linksIn } from './compose.js';

const HEX = 'application/x-hexlist';
const carries = (event) => [HEX, 'text/uri-list', 'text/html', 'text/plain'].some((type) => event.dataTransfer.types.includes(type));

/** A row of the tree: {node, level, parent}. */
function nodeRow(view) {
  let item;
  const twist = h('span.twist', { onclick: (event) => { event.stopPropagation(); view.toggle(item.node); } }, icon('chevron'));
  const sign = mark(''), text = h('span.subject', { dir: 'auto' }), links = h('span.faint');
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
  }, twist, sign, text, links);
  return {
    element,
    update(given) {
      item = given;
      const { node, level } = item, isParent = view.has(node);
      element.style.setProperty('--level', level);
      element.setAttribute('aria-level', level);
      if (isParent) element.setAttribute('aria-expanded', view.open.has(node.id)); else element.removeAttribute('aria-expanded');
      twist.hidden = !isParent;
      setMark(sign, node.color);
      text.replaceChildren(subject(node), ...(node.match && node.match.in !== 'description' ? [' – ', ...found(node)] : []));
      links.textContent = (node.linkCount ?? node.links?.length ?? 0) + (node.linksInside ?? 0) || '';
    },
  };
}

export class MineView extends View {
  constructor() {
    super({
      title: 'My Hexlist', sign: 'mine', reads: 'The hex', tools: button('New…', () => compose({ into: null })),
      list: { height: 40, row: () => nodeRow(this), key: ({ node }) => node.id, isTree: true },
    });
    Object.assign(this, { open: new Set(), nodes: [], inside: new Map() });
    this.filters.before(searchField(this));
    this.list.element.addEventListener('keydown', (event) => this.keydown(event));
    this.element.addEventListener('dragover', (event) => { if (carries(event)) event.preventDefault(); });
    this.element.addEventListener('drop', (event) => this.dropped(event));
  }
  rest() { super.rest(); this.hex = this.drawn = null; }

  /** @param isSame whether the list is the one that is shown */
  async reload(isSame) {
    const load = async (after, limit, signal) => {
      const page = await hexPage(this.input.value, { location: 'mine', limit: after ? limit : Math.min(1000, Math.max(limit, this.nodes.length)), after }, signal);
      await Promise.all(page.items.filter((node) => this.open.has(node.id)).map((node) => this.fetch(node)));
      this.nodes = after ? this.nodes.concat(page.items) : page.items;
      return { items: this.rows(page.items), next: page.next };
    };
    await this.fetchList(load, 0, isSame);
  }
  /** Reads the list and the open hex again, without moving what is looked at. */
  async renew() {
    const top = this.list.element.scrollTop;
    await this.reload(true);
    this.list.element.scrollTop = top;
    const item = this.hex && this.list.item(this.hex.id);
    if (item) this.show(item);
  }
  empty() {
    return this.input.value.trim() ? nothingFound()
      : [icon('mine', 'large'), h('h2', 'Nothing kept yet'), h('p', 'Save a hex of the inbox, or drop links here.')];
  }

  async fetch(node) {
    const keep = (hex) => { this.inside.set(hex.id, hex.children ?? []); hex.children?.forEach(keep); };
    await call('GET', `/v1/hexes/${node.id}`).then(keep, (error) => { const fault = faultOf(error); if (fault?.status !== 404) showFault(fault); });
  }
  has(node) { return (this.inside.get(node.id)?.length ?? node.hexesInside ?? node.children?.length) > 0; }
  /** The rows of hexes and of those inside that are unfolded. */
  rows(nodes = this.nodes, level = 1, parent = null) {
    return nodes.filter((node) => !isLeaving(node)).flatMap((node) => [{ node, level, parent },
      ...(this.open.has(node.id) ? this.rows(this.inside.get(node.id) ?? [], level + 1, node) : [])]);
  }
  redraw() {
    this.list.items = this.rows();
    this.list.redraw();
    this.look();
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
      // The order of what is in no other hex is that of its arrival.
      if (moved !== node?.id) this.move(moved, zone === 'before' ? item.parent : node, zone === 'before' && item.parent ? node.id : undefined);
      return;
    }
    const links = linksIn(event.dataTransfer);
    if (!links.length) return event.dataTransfer.files.length && toast('Files go to peers: New hex takes them.');
    if (!node) return compose({ into: null, links });
    const whole = await ask('GET', `/v1/hexes/${node.id}`);
    const added = [...whole?.links?.map((_, index) => ({ from: index + 1 })) ?? [], ...links];
    if (whole && await ask('PATCH', `/v1/mine/${node.id}`, { links: added }, `Added to “${subject(node)}”.`)) this.renew();
  }
  async move(id, parent, before) {
    if (!await ask('POST', `/v1/mine/${id}/move`, { in: parent?.id, before })) return;
    if (parent) this.open.add(parent.id);
    this.renew();
  }

  async show({ node }) {
    const hex = await ask('GET', `/v1/hexes/${node.id}`), told = JSON.stringify(hex);
    if (!hex || this.list.selected !== node.id || this.drawn === told) return;
    Object.assign(this, { hex, drawn: told });
    const links = openable(hex);
    this.fill(
      head(mark(hex.color, 'big'), title(hex), sizes(hex)),
      buttons(links.length > 0 && button(links.length === 1 ? 'Open' : `Open all ${links.length}`, () => this.openLinks(), '.strong'),
        button('Send…', () => compose({ hex })), button('Edit…', () => compose({ edit: hex })), button('Move…', () => this.moveDialog()),
        button('Add inside…', () => { this.open.add(hex.id); compose({ into: hex.id }); }), button('Delete', () => this.remove())),
      ...hexBody(hex));
  }
  openLinks() { if (this.hex) openAll(openable(this.hex)); }

  moveDialog() {
    const { id } = this.hex;
    const isInside = (row) => row && (row.node.id === id || isInside(row.parent && this.list.item(row.parent.id)));
    dialog('Move into', (close) => [h('div.choices',
      button('Out of all others', () => { close(); this.move(id); }),
      this.list.items.filter((row) => !isInside(row)).slice(0, 300).map(({ node, level }) =>
        h('button', { onclick: () => { close(); this.move(id, node); } }, '\u2003'.repeat(level - 1), mark(node.color), subject(node))))]);
  }

  remove() {
    const hex = this.list.item()?.node;
    if (!hex || isLeaving(hex)) return;
    leave(hex, () => { this.redraw(); this.list.select(this.list.item(hex.id), false); });
    this.redraw();
    this.list.select(null);
  }
}
