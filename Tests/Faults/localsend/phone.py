#!/usr/bin/python3 -I
"""A LocalSend device that is as strict as the app: protocol 2.2 as server and as client, and multicast discovery.

    phone.py identity FILE                      creates the key and the certificate if FILE is absent, prints the fingerprint
    phone.py serve --identity FILE [options]    a device with the app open; events on stdout, commands on stdin
    phone.py send --identity FILE --to HOST:PORT --pinned FINGERPRINT (--text TEXT | --link URL | PATH...)
    phone.py register --identity FILE --to HOST:PORT --pinned FINGERPRINT
    phone.py info --identity FILE --to HOST:PORT
    phone.py announce --identity FILE --port PORT

Every output is one JSON object per line. Events of `serve` have a member `event`: ready, registered, impostor, asked, text, accepted,
declined, aborted, file, ended, cancelled, refused, heard, found. `send`, `register` and `info` print `{"status", "body"}`, or `{"fault"}`.

`serve` follows the server of LocalSend 1.18: a client certificate is mandatory, and its dates and its own signature are checked; one
session at a time; a text is confirmed with 204 after a tap (`--answer ask` waits for the command `accept`); three wrong PINs of an
address lock it out; a wrong SHA-256 is 422, three attempts in all; the end of a connection that waits for an answer withdraws the
request. Commands: accept [N], decline, answer accept|decline|ask, pin [DIGITS], close, open, announce, quit.

Needs Python 3.9 and the program openssl, and no package.
"""

import argparse
import contextlib
import ctypes
import hashlib
import http.client
import http.server
import ipaddress
import json
import mimetypes
import os
import queue
import select
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid
import _ssl

API = "/api/localsend"
GROUP, GROUP6, PORT = "224.0.0.167", "ff12::fd3a:e420", 53317
# Seconds before each datagram of a burst, and the time limit of an answer to an announcement, as in the app.
BURST, REGISTER_LIMIT = (0.1, 0.5, 2.0), 0.5
WRONG_PINS, UPLOAD_ATTEMPTS, PIECE = 3, 3, 1 << 16


# MARK: Identity


