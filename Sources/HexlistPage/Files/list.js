// A list of any length: only the rows that are seen are elements. Pages are fetched as they are needed, in order. And a place: a list, and
// beside it what is open of it.
import { faultOf } from './api.js';
import { h, icon, setChildren, showFault } from './dom.js';
import { app } from './main.js';

class List {
  /**
   * @param name for screen readers
   * @param row makes {element, update(item)}; an element is used for one item after the other
   * @param key the id of an item
   * @param isTree whether the rows say their level
   */
  constructor({ name, height, row, key, onselect, isTree }) {
    Object.assign(this, { height, row, key, onselect, isTree });
    this.space = h('div.space', { role: 'presentation' });
    this.element = h('div.list', { role: isTree ? 'tree' : 'listbox', tabindex: 0, 'aria-label': name, hidden: true }, this.space);
    this.rows = new Map();
    this.free = [];
    this.items = [];
    this.selected = null;
    this.round = 0;
    this.name = `l${++List.made}`;
    this.element.addEventListener('scroll', () => this.draw(), { passive: true });
    this.element.addEventListener('keydown', (event) => this.keydown(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }
  static made = 0;

  /**
   * Shows another list. `load(after, limit, signal)` resolves to a page; `total`, where it is known, sizes the scroll bar.
   * Returns false if another list was asked for meanwhile.
   */
  async show(load, total = 0) {
    const round = ++this.round;
    this.abort?.abort();
    this.abort = new AbortController();
    let first;
    try {
      first = await load(undefined, 100, this.abort.signal);
    } catch (error) {
      if (round !== this.round) return false;
      throw error;
    }
    if (round !== this.round) return false;
    this.take(load, first, total);
    return true;
  }

  take(load, { items, next }, total) {
    Object.assign(this, { load, items, next, total, loading: null });
    this.element.scrollTop = 0;
    this.redraw();
  }

  /** Shows no items, for a list that could not be read. `load` reads it with the next change. */
  clear(load) { this.take(load, { items: [], next: null }, 0); }

  /**
   * Looks at the newest again: what is new, changed or gone among them, without moving what is looked at.
   * Returns false if there is no list yet, or another one meanwhile.
   */
  async renew(total = 0) {
    const { load, round } = this;
    if (!load) return false;
    const { items, next } = await load(undefined, 100, this.abort.signal);
    // A list that was on its way when this began counts as the same round.
    if (round !== this.round || load !== this.load) return false;
    const before = this.items.length;
    const last = items.length && this.items.findLastIndex((item) => this.key(item) === this.key(items.at(-1)));
    if (next === null || last < 0 || !items.length) [this.items, this.next] = [items, next];
    else this.items = items.concat(this.items.slice(last + 1));
    this.total = total;
    const grown = this.items.length - before;
    if (this.element.scrollTop > this.height && grown > 0 && this.loading === null) this.element.scrollTop += grown * this.height;
    this.redraw();
    return true;
  }

  get length() { return Math.max(this.items.length, this.next ? this.total : 0); }
  index(id) { return this.items.findIndex((item) => this.key(item) === id); }
  item(id = this.selected) { return this.items.find((item) => this.key(item) === id); }

  replace(item) {
    const index = this.index(this.key(item));
    if (index >= 0) { this.items[index] = { ...this.items[index], ...item }; this.redraw(); }
  }

  /** Takes an item out, and returns how to put it back. The one behind it is selected. */
  remove(id) {
    const index = this.index(id);
    if (index < 0) return () => {};
    const [item] = this.items.splice(index, 1);
    this.total = Math.max(0, this.total - 1);
    if (this.selected === id) this.select(this.items[Math.min(index, this.items.length - 1)] ?? null, false);
    this.redraw();
    return () => { this.items.splice(Math.min(index, this.items.length), 0, item); this.total++; this.redraw(); };
  }

  redraw() {
    this.space.style.height = `${this.length * this.height}px`;
    this.element.hidden = !this.items.length;
    // Each row stays the element it is: a button of the mouse that is down would come up on another one, and that is no click.
    for (const index of [...this.rows.keys()]) if (index < this.items.length) this.place(index); else this.drop(index);
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.element;
    if (!clientHeight) return;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - 4);
    const end = Math.min(this.length, Math.ceil((scrollTop + clientHeight) / this.height) + 4);
    for (const index of [...this.rows.keys()]) if (index < first || index >= end) this.drop(index);
    for (let index = first; index < Math.min(end, this.items.length); index++) if (!this.rows.has(index)) this.place(index);
    if (end + 20 > this.items.length && this.next) this.more(end);
    const at = this.index(this.selected);
    if (this.rows.has(at)) this.element.setAttribute('aria-activedescendant', `${this.name}-${at}`);
    else this.element.removeAttribute('aria-activedescendant');
  }

  place(index) {
    const item = this.items[index];
    const row = this.rows.get(index) ?? this.free.pop() ?? this.made();
    row.index = index;
    row.element.id = `${this.name}-${index}`;
    row.element.style.transform = `translateY(${index * this.height}px)`;
    row.element.setAttribute('aria-posinset', index + 1);
    row.element.setAttribute('aria-setsize', this.length || -1);
    row.element.setAttribute('aria-selected', this.key(item) === this.selected);
    row.update(item);
    this.rows.set(index, row);
    if (row.element.parentNode !== this.space) this.space.append(row.element);
    row.element.hidden = false;
  }

  made() {
    const row = this.row();
    row.element.setAttribute('role', this.isTree ? 'treeitem' : 'option');
    row.element.style.height = `${this.height}px`;
    row.element.addEventListener('click', () => this.select(this.items[row.index], true));
    return row;
  }

  drop(index) {
    const row = this.rows.get(index);
    row.element.hidden = true;
    this.rows.delete(index);
    this.free.push(row);
  }

  async more(wanted) {
    if (this.loading !== null) return;
    const round = this.round;
    this.loading = wanted;
    try {
      while (this.next && this.items.length < wanted + 20 && round === this.round) {
        const page = await this.load(this.next, wanted > this.items.length + 200 ? 1000 : 200, this.abort.signal);
        if (round !== this.round) return;
        this.items = this.items.concat(page.items);
        this.next = page.next;
      }
    } catch (error) {
      if (round === this.round) { this.next = null; showFault(faultOf(error)); }
    } finally { if (round === this.round) this.loading = null; }
    if (round === this.round) this.redraw();
  }

  select(item, isOpened) {
    this.selected = item ? this.key(item) : null;
    for (const row of this.rows.values()) {
      row.element.setAttribute('aria-selected', this.items[row.index] && this.key(this.items[row.index]) === this.selected);
    }
    this.reveal();
    this.draw();
    if (isOpened || item === null || this.isWide()) this.onselect(item, isOpened);
  }
  isWide = () => matchMedia('(min-width: 900px)').matches;

  reveal() {
    const index = this.index(this.selected), { scrollTop, clientHeight } = this.element;
    if (index < 0 || !clientHeight) return;
    const top = index * this.height;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.element.scrollTop = top + this.height - clientHeight;
  }

  move(by) {
    const index = Math.min(Math.max(0, this.selected === null ? 0 : this.index(this.selected) + by), this.items.length - 1);
    if (this.items[index]) this.select(this.items[index], false);
  }

  keydown(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.height) - 1);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (by) this.move(by);
    else if (event.key === 'Enter' && this.item()) this.onselect(this.item(), true);
    else return;
    event.preventDefault();
  }
}

