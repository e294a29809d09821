"""Common code of the programs in this folder: two hexlistd on loopback that trust each other, and the oracle.

Everything runs in its own folder and mount namespace, and ends with the program.
"""

import argparse
import contextlib
import ctypes
import hashlib
import http.client
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("HEXLIST_BIN") or os.path.join(ROOT, ".build/debug")
LAB = os.path.join(ROOT, "Scripts/lab")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"

# Timeouts in seconds that only prevent endless waits. No test result depends on them.
START_LIMIT = 60
STALL_LIMIT = 150

SKIPPED = 77


class Failure(Exception):
    """A requirement is violated."""


class Unavailable(Exception):
    """This machine cannot run the program."""


# MARK: Program


def main(run, description, rounds=None, hexes=None, needs=(), options=()):
    """Parses the command line, runs `run(options, folder)` in a folder of its own, and turns the result into an exit status.

    `needs` are `need_…` functions: the requirements on this machine.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Status: 0 the oracle holds, 1 it does not, 77 this machine cannot run it.")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance (1)")
    if rounds is not None:
        parser.add_argument("--rounds", type=int, default=rounds, help=f"how often ({rounds})")
    if hexes is not None:
        parser.add_argument("--hexes", type=int, default=hexes, help=f"hexes in all ({hexes})")
    parser.add_argument("--check", action="store_true", help="only say whether this machine can run it")
    parser.add_argument("--keep", action="store_true", help="leave the folder of a run that failed")
    parser.add_argument("--verbose", action="store_true", help="say what happens while it happens")
    for names, keywords in options:
        parser.add_argument(*names, **keywords)
    options = parser.parse_args()
    if needs or not options.check:  # otherwise nothing is mounted
        enter_mount_namespace()
    os.environ["PATH"] = PATH
    sys.stdout.reconfigure(line_buffering=True)
    folder = tempfile.mkdtemp(prefix="hexlist-fault-")
    random.seed(options.seed)
    keep = False
    try:
        if not all(os.access(os.path.join(BIN, name), os.X_OK) for name in ("hexlistd", "hexlist")):
            raise Unavailable(f"{BIN} has no hexlistd and hexlist: build them, or set HEXLIST_BIN")
        for what in needs:
            what(folder)
        Say.is_verbose = options.verbose
        if not options.check:
            run(options, folder)
        status = 0
    except Unavailable as reason:
        print(f"skipped: {reason}")
        status = SKIPPED
    except (Failure, Refused, subprocess.SubprocessError, OSError, sqlite3.Error, http.client.HTTPException) as fault:
        print(f"FAILED (seed {options.seed}): {type(fault).__name__}: {fault}")
        keep = options.keep
        Daemon.print_logs()
        status = 1
    finally:
        Daemon.end_all()
        Image.unmount_all()
        if keep:
            print(f"left: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status)


def enter_mount_namespace():
    """Moves this process into its own mount namespace, so that its mounts disappear when it ends."""
    if os.environ.get("HEXLIST_FAULT_NAMESPACE"):
        return
    os.environ["HEXLIST_FAULT_NAMESPACE"] = "1"
    system = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() != 0 or system.unshare(0x20000) != 0:  # CLONE_NEWNS
        return
    if system.mount(b"none", b"/", None, ctypes.c_ulong(0x44000), None) != 0:  # MS_REC | MS_PRIVATE
        raise OSError(ctypes.get_errno(), "mount / as private")


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Say:
    is_verbose = False
    start = time.monotonic()


def say(text):
    if Say.is_verbose:
        print(f"{time.monotonic() - Say.start:8.3f} {text}", file=sys.stderr)


def until(condition, what, limit=STALL_LIMIT, pause=0.01):
    """Waits for the first true value of `condition()`."""
    end = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"waited {limit} s for {what}")
        time.sleep(pause)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Unavailable(f"{program} is not installed")


def need_strace(folder):
    need("strace")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Unavailable("strace may not look at other processes here")


def need_compiler(folder):
    if compiler() is None:
        raise Unavailable("no C compiler to build the shim with")


def need_openssl(folder):
    need("openssl")


def need_loop(folder):
    """Checks that a loop device can be mounted, by creating and mounting a small one: permissions alone are not conclusive."""
    Image(folder, "probe", 4).unmount()


def need_lab(folder):
    """Checks that this machine can run hosts in namespaces (Scripts/lab)."""
    done = subprocess.run([LAB, "check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Unavailable(done.stdout.strip().split("\n")[0])


def compiler():
    return next((name for name in ("cc", "clang", "gcc") if shutil.which(name)), None)


def run_quietly(*command, accept=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode not in accept:
        raise Failure(f"{' '.join(command)}: {done.stdout.strip()}")


def descriptors(pid):
    """The number of open descriptors; none if the kernel shows them only to root, as for every undumpable process."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except PermissionError:
        return 0


