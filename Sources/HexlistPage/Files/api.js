// Sends requests to the local API. `token` authorises them, and `proof` is compared to recognise the daemon. Both are kept in memory only.
let token = '', proof = '';
// Whether the event stream is connected. Requests wait up to 3 s until it is: if the daemon has ended, another program may use its port.
let isConnected = true;
/** `resolve` functions of the requests that wait for the event stream. */
const waiting = [];
const reconnected = () => isConnected || new Promise((resolve) => { waiting.push(resolve); setTimeout(resolve, 3000, false); });

/** The error of a failed request. `status` is the HTTP status, or 0 without a reply. */
class Fault extends Error {
  constructor({ code, message, hint }, status) {
    super(message);
    // Hints for a terminal name commands or options, which the page does not have.
    Object.assign(this, { code, hint: /`(hexlist|--)/.test(hint) ? undefined : hint, status });
  }
}

/**
 * Returns a Fault unchanged, and null for a request that this page cancelled. Any other error is a bug, and is thrown again; `main.js`
 * shows it.
 */
export function faultOf(error) {
  if (error instanceof Fault) return error;
  if (error.name === 'AbortError') return null;
  throw error;
}

/**
 * Exchanges a secret for a token: the secret in the hash of the address or, after a reload, the one in the session storage. Returns the
 * rest of the hash, `SECTION/ITEM`.
 */
async function begin() {
  const [first, ...rest] = location.hash.slice(1).split('/'), given = /^[0-9a-f]{64}$/.test(first);
  const secret = given ? first : sessionStorage.getItem('reload');
  if (given) history.replaceState(null, '', '/');
  sessionStorage.removeItem('reload');
  if (!secret) throw new Fault({ message: 'This address has no key to the page.' }, 403);
  const keys = await call('POST', '/session', { secret });
  ({ token, proof } = keys);
  sessionStorage.setItem('reload', keys.reload);
  return (given ? rest : [first, ...rest]).join('/');
}

/** Calls `online` with the parsed JSON of each line of a reply, as soon as the line arrives. Returns the text of the last line. */
async function readLines(body, online) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = '', last = ''; ;) {
    const { done, value } = await reader.read();
    const lines = (text + (value ?? '')).split('\n');
    text = done ? '' : lines.pop();
    for (const line of lines.filter(Boolean)) { last = line; online(JSON.parse(line)); }
    if (done) return last;
  }
}

/**
 * Sends one request, with JSON or a file as its body, and returns the reply. Throws a Fault if the request fails.
 * @param isRetry whether this call repeats a failed request
 * @param isBinary whether to return the body as an ArrayBuffer
 * @param online called with each line of the reply, parsed, as it arrives
 * @param read parses the text of the reply
 */
export async function call(method, path, body, { signal, keepalive, isRetry, isBinary, online, read = JSON.parse } = {}) {
  const isFile = body instanceof Blob;
  const noReply = isFile ? { message: `${body.name} could not be copied: it cannot be read, or Hexlist stopped answering.` } : { message: 'Hexlist is not answering.', hint: 'Is hexlistd running?' };
  if (!keepalive && !await reconnected()) throw new Fault(noReply, 0); // keepalive: the page is closing; its event stream is closed already
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = isFile ? 'application/octet-stream' : 'application/json';
  let reply, text, value = null;
  try {
    reply = await fetch(path, { method, headers, body: isFile ? body : body === undefined ? undefined : JSON.stringify(body), signal, keepalive });
    text = !reply.ok ? await reply.text() : online ? await readLines(reply.body, online) : isBinary ? await reply.arrayBuffer() : await reply.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    // Chromium fails queued requests when an address of this machine changes (net::ERR_NETWORK_CHANGED). A GET can be repeated.
    if (method === 'GET' && !isRetry) return call(method, path, body, { signal, isBinary, read, isRetry: true });
    throw new Fault(noReply, 0);
  }
  try {
    if (text) value = reply.ok ? isBinary ? text : read(text) : JSON.parse(text);
  } catch {
    if (reply.ok) throw new Fault({ message: 'Hexlist sent a reply that this page cannot read.', hint: 'Reload the page.' }, reply.status);
  }
  if (!reply.ok) throw new Fault(value?.error ?? { message: `Hexlist failed with status ${reply.status}.` }, reply.status);
  return value;
}

/** Sends a request whose reply is a stream of lines of JSON. Returns the last line, parsed; throws a Fault if that line is an error. */
export async function callLines(path, body, options) {
  const result = await call('POST', path, body, { ...options, read: (text) => JSON.parse(text.trim().split('\n').at(-1)) });
  if (result.error) throw new Fault(result.error, 200);
  return result;
}

export const query = (members) => {
  const pairs = Object.entries(members).flatMap(([key, value]) => [value].flat().map((one) => [key, one]));
  const text = new URLSearchParams(pairs.filter(([, value]) => value !== undefined && value !== null && value !== '')).toString().replaceAll('+', '%20');
  return text ? `?${text}` : '';
};
export const part = encodeURIComponent;

const visible = () => document.hidden
  ? new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true })) : null;

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/**
 * Checks, before the token is sent again, that the program at the port is the daemon that issued it: after the daemon has stopped, a
 * program of another user may have taken the port. Returns true, or null if nothing answers. Throws a Fault with status 403 for another
 * program.
 */
async function checkProof() {
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32))), encoder = new TextEncoder();
  const reply = await fetch(`/proof?nonce=${nonce}`).catch(() => null);
  if (!reply) return null;
  const key = await crypto.subtle.importKey('raw', encoder.encode(proof), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const expected = hex(new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(nonce))));
  const given = await reply.json().catch(() => null);
  if (given?.secret !== expected) throw new Fault({ message: 'This page has expired.' }, 403);
  return true;
}

let hasConnected = false;

/**
 * Opens the event stream, and yields `[name, data]` for each event until the stream ends; `data` is JSON text. If the caller leaves its
 * loop, the connection is closed. Throws a Fault with status 403 if the page has expired.
 */
async function* events() {
  const abort = new AbortController();
  const lost = () => null; // the connection failed
  try {
    if (hasConnected && !await checkProof()) return;
    const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' };
    const reply = await fetch('/v1/web', { headers, signal: abort.signal }).catch(lost);
    if (!reply || (!reply.ok && reply.status !== 403)) return;
    if (!reply.ok || reply.headers.get('Hexlist-Proof') !== proof) throw new Fault({ message: 'This page has expired.' }, 403);
    isConnected = true;
    for (const resolve of waiting.splice(0)) resolve(true);
    if (hasConnected) call('POST', '/session/reload').then(({ secret }) => sessionStorage.setItem('reload', secret), () => {});
    hasConnected = true;
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ''; ;) {
      const piece = await reader.read().catch(lost);
      if (!piece || piece.done) return;
      text += piece.value;
      const messages = text.split('\n\n');
      text = messages.pop();
      for (const message of messages) {
        // The message is split into lines without a regular expression: `$` also matches before U+2028, which JSON may contain unescaped.
        const lines = message.split('\n');
        const [event, data] = ['event: ', 'data: '].map((start) => lines.find((line) => line.startsWith(start))?.slice(start.length));
        if (event && data) yield [event, data];
      }
    }
  } finally {
    isConnected = false;
    abort.abort();
  }
}

/** Calls an event handler. If it throws, the error is logged and shown (`main.js`), and the event stream continues. */
function handle(handler) {
  try {
    handler();
  } catch (error) {
    reportError(error);
  }
}

/**
 * Pauses before the event stream is opened again, in milliseconds. The pause doubles up to `longest`; a stream that lasted `longest` resets
 * it.
 */
const backoff = { first: 500, longest: 10000 };

/**
 * Follows the event stream until the page expires, and reconnects after failures. Calls `onstate` with 'connected', 'lost' or 'expired'.
 */
export async function follow(onevent, onstate) {
  for (let pause = backoff.first; ; pause = Math.min(pause * 2, backoff.longest)) {
    const opened = performance.now();
    try {
      for await (const [event, data] of events()) {
        handle(() => onstate('connected'));
        handle(() => onevent(event, JSON.parse(data)));
      }
    } catch (error) {
      if (faultOf(error)) return handle(() => onstate('expired'));
    }
    if (performance.now() - opened > backoff.longest) pause = backoff.first;
    if (document.hidden) {
      await visible(); // the daemon limits open streams: a hidden page reconnects once it is visible
      continue;
    }
    handle(() => onstate('lost'));
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/**
 * Resolves to the address `SECTION/ITEM` to show, once there is a token. Begins while other scripts are loading; `main.js` handles its
 * error.
 */
export const session = begin();
session.catch(() => {});
