'use strict';
// The page for guests. It works with iOS 14 and Chrome 86, and over plain HTTP, for which browsers offer no clipboard, no service workers
// and no crypto.subtle.
(() => {
const stall = 8000;
const app = document.getElementById('app'), who = document.getElementById('who'), note = document.getElementById('note');
const el = (tag, properties = {}, ...children) => {
  const node = document.createElement(tag);
  for (const name in properties) name in node ? node[name] = properties[name] : node.setAttribute(name, properties[name]);
  node.append(...children);
  return node;
};
const pause = time => new Promise(done => setTimeout(done, time));
const random = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');
const size = bytes => bytes < 1e6 ? Math.ceil(bytes / 1e3) + ' kB' : bytes < 1e9 ? (bytes / 1e6).toFixed(1) + ' MB' : (bytes / 1e9).toFixed(2) + ' GB';

// Phones may discard a tab while the user picks photos, so the key and the token are in the session storage and survive a reload. The key
// is removed from the address bar.
const key = location.hash.slice(1) || sessionStorage.getItem('key') || '';
let token = '';
if (location.hash) {
  if (sessionStorage.getItem('key') !== key) sessionStorage.removeItem('token');
  sessionStorage.setItem('key', key);
  history.replaceState(null, '', '/');
}

// Sends a request. The content of a file is aborted after 8 s without progress, any other request after 20 s. The error has the HTTP
// status, or the status 0 if there was no connection.
const ask = (method, path, body, onProgress) => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest();
  const isFile = body instanceof Blob;
  let timer;
  const fail = (message, status) => { clearTimeout(timer); reject(Object.assign(new Error(message), {status})); };
  const wait = () => { clearTimeout(timer); timer = setTimeout(() => request.abort(), isFile ? stall : 20000); };
  request.open(method, path);
  request.setRequestHeader('Hexlist-Sent', Date.now());
  if (token) request.setRequestHeader('Authorization', 'Bearer ' + token);
  if (body) request.setRequestHeader('Content-Type', isFile ? 'application/octet-stream' : 'application/json');
  request.upload.onprogress = event => { wait(); if (onProgress) onProgress(event.loaded); };
  request.onload = () => {
    let reply = {};
    try { reply = JSON.parse(request.responseText); } catch (error) { /* not JSON: a proxy */ }
    if (request.status >= 300 || !request.status) return fail(reply.message || 'It was refused.', request.status);
    clearTimeout(timer);
    resolve(reply);
  };
  request.onerror = request.onabort = () => fail('No connection.', 0);
  wait();
  request.send(isFile ? body : body ? JSON.stringify(body) : null);
});
// Sends a request, and repeats it while there is no connection, at most 600 times, which takes half an hour.
const insist = async (say, ...request) => {
  for (let tries = 1; ; tries++) {
    try { return await ask(...request); } catch (error) {
      if (error.status || tries > 600) throw error;
      say('Waiting for the connection…');
      await pause(Math.min(500 * tries, 3000));
    }
  }
};
const over = message => {
  sessionStorage.clear();
  note.className = 'e';
  note.textContent = message;
  app.replaceChildren(who, note);
};

// Fails if a file of 1 byte or more was deleted after it was chosen. Chromium then reports the size 0, and browsers report the failed
// upload like a lost connection.
async function checkReadable(file) {
  const first = await file.slice(0, 1).arrayBuffer().catch(() => ({}));
  if (first.byteLength !== 1) throw Object.assign(new Error(file.name + ' cannot be read any more. Choose it again.'), {status: 400});
}
// Uploads a file. If the screen is locked or the network is lost, the upload resumes at the end of the written bytes.
async function upload(file, size, progress, say) {
  if (size) await checkReadable(file);
  const made = await insist(say, 'POST', '/g/files', {name: file.name, size, modified: file.lastModified});
  let at = made.at;
  while (at < size) {
    try {
      at = (await ask('POST', '/g/files/' + made.id + '?at=' + at, file.slice(at), sent => progress(at + sent))).at;
    } catch (error) {
      if (error.status && error.status !== 409) throw error;
      await checkReadable(file);
      say('Waiting for the connection…');
      at = (await insist(say, 'GET', '/g/files/' + made.id)).at;
    }
    progress(at);
  }
  return made.id;
}

