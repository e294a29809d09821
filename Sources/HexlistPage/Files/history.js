// The change log and the trash of My Hexlist, as dialogs.
import { h, ask, clean, count, label, when, wholeTime, toast, button, dialog } from './dom.js';
import { query } from './api.js';
import { commitDeletions } from './hexes.js';

const PAGE = 50, LARGE_PAGE = 500;
const VERBS = ['added', 'deleted', 'restored', 'moved'];

/** Maximum number of values of a change that the local API lists. If there are as many, there may be more. */
const LISTED = 10;
const shortened = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

/** Returns the verb for hexes or links whose values changed, such as `renamed` or `coloured and tagged`; `changed` if it is not known. */
function verbOf(values, isLink) {
  const those = values.length < LISTED ? values.filter(({ link }) => (link !== undefined) === isLink) : [];
  const has = (...names) => those.some(({ name }) => names.includes(name)), tags = those.filter(({ name }) => name.startsWith('tag '));
  const verbs = [has('title') && 'renamed', has('color') && 'coloured', tags.length > 0 && (tags.some(({ after }) => after) ? 'tagged' : 'untagged'),
    has('note') && 'noted', has('other') && 'changed'].filter(Boolean);
  return verbs.length > 1 ? `${verbs.slice(0, -1).join(', ')} and ${verbs.at(-1)}` : verbs[0] ?? 'changed';
}

/** Describes a change, such as `added 1 hex and 3 links, renamed 1 link`. */
export function changeText({ hexes = {}, links = {}, values = [] }) {
  const [ofHexes, ofLinks] = [verbOf(values, false), verbOf(values, true)];
  const parts = VERBS.map((verb) => [verb, hexes[verb], links[verb]]);
  if (ofHexes === ofLinks) parts.push([ofHexes, hexes.changed, links.changed]);
  else parts.push([ofHexes, hexes.changed, 0], [ofLinks, 0, links.changed]);
  return parts.filter(([, some, others]) => some || others).map(([verb, some, others]) =>
    `${verb} ${[some && count(some, 'hex', 'hexes'), others && count(others, 'link')].filter(Boolean).join(' and ')}`).join(', ');
}

/** Describes the values before a change; an empty array if there are none. */
function valuesBefore({ values = [] }) {
  return values.slice(0, 3).map(({ link, name, before }) => {
    const text = clean(before) || 'none';
    return name === 'deleted' ? `deleted: ${clean(link)}` : `${name === 'title' ? (link ? 'name' : 'description') : clean(name)} before: ${text}`;
  });
}

const time = (text) => h('time', { datetime: text, title: wholeTime(text) }, when(text));
/** Makes an element for a text of any length. Three lines are shown; a longer text is also the tooltip. */
const clamped = (text) => h('span.clamp', { dir: 'auto', title: text.length > 100 && text }, text);
const row = (name, under, ...tools) => h('li', h('div.link-text', clamped(name), h('div.under', under.filter(Boolean).map((part) => typeof part === 'string' ? clamped(part) : part))), h('div.tools', tools));

/**
 * Opens a dialog with a list that is read page by page.
 * @param path the operation that lists the items
 * @param about a text about the list, and `none` a text for an empty one
 * @param rowOf makes the row of an item; `run(change)` makes a change and reads the list again, even if the change failed
 * @param refresh called after a change
 */
