"""A peer that is not hexlistd, for the programs in this folder: it sends a Hello and stores hexes over TLS (Docs/Protocol.md)."""

import base64
import concurrent.futures
import hashlib
import json
import os
import random
import socket
import ssl
import struct
import subprocess
import uuid

import rig


class Identity:
    """A key and its certificate. The peer UUID is derived from the key."""

    def __init__(self, folder, name="foreign"):
        rig.need("openssl")
        self.path, key, certificate = (os.path.join(folder, f"{name}.{kind}") for kind in ("pem", "key", "crt"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                        "/CN=foreign", "-days", "1", "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
        with open(self.path, "w") as file:
            for part in (key, certificate):
                with open(part) as pem:
                    file.write(pem.read())
        pem = subprocess.run(["openssl", "x509", "-in", self.path, "-noout", "-pubkey"], check=True, stdout=subprocess.PIPE, text=True)
        self.name_by(der_of(pem.stdout))

    def name_by(self, key):
        """Sets fingerprint and UUID. `key`: the public key in DER form (SubjectPublicKeyInfo)."""
        self.fingerprint = hashlib.sha256(key).digest()
        self.uuid = str(rig.uuid8(self.fingerprint)).upper()
        self.boot = hashlib.sha256(os.urandom(8)).hexdigest()[:16]


def identities(folder, count):
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        return list(workers.map(lambda number: Identity(folder, f"peer{number}"), range(count)))


def der_of(pem):
    return base64.b64decode("".join(line for line in pem.splitlines() if not line.startswith("-----")))


def pem_of(kind, der):
    return f"-----BEGIN {kind}-----\n{base64.encodebytes(der).decode()}-----END {kind}-----\n"


class Mint:
    """Any number of identities, a thousand a second: each key is the previous one plus one, in the first one's certificate. None of them
    has a valid signature, which peers do not check (Docs/Protocol.md, "Identity")."""

    P = 2**256 - 2**224 + 2**192 + 2**96 - 1
    G = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
         0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)

    def __init__(self, folder):
        self.folder = folder
        Identity(folder, "mint")
        path = os.path.join(folder, "mint.key")
        text = subprocess.run(["openssl", "ec", "-in", path, "-text", "-noout"], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
        digits = "".join(text.split("priv:")[1].split("pub:")[0].split()).replace(":", "")
        self.number = int(digits, 16)
        self.certificate = der_of(open(os.path.join(folder, "mint.crt")).read())
        place = self.certificate.index(bytes.fromhex("034200 04".replace(" ", "")))
        self.old = self.certificate[place + 4:place + 68]
        self.point = (int.from_bytes(self.old[:32], "big"), int.from_bytes(self.old[32:], "big"))
        self.count = 0

    def next(self):
        (x, y), (gx, gy) = self.point, self.G
        slope = (gy - y) * pow(gx - x, -1, self.P) % self.P
        nx = (slope * slope - x - gx) % self.P
        self.point = (nx, (slope * (x - nx) - y) % self.P)
        self.number += 1
        self.count += 1
        public = b"".join(part.to_bytes(32, "big") for part in self.point)
        key = bytes.fromhex("30770201010420") + self.number.to_bytes(32, "big") + bytes.fromhex(
            "a00a06082a8648ce3d030107a14403420004") + public
        identity = Identity.__new__(Identity)
        identity.path = os.path.join(self.folder, f"minted-{self.count}.pem")
        with open(identity.path, "w") as file:
            file.write(pem_of("EC PRIVATE KEY", key) + pem_of("CERTIFICATE", self.certificate.replace(self.old, public)))
        identity.name_by(bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004") + public)
        return identity


class Session:
    """One connection to a hexlistd, after both Hellos."""

    def __init__(self, identity, port, name="foreign", version="1"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["hexlist/1"])
        context.load_cert_chain(identity.path)
        bare = socket.create_connection(("127.0.0.1", port), timeout=60)
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(bare)
        self.buffer = b""
        self.sequence = 0
        self.through = 0
        # The reply to each number: (status, of) or (code, None).
        self.answers = {}
        self.write({"versionID": version, "operationType": "Hello", "jmObjectType": "Peer", "jmObject": {
            "uuid": identity.uuid, "name": name, "boot": identity.boot, "protocols": [1], "features": [], "maxFrameBytes": 1 << 20,
            "window": 1024}})
        self.hello = None
        while self.hello is None:
            self.read()

    def write(self, *wrappers):
        data = b""
        for wrapper in wrappers:
            body = json.dumps(dict({"versionID": "1"}, **wrapper)).encode()
            data += struct.pack(">I", len(body)) + body
        self.socket.sendall(data)

    def store(self, hexes):
        """Sends `(messageID, hex)`s without waiting. Returns their numbers."""
        wrappers, numbers = [], []
        for name, content in hexes:
            self.sequence += 1
            numbers.append(self.sequence)
            wrappers.append({"operationType": "Store", "jmObjectType": "Hex", "jmObject": content, "messageID": name,
                             "sequence": self.sequence})
        self.write(*wrappers)
        return numbers

    def read(self):
        """Reads one frame and answers it. Returns its wrapper."""
        while len(self.buffer) < 4 or len(self.buffer) < 4 + struct.unpack(">I", self.buffer[:4])[0]:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("hexlistd closed the connection")
            self.buffer += data
        size = struct.unpack(">I", self.buffer[:4])[0]
        wrapper = json.loads(self.buffer[4:4 + size])
        self.buffer = self.buffer[4 + size:]
        operation = wrapper["operationType"]
        if operation == "Hello":
            self.hello = wrapper["jmObject"]
        elif operation == "Ping":
            self.write({"operationType": "Pong", "message": wrapper.get("message", "")})
        elif operation == "Bye":
            raise ConnectionError(f"hexlistd said Bye: {wrapper.get('message')}")
        elif operation == "Ack":
            self.take(wrapper["jmObject"])
        return wrapper

    def take(self, receipt):
        refused = {entry["sequence"]: (entry["code"], None) for entry in receipt.get("rejected", [])}
        for number in range(self.through + 1, receipt["through"] + 1):
            self.answers[number] = refused.get(number) or (receipt.get("status"), receipt.get("of"))
        self.through = receipt["through"]

    def await_receipts(self):
        """Waits until every number has a reply."""
        while self.through < self.sequence:
            self.read()

    def deliver(self, hexes):
        """Sends `(messageID, hex)`s and waits. Returns the reply to each id."""
        hexes = list(hexes)
        numbers = self.store(hexes)
        self.await_receipts()
        return {name: self.answers[number][0] for (name, _), number in zip(hexes, numbers)}

    def close(self):
        self.socket.close()


def new_hexes(count, bytes=0):
    """Returns new `(messageID, hex)`s. `bytes` is the approximate size of a hex."""
    names = [str(uuid.UUID(int=random.getrandbits(128), version=4)).upper() for _ in range(count)]
    return [(name, dict(rig.hex_of(name), senderName="x" * bytes)) for name in names]


def check_kept(daemon, identity, names, scratch):
    """With the daemon stopped: its inbox has exactly the acknowledged hexes, once each."""
    snapshot = rig.Snapshot(daemon.store, scratch)
    snapshot.check(daemon.name)
    arrived = snapshot.received(identity.uuid)
    lost = {uuid.UUID(name).bytes for name in names} - set(arrived)
    if lost or len(arrived) != len(set(arrived)):
        raise rig.Failure(f"{len(lost)} of {len(names)} acknowledged hexes lost, {len(arrived) - len(set(arrived))} twice")


def acquaint(daemon, identity):
    """Lets the daemon see the foreign peer once, and trust it."""
    session = Session(identity, daemon.port)
    await_known(daemon, identity)
    daemon.api("POST", f"/v1/peers/{identity.uuid}/trust", {})
    session.close()


def await_known(daemon, identity):
    """Waits until the daemon lists the foreign peer in any state."""
    rig.until(lambda: any(peer.get("uuid") == identity.uuid for peer in daemon.api("GET", "/v1/peers?all=true")["items"]),
              "hexlistd to know the foreign peer", rig.START_LIMIT)
