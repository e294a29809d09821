#!/usr/bin/env python3
"""A peer of the Hexlist peer protocol, version 1, written from Docs/Protocol.md alone by a person who had not read the sources. Keep it
that way: change it from that page, not from the sources.

    foreign-peer.py --state DIR id
    foreign-peer.py --state DIR listen [--port P] [--bind ADDRESS] [--refuse N] [--pair]
    foreign-peer.py --state DIR send HOST PORT [--expect UUID] [--key-prefix TEXT] [--give-up SECONDS] FILE
    foreign-peer.py --state DIR pair HOST PORT [--expect UUID]

DIR contains the identity (key.pem, cert.pem), the trusted fingerprints (trusted.json), the port and the received hexes (inbox.jsonl: one
line per hex; a line with "accepted" moves all held hexes of the key before it to the inbox). Only one process at a time may use it.
Each event is a line of JSON on standard output. FILE has one HexJM per line. `send` exits with 0 when the other side has all of them.
The answer to a pairing's digits is read from standard input: `yes`; anything else is a no.
"""
import argparse, asyncio, base64, contextlib, ctypes, fcntl, hashlib, heapq, json, os, re, secrets, signal, socket, ssl, subprocess, sys
import threading, time, uuid, _ssl
from dataclasses import dataclass, field
from pathlib import Path

ALPN = "hexlist/1"
KEY_PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200" + "04")
KIB, MIB = 1 << 10, 1 << 20
FIRST_FRAME, STRANGER_FRAME, TRUSTED_FRAME, LARGEST_FRAME = 8 * KIB, 64 * KIB, MIB, 16 * MIB - 1
WINDOW, UNACKNOWLEDGED_BYTES, HELD_QUOTA, RETRY_AFTER = 1024, 8 * MIB, 20_000, 5
OBJECT_OF = {"Hello": "Peer", "Store": "Hex", "Ack": "Receipt", "Pair": "Pairing"}
NAMES = ("Hello", "Store", "Ack", "Alert", "Ping", "Pong", "Bye", "Pair", "DialedBack",
         "FileDial", "ListNews")  # no DialBack: the feature is not offered
UNNUMBERED = ("Hello", "Ack", "Pong", "Bye", "ListNews")
TEMPORARY = ("notAccepting", "quotaExceeded", "storageFull", "internal")
PERMANENT = ("malformed", "missingObject", "unsupportedObject", "unsupportedOperation", "tooLarge", "tooManyLinks", "blocked")
ASCII_LOWER = {upper: upper + 32 for upper in range(65, 91)}
now = time.monotonic


def event(event_name, /, **values):
    print(json.dumps({"event": event_name, **values}), flush=True)


# ---- Identity ---------------------------------------------------------------------------------------------------------------------

def der_items(data):
    """The elements inside a DER sequence: tag, contents, the whole element."""
    at = 0
    while at < len(data):
        length, head = data[at + 1], 2
        if length & 0x80:
            head += length & 0x7F
            length = int.from_bytes(data[at + 2:at + head], "big")
        yield data[at], data[at + head:at + head + length], data[at:at + head + length]
        at += head + length


def contents(data):
    return next(der_items(data))[1]


def fingerprint_of(certificate):
    """SHA-256 of the public key. Raises ValueError for a key of another kind, or one that may not sign."""
    fields = [item for item in der_items(contents(contents(certificate))) if item[0] != 0xA0]
    public_key = fields[5][2]
    if len(public_key) != 91 or not public_key.startswith(KEY_PREFIX):
        raise ValueError("not an uncompressed P-256 key")
    for extensions in (item[1] for item in fields[6:] if item[0] == 0xA3):
        for _, extension, _ in der_items(contents(extensions)):
            parts = [item[1] for item in der_items(extension)]
            if parts[0] == b"\x55\x1d\x0f" and not contents(parts[-1])[1] & 0x80:
                raise ValueError("key usage without digitalSignature")
    return hashlib.sha256(public_key).digest()


def uuid_from(digest, version=8):
    raw = bytearray(digest[:16])
    raw[6], raw[8] = raw[6] & 0x0F | version << 4, raw[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(raw))


def printed(identifier):
    return str(identifier).upper()


def new_message_id():
    return uuid_from(int(time.time() * 1000).to_bytes(6, "big") + secrets.token_bytes(10), version=7)