def percentiles(values):
    values = sorted(values)
    if not values:
        return "none"
    return f"median {values[len(values) // 2]:.2f}, largest {values[-1]:.2f}"


# MARK: Daemons


def free_port(taken=[]):
    """A port that no other program gets while a daemon is down: below the kernel's ephemeral range, and reserved against other rigs on
    this machine."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        chosen_from = int(file.read().split()[0])
    for _ in range(1000):
        port = random.SystemRandom().randrange(12000, max(14000, min(30000, chosen_from)))
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            mark.bind(f"\0hexlist-fault-port-{port}")  # held until this process exits
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            mark.close()
            continue
        taken.append(mark)
        return port
    raise Unavailable("no port is free")


def connect_unix(path, timeout):
    """A connection to a Unix socket. A socket with a Python timeout is non-blocking, so its connect fails at once (EAGAIN) if too many
    connections wait to be accepted."""
    wire = socket.socket(socket.AF_UNIX)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(timeout), 0))
    wire.connect(path)
    wire.settimeout(timeout)
    return wire


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout=30):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = connect_unix(self.path, self.timeout)


class Refused(Exception):
    """The local API returned an error."""

    def __init__(self, status, error):
        super().__init__(f"{status} {error.get('code')}: {error.get('message')}")
        self.status = status
        self.code = error.get("code")


class Daemon:
    """One hexlistd that can be started, killed and restarted."""

    every = []

    def __init__(self, folder, name, state=None, config="", bin=None):
        self.name = name
        self.bin = bin or BIN
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder, mode=0o700)
        self.state = state or os.path.join(self.folder, "state")
        self.socket = os.path.join(self.folder, "control.sock")
        self.port = free_port()
        self.peers = []
        self.config = config
        self.process = None
        self.log = open(os.path.join(self.folder, "log"), "ab")
        self.starts = 0
        Daemon.every.append(self)

    @property
    def store(self):
        return os.path.join(self.state, "hexlist.sqlite")

    def store_bytes(self):
        """Bytes of the store's file and its WAL."""
        return sum(os.path.getsize(self.store + end) for end in ("", "-wal") if os.path.exists(self.store + end))

    def environment(self, extra=None):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEXLIST_")}
        environment.update(
            HOME=self.folder, XDG_CONFIG_HOME=self.folder, XDG_RUNTIME_DIR=self.folder, HEXLIST_STATE_DIR=self.state,
            HEXLIST_CONFIG=os.path.join(self.folder, "config.yaml"), HEXLIST_SOCKET=self.socket,
            # Announces nothing on this machine's network.
            DBUS_SYSTEM_BUS_ADDRESS=f"unix:path={self.folder}/no-bus", SWIFT_BACKTRACE="enable=no",
            # Looks up no names of links.
            HEXLIST_TITLES="off")
        environment.update(extra or {})
        return environment

    def write_config(self):
        peers = ", ".join(f'"127.0.0.1:{peer.port}"' for peer in self.peers)
        with open(os.path.join(self.folder, "config.yaml"), "w") as file:
            file.write(f"name: {self.name}\nlisten: [127.0.0.1]\nport: {self.port}\npeers: [{peers}]\n{self.config}")

    def begin(self, environment=None, before=()):
        """Starts the daemon without waiting until it is ready."""
        self.write_config()
        self.starts += 1
        notify = os.path.join(self.folder, f"notify-{self.starts}")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(notify)
        self.notify.settimeout(0.02)
        self.began = time.monotonic()
        extra = dict(environment or {}, NOTIFY_SOCKET=notify)
        self.process = subprocess.Popen(
            list(before) + [os.path.join(self.bin, "hexlistd")], env=self.environment(extra), stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log, preexec_fn=die_with_parent)
        self.pid = self.process.pid

    def await_ready(self):
        """Waits until the daemon is ready. Returns the seconds since its start."""
        end = time.monotonic() + START_LIMIT
        while True:
            try:
                if b"READY=1" in self.notify.recv(4096):
                    break
            except socket.timeout:
                pass
            if self.process.poll() is not None:
                raise Failure(f"{self.name} ended with {self.process.returncode} instead of starting")
            if time.monotonic() > end:
                raise Failure(f"{self.name} was not ready after {START_LIMIT} s")
        self.notify.close()
        return time.monotonic() - self.began

    def start(self, environment=None, before=()):
        self.begin(environment, before)
        return self.await_ready()

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """Sends SIGKILL, and waits for the end of the daemon."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Sends SIGTERM. The daemon must then exit with status 0."""
        if self.process is None or self.process.poll() is not None:
            return
        self.signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} did not stop")
        if status != 0:
            raise Failure(f"{self.name} ended with {status} when it was told to stop")

    def trust_all(self, peers):
        """Makes the daemon trust each `(uuid, fingerprint)`, without a session."""
        peers = list(peers)
        roster = "".join(json.dumps({"uuid": uuid, "fingerprint": fingerprint.hex().upper(), "name": "foreign", "trust": "trusted",
                                     "addresses": []}) + "\n" for uuid, fingerprint in peers)
        connection = Connection(self.socket, timeout=120)
        connection.request("POST", "/v1/roster", roster, {"Content-Type": "application/x-ndjson"})
        reply = json.loads(connection.getresponse().read())
        if reply.get("changed") != len(peers):
            raise Failure(f"the roster was not taken: {reply}")

    @property
    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def end(self):
        if self.is_running:
            with contextlib.suppress(OSError):
                self.signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    @classmethod
    def end_all(cls):
        for daemon in cls.every:
            daemon.end()

    @classmethod
    def print_logs(cls):
        for daemon in cls.every:
            daemon.log.flush()
            with open(daemon.log.name, errors="replace") as file:
                lines = [line[:240] for line in file.read().splitlines()[-25:]]
            print(f"--- {daemon.name}:", *lines, sep="\n")

    def log_text(self):
        with open(self.log.name, errors="replace") as file:
            return file.read()

    # MARK: Local API

    def api(self, method, path, body=None, timeout=30):
        connection = Connection(self.socket, timeout)
        try:
            return self.request(connection, method, path, body)
        finally:
            connection.close()

    @staticmethod
    def request(connection, method, path, body=None):
        connection.request(method, path, None if body is None else json.dumps(body),
                           {} if body is None else {"Content-Type": "application/json"})
        response = connection.getresponse()
        data = response.read()
        if response.status >= 300:
            try:
                error = json.loads(data)["error"]
            except (ValueError, KeyError, TypeError):
                error = {"code": "?", "message": data.decode(errors="replace")}
            raise Refused(response.status, error)
        return json.loads(data) if data else None

    def status(self):
        return self.api("GET", "/v1/status")

    def hexlist(self, *arguments, seconds=60):
        return subprocess.run([os.path.join(BIN, "hexlist"), *arguments], env=self.environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds)


