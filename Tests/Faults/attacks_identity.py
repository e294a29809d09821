"""Attacks of `hostile` on identity: certificates, TLS versions, tickets, others' Hellos, replayed frames."""

import contextlib
import json
import os
import ssl
import subprocess

import attacker
import rig


def old_tls(stage):
    one = stage.attacker()
    try:
        one.tls(stage.stranger, ssl.TLSVersion.TLSv1_2)
    except (ssl.SSLError, ConnectionError):
        one.close()
        return "handshake refused"
    raise rig.Failure("a handshake with TLS 1.2 succeeded")


def no_certificate(stage):
    one = stage.attacker().tls()
    with contextlib.suppress(OSError):
        one.hello(stage.stranger)
    seconds = one.await_end(silent=True)
    return f"closed after {seconds:.1f} s, without a Hello"


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def made(folder, name, *key, extra="", chain=0):
    """A file with a key and its certificate, and `chain` further certificates."""
    path, config = os.path.join(folder, f"made-{name}.pem"), os.path.join(folder, "made.cnf")
    with open(config, "w") as file:
        file.write(f"[req]\ndistinguished_name = dn\nx509_extensions = more\n[dn]\n[more]\nbasicConstraints = CA:FALSE\n{extra}\n")
    openssl("req", "-x509", "-config", config, "-nodes", "-subj", "/CN=made", "-days", "2", *key, "-keyout", path + ".key", "-out",
            path + ".crt")
    with open(path, "wb") as file:
        for part in [".key", ".crt"] + [".crt"] * chain:
            with open(path + part, "rb") as pem:
                file.write(pem.read())
    return path