class Identity:
    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        os.umask(0o077)
        self.lock = open(folder / "lock", "w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit(f"{folder} is in use: two processes of one identity would be a conflict")
        self.trust_file, key, certificate = folder / "trusted.json", folder / "key.pem", folder / "cert.pem"
        if not key.exists():
            if self.trust_file.exists():
                sys.exit(f"{key} is missing, though {self.trust_file} exists: restore it, or remove both")
            self.openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                         "-pkeyopt", "ec_param_enc:named_curve", "-out", key)
        if not certificate.exists():
            self.openssl("req", "-x509", "-key", key, "-out", certificate, "-days", "36500", "-subj", "/CN=hexlist",
                         "-addext", "keyUsage=critical,digitalSignature")
        self.key, self.certificate = key, certificate
        self.fingerprint = fingerprint_of(ssl.PEM_cert_to_DER_cert(certificate.read_text()))
        self.uuid = uuid_from(self.fingerprint)
        self.boot = secrets.token_hex(8)
        self.trusted = json.loads(self.trust_file.read_text()) if self.trust_file.exists() else {}

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def trust(self, fingerprint, name):
        self.trusted[fingerprint.hex()] = {"uuid": printed(uuid_from(fingerprint)), "name": name}
        new = self.trust_file.with_suffix(".new")
        with open(new, "w") as out:
            out.write(json.dumps(self.trusted, indent=1))
            out.flush()
            os.fsync(out.fileno())
        new.rename(self.trust_file)

    def tls(self, server, alpn=ALPN):
        """TLS 1.3 with both certificates. OpenSSL's certificate checks are disabled: proven_key() makes those of Docs/Protocol.md."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
        context.set_alpn_protocols([alpn])
        context.load_cert_chain(self.certificate, self.key)
        if server:
            context.num_tickets = 0
        libssl = ctypes.CDLL(_ssl.__file__)
        native = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)  # the SSL_CTX pointer comes after the object's head
        libssl.SSL_CTX_set_cert_verify_callback(native, ACCEPT_CERTIFICATE, None)
        set_signature_algorithms = 98
        if libssl.SSL_CTX_ctrl(native, set_signature_algorithms, ctypes.c_long(0), b"ecdsa_secp256r1_sha256") != 1:
            sys.exit("OpenSSL does not take the signature algorithm")
        return context


ACCEPT_CERTIFICATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(lambda store, argument: 1)


def proven_key(writer, alpn=ALPN):
    tls = writer.get_extra_info("ssl_object")
    if tls.version() != "TLSv1.3" or tls.selected_alpn_protocol() != alpn or len(tls._sslobj.get_unverified_chain()) != 1:
        raise ValueError(f"something else than TLS 1.3, {alpn} and one certificate was negotiated")
    return fingerprint_of(tls.getpeercert(True))


# ---- JSON: strict grammar, tolerant contents ---------------------------------------------------------------------------------------

class Num(str):
    """A number as its source text."""


class Obj(list):
    """An object: its members in order, including duplicates."""

    def get(self, name):
        return next((value for key, value in reversed(self) if key == name), None)


class Undecodable(Exception):
    pass


class Refused(Exception):
    pass


def no_constant(name):
    raise ValueError(name)


def parse(source):
    try:
        text = source.decode("utf-8-sig") if isinstance(source, bytes) else source
        depth = 0
        for bracket in re.findall(r"[\[\]{}]", re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*"', "", text, flags=re.S)):
            depth += 1 if bracket in "[{" else -1
            if depth > 64:
                raise ValueError("nesting")
        return json.loads(text, object_pairs_hook=Obj, parse_int=Num, parse_float=Num, parse_constant=no_constant)
    except ValueError as error:
        raise Undecodable(str(error)) from None


def dump(value):
    if isinstance(value, Num):
        return str(value)
    if isinstance(value, (Obj, dict)):
        return "{" + ",".join(dump(key) + ":" + dump(item) for key, item in (value.items() if isinstance(value, dict) else value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return json.dumps(value, ensure_ascii=isinstance(value, str) and bool(re.search("[\ud800-\udfff]", value)))


def is_text(value):
    return isinstance(value, str) and not isinstance(value, Num)


def clean(text):
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text)


def text_of(value, default=""):
    if isinstance(value, bool):
        return "true" if value else "false"
    return clean(str(value)) if isinstance(value, str) else default


def integer_of(value, low, high):
    return int(value) if isinstance(value, Num) and len(value) < 20 and value.isdigit() and low <= int(value) <= high else None


def uuid_of(value):
    if not is_text(value) or not re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        return None
    return None if set(value) <= set("0-") or set(value.lower()) <= set("f-") else uuid.UUID(value)


def fold(text):
    return text.translate(ASCII_LOWER)


def named(members, name, older):
    """A member by its current or, if that is missing, its older name; and the name under which it was found."""
    if members.get(name) is None and members.get(older) is not None:
        return members.get(older), older
    return members.get(name), name


SERVICES = {"": "Unknown", "google_drive": "GoogleDrive", "google drive": "GoogleDrive"}
SERVICES.update((fold(name), name) for name in ("Unknown", "Dropbox", "Box", "GoogleDrive"))


def new_link(url, description=""):
    return {"url": clean(url), "linkDescription": clean(description), "service": "Unknown"}


def link_of(members, name=None):
    description, description_name = named(members, "linkDescription", "fileName")
    service, service_name = named(members, "service", "type")
    service = text_of(service, "Unknown")
    link = new_link(text_of(members.get("url")), text_of(name if description is None else description))
    link["service"] = SERVICES.get(fold(service), service)
    return known_and_kept(link, members, {description_name, service_name})


def known_and_kept(known, members, read):
    return Obj([*known.items(), *((key, value) for key, value in members if key not in known and key not in read)])


def links_of(value):
    if is_text(value):
        value = clean(value)
        if value.lstrip(" \t\r\n")[:1] in ("[", "{"):
            with contextlib.suppress(Undecodable):
                return links_of(parse(value))
        return [new_link(value)] if value else []
    if isinstance(value, Obj):
        pairs = [(name, item) for name, item in value]
    else:
        pairs = [(None, item) for item in value] if isinstance(value, list) else []
    return [link_of(item, name) if isinstance(item, Obj) else new_link(item, name or "")
            for name, item in pairs if isinstance(item, Obj) or is_text(item) and item]


def hex_of(members, read=()):
    names = ("senderUUID", "senderName", "hexDescription", "hexColor")
    known = {**{name: text_of(members.get(name)) for name in names}, "links": links_of(members.get("links"))}
    if len(known["links"]) > 5000:
        raise Refused("tooManyLinks")
    if any(too_long(value) for part in (known.items(), *known["links"]) for _, value in part):
        raise Refused("tooLarge")
    return known_and_kept(known, members, read)


def too_long(value):
    return is_text(value) and len(value.encode("utf-8", "surrogatepass")) > 64 * KIB


@dataclass
class Frame:
    operation: str = None
    message: str = None
    body: object = None
    message_id: uuid.UUID = None
    sequence: int = None
    fault: str = None


def decode(data):
    wrapper = parse(data)
    if not isinstance(wrapper, Obj):
        raise Undecodable("no object")
    name, body, frame = text_of(wrapper.get("operationType")), wrapper.get("jmObject"), Frame()
    try:
        if not name and body is None and wrapper.get("links") is not None:
            frame.operation, frame.message_id = "Store", uuid_of(wrapper.get("packageUUID"))
            frame.body = hex_of(wrapper, ("packageUUID",) if frame.message_id else ())
            return frame
        frame.message, frame.message_id = text_of(wrapper.get("message"), None), uuid_of(wrapper.get("messageID"))
        frame.sequence = integer_of(wrapper.get("sequence"), 1, 2 ** 63 - 1)
        frame.operation = next((known for known in NAMES if fold(known) == fold(name)), None)
        if not name and body is not None:
            frame.operation = "Store"
        if not frame.operation:
            raise Refused("unsupportedOperation")
        if frame.operation in OBJECT_OF:
            frame.body = object_of(frame.operation, text_of(wrapper.get("jmObjectType")), body)
        if too_long(frame.message):
            raise Refused("tooLarge")
    except Refused as refused:
        frame.fault = str(refused)
    return frame


def object_of(operation, kind, body):
    if body is None:
        raise Refused("missingObject")
    if kind and fold(kind) != fold(OBJECT_OF[operation]):
        raise Refused("unsupportedObject")
    if is_text(body):
        with contextlib.suppress(Undecodable):
            body = parse(clean(body))
    if not isinstance(body, Obj):
        raise Refused("malformed")
    return hex_of(body) if operation == "Store" else body


def encode(operation, body=None, **members):
    wrapper = {"versionID": "1.0.0", "operationType": operation}
    if body is not None:
        wrapper["jmObjectType"] = OBJECT_OF[operation]
    data = dump({**wrapper, **members, **({} if body is None else {"jmObject": body})}).encode()
    return len(data).to_bytes(4, "big") + data


# ---- Storage ----------------------------------------------------------------------------------------------------------------------

class Inbox:
    def __init__(self, path):
        self.states, self.new = {}, []
        self.file = open(path, "a+b")
        self.file.seek(0)
        whole = 0
        for line in self.file:
            if not line.endswith(b"\n"):  # a write truncated by a crash, so never acknowledged
                break
            whole += len(line)
            record = json.loads(line)
            if "accepted" in record:
                self.move_held(record["key"])
            else:
                self.states[record["key"], record["messageID"]] = record["state"]
        self.file.truncate(whole)
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def move_held(self, key):
        self.states.update((name, "stored") for name in [name for name, state in self.states.items() if name[0] == key and state == "held"])

    def accept(self, key):
        self.move_held(key)
        self.new.append(dump({"key": key, "accepted": True}))
        self.commit()

    def held(self):
        return sum(state == "held" for state in self.states.values())

    def add(self, key, message_id, state, body):
        self.states[key, message_id] = state
        self.new.append(dump({"key": key, "messageID": message_id, "state": state, "hex": body}))

    def commit(self):
        try:
            self.file.write("".join(line + "\n" for line in self.new).encode())
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            sys.exit(f"cannot store, so nothing is acknowledged: {error}")
        self.new.clear()


@dataclass(order=True)
class Item:
    index: int
    message_id: str = field(compare=False)
    body: str = field(compare=False)
    state: str = field(default="pending", compare=False)


class Outbox:
    def __init__(self, items):
        self.items, self.pending, self.too_long_for = items, list(items), []
        self.wait_until, self.last_try, self.refused, self.probe, self.known, self.refusals = 0, -60, False, None, None, 0

    def done(self):
        return not self.pending and all(item.state != "sent" for item in self.items)

    def hello(self, hello, first):
        """Handles a Hello: a greater limit permits long hexes, and some Hellos end the pause after a refusal."""
        self.pending += self.too_long_for
        self.too_long_for = []
        heapq.heapify(self.pending)
        if not first or self.known and (hello.boot != self.known[0] or hello.limit > self.known[1]):
            self.wait_until = min(self.wait_until, max(now(), self.last_try + 5))
        self.known = (hello.boot, hello.limit)

    def next(self, session):
        """The next Store as a frame for the session, or None."""
        while self.pending and now() >= self.wait_until:
            waiting = session.stores()
            if waiting and (self.refused or len(waiting) >= session.other.window):
                return None
            item = self.pending[0]
            frame = (f'{{"versionID":"1.0.0","operationType":"Store","jmObjectType":"Hex","messageID":"{item.message_id}",'
                     f'"sequence":{session.sent + 1},"jmObject":{item.body}}}').encode()
            if len(frame) > session.other.limit:
                heapq.heappop(self.pending)
                if session.other.limit >= MIB:
                    item.state = "rejected tooLarge"
                else:
                    self.too_long_for.append(item)
                session.peer.outbox_changed()
                continue
            if waiting and sum(size for _, size in waiting) + len(frame) > UNACKNOWLEDGED_BYTES:
                return None
            heapq.heappop(self.pending)
            item.state, self.last_try = "sent", now()
            self.probe = item if self.refused else None
            session.use_number(item, len(frame))
            return len(frame).to_bytes(4, "big") + frame
        return None

    def again(self, item):
        item.state = "pending"
        heapq.heappush(self.pending, item)

    def refuse(self, item, code, retry_after):
        self.again(item)
        self.wait_until, self.refused, self.probe = now() + retry_after, True, None
        self.refusals += 1
        event("refused", index=item.index, code=code, retryAfter=retry_after)

    def settle(self, item, state):
        item.state = state
        if item is self.probe:
            self.refused, self.probe = False, None

    def counts(self):
        states = [item.state if item.state != "pending" else "waiting" for item in self.items]
        return {state: states.count(state) for state in sorted(set(states))}


# ---- A session --------------------------------------------------------------------------------------------------------------------

class End(Exception):
    """The session ends: with our own Bye (mine), or with the other side's Bye or disconnection."""

    def __init__(self, code, mine=True):
        super().__init__(code)
        self.code, self.mine = code, mine


