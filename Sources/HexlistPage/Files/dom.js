// Creates elements and formats texts. Text of peers is inserted as text nodes only, after `clean` has replaced the characters that reorder
// or hide text.
import { call, faultOf } from './api.js';

/**
 * Creates an element: h('a.class', {href, onclick}, child…). Members of the object whose names begin with `on` are event listeners; the
 * others are attributes. The value true gives an empty attribute; null, undefined and false give none.
 */
export function h(tag, ...children) {
  const attributes = children[0]?.constructor === Object ? children.shift() : {};
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  if (name === 'button') element.type = 'button';
  if (classes.length) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Replaces the children of an element. If all of them are equal to the new ones, they stay, because a click needs the same element at
 * mouse-down and mouse-up.
 */
export function setChildren(element, ...children) {
  const made = element.cloneNode(false);
  made.append(...children);
  if (!made.isEqualNode(element)) element.replaceChildren(...made.childNodes);
}

const SVG = 'http://www.w3.org/2000/svg';
const paths = {
  hex: 'M12 2.6 20.2 7.3v9.4L12 21.4 3.8 16.7V7.3z',
  inbox: 'M4 13h4l1.5 3h5L16 13h4M4 13l3-8h10l3 8v6H4z',
  held: 'M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9.5 12l2 2 3.5-4',
  mine: 'M6 4h12v17l-6-4.5L6 21z',
  folder: 'M3.5 6.5h6l2 2.5h9v10h-17z',
  more: 'M6 12h.01M12 12h.01M18 12h.01',
  outbox: 'M12 15V4M7.5 8.5 12 4l4.5 4.5M4 14v6h16v-6',
  peers: 'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c.6-4 3-6 6.5-6s5.9 2 6.5 6M15.5 4.3a3.5 3.5 0 0 1 0 6.4M18 14.3c2 .8 3.1 2.7 3.5 5.7',
  plus: 'M12 5v14M5 12h14', search: 'M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM15.3 15.3 20 20',
  back: 'M14.5 5 7.5 12l7 7', open: 'M14 4h6v6M20 4l-9 9M18 14v6H4V6h6', close: 'M6 6l12 12M18 6 6 18',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4', image: 'M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01', files: 'M3.5 6.5h6l2 2.5h9v10h-17zM8 14h8M13 11.5l3 2.5-3 2.5',
  link: 'M10 14a4 4 0 0 0 5.7 0l3-3A4 4 0 0 0 13 5.3l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3a4 4 0 0 0 5.7 5.7l1-1',
  chevron: 'M9.5 6l6 6-6 6', check: 'M5 12.5 10 17.5 19 7',
};

export function icon(name, kind = '') {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 24 24');
  svg.setAttribute('class', `icon ${kind}`);
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', paths[name]);
  svg.append(path);
  return svg;
}

/** Returns a hexagon as the icon of a hex, in the colour of the hex. */
export function mark(color, kind = '') {
  const svg = icon('hex', `mark ${kind}`);
  setMark(svg, color);
  return svg;
}
export function setMark(svg, color) {
  if (isColor(color)) svg.style.setProperty('--hex', color);
  else svg.style.removeProperty('--hex');
}
const isColor = (text) => /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.test(text ?? '') || (/^[a-z]{3,20}$/i.test(text ?? '') && CSS.supports('color', text));

// Matches control and invisible characters, except joiners and variation selectors, which scripts and emoji need.
const hidden = /(?![\u200c\u200d\ufe00-\ufe0f\u{e0100}-\u{e01ef}])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{DI}]/gu;
/** Returns text of a peer on one line, with control and invisible characters shown as U+FFFD. */
export const clean = (text) => String(text ?? '').replace(/[\s\u2028\u2029]+/g, ' ').trim().replace(hidden, '\ufffd');
/** Like `clean`, but keeps line breaks. */
export const cleanLines = (text) => String(text ?? '').split(/\r\n|[\n\r\u2028\u2029]/).map(clean).join('\n').trim();
/** Returns a `bdi` element with text of a peer, for use within a sentence: the direction of its text does not affect the text around it. */
export const peerText = (text) => h('bdi', clean(text));

/** Whether a sender with this trust has proved a key. Guests and drop tokens have no key, so they cannot be trusted or blocked. */
export const hasKey = (trust) => !['guest', 'drop'].includes(trust);

/**
 * Returns the display name of a peer, or of the peer of a row: its alias or, because names are not unique, its name with 8 digits of its
 * UUID.
 */
export function label({ uuid, peer, name, alias, trust }) {
  uuid ??= peer;
  if (!hasKey(trust)) return `${clean(name)} (${trust})`; // the name of a guest has its address
  if (alias) return clean(alias) + (trust === 'blocked' ? ' (blocked)' : '');
  return [clean(name), uuid ? uuid.slice(0, 8).toUpperCase() : ''].filter(Boolean).join(' ') || 'Unknown';
}

export const peerName = (peer) => peerText(label(peer));

/** Makes a list row of an icon and two lines of several parts. If a line is too long, its first part is shortened with an ellipsis. */
export const twoLines = (sign, ...lines) => h('div.row', sign, h('div.lines', lines.map((line) => h('div.line', line))));
/** Makes the header of a detail pane. */
export const head = (sign, title, under, ...more) => h('div.head', sign, h('div', h('h2', { dir: 'auto' }, title), h('p.faint', under), more));

