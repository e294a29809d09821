// A new hex: links that are pasted or dropped, and files, to one or several peers; a hex that is sent on; one of My Hexlist that is changed.
import { call, callLines, faultOf, part, query } from './api.js';
import { h, icon, mark, clean, peerText, label, count, toast, button, buttons, dialog } from './dom.js';
import { app } from './main.js';
import { subject, sizes } from './hexes.js';
import { rowText } from './outbox.js';

const colors = [['', 'None'], ['#3366cc', 'Blue'], ['#1f9d8b', 'Teal'], ['#6b9a2f', 'Green'], ['#d9a21b', 'Amber'], ['#d2603a', 'Orange'], ['#b5487f', 'Rose'], ['#7a5bc7', 'Violet']];
/** The most bytes of a file that is handed over, as of `POST /v1/uploads`. */
const largestFile = 4 * 2 ** 30;
const bytes = new Intl.NumberFormat(undefined, { notation: 'compact', style: 'unit', unit: 'byte', unitDisplay: 'short', maximumFractionDigits: 1 });

/** Links in what was dropped or pasted: each {url, linkDescription}. */
export function linksIn(data) {
  const links = [];
  const add = (url, text) => {
    if (!/^[a-z][a-z0-9+.-]*:\S+$/i.test(url) || /^(file|javascript|data|blob):/i.test(url) || links.some((link) => link.url === url)) return;
    const name = clean(text);
    links.push(name && name !== url ? { url, linkDescription: name.slice(0, 500) } : { url });
  };
  // A document that is never shown: nothing in it is loaded or run.
  const page = data.getData('text/html');
  if (page) for (const anchor of new DOMParser().parseFromString(page, 'text/html').querySelectorAll('a[href]')) add(anchor.getAttribute('href'), anchor.textContent);
  const pairs = data.getData('text/x-moz-url').split('\n');
  for (let index = 0; index + 1 < pairs.length; index += 2) add(pairs[index].trim(), pairs[index + 1]);
  for (const line of data.getData('text/uri-list').split(/\r?\n/)) if (line && !line.startsWith('#')) add(line.trim());
  if (!links.length) for (const link of lines(data.getData('text/plain')).flatMap(linksOfLine)) if (link) add(link.url, link.linkDescription);
  return links;
}

const lines = (text) => text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
/** The link of a line `URL text`; one without a scheme that looks like an address is taken for https. */
function linkOf(line) {
  const [, first, rest] = /^(\S+)\s*(.*)$/.exec(line);
  const url = /^[a-z][a-z0-9+.-]*:/i.test(first) ? first : /^[^\s/]+\.[^\s/]{2,}(\/|$)/.test(first) ? `https://${first}` : null;
  return url && { url, ...(rest && { linkDescription: rest }) };
}
/** The links of a line: an address with `//` after the first begins a link of its own, as in `hexlist send`. */
function linksOfLine(line) {
  const links = [];
  for (const word of line.split(/\s+/)) {
    if (!links.length || /^[a-z][a-z0-9+.-]+:\/\/./i.test(word)) {
      if (links.at(-1) !== word) links.push(word);
    } else links[links.length - 1] += ` ${word}`;
  }
  return links.map(linkOf);
}
const lineOf = (link) => [link.url, clean(link.linkDescription)].filter(Boolean).join(' ').trim();

/** The links that lines stand for, of a hex that had some: what stays what it was says which it is. `null` for a line without an address. */
function linksOf(text, old = []) {
  const known = new Map(), take = (key) => known.get(key)?.shift();
  for (const [at, link] of old.entries()) for (const key of [`= ${lineOf(link)}`, `@ ${link.url}`]) known.set(key, [...known.get(key) ?? [], at]);
  const taken = new Set(), all = lines(text);
  const same = all.map((line) => { const at = take(`= ${line}`); if (at !== undefined) taken.add(at); return at; });
  return all.flatMap((line, index) => {
    if (same[index] !== undefined) return { from: same[index] + 1 };
    const link = linkOf(line);
    for (let at; link && (at = take(`@ ${link.url}`)) !== undefined;) {
      if (!taken.has(at)) { taken.add(at); return { from: at + 1, linkDescription: link.linkDescription ?? '' }; }
    }
    return linksOfLine(line);
  });
}

/** The files in what was dropped or pasted, and the number of folders, which a page cannot hand over. */
export function filesIn(data) {
  const items = [...data.items].filter((item) => item.kind === 'file');
  const files = items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory);
  return { files: files.map((item) => item.getAsFile()).filter(Boolean), folders: items.length - files.length };
}

let current = null;

/**
 * @param to a peer that is chosen
 * @param hex one that is sent on
 * @param into the id of one of My Hexlist, or null, to make one there
 * @param edit one of My Hexlist that is changed
 * @param draft files of this machine that `hexlist web --send` named
 */
