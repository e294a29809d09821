// The compose dialog. It makes a new hex to send or save, forwards a hex, or edits a hex of My Hexlist.
import { linksAndText } from './linktext.js';
import { linkChanges } from './linkedits.js';
import { call, callLines, faultOf, part, query } from './api.js';
import { h, icon, mark, clean, peerText, label, count, bytesText, toast, button, buttons, dialog, confirmed } from './dom.js';
import { app } from './main.js';
import { subject, sizes } from './hexes.js';
import { rowSentence } from './outbox.js';

const colors = [['', 'None'], ['#3366cc', 'Blue'], ['#1f9d8b', 'Teal'], ['#6b9a2f', 'Green'], ['#d9a21b', 'Amber'], ['#d2603a', 'Orange'], ['#b5487f', 'Rose'], ['#7a5bc7', 'Violet']];
/** Maximum bytes of an uploaded file: 4 GiB, the limit of `POST /v1/uploads`. */
const largestFile = 4 * 2 ** 30;

/** Returns the links {url, linkDescription} in dropped or pasted data. */
export function linksIn(data) {
  const links = [];
  const add = (url, text) => {
    if (!/^[a-z][a-z0-9+.-]*:\S+$/i.test(url) || /^(file|javascript|data|blob):/i.test(url) || links.some((link) => link.url === url)) return;
    const name = clean(text);
    links.push(name && name !== url ? { url, linkDescription: name.slice(0, 500) } : { url });
  };
  // The HTML is parsed into a document that is never shown. A browser loads and runs nothing for such a document.
  const page = data.getData('text/html');
  if (page) for (const anchor of new DOMParser().parseFromString(page, 'text/html').querySelectorAll('a[href]')) add(anchor.getAttribute('href'), anchor.textContent);
  const pairs = data.getData('text/x-moz-url').split('\n');
  for (let index = 0; index + 1 < pairs.length; index += 2) add(pairs[index].trim(), pairs[index + 1]);
  for (const line of data.getData('text/uri-list').split(/\r?\n/)) if (line && !line.startsWith('#')) add(line.trim());
  if (!links.length) for (const { url, title } of linksAndText(data.getData('text/plain')).links) add(url, title);
  return links;
}

const lines = (text) => text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
/** Returns the link of a line `URL text`; null if the line does not begin with a link. A host without a scheme gets `https://`. */
function linkOf(line) {
  const [, first, rest] = /^(\S+)\s*(.*)$/.exec(line);
  const url = /^[a-z][a-z0-9+.-]*:/i.test(first) ? first : /^[^\s/]+\.[^\s/]{2,}(\/|$)/.test(first) ? `https://${first}` : null;
  return url && { url, ...(rest && { linkDescription: rest }) };
}
/** Returns the links of a line. As in `hexlist send`, each word that begins with `scheme://` starts another link. */
function linksOfLine(line) {
  const links = [];
  for (const word of line.split(/\s+/)) {
    if (!links.length || /^[a-z][a-z0-9+.-]+:\/\/./i.test(word)) {
      if (links.at(-1) !== word) links.push(word);
    } else links[links.length - 1] += ` ${word}`;
  }
  return links.map(linkOf);
}
/** Returns the content of a typed text: its links, and the remaining text as the description. */
function contentOf(text) {
  const { links, description } = linksAndText(text);
  return { links: links.map(({ url, title }) => title ? { url, linkDescription: title } : { url }), description };
}
const lineOf = (link) => [link.url, clean(link.linkDescription)].filter(Boolean).join(' ').trim();

/**
 * Returns the links of edited lines, in the form of `PATCH /v1/mine/{id}`, with null for each line without a link. A line that equals one
 * of the links in `old`, or has its URL, refers to it by `from`, counted from 1: this link keeps its unknown members.
 */
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

/** Returns the files in dropped or pasted data, and the number of folders, which a page cannot read. */
export function filesIn(data) {
  const items = [...data.items].filter((item) => item.kind === 'file');
  const files = items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory);
  return { files: files.map((item) => item.getAsFile()).filter(Boolean), folders: items.length - files.length };
}

/** The open compose dialog as {element, add, drawPeople}; null if it is closed. */
let current = null;

/**
 * The draft of a new hex in the session storage, which survives a reload: {title, text, color, to, isOpen}. Chosen files cannot be stored.
 */
const draft = {
  read: () => JSON.parse(sessionStorage.getItem('draft') ?? 'null'),
  write: (value) => sessionStorage.setItem('draft', JSON.stringify(value)),
  remove: () => sessionStorage.removeItem('draft'),
};
/** Opens the compose dialog with the draft, if it was open before a reload. */
export const restoreDraft = () => { if (draft.read()?.isOpen) compose(); };

/**
 * Opens the compose dialog, or adds to the one that is open.
 * @param to a preselected peer
 * @param hex a hex to forward
 * @param into the id of the folder of My Hexlist that gets the new hex; null for the top level; undefined to send the hex
 * @param edit a hex of My Hexlist to edit
 * @param local a draft in the daemon: files of this machine that were named by `hexlist web --send`
 */