async function listDialog(title, path, about, none, rowOf, refresh) {
  const list = h('ul.links'), more = button('Show more', () => once(showMore), '.link');
  let next, isBusy = false;
  const once = async (work) => {
    if (isBusy) return;
    isBusy = true;
    try { await work(); } finally { isBusy = false; }
  };
  const rowsOf = (items) => items.map((item) => {
    const element = rowOf(item, (change) => once(async () => { await change(); refresh(); await reload(item.number); }));
    element.dataset.number = item.number;
    return element;
  });
  const draw = (page, isMore) => {
    const rows = rowsOf(page.items);
    if (isMore) list.append(...rows); else list.replaceChildren(...rows);
    if (!list.firstChild) list.append(h('li.faint', none));
    next = page.next;
    more.hidden = !next;
    return rows;
  };
  /** Reads items after a cursor: at least `wanted` of them, if there are so many. Resolves to null after an error. */
  const read = async (after, wanted) => {
    const items = [];
    do {
      const page = await ask('GET', `${path}${query({ limit: Math.min(Math.max(PAGE, wanted - items.length), LARGE_PAGE), after })}`);
      if (!page) return null;
      items.push(...page.items);
      after = page.next;
    } while (after && items.length < wanted);
    return { items, next: after };
  };
  const showMore = async () => {
    const page = await read(next, 0);
    if (!page) return;
    const hasFocus = document.activeElement === more, [first] = draw(page, true);
    if (!hasFocus || !more.hidden || !first) return;
    first.tabIndex = -1;
    (first.querySelector('button') ?? first).focus();
  };
  /**
   * Reads as many items as are shown, without scrolling. Focuses the button of the item with this number, the item if it has no button any
   * more, or the next button if it is gone.
   */
  const reload = async (number) => {
    const page = await read(undefined, list.children.length);
    if (!page) return;
    const numbers = [...list.children].map((one) => one.dataset.number), rest = numbers.slice(numbers.indexOf(String(number)));
    const active = document.activeElement, hasFocus = element.open && (active === document.body || active === element || list.contains(active));
    const top = element.scrollTop;
    draw(page);
    element.scrollTop = top;
    if (!hasFocus) return;
    // Not the button of another change, so that a second press of Enter does not undo that.
    const same = list.querySelector(`li[data-number="${number}"]`);
    if (same && !same.querySelector('button')) {
      same.tabIndex = -1;
      same.focus();
      return;
    }
    const buttons = new Map([...list.querySelectorAll('button')].map((one) => [one.closest('li').dataset.number, one]));
    (rest.map((one) => buttons.get(one)).find(Boolean) ?? [...buttons.values()].at(-1) ?? element.querySelector('header button')).focus();
  };
  more.hidden = true;
  const element = dialog(title, () => [h('p', about), list, more]);
  await commitDeletions();
  await once(async () => { const page = await read(undefined, 0); if (page) draw(page); });
}

/** Opens the change log of My Hexlist. @param refresh called after an undo */
export function historyDialog(refresh) {
  listDialog('History', '/v1/mine/log', 'The changes of the last 30 days. Values that were changed again later stay when you undo a change.', 'There are no changes in the log.', (change, run) => {
    const undo = () => run(async () => {
      const done = await ask('POST', '/v1/mine/undo', { changes: [change.number] });
      if (!done) return;
      const kept = done.keptCount ? ` ${count(done.keptCount, 'value')} stayed, because of later changes.` : '';
      toast(`Change undone. This ${changeText(done)}.${kept}`, { time: kept ? 9000 : 5000 });
    });
    const subject = clean(change.subject), others = change.others ? `, and ${count(change.others, 'other')}` : '';
    const text = `${change.undoneBy ? 'undone: ' : ''}${change.undo ? 'undo, which ' : ''}${changeText(change)}`;
    return row(text,
      [time(change.at), change.by && `by ${label({ ...change, uuid: change.by })}`, (subject || others) && `${subject}${others}`, ...valuesBefore(change)],
      change.undoable && button('Undo', undo, '', { 'aria-label': `Undo the change: ${text}${subject ? `, ${shortened(subject, 120)}` : ''}` }));
  }, refresh);
}

/** Opens the trash of My Hexlist. @param refresh called after an item was restored */
export function trashDialog(refresh) {
  listDialog('Trash', '/v1/mine/trash', 'Deleted hexes and links. They can be restored for 60 days, unless more than 64 MiB are deleted after them.', 'The trash is empty.', (item, run) => {
    const name = clean(item.subject) || clean(item.url);
    const restore = () => run(async () => {
      const done = await ask('POST', '/v1/mine/restore', { numbers: [item.number] });
      if (!done) return;
      const [one] = done.restored, around = one?.around?.length ?? 0;
      const again = !one?.hexRestored ? ''
        : around ? ` Its hex and ${around === 1 ? 'the hex' : `${around} hexes`} around that were deleted too, and are shown again with the restored links only.`
          : ' Its hex was deleted too, and is shown again with the restored links only.';
      toast(`${name ? `“${shortened(name, 40)}”` : 'The hex'} is back.${again}`, { time: again ? 9000 : 5000 });
    });
    const inside = [item.hexesInside && count(item.hexesInside, 'hex', 'hexes'), item.links && count(item.links, 'link')].filter(Boolean).join(' and ');
    return row(name || '(no description)',
      [time(item.deletedAt), item.url ? 'link' : 'hex', item.url && item.subject && clean(item.url), inside && `with ${inside}`, item.in && `was in “${clean(item.inSubject) || item.in}”`],
      button('Restore', restore, '', { 'aria-label': `Restore: ${shortened(name, 120) || `${item.url ? 'link' : 'hex'} without a description`}` }));
  }, refresh);
}