class Cable:
    """A connection between two daemons: forwards to the port of a daemon, counts, and can be cut."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.is_cut = False
        self.bytes = self.connections = 0
        self.open = set()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    def carry(self, near):
        with near:
            if self.is_cut:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.daemon.port), timeout=10)
            except OSError:
                return
            with far, self.held(near, far):
                self.connections += 1
                pairs = {near: far, far: near}
                with contextlib.suppress(OSError):
                    while True:
                        for source in select.select(list(pairs), [], [])[0]:
                            data = source.recv(1 << 16)
                            if not data:
                                return
                            self.bytes += len(data)
                            pairs[source].sendall(data)

    @contextlib.contextmanager
    def held(self, *sockets):
        with self.lock:
            self.open.update(sockets)
        try:
            yield
        finally:
            with self.lock:
                self.open.difference_update(sockets)

    def cut(self):
        self.is_cut = True
        with self.lock:
            for wire in self.open:
                with contextlib.suppress(OSError):
                    wire.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.is_cut = False


def pair(folder, first="sender", second="receiver", state=None, config="", second_config=None):
    """Two running daemons that trust each other.

    `state` is the second one's state folder, if it is not in `folder`.
    """
    one = Daemon(folder, first, config=config)
    other = Daemon(folder, second, state=state, config=config if second_config is None else second_config)
    one.peers, other.peers = [other], [one]
    one.start()
    other.start()
    meet(one, other)
    return one, other


def meet(one, other):
    """Makes each trust the other, once it has seen it."""
    one.uuid, other.uuid = one.status()["uuid"], other.status()["uuid"]
    for here, there in ((one, other), (other, one)):
        await_sight(here, there)
        here.api("POST", f"/v1/peers/{there.uuid}/trust", {})


def await_sight(here, there):
    """Waits until one daemon has verified the other, whose `uuid` is known."""
    until(lambda: any(peer.get("uuid") == there.uuid and peer["state"] == "verified"
                      for peer in here.api("GET", "/v1/peers?all=true")["items"]), f"{here.name} to see {there.name}", START_LIMIT)


def uuid8(digest):
    """The first 16 bytes of a digest as a UUID of version 8, in upper case: for a fingerprint, the peer's UUID."""
    name = bytearray(digest[:16])
    name[6] = name[6] & 0x0F | 0x80
    name[8] = name[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(name))


