// The connection to `hexlist browser`, the native messaging host that talks to the daemon (Docs/API.md, "Messages of the browser").

const api = globalThis.browser ?? globalThis.chrome;

/** An error for the user: an error code, a message, and a hint. */
export class HostError extends Error {
  constructor(code, message, hint) {
    super(message);
    this.code = code;
    this.hint = hint;
  }

  get json() {
    return { code: this.code, message: this.message, hint: this.hint };
  }
}

export class Host {
  #port = null;
  #last = 0;
  #waiting = new Map();
  #onEvent;
  #onEnd;

  /**
   * @param onEvent called with the name and the value of each event that the host sends
   * @param onEnd called with a HostError if the host has exited or cannot be started
   */
  constructor(onEvent, onEnd) {
    this.#onEvent = onEvent;
    this.#onEnd = onEnd;
  }

  get isConnected() {
    return this.#port !== null;
  }

  connect() {
    if (this.#port) return;
    const port = api.runtime.connectNative("hexlist");
    this.#port = port;
    port.onMessage.addListener((message) => this.#received(message));
    port.onDisconnect.addListener((ended) => this.#ended(port, ended?.error?.message ?? api.runtime.lastError?.message ?? ""));
  }

  /** Sends a request to the host, and starts the host if necessary. @returns the reply; throws HostError. */
  request(operation, members = {}) {
    this.connect();
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      try {
        this.#port.postMessage({ id, operation, ...members });
      } catch (error) {
        this.#waiting.delete(id);
        reject(new HostError("hostEnded", "Hexlist cannot be reached.", String(error.message ?? error)));
      }
    });
  }

  #received(message) {
    if (message.event) return this.#onEvent(message.event, message[message.event]);
    const waiting = this.#waiting.get(message.id);
    if (!waiting) return;
    this.#waiting.delete(message.id);
    if (message.error) waiting.reject(new HostError(message.error.code, message.error.message, message.error.hint));
    else waiting.resolve(message.reply);
  }

  #ended(port, why) {
    if (this.#port !== port) return;
    this.#port = null;
    const isMissing = /not found|forbidden|no such native/i.test(why);
    const error = isMissing
      ? new HostError("hostMissing", "The browser cannot find Hexlist.", "Run `hexlist browser --install` in a terminal, then try again.")
      : new HostError("hostEnded", "The connection to Hexlist ended.", why);
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
    this.#onEnd(error);
  }
}
