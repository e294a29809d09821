// A new hex: links that are pasted or dropped, to one or several peers; or a hex that is sent on.
import { call, query } from './api.js';
import { h, mark, clean, peerText, label, count, toast, button, dialog } from './dom.js';
import { app } from './main.js';
import { subject, sizes } from './hexes.js';
import { rowText } from './outbox.js';

const colors = [['', 'None'], ['#3366cc', 'Blue'], ['#1f9d8b', 'Teal'], ['#6b9a2f', 'Green'], ['#d9a21b', 'Amber'], ['#d2603a', 'Orange'], ['#b5487f', 'Rose'], ['#7a5bc7', 'Violet']];

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
  if (!links.length) for (const link of linksOf(data.getData('text/plain'))) add(link.url, link.linkDescription);
  return links;
}

/** Lines `URL text`; a line without a scheme that looks like an address is taken for https. */
export function linksOf(text) {
  return text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean).map((line) => {
    const [, first, rest] = /^(\S+)\s*(.*)$/.exec(line);
    const url = /^[a-z][a-z0-9+.-]*:/i.test(first) ? first : /^[^\s/]+\.[^\s/]{2,}(\/|$)/.test(first) ? `https://${first}` : null;
    return url && { url, ...(rest && { linkDescription: rest }) };
  }).filter(Boolean);
}

let current = null;