export function compose({ to, hex, into, edit, draft, links = [], dropped } = {}) {
  if (current) { current.add(links, dropped); return; }
  const isSent = into === undefined && !edit, isWritten = !hex;
  const chosen = new Map(), files = new Map(), abort = new AbortController();
  const text = h('textarea', { rows: edit ? 10 : 5, spellcheck: 'false', wrap: edit && 'off', placeholder: 'https://example.org  What it is\n\nOne link a line. Paste them, or drop links, bookmarks and files here.', 'aria-label': 'Links, one a line' });
  const title = h('input', { maxlength: 2000, placeholder: 'What they are about', 'aria-label': 'What they are about', dir: 'auto', value: edit && clean(edit.description) });
  const found = h('p.faint', { role: 'status' }), people = h('div.chips'), fault = h('p.doubt', { role: 'alert' });
  const send = button(edit ? 'Save' : isSent ? 'Send' : 'Keep', () => go(), '.strong');
  let color = edit?.color ?? '';
  const picks = [...colors, ...(colors.some(([value]) => value === color) ? [] : [[color, 'As it is']])].map(([value, name]) => {
    const pick = h('button.swatch', { role: 'radio', 'aria-checked': String(value === color), 'aria-label': name, title: name,
      onclick: () => { color = value; picks.forEach((one) => one.setAttribute('aria-checked', String(one === pick))); } }, mark(value));
    return pick;
  });

  const chooser = h('input', { type: 'file', multiple: true, hidden: true, onchange: () => { addFiles([...chooser.files]); chooser.value = ''; } });
  const list = h('div.chips');
  const drawFiles = () => {
    list.replaceChildren(...(draft?.names ?? []).map((name) => h('span.chip', peerText(name))), ...[...files.keys()].map((file) => h('button.chip', { title: 'Leave it out', 'aria-label': `Leave out ${clean(file.name)}`,
      onclick: () => { files.delete(file); drawFiles(); } }, peerText(file.name), h('span.faint', bytes.format(file.size)), icon('close'))),
    button('Add files…', () => chooser.click(), '.link'), chooser);
    changed();
  };
  const addFiles = (more, folders = 0) => {
    const command = '`hexlist send --to NAME FILE` offers it, where it lies.';
    fault.textContent = !isSent || hex ? 'Files go to peers: New hex takes them.' : folders ? `A page cannot read a folder: ${command}` : '';
    if (!isSent || hex) return;
    for (const file of more) if (file.size > largestFile) fault.textContent = `${clean(file.name)} has more than 4 GiB: ${command}`; else files.set(file, null);
    drawFiles();
  };
  const add = (more, dropped) => {
    if (dropped?.files.length || dropped?.folders) addFiles(dropped.files, dropped.folders);
    if (more.length) text.value = [text.value.trim(), ...more.map(lineOf)].filter(Boolean).join('\n') + '\n';
    changed();
  };
  const changed = () => {
    const all = isWritten ? linksOf(text.value, edit?.links) : [], good = all.filter(Boolean).length, bad = all.length - good;
    found.textContent = all.length ? count(good, 'link') + (bad ? ` · ${count(bad, 'line')} without an address` : '') : '';
    send.disabled = edit ? bad > 0 : isSent && (!chosen.size || (isWritten && !good && !files.size && !draft));
    if (isSent) send.textContent = chosen.size > 1 ? `Send to ${chosen.size}` : 'Send';
  };
  const drawPeople = () => {
    const targets = [
      ...(app.groups ?? []).filter((group) => group.peers.length).map((group) => ({ id: `@${group.name}`, text: `@${clean(group.name)}`, note: `${group.peers.length}` })),
      ...(app.peers ?? []).filter((peer) => peer.uuid && peer.state !== 'ghost' && peer.trust !== 'blocked' && (peer.trust === 'trusted' || peer.state === 'verified' || chosen.has(peer.uuid)))
        .sort((one, other) => (one.trust !== 'trusted') - (other.trust !== 'trusted') || (one.state !== 'verified') - (other.state !== 'verified') || label(one).localeCompare(label(other)))
        .map((peer) => ({ id: peer.uuid, text: label(peer), dot: peer, note: peer.trust === 'stranger' ? 'stranger' : peer.state === 'away' ? 'away' : '' })),
    ];
    people.replaceChildren(...targets.map((one) => h('button.chip.person', { 'aria-pressed': String(chosen.has(one.id)),
      onclick: (event) => { chosen.has(one.id) ? chosen.delete(one.id) : chosen.set(one.id, one.text); event.currentTarget.setAttribute('aria-pressed', String(chosen.has(one.id))); changed(); } },
    one.dot && h(`span.dot.${one.dot.state}.${one.dot.trust}`), peerText(one.text), one.note && h('span.faint', one.note))));
    if (!targets.length) people.replaceChildren(h('p', 'There is nobody to send to yet. ', button('Pair a machine', () => { current.element.close(); app.go('peers'); }, '.link')));
  };

  /** Hands over the files that were not yet, for whom they are, and returns the links to them. */
  async function uploaded() {
    const to = [...chosen.keys()], key = to.join();
    for (const [file, given] of files) {
      if (given?.key === key) continue;
      found.textContent = `Copying ${clean(file.name)}…`;
      const { hex } = await call('POST', `/v1/uploads${query({ name: file.name, to })}`, file, { signal: abort.signal });
      files.set(file, { key, link: hex.links[0] });
    }
    return [...files.values()].map(({ link }) => link);
  }
  /** The files of the draft, offered to the chosen peers where they lie: the hex with their links. */
  async function offered() {
    if (!draft) return { links: [] };
    found.textContent = 'Reading the files…';
    const { offer } = await callLines(`/v1/drafts/${part(draft.id)}/offer`, { to: [...chosen.keys()] }, { signal: abort.signal });
    return offer.hex;
  }
  async function go() {
    if (send.disabled) return;
    send.disabled = true;
    fault.textContent = '';
    try {
      const links = linksOf(text.value, edit?.links).filter(Boolean), description = title.value.trim();
      if (edit) {
        await call('PATCH', `/v1/mine/${edit.id}`, { links, color, ...(description !== clean(edit.description) && { description }) });
      } else if (!isSent) {
        await call('POST', `/v1/mine${query({ in: into })}`, { description, color: color || undefined, links });
        toast('Kept in My Hexlist.');
      } else {
        const more = await offered();
        const body = isWritten ? { ...more, description: description || more.description, color: color || undefined, links: [...links, ...more.links ?? [], ...await uploaded()] } : undefined;
        told((await call('POST', `/v1/sends${query({ to: [...chosen.keys()], timeout: '3s', hex: hex?.id })}`, body)).items);
      }
      current?.element.close();
      if (!isSent) app.view?.renew();
    } catch (error) {
      changed();
      const reason = faultOf(error);
      if (reason) fault.textContent = [reason.message, reason.hint].filter(Boolean).join(' ');
    }
  }

  const drop = (event) => {
    event.preventDefault();
    event.stopPropagation();
    const links = linksIn(event.dataTransfer);
    add(links, links.length ? undefined : filesIn(event.dataTransfer));
  };
  text.addEventListener('input', changed);
  text.addEventListener('paste', (event) => {
    const pasted = filesIn(event.clipboardData), links = event.clipboardData.types.includes('text/html') ? linksIn(event.clipboardData) : [];
    if (links.length) { event.preventDefault(); add(links); } else if (pasted.files.length) { event.preventDefault(); add([], pasted); }
  });
  const element = dialog(hex ? 'Send on' : edit ? 'Edit' : isSent ? 'New hex' : 'New in My Hexlist', () => [
    hex && h('div.card', mark(hex.color), h('b', { dir: 'auto' }, subject(hex)), h('span.faint', ` ${sizes(hex)}`)),
    isSent && h('div', h('h3', 'To'), people),
    ...(isWritten ? [h('label', h('h3', 'About'), title), h('label', h('h3', 'Links'), text), found, isSent && list,
      h('div.swatches', { role: 'radiogroup', 'aria-label': 'Colour' }, picks)] : []),
    fault, buttons(send),
  ].filter(Boolean), '.compose');
  element.addEventListener('close', () => { abort.abort(); current = null; });
  element.addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) go(); });
  element.addEventListener('dragover', (event) => event.preventDefault());
  element.addEventListener('drop', drop);
  current = { element, add, drawPeople };
  if (to) chosen.set(to.uuid, label(to));
  drawPeople();
  drawFiles();
  add([...(edit?.links ?? []), ...links], dropped);
  (to || !isSent ? (hex ? send : edit ? text : title) : people.querySelector('button') ?? title).focus();
}

/** Called when peers or groups change. */
export const peersChanged = () => { if (current && !current.element.contains(document.activeElement?.closest('.chip'))) current.drawPeople(); };

function told(items) {
  const there = items.filter((row) => row.state === 'stored'), waiting = items.length - there.length;
  if (!waiting) return toast(items.length === 1 ? `${label(items[0])} has it.` : `All ${items.length} have it.`);
  const first = items.find((row) => row.state !== 'stored');
  toast(`${there.length ? `${there.length} of ${items.length} have it. ` : ''}${label(first)}: ${rowText(first)}`, { action: 'Outbox', onaction: () => app.go('outbox'), time: 9000 });
}