class Identity:
    """A key, its self-signed certificate, and the SHA-256 of the certificate in upper-case hexadecimal digits."""

    def __init__(self, path):
        self.path = path
        with open(path) as file:
            text = file.read()
        begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
        self.der = ssl.PEM_cert_to_DER_cert(text[text.index(begin):text.index(end) + len(end)])
        self.fingerprint = hashlib.sha256(self.der).hexdigest().upper()

    @staticmethod
    def create(path, key="rsa"):
        """Writes an identity such as the app creates. `key`: rsa (2048 bits), ec (P-256), ed25519, or dart: rsa, with the empty names of
        1.16 and 1.17."""
        kind = {"ec": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "ed25519": ["ed25519"]}.get(key, ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"])
        with tempfile.TemporaryDirectory() as folder:
            private, data = os.path.join(folder, "key"), os.path.join(folder, "data")
            openssl("genpkey", "-algorithm", *kind, "-out", private)

            def sign(body):
                with open(data, "wb") as file:
                    file.write(body)
                return openssl("pkeyutl", "-sign", "-inkey", private, "-rawin", *([] if key == "ed25519" else ["-digest", "sha256"]), "-in", data)

            made = certificate(openssl("pkey", "-in", private, "-pubout", "-outform", "DER"), DART_NAME if key == "dart" else DART_NAME[:1],
                               sign=sign, algorithm={"ec": ECDSA_SHA256, "ed25519": ED25519}.get(key, RSA_SHA256))
            with open(private) as file:
                text = file.read() + ssl.DER_cert_to_PEM_cert(made)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        return Identity(path)

    @staticmethod
    def load(path, key="rsa"):
        return Identity(path) if os.path.exists(path) else Identity.create(path, key)


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


# Object identifiers in DER: sha256WithRSAEncryption, ecdsa-with-SHA256, Ed25519, and the names CN, O, OU, L, ST and C, as the package
# basic_utils of Dart writes them, empty except for the first one.
RSA_SHA256, ECDSA_SHA256 = bytes.fromhex("06092a864886f70d01010b0500"), bytes.fromhex("06082a8648ce3d040302")
ED25519 = bytes.fromhex("06032b6570")
DART_NAME = [("550403", "LocalSend User")] + [(name, "") for name in ("55040a", "55040b", "550407", "550408", "550406")]


def der(tag, *parts):
    """Encodes a value in DER."""
    content = b"".join(parts)
    size = len(content)
    raw = size.to_bytes((size.bit_length() + 7) // 8 or 1, "big")
    return bytes([tag]) + (raw if size < 128 else bytes([0x80 | len(raw)]) + raw) + content


def certificate(public, names, serial=1, sign=lambda body: bytes(64), algorithm=ECDSA_SHA256):
    """A certificate of version 3 of a public key, all in DER. Without `sign` its own signature is wrong, which hexlistd does not check."""
    name = der(0x30, *(der(0x31, der(0x30, der(6, bytes.fromhex(kind)), der(0x0c, text.encode()))) for kind, text in names))
    validity = der(0x30, *(der(0x17, text) for text in (b"200101000000Z", b"491231235959Z")))
    body = der(0x30, der(0xa0, der(2, b"\2")), der(2, b"\1" + serial.to_bytes(8, "big")), der(0x30, algorithm), name, validity, name, public)
    return der(0x30, body, der(0x30, algorithm), der(3, b"\0", sign(body)))


def is_valid(der, known={}):
    """Whether the dates of a certificate include today, and its signature is made with its own key: the check of the app."""
    if der not in known:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(ssl.DER_cert_to_PEM_cert(der))
            file.flush()
            checked = subprocess.run(["openssl", "verify", "-check_ss_sig", "-CAfile", file.name, file.name],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        known[der] = checked.returncode == 0
    return known[der]


# MARK: TLS

VERIFY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
ACCEPT_ANY = VERIFY(lambda store, argument: 1)


def server_context(identity):
    """Requires a certificate of the client, of any issuer, and a signature with its key.

    Python's module can only require a certificate of a known issuer, so OpenSSL is called directly: the SSL_CTX is the first
    member of Python's object.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.path)
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["http/1.1"])
    library = ctypes.CDLL(_ssl.__file__)
    library.SSL_CTX_set_cert_verify_callback.argtypes = (ctypes.c_void_p, VERIFY, ctypes.c_void_p)
    library.SSL_CTX_set_cert_verify_callback.restype = None
    pointer = ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
    library.SSL_CTX_set_cert_verify_callback(pointer, ACCEPT_ANY, None)
    return context


class Mismatch(Exception):
    """The server has another certificate than the expected one. No byte of the request was sent."""


class Connection(http.client.HTTPSConnection):
    """A connection to a device whose certificate is compared before the request is sent. `identity` None: without a certificate."""

    def __init__(self, host, port, identity, pinned=None, timeout=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["http/1.1"])
        if identity:
            context.load_cert_chain(identity.path)
        super().__init__(host, port, timeout=timeout, context=context)
        self.pinned, self.seen = pinned, None

    def connect(self):
        super().connect()
        self.seen = hashlib.sha256(self.sock.getpeercert(True)).hexdigest().upper()
        if self.pinned and self.seen != self.pinned.upper():
            self.close()
            raise Mismatch(self.seen)


def request(target, path, identity, body=None, pinned=None, timeout=30, headers={}, method="POST"):
    """Returns the status, the body (decoded if it is JSON), and the fingerprint of the server. An iterator is sent in chunks."""
    with contextlib.closing(Connection(*target, identity, pinned, timeout)) as connection:
        is_json = isinstance(body, (dict, list))
        connection.request(method, API + path, json.dumps(body).encode() if is_json else body,
                           {**({"Content-Type": "application/json"} if is_json else {}), **headers},
                           encode_chunked=hasattr(body, "__next__") and "Content-Length" not in headers)
        response = connection.getresponse()
        data = response.read()
        with contextlib.suppress(ValueError):
            data = json.loads(data) if data else None
        return response.status, data if not isinstance(data, bytes) else data.decode("latin1"), connection.seen


# MARK: Server


def is_info(value):
    """Whether an object has the members that the app requires of a device."""
    return (isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("alias", "version", "fingerprint"))
            and is_number(value.get("port"), 65535) and value.get("protocol") in ("http", "https"))


def is_file(value):
    return (isinstance(value, dict) and all(isinstance(value.get(name), str) for name in ("id", "fileName", "fileType"))
            and is_number(value.get("size"), (1 << 64) - 1)
            and all(isinstance(value.get(name), (str, type(None))) for name in ("sha256", "preview")))


def is_number(value, largest):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest


class Session:
    """The only session of a device: pending until the user answers, then active until each accepted file has a result."""

    def __init__(self, address):
        self.id, self.address = str(uuid.uuid4()), address
        self.files = None
        self.answers = queue.SimpleQueue()
        self.wake, self.waiting = socket.socketpair()

    def answer(self, value):
        self.answers.put(value)
        self.wake.send(b"x")

    def close(self):
        self.wake.close()
        self.waiting.close()


class Refusal(Exception):
    def __init__(self, status, message):
        self.status, self.message = status, message


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        self.phone = self.server.phone
        self.cert = None
        self.request.settimeout(self.phone.options.handshake_limit)
        self.request = self.server.context.wrap_socket(self.request, server_side=True, do_handshake_on_connect=False)
        super().setup()

    def handle(self):
        try:
            self.request.do_handshake()
            der = self.request.getpeercert(True)
            self.cert = hashlib.sha256(der).hexdigest().upper()
            if not is_valid(der):
                raise ssl.SSLError("the certificate is expired, or its signature is not its own")
            self.request.settimeout(None)
        except OSError as fault:
            self.phone.tell("refused", address=self.client_address[0], fault=str(fault))
            return
        with contextlib.suppress(OSError, EOFError, ValueError):
            super().handle()

    def finish(self):
        with contextlib.suppress(OSError):
            super().finish()
        with contextlib.suppress(OSError, ValueError):
            self.request.unwrap()

    def do_POST(self):
        self.answer("POST")

    def do_GET(self):
        self.answer("GET")

    def answer(self, method):
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query))
        operation = {
            ("GET", "/v1/info"): self.info, ("GET", "/v2/info"): self.info, ("POST", "/v2/register"): self.register,
            ("POST", "/v2/prepare-upload"): self.prepare, ("POST", "/v2/upload"): self.upload, ("POST", "/v2/cancel"): self.cancel,
        }.get((method, parts.path.removeprefix(API)) if parts.path.startswith(API) else None)
        try:
            if not operation:
                raise Refusal(404, "Status code: 404 Not Found")
            self.reply(*operation(query))
        except Refusal as refusal:
            # A body that was not read would be taken for the next request.
            self.close_connection = True
            self.reply(refusal.status, {"message": refusal.message})

    def reply(self, status, value=None):
        body = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        if body:
            self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass

    def pieces(self):
        """The body of the request, whether it comes in chunks or with its length. Throws EOFError if it ends early."""
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            while size := int(self.rfile.readline(64).split(b";")[0] or b"-1", 16):
                if size < 0:
                    raise EOFError
                yield self.exactly(size)
                self.rfile.readline(8)
            while self.rfile.readline(1024).strip():
                pass
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            piece = self.exactly(min(left, PIECE))
            left -= len(piece)
            yield piece

    def exactly(self, size):
        data = self.rfile.read(size)
        if len(data) != size:
            raise EOFError
        return data

    def json(self, is_right):
        try:
            value = json.loads(b"".join(self.pieces()))
        except ValueError:
            value = None
        if not is_right(value):
            raise Refusal(400, "Invalid JSON body")
        return value

    def info(self, query):
        return 200, self.phone.info(short=True)

    def register(self, query):
        info = self.json(is_info)
        proven = info["fingerprint"].upper() == self.cert
        self.phone.tell("registered" if proven else "impostor", address=self.client_address[0], certificate=self.cert, info=info)
        return 200, self.phone.info(short=True)

    def prepare(self, query):
        phone, address = self.phone, self.client_address[0]
        if phone.pin:
            if phone.wrong_pins.get(address, 0) >= WRONG_PINS:
                raise Refusal(429, "Too many requests")
            if "pin" not in query:
                phone.tell("pin", given=None)
                raise Refusal(401, "PIN required")
            if query["pin"] != phone.pin:
                phone.wrong_pins[address] = phone.wrong_pins.get(address, 0) + 1
                phone.tell("pin", given=query["pin"])
                raise Refusal(401, "Invalid PIN")
            phone.wrong_pins.pop(address, None)
        value = self.json(lambda value: isinstance(value, dict) and is_info(value.get("info")) and isinstance(value.get("files"), dict)
                          and all(is_file(file) for file in value["files"].values()))
        files = value["files"]
        if phone.statuses:
            status = phone.statuses.pop(0)
            phone.tell("answered", status=status)
            raise Refusal(status, "Status of the test")
        if not files:
            raise Refusal(400, "No files provided")
        with phone.lock:
            if phone.session:
                phone.tell("busy", certificate=self.cert)
                raise Refusal(409, "Blocked by another session")
            session = phone.session = Session(address)
        try:
            return self.decide(session, value["info"], files)
        except BaseException:
            with phone.lock:
                phone.session = None
            raise
        finally:
            session.close()

    def decide(self, session, info, files):
        """The user's answer. A text is shown and confirmed; files are accepted, some of them, or declined."""
        phone, first = self.phone, next(iter(files.values()))
        is_text = len(files) == 1 and first["fileType"].startswith("text") and first.get("preview") is not None
        phone.tell("asked", session=session.id, certificate=self.cert, alias=info["alias"], info=info,
                   text=first.get("preview") if is_text else None, files=list(files.values()))
        if phone.answer != "ask":
            session.answer(phone.answer)
        answer = self.wait(session)
        if answer is None:
            phone.tell("aborted", session=session.id)
            raise EOFError
        if answer == "cancel":
            phone.tell("aborted", session=session.id)
            raise Refusal(403, "Cancelled by sender")
        if answer == "decline":
            phone.tell("declined", session=session.id)
            raise Refusal(403, "Rejected")
        if is_text and not phone.options.text_as_file:
            with phone.lock:
                phone.session = None
            phone.tell("text", text=first["preview"], certificate=self.cert, alias=info["alias"])
            return 204,
        kept = dict(list(files.items())[:int(answer.partition(" ")[2] or phone.options.accept_files or len(files))])
        session.files = {key: {"dto": file, "token": str(uuid.uuid4()), "state": "pending", "attempts": 0} for key, file in kept.items()}
        phone.tell("accepted", session=session.id, files=[file["fileName"] for file in kept.values()])
        return 200, {"sessionId": session.id, "files": {key: file["token"] for key, file in session.files.items()}}

    def wait(self, session):
        """Waits for the user's answer. Returns it, or None if the sender closes the connection before."""
        while True:
            ready, _, _ = select.select([session.waiting, self.request], [], [])
            if session.waiting in ready:
                return session.answers.get()
            try:
                if not self.request.recv(1):
                    return None
            except OSError:
                return None

    def upload(self, query):
        phone = self.phone
        if not all(name in query for name in ("sessionId", "fileId", "token")):
            raise Refusal(400, "Missing parameters")
        with phone.lock:
            session = phone.session
            file = session and session.files and session.id == query["sessionId"] and session.address == self.client_address[0] \
                and session.files.get(query["fileId"])
            if not file or file["token"] != query["token"] or file["state"] != "pending":
                raise Refusal(403, "Invalid token or IP address")
            file["state"], file["attempts"] = "busy", file["attempts"] + 1
        dto, state = file["dto"], "failed"
        try:
            digest, size, target = hashlib.sha256(), 0, phone.target(dto["fileName"])
            with open(target, "wb") as output:
                for piece in self.pieces():
                    size += len(piece)
                    if size > dto["size"]:
                        break
                    digest.update(piece)
                    output.write(piece)
            if size != dto["size"]:
                raise Refusal(500, "Status code: 500 Internal Server Error")
            if phone.corrupt:
                phone.corrupt -= 1
                digest.update(b"a bit that changed")
            if dto.get("sha256") and dto["sha256"].lower() != digest.hexdigest():
                state = "pending" if file["attempts"] < UPLOAD_ATTEMPTS else "failed"
                phone.tell("mismatch", name=dto["fileName"], attempt=file["attempts"])
                raise Refusal(422, "Checksum mismatch")
            state = "done"
            phone.tell("file", name=dto["fileName"], size=size, sha256=digest.hexdigest(), path=target, certificate=self.cert,
                       metadata=dto.get("metadata"), chunked="Transfer-Encoding" in self.headers)
            return 200,
        finally:
            with phone.lock:
                file["state"] = state
                ended = phone.session is session and all(one["state"] in ("done", "failed") for one in session.files.values())
                if ended:
                    phone.session = None
            if ended:
                phone.tell("ended", session=session.id, files=[one["state"] for one in session.files.values()])

    def cancel(self, query):
        with self.phone.lock:
            session, name = self.phone.session, query.get("sessionId")
            is_own = session and session.address == self.client_address[0] and name in (None, session.id)
            if is_own and session.files is None:
                session.answer("cancel")
                return 200,
            if is_own and name:
                self.phone.session = None
        self.phone.tell("cancelled", session=name, own=bool(is_own))
        return 200,


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 64

    def __init__(self, phone, address, port):
        self.phone, self.context = phone, server_context(phone.identity)
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), Handler)

    def handle_error(self, request, client_address):
        self.phone.tell("fault", fault=repr(sys.exc_info()[1]))


# MARK: Device


class Phone:
    """A device with its server, its announcements, and the answers that its user gives."""

    def __init__(self, identity, options, tell):
        self.identity, self.options, self.tell = identity, options, tell
        self.answer, self.pin, self.wrong_pins = options.answer, options.pin, {}
        self.statuses, self.corrupt = list(options.status), options.corrupt
        self.lock, self.session, self.server, self.groups = threading.Lock(), None, None, None
        self.port = options.port

    def info(self, short=False, **more):
        value = {"alias": self.options.alias, "version": "2.2", "deviceModel": self.options.model, "deviceType": "mobile",
                 "fingerprint": self.options.claim or self.identity.fingerprint, "download": False}
        return value if short else {**value, "port": self.port, "protocol": "https", **more}

    def target(self, name):
        path = os.path.join(self.options.folder, *(part for part in name.split("/") if part not in ("", ".", "..")))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def open(self):
        """Starts the server and the discovery: the user opens the app."""
        self.server = Server(self, self.options.address, self.port)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.tell("ready", port=self.port, fingerprint=self.identity.fingerprint)
        if self.options.multicast:
            self.groups = Groups(self.options.interface, self.options.group_port, self.heard)
            self.announce()

    def close(self):
        """Closes the port without a farewell: the user closes the app."""
        server, self.server = self.server, None
        if server:
            server.shutdown()
            server.server_close()
        if self.groups:
            self.groups.close()
            self.groups = None

    def announce(self):
        def burst(groups):
            for delay in BURST:
                time.sleep(delay)
                groups.send(self.info(announce=True))
        if self.groups:
            threading.Thread(target=burst, args=(self.groups,), daemon=True).start()

    def heard(self, address, message):
        """Answers an announcement with a registration, with the announced certificate pinned."""
        if not is_info(message) or message["fingerprint"].upper() == self.identity.fingerprint:
            return
        self.tell("heard", address=address, info=message)

        def register():
            try:
                status, body, seen = request((address, message["port"]), "/v2/register", self.identity, self.info(),
                                             message["fingerprint"], REGISTER_LIMIT)
                self.tell("found", address=address, port=message["port"], fingerprint=seen, status=status, body=body)
            except (OSError, http.client.HTTPException, Mismatch) as fault:
                self.tell("lost", address=address, port=message["port"], fault=f"{type(fault).__name__}: {fault}")
        threading.Thread(target=register, daemon=True).start()

    def obey(self, line):
        """Carries out a command of the test. Returns false for `quit`."""
        word, _, rest = line.strip().partition(" ")
        with self.lock:
            pending = self.session if self.session and self.session.files is None else None
        if word in ("accept", "decline"):
            if pending:
                pending.answer(line.strip())
            else:
                self.tell("fault", fault=f"{word}: nobody waits for an answer")
        elif word == "answer":
            self.answer = rest
        elif word == "pin":
            self.pin, self.wrong_pins = rest or None, {}
        elif word == "status":
            self.statuses += [int(part) for part in rest.split()]
        elif word == "close":
            self.close()
            self.tell("closed")
        elif word == "open":
            self.open()
        elif word == "announce":
            self.announce()
        elif word:
            return False
        return True


# MARK: Discovery


class Groups:
    """The multicast groups on one IPv4 interface, or on all interfaces, and the IPv6 group if there is such an interface."""

    def __init__(self, interface, port, heard):
        self.port, self.heard, self.sockets = port, heard, []
        four = self.bind(socket.AF_INET, "0.0.0.0")
        four.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(GROUP) + socket.inet_aton(interface))
        if interface != "0.0.0.0":
            four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
        four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
        self.sockets.append((four, (GROUP, port)))
        for index, name in socket.if_nameindex():
            if interface != "0.0.0.0" or name == "lo":
                continue
            with contextlib.suppress(OSError):
                six = self.bind(socket.AF_INET6, "::")
                six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP,
                               socket.inet_pton(socket.AF_INET6, GROUP6) + struct.pack("@I", index))
                six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
                six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 1)
                self.sockets.append((six, (GROUP6, port, 0, index)))
        for one, _ in self.sockets:
            threading.Thread(target=self.receive, args=(one,), daemon=True).start()

    def bind(self, family, address):
        one = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        one.bind((address, self.port))
        return one

    def receive(self, one):
        while True:
            try:
                data, address = one.recvfrom(65536)
            except OSError:
                return
            if not data:
                return
            with contextlib.suppress(ValueError):
                host = address[0]
                if len(address) > 3 and address[3] and ipaddress.ip_address(host.partition("%")[0]).is_link_local:
                    host = host.partition("%")[0] + f"%{address[3]}"
                self.heard(host, json.loads(data))

    def send(self, message):
        for one, target in self.sockets:
            with contextlib.suppress(OSError):
                one.sendto(json.dumps(message).encode(), target)

    def close(self):
        for one, _ in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RD)
            one.close()
        self.sockets = []


