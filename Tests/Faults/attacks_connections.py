"""Attacks of `hostile` by connections: many, slow, and without a Hello."""

import contextlib
import resource
import socket
import ssl
import struct
import threading
import time

import attacker
import foreign
import rig
from stage import share

# The address of the trusted peer, which has a reserved slot.
USUAL_ADDRESS = "127.0.0.1"
STRANGER_SESSIONS = 64


def header_and_silence(stage):
    attackers = [stage.attacker(number % 2).tls(stage.stranger) for number in range(16)]
    for one in attackers:
        one.socket.sendall(struct.pack(">I", attacker.FIRST_FRAME))
    times = [one.await_end("helloTimeout") for one in attackers]
    if not stage.long:
        return f"before Hello: Bye helloTimeout after {attacker.longest(times)}"
    identified = stage.session(stage.stranger)
    identified.socket.sendall(struct.pack(">I", attacker.STRANGER_FRAME))
    seconds = identified.await_end()
    return f"before Hello: Bye helloTimeout after {attacker.longest(times)}; after it: Bye {identified.bye()} after {seconds:.1f} s"


def half_open(stage):
    times = [one.await_end("helloTimeout") for one in [stage.attacker().tls(stage.stranger) for _ in range(16)]]
    if min(times) < 3:
        raise rig.Failure(f"a peer that was slow to say Hello was closed after {min(times):.1f} s")
    return f"{len(times)} of 16: Bye helloTimeout after {attacker.longest(times)}"


class Regulars:
    """Handshakes of a trusted peer from its usual address during an attack, and their durations."""

    def __init__(self, stage):
        self.stage, self.times, self.failed = stage, [], []

    def call(self):
        start = time.monotonic()
        try:
            attacker.Attacker(self.stage.victim, USUAL_ADDRESS).tls(self.stage.traitor).meet(self.stage.traitor).close()
        except (OSError, rig.Failure) as error:
            self.failed.append(str(error))
        self.times.append(time.monotonic() - start)

    def check(self):
        if self.failed:
            raise rig.Failure(f"{len(self.failed)} of {len(self.times)} handshakes from a trusted peer's usual address failed: {self.failed[0]}")
        return f"{len(self.times)} handshakes of a trusted peer meanwhile, p99 {1000 * share(self.times, 0.99):.0f} ms"