# MARK: Hexes


def message_id(sender, key):
    """The message id of a key on the wire (Docs/Protocol.md)."""
    return uuid8(hashlib.sha256(b"hexlist-key-1" + uuid.UUID(sender).bytes + key.encode()).digest()).bytes


def hex_of(key):
    """The hex that belongs to a key, so that the oracle can check its content."""
    mark = hashlib.sha256(key.encode()).hexdigest()
    return {"hexDescription": f"hex {key}", "hexColor": "#3366CC",
            "links": [{"url": f"https://example.org/{key}/{mark[:16]}", "linkDescription": mark, "service": "Unknown"}]}


def line_of(key):
    return json.dumps(dict(hex_of(key), key=key)).encode() + b"\n"


class Bulk:
    """A client that passes hexes to a daemon in one bulk send, again from the start with the same keys after each lost connection.

    It writes only as far as permitted, so that a transfer lasts as long as the test needs.
    """

    def __init__(self, daemon, peer, keys, released=None):
        self.daemon, self.peer, self.keys = daemon, peer, keys
        self.lines = [line_of(key) for key in keys]
        self.released = len(keys) if released is None else released
        self.moved = threading.Condition()
        self.runs = 0
        self.ended = threading.Event()
        self.fault = None
        # Message ids reported as accepted.
        self.accepted = set()
        self.wanted = threading.Event()
        self.wanted.set()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def release(self, count):
        with self.moved:
            self.released = max(self.released, min(count, len(self.keys)))
            self.moved.notify_all()

    def daemon_is_back(self):
        self.wanted.set()

    def check(self):
        if self.fault:
            raise Failure(self.fault)

    def check_promises(self):
        """After a restart of the daemon its outbox has all accepted hexes."""
        with Reader(self.daemon) as outbox:
            there = {row[1] for row in outbox.outbox()}
        missing = len(self.accepted - there)
        if missing:
            raise Failure(f"{missing} of {len(self.accepted)} hexes were accepted and are not in the outbox")

    def run(self):
        while True:
            self.wanted.wait()
            self.wanted.clear()
            self.runs += 1
            try:
                summary = self.stream()
            except (OSError, http.client.HTTPException, ValueError) as fault:
                say(f"bulk run {self.runs}: {type(fault).__name__} {fault}")
                continue  # tries again until the daemon is back
            except Refused as fault:
                self.fault = str(fault)
                break
            if summary is None:
                say(f"bulk run {self.runs} was cut off")
                continue
            if summary["accepted"] != len(self.keys) or summary["invalid"]:
                self.fault = f"the bulk send ended with {summary}"
            break
        self.ended.set()

    def stream(self):
        """Sends all lines once. Returns the summary; `None` if the stream was cut off."""
        connection = open_bulk(self.daemon, self.peer, sum(map(len, self.lines)), "results=all")
        over = threading.Event()

        def write():
            done = 0
            with contextlib.suppress(OSError):
                while done < len(self.lines):
                    with self.moved:
                        while done >= self.released:
                            self.moved.wait(0.2)
                            if over.is_set():
                                return
                        end = self.released
                    connection.sendall(b"".join(self.lines[done:end]))
                    done = end

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        summary = None
        try:
            for value in bulk_lines(connection):
                if "summary" in value:
                    summary = value["summary"]
                elif value.get("outboxID") and value.get("state") in ("queued", "sending", "stored"):
                    self.accepted.add(uuid.UUID(value["messageID"]).bytes)
                else:
                    self.fault = f"the bulk send said {value}"
        finally:
            over.set()
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            writer.join()
            connection.close()
        return summary


