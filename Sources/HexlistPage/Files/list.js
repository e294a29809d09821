// `List`: a virtual list of any length. It has elements for visible rows only, and loads its items in pages when they are needed.
// `View`: a section of the page, with a list and a detail pane.
import { faultOf } from './api.js';
import { h, icon, button, setChildren, showFault } from './dom.js';
import { app } from './main.js';

/** Maximum time in milliseconds for which an update of a list waits until a pressed mouse button or finger is released. */
const longestPress = 2000;
/** Resolves when the pressed mouse button or finger has been released and its click was handled, or after `longestPress`. */
const released = () => new Promise((resolve) => {
  const end = new AbortController();
  for (const type of ['pointerup', 'pointercancel', 'blur']) addEventListener(type, () => { end.abort(); setTimeout(resolve); }, { signal: end.signal });
  setTimeout(() => { end.abort(); resolve(); }, longestPress);
});

class List {
  /**
   * @param name label of the list for screen readers
   * @param row creates {element, update(item)}; elements are reused for other items
   * @param key returns the id of an item
   * @param onmark called when the set of marked items changes; if missing, only one item at a time can be selected
   * @param isTree whether the rows are tree items for screen readers
   */
  constructor({ name, height, row, key, onselect, onmark, isTree }) {
    Object.assign(this, { height, row, key, onselect, onmark, isTree });
    /** The keys of the marked items, on which the user can perform an action together. */
    this.marked = new Set();
    this.isMarking = false;
    this.space = h('div.space', { role: 'presentation' });
    this.element = h('div.list', { role: isTree ? 'tree' : 'listbox', tabindex: 0, 'aria-label': name, 'aria-multiselectable': Boolean(onmark), hidden: true }, this.space);
    this.rows = new Map();
    this.free = [];
    this.items = [];
    this.selected = null;
    this.round = 0;
    this.name = `l${++List.made}`;
    /** A promise that resolves when the mouse button or finger that presses the list is released; null if nothing presses it. */
    this.pressed = null;
    this.element.addEventListener('pointerdown', () => { this.pressed ??= released().then(() => { this.pressed = null; }); });
    this.element.addEventListener('scroll', () => this.draw(), { passive: true });
    this.element.addEventListener('keydown', (event) => this.keydown(event));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }
  static made = 0;

  /**
   * Shows other items. `load(after, limit, signal)` resolves to a page of them; `total`, their number if known, determines the size of the
   * scroll bar. Returns false if `show` was called again before the first page was loaded.
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
    await this.pressed; // rows do not move between mouse-down and mouse-up
    if (round !== this.round) return false;
    this.take(load, first, total);
    return true;
  }

  take(load, { items, next }, total) {
    Object.assign(this, { load, items, next, total, loading: null });
    this.unmark();
    this.element.scrollTop = 0;
    this.redraw();
  }

  /** Shows an empty list, after `load` failed. The next `refresh` calls `load` again. */
  clear(load) { this.take(load, { items: [], next: null }, 0); }

  /**
   * Reloads the first page and merges it into the list, keeping the scroll position.
   * Returns false if there is no list yet, or if `show` was called before the page was loaded.
   */
  async refresh(total = 0) {
    const { load, round } = this;
    if (!load) return false;
    const { items, next } = await load(undefined, 100, this.abort.signal);
    await this.pressed; // rows do not move between mouse-down and mouse-up
    // `load` differs if a call of `show` that began before this refresh has finished meanwhile.
    if (round !== this.round || load !== this.load) return false;
    const before = this.items.length;
    const last = items.length && this.items.findLastIndex((item) => this.key(item) === this.key(items.at(-1)));
    if (next === null || last < 0 || !items.length) [this.items, this.next] = [items, next];
    else {
      const shown = new Set(items.map(this.key)); // an item that was moved to the first page may still be among the others
      this.items = items.concat(this.items.slice(last + 1).filter((item) => !shown.has(this.key(item))));
    }
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

  /** Removes an item and selects the next one. Returns a function that puts the item back. */
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
    // Rows keep their elements, because a click needs the same element at mouse-down and mouse-up.
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
    row.element.setAttribute('aria-selected', this.marked.size ? this.marked.has(this.key(item)) : this.key(item) === this.selected);
    row.update(item);
    this.rows.set(index, row);
    if (row.element.parentNode !== this.space) this.space.append(row.element);
    row.element.hidden = false;
  }

  made() {
    const row = this.row();
    row.element.setAttribute('role', this.isTree ? 'treeitem' : 'option');
    row.element.style.height = `${this.height}px`;
    row.element.addEventListener('click', (event) => this.clicked(row.index, event));
    return row;
  }