function shown(hex) {
  const list = el('ul');
  for (const link of hex.links) {
    const opens = /^(https?|mailto):/i.test(link.url || '');
    list.append(el('li', {}, opens ? el('a', {href: link.url, rel: 'noopener noreferrer', target: '_blank'}, link.name) : link.name,
      el('div', {className: 's'}, link.host || '')));
  }
  for (const file of hex.files) list.append(el('li', {}, el('a', {href: file.href, download: '', className: 'b'}, file.name + ' · ' + size(file.size))));
  return el('section', {}, el('h2', {}, hex.description || 'For you'), list);
}

function form(name, once) {
  const person = el('input', {id: 'name', maxLength: 40, autocomplete: 'name', value: sessionStorage.getItem('name') || ''});
  const text = el('textarea', {id: 'text', rows: 4, value: sessionStorage.getItem('text') || ''});
  const files = el('input', {id: 'files', type: 'file', multiple: true});
  const button = el('button', {type: 'submit'}, 'Send');
  const sent = el('ul', {'aria-live': 'polite'});
  const fields = el('form', {}, el('label', {htmlFor: 'name'}, 'Your name (optional)'), person, el('label', {htmlFor: 'text'}, 'A link or a text'), text,
    el('label', {htmlFor: 'files'}, 'Files'), files, button);
  text.oninput = () => sessionStorage.setItem('text', text.value);
  person.oninput = () => sessionStorage.setItem('name', person.value);
  // Sizes when the files were chosen, because Chromium reports 0 for a file that was deleted later.
  const sizes = new Map();
  files.onchange = () => { for (const file of files.files) sizes.set(file, file.size); };
  fields.onsubmit = event => { event.preventDefault(); send(); };
  async function send() {
    const chosen = [...files.files];
    if (!chosen.length && !text.value.trim()) return text.focus();
    button.disabled = true;
    const sizeOf = file => sizes.get(file) ?? file.size;
    const total = chosen.reduce((sum, file) => sum + sizeOf(file), 0) || 1;
    const state = el('span', {}, 'Sending…'), bar = el('progress', {max: total, value: 0, 'aria-label': 'Progress'}), line = el('li', {}, state, bar);
    sent.prepend(line);
    const say = message => { state.textContent = message; };
    const id = random(), ids = [];
    try {
      let before = 0;
      for (const file of chosen) {
        ids.push(await upload(file, sizeOf(file), at => {
          bar.value = before + at;
          say('Sending… ' + Math.floor(100 * bar.value / total) + ' %');
        }, say));
        before += sizeOf(file);
      }
      await insist(say, 'POST', '/g/hexes', {id, name: person.value, text: text.value, files: ids});
      line.replaceChildren('✓ ' + name + ' has it');
      text.value = files.value = '';
      sessionStorage.removeItem('text');
      if (once) { fields.remove(); sessionStorage.clear(); }
    } catch (error) {
      if (error.status === 403 || error.status === 410) return over(error.message);
      line.replaceChildren(el('span', {className: 'e'}, error.status ? error.message : name + ' does not answer. Send it again.'));
    }
    button.disabled = false;
  }
  return el('section', {}, fields, sent);
}

async function begin() {
  if (!key) return over('Scan the QR code again: this address has no key.');
  let session;
  try {
    session = await ask('POST', '/g/join', {key, token: sessionStorage.getItem('token') || undefined});
  } catch (error) {
    return over(error.status ? error.message : 'The other machine does not answer. Are both in the same network?');
  }
  token = session.token;
  sessionStorage.setItem('token', token);
  who.textContent = 'To ' + session.name;
  const ends = new Date(session.until).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit'});
  note.textContent = 'Not encrypted: others on this network can read it. Ends at ' + ends + '.';
  app.append(...session.hexes.map(shown), form(session.name, session.once));
}
begin();
})();