@dataclass
class Hello:
    name: str
    boot: str
    limit: int
    window: int
    features: list


class Session:
    def __init__(self, peer, reader, writer, dialled, connected):
        self.peer, self.reader, self.writer, self.dialled, self.connected = peer, reader, writer, dialled, connected
        self.fingerprint = proven_key(writer)
        self.key, self.uuid = self.fingerprint.hex(), uuid_from(self.fingerprint)
        self.other, self.legacy, self.ended = None, False, None
        self.stop, self.wake = asyncio.get_running_loop().create_future(), asyncio.Event()
        self.control, self.owed, self.pong = [], [], None  # frames to be written before Stores
        self.sent, self.through, self.unacknowledged = 0, 0, {}  # own sequence numbers; unacknowledged: number -> (Item or None, bytes)
        self.heard, self.undecodable, self.strikes = 0, 0, 0  # the other peer's sequence numbers
        self.refusal, self.refused = None, set()  # the code of a temporary refusal in effect, and the ids that end it
        self.last_frame = self.last_receipt = self.last_ping = self.last_work = now()
        self.question, self.answer, self.told_limit = None, None, 0
        self.say_hello()

    def trusted(self):
        return self.key in self.peer.identity.trusted

    # -- writing

    def say(self, operation, body=None, **members):
        self.control.append(encode(operation, body, **members))
        self.wake.set()

    def say_hello(self):
        self.told_limit = max(self.told_limit, TRUSTED_FRAME if self.trusted() else STRANGER_FRAME)
        identity = self.peer.identity
        self.say("Hello", {"uuid": printed(identity.uuid), "name": self.peer.name, "boot": identity.boot, "protocols": [1],
                           "features": self.peer.features, "maxFrameBytes": self.told_limit, "window": WINDOW})

    def close(self, code):
        if not self.stop.done():
            self.stop.set_result(code)

    def stores(self):
        return [(item, size) for item, size in self.unacknowledged.values() if item]

    def use_number(self, item=None, size=0):
        self.sent += 1
        if not self.unacknowledged:
            self.last_receipt = now()
        self.unacknowledged[self.sent] = (item, size)
        return self.sent

    def next_receipt(self):
        covered, status, through, rejected, room = 0, None, 0, [], (self.other.limit if self.other else STRANGER_FRAME) - 300
        for number, outcome in self.owed:
            if isinstance(outcome, dict):
                room -= len(dump(outcome)) + 20
                if room < 0 and covered:
                    break
                rejected.append({"sequence": number, **outcome})
            elif outcome and status not in (None, outcome):
                break
            else:
                status = outcome or status
            covered, through = covered + 1, number
        del self.owed[:covered]
        body = {"through": through}
        if status:
            body["status"] = status[0]
            if status[0] == "duplicate":
                body["of"] = status[1]
        return encode("Ack", {**body, "rejected": rejected} if rejected else body)

    def next_frame(self):
        if self.control:
            return self.control.pop(0)
        if self.owed:
            return self.next_receipt()
        if self.pong is not None:
            token, self.pong = self.pong, None
            return encode("Pong", **token)
        if self.other and self.peer.outbox and not self.peer.cloned():
            return self.peer.outbox.next(self)
        return None

    async def write(self):
        while True:
            await self.wake.wait()
            self.wake.clear()
            while frame := self.next_frame():
                if self.writer.is_closing():
                    raise End("lost", mine=False)
                self.writer.write(frame)
                await self.writer.drain()
                await asyncio.sleep(0)  # drain() alone may starve the reader

    # -- reading

    async def read(self):
        buffer = bytearray()
        while data := await self.reader.read(256 * KIB):
            buffer += data
            self.last_frame = now() if len(buffer) >= 5 else self.last_frame
            try:
                self.take_frames(buffer)
            finally:  # frames before a fault or a Bye are stored and acknowledged too
                if self.peer.inbox.new:
                    self.peer.inbox.commit()
                    event("stored", count=self.peer.count("stored"), held=self.peer.count("held"), total=len(self.peer.inbox.states))
                self.wake.set()
        raise End("lost", mine=False)

    def take_frames(self, buffer):
        at = 0
        while len(buffer) - at >= 4:
            length = int.from_bytes(buffer[at:at + 4], "big")
            if not 1 <= length <= self.limit():
                raise End("frameLength")
            if len(buffer) - at - 4 < length:
                break
            self.take(bytes(buffer[at + 4:at + 4 + length]))
            at += 4 + length
        del buffer[:at]

    def limit(self):
        if self.other:
            return self.told_limit
        return STRANGER_FRAME if self.legacy else FIRST_FRAME

    def take(self, data):
        try:
            frame = decode(data)
        except Undecodable:
            frame = Frame(fault="malformed")
            self.undecodable += 1
        if not self.other and frame.operation not in ("Hello", "Bye"):
            if self.dialled:
                raise End("identityMismatch")
            self.legacy = True
        if frame.operation in UNNUMBERED:
            frame.sequence = None
        elif frame.sequence:
            self.take_number(frame.sequence)
        if frame.operation not in ("Ping", "Pong"):
            self.last_work = now()
        outcome = self.store(frame) if frame.operation == "Store" else self.handle(frame)
        if frame.sequence:
            self.owed.append((frame.sequence, outcome))
        if frame.fault == "malformed":
            self.strikes += 1
            if self.strikes == 16:
                raise End("tooManyErrors")

    def take_number(self, number):
        if not 0 <= number - self.heard - 1 <= self.undecodable:
            raise End("sequenceFault")
        self.owed += [(missing, {"code": "malformed", "message": ""}) for missing in range(self.heard + 1, number)]
        self.heard, self.undecodable = number, 0

    def handle(self, frame):
        """Performs an operation other than Store; returns its refusal, if any."""
        if frame.operation == "Hello":
            self.take_hello(frame.body if not frame.fault else Obj())
        elif frame.fault:
            return {"code": frame.fault, "message": ""}
        elif frame.operation == "Ack":
            self.take_receipt(frame.body)
        elif frame.operation == "Ping":
            self.pong = {} if frame.message is None else {"message": frame.message}
        elif frame.operation == "Pong" and frame.message == self.question and self.answer:
            self.answer.set()
        elif frame.operation == "Bye":
            raise End(frame.message or "", mine=False)
        elif frame.operation == "Alert":
            event("alert", peer=printed(self.uuid), trusted=self.trusted(), message=frame.message)
        elif frame.operation == "Pair" and self.other:
            self.peer.pairing.take(self, frame.body)
        elif frame.operation == "FileDial" and "files" not in self.peer.features:
            return {"code": "unsupportedOperation", "message": ""}
        elif frame.operation in ("FileDial", "ListNews") and self.other:
            self.peer.list_frame(self, frame)
        return None

    def take_hello(self, body):
        boot = text_of(body.get("boot"))
        if uuid_of(body.get("uuid")) != self.uuid or not re.fullmatch("[0-9a-fA-F]{16}", boot):
            raise End("identityMismatch")
        protocols = body.get("protocols")
        if isinstance(protocols, list) and 1 not in [integer_of(version, 1, 2 ** 31) for version in protocols]:
            raise End("protocolMismatch")
        hello = Hello(text_of(body.get("name")), boot.lower(),
                      max(FIRST_FRAME, min(LARGEST_FRAME, integer_of(body.get("maxFrameBytes"), 0, 2 ** 63 - 1) or MIB)),
                      max(1, min(65_536, integer_of(body.get("window"), 0, 2 ** 63 - 1) or 1024)),
                      list(filter(is_text, features)) if isinstance(features := body.get("features"), list) else [])
        first, before = not self.other, self.other or hello
        if hello.boot != before.boot:
            raise End("identityMismatch")
        hello.limit, hello.window = max(hello.limit, before.limit), max(hello.window, before.window)
        self.other = hello
        if first:
            self.peer.opened(self)
        if self.peer.outbox:
            self.peer.outbox.hello(hello, first)

    def store(self, frame):
        if frame.fault:
            return {"code": frame.fault, "message": ""}
        message_id = printed(frame.message_id) if frame.message_id else None
        if not self.refusal or message_id in self.refused:
            self.refusal, self.refused = None, set()
        known = self.peer.inbox.states.get((self.key, message_id))
        code = self.refusal or self.peer.reason_to_refuse(self, known)
        if code:
            if message_id:
                self.refusal = code
                self.refused.add(message_id)
            return {"code": code, "message": "", "retryAfter": RETRY_AFTER}
        state = "stored" if self.trusted() else "held"
        self.peer.batch.append("duplicate" if known else state)
        if known:
            return "duplicate", known
        self.peer.inbox.add(self.key, message_id or printed(new_message_id()), state, frame.body)
        return state, None

    def take_receipt(self, body):
        through, rejected = integer_of(body.get("through"), self.through + 1, self.sent), {}
        for entry in body.get("rejected") or []:
            number = integer_of(entry.get("sequence"), self.through + 1, through or 0) if isinstance(entry, Obj) else None
            if not number or number in rejected:
                raise End("receiptFault")
            rejected[number] = entry
        covered = [number for number in self.unacknowledged if number <= (through or 0)]
        status = text_of(body.get("status"))
        others = any(self.unacknowledged[number][0] for number in covered if number not in rejected)
        if not through or others and status not in ("stored", "held", "duplicate"):
            raise End("receiptFault")
        self.through, self.last_receipt = through, now()
        for number in covered:
            item, _ = self.unacknowledged.pop(number)
            code = text_of(rejected[number].get("code")) if number in rejected else None
            if item and code is None:
                self.peer.outbox.settle(item, f"duplicate of {'held' if body.get('of') == 'held' else 'stored'}"
                                        if status == "duplicate" else status)
            elif item and code in PERMANENT:
                self.peer.outbox.settle(item, f"rejected {code}")
            elif item:
                seconds = integer_of(rejected[number].get("retryAfter"), 0, 2 ** 63 - 1)
                code = code if code in TEMPORARY else "internal"
                self.peer.outbox.refuse(item, code, 60 if seconds is None else max(5, min(3600, seconds)))
        self.peer.outbox_changed()

    # -- time

    async def tick(self):
        while True:
            await asyncio.sleep(0.25)
            silent, busy = now() - self.last_frame, bool(self.unacknowledged)
            if not self.other and not self.legacy and now() - self.connected > 5:
                raise End("helloTimeout")
            if silent > (20 if busy else 45):
                raise End("silent")
            if busy and now() - self.last_receipt > 30:
                raise End("receiptTimeout")
            quiet = max(silent, now() - self.last_receipt) if busy else silent
            if self.other and quiet > (7 if busy else 15) and now() - self.last_ping > (7 if busy else 15):
                self.last_ping = now()
                self.say("Ping", message=secrets.token_hex(8), **({"sequence": self.use_number()} if busy else {}))
            if not self.trusted() and not self.peer.busy_with(self) and now() - self.last_work > 60:
                raise End("idle")
            self.wake.set()

    async def answers(self):
        """Whether a Ping is answered within 5 s."""
        self.question, self.answer = secrets.token_hex(8), asyncio.Event()
        self.say("Ping", message=self.question)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.answer.wait(), 5)
        return self.answer.is_set()

    async def wait_for_stop(self):
        raise End(await self.stop)

    async def run(self):
        jobs = [asyncio.create_task(job()) for job in (self.read, self.write, self.tick, self.wait_for_stop)]
        done, others = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
        for job in others:
            job.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        errors = [job.exception() for job in done]
        self.ended = next((error for error in errors if isinstance(error, End)), None)
        if not self.ended:
            if not isinstance(errors[0], OSError):
                raise errors[0]
            self.ended = End("lost", mine=False)
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self.say_bye(), 2)
        self.writer.close()
        for item, _ in self.stores():
            self.peer.outbox.again(item)
        event("bye", peer=printed(self.uuid), code=self.ended.code, by="us" if self.ended.mine else "them")

    async def say_bye(self):
        if not self.ended.mine:
            return
        while self.control:
            self.writer.write(self.control.pop(0))
        while self.owed:
            self.writer.write(self.next_receipt())
        self.writer.write(encode("Bye", message=self.ended.code))
        await self.writer.drain()
        while await self.reader.read(256 * KIB):  # data in transit, so that a reset does not discard the Bye
            pass