export class View {
  /**
   * @param title its name
   * @param list what `List` takes besides
   * @param reads the name of the pane
   * @param sign the icon of the empty pane
   */
  constructor({ title, list, reads, sign, tools = [] }) {
    Object.assign(this, { title, sign });
    this.list = new List({ name: title, onselect: (item, isOpened) => this.select(item, isOpened), ...list });
    this.filters = h('div.filters');
    this.none = h('div.empty', { hidden: true });
    this.element = h('section.column', { 'aria-label': title },
      h('header.top', h('h2.title', title), tools, this.filters), this.list.element, this.none);
    this.pane = h('section.pane', { 'aria-label': reads, tabindex: -1 });
    this.rest();
  }

  /** The pane without anything open. */
  rest() { this.pane.replaceChildren(h('div.rest', icon(this.sign, 'huge'))); }

  select(item, isOpened) {
    if (!item) { app.close(); return this.rest(); }
    if (isOpened) document.body.classList.add('reading'); // on a narrow screen it takes the place of the list
    this.show(item, isOpened);
    if (isOpened && !this.list.isWide()) this.pane.focus();
  }

  fill(...children) {
    this.pane.replaceChildren(h('button.quiet.back', { onclick: () => app.close() }, icon('back'), 'Back'), ...children.flat().filter(Boolean));
  }

  /** Shows what `load` finds, if that is not out of date by then; a fault in its place. With `isSame`, a fault leaves the rows that there are. */
  async fetchList(load, total, isSame = false) {
    try {
      if (!await this.list.show(load, total)) return;
      this.fault = null;
    } catch (error) {
      const fault = faultOf(error);
      if (!fault) return;
      if (isSame && this.list.load) return showFault(fault);
      this.fault = fault;
      this.list.clear(load);
    }
    this.look();
  }

  /** Reads the newest rows again. A fault leaves those that there are. */
  async renewList() {
    try {
      if (!await this.list.renew(this.total())) return;
      this.fault = null;
    } catch (error) {
      const fault = faultOf(error);
      if (fault?.status) showFault(fault); // without an answer the notice of `main.js` says so
      return;
    }
    this.look();
  }

  /** Draws what stands where there are no rows: the fault of a list that could not be read, or the children that `empty()` returns. */
  look() {
    this.none.hidden = !this.list.load || this.list.items.length > 0;
    if (!this.none.hidden) setChildren(this.none, ...(this.fault ? [h('p', this.fault.message)] : this.empty()));
  }
}

/** The search field of a view. */
export function searchField(view) {
  view.input = h('input', { type: 'search', placeholder: 'Search', 'aria-label': `Search in ${view.title}`,
    oninput: () => { clearTimeout(view.pause); view.pause = setTimeout(() => view.reload(), 40); },
    onkeydown: (event) => { if (event.key === 'ArrowDown' || event.key === 'Enter') { event.preventDefault(); view.list.move(0); view.list.element.focus(); } } });
  return h('label.search', icon('search'), view.input);
}