export function compose({ to, hex, links = [], into } = {}) {
  if (current) { current.add(links); return; }
  const chosen = new Map();
  const text = h('textarea', { rows: 5, spellcheck: 'false', placeholder: 'https://example.org  What it is\n\nOne link a line. Paste them, or drop links and bookmarks here.', 'aria-label': 'Links, one a line' });
  const title = h('input', { maxlength: 2000, placeholder: 'What they are about', 'aria-label': 'What they are about', dir: 'auto' });
  const found = h('p.faint', { role: 'status' }), people = h('div.chips'), swatches = h('div.swatches', { role: 'radiogroup', 'aria-label': 'Colour' });
  const send = button(into === undefined ? 'Send' : 'Keep', () => go(), '.strong');
  let color = '';
  const picks = colors.map(([value, name]) => {
    const pick = h('button.swatch', { type: 'button', role: 'radio', 'aria-checked': String(value === color), 'aria-label': name, title: name,
      onclick: () => { color = value; picks.forEach((one) => one.setAttribute('aria-checked', String(one === pick))); } }, mark(value));
    return pick;
  });
  swatches.append(...picks);
  const add = (more) => {
    if (!more.length) return;
    const lines = more.map((link) => [link.url, link.linkDescription].filter(Boolean).join(' '));
    text.value = [text.value.trim(), ...lines].filter(Boolean).join('\n') + '\n';
    changed();
  };
  const changed = () => {
    const lines = text.value.split('\n').filter((line) => line.trim()).length, good = linksOf(text.value).length;
    found.textContent = hex ? '' : lines ? count(good, 'link') + (lines > good ? ` · ${count(lines - good, 'line')} without an address` : '') : '';
    const isAddressed = into !== undefined || chosen.size > 0;
    send.disabled = !isAddressed || (!hex && !good && into === undefined);
    if (into === undefined) send.textContent = chosen.size > 1 ? `Send to ${chosen.size}` : 'Send';
  };
  const drawPeople = () => {
    const targets = [
      ...(app.groups ?? []).filter((group) => group.peers.length).map((group) => ({ id: `@${group.name}`, text: `@${clean(group.name)}`, note: `${group.peers.length}` })),
      ...(app.peers ?? []).filter((peer) => peer.uuid && peer.state !== 'ghost' && peer.trust !== 'blocked' && (peer.trust === 'trusted' || peer.state === 'verified' || chosen.has(peer.uuid)))
        .sort((one, other) => (one.trust !== 'trusted') - (other.trust !== 'trusted') || (one.state !== 'verified') - (other.state !== 'verified') || label(one).localeCompare(label(other)))
        .map((peer) => ({ id: peer.uuid, text: label(peer), dot: peer, note: peer.trust === 'stranger' ? 'stranger' : peer.state === 'away' ? 'away' : '' })),
    ];
    people.replaceChildren(...targets.map((one) => h('button.chip.person', { type: 'button', 'aria-pressed': String(chosen.has(one.id)),
      onclick: (event) => { chosen.has(one.id) ? chosen.delete(one.id) : chosen.set(one.id, one.text); event.currentTarget.setAttribute('aria-pressed', String(chosen.has(one.id))); changed(); } },
    one.dot && h(`span.dot.${one.dot.state}.${one.dot.trust}`), peerText(one.text), one.note && h('span.faint', null, one.note))));
    if (!targets.length) people.replaceChildren(h('p', null, 'There is nobody to send to yet. ', button('Pair a machine', () => { current.element.close(); app.go('peers'); }, '.link')));
  };

  async function go() {
    if (send.disabled) return;
    const body = hex ? undefined : { description: title.value.trim() || undefined, color: color || undefined, links: linksOf(text.value) };
    send.disabled = true;
    try {
      if (into !== undefined) {
        await call('POST', `/v1/mine${query({ in: into })}`, body);
        toast('Kept in My Hexlist.');
        app.view.renew?.();
      } else {
        const { items } = await call('POST', `/v1/sends${query({ to: [...chosen.keys()], timeout: '3s', hex: hex?.id })}`, body);
        told(items);
      }
      current?.element.close();
    } catch (error) {
      send.disabled = false;
      fault.textContent = [error.message, error.hint].filter(Boolean).join(' ');
    }
  }
  const fault = h('p.doubt', { role: 'alert' });

  const drop = (event) => {
    event.preventDefault();
    event.stopPropagation();
    if (event.dataTransfer.files.length && !event.dataTransfer.types.includes('text/uri-list')) fault.textContent = 'A page in the browser cannot see where a file is: `hexlist send --to NAME FILE` offers it.';
    add(linksIn(event.dataTransfer));
  };
  text.addEventListener('input', changed);
  text.addEventListener('drop', drop);
  text.addEventListener('paste', (event) => {
    if (!event.clipboardData.types.includes('text/html')) return;
    const pasted = linksIn(event.clipboardData);
    if (pasted.length) { event.preventDefault(); add(pasted); }
  });
  const element = dialog(hex ? 'Send on' : into === undefined ? 'New hex' : 'New in My Hexlist', () => [
    hex ? h('div.card', null, mark(hex.color), h('b', { dir: 'auto' }, subject(hex)), h('span.faint', null, ` ${sizes(hex)}`)) : null,
    into === undefined && h('div', null, h('h3', null, 'To'), people),
    !hex && h('label', null, h('h3', null, 'About'), title), !hex && h('label', null, h('h3', null, 'Links'), text), !hex && found, !hex && swatches,
    fault, h('div.buttons', null, send),
  ].filter(Boolean), '.compose');
  element.addEventListener('close', () => { current = null; });
  element.addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) go(); });
  element.addEventListener('dragover', (event) => event.preventDefault());
  element.addEventListener('drop', drop);
  current = { element, add, drawPeople };
  if (to) chosen.set(to.uuid, label(to));
  drawPeople();
  add(links);
  changed();
  (to || into !== undefined ? (hex ? send : title) : people.querySelector('button') ?? title).focus();
}

/** Called when peers or groups change. */
export const peersChanged = () => { if (current && !current.element.contains(document.activeElement?.closest('.chip'))) current.drawPeople(); };

function told(items) {
  const there = items.filter((row) => row.state === 'stored'), waiting = items.length - there.length;
  if (!waiting) return toast(items.length === 1 ? `${label({ ...items[0], uuid: items[0].peer })} has it.` : `All ${items.length} have it.`);
  const first = items.find((row) => row.state !== 'stored');
  toast(`${there.length ? `${there.length} of ${items.length} have it. ` : ''}${label({ ...first, uuid: first.peer })}: ${rowText(first)}`, { action: 'Outbox', onaction: () => app.go('outbox'), time: 9000 });
}