def open_bulk(daemon, peer, length, query=""):
    """A connection with the head of a bulk send written to it."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(300)
    connection.connect(daemon.socket)
    connection.sendall((f"POST /v1/sends?to={peer}&wait=queued&{query} HTTP/1.1\r\nHost: localhost\r\n"
                        f"Content-Type: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n").encode())
    return connection


def bulk_lines(connection):
    """The daemon's reply, line by line, while the body is still being written."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    if response.status >= 300:
        raise Refused(response.status, json.loads(response.read())["error"])
    while line := response.readline():
        yield json.loads(line)


def send_each(daemon, peer, keys, wait="queued"):
    """One request for each hex, on one connection."""
    connection = Connection(daemon.socket)
    try:
        for key in keys:
            daemon.request(connection, "POST", f"/v1/sends?to={peer}&wait={wait}", dict(hex_of(key), key=key))
    finally:
        connection.close()


# MARK: Store files


def outbox_rows(database):
    """The rows of an outbox in order: id, message id, state and UUID of the peer. A row of the table is a range of them, whose message
    ids are in its pack (PackedHexes.swift)."""
    packs = {}
    for first, last, state, peer, pack, start, hexes in database.execute(
            "SELECT o.id, o.last, o.state, p.uuid, o.pack, outboxPack.first, outboxPack.hexes FROM outbox o JOIN peer p ON p.id = o.peer "
            "JOIN outboxPack ON outboxPack.id = o.pack ORDER BY o.id"):
        if pack not in packs:
            packs[pack], at = [], 0
            while at < len(hexes):
                packs[pack].append(hexes[at:at + 16])
                subject = int.from_bytes(hexes[at + 52:at + 54], "little")
                at += 54 + (0 if subject == 0xFFFF else subject)
        for row in range(first, last + 1):
            yield row, packs[pack][(row - start) % len(packs[pack])], state, peer


def stored(daemon):
    """The number of hexes in the inbox of a daemon."""
    with Reader(daemon) as store:
        return store.inbox()


class Reader:
    """Reads the store of a running daemon. Must be closed before a kill: while another process has the WAL open, the next start would
    not recover it as after a real crash."""

    def __init__(self, daemon):
        self.path = daemon.store
        self.connection = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    def one(self, sql, *values):
        if self.connection is None:
            self.connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=20, isolation_level=None)
        return self.connection.execute(sql, values).fetchone()[0]

    def outbox(self):
        """The rows of the outbox from `outbox_rows`."""
        self.one("SELECT 1")
        return list(outbox_rows(self.connection))

    def all(self, sql, *values):
        self.one("SELECT 1")
        return self.connection.execute(sql, values).fetchall()

    def inbox(self):
        return self.one("SELECT inbox FROM tally")

    def queued(self):
        return self.one("SELECT outQueued FROM tally")

    def check_index(self, name):
        """Checks in one snapshot that the search index has the hexes it claims. Returns the number not yet indexed."""
        self.one("SELECT 1")
        self.connection.execute("BEGIN")
        try:
            check_index(self.connection, name)
            return self.one("SELECT nextHex - 1 - indexed + reindex FROM tally")
        finally:
            self.connection.execute("COMMIT")


