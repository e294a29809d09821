"""Attacks of `hostile` for which a separate hexlistd is configured. The victim of the other attacks is not attacked meanwhile."""

import contextlib
import glob
import json
import os
import socket
import struct
import threading
import time

import attacker
import foreign
import rig
from stage import memory, processor_time, share


def another_daemon(stage, name, config="", before=(), state=None):
    """A victim that trusts the malicious trusted peer."""
    daemon = rig.Daemon(stage.folder, f"{name}-{len(rig.Daemon.every)}", config=config, state=state)
    daemon.start(before=before)
    foreign.acquaint(daemon, stage.traitor)
    return daemon


def out_of_descriptors(stage):
    """A hexlistd limited to 64 descriptors: more connections than that, and 10 000 that are reset."""
    daemon = rig.Daemon(stage.folder, f"few-descriptors-{len(rig.Daemon.every)}", config="limits: {handshakeSeconds: 60, connectionsUnidentified: 500, connectionsPerAddress: 500}\n")
    daemon.start(before=("prlimit", "--nofile=64:64"))
    mark = len(daemon.log_text().splitlines())
    held = [attacker.Attacker(daemon, number // 4) for number in range(120)]
    # After a second without requests the daemon is idle.
    daemon.status()
    time.sleep(1)
    processor, start = processor_time(daemon.pid), time.monotonic()
    time.sleep(stage.count(2, 20))
    daemon.status()
    spent, took = processor_time(daemon.pid) - processor, time.monotonic() - start
    lines = len(daemon.log_text().splitlines()) - mark
    if spent > 0.05 * took + 0.2:
        raise rig.Failure(f"out of descriptors it took {spent:.2f} s of processor time in {took:.0f} s")
    if lines > took / 10 + 3:
        raise rig.Failure(f"out of descriptors it logged {lines} lines in {took:.0f} s")
    for one in held:
        one.close(abruptly=True)
    for number in range(stage.count(500, 10_000)):
        one = attacker.Attacker(daemon, number % 200)
        with contextlib.suppress(OSError):
            one.socket.send(b"\x16\x03\x01\x02\x00")
        one.close(abruptly=True)
    end = time.monotonic()

    def is_let_in():
        with contextlib.suppress(OSError, rig.Failure):
            attacker.Attacker(daemon, 300).tls(stage.stranger).meet(stage.stranger).close()
            return True

    rig.until(is_let_in, "a session after it was out of descriptors", attacker.END_LIMIT)
    seconds = time.monotonic() - end
    lines = len(daemon.log_text().splitlines()) - mark
    daemon.stop()
    return (f"120 connections and 64 descriptors: {100 * spent / took:.1f} % of a core, the local API answers; with the resets "
            f"{lines} lines of log; a session {seconds:.1f} s after")


def store_bytes(daemon):
    return sum(os.path.getsize(path) for path in glob.glob(daemon.store + "*"))


def fill(stage, daemon, count):
    """A trusted peer sends the given number of hexes of 900 KB, ignoring replies, while the user lists the inbox. Returns the replies,
    and the duration of a list."""
    content = dict(rig.hex_of("large"), links=[{"url": "https://example.org/" + "x" * 60_000}] * 15)
    body = json.dumps(content).encode()
    over, looks = threading.Event(), []

    def look():
        while not over.is_set():
            start = time.monotonic()
            daemon.api("GET", "/v1/hexes?location=inbox&limit=20")
            looks.append(time.monotonic() - start)
            time.sleep(0.01)

    looking = threading.Thread(target=look)
    looking.start()
    one = attacker.Attacker(daemon).tls(stage.traitor).meet(stage.traitor)
    one.await_frame("Hello", matching=lambda frame: frame["jmObject"]["maxFrameBytes"] >= attacker.TRUSTED_FRAME)
    for number in range(1, count + 1):
        head = f'{{"operationType":"Store","messageID":"{attacker.new_id()}","sequence":{number},"jmObject":'.encode()
        one.socket.sendall(attacker.framed(head + body + b"}"))
    answers = one.await_answers(count)
    one.close()
    over.set()
    looking.join()
    return answers, looks


def gigabyte(stage):
    """A trusted peer sends a gigabyte: up to the inbox's bound, and up to the disk reserve."""
    count = stage.count(30, 1_150)
    said = []
    for name, bound in (("inboxHexes", stage.count(10, 100)), ("diskReserveBytes", None)):
        state = None
        if bound is None:
            # A disk of its own, because on a shared one other programs change the free space.
            try:
                image = rig.Image(stage.folder, f"disk-{len(rig.Daemon.every)}", 320)
            except rig.Unavailable as reason:
                said.append(f"{name}: not tried: {reason}")
                continue
            state, disk = os.path.join(image.point, "state"), os.statvfs(image.point)
            bound = disk.f_bavail * disk.f_frsize - (stage.count(20, 100) << 20)
        daemon = another_daemon(stage, name, config=f"limits: {{{name}: {bound}}}\n", state=state)
        before, peak = store_bytes(daemon), memory(daemon.pid)
        answers, looks = fill(stage, daemon, count)
        stored, refused = answers.count("stored"), answers.count("storageFull")
        if stored + refused != count or not refused or not stored:
            raise rig.Failure(f"{name}: of {count} hexes {stored} were stored and {refused} refused: {set(answers)}")
        if name == "inboxHexes" and stored != bound:
            raise rig.Failure(f"{stored} hexes are in an inbox that may have {bound}")
        grown = (store_bytes(daemon) - before) / (1 << 20)
        said.append(f"{name}: {stored} of {count} hexes of 0.9 MB stored, then storageFull; files +{grown:.0f} MiB, memory "
                    f"+{memory(daemon.pid, 'VmHWM') - peak:.0f} MiB, the local API's p95 {1000 * share(looks, 0.95):.0f} ms")
        daemon.stop()
    return "; ".join(said)


def links_are_not_followed(stage):
    """Hexes with all kinds of links are received, listed and shown, and cause no connection and no name lookup."""
    rig.need_strace(stage.folder)
    trace = os.path.join(stage.folder, "links-trace")
    daemon = another_daemon(stage, "links", before=(
        "strace", "-D", "-f", "-qq", "-e", "trace=accept4,connect,sendto,sendmsg,sendmmsg,openat,execve", "-e", "signal=none", "-o", trace))
    # The calls in the trace before this offset belong to the start and the first session.
    marked = os.path.getsize(trace)
    urls = ["https://example.org/", "http://192.0.2.7/x", "http://127.0.0.1:1/", "ftp://example.net/file", "file:///etc/hostname",
            "smb://192.0.2.9/share", "http://[2001:db8::1]/", "javascript:alert(1)", "http://user@example.com/", "//example.org/x"]
    count = stage.count(50, 1_000)
    one = attacker.Attacker(daemon).tls(stage.traitor).meet(stage.traitor)
    for number in range(1, count + 1):
        links = [{"url": url + str(number), "linkDescription": url, "service": "Dropbox"} for url in urls]
        one.write(attacker.store(number, {"hexDescription": urls[number % len(urls)], "senderName": "http://example.org", "links": links}))
    if one.await_answers(count) != ["stored"] * count:
        raise rig.Failure("hexes with links were not stored")
    for command in (["inbox", "--limit", "0"], ["show", "1"], ["export", "--inbox", "--format", "html"]):
        daemon.hexlist(*command)
    one.close()
    daemon.stop()
    with open(trace) as file:
        start = file.read(marked)
        calls = file.read().splitlines()
    strange = [call for call in calls
               if (("connect(" in call or "sendto(" in call or "sendm" in call) and "AF_INET" in call) or "execve(" in call
               or "resolv.conf" in call or "/etc/hosts" in call]
    # Checks that the trace is complete: it must have the connection to the bus at the start, and that of the sender.
    if "connect(" not in start or not any("accept4(" in call for call in calls):
        raise rig.Failure("the trace lacks what was done, so it shows nothing")
    if strange:
        raise rig.Failure(f"hexes with links made the daemon call out: {strange[:3]}")
    return f"{count} hexes with {len(urls)} links each, received, listed, shown: no connection, no lookup, no program run"


def bare_tcp(stage):
    """`transport: tls+plain`: frames over plain TCP are a stranger's, whatever identity they claim."""
    daemon = another_daemon(stage, "plain", config="transport: tls+plain\n")
    before = trust_of(daemon)

    def bare(source=0):
        return attacker.Attacker(daemon, source)

    for length in (0, attacker.STRANGER_FRAME + 1, 1 << 23):
        one = bare()
        one.socket.sendall(struct.pack(">I", length))
        one.await_end(silent=True)
    for opening in (b"GET / HTTP/1.1\r\n\r\n", b"SSH-2.0-OpenSSH_9.9\r\n", b"{\"operationType\":\"Store\"}"):
        one = bare()
        with contextlib.suppress(OSError):
            one.socket.sendall(opening)
        one.await_end(silent=True)
    # Claims to be the trusted peer, and requests pairing.
    one = bare(1)
    one.hello(stage.traitor)
    one.await_frame("Hello")
    one.write({"operationType": "Pair", "jmObjectType": "Pairing", "jmObject": {"step": "commit", "commitment": "A" * 44}})
    one.write(*(attacker.store(number, rig.hex_of(f"plain-{number}")) for number in range(1, 4)))
    answers = one.await_answers(3)
    if answers != ["held"] * 3 or any(frame["operationType"] == "Pair" for frame in one.frames):
        raise rig.Failure(f"a sender over plain TCP that says it is trusted was answered {answers}, {one.frames[-1]}")
    one.close()
    # A legacy sender may send any number of frames.
    one = bare(2)
    one.socket.settimeout(0.2)
    number = 0
    with contextlib.suppress(OSError):
        while number < stage.count(200, 5_000):
            number += 1
            one.write(dict(attacker.store(number, {"links": ["https://example.org"], "hexDescription": "x" * 2_000}), messageID=None))
    one.socket.settimeout(attacker.END_LIMIT)
    one.await_refusal("quotaExceeded")
    one.close(abruptly=True)
    held = daemon.status()["held"]
    inbox = daemon.api("GET", "/v1/hexes?location=inbox")["items"]
    if held > 40 or inbox or trust_of(daemon) != before:
        raise rig.Failure(f"over plain TCP: {held} hexes held, {len(inbox)} in the inbox, trust changed: {trust_of(daemon) != before}")
    # TLS on the same port works as usual.
    attacker.Attacker(daemon).tls(stage.stranger).meet(stage.stranger).close()
    daemon.stop()
    return f"a trusted peer's UUID proves nothing, 3 hexes held; {number} frames of a legacy sender: {held - 3} held; lengths, HTTP, SSH: closed"


def trust_of(daemon):
    with rig.Reader(daemon) as store:
        return store.all("SELECT uuid, fingerprint, trust FROM peer WHERE trust != 'stranger' ORDER BY uuid")


ATTACKS = {"descriptors": out_of_descriptors, "gigabyte": gigabyte, "links": links_are_not_followed, "plain": bare_tcp}
ONCE = set(ATTACKS)