P256 = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def certificates_of(folder):
    """Certificates that are not valid for a peer, each with its key."""
    return {
        "RSA-1024": made(folder, "rsa-1024", "-newkey", "rsa:1024"),
        "RSA-2048": made(folder, "rsa-2048", "-newkey", "rsa:2048"),
        "P-384": made(folder, "p384", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"),
        "secp256k1": made(folder, "k1", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"),
        "Ed25519": made(folder, "ed25519", "-newkey", "ed25519"),
        "a chain of two": made(folder, "two", *P256, chain=1),
        "a chain of a hundred": made(folder, "hundred", *P256, chain=99),
        "one of a mebibyte": made(folder, "mebibyte", *P256, extra="1.2.3.4 = ASN1:UTF8String:" + "x" * (1 << 20)),
    }


def certificates(stage):
    if not hasattr(stage, "certificates"):
        stage.certificates = certificates_of(stage.folder)
    for name, path in stage.certificates.items():
        context = attacker.tls_context()
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.load_cert_chain(path)
        one = stage.attacker()
        try:
            one.tls(context=context)
        except (ssl.SSLError, ConnectionError):
            one.close()
            continue
        with contextlib.suppress(OSError):
            one.hello(stage.stranger)
        one.await_end(silent=True)
    return f"{len(stage.certificates)} kinds that are none of a peer: closed without a Hello"


def other_protocols(stage):
    for protocols in ([], ["h2", "http/1.1"], ["hexlist/2"]):
        context = attacker.tls_context(stage.stranger, protocols=protocols)
        one = stage.attacker()
        with contextlib.suppress(OSError):
            one.tls(context=context).hello(stage.stranger)
        one.await_end(silent=True)
    return "no ALPN, and others: closed without a Hello"


def resumption(stage):
    context = attacker.tls_context(stage.stranger)
    first = stage.attacker().tls(context=context).meet(stage.stranger)
    # The key of a resumed session is that of the first handshake, even if another peer has the ticket.
    for claimed in (stage.trusted.uuid, stage.traitor.uuid):
        second = stage.attacker().tls(context=context, session=first.socket.session)
        is_resumed = second.socket.session_reused
        second.hello(stage.stranger, uuid=claimed)
        second.await_end("identityMismatch")
    first.close()
    return f"{'resumed' if is_resumed else 'a whole handshake'}: the same peer, and no other UUID is believed"


def plaintext(stage):
    hello = {"operationType": "Hello", "jmObjectType": "Peer", "jmObject": {"uuid": stage.stranger.uuid}}
    openings = {
        "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "SSH": b"SSH-2.0-OpenSSH_9.9\r\n",
        "frame": attacker.framed(json.dumps(hello).encode()), "zeros": bytes(4096),
        "a TLS record that is none": b"\x16\x03\x01\x40\x00" + b"\xff" * 16_384,
    }
    times = []
    for name, opening in openings.items():
        one = stage.attacker()
        with contextlib.suppress(OSError):
            one.socket.sendall(opening)
        # Bytes that begin like a TLS record may be answered with a TLS alert.
        if name.startswith("a TLS"):
            with contextlib.suppress(ConnectionError):
                while one.socket.recv(4096):
                    pass
            one.close()
        else:
            times.append(one.await_end(silent=True))
    return f"closed at most {attacker.longest(times)} after, without a byte"


def another_uuid(stage):
    before = known(stage, stage.trusted.uuid), stage.trust()
    times = []
    for identity, claimed in ((stage.stranger, stage.trusted.uuid), (stage.stranger, attacker.new_id()), (stage.traitor, stage.trusted.uuid)):
        one = stage.attacker().tls(identity)
        one.hello(identity, uuid=claimed)
        times.append(one.await_end("identityMismatch"))
    # The identity must hold for the whole session, not only at the start.
    for others in ({"uuid": stage.trusted.uuid}, {"boot": "0123456789abcdef"}):
        one = stage.session(stage.stranger)
        one.hello(stage.stranger, **others)
        times.append(one.await_end("identityMismatch"))
    if before != (known(stage, stage.trusted.uuid), stage.trust()):
        raise rig.Failure("what is known of the trusted peer, or whom the store trusts, changed")
    return f"Bye identityMismatch, at most {attacker.longest(times)}; the trusted peer's record and everybody's trust are as before"


def known(stage, name):
    peer = next(peer for peer in stage.victim.api("GET", "/v1/peers?all=true")["items"] if peer.get("uuid") == name)
    return {key: peer.get(key) for key in ("uuid", "name", "fingerprint", "trust", "state", "boot")}


def said_again(stage):
    """Frames of one session replayed in others: by the same peer, by another, and the victim's own back to it."""
    before = stage.trust()
    hello = {"operationType": "Hello", "jmObjectType": "Peer", "jmObject": {
        "uuid": stage.traitor.uuid, "name": "again", "boot": stage.traitor.boot, "protocols": [1]}}
    stores = [attacker.store(number, rig.hex_of(attacker.new_id())) for number in (1, 2, 3)]
    ping = {"operationType": "Ping", "message": "again", "sequence": 4}

    def say(identity, first=hello):
        one = stage.attacker(20).tls(identity)
        one.write(first, *stores, ping)
        return one

    original = say(stage.traitor)
    expect(original.await_answers(4)[:3], ["stored"] * 3)
    original.await_frame("Pong")
    stage.taken += [each["messageID"] for each in stores]
    # The same peer sends the frames again. Its hexes are duplicates.
    again = say(stage.traitor)
    expect(again.await_answers(4)[:3], ["duplicate"] * 3)
    again.close()
    # Another peer sends them. With the first peer's Hello it is refused; with its own Hello it is a stranger.
    say(stage.stranger).await_end("identityMismatch")
    own = dict(hello, jmObject=dict(hello["jmObject"], uuid=stage.stranger.uuid, boot=stage.stranger.boot))
    one = say(stage.stranger, own)
    for answer in one.await_answers(4)[:3]:
        if answer not in ("held", "duplicate", "quotaExceeded"):
            raise rig.Failure(f"a trusted peer's frame, said by a stranger, was answered {answer}")
    one.close()
    # The victim's own frames, reflected.
    original.close()
    for frame in original.frames:
        one = stage.attacker(20).tls(stage.traitor)
        one.hello(stage.traitor)
        one.write(frame)
        due = {"Hello": "identityMismatch", "Ack": "receiptFault"}.get(frame["operationType"])
        if due:
            one.await_end(due)
        else:
            one.alive()
            one.close()
    if stage.trust() != before:
        raise rig.Failure("frames said again changed whom the store trusts")
    return f"{len(stores)} hexes said again are duplicates, of a stranger at most held; {len(original.frames)} of the victim's own frames change nothing"


def expect(answers, due):
    if answers != due:
        raise rig.Failure(f"answered {answers} where {due} was due")


def own_connection(stage):
    """The victim receives an announcement of itself as a peer."""
    stage.victim.peers.append(stage.victim)
    try:
        stage.reconfigure("")
        rig.until(lambda: any(peer.get("reason") == "self" for peer in stage.victim.api("GET", "/v1/peers?all=true")["items"]),
                  "the victim to see that it met itself", rig.START_LIMIT)
    finally:
        stage.victim.peers.remove(stage.victim)
        stage.reconfigure("")
    return "a ghost, `self`"


ATTACKS = {
    "tls-1.2": old_tls, "no-certificate": no_certificate, "certificates": certificates, "alpn": other_protocols,
    "resumption": resumption, "plaintext": plaintext, "another-uuid": another_uuid, "said-again": said_again, "self": own_connection,
}
ONCE = {"self"}