def byte_a_second(stage):
    """Sends a ClientHello, a Hello and, with --long, a later frame at a byte per second. The connection of the latter ends after 45 s."""
    phases = ("ClientHello", "Hello", "body")[:stage.count(2, 3)]
    count = stage.count(30, 500)
    opening = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x5a" * 200
    hello = attacker.framed(b'{"operationType":"Hello","jmObject":{"uuid":"' + stage.stranger.uuid.encode() + b'"' + b" " * 300)
    attackers, regulars = [], Regulars(stage)
    for number in range(count):
        one = stage.attacker(number // 15)
        one.phase = phases[number % len(phases)]
        one.text = opening
        with contextlib.suppress(OSError):
            if one.phase != "ClientHello":
                one.tls(stage.stranger)
                one.text = hello
            if one.phase == "body":
                one.hello(stage.stranger)
                one.text = attacker.framed(b" " * attacker.STRANGER_FRAME)
        one.began = time.monotonic()
        if not one.is_open:
            one.ended = one.began  # refused in the handshake
        attackers.append(one)
        attacker.drain(attackers, 0)
    tick = 0
    while any(one.is_open for one in attackers):
        if tick >= attacker.END_LIMIT:
            raise rig.Failure(f"{sum(one.is_open for one in attackers)} of {count} connections are open after {tick} s")
        for one in attackers:
            if one.is_open:
                with contextlib.suppress(OSError):
                    one.socket.send(one.text[tick % len(one.text):][:1])
        regulars.call()
        tick += 1
        attacker.drain(attackers, 1)
    said = []
    for phase in phases:
        kept = [one.ended - one.began for one in attackers if one.phase == phase and one.ended - one.began >= 2]
        said.append(f"{phase}: {len(kept)} kept, closed after {min(kept, default=0):.1f} to {max(kept, default=0):.1f} s")
    return f"of {count}, {'; '.join(said)}; the others refused at once; {regulars.check()}"


def opened_and_dropped(stage):
    count = stage.count(500, 10_000)
    before = stage.descriptors()
    for number in range(count):
        one = stage.attacker(number % 200)
        if number % 3 == 1:
            with contextlib.suppress(OSError):
                one.socket.send(b"\x16\x03\x01\x02\x00")
        one.close(abruptly=number % 2 == 0)
    # The trusted peer's sessions and the store may open or close a few descriptors meanwhile.
    rig.until(lambda: stage.descriptors() <= before + 4, "the victim to let go of the connections", attacker.END_LIMIT)
    return f"{count} connections, no descriptor left open"


def flood(stage, sources):
    """Connections opened at 1 000 a second and left open, while a trusted peer repeatedly connects from its usual address."""
    count, rate = stage.count(500, 10_000), 1_000
    opened, regulars = [], Regulars(stage)
    start = time.monotonic()
    for number in range(count):
        one = stage.attacker(number % sources)
        if number % 2:
            with contextlib.suppress(OSError):
                one.socket.send(b"\x16\x03\x01\x02\x00")
        opened.append(one)
        if len(opened) >= 400:
            for old in opened[:200]:
                old.close(abruptly=True)
            del opened[:200]
        if number % 200 == 0:
            regulars.call()
        time.sleep(max(0, start + number / rate - time.monotonic()))
    reached = count / (time.monotonic() - start)
    end = time.monotonic()
    for one in opened:
        one.close(abruptly=True)
    # Whether a peer at an unknown address is admitted.
    def is_let_in():
        try:
            stage.session(stage.other, 249).close()
            return True
        except (OSError, rig.Failure):
            return False

    rig.until(is_let_in, "a stranger to be let in after the flood", attacker.END_LIMIT)
    return (f"{count} at {reached:.0f}/s from {sources} addresses; {regulars.check()}; a stranger is let in "
            f"{time.monotonic() - end:.1f} s after the end")


def flood_from_one(stage):
    return flood(stage, 1)


def flood_from_fifty(stage):
    return flood(stage, 50)


def keys(stage):
    """Unknown identities, and a TLS context for each."""
    if not hasattr(stage, "keys"):
        made = [foreign.Identity(stage.folder, f"fresh-{number}") for number in range(stage.count(8, 100))]
        stage.keys = [(identity, attacker.tls_context(identity)) for identity in made]
    return stage.keys


def fresh_keys(stage):
    """Handshakes of unknown peers, each with its own key, as many as the processor can make, up to 500 a second."""
    contexts = keys(stage)
    regulars, seconds = Regulars(stage), stage.count(1, 10)
    start, done, refused, number = time.monotonic(), 0, 0, 0
    waiting = []
    while time.monotonic() - start < seconds:
        identity, context = contexts[number % len(contexts)]
        number += 1
        one = stage.attacker(number % 50)
        # So many handshakes run at once that the victim always has one in progress.
        waiting.append(threading.Thread(target=greet, args=(one, identity, context)))
        waiting[-1].one = one
        waiting[-1].start()
        while len(waiting) >= 24:
            first = waiting.pop(0)
            first.join()
            done, refused = done + first.one.is_met, refused + (not first.one.is_met)
        if number % 100 == 0:
            regulars.call()
        time.sleep(max(0, start + number / 500 - time.monotonic()))
    for each in waiting:
        each.join()
    took = time.monotonic() - start
    return f"{number / took:.0f} tried a second, {done / took:.0f} a second got a session, {refused} refused; {regulars.check()}"


def greet(one, identity, context):
    one.is_met = False
    with contextlib.suppress(OSError, rig.Failure):
        one.tls(context=context).meet(identity)
        one.is_met = True
    one.close(abruptly=True)


def many_strangers(stage):
    """The maximum number of stranger sessions, each sending maximum-length frames as fast as they are read."""
    body = attacker.framed(b'{"operationType":"Ping","message":"","x":"' + b"x" * (attacker.STRANGER_FRAME - 100) + b'"}')
    attackers, contexts = [], keys(stage)
    for number in range(stage.count(20, 400)):
        one = stage.attacker(10 + number // 15)
        identity, context = contexts[number % len(contexts)]
        try:
            attackers.append(one.tls(context=context).hello(identity))
        except OSError:
            one.close()
    for one in attackers:
        one.socket.settimeout(0)
        one.rest = body
    written, end = 0, time.monotonic() + stage.count(1, 15)
    while time.monotonic() < end:
        for one in attackers:
            with contextlib.suppress(OSError):
                sent = one.socket.send(one.rest)
                written += sent
                one.rest = one.rest[sent:] or body
            with contextlib.suppress(OSError):
                one.socket.recv(1 << 16)
        time.sleep(0.01)
    attacker.drain(attackers, 1)
    kept = sum(one.is_open for one in attackers)
    for one in attackers:
        one.close(abruptly=True)
    if kept > STRANGER_SESSIONS:
        raise rig.Failure(f"{kept} sessions of strangers are open; {STRANGER_SESSIONS} may be")
    return f"{len(attackers)} sessions opened, {kept} kept; {written / (1 << 20) / stage.count(1, 15):.1f} MiB a second written to them"


def from_one_address(stage):
    """More connections than one address may have, then so many without Hello that only reserved slots remain."""
    # The admitted connections stay open during the whole check.
    stage.reconfigure("limits: {handshakeSeconds: 60}\n")
    attackers = []
    try:
        # An address that no trusted peer has used, so that no slot is reserved for it.
        attackers = [stage.attacker(100) for _ in range(40)]
        of_one = await_open(attackers, 16)
        attackers += [stage.attacker(101 + number // 15) for number in range(60)]
        of_all = await_open(attackers, 32)
        # Another peer is admitted too if it connects from the trusted peer's address.
        try:
            stage.session(stage.other, USUAL_ADDRESS).close()
        except (ssl.SSLError, ConnectionError) as error:
            raise rig.Failure(f"nobody gets in from the trusted peer's address: {error}")
    finally:
        for one in attackers:
            one.close()
        stage.reconfigure("")
    return f"{of_one} of 40 of one address kept, {of_all} of 100 of five; the trusted peer's address gets in"


def await_open(attackers, limit):
    """Waits until the victim has closed all connections except `limit`. Returns the number of open ones."""
    def left():
        attacker.drain(attackers, 0.1)
        return sum(one.is_open for one in attackers)

    rig.until(lambda: left() <= limit, f"connections to be refused: {limit} may be open", 40)
    return left()


def more_descriptors():
    """Raises the descriptor limit of this program."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


ATTACKS = {
    "silence": header_and_silence, "half-open": half_open, "byte-a-second": byte_a_second, "dropped": opened_and_dropped,
    "flood": flood_from_one, "flood-50": flood_from_fifty, "fresh-keys": fresh_keys, "many-strangers": many_strangers,
    "connections": from_one_address,
}
# Attacks that run only once, because one run lasts long enough.
ONCE = set(ATTACKS)
