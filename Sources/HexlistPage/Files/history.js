// The change log and the trash of My Hexlist, as dialogs.
import { h, ask, clean, count, when, wholeTime, toast, button, dialog } from './dom.js';
import { query } from './api.js';

const PAGE = 50;
const VERBS = ['added', 'deleted', 'restored', 'moved', 'changed'];

/** Describes a change, such as `added 1 hex and 3 links, moved 1 link`. */
export function changeText({ hexes = {}, links = {} }) {
  return VERBS.filter((verb) => hexes[verb] || links[verb]).map((verb) => `${verb} ${[
    hexes[verb] && count(hexes[verb], 'hex', 'hexes'), links[verb] && count(links[verb], 'link')].filter(Boolean).join(' and ')}`).join(', ');
}

/** Describes the values before a change; an empty array if there are none. */
function valuesBefore({ values = [] }) {
  return values.slice(0, 3).map(({ link, name, before }) => {
    const text = clean(before) || 'none';
    return name === 'deleted' ? `deleted: ${clean(link)}` : `${name === 'title' ? (link ? 'name' : 'description') : clean(name)} before: ${text}`;
  });
}

const time = (text) => h('time', { datetime: text, title: wholeTime(text) }, when(text));
const row = (name, under, ...tools) => h('li', h('div.link-text', h('span', { dir: 'auto' }, name), h('div.under', under.filter(Boolean).map((part) => typeof part === 'string' ? h('span', { dir: 'auto' }, part) : part))), h('div.tools', tools));

/**
 * Opens a dialog with a list that is read page by page.
 * @param path the operation that lists the items
 * @param about a text about the list, and `none` a text for an empty one
 * @param rowOf makes the row of an item; `again()` reads the list again
 */
function listDialog(title, path, about, none, rowOf) {
  const list = h('ul.links'), more = button('Show more', () => load(next), '.link');
  let next;
  const load = async (after) => {
    const page = await ask('GET', `${path}${query({ limit: PAGE, after })}`);
    if (!page) return;
    const rows = page.items.map((item) => rowOf(item, () => load()));
    if (after) list.append(...rows); else list.replaceChildren(...rows);
    if (!list.firstChild) list.append(h('li.faint', none));
    next = page.next;
    more.hidden = !next;
  };
  more.hidden = true;
  dialog(title, () => [h('p', about), list, more]);
  load();
}

/** Opens the change log of My Hexlist. @param refresh called after an undo */
export function historyDialog(refresh) {
  listDialog('History', '/v1/mine/log', 'The changes of the last 30 days. Values that were changed again later stay when you undo a change.', 'No changes yet.', (change, again) => {
    const undo = async () => {
      const done = await ask('POST', '/v1/mine/undo', { changes: [change.number] });
      if (!done) return;
      const kept = done.keptCount ? ` ${count(done.keptCount, 'value')} stayed, because of later changes.` : '';
      toast(`Undone: ${changeText(done)}.${kept}`, { time: kept ? 9000 : 5000 });
      again();
      refresh();
    };
    const subject = clean(change.subject), others = change.others ? `, and ${count(change.others, 'other')}` : '';
    return row(`${change.undo ? 'Undo: ' : ''}${changeText(change)}`,
      [time(change.at), (subject || others) && `${subject}${others}`, change.undoneBy && 'undone', ...valuesBefore(change)],
      change.undoable && button('Undo', undo));
  });
}

/** Opens the trash of My Hexlist. @param refresh called after an item was restored */
export function trashDialog(refresh) {
  listDialog('Trash', '/v1/mine/trash', 'Deleted hexes and links. They can be restored for 60 days.', 'The trash is empty.', (item, again) => {
    const restore = async () => {
      const name = clean(item.subject) || clean(item.url);
      if (!await ask('POST', '/v1/mine/restore', { numbers: [item.number] }, name ? `“${name.slice(0, 40)}” is back.` : 'The hex is back.')) return;
      again();
      refresh();
    };
    const inside = [item.hexesInside && count(item.hexesInside, 'hex', 'hexes'), item.links && count(item.links, 'link')].filter(Boolean).join(' and ');
    return row(clean(item.subject) || clean(item.url) || '(no description)',
      [time(item.deletedAt), item.url ? 'link' : 'hex', item.url && item.subject && clean(item.url), inside && `with ${inside}`, item.in && `was in “${clean(item.inSubject) || item.in}”`],
      button('Restore', restore));
  });
}
