// The local API, as far as the page may use it: with a token that is in this page's memory and nowhere else.
let token = '', proof = '';
// Whether the listener that gave the token still has its port: nothing that was written is sent to anybody else there.
let isHere = true;
/** Requests that wait until it is there again. */
const waiting = [];
const isBack = () => isHere || new Promise((resolve) => { waiting.push(resolve); setTimeout(resolve, 3000, false); });

/** A request that failed, with the error of the reply; `status` 0 if there was none. */
class Fault extends Error {
  constructor({ code, message, hint }, status) {
    super(message);
    Object.assign(this, { code, hint, status });
  }
}

/** The Fault that a request ended with; null for one that this page cancelled. Throws any other error again: that is a bug, which `main.js` shows. */
export function faultOf(error) {
  if (error instanceof Fault) return error;
  if (error.name === 'AbortError') return null;
  throw error;
}

/** Takes the secret of the address, or after a reload the one that was kept for it, and gives it for a token. Returns the name of the place. */
async function begin() {
  const [first, ...rest] = location.hash.slice(1).split('/'), given = /^[0-9a-f]{64}$/.test(first);
  const place = given ? rest.join('/') : first;
  const secret = given ? first : sessionStorage.getItem('reload');
  if (given) history.replaceState(null, '', '/');
  sessionStorage.removeItem('reload');
  if (!secret) throw new Fault({ message: 'This address opens nothing by itself.' }, 403);
  const session = await call('POST', '/session', { secret });
  ({ token, proof } = session);
  sessionStorage.setItem('reload', session.reload);
  return place;
}

/** One request, with JSON or a file. Throws a Fault with what happened. */
export async function call(method, path, body, { signal, keepalive, isSecond, read = JSON.parse } = {}) {
  const isFile = body instanceof Blob;
  const gone = isFile ? { message: `${body.name} could not be read, or Hexlist did not take it.` } : { message: 'Hexlist does not answer.', hint: 'Is hexlistd running?' };
  if (!keepalive && !await isBack()) throw new Fault(gone, 0); // a page that is left says good-bye when its stream is cut already
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = isFile ? 'application/octet-stream' : 'application/json';
  let reply, text, value = null;
  try {
    reply = await fetch(path, { method, headers, body: isFile ? body : body === undefined ? undefined : JSON.stringify(body), signal, keepalive });
    text = await reply.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    // Chromium ends what waits for a connection when an address of this machine changes (net::ERR_NETWORK_CHANGED). Reading again changes nothing.
    if (method === 'GET' && !isSecond) return call(method, path, body, { signal, isSecond: true });
    throw new Fault(gone, 0);
  }
  try {
    if (text) value = reply.ok ? read(text) : JSON.parse(text);
  } catch {
    if (reply.ok) throw new Fault({ message: 'Hexlist gave an answer that this page cannot read.' }, reply.status);
  }
  if (!reply.ok) throw new Fault(value?.error ?? { message: `Hexlist answered ${reply.status}.` }, reply.status);
  return value;
}

/** A request whose reply is a stream of lines; returns the last one. Throws a Fault if that is an error. */
export async function callLines(path, body, options) {
  const result = await call('POST', path, body, { ...options, read: (text) => JSON.parse(text.trim().split('\n').at(-1)) });
  if (result?.error) throw new Fault(result.error, 200);
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

/**
 * The events of one connection: yields `[name, JSON]` until it breaks off. However the caller leaves the loop, the connection is closed.
 * Throws a Fault with status 403 if the page is over.
 */
async function* events() {
  const abort = new AbortController();
  const lost = () => null; // no answer, or no more of it
  try {
    const headers = { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' };
    const reply = await fetch('/v1/web', { headers, signal: abort.signal }).catch(lost);
    if (!reply || (!reply.ok && reply.status !== 403)) return;
    if (!reply.ok || reply.headers.get('Hexlist-Proof') !== proof) throw new Fault({ message: 'This page is over.' }, 403);
    isHere = true;
    for (const resolve of waiting.splice(0)) resolve(true);
    const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = ''; ;) {
      const piece = await reader.read().catch(lost);
      if (!piece || piece.done) return;
      text += piece.value;
      const messages = text.split('\n\n');
      text = messages.pop();
      for (const message of messages) {
        // By lines, not by `$` of an expression: that ends at U+2028 too, which JSON has as it is.
        const lines = message.split('\n');
        const [event, data] = ['event: ', 'data: '].map((start) => lines.find((line) => line.startsWith(start))?.slice(start.length));
        if (event && data) yield [event, data];
      }
    }
  } finally {
    isHere = false;
    abort.abort();
  }
}

/** Runs a handler of the stream. An error in it is logged and shown (`main.js`), and costs neither the stream nor the next event. */
function handle(handler) {
  try {
    handler();
  } catch (error) {
    reportError(error);
  }
}

/** Milliseconds until a stream that broke off is opened again: doubled each time, from the first again after one that lasted as long as the longest. */
const pauses = { first: 500, longest: 10000 };

/** Follows the events until the page is over, and opens the stream again when it breaks off. `onstate` is called with 'here', 'away' and 'over'. */
export async function follow(onevent, onstate) {
  for (let pause = pauses.first; ; pause = Math.min(pause * 2, pauses.longest)) {
    const opened = performance.now();
    try {
      for await (const [event, data] of events()) {
        handle(() => onstate('here'));
        handle(() => onevent(event, JSON.parse(data)));
      }
    } catch (error) {
      if (faultOf(error)) return handle(() => onstate('over'));
    }
    if (performance.now() - opened > pauses.longest) pause = pauses.first;
    if (document.hidden) {
      await visible(); // a stream that made room for another page's is opened again when the page is looked at
      continue;
    }
    handle(() => onstate('away'));
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Begins while the other scripts are on their way. */
export const begun = begin();
begun.catch(() => {}); // who awaits it is told