  /**
   * Handles a click on an item: opens the item. With Ctrl, or while the user is marking items, it marks or unmarks the item. With Shift, it
   * marks all items from the selected one to this one.
   */
  clicked(index, event) {
    const item = this.items[index], from = this.index(this.selected);
    if (this.onmark && event.shiftKey && from >= 0) this.mark(this.items.slice(Math.min(from, index), Math.max(from, index) + 1), true);
    else if (this.onmark && (this.isMarking || event.ctrlKey || event.metaKey)) this.mark([item], !this.marked.has(this.key(item)));
    else { this.unmark(); this.select(item, true); }
  }
  mark(items, isMarked) {
    for (const item of items) if (isMarked) this.marked.add(this.key(item)); else this.marked.delete(this.key(item));
    this.redraw();
    this.onmark();
  }
  unmark() {
    if (!this.marked.size && !this.isMarking) return;
    this.marked.clear();
    this.isMarking = false;
    this.redraw();
    this.onmark?.();
  }
  get markedItems() { return this.items.filter((item) => this.marked.has(this.key(item))); }

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
    if (this.onmark && event.key === 'a' && (event.ctrlKey || event.metaKey)) this.mark(this.items, true);
    else if (event.key === 'Escape' && this.marked.size) { this.unmark(); event.stopPropagation(); }
    else if (by) this.move(by);
    else if (event.key === 'Enter' && this.item()) this.onselect(this.item(), true);
    else return;
    event.preventDefault();
  }
}

export class View {
  /**
   * @param list further parameters of `List`
   * @param reads label of the detail pane for screen readers
   * @param sign the icon in the detail pane while no item is selected
   * @param actions returns the buttons for the marked items; if missing, only one item at a time can be selected
   */
  constructor({ title, list, reads, sign, tools = [], actions }) {
    Object.assign(this, { title, sign });
    this.list = new List({ name: title, onselect: (item, isOpened) => this.select(item, isOpened), onmark: actions && (() => this.drawMarked(actions)), ...list });
    this.filters = h('div.filters');
    this.markedBar = h('div.filters.marked', { hidden: true });
    this.emptyState = h('div.empty', { hidden: true });
    this.element = h('section.column', { 'aria-label': title },
      h('header.top', h('h2.title', title), title !== 'Peers' && button('Pair…', () => app.pair(), '.link.pair'), actions && button('Select', () => { if (this.list.isMarking) this.list.unmark(); else { this.list.isMarking = true; this.list.onmark(); } }, '.link.select'), tools, this.filters, this.markedBar), this.list.element, this.emptyState);
    this.pane = h('section.pane', { 'aria-label': reads, tabindex: -1 });
    this.showNothing();
  }

  /** Shows the actions for the marked items in place of the filters. */
  drawMarked(actions) {
    const { size } = this.list.marked, isShown = size > 0 || this.list.isMarking;
    this.filters.hidden = isShown;
    this.markedBar.hidden = !isShown;
    this.markedBar.replaceChildren(h('span.faint', { role: 'status' }, `${size} selected`), ...(size ? actions() : []), button('Cancel', () => this.list.unmark(), '.link'));
  }

  /** Empties the detail pane, because no item is selected. */
  showNothing() { this.pane.replaceChildren(h('div.rest', icon(this.sign, 'huge'))); }

  select(item, isOpened) {
    if (!item) { app.close(); return this.showNothing(); }
    if (isOpened) document.body.classList.add('reading'); // on a narrow screen the pane replaces the list
    app.setAddress(this.list.key(item), !isOpened);
    this.show(item, isOpened);
    if (isOpened && !this.list.isWide()) this.pane.focus();
  }

  /** Opens the item whose key is in the address, if the list has it. */
  openKey(key) {
    const item = this.list.items.find((one) => String(this.list.key(one)) === key);
    if (item) this.list.select(item, true);
    else app.close();
  }

  fill(...children) {
    this.pane.replaceChildren(h('button.quiet.back', { onclick: () => app.close() }, icon('back'), 'Back'), ...children.flat().filter(Boolean));
  }

  /**
   * Loads the list. A failure is shown in place of the list or, with `isSame` (a reload of the same list), as a toast; the rows then stay.
   */
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
    this.drawEmpty();
  }

  /** Reloads the first page of the list. After a failure, the current rows stay. */
  async refreshList() {
    try {
      if (!await this.list.refresh(this.total())) return;
      this.fault = null;
    } catch (error) {
      const fault = faultOf(error);
      if (fault?.status) showFault(fault); // without a reply, the notice of `main.js` shows the error
      return;
    }
    this.drawEmpty();
  }

  /** If there are no rows, shows the error of the list or, without an error, the elements that `empty()` returns. */
  drawEmpty() {
    this.emptyState.hidden = !this.list.load || this.list.items.length > 0;
    if (!this.emptyState.hidden) setChildren(this.emptyState, ...(this.fault ? [h('p', this.fault.message)] : this.empty()));
  }
}

/** Makes the search field of a view. The list is reloaded 40 ms after the last change of its text. */
export function searchField(view) {
  view.input = h('input', { type: 'search', placeholder: 'Search', 'aria-label': `Search in ${view.title}`,
    oninput: () => { clearTimeout(view.pause); view.pause = setTimeout(() => view.reload(), 40); },
    onkeydown: (event) => { if (event.key === 'ArrowDown' || event.key === 'Enter') { event.preventDefault(); view.list.move(0); view.list.element.focus(); } } });
  return h('label.search', icon('search'), view.input);
}