# The key of a hex's location in the index entries (Sources/HexlistStore/Search/SearchDocument.swift).
PLACES = " OR ".join(f'key : "\ue101{place}"' for place in ("inbox", "mine", "held"))


def check_index(database, name):
    """The search index finds all stored hexes except those it lists as not yet indexed."""
    if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'search'").fetchone():
        return  # a store of an earlier version has no search index
    found = {row[0] for row in database.execute("SELECT rowid FROM search WHERE search MATCH ?", (PLACES,))}
    stored = {row[0] for row in database.execute(
        "SELECT id FROM hex WHERE id <= (SELECT indexed FROM tally) AND id NOT IN (SELECT hex FROM reindex)")}
    if found != stored:
        raise Failure(f"{name}: search finds {len(found)} of {len(stored)} hexes that it says it has; missing {sorted(stored - found)[:3]}, "
                      f"too many {sorted(found - stored)[:3]}")


class Snapshot:
    """The contents of a store, read from a copy of its files, so that no recovery changes the original."""

    def __init__(self, store, scratch):
        copy = os.path.join(scratch, f"snapshot-{uuid.uuid4().hex[:8]}")
        os.makedirs(copy)
        try:
            for suffix in ("", "-wal"):
                if os.path.exists(store + suffix):
                    shutil.copyfile(store + suffix, os.path.join(copy, "db" + suffix))
            database = sqlite3.connect(os.path.join(copy, "db"))
            try:
                self.integrity = [row[0] for row in database.execute("PRAGMA integrity_check").fetchall()]
                self.foreign_keys = database.execute("PRAGMA foreign_key_check").fetchall()
                self.inbox = database.execute(
                    "SELECT inboxNumber, messageID, description, p.uuid FROM hex LEFT JOIN peer p ON p.id = hex.peer "
                    "WHERE location = 'inbox' ORDER BY inboxNumber").fetchall()
                self.links = dict(database.execute("SELECT id >> 13, description FROM link WHERE id & 8191 = 0").fetchall())
                self.hex_ids = dict(database.execute("SELECT inboxNumber, id FROM hex WHERE location = 'inbox'").fetchall())
                self.outbox = list(outbox_rows(database))
                self.bodies = database.execute("SELECT count(*) FROM outboxPack WHERE bodies IS NOT NULL").fetchone()[0]
                self.held = database.execute("SELECT count(*) FROM hex WHERE location = 'held'").fetchone()[0]
                self.tally = dict(zip(("inbox", "unread", "held", "outQueued", "outStored"), database.execute(
                    "SELECT inbox, unread, held, outQueued, outStored FROM tally").fetchone()))
                self.events_of = dict(database.execute("SELECT peer, sum(count) FROM event WHERE type = 'hex.received' GROUP BY peer").fetchall())
                self.events = sum(self.events_of.values())
                self.search_fault = None
                try:
                    check_index(database, os.path.basename(os.path.dirname(store)))
                except Failure as fault:
                    self.search_fault = fault
            finally:
                database.close()
        finally:
            shutil.rmtree(copy, ignore_errors=True)

    def check(self, name, search=True):
        if search and self.search_fault:
            raise self.search_fault
        if self.integrity != ["ok"] or self.foreign_keys:
            raise Failure(f"{name}: integrity_check says {self.integrity[:3]} {self.foreign_keys[:3]}")
        counted = {"inbox": len(self.inbox), "held": self.held, "outQueued": sum(row[2] == "queued" for row in self.outbox),
                   "outStored": sum(row[2] == "stored" for row in self.outbox)}
        for key, count in counted.items():
            if self.tally[key] != count:
                raise Failure(f"{name}: the counter {key} is {self.tally[key]} where {count} rows are")

    def received(self, sender):
        """Message ids of one sender in the inbox, in order."""
        sender = uuid.UUID(sender).bytes
        return [row[1] for row in self.inbox if row[3] == sender]

    def sent(self, receiver):
        """Message ids and states of one peer's rows, in order."""
        receiver = uuid.UUID(receiver).bytes
        return [row[1:3] for row in self.outbox if row[3] == receiver]


