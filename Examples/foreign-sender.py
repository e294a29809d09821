#!/usr/bin/python3 -I
"""Sends a hex from a program that is not Hexlist: the protocol in one file, written from Docs/Protocol.md.

    Examples/foreign-sender.py ADDRESS PORT              an example hex, over TLS, with a temporary key
    Examples/foreign-sender.py ADDRESS PORT --key FILE   with the key in FILE (created if missing)
    Examples/foreign-sender.py ADDRESS PORT --plain      plain TCP (the receiver needs transport: tls+plain)
    Examples/foreign-sender.py ADDRESS PORT --frames     frames from standard input, one wrapper per line, sent unchanged

It sends no Hello, so the protocol calls it a legacy sender: a hexlistd holds its hexes until a user trusts the key (`hexlist peer trust
UUID`). It prints the UUID first, then each received frame. Needs `openssl`.
"""

import argparse
import base64
import hashlib
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import uuid

EXAMPLE = {
    "versionID": "1.4.2",
    "operationType": "Store",
    "jmObjectType": "Hex",
    "jmObject": {
        "senderUUID": "",
        "senderName": "A foreign program",
        "hexDescription": "Where names come from",
        "hexColor": "#3366CC",
        "links": [
            {"url": "https://datatracker.ietf.org/doc/html/rfc6763", "linkDescription": "DNS-SD", "service": "Unknown"},
            {"url": "https://datatracker.ietf.org/doc/html/rfc6762", "linkDescription": "mDNS", "service": "Unknown"},
        ],
    },
    "sequence": 1,
}


def frame(body):
    """Length in four bytes, big-endian, then that many bytes of JSON."""
    return struct.pack(">I", len(body)) + body


def frames_from(stream):
    """The received bodies, until the other side closes."""
    def exactly(count):
        data = b""
        while len(data) < count:
            try:
                more = stream.recv(count - len(data))
            except (ConnectionResetError, ssl.SSLError):
                return b""
            if not more:
                return b""
            data += more
        return data

    while True:
        header = exactly(4)
        if not header:
            return
        yield exactly(struct.unpack(">I", header)[0])


def make_key(path):
    """A P-256 key and a self-signed certificate. Only the key of the certificate counts."""
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = os.path.join(folder, "key"), os.path.join(folder, "certificate")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=foreign", "-days", "1", "-keyout", key, "-out", certificate],
                       check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(key) as one, open(certificate) as other, open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(one.read() + other.read())


def peer_uuid(path):
    """SHA-256 of the public key (DER SubjectPublicKeyInfo), its first 16 bytes as a UUID of version 8."""
    pem = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-pubkey"], check=True, stdout=subprocess.PIPE, text=True).stdout
    der = base64.b64decode("".join(line for line in pem.splitlines() if not line.startswith("-----")))
    name = bytearray(hashlib.sha256(der).digest()[:16])
    name[6] = name[6] & 0x0F | 0x80  # version 8
    name[8] = name[8] & 0x3F | 0x80  # the variant of RFC 9562
    return str(uuid.UUID(bytes=bytes(name))).upper()


def secured(connection, path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Identity is the key, not a name or a certificate authority. This program accepts any receiver.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["hexlist/1"])
    context.load_cert_chain(path)
    return context.wrap_socket(connection)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--key")
    parser.add_argument("--frames", action="store_true")
    options = parser.parse_args()
    bodies = [line.rstrip(b"\n") for line in sys.stdin.buffer] if options.frames else [json.dumps(EXAMPLE).encode()]

    with tempfile.TemporaryDirectory() as folder:
        connection = socket.create_connection((options.address, options.port), timeout=20)
        if not options.plain:
            path = options.key or os.path.join(folder, "key.pem")
            if not os.path.exists(path):
                make_key(path)
            print(json.dumps({"uuid": peer_uuid(path)}), flush=True)
            connection = secured(connection, path)

        for body in bodies:
            connection.sendall(frame(body))
        last = max((sequence_of(body) for body in bodies), default=0)
        if last > 0:
            await_receipt(connection, last)
        finish(connection)


def await_receipt(connection, last):
    """Prints received frames until a receipt covers the last number sent."""
    for answer in frames_from(connection):
        print(answer.decode(errors="replace"), flush=True)
        wrapper = json.loads(answer)
        if wrapper.get("operationType") == "Ack" and wrapper["jmObject"]["through"] >= last:
            return
    sys.exit("foreign-sender: the other side closed without a receipt")


def sequence_of(body):
    """Only frames with a `sequence` are acknowledged."""
    try:
        number = json.loads(body).get("sequence", 0)
    except (ValueError, AttributeError):
        return 0
    return number if isinstance(number, int) else 0


def finish(connection):
    """Ends sending. The other side reads to the end and closes; closing first with unread data would cause a reset."""
    if isinstance(connection, ssl.SSLSocket):
        try:
            connection.unwrap()
        except (ssl.SSLError, OSError):
            pass  # more data arrived, which is ignored
        connection = socket.socket(fileno=connection.detach())
        connection.settimeout(20)
    try:
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    except OSError:
        pass


if __name__ == "__main__":
    main()