# ---- Pairing ----------------------------------------------------------------------------------------------------------------------

@dataclass
class Exchange:
    session: Session
    asker: bool
    deadline: float
    nonce: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    commitment: bytes = None
    digits: str = None
    yes: bool = False
    confirmed: bool = False


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def bytes32(value):
    with contextlib.suppress(ValueError):
        if is_text(value) and len(value) == 44:
            return base64.b64decode(value, validate=True)
    return b""


class Pairing:
    def __init__(self, peer, on=False, asks=False):
        self.peer, self.asks, self.until = peer, asks, now() + 120 if on or asks else 0
        self.tries, self.failures, self.failures_of, self.exchange, self.next_ask = 5, 0, {}, None, 0
        self.result, self.answers = None, None

    def on(self, session):
        recent = [at for at in self.failures_of.get(session.key, []) if now() - at < 600]
        return now() < self.until and self.tries > 0 and self.failures < 3 and len(recent) < 3

    def say(self, session, step, **members):
        session.say("Pair", {"step": step, **members})

    def ask(self, session):
        self.exchange = Exchange(session, True, now() + 5)
        commitment = sha256(b"hexlist-pair-1", self.exchange.nonce, self.peer.identity.fingerprint, session.fingerprint)
        self.say(session, "commit", commitment=base64.b64encode(commitment).decode())

    def take(self, session, body):
        step, exchange = text_of(body.get("step")), self.exchange
        mine = exchange and exchange.session is session
        if step == "commit":
            self.take_commit(session, bytes32(body.get("commitment")))
        elif not mine:
            return
        elif step == "cancel":
            self.next_ask = now() + 2
            self.end(failed=bool(exchange.digits), gave_up=not exchange.asker)
        elif step == "nonce" and exchange.asker and not exchange.digits and len(bytes32(body.get("nonce"))) == 32:
            self.tries -= 1
            self.say(session, "reveal", nonce=base64.b64encode(exchange.nonce).decode())
            self.show(exchange.nonce, bytes32(body.get("nonce")))
        elif step == "reveal" and not exchange.asker and not exchange.digits:
            nonce = bytes32(body.get("nonce"))
            if sha256(b"hexlist-pair-1", nonce, session.fingerprint, self.peer.identity.fingerprint) == exchange.commitment:
                self.show(nonce, exchange.nonce)
            else:
                self.cancel("the reveal does not fit", failed=True)
        elif step == "confirm" and exchange.digits and not exchange.confirmed:
            exchange.confirmed = True
            self.complete()
        else:
            self.cancel("out of order", failed=bool(exchange.digits))

    def take_commit(self, session, commitment):
        exchange = self.exchange
        if exchange and exchange.session is session:
            if not exchange.asker or exchange.digits:
                return self.cancel("out of order", failed=bool(exchange.digits))
            if self.peer.identity.uuid.bytes > session.uuid.bytes:
                return None
            exchange = None
        if exchange or not self.on(session) or len(commitment) != 32:
            return self.say(session, "cancel", message="nobody takes this")
        self.tries -= 1
        self.exchange = Exchange(session, False, now() + 5, commitment=commitment)
        return self.say(session, "nonce", nonce=base64.b64encode(self.exchange.nonce).decode())

    def show(self, nonce_a, nonce_b):
        exchange, own = self.exchange, self.peer.identity.fingerprint
        keys = (own, exchange.session.fingerprint) if exchange.asker else (exchange.session.fingerprint, own)
        value = int.from_bytes(sha256(b"hexlist-sas-1", *keys, nonce_a, nonce_b)[:8], "big")
        exchange.digits, exchange.deadline = f"{value % 1_000_000:06}", now() + 120
        event("digits", digits=exchange.digits, peer=printed(exchange.session.uuid), name=exchange.session.other.name)
        if not self.answers:
            self.answers = threading.Thread(target=self.read_answers, args=(asyncio.get_running_loop(),), daemon=True)
            self.answers.start()

    def read_answers(self, loop):
        for line in sys.stdin:
            loop.call_soon_threadsafe(self.answered, line.strip())
        with contextlib.suppress(RuntimeError):  # the loop may be closed already
            loop.call_soon_threadsafe(self.answered, "")

    def answered(self, line):
        exchange = self.exchange
        if exchange and exchange.digits and not exchange.yes:
            if line != "yes":
                return self.cancel("no", failed=True)
            exchange.yes, exchange.deadline = True, exchange.deadline + 10
            self.say(exchange.session, "confirm")
            self.complete()

    def complete(self):
        exchange = self.exchange
        if exchange.yes and exchange.confirmed:
            session, self.exchange, self.until, self.result = exchange.session, None, 0, True
            self.peer.identity.trust(session.fingerprint, session.other.name)
            self.peer.inbox.accept(session.key)
            session.say_hello()
            event("paired", peer=printed(session.uuid), fingerprint=session.key, name=session.other.name)

    def cancel(self, why, failed):
        self.say(self.exchange.session, "cancel", message=why)
        self.end(failed, gave_up=not self.exchange.asker)

    def end(self, failed, gave_up):
        """Handles the end of an exchange without trust; gave_up: the other side had this exchange's nonce."""
        if failed or gave_up:
            self.failures_of.setdefault(self.exchange.session.key, []).append(now())
        self.failures += failed
        self.exchange = None
        event("unpaired", failed=failed)
        if self.asks and failed:
            self.result = False
        if self.until and (not self.tries or self.failures >= 3):
            event("pairingOff", message="pairing was interrupted or interfered with; two who name each other are heard by nobody else")

    async def run(self):
        while True:
            await asyncio.sleep(0.1)
            exchange = self.exchange
            if exchange and exchange.session.ended:
                self.exchange = None
            elif exchange and now() > exchange.deadline:
                self.next_ask = now() + 2
                self.cancel("timeout", failed=bool(exchange.digits))
            for session in self.peer.sessions if self.asks and not self.exchange and now() >= self.next_ask else []:
                if self.on(session) and not session.ended:
                    self.ask(session)
                    break