def check_exactly_once(sender, receiver, keys, scratch):
    """The oracle: every key is in the receiver's inbox once, in the order it was queued, with the right content, and the sender knows
    it. Both daemons are stopped. Hexes of other peers are ignored."""
    one, other = Snapshot(sender.store, scratch), Snapshot(receiver.store, scratch)
    one.check(sender.name)
    other.check(receiver.name, search=False)  # errors in the hexes themselves are reported first
    wanted = {message_id(sender.uuid, key): key for key in keys}
    arrived = other.received(sender.uuid)
    lost = [wanted[name] for name in wanted.keys() - set(arrived)]
    twice = len(arrived) - len(set(arrived))
    strange = len(set(arrived) - wanted.keys())
    if lost or twice or strange:
        raise Failure(f"{len(lost)} lost (as {lost[:3]}), {twice} twice, {strange} that nobody sent")
    rows = one.sent(receiver.uuid)
    queued = [row[0] for row in rows]
    if arrived != queued:
        place = next(index for index, pair in enumerate(zip(arrived, queued)) if pair[0] != pair[1])
        raise Failure(f"out of order from place {place} on: {wanted[arrived[place]]} where {wanted.get(queued[place])} was queued")
    for number, name, description, _ in other.inbox:
        key = wanted.get(name)
        if key and (description != f"hex {key}" or other.links.get(other.hex_ids[number]) != hashlib.sha256(key.encode()).hexdigest()):
            raise Failure(f"{key} has the wrong content: {description}")
    states = {}
    for _, state in rows:
        states[state] = states.get(state, 0) + 1
    if states != {"stored": len(wanted)}:
        raise Failure(f"the sender's outbox says {states}, and {len(wanted)} are stored")
    if one.bodies:
        raise Failure(f"{one.bodies} bodies are left in the sender's outbox")
    events = other.events_of.get(uuid.UUID(sender.uuid).bytes, 0)
    if events != len(wanted):
        raise Failure(f"{events} events hex.received for {len(wanted)} hexes")
    other.check(receiver.name)


def check_the_oracle(sender, receiver, keys, scratch):
    """Tests the oracle with wrong stores. Both daemons are stopped; their stores are damaged."""
    peer = f"(SELECT id FROM peer WHERE uuid = x'{uuid.UUID(sender.uuid).hex}')"
    middle = (f"(SELECT inboxNumber FROM hex WHERE location = 'inbox' AND peer = {peer} ORDER BY inboxNumber "
              f"LIMIT 1 OFFSET {len(keys) // 2})")
    wrongs = {
        "lost": [f"DELETE FROM hex WHERE inboxNumber = {middle}", "UPDATE tally SET inbox = inbox - 1, unread = unread - 1"],
        "twice": ["INSERT INTO hex (id, location, inboxNumber, peer, messageID, isProven, unread, linkCount, byteCount, "
                  "receivedAt, inboxAt, heldSince, heldFrom, senderUUID, senderName, description, color, extra) "
                  "SELECT id + 1000000, location, inboxNumber + 1000000, peer, messageID, 0, unread, linkCount, byteCount, "
                  "receivedAt, inboxAt, heldSince, heldFrom, senderUUID, senderName, description, color, extra FROM hex "
                  f"WHERE inboxNumber = {middle}", "UPDATE tally SET inbox = inbox + 1, unread = unread + 1"],
        "out of order": [f"UPDATE hex SET inboxNumber = inboxNumber + 2000000 WHERE inboxNumber = {middle}"],
        "content": [f"UPDATE hex SET description = 'another' WHERE inboxNumber = {middle}"],
        "search": [f"INSERT INTO reindex SELECT id FROM hex WHERE inboxNumber = {middle}"],
    }
    good = receiver.store
    for wrong, statements in wrongs.items():
        receiver_copy = os.path.join(scratch, "spoilt.sqlite")
        shutil.copyfile(good, receiver_copy)
        with contextlib.closing(sqlite3.connect(receiver_copy)) as database, database:
            for statement in statements:
                database.execute(statement)
        try:
            check_exactly_once(sender, Spoilt(receiver, receiver_copy), keys, scratch)
        except Failure as fault:
            if wrong in str(fault):
                continue
        raise Failure(f"the oracle does not see that a hex is wrong: {wrong}")