export function compose({ to, hex, into, edit, local, links = [], dropped } = {}) {
  if (current) { current.add(links, dropped); return; }
  const isSent = into === undefined && !edit, isWritten = !hex, isDraft = isSent && isWritten && !local, kept = isDraft ? draft.read() : null;
  const chosen = new Map(), files = new Map(), abort = new AbortController();
  const text = h('textarea', { rows: edit ? 10 : 5, spellcheck: 'false', wrap: edit && 'off', placeholder: edit ? 'https://example.org  Its name\n\nOne link per line.' : 'https://example.org  Its name\n\nType or paste links, or any text. Drop links, bookmarks and files.', 'aria-label': edit ? 'Links, one per line' : 'Links or text' });
  const title = h('input', { maxlength: 2000, placeholder: 'Optional', 'aria-label': 'Title', dir: 'auto', value: edit ? clean(edit.description) : kept?.title });
  const found = h('p.faint', { role: 'status' }), people = h('div.chips'), fault = h('p.doubt', { role: 'alert' });
  const send = button(edit ? 'Save' : isSent ? 'Send' : 'Save', () => go(), '.strong');
  let color = edit?.color ?? kept?.color ?? '';
  const picks = [...colors, ...(colors.some(([value]) => value === color) ? [] : [[color, 'Current']])].map(([value, name]) => {
    const pick = h('button.swatch', { role: 'radio', 'aria-checked': String(value === color), 'aria-label': name, title: name,
      onclick: () => { color = value; keepDraft(); picks.forEach((one) => one.setAttribute('aria-checked', String(one === pick))); } }, mark(value));
    return pick;
  });

  /** The added links to files of shares. They are shown by the names of the files. */
  const attached = [];
  const chooser = h('input', { type: 'file', multiple: true, hidden: true, onchange: () => { addFiles([...chooser.files]); chooser.value = ''; } });
  const list = h('div.chips');
  const drawFiles = () => {
    list.replaceChildren(...(local?.names ?? []).map((name) => h('span.chip', peerText(name))),
      ...attached.map((link) => h('button.chip', { title: 'Remove', 'aria-label': `Remove ${clean(link.linkDescription)}`, onclick: () => { attached.splice(attached.indexOf(link), 1); drawFiles(); } }, peerText(link.linkDescription), icon('close'))), ...[...files.keys()].map((file) => h('button.chip', { title: 'Remove', 'aria-label': `Remove ${clean(file.name)}`,
      onclick: () => { files.delete(file); drawFiles(); } }, peerText(file.name), h('span.faint', bytesText(file.size)), icon('close'))),
    button('Add files…', () => chooser.click(), '.link'), chooser);
    changed();
  };
  const addFiles = (more, folders = 0) => {
    fault.textContent = !isSent || hex ? 'Files can only be sent: use New hex.' : folders ? 'Folders cannot be sent from this page. Drop the files in them instead.' : '';
    if (!isSent || hex) return;
    for (const file of more) if (file.size > largestFile) fault.textContent = `${clean(file.name)} is larger than 4 GB, the limit of this page.`; else files.set(file, null);
    drawFiles();
  };
  const add = (more, dropped) => {
    if (dropped?.files.length || dropped?.folders) addFiles(dropped.files, dropped.folders);
    const isShared = (link) => isSent && link.url.startsWith('hexlist:') && link.linkDescription;
    attached.push(...more.filter(isShared));
    if (more.some(isShared)) drawFiles();
    more = more.filter((link) => !isShared(link));
    if (more.length) text.value = [text.value.trim(), ...more.map(lineOf)].filter(Boolean).join('\n') + '\n';
    changed();
  };
  const changed = () => {
    const content = isWritten && !edit ? contentOf(text.value) : null, all = edit ? linksOf(text.value, edit.links) : content?.links ?? [];
    const good = all.filter(Boolean).length, bad = all.length - good;
    found.textContent = [good ? count(good, 'link') : '', bad ? `${count(bad, 'line')} without a link` : '', content?.description ? good ? 'and text' : 'Text' : ''].filter(Boolean).join(bad ? ' · ' : ' ');
    send.disabled = edit ? bad > 0 : isSent && (!chosen.size || (isWritten && !good && !content.description && !files.size && !attached.length && !local));
    if (isSent) send.textContent = chosen.size > 1 ? `Send to ${chosen.size}` : 'Send';
    keepDraft();
  };
  let isDone = false;
  const hasDraft = () => isDraft && !isDone && Boolean(text.value.trim() || title.value.trim());
  const keepDraft = (isOpen = true) => {
    if (hasDraft()) draft.write({ title: title.value, text: text.value, color, to: [...chosen], isOpen });
    else if (isDraft) draft.remove();
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
    if (!targets.length) people.replaceChildren(h('p', 'No one to send to yet. ', button('Pair a machine', () => { current.element.close(); app.go('peers'); }, '.link')));
  };

  /** Uploads the chosen files, except those that were uploaded for the same recipients before. Returns the links to all chosen files. */
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
  /** Offers the files of the daemon's draft to the recipients. Returns a hex with links to them. */
  async function offered() {
    if (!local) return { links: [] };
    found.textContent = 'Reading the files…';
    return (await callLines(`/v1/drafts/${part(local.id)}/offer`, { to: [...chosen.keys()] }, { signal: abort.signal })).offer.hex;
  }
  async function go() {
    if (send.disabled) return;
    send.disabled = true;
    fault.textContent = '';
    try {
      const typed = edit ? { links: linksOf(text.value, edit.links).filter(Boolean) } : contentOf(text.value), { links } = typed;
      const description = [title.value.trim(), typed.description].filter(Boolean).join('\n');
      if (edit) {
        const changes = linkChanges(edit, links);
        await call('PATCH', `/v1/mine/${edit.id}`, { color, ...(description !== clean(edit.description) && { description }), ...(changes.length && { changes }) });
      } else if (!isSent) {
        await call('POST', `/v1/mine${query({ in: into })}`, { description, color: color || undefined, links });
        toast('Saved to My Hexlist.');
      } else {
        const more = await offered();
        const body = isWritten ? { ...more, description: description || more.description, color: color || undefined, links: [...links, ...attached, ...more.links ?? [], ...await uploaded()] } : undefined;
        showResult((await call('POST', `/v1/sends${query({ to: [...chosen.keys()], timeout: '3s', hex: hex?.id })}`, body)).items);
      }
      isDone = true;
      current?.element.close();
      if (!isSent) app.view?.refresh();
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
  title.addEventListener('input', () => keepDraft());
  text.addEventListener('paste', (event) => {
    const pasted = filesIn(event.clipboardData), links = event.clipboardData.types.includes('text/html') ? linksIn(event.clipboardData) : [];
    if (links.length) { event.preventDefault(); add(links); } else if (pasted.files.length) { event.preventDefault(); add([], pasted); }
  });
  const element = dialog(hex ? 'Forward' : edit ? 'Edit' : isSent ? 'New hex' : 'New in My Hexlist', () => [
    hex && h('div.card', mark(hex.color), h('b', { dir: 'auto' }, subject(hex)), h('span.faint', ` ${sizes(hex)}`)),
    isSent && h('div', h('h3', 'To'), people),
    ...(isWritten ? [h('label', h('h3', 'Title'), title), h('label', h('h3', edit ? 'Links' : 'Links or text'), text), found, isSent && list,
      h('div.swatches', { role: 'radiogroup', 'aria-label': 'Colour' }, picks)] : []),
    fault, buttons(send),
  ], '.compose');
  element.addEventListener('close', () => {
    abort.abort();
    current = null;
    keepDraft(false);
    if (hasDraft()) toast('Kept as a draft.', { action: 'Discard', onaction: draft.remove });
  });
  element.addEventListener('cancel', (event) => {
    if (!files.size) return;
    event.preventDefault(); // the Escape key closes the dialog only after confirmation
    confirmed('Close without sending?', 'The chosen files have to be added again later.', 'Close').then((yes) => { if (yes) element.close(); });
  });
  element.addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) go(); });
  element.addEventListener('dragover', (event) => event.preventDefault());
  element.addEventListener('drop', drop);
  current = { element, add, drawPeople };
  for (const [id, name] of kept?.to ?? []) chosen.set(id, name);
  if (to) chosen.set(to.uuid, label(to));
  if (kept) text.value = kept.text;
  drawPeople();
  drawFiles();
  add([...(edit?.links ?? []), ...links], dropped);
  (to || !isSent ? (hex ? send : edit ? text : title) : people.querySelector('button') ?? title).focus();
}

/** Redraws the recipients when peers or groups change. */
export const peersChanged = () => { if (current && !current.element.contains(document.activeElement?.closest('.chip'))) current.drawPeople(); };

/** Shows the result of a send. The text differs for a hex with files, because the receiver still has to download them from this machine. */
function showResult(items) {
  const received = items.filter((row) => row.state === 'stored'), waiting = items.length - received.length;
  if (!waiting) {
    const hasFiles = items.some((row) => row.files?.state === 'offered');
    const whom = items.length === 1 ? label(items[0]) : `${items.length} machines`;
    return toast(hasFiles ? `Offered to ${whom}. Keep this machine on until the files are downloaded there.` : `Delivered to ${whom}.`, { time: hasFiles ? 9000 : 5000 });
  }
  const first = items.find((row) => row.state !== 'stored');
  toast(`${received.length ? `Delivered to ${received.length} of ${items.length}. ` : ''}${rowSentence(first)}`, { action: 'Outbox', onaction: () => app.go('outbox'), time: 9000 });
}
