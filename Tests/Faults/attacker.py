"""One connection to the attacked hexlistd, in any state, for the programs in this folder."""

import contextlib
import json
import select
import socket
import ssl
import struct
import time
import uuid

import rig

# Seconds after which a connection must have ended. The daemon's own timeouts are 5 (Hello), 45 (silence) and 60 (idle).
END_LIMIT = 120
FIRST_FRAME, STRANGER_FRAME, TRUSTED_FRAME = 8 << 10, 64 << 10, 1 << 20


def new_id():
    return str(uuid.uuid4()).upper()


def address(number):
    """Returns one of the attackers' loopback addresses, by its number. None is the trusted peer's address."""
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


class Attacker:
    """One connection to the victim, in any state."""

    def __init__(self, victim, source=0):
        self.victim = victim
        self.began = time.monotonic()
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(END_LIMIT)
        # `source` is an address, or the number of one of the attackers' addresses.
        self.socket.bind((source if isinstance(source, str) else address(source), 0))
        self.socket.connect(("127.0.0.1", victim.port))
        self.received = b""
        self.frames = []
        # The time when the victim closed the connection.
        self.ended = None

    @property
    def is_open(self):
        return self.socket.fileno() >= 0

    def tls(self, identity=None, version=ssl.TLSVersion.TLSv1_3, session=None, context=None):
        self.socket = (context or tls_context(identity, version)).wrap_socket(self.socket, session=session)
        return self

    def hello(self, identity, **others):
        value = {"uuid": identity.uuid, "name": "attacker", "boot": identity.boot, "protocols": [1], "features": [],
                 "maxFrameBytes": TRUSTED_FRAME, "window": 1024}
        self.write({"operationType": "Hello", "jmObjectType": "Peer", "jmObject": dict(value, **others)})
        return self

    def meet(self, identity, **others):
        """Exchanges both Hellos."""
        self.hello(identity, **others)
        self.await_frame("Hello")
        return self

    def write(self, *wrappers):
        self.socket.sendall(b"".join(framed(json.dumps(dict({"versionID": "1"}, **wrapper)).encode()) for wrapper in wrappers))

    def read_some(self):
        """Reads the next bytes of the victim. Returns false at the end of the stream, for any reason."""
        try:
            data = self.socket.recv(1 << 16)
        except (ConnectionResetError, BrokenPipeError, ssl.SSLError):
            return False
        except TimeoutError:
            raise rig.Failure(f"the victim left a connection open for {END_LIMIT} s that it had to close")
        self.received += data
        while len(self.received) >= 4:
            length = struct.unpack(">I", self.received[:4])[0]
            if len(self.received) < 4 + length:
                break
            try:
                self.frames.append(json.loads(self.received[4:4 + length]))
            except ValueError:
                raise rig.Failure(f"the victim sent something that is no frame: {self.received[:60]}")
            self.received = self.received[4 + length:]
            if self.frames[-1].get("operationType") == "Ping":
                with contextlib.suppress(OSError):
                    self.write({"operationType": "Pong", "message": self.frames[-1].get("message", "")})
        return bool(data)

    def await_frame(self, operation, place=0, matching=lambda frame: True):
        """Waits for the first frame with that operation."""
        while True:
            for frame in self.frames[place:]:
                if frame["operationType"] == operation and matching(frame):
                    return frame
            place = len(self.frames)
            if not self.read_some():
                raise rig.Failure(f"the victim closed a connection that was to go on: {self.bye() or 'without a word'}")

    def await_refusal(self, code):
        return self.await_frame("Ack", matching=lambda frame: any(entry["code"] == code for entry in frame["jmObject"].get("rejected", [])))

    def await_answers(self, last):
        """Waits for the receipts up to number `last`. Returns a rejection code or the receipt's status for each number."""
        receipt = self.await_frame("Ack", matching=lambda frame: frame["jmObject"]["through"] >= last)
        receipts = [frame["jmObject"] for frame in self.frames if frame["operationType"] == "Ack"]
        rejected = {entry["sequence"]: entry["code"] for each in receipts for entry in each.get("rejected", [])}
        return [rejected.get(number) or next(each.get("status", "used") for each in receipts if each["through"] >= number)
                for number in range(1, receipt["jmObject"]["through"] + 1)]

    def alive(self):
        """Checks that the connection still answers."""
        word = new_id()
        self.write({"operationType": "Ping", "message": word})
        self.await_frame("Pong", matching=lambda frame: frame.get("message") == word)

    def bye(self):
        return next((frame.get("message", "").split(":")[0] for frame in self.frames if frame["operationType"] == "Bye"), None)

    def await_end(self, code=None, silent=False):
        """Seconds from connecting until the victim closed the connection: with Bye `code`, or if `silent` without a byte."""
        while self.read_some():
            pass
        seconds = time.monotonic() - self.began
        if code and self.bye() != code:
            raise rig.Failure(f"closed with Bye {self.bye()} where {code} was due; frames: {self.frames[-3:]}")
        if silent and (self.frames or self.received):
            raise rig.Failure(f"a connection that was never let in was sent {self.frames or self.received}")
        self.close()
        return seconds

    def close(self, abruptly=False):
        with contextlib.suppress(OSError):
            if abruptly:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.socket.close()


def tls_context(identity=None, version=ssl.TLSVersion.TLSv1_3, protocols=("hexlist/1",)):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = version
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    if identity:
        context.load_cert_chain(identity.path)
    return context


def framed(body):
    return struct.pack(">I", len(body)) + body


def store(number, content, **others):
    return dict({"operationType": "Store", "jmObjectType": "Hex", "jmObject": content, "messageID": new_id(), "sequence": number}, **others)


def longest(values):
    return f"{max(values):.1f} s" if values else "none"


def readable(sockets, seconds):
    poll = select.poll()
    numbers = {each.fileno(): each for each in sockets}
    for number in numbers:
        poll.register(number, select.POLLIN)
    return [numbers[number] for number, _ in poll.poll(max(0, seconds * 1000))]


def drain(attackers, seconds):
    """Reads incoming bytes for the given time, and closes connections that the victim closed."""
    until = time.monotonic() + seconds
    while True:
        left = {one.socket: one for one in attackers if one.is_open}
        for ready in readable(left, max(0, until - time.monotonic())) if left else ():
            if not left[ready].read_some():
                left[ready].ended = time.monotonic()
                left[ready].close()
        if not left or time.monotonic() >= until:
            return