class Spoilt:
    """A daemon with another store."""

    def __init__(self, daemon, store):
        self.name, self.uuid, self.store = daemon.name, daemon.uuid, store


def await_delivery(sender, receiver, count, progress=None):
    """Waits until the inbox has the given number of hexes and the sender's outbox has no waiting row."""
    last = [(-1, -1), time.monotonic()]
    with Reader(sender) as outbox, Reader(receiver) as inbox:
        while True:
            now = (inbox.inbox(), outbox.queued())
            if now[0] >= count and now[1] == 0:
                return
            if now != last[0]:
                last = [now, time.monotonic()]
            elif time.monotonic() - last[1] > STALL_LIMIT:
                rows = sender.api("GET", "/v1/outbox?state=queued&limit=3")["items"]
                raise Failure(f"nothing moved for {STALL_LIMIT} s: {now[0]} of {count} in the inbox, {now[1]} wait, the first: {rows}")
            if progress:
                progress()
            time.sleep(0.02)


# MARK: The shim


class Shim:
    """shim.c, built for this run: disables a defence, or makes a system call fail. Located beside this file."""

    def __init__(self, folder):
        need_compiler(folder)
        self.path = os.path.join(folder, "shim.so")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim.c")
        subprocess.run([compiler(), "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", self.path, source, "-ldl", "-lpthread"], check=True)

    def environment(self, rules="", normal=False, clock=None):
        """Environment for `Daemon.start`. shim.c explains the rules and the clock file."""
        environment = {"LD_PRELOAD": self.path, "FAULT_RULES": rules}
        if normal:
            environment["FAULT_NORMAL"] = "1"
        if clock:
            environment["FAULT_CLOCK"] = clock
        return environment


# MARK: Disks


class Image:
    """A file with an ext4 file system, mounted through a loop device. Copying the file while it is mounted gives the state after a power
    cut: data not yet written to the device is missing."""

    mounted = []

    def __init__(self, folder, name, mebibytes):
        need("mkfs.ext4", "mount", "umount")
        self.file = os.path.join(folder, f"{name}.img")
        self.point = os.path.join(folder, name)
        os.makedirs(self.point, exist_ok=True)
        with open(self.file, "wb") as file:
            file.truncate(mebibytes << 20)
        # No lazy initialisation, because the kernel would keep writing to the image.
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", self.file],
                       check=True, stdout=subprocess.DEVNULL)
        self.mount()

    def mount(self):
        if os.geteuid() != 0:
            raise Unavailable("mounting a loop device needs root")
        done = subprocess.run(["mount", "-o", "loop,noatime,errors=remount-ro", self.file, self.point], stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Unavailable(f"a loop device cannot be mounted here: {done.stderr.strip()}")
        Image.mounted.append(self.point)

    def unmount(self):
        subprocess.run(["umount", self.point], check=True)
        Image.mounted.remove(self.point)

    def fail(self):
        """Makes the kernel treat the file system as damaged: it turns read-only for all open files. Returns whether this kernel supports
        that."""
        with open("/proc/mounts") as mounts:
            device = next(line.split()[0] for line in mounts if line.split()[1] == self.point)
        trigger = f"/sys/fs/ext4/{os.path.basename(device)}/trigger_fs_error"
        if not os.access(trigger, os.W_OK):
            return False
        with open(trigger, "w") as file:
            file.write("1")
        return True

    def repair(self):
        self.unmount()
        run_quietly("e2fsck", "-p", self.file, accept=(0, 1))
        self.mount()

    @classmethod
    def unmount_all(cls):
        for point in cls.mounted:
            subprocess.run(["umount", "--lazy", point], stderr=subprocess.DEVNULL)

    def copy(self, path):
        """A snapshot of the device: the copy is repeated until the device did not change meanwhile."""
        for _ in range(50):
            before = os.stat(self.file).st_mtime_ns
            subprocess.run(["cp", "--sparse=always", self.file, path], check=True)
            same = subprocess.run(["cmp", "-s", self.file, path]).returncode == 0
            if same and os.stat(self.file).st_mtime_ns == before:
                return
        raise Failure("the device is written to all the time")