# MARK: Sender


def described(path, name=None, checksum=True):
    """The announcement of a file, as the app sends it."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    times = os.stat(path)
    stamp = lambda seconds: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    return {"id": str(uuid.uuid4()), "fileName": name or os.path.basename(path), "size": times.st_size,
            "fileType": mimetypes.guess_type(path)[0] or "application/octet-stream",
            **({"sha256": digest.hexdigest()} if checksum else {}),
            "metadata": {"modified": stamp(times.st_mtime), "accessed": stamp(times.st_atime)}}


def message(text):
    data = text.encode()
    return {"id": str(uuid.uuid4()), "fileName": f"{uuid.uuid4()}.txt", "size": len(data), "fileType": "text/plain",
            "sha256": hashlib.sha256(data).hexdigest(), "preview": text}


def send(target, identity, options, info):
    """Sends a text or files. Returns the result that is printed."""
    files = [(message(text), text.encode()) for text in options.text + options.link]
    for path in options.paths:
        folders = os.walk(path) if os.path.isdir(path) else []
        found = [os.path.join(folder, name) for folder, _, names in folders for name in names] or [path]
        top = os.path.dirname(os.path.abspath(path))
        files += [(described(one, os.path.relpath(one, top), not options.no_checksum), one) for one in sorted(found)]
    if options.wrong_checksum:
        for dto, _ in files:
            dto["sha256"] = "0" * 64
    query = "?" + urllib.parse.urlencode({"pin": options.pin}) if options.pin else ""
    call = lambda path, body=None, headers={}: request(target, path, identity, body, options.pinned, options.limit, headers)
    status, body, seen = call("/v2/prepare-upload" + query, {"info": info, "files": {dto["id"]: dto for dto, _ in files}})
    result = {"status": status, "body": body, "certificate": seen, "uploads": []}
    if status != 200:
        return result
    if options.cancel:
        result["cancel"] = call("/v2/cancel?" + urllib.parse.urlencode({"sessionId": body["sessionId"]}))[0]
        return result
    for dto, content in files:
        token = body["files"].get(dto["id"])
        if token is None:
            continue
        path = "/v2/upload?" + urllib.parse.urlencode({"sessionId": body["sessionId"], "fileId": dto["id"], "token": token})
        for attempt in range(UPLOAD_ATTEMPTS):
            # The app of 1.18 sends chunks; 1.17 and older send the length.
            headers = {"Content-Length": str(dto["size"])} if options.length else {}
            status, answer, _ = call(path, pieces(content), headers)
            result["uploads"].append({"name": dto["fileName"], "status": status, "body": answer})
            if status != 422:
                break
    return result


def pieces(content):
    if isinstance(content, bytes):
        yield content
        return
    with open(content, "rb") as file:
        while piece := file.read(PIECE):
            yield piece


# MARK: Program


def host_and_port(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def parser():
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = top.add_subparsers(dest="command", required=True)

    def part(name, **keywords):
        one = parts.add_parser(name, **keywords)
        one.add_argument("--alias", default="Pixel 9", help="name that other devices show")
        one.add_argument("--model", default="Pixel 9")
        one.add_argument("--claim", help="announce this fingerprint instead of the own one")
        one.add_argument("--key", choices=("rsa", "ec", "ed25519", "dart"), default="rsa", help="kind of a new key")
        return one

    one = part("identity", help="create an identity and print its fingerprint")
    one.add_argument("identity", metavar="FILE")

    def with_identity(one):
        one.add_argument("--identity", required=True, metavar="FILE", help="created if it is absent")
        one.add_argument("--no-certificate", action="store_true", help="present no certificate, as versions before 1.16")

    one = part("serve", help="be a device with the app open")
    with_identity(one)
    one.add_argument("--address", default="127.0.0.1")
    one.add_argument("--port", type=int, default=0)
    one.add_argument("--pin")
    one.add_argument("--answer", choices=("accept", "decline", "ask"), default="accept")
    one.add_argument("--accept-files", type=int, metavar="N", help="accept only the first N files")
    one.add_argument("--text-as-file", action="store_true", help="accept a text with 200 and have it uploaded")
    one.add_argument("--status", type=int, action="append", default=[], help="answer one prepare-upload with this status; repeatable")
    one.add_argument("--corrupt", type=int, default=0, metavar="N", help="the checksums of the first N uploads are wrong")
    one.add_argument("--folder", default=".", help="folder of received files")
    one.add_argument("--handshake-limit", type=float, default=10, help="seconds of a TLS handshake")
    one.add_argument("--multicast", action="store_true", help="join the groups and announce this device")
    one.add_argument("--interface", default="0.0.0.0", help="IPv4 address of the interface of the group")
    one.add_argument("--group-port", type=int, default=PORT)

    one = part("announce", help="announce a device once")
    with_identity(one)
    one.add_argument("--port", type=int, required=True)
    one.add_argument("--protocol", choices=("http", "https"), default="https")
    one.add_argument("--interface", default="0.0.0.0")
    one.add_argument("--group-port", type=int, default=PORT)

    for name in ("send", "register", "info"):
        one = part(name)
        with_identity(one)
        one.add_argument("--to", required=True, type=host_and_port, metavar="HOST:PORT")
        one.add_argument("--pinned", metavar="FINGERPRINT")
        one.add_argument("--port", type=int, default=PORT, help="port in the own description")
        one.add_argument("--limit", type=float, default=150, help="seconds")
        if name == "send":
            one.add_argument("--text", action="append", default=[])
            one.add_argument("--link", action="append", default=[], metavar="URL")
            one.add_argument("paths", nargs="*", metavar="PATH", help="files and folders")
            one.add_argument("--pin")
            one.add_argument("--length", action="store_true", help="Content-Length instead of chunks")
            one.add_argument("--no-checksum", action="store_true")
            one.add_argument("--wrong-checksum", action="store_true")
            one.add_argument("--cancel", action="store_true", help="cancel once the files are accepted")
    return top


def tell(event, writing=threading.Lock(), **values):
    with writing:
        print(json.dumps({"event": event, **values}), flush=True)


def main():
    options = parser().parse_args()
    if options.command == "identity":
        print(json.dumps({"fingerprint": Identity.load(options.identity, options.key).fingerprint}))
        return
    identity = Identity.load(options.identity, options.key)
    if options.command == "serve":
        phone = Phone(identity, options, tell)
        phone.open()
        for line in sys.stdin:
            if not phone.obey(line):
                break
        phone.close()
        return
    info = {"alias": options.alias, "version": "2.2", "deviceModel": options.model, "deviceType": "mobile", "port": options.port,
            "fingerprint": options.claim or identity.fingerprint, "protocol": "https", "download": False}
    if options.command == "announce":
        groups = Groups(options.interface, options.group_port, lambda address, message: None)
        groups.send({**info, "protocol": options.protocol, "announce": True})
        print(json.dumps({"announced": info["fingerprint"]}))
        return
    own = None if options.no_certificate else identity
    try:
        if options.command == "send":
            result = send(options.to, own, options, info)
        else:
            method, body = ("POST", info) if options.command == "register" else ("GET", None)
            status, body, seen = request(options.to, f"/v2/{options.command}", own, body, options.pinned, options.limit, method=method)
            result = {"status": status, "body": body, "certificate": seen}
    except (OSError, http.client.HTTPException, Mismatch) as fault:
        result = {"fault": f"{type(fault).__name__}: {fault}"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