# ---- A peer -----------------------------------------------------------------------------------------------------------------------

class Peer:
    features = []  # Examples/foreign-list.py has some

    def __init__(self, arguments, folder, identity):
        self.arguments, self.folder, self.identity = arguments, folder, identity
        self.name, self.inbox, self.batch = socket.gethostname(), Inbox(folder / "inbox.jsonl"), []
        self.outbox, self.sessions, self.refusals_left = None, [], getattr(arguments, "refuse", 0)
        self.boots, self.conflicts, self.cloned_at, self.tasks, self.stopping = {}, set(), -1000, set(), False
        self.pairing = Pairing(self, on=getattr(arguments, "pair", False), asks=arguments.command == "pair")

    def start(self, work):
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def count(self, state):
        found = self.batch.count(state)
        self.batch = [other for other in self.batch if other != state]
        return found

    def cloned(self):
        return now() - self.cloned_at < 100

    def busy_with(self, session):
        return self.outbox or self.pairing.asks or self.pairing.exchange and self.pairing.exchange.session is session

    def reason_to_refuse(self, session, known):
        if self.cloned():
            return "notAccepting"
        if self.refusals_left and not known:
            self.refusals_left -= 1
            return "quotaExceeded"
        return "quotaExceeded" if not known and not session.trusted() and self.inbox.held() >= HELD_QUOTA else None

    def outbox_changed(self):
        if self.outbox and self.outbox.done():
            for session in self.sessions:
                session.close("shutdown")

    def opened(self, session):
        """Both sides of the session have sent Hello."""
        if session.uuid == self.identity.uuid:
            if session.other.boot != self.identity.boot:
                self.cloned_at = now()
            raise End("self" if session.other.boot == self.identity.boot else "conflict")
        boots = self.boots.setdefault(session.uuid, {})
        boots[session.other.boot] = now()
        if session.uuid in self.conflicts:
            if any(now() - at < 100 for boot, at in boots.items() if boot != session.other.boot):
                raise End("conflict")
            self.conflicts.discard(session.uuid)
        event("session", peer=printed(session.uuid), name=session.other.name, trusted=session.trusted(), dialled=session.dialled,
              maxFrameBytes=session.other.limit, window=session.other.window)
        for older in self.sessions:
            if older.uuid == session.uuid:
                self.start(self.compare(older, session))
        self.sessions.append(session)

    async def compare(self, older, newer):
        """Handles two sessions with one peer. This program only listens or only dials, and redials only after a session has ended, so
        the other side dialled both. If they belong to one machine it ends the older one."""
        answered = await older.answers()
        if not answered:
            older.close("silent")
        elif not older.ended and older.other.boot != newer.other.boot:
            self.conflicts.add(newer.uuid)
            older.close("conflict")
            newer.close("conflict")

    async def serve(self, session):
        try:
            await session.run()
        finally:
            if session in self.sessions:
                self.sessions.remove(session)
                self.last_session = now()

    def list_frame(self, session, frame):
        """A FileDial or ListNews, which only a peer with these features takes."""

    def shut_down(self):
        self.stopping = True
        for session in self.sessions:
            session.close("shutdown")

    # -- listening

    async def listen(self):
        listener = self.listener()
        event("listening", port=listener.getsockname()[1], uuid=printed(self.identity.uuid))
        context, loop = self.identity.tls(server=True), asyncio.get_running_loop()
        accepting = asyncio.create_task(self.accept_all(listener, context, loop))
        while not self.stopping:
            await asyncio.sleep(0.1)
        accepting.cancel()
        while self.sessions:
            await asyncio.sleep(0.05)
        return 0

    def listener(self):
        remembered = self.folder / "port"
        wanted = self.arguments.port or (int(remembered.read_text()) if remembered.exists() else 24391)
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self.arguments.bind, wanted))
        except OSError:
            if self.arguments.port:
                raise
            listener.bind((self.arguments.bind, 0))
        remembered.write_text(str(listener.getsockname()[1]))
        listener.listen()
        listener.setblocking(False)
        return listener

    async def accept_all(self, listener, context, loop):
        while True:
            connection, _ = await loop.sock_accept(listener)
            self.start(self.accepted(connection, context, loop, now()))

    async def accepted(self, connection, context, loop, connected):
        reader = asyncio.StreamReader(limit=MIB)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=context, ssl_handshake_timeout=5)
        except (OSError, ssl.SSLError) as error:
            return event("handshakeFailed", error=str(error))
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            session = Session(self, reader, writer, dialled=False, connected=connected)
        except (ValueError, IndexError, StopIteration) as error:
            writer.close()
            return event("handshakeFailed", error=str(error))
        return await self.serve(session)

    # -- dialling

    async def dial(self):
        """Runs one session to its end. Returns the reason of its end, or None if it did not open."""
        connected = now()
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(
                self.arguments.host, self.arguments.port, ssl=self.dial_context, limit=MIB), 5)
        except (OSError, asyncio.TimeoutError) as error:
            return event("unreachable", error=str(error))
        try:
            session = Session(self, reader, writer, dialled=True, connected=connected)
            if self.arguments.expect and uuid.UUID(self.arguments.expect) != session.uuid:
                raise ValueError(f"{printed(session.uuid)} has answered")
        except (ValueError, IndexError, StopIteration) as error:
            writer.close()
            return event("otherIdentity", error=str(error))
        await self.serve(session)
        return session.ended

    async def keep_dialling(self, done, give_up):
        """Runs session after session, until done() or until none has opened for give_up seconds."""
        self.dial_context, pause, self.last_session = self.identity.tls(server=False), 0.5, now()
        while not self.stopping and not done() and now() - self.last_session < give_up:
            ended = await self.dial()
            if ended and (ended.code.startswith(("blocked", "self", "identityMismatch", "protocolMismatch"))):
                return ended.code.split(":")[0]
            if ended and ended.code != "lost" and not ended.code.startswith("conflict"):
                self.last_session, pause = now(), 0.5
            next_dial = max(now() + pause, self.outbox.wait_until if self.outbox else 0)
            while not self.stopping and not done() and now() < next_dial:
                await asyncio.sleep(0.1)
            pause = min(pause * 2, 15)
        return None

    async def send(self):
        lines = [line for line in Path(self.arguments.file).read_bytes().split(b"\n") if line.strip()]
        self.outbox, began = Outbox([self.item(index, line) for index, line in enumerate(lines, 1)]), now()
        why = await self.keep_dialling(self.outbox.done, self.arguments.give_up)
        if why == "blocked":
            for item in self.outbox.pending:
                item.state = "rejected blocked"
        counts = self.outbox.counts()
        event("summary", total=len(lines), seconds=round(now() - began, 3), refusals=self.outbox.refusals, counts=counts)
        return 0 if all(state in ("stored", "held", "duplicate of stored", "duplicate of held") for state in counts) else 1

    def item(self, index, line):
        body = parse(line)
        given = {name: text_of(body.get(name)) for name in ("senderUUID", "senderName")}
        filled = {"senderUUID": given["senderUUID"] or printed(self.identity.uuid), "senderName": given["senderName"] or self.name}
        key = f"{self.arguments.key_prefix}{index}".encode()
        message_id = uuid_from(sha256(b"hexlist-key-1", self.identity.uuid.bytes, key))
        return Item(index, printed(message_id), dump(known_and_kept(filled, body, ())))

    async def pair(self):
        asking = asyncio.create_task(self.keep_dialling(lambda: self.pairing.result is not None, 120))
        while not asking.done() and self.pairing.result is None and (now() < self.pairing.until or self.pairing.exchange):
            await asyncio.sleep(0.1)
        self.shut_down()
        await asking
        return 0 if self.pairing.result else 1

    async def run(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.shut_down)
        self.start(self.pairing.run())
        return await getattr(self, self.arguments.command)()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", required=True, type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("id")
    listen = commands.add_parser("listen")
    listen.add_argument("--port", type=int, default=0)
    listen.add_argument("--bind", default="127.0.0.1")
    listen.add_argument("--refuse", type=int, default=0, metavar="N", help="refuse the first N Stores with quotaExceeded")
    listen.add_argument("--pair", action="store_true", help="take requests to pair for 120 s")
    send, pair = commands.add_parser("send"), commands.add_parser("pair")
    for command in (send, pair):
        command.add_argument("host")
        command.add_argument("port", type=int)
        command.add_argument("--expect", metavar="UUID")
    send.add_argument("--key-prefix", default="line-")
    send.add_argument("--give-up", type=float, default=120, metavar="SECONDS", help="without a session for so long")
    send.add_argument("file")
    arguments = parser.parse_args()
    identity = Identity(arguments.state)
    if arguments.command == "id":
        print(json.dumps({"uuid": printed(identity.uuid), "fingerprint": identity.fingerprint.hex()}))
    else:
        sys.exit(asyncio.run(Peer(arguments, arguments.state, identity).run()))


if __name__ == "__main__":
    main()
