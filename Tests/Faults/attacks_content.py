"""Attacks of `hostile` by frame contents: lengths, JSON, numbers, receipts, floods of hexes, text."""

import contextlib
import itertools
import json
import os
import random
import struct
import threading
import time

import attacker
import foreign
import rig
from stage import share

# Frame lengths that are refused from any peer. Before the Hello the maximum is 8 KiB, then that of the victim's Hello.
LENGTHS = (0, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)


def lengths_before_hello(stage):
    times, tries = [], 0
    before = stage.memory()
    while tries < stage.count(10, 1_000):
        for length in LENGTHS + (attacker.FIRST_FRAME + 1,):
            one = stage.attacker(tries % 4).tls(stage.stranger)
            one.began = time.monotonic()
            one.socket.sendall(struct.pack(">I", length))
            times.append(one.await_end("frameLength"))
        # Frames whose announced bytes are not sent.
        for length in (1, attacker.FIRST_FRAME):
            one = stage.attacker(tries % 4).tls(stage.stranger)
            one.socket.sendall(struct.pack(">I", length) + b"{" * (length // 2))
            one.close()
        tries += len(LENGTHS) + 3
    grown = stage.memory() - before
    return (f"{tries} tries: Bye frameLength and closed {1000 * share(times, 0.5):.0f} ms after the header, at most "
            f"{1000 * max(times):.0f} ms; {grown:+.1f} MiB")


def lengths_after_hello(stage):
    times = []
    for identity, most in ((stage.stranger, attacker.STRANGER_FRAME), (stage.traitor, attacker.TRUSTED_FRAME)):
        for length in LENGTHS + (most + 1,):
            one = stage.session(identity)
            one.socket.sendall(struct.pack(">I", length))
            times.append(one.await_end("frameLength"))
        one = stage.session(identity)
        one.socket.sendall(struct.pack(">I", most))
        one.close()
    return f"Bye frameLength and closed, at most {attacker.longest(times)}, of strangers and trusted"


def malformed(stage):
    bad = [b"{", b"\xff\xfe", b"[]", b"nothing", b'{"operationType":"Store"} more', b'{"a":"\xc3"}', b"[" * 200, b'{"a":1,}']
    for identity in (stage.stranger, stage.traitor):
        one = stage.session(identity)
        for number in range(15):
            one.socket.sendall(attacker.framed(bad[number % len(bad)]))
        one.alive()
        one.socket.sendall(attacker.framed(b"{"))
        one.await_end("tooManyErrors")
    return "15 are borne, the 16th: Bye tooManyErrors, closed"


def deep_tree(levels, links=()):
    """Returns a hex with inner hexes at the given number of levels. The innermost one has the links."""
    tree = {"hexDescription": "deep", "links": list(links)}
    for _ in range(levels - 1):
        tree = {"children": [tree]}
    return attacker.store(0, tree)


def bombs_of(limit):
    """JSON at the frame limit, each with the expected reply: a receipt's status, or `pong`."""
    room = limit - 512
    many = ",".join(f'"k{number:06}":0' for number in range(room // 12))
    links = {"url": "https://example.org"}
    return [
        ("depth", b"[" * room, "undecodable"),
        ("depth in a member", b'{"operationType":"Ping","x":' + b'{"a":' * (room // 6) + b"}" * 10 + b"}", "undecodable"),
        ("keys", ('{"operationType":"Ping","message":"@",' + many + "}").encode(), "pong"),
        ("one key often", ('{"operationType":"Ping","message":"@",' + ",".join(['"a":0'] * (room // 6)) + "}").encode(), "pong"),
        ("numbers", ('{"operationType":"Ping","message":"@","x":' + "9" * room + "}").encode(), "pong"),
        ("links", attacker.store(0, {"hexDescription": "links", "links": ["u"] * (room // 5)}), "tooManyLinks"),
        ("wide tree", attacker.store(0, {"hexDescription": "wide", "children": [{}] * (room // 4)}), "tooManyLinks"),
        ("deep tree", deep_tree(9), "tooManyLinks"),
        ("deeper tree", json.dumps(dict(deep_tree(40), sequence=1)).encode(), "undecodable"),
        ("broad levels", deep_tree(8, ["u"] * (room // 6)), "tooManyLinks"),
    ] + ([("string", attacker.store(0, {"hexDescription": "x" * room, "links": [links]}), "tooLarge")] if limit > attacker.STRANGER_FRAME else [])


def bombs(stage, identity, limit):
    one = stage.session(identity)
    if identity is stage.traitor:
        # The second Hello contains a trusted peer's limit.
        one.await_frame("Hello", matching=lambda frame: frame["jmObject"]["maxFrameBytes"] >= limit)
    number, kinds = 0, bombs_of(limit)
    for name, bomb, due in kinds:
        if isinstance(bomb, dict):
            number += 1
            one.write(dict(bomb, sequence=number))
            answer = one.await_answers(number)[-1]
            if answer != due:
                raise rig.Failure(f"{name} of {limit} bytes was answered {answer}, not {due}")
        elif due == "pong":
            word = attacker.new_id()
            one.socket.sendall(attacker.framed(bomb.replace(b'"@"', json.dumps(word).encode())))
            one.await_frame("Pong", matching=lambda frame: frame.get("message") == word)
        else:
            one.socket.sendall(attacker.framed(bomb))
        one.alive()
    one.close()
    return f"{len(kinds)} kinds of {limit >> 10} KiB: refused or passed over, the session goes on"


def bombs_of_a_stranger(stage):
    return bombs(stage, stage.stranger, attacker.STRANGER_FRAME)


def bombs_of_a_trusted_peer(stage):
    return bombs(stage, stage.traitor, attacker.TRUSTED_FRAME)


def receipts_never_earned(stage):
    for through in (1, 5, (1 << 63) - 1, -1, 0):
        one = stage.session(stage.stranger)
        one.write({"operationType": "Ack", "jmObjectType": "Receipt",
                        "jmObject": {"through": through, "status": "stored", "rejected": []}})
        one.await_end("receiptFault")
    return "Bye receiptFault, closed"


def window_ignored(stage):
    """A trusted peer writes far beyond the window before it reads a receipt."""
    count = stage.count(2_000, 50_000)
    one = stage.session(stage.traitor)
    names = [attacker.new_id() for _ in range(count)]

    def write():
        for start in range(0, count, 100):
            one.write(*(attacker.store(number + 1, rig.hex_of(names[number]), messageID=names[number])
                             for number in range(start, min(start + 100, count))))

    write()
    answers = one.await_answers(count)
    if answers != ["stored"] * count:
        raise rig.Failure(f"{answers.count('stored')} of {count} hexes stored")
    one.alive()
    one.close()
    stage.taken += names
    return f"{count} hexes at once, read as fast as they are stored, each once"


def stranger_floods(stage):
    """A stranger writes hexes at full speed: 20 a second are read, and held up to its quota."""
    before = stage.victim.status()["held"]
    one = stage.session(stage.other, 3)
    count = stage.count(40, 400)
    one.socket.settimeout(0.2)
    number = 0
    with contextlib.suppress(TimeoutError):
        while number < count * 20:
            number += 1
            one.write(attacker.store(number, {"hexDescription": "x" * 2_000, "links": [{"url": f"https://example.org/{number}"}]}))
    one.socket.settimeout(attacker.END_LIMIT)
    one.await_refusal("quotaExceeded")
    one.close(abruptly=True)
    held = stage.victim.status()["held"] - before
    if held > 20:
        raise rig.Failure(f"{held} hexes of one stranger are held; its quota is 20")
    return f"{number} written, {held} held"


NASTY = {
    "a title": "\x1b]0;owned\x07", "red": "\x1b[31mred\x1b[0m", "C1": "\x9b31m\x85\x90", "backspaces": "safe\b\b\b\bevil",
    "return": "a\rb", "lines": "a\nb\n$ ",
    "bidi": "\u202egnp.exe\u202c \u2066x\u2069 \u202a\u202b\u202d \u2067\u2068", "delete": "\x7f\x7f", "bell": "\x07" * 20,
    "clear": "\x1b[2J\x1b[H", "answer": "\x1b[6n\x1b[c", "separators": "a\u2028b\u2029c", "clipboard": "\x1b]52;c;ZXZpbA==\x07",
}


def raw_controls(text):
    """Characters in the output that would control a terminal. Newlines and tabs belong to the table."""
    return {f"U+{ord(scalar):04X}" for scalar in text if (ord(scalar) < 0x20 and scalar not in "\n\t") or 0x7F <= ord(scalar) <= 0x9F
            or 0x202A <= ord(scalar) <= 0x202E or 0x2066 <= ord(scalar) <= 0x2069}


def nasty_text(stage):
    """Escapes, bidi overrides and line ends in every text a peer can send, in large amounts."""
    one = stage.session(stage.stranger, 2, name="evil" + "".join(NASTY.values()))
    one.write({"operationType": "Alert", "message": "".join(NASTY.values())})
    # A maximum-length name, sent in a later Hello.
    one.hello(stage.stranger, name="\x1b[31mevil" * 4_000)
    ours = stage.session(stage.traitor, 2, name="".join(NASTY.values()))
    ours.await_frame("Hello", matching=lambda frame: frame["jmObject"]["maxFrameBytes"] >= attacker.TRUSTED_FRAME)
    ours.hello(stage.traitor, name="\u202e\x1b]0;owned\x07" * 35_000)
    ours.alive()
    contents = [{"senderName": text, "senderUUID": text, "hexDescription": text, "hexColor": text,
                 "links": [{"url": "https://example.org/" + text, "linkDescription": text, "service": text}], text: text}
                for text in NASTY.values()]
    much = ("\x1b[31m\u202e" * 8_000)[:60_000]
    contents.append({"hexDescription": much[:20_000], "senderName": "\n" * 2_000, "links": [{"url": "x"}]})
    names = [attacker.new_id() for _ in contents]
    ours.write(*(attacker.store(number + 1, content, messageID=names[number]) for number, content in enumerate(contents)))
    # A string is refused from 64 KiB on.
    ours.write(attacker.store(len(contents) + 1, {"hexDescription": "x" * (900 << 10), "links": [{"url": "x"}]}))
    answers = ours.await_answers(len(contents) + 1)
    if answers != ["stored"] * len(contents) + ["tooLarge"]:
        raise rig.Failure(f"the hexes were answered {answers}")
    stage.taken += names
    # A stranger's hex is held.
    one.write(attacker.store(1, contents[0]))
    answers = one.await_answers(1)
    if answers not in (["held"], ["quotaExceeded"]):
        raise rig.Failure(f"a stranger's hex was answered {answers}")
    inbox = stage.victim.api("GET", f"/v1/hexes?location=inbox&from={stage.traitor.uuid}&limit=50")["items"]
    commands = [["inbox", "--limit", "50", "--from", stage.traitor.uuid], ["inbox", "--held"], ["peers"], ["peers", "--all", "--why"],
                ["status"], ["peer", "show", stage.traitor.uuid], ["peer", "show", stage.stranger.uuid]]
    commands += [["show", str(item["id"])] for item in inbox[:stage.count(3, 50)]]
    for command in commands:
        for form in ([], ["--json"]):
            done = stage.victim.hexlist(*command, *form)
            if done.returncode != 0:
                raise rig.Failure(f"hexlist {' '.join(command + form)}: {done.returncode} {done.stderr}")
            # JSON is for programs: only characters that JSON forbids are excluded.
            found = {name for name in raw_controls(done.stdout + done.stderr) if not form or name < "U+0020"}
            if found:
                raise rig.Failure(f"hexlist {' '.join(command + form)} prints {sorted(found)}")
    log = raw_controls(stage.victim.log_text())
    if log:
        raise rig.Failure(f"the log has {sorted(log)}")
    one.close()
    ours.close()
    return f"{len(commands)} commands and the log print none of {len(NASTY)} kinds of control characters"


def sequences(stage):
    """A stranger's frames in random order, some repeatedly."""
    kinds = {
        "hello": {"operationType": "Hello", "jmObjectType": "Peer", "jmObject": {
            "uuid": stage.stranger.uuid, "boot": stage.stranger.boot, "protocols": [1]}},
        "of another": {"operationType": "Hello", "jmObjectType": "Peer", "jmObject": {"uuid": stage.trusted.uuid, "boot": "1" * 16}},
        "store": {"operationType": "Store", "jmObjectType": "Hex", "jmObject": {"links": ["https://example.org"]}},
        "receipt": {"operationType": "Ack", "jmObjectType": "Receipt", "jmObject": {"through": 1, "status": "stored"}},
        "alert": {"operationType": "Alert", "message": "now"}, "ping": {"operationType": "Ping", "message": "x"},
        "pong": {"operationType": "Pong", "message": "x"}, "bye": {"operationType": "Bye", "message": "shutdown"},
        "pair": {"operationType": "Pair", "jmObjectType": "Pairing", "jmObject": {"step": "confirm"}}, "unknown": {"operationType": "Trust"},
    }
    every = [names for length in range(1, 5) for names in itertools.product(kinds, repeat=length)]
    before, ended = stage.trust(), 0
    tried = random.sample(every, stage.count(30, 600))
    for names in tried:
        one = stage.attacker(30 + random.randrange(8)).tls(stage.stranger)
        with contextlib.suppress(OSError):
            for number, name in enumerate(names, 1):
                numbered = name in ("store", "alert", "ping", "unknown")
                one.write(dict(kinds[name], **({"sequence": number} if numbered and name != "store" else {})))
        must_end = "bye" in names or names[0] == "of another" or "receipt" in names
        if must_end:
            one.await_end()
            ended += 1
        one.close()
    # The table of peers may get a row for the stranger, because of its held hexes, but no trust may change.
    after = [row for row in stage.trust() if row in before or row[2] != "stranger"]
    if after != before:
        raise rig.Failure(f"sequences of frames changed whom the store trusts: {before}, {after}")
    return f"{len(tried)} of {len(every)} sequences of up to 4 frames: {ended} ended the session as they must; trust is as before"


ATTACKS = {
    "lengths": lengths_before_hello, "lengths-later": lengths_after_hello, "malformed": malformed, "bombs": bombs_of_a_stranger,
    "bombs-trusted": bombs_of_a_trusted_peer, "receipts": receipts_never_earned, "window": window_ignored, "text": nasty_text,
    "stranger-flood": stranger_floods, "sequences": sequences,
}
# Attacks that run only once, because one run lasts long enough or because their effects are counted.
ONCE = {"window", "text", "stranger-flood", "sequences"}