export const count = (number, one, many = one + 's') => `${number.toLocaleString('en')} ${number === 1 ? one : many}`;

const units = [['GB', 1e9], ['MB', 1e6], ['kB', 1e3], ['B', 1]];
/** Formats a number of bytes: `3 MB`, `1.5 GB`. */
export function bytesText(bytes) {
  const [unit, size] = units.find(([, size]) => bytes >= size) ?? units.at(-1), number = bytes / size;
  return `${number.toLocaleString(undefined, { maximumFractionDigits: number < 10 && size > 1e3 ? 1 : 0 })} ${unit}`;
}

const day = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const year = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
const clock = new Intl.DateTimeFormat(undefined, { timeStyle: 'short' });
const week = new Intl.DateTimeFormat(undefined, { weekday: 'short' });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
let [today, todayIs] = [0, 0];
/** Formats an RFC 3339 time: the time of day for today, the weekday for the last six days, otherwise the date. */
export function when(text) {
  const time = new Date(text), now = Date.now();
  if (now - todayIs > 30000) [today, todayIs] = [new Date(now).setHours(0, 0, 0, 0), now];
  const isLater = time >= today + 864e5;
  if (time >= today && !isLater) return clock.format(time);
  if (time >= today - 6 * 864e5 && !isLater) return week.format(time);
  return (time.getFullYear() === new Date(now).getFullYear() ? day : year).format(time);
}
export const wholeTime = (text) => whole.format(new Date(text));

/** Shows a short message with at most one action. Returns a function that removes it. */
export function toast(text, { action, onaction, time = 5000 } = {}) {
  const end = () => { clearTimeout(timer); note.remove(); };
  const note = h('div.toast', h('span', text),
    action && button(action, () => { end(); onaction(); }, '.link'));
  const all = document.getElementById('toasts');
  if (all.children.length > 2) all.firstChild.remove();
  all.append(note);
  const timer = setTimeout(end, time);
  return end;
}

/**
 * Copies text of a peer to the clipboard. Its lines are cleaned, because a control character could run a command in a terminal into which
 * it is pasted.
 */
export function copy(text) {
  return navigator.clipboard.writeText(cleanLines(text)).then(() => toast('Copied.'), () => toast('The browser does not allow copying.'));
}

/** Opens a modal dialog. `build(close)` returns its children. */
export function dialog(title, build, kind = '') {
  const element = h(`dialog.dialog${kind}`, { 'aria-label': title });
  const close = () => element.close();
  element.append(h('header', h('h2', title),
    h('button.quiet', { 'aria-label': 'Close', onclick: close }, icon('close'))), ...build(close).flat().filter(Boolean));
  element.addEventListener('close', () => { placeToasts(); element.remove(); });
  element.addEventListener('click', (event) => { if (event.target === element) close(); });
  document.body.append(element);
  element.showModal();
  placeToasts();
  return element;
}

/** Moves the toast messages into the topmost open dialog. A modal dialog covers the elements outside it and makes them inert. */
function placeToasts() {
  const open = [...document.querySelectorAll('dialog[open]')].at(-1);
  (open ?? document.body).append(document.getElementById('toasts'));
}

/** Asks for confirmation; resolves to true if `yes` was pressed. */
export function confirmed(title, text, yes) {
  return new Promise((resolve) => {
    let answer = false;
    const element = dialog(title, (close) => [h('p', text),
      buttons(button('Cancel', close), button(yes, () => { answer = true; close(); }, '.strong'))]);
    element.addEventListener('close', () => resolve(answer));
  });
}

export const button = (text, onclick, kind = '', attributes = {}) => h(`button${kind}`, { onclick, ...attributes }, text);
export const buttons = (...children) => h('div.buttons', children);
export const field = (name, ...content) => h('div.field', h('span', name), content);
/**
 * Makes a segmented control. `choices` are pairs of a value and its label, `now` is the chosen value, and `choose(value)` handles a click.
 */
export const choice = (choices, now, choose) => h('div.choice', { role: 'group', 'aria-label': 'Choice' },
  choices.map(([value, text]) => button(text, () => choose(value), '', { 'aria-pressed': String(value === now) })));
/** Makes a segmented control that stores the chosen value in its `value`. Its `element` is false if there is only one choice. */
export function selector(choices, value) {
  const control = { value, element: choices.length > 1 && h('div') };
  const draw = () => control.element.replaceChildren(choice(choices, control.value, (chosen) => { control.value = chosen; draw(); }));
  if (control.element) draw();
  return control;
}

/** Shows a Fault as a toast message; does nothing for null, the result of `faultOf` for a cancelled request. */
export function showFault(fault) {
  if (fault) toast([fault.message, fault.hint].filter(Boolean).join(' '), { time: 9000 });
}

let bugShown;
/** Shows an unexpected error of these scripts, in place of the previous one. The console has all of them. */
export function showBug(error) {
  bugShown?.();
  bugShown = toast(`This page ran into an error: ${clean(error?.message ?? error)}`, { action: 'Reload', onaction: () => location.reload(), time: 20000 });
}

/**
 * Sends a request for an action of the user. Shows the text `done` after success, or the error. Returns the reply (true if it is empty), or
 * null after an error.
 */
export async function ask(method, path, body, done) {
  try {
    const reply = await call(method, path, body);
    if (done) toast(done);
    return reply ?? true;
  } catch (error) {
    showFault(faultOf(error));
    return null;
  }
}
