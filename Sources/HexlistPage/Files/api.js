// The local API, as far as the page may use it: with a token that is in this page's memory and nowhere else.
let token = '', proof = '';
// Whether the listener that gave the token still has its port: nothing that was written is sent to anybody else there.
let isHere = true;
/** Requests that wait until it is there again. */
const waiting = [];
const isBack = () => isHere || new Promise((resolve) => { waiting.push(resolve); setTimeout(resolve, 3000, false); });

class Fault extends Error {
  constructor({ code, message, hint }, status) {
    super(message);
    Object.assign(this, { code, hint, status });
  }
}

/** Takes the secret of the address, or after a reload the one that was kept for it, and gives it for a token. Returns the name of the place. */
async function begin() {
  const place = location.hash.slice(1), given = /^[0-9a-f]{64}$/.test(place);
  const secret = given ? place : sessionStorage.getItem('reload');
  if (given) history.replaceState(null, '', '/');
  sessionStorage.removeItem('reload');
  if (!secret) throw new Fault({ message: 'This address opens nothing by itself.' }, 403);
  const session = await call('POST', '/session', { secret });
  ({ token, proof } = session);
  sessionStorage.setItem('reload', session.reload);
  return place;
}

/** One request, with JSON or a file. Throws a Fault with what happened. */
export async function call(method, path, body, { signal, keepalive, isSecond } = {}) {
  const isFile = body instanceof Blob;
  const gone = isFile ? { message: `${body.name} could not be read, or Hexlist did not take it.` } : { message: 'Hexlist does not answer.', hint: 'Is hexlistd running?' };
  if (!keepalive && !await isBack()) throw new Fault(gone, 0); // a page that is left says good-bye when its stream is cut already
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = isFile ? 'application/octet-stream' : 'application/json';
  let reply;
  try {
    reply = await fetch(path, { method, headers, body: isFile ? body : body === undefined ? undefined : JSON.stringify(body), signal, keepalive });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    // Chromium ends what waits for a connection when an address of this machine changes (net::ERR_NETWORK_CHANGED). Reading again changes nothing.
    if (method === 'GET' && !isSecond) return call(method, path, body, { signal, isSecond: true });
    throw new Fault(gone, 0);
  }
  const value = await reply.json().catch(() => null);
  if (!reply.ok) throw new Fault(value?.error ?? { message: `Hexlist answered ${reply.status}.` }, reply.status);
  return value;
}

export const query = (members) => {
  const pairs = Object.entries(members).flatMap(([key, value]) => [value].flat().map((one) => [key, one]));
  const text = new URLSearchParams(pairs.filter(([, value]) => value !== undefined && value !== null && value !== '')).toString().replaceAll('+', '%20');
  return text ? `?${text}` : '';
};
export const part = encodeURIComponent;

const visible = () => document.hidden
  ? new Promise((resolve) => document.addEventListener('visibilitychange', resolve, { once: true })) : null;

/** Follows the events, and begins again when the stream breaks off. `onstate(true)` while it is there. */
export async function follow(onevent, onstate) {
  for (let pause = 500; ; pause = Math.min(pause * 2, 10000)) {
    try {
      const reply = await fetch('/v1/web', { headers: { Authorization: `Bearer ${token}`, Accept: 'text/event-stream' } });
      if (reply.status === 403) return onstate('over');
      if (!reply.ok) throw new Error();
      if (reply.headers.get('Hexlist-Proof') !== proof) return onstate('over');
      isHere = true;
      for (const resolve of waiting.splice(0)) resolve(true);
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ''; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
        const messages = text.split('\n\n');
        text = messages.pop();
        for (const message of messages) {
          const event = /^event: (.*)$/m.exec(message)?.[1], data = /^data: (.*)$/m.exec(message)?.[1];
          if (!event || !data) continue;
          pause = 500;
          onstate('here');
          onevent(event, JSON.parse(data));
        }
      }
    } catch { /* as if it had ended */ }
    isHere = false;
    if (document.hidden) {
      await visible(); // a stream that made room for another page's begins again when it is looked at
      continue;
    }
    onstate('away');
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Begins while the other scripts are on their way. */
export const begun = begin();
begun.catch(() => {}); // who awaits it is told
