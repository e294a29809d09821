"""Attacks of `hostile` by machines of other persons with which the victim shares hexes, or does not (Docs/Lists.md, "Shared lists").

Each attack has a hostile machine of its own: sessions of attacker.py, connections for lists, and nodes of Examples/foreign_nodes.py, which
is a second implementation of lists. An honest member, a hexlistd, has joined each of the shared hexes, too. After each attack, the owner
and this member change the hex with the real commands, and must then show the same hex with equal digests.
"""

import contextlib
import importlib.machinery
import importlib.util
import itertools
import json
import os
import queue
import random
import re
import secrets
import socket
import string
import sys
import threading
import time
import uuid

import attacker
import foreign
import rig
from stage import pin, share

FILES, FILES_SERVE = "hexlist-files/1", "hexlist-files-serve/1"
HOUR = 3_600_000
# Bounds of the rows, texts and replica numbers that the owner of a list accepts from its members: three quarters of those of a list.
MOST_NODES, MOST_TEXT, MOST_REPLICAS = 75_000, 48 << 20, 375
PAGE_BYTES, PAGE_ROWS, TEXT_BYTES, NODE_BYTES = 2 << 20, 2_000, 64 << 10, 256 << 10
# Seconds until a page that does not end is given up (Docs/Lists.md, "Exchange").
PAGE_TIMEOUT = 300
# Seconds in which a change of the owner arrives at other members beside a slow one, and theirs at the owner once the slow one is given up.
SOON = 15
# MiB by which an attack of this module may increase the memory. A page of 2 MiB is in memory as text, as JSON, as nodes and as rows.
MEMORY_BOUND = 64
# With --long, the p99 of the trusted peer's sends may be this factor of the undisturbed one, or so many seconds.
LATENCY_FACTOR, LATENCY_FLOOR = 2, 0.05
# Seconds of these sends by the name of the attack, without its preparation and the checks after it.
LATENCIES = {}
# Seconds in which a change arrives at the other machine, unless another member delays it. After a flood, all of its rows arrive before.
ARRIVES = 300


def loaded(name, *path):
    """A Python program that is not in this folder, or has no suffix, as a module."""
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(rig.ROOT, *path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look up their module
    loader.exec_module(module)
    return module


sys.dont_write_bytecode = True  # leaves no __pycache__ beside the examples
nodes = loaded("foreign_nodes", "Examples", "foreign_nodes.py")
lists = loaded("lists_rig", "Tests", "Faults", "lists")
require = lists.require


@contextlib.contextmanager
def during(stage, name):
    """Adds the trusted peer's sends inside to those of an attack."""
    start = stage.sends.count
    yield
    LATENCIES.setdefault(name, []).extend(stage.sends.seconds(start))


def p99(name):
    return share(LATENCIES[name], 0.99)


def faults(stage):
    """The attacks during which the p99 of the trusted peer's sends was beyond its bound."""
    if not stage.long or not stage.undisturbed:
        return []
    bound = max(LATENCY_FLOOR, LATENCY_FACTOR * stage.undisturbed["p99"])
    return [f"{name}: the p99 of the trusted peer was {1000 * p99(name):.0f} ms; the bound is {1000 * bound:.0f} ms"
            for name in LATENCIES if p99(name) > bound]


# MARK: Machines


class Machine:
    """A machine of another person, which the victim trusts: a session, and connections for lists in both directions.

    `answer(target)` returns the status and the body for each request of the victim; `requests` has the times and targets of all.
    """

    def __init__(self, stage, name):
        self.stage, self.victim, self.name = stage, stage.victim, name
        self.identity = foreign.Identity(stage.folder, f"{name}-{secrets.token_hex(3)}")
        foreign.acquaint(self.victim, self.identity)
        self.uuid = self.identity.uuid
        self.requests, self.faults, self.outgoing, self.wires = [], [], queue.SimpleQueue(), []
        self.session = self.connection = None
        self.sessions = 0

    # -- the session

    def open(self):
        self.sessions += 1
        self.session = attacker.Attacker(self.victim, 200).tls(self.identity).meet(self.identity, features=["files", "lists"])
        self.outgoing = queue.SimpleQueue()
        threading.Thread(target=self.carry, args=(self.session, self.outgoing), daemon=True).start()
        return self

    def carry(self, session, outgoing):
        """Sends frames, and answers `FileDial` by connections to the victim, until the session ends. OpenSSL allows only one thread."""
        done = 0
        try:
            while session.is_open:
                if attacker.readable([session.socket], 0.02) or session.socket.pending():
                    if not session.read_some():
                        break
                for frame in session.frames[done:]:
                    if frame["operationType"] == "FileDial":
                        threading.Thread(target=self.serve, args=(int(frame["message"].split()[1]),), daemon=True).start()
                done = len(session.frames)
                while not outgoing.empty():
                    session.socket.sendall(outgoing.get())
        except (OSError, ValueError, rig.Failure):
            pass  # closed by either side
        session.close()

    def announce(self, times=1):
        """Sends `ListNews` that many times."""
        frame = attacker.framed(json.dumps({"versionID": "1", "operationType": "ListNews"}).encode())
        self.outgoing.put(frame * times)

    def close(self):
        """Ends all connections. The threads that use them close them, because another connection may get the number of a closed one."""
        for wire in [*([self.session.socket] if self.session and self.session.is_open else []), *self.wires]:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(wire, socket.SHUT_RDWR)
        if self.connection:
            self.connection.close()
        self.wires, self.connection = [], None

    # -- requests of the victim

    def serve(self, port):
        try:
            wire = attacker.tls_context(self.identity, protocols=(FILES_SERVE,)).wrap_socket(
                socket.create_connection(("127.0.0.1", port), timeout=attacker.END_LIMIT))
            self.wires.append(wire)
            with wire, wire.makefile("rb") as requests:
                while line := requests.readline():
                    while requests.readline() not in (b"\r\n", b""):
                        pass
                    target = line.decode().split()[1]
                    status, body = self.answer(target)
                    self.requests.append((time.monotonic(), target))
                    self.send(wire, target, f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        except (OSError, ValueError):
            pass  # the victim closed the connection, or the attack is over
        except Exception as fault:
            self.faults.append(fault)

    def send(self, wire, target, data):
        wire.sendall(data)

    def answer(self, target):
        raise NotImplementedError

    def page_requests(self):
        return [target for _, target in self.requests if target != "/lists"]

    # -- requests to the victim

    def get(self, target):
        """Requests a list of the victim. Returns the status, and the whole answer without the time of day."""
        if not self.connection:
            bare = socket.create_connection(("127.0.0.1", self.victim.port), timeout=attacker.END_LIMIT)
            self.connection = attacker.tls_context(self.identity, protocols=(FILES,)).wrap_socket(bare)
            self.answers = self.connection.makefile("rb")
        self.connection.sendall(f"GET {target} HTTP/1.1\r\nHost: hexlist\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.answers.readline() or self.is_lost()
        length = int(re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)[1])
        body = self.answers.read(length)
        return int(head.split()[1]), body, re.sub(rb"(?i)\r\ndate:[^\r]*", b"", head) + body

    @staticmethod
    def is_lost():
        raise rig.Failure("the victim closed a connection for lists")

    def overview(self):
        status, body, _ = self.get("/lists")
        require(status == 200, f"/lists was answered {status}")
        return json.loads(body)["lists"]


class Member(Machine):
    """A member of one shared hex. It serves rows of its own from number 0 on."""

    def __init__(self, stage, name):
        super().__init__(stage, name)
        self.replica, self.number, self.list = secrets.token_hex(8), 1, None

    def entry(self, **others):
        return {"list": self.list, "role": "joined", "access": "write", "title": "", "hexes": 1, "links": 1, "replica": self.replica,
                "seq": self.number, "digest": secrets.token_hex(8), **others}

    def entries(self):
        return [self.entry()]

    def answer(self, target):
        if target == "/lists":
            return 200, json.dumps({"now": nodes.clock_now(), "machine": "peer", "lists": self.entries()}).encode()
        found = re.fullmatch(r"/lists/([0-9A-F-]{36})\?(?:replica=([0-9a-fA-F]{16})&after=([0-9]+)&)?as=([0-9a-fA-F]{16})", target)
        if not found:
            raise rig.Failure(f"an undocumented request: {target}")
        after = int(found[3]) if found[3] and found[2].lower() == self.replica else 0
        return 200, self.page(after)

    def page(self, after):
        """The JSON of the page after a number."""
        raise NotImplementedError

    def page_of(self, after, through, rows, by, is_last=False, **others):
        return json.dumps({"list": self.list, "replica": self.replica, "after": after, "through": through, "last": is_last, "by": by,
                           "rows": rows, **others}).encode()

    @property
    def list_id(self):
        return uuid.UUID(self.list).bytes


def place(parent=b""):
    return {"in": nodes.base64url(parent) if parent else "", "key": nodes.base64url(secrets.token_bytes(8))}


def link(url, at=None, by=0, **others):
    """A row with a new link in the root of a list."""
    return {"n": nodes.base64url(nodes.new_id(nodes.LINK)), "v": [at or nodes.clock_now(), 0, by], "url": url, "title": url, **place(),
            **others}


# MARK: Shared hexes


class SharedHexes:
    """The shared hexes of the victim, the honest member that has all of them, and a hex that the victim shares with nobody."""

    def __init__(self, stage):
        self.stage, self.victim, self.number = stage, stage.victim, itertools.count(1)
        self.honest = rig.Daemon(stage.folder, f"honest-{len(rig.Daemon.every)}")
        self.honest.peers = [self.victim]
        self.honest.start()
        self.honest.uuid = self.honest.status()["uuid"]
        if stage.is_apart:
            pin(self.honest.pid, os.sched_getaffinity(os.getpid()))
        for here, there in ((self.victim, self.honest), (self.honest, self.victim)):
            rig.await_sight(here, there)
            here.api("POST", f"/v1/peers/{there.uuid}/trust", {})
        self.private = self.run(self.victim, "mine", "add", "-d", "not shared", "https://victim.example/private")
        self.other = Shared(self, "shared with the honest member only")

    @classmethod
    def of(cls, stage):
        if not hasattr(stage, "shared_hexes"):
            stage.shared_hexes = cls(stage)
        return stage.shared_hexes

    @staticmethod
    def run(daemon, *arguments):
        done = daemon.hexlist(*arguments, seconds=600)
        require(done.returncode == 0, f"{daemon.name}: hexlist {' '.join(arguments)}: {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout

    @staticmethod
    def query(daemon, sql, *values):
        with rig.Reader(daemon) as store:
            return store.all(sql, *values)

    def my_hexlist(self):
        """All rows of the victim's My Hexlist, except the entries of shared hexes."""
        return self.query(self.victim, "SELECT * FROM node WHERE kind <> 3 AND list = 1 ORDER BY id")

    @property
    def collection(self):
        """The UUID of the victim's My Hexlist."""
        return str(uuid.UUID(bytes=self.query(self.victim, "SELECT uuid FROM list WHERE id = 1")[0][0])).upper()


class Shared:
    """A hex that the victim shares with the honest member, and with hostile ones."""

    def __init__(self, hexes, title):
        self.hexes, self.victim, self.honest = hexes, hexes.victim, hexes.honest
        links = [{"url": f"https://victim.example/{next(hexes.number)}"} for _ in range(10)]
        self.hex = self.victim.api("POST", "/v1/mine", {"hexDescription": title, "links": links})["id"]
        self.share(self.honest.uuid, "write")
        self.list = next(one["list"] for one in self.victim.api("GET", "/v1/lists")["shared"] if one.get("hex") == self.hex)
        rig.until(lambda: any(offer["list"] == self.list for offer in self.honest.api("GET", "/v1/lists")["offers"]), "the offer")
        hexes.run(self.honest, "mine", "join", title, "--yes")
        self.await_same()

    def share(self, peer, access):
        self.victim.api("PUT", f"/v1/mine/{self.hex}/share", {"with": [{"peer": peer, "access": access}]})

    def admit(self, member, access):
        """Shares the hex with a hostile member, which joins it. The victim requests its overview from then on."""
        member.open()
        self.share(member.uuid, access)
        rig.until(lambda: any(entry["list"] == self.list and entry["role"] == "shared" for entry in member.overview()), "the offer")
        member.list = self.list
        member.announce()
        return member

    def make_room(self):
        """The owner deletes the hexes inside: nothing can be added to a hex with more than 5 000 hexes or links. Returns the seconds."""
        shared = next(one for one in self.victim.api("GET", "/v1/lists")["shared"] if one["list"] == self.list)
        began = time.monotonic()
        if shared["hexes"] + shared["links"] > 4_000:
            # A deletion may move or delete others: their places and deletion marks can refer to each other.
            while inside := self.victim.api("GET", f"/v1/hexes/{self.hex}", timeout=120).get("children"):
                require(time.monotonic() - began < 600, f"{len(inside)} hexes are left, which cannot be deleted")
                self.victim.hexlist("mine", "rm", *(str(hex["id"]) for hex in inside[:500]), "--yes", seconds=600)
        return time.monotonic() - began

    def hex_on(self, daemon):
        return next(one.get("hex") for one in daemon.api("GET", "/v1/lists")["shared"] if one["list"] == self.list)

    def shown(self, daemon):
        """The tree of the hex by `hexlist mine`, or `None` if it is not there."""
        hex = self.hex_on(daemon)
        lines = map(json.loads, self.hexes.run(daemon, "mine", "--tree", "--json", "--limit", "0").splitlines())
        return next((lists.tree(line) for line in lines if line["id"] == hex), None)

    def rows(self, daemon, what="count(*)", condition="1", *values):
        """The answer of a query about the rows of the list in the store of a daemon."""
        return self.hexes.query(daemon, f"SELECT {what} FROM node WHERE list = (SELECT id FROM list WHERE uuid = ?) AND {condition}",
                                uuid.UUID(self.list).bytes, *values)

    def number_of(self, daemon, condition="1", *values):
        return self.rows(daemon, "count(*)", condition, *values)[0][0]

    def digest(self, daemon):
        return self.hexes.query(daemon, "SELECT digest FROM list WHERE uuid = ?", uuid.UUID(self.list).bytes)[0][0]

    def await_same(self, limit=ARRIVES):
        """Waits until owner and honest member show the same hex. Returns the seconds."""
        began = time.monotonic()
        rig.until(lambda: self.digest(self.victim) == self.digest(self.honest), "equal digests of the owner and the honest member", limit)
        took = time.monotonic() - began
        require(self.shown(self.victim) == self.shown(self.honest) is not None, "the owner and the honest member show different hexes")
        return took

    def add(self, daemon):
        """Adds a link with `hexlist`. Returns its URL."""
        url = f"https://{daemon.name}.example/{next(self.hexes.number)}"
        self.hexes.run(daemon, "mine", "edit", str(self.hex_on(daemon)), "--add", url)
        return url

    def await_link(self, daemon, url, limit=ARRIVES):
        """Waits until a link is in the store of a daemon. Returns the seconds."""
        began = time.monotonic()
        rig.until(lambda: self.number_of(daemon, "url = ?", url), f"{url} on {daemon.name}", limit)
        return time.monotonic() - began

    def check_after(self, member):
        """Changes of both honest users arrive at the other one, on which they are shown; their other hexes work, too."""
        for fault in member.faults if member else []:
            raise fault
        for shared in {self, self.hexes.other}:
            for here, there in ((self.victim, self.honest), (self.honest, self.victim)):
                shared.await_link(there, shared.add(here))
            shared.await_same()
        self.hexes.run(self.victim, "mine", "edit", str(self.private_hex()), "-d", f"not shared, {next(self.hexes.number)}")
        require(self.honest.is_running, "the honest member is gone")

    def private_hex(self):
        hexes = [json.loads(line) for line in self.hexes.run(self.victim, "mine", "--json", "--limit", "0").splitlines()]
        return next(hex["id"] for hex in hexes if hex["description"].startswith("not shared"))


def stuck_reasons(stage, member):
    events = stage.victim.api("GET", "/v1/events?type=list.stuck&last=1000")["items"]
    return [event["data"]["reason"] for event in events if event.get("peer") == member.uuid]


# MARK: Random pages


class Liar(Member):
    """A member that answers each request of rows with a random page.

    Links with the URL `…/valid/N` are in pages that the owner accepts, those with `…/malformed/N` are rows that it has to leave out, and
    those with `…/refused/N` are in pages that it has to refuse. `…/changed/N` is another URL of a link that has one.
    """
    URL = "https://forged.example/"

    def __init__(self, stage, name, foreign_lists):
        super().__init__(stage, name)
        self.foreign_lists, self.foreign_replicas = foreign_lists, []
        # The replica numbers of all versions, fewer than a list may have.
        self.writers = [f"{random.getrandbits(64):016x}" for _ in range(60)]
        self.known, self.hexes, self.links, self.pages, self.refused = [], [], [], 0, 0
        self.arrived = time.monotonic()
        # The numbers of valid links: of the last page, and of all that the owner has accepted.
        self.offered, self.accepted = (None, []), []
        self.marks = itertools.count(1)

    def learn(self):
        """Reads the rows of the owner, whose nodes the liar changes, too."""
        page = json.loads(self.get(f"/lists/{self.list}?as={self.replica}")[1])
        self.foreign_replicas = [page["replica"]]
        ids = [nodes.from_base64url(row["n"], 16, 16) for row in page["rows"]]
        self.known = ids + [self.list_id, *(uuid.UUID(one).bytes for one in self.foreign_lists)]
        self.links = [node_id for node_id in ids if nodes.kind_of(node_id) == nodes.LINK]
        self.hexes = [self.list_id]

    def mark(self, kind):
        number = next(self.marks)
        return number, f"{self.URL}{kind}/{number}"

    def page(self, after):
        self.arrived = time.monotonic()
        through, numbers = self.offered
        if through == after:
            self.accepted += numbers
        self.pages, self.offered = self.pages + 1, (None, [])
        if random.random() < 0.2:
            self.refused += 1
            return self.refused_page(after)
        if random.random() < 0.02:
            self.replica, after = random.choice(self.writers), 0
        rows, numbers = self.rows()
        through = after + random.choice([1, 1, 1, 2, 1000, 1 << 40])
        self.offered = through, numbers
        return self.page_of(after, through, rows, self.by())

    def by(self):
        """Replica numbers: twelve of the own ones, one that is malformed, and those of other machines."""
        own = [self.writers[number % len(self.writers)] for number in range(self.pages, self.pages + 12)]
        return [*own, "x" * 16, *self.foreign_replicas, own[0].upper(), 7]

    def rows(self):
        rows, numbers, size = [], [], 0
        for _ in range(random.randrange(1, 40)):
            make = random.choice([self.valid, self.malformed, self.wild, self.wild, self.cycle])
            for row in make(numbers):
                size += len(json.dumps(row))
                if size < PAGE_BYTES * 3 // 4:
                    rows.append(row)
                elif make == self.valid:
                    numbers.pop()
        random.shuffle(rows)
        return rows, numbers

    def valid(self, numbers):
        number, url = self.mark("valid")
        numbers.append(number)
        row = link(url, by=random.randrange(12))
        return [row] * random.choice([1, 1, 1, 3])

    def at(self):
        now = nodes.clock_now()
        return random.choice([1, now - HOUR, now, now, now + HOUR, now + 11 * HOUR])

    def version(self):
        return [self.at(), random.choice([0, 1, 0xFFFF]), random.randrange(12)]

    def some_id(self):
        """The id of a known node, of a foreign list, or of a new node of any kind but a shared list."""
        if random.random() < 0.7:
            return random.choice([*self.known, *self.hexes])
        new = nodes.new_id(random.choice([nodes.HEX, nodes.HEX, nodes.LINK, 0, 4, 15]))
        self.known.append(new)
        if nodes.kind_of(new) == nodes.HEX:
            self.hexes.append(new)
        return new

    def some_text(self):
        if random.random() < 0.01:
            return "x" * random.choice([TEXT_BYTES, TEXT_BYTES // 2])
        letters = string.ascii_letters + "\0\x1b\u202e\u2028\ufeff\U0001f600e\u0301"
        return "".join(random.choices(letters, k=random.randrange(20)))

    def wild(self, _):
        """A change of a node, in any form that is permitted."""
        row = {"n": nodes.base64url(self.some_id()), "v": self.version()}
        if random.random() < 0.6:
            row.update(place(random.choice([b"", self.some_id()])), inAt=self.version(), was=nodes.base64url(self.some_id()))
        if random.random() < 0.6:
            row.update(title=self.some_text(), titleAt=self.version())
        if random.random() < 0.4:
            names = ["color", "sender", "senderName", "note", "extra", "tag/a", "tag/", "done", "read", "with/x", "access", "epoch",
                     "copied", "\0", f"r{random.randrange(200)}"]
            row["r"] = {name: [self.version(), self.some_text()] for name in random.sample(names, random.randrange(1, 12))}
        if random.random() < 0.3:
            row["gone"] = random.choice([self.version(), row["v"]])
            if random.random() < 0.7:
                row["with"] = nodes.base64url(self.some_id())
        if random.random() < 0.2 and self.links:
            row["n"], row["url"] = nodes.base64url(random.choice(self.links)), self.mark("changed")[1]
        return [row]

    def cycle(self, _):
        """Hexes that are in each other, or whose deletion marks name each other."""
        ids = [self.some_id() if random.random() < 0.5 else nodes.new_id(nodes.HEX) for _ in range(random.randrange(2, 12))]
        version, is_deleted = self.version(), random.random() < 0.5
        rows = []
        for here, there in zip(ids, ids[1:] + ids[:1]):
            row = {"n": nodes.base64url(here), "v": version, **place(there)}
            rows.append({**row, "gone": version, "with": nodes.base64url(there)} if is_deleted else row)
        return rows

    def malformed(self, _):
        _, url = self.mark("malformed")
        now, row = nodes.clock_now(), link(url)
        registers = {f"r{number}": [[now, 0, 0], "x"] for number in range(65)}
        many_texts = {f"r{number}": [[now, 0, 0], "x" * TEXT_BYTES] for number in range(5)}
        wrong = [
            *({"v": version} for version in (
                [now + 13 * HOUR, 0, 0], [105_553_116_266_496, 0, 0], [1 << 62, 0, 0], [-1, 0, 0], [0, 0, 0], [now, 0x10000, 0],
                [now, 0, 12], [now, 0, 999], [now, 0, -1], [now, 0], [now + 0.5, 0, 0], "now", {})),
            {"v": None}, {"in": "", "key": None}, {"key": ""}, {"key": nodes.base64url(bytes(129))}, {"key": "AQID="}, {"key": "+/+/"},
            {"in": "AAAA"}, {"in": 7}, {"was": "x"}, {"n": nodes.base64url(uuid.uuid4().bytes)}, {"n": "AAAA"}, {"n": 7}, {"n": None},
            {"n": nodes.base64url(nodes.new_id(nodes.SHARED_LIST)), "title": self.foreign_lists[0]},
            {"url": url + "x" * TEXT_BYTES}, {"url": [url]}, {"title": "x" * (TEXT_BYTES + 1)}, {"title": 7},
            {"service": "x" * (TEXT_BYTES + 1)},
            {"r": registers}, {"r": many_texts}, {"r": {"x" * 65: [[now, 0, 0], ""]}}, {"r": {"": [[now, 0, 0], ""]}}, {"r": [1]},
            {"r": {"a": "b"}}, {"r": {"a": [[now, 0, 0], 7]}}, {"r": {"a": [[now + 13 * HOUR, 0, 0], ""]}}, {"gone": "x"},
            {"gone": [now + 13 * HOUR, 0, 0]}, {"gone": [now, 0, 0], "with": "x"},
        ]
        return [{**row, **random.choice(wrong)}]

    def refused_page(self, after):
        row, by, through = link(self.mark("refused")[1]), self.by(), after + 1
        page = json.loads(self.page_of(after, through, [row], by))
        wrong = [
            {"list": random.choice(self.foreign_lists)}, {"list": attacker.new_id()}, {"list": 7}, {"replica": self.foreign_replicas[0]},
            {"replica": "x"}, {"replica": None}, {"after": after + 1, "through": after + 2}, {"through": after}, {"through": -1},
            {"after": str(after)}, {"through": 1 << 63}, {"after": -1}, {"through": 1.5}, {"last": "true"}, {"last": None}, {"by": {}},
            {"by": None}, {"rows": {}}, {"rows": None}, {"rows": [row] + [7] * PAGE_ROWS}, {"rows": [row, {"n": "x" * PAGE_BYTES}]},
        ]
        page = json.dumps({**page, **random.choice(wrong)}).encode()
        texts = [page, page, page, page, page[:-1], page + b"}", b"[" + page + b"]", page.replace(b"refused", b"refused\xff"),
                 page.replace(b'"rows"', b'"x":' + b"[" * 5_000 + b',"rows"'), secrets.token_bytes(1_000), b""]
        return random.choice(texts)


def member_liar(stage):
    hexes = SharedHexes.of(stage)
    shared = Shared(hexes, "with a liar")
    liar = shared.admit(Liar(stage, "liar", [hexes.other.list, hexes.collection]), "write")
    liar.learn()
    originals = dict(shared.rows(stage.victim, "uuid, url", "kind = 2"))

    def untouched():
        return hexes.my_hexlist(), hexes.other.rows(stage.victim, "*")

    before, wanted = untouched(), stage.count(60, 1_000)
    with during(stage, "member-liar"):
        while liar.pages < wanted:
            # The owner requests the list later after a page that it refuses. A new session ends this pause.
            if time.monotonic() - liar.arrived > (0.25 if liar.offered[0] is None else 3):
                liar.close()
                liar.arrived, liar.offered = time.monotonic(), (0, [])
                liar.open()
                liar.announce()
            time.sleep(0.01)
            for fault in liar.faults:
                raise fault
            require(stage.victim.is_running, "the victim is gone")
    liar.close()
    require(untouched() == before, "a page of one list changed another one, or My Hexlist")
    stored = {int(url.rsplit("/", 1)[1]) for url, in shared.rows(stage.victim, "url", "url LIKE ?", Liar.URL + "valid/%")}
    lost = set(liar.accepted) - stored
    require(not lost and len(liar.accepted) > wanted / 4, f"of {len(liar.accepted)} valid links {len(lost)} are not stored")
    for kind in ("malformed", "refused"):
        wrong = shared.rows(stage.victim, "substr(url, 1, 200)", "url LIKE ?", f"{Liar.URL}{kind}/%")
        require(not wrong, f"{len(wrong)} {kind} rows are stored: {wrong[:3]}")
    changed = [url for node_id, url in shared.rows(stage.victim, "uuid, url", "kind = 2") if url and originals.get(node_id, url) != url]
    require(not changed, f"the URLs of {len(changed)} links changed")
    latest = (nodes.clock_now() + 12 * HOUR) << 16 | 0xFFFF
    texts = " OR ".join(f"length(CAST({column} AS BLOB)) > {TEXT_BYTES}" for column in ("title", "url", "service"))
    clocks = "max(coalesce(placeClock, 0), coalesce(titleClock, 0), coalesce(goneClock, 0))"
    beyond = shared.number_of(stage.victim, f"kind = 3 OR {clocks} > ? OR length(orderKey) > 128 OR {texts}", latest)
    require(beyond == 0, f"{beyond} rows exceed a bound")
    shared.make_room()
    shared.check_after(liar)
    return (f"{liar.pages} pages on {liar.sessions} sessions, {liar.refused} of them refused: {len(liar.accepted)} valid links stored, no "
            f"malformed one; {shared.number_of(stage.victim)} rows; p99 of the trusted peer meanwhile {1000 * p99('member-liar'):.0f} ms")


# MARK: Floods up to the bounds of a list


class Flood(Member):
    """A member that always has another page. `make()` returns its rows and replica numbers."""

    def __init__(self, stage, name, make):
        super().__init__(stage, name)
        self.make, self.pages, self.bytes = make, 0, 0

    def page(self, after):
        rows, by = self.make(self)
        page = self.page_of(after, after + len(rows), rows, by)
        require(len(page) <= PAGE_BYTES, f"a page of {len(page)} bytes")
        self.pages, self.bytes, self.number = self.pages + 1, self.bytes + len(page), after + len(rows) + 1
        return page


def many_nodes(flood):
    """Hexes with a few hundred links each."""
    now, hex = nodes.clock_now(), nodes.new_id(nodes.HEX)
    rows = [{"n": nodes.base64url(hex), "v": [now, 0, 0], "title": "flood", **place()}]
    for number in range(PAGE_ROWS - 1):
        rows.append({**link(f"https://flood.example/{flood.pages}/{number}"), **place(hex)})
    return rows, [flood.replica]


def long_texts(flood):
    """Links with 64 registers, at the bound of a node."""
    now = nodes.clock_now()
    registers = {f"{number:x<64}": [[now, 0, 0], "x" * (NODE_BYTES // 64 - 70)] for number in range(64)}
    return [dict(link(f"https://flood.example/{flood.pages}"), r=registers) for _ in range(7)], [flood.replica]


def many_replicas(flood):
    by = [secrets.token_hex(8) for _ in range(20)]
    return [link(f"https://flood.example/{flood.pages}/{number}", by=number) for number in range(20)], by


# Each flood, its bound, its measure in `list`, and the amount that is missing at most when the owner refuses the next page.
FLOODS = {"rows": (many_nodes, MOST_NODES, "(SELECT count(*) FROM node WHERE node.list = list.id)", PAGE_ROWS),
          "bytes of texts": (long_texts, MOST_TEXT, "textBytes", PAGE_BYTES),
          "replica numbers": (many_replicas, MOST_REPLICAS, "replicas", 20)}


def member_flood(stage):
    hexes, said = SharedHexes.of(stage), []
    for name, (make, bound, measure, step) in FLOODS.items():
        if name == "rows" and not stage.long:
            continue
        shared = Shared(hexes, f"with a flood of {name}")
        flood = shared.admit(Flood(stage, "flood", make), "write")

        def is_full():
            for fault in flood.faults:
                raise fault
            return "full" in stuck_reasons(stage, flood)

        with during(stage, f"member-flood, {name}"):
            rig.until(is_full, f"list.stuck because of {name}", 1_200, pause=0.1)
        flood.close()
        amount = hexes.query(stage.victim, f"SELECT {measure} FROM list WHERE uuid = ?", uuid.UUID(shared.list).bytes)[0][0]
        require(bound - step <= amount <= bound, f"{amount} {name} of a member are stored; the bound is {bound}")
        took = shared.make_room()
        shared.check_after(flood)
        said.append(f"{amount} {name} in {flood.pages} pages, {flood.bytes >> 20} MiB, p99 of the trusted peer meanwhile "
                    f"{1000 * p99(f'member-flood, {name}'):.0f} ms" + (f"; deleted in {took:.1f} s" if make is many_nodes else ""))
    return f"{'; '.join(said)}; then list.stuck with full, and all hexes work"


# MARK: A reader that writes


class Writer(Member):
    """A reader with a modified program: it claims the access `write`, My Hexlist of the owner, and to own the list itself."""

    def __init__(self, stage, name, collection):
        super().__init__(stage, name)
        self.collection, self.url = collection, f"https://reader.example/{secrets.token_hex(4)}"

    def entries(self):
        return [self.entry(), self.entry(role="shared", accessAt=(nodes.clock_now() + HOUR) << 16), self.entry(role="own"),
                self.entry(list=self.collection, role="own"), self.entry(list=self.collection)]

    def page(self, after):
        return self.page_of(after, after + 1, [] if after else [link(self.url)], [self.replica], is_last=bool(after))


def reader_writes(stage):
    hexes = SharedHexes.of(stage)
    shared = Shared(hexes, "with a reader")
    reader = shared.admit(Writer(stage, "reader", hexes.collection), "read")
    rig.until(lambda: reader.requests, "a request of the overview")
    before, began = (shared.rows(stage.victim, "*"), hexes.my_hexlist()), time.monotonic()
    asked, news = len(reader.requests), 0
    with during(stage, "reader-writes"):
        while time.monotonic() - began < stage.count(3, 20):
            reader.announce(200)
            news += 200
            time.sleep(0.05)
    asked, took = len(reader.requests) - asked, time.monotonic() - began
    require(not reader.page_requests(), f"the owner requested rows of a reader: {reader.page_requests()[:3]}")
    require(asked <= took / 0.2 + 2, f"{asked} overviews were requested in {took:.1f} s")
    require((shared.rows(stage.victim, "*"), hexes.my_hexlist()) == before, "rows of a reader arrived")
    # The same offer of a member with the access `write` is accepted, so the check can fail.
    shared.share(reader.uuid, "write")
    reader.announce()
    shared.await_link(stage.victim, reader.url)
    reader.close()
    shared.check_after(reader)
    return f"{news} ListNews in {took:.0f} s: {asked} overviews and no rows were requested; with the access write, the row arrived"


# MARK: Lists of others


class Outsider(Machine):
    def answer(self, target):
        return 404, b""


def wrong_lists(stage):
    """Requests of a trusted peer without access, and of a former member."""
    hexes = SharedHexes.of(stage)
    shared = Shared(hexes, "with a former member")
    former, outsider = shared.admit(Flood(stage, "former", lambda flood: ([], [])), "read"), Outsider(stage, "outsider").open()
    as_number = secrets.token_hex(8)
    require(former.get(f"/lists/{shared.list}?as={as_number}")[0] == 200, "a reader was not answered")
    shared.share(former.uuid, "none")
    others = [one["list"] for one in stage.victim.api("GET", "/v1/lists")["shared"]]
    count, answers, times = stage.count(500, 20_000), set(), {"unknown": [], "known": []}
    with during(stage, "wrong-lists"):
        for number in range(count):
            known = number % 2
            name = random.choice([hexes.collection, *others]) if known else str(uuid.UUID(bytes=nodes.new_id(nodes.HEX))).upper()
            target = random.choice([f"/lists/{name}?as={as_number}", f"/lists/{name}?replica={as_number}&after=0&as={as_number}",
                                    f"/lists/{name.lower()}?as={as_number}", f"/lists/{name}", f"/lists/{name}?as=x", f"/lists/{name}/",
                                    f"/lists/{name}?as={as_number}&as={as_number}", "/lists/", "/lists?", f"/lists/{name}?after=0"])
            began = time.monotonic()
            status, _, answer = random.choice([outsider, former]).get(target)
            times["known" if known else "unknown"].append(time.monotonic() - began)
            answers.add(answer)
            require(status == 404, f"{target} was answered {status}")
    require(len(answers) == 1, f"the answers differ: {sorted(answers)[:3]}")
    require(outsider.overview() == [], f"an outsider learns of {outsider.overview()}")
    left = former.overview()
    require([(entry["list"], entry["access"], entry["seq"], entry["digest"]) for entry in left] == [(shared.list, "none", 0, "0" * 16)],
            f"a former member learns of {left}")
    outsider.announce(100)
    outsider.close()
    former.close()
    shared.check_after(former)
    require(not former.page_requests(), "the owner requested rows of a former member")
    known, unknown = (1000 * share(times[kind], 0.5) for kind in ("known", "unknown"))
    return (f"{count} requests: 404, always the same answer, after {known:.1f} ms for lists that exist and {unknown:.1f} ms for others "
            "(median)")


# MARK: A slow member


class Slow(Flood):
    """A member whose pages do not end: a byte at a time, but more than the 4 096 that must arrive in 60 s (Docs/Protocol.md, "Files")."""
    BYTES_A_SECOND = 200

    def __init__(self, stage, name):
        super().__init__(stage, name, many_nodes)
        self.began, self.ended = None, threading.Event()

    def send(self, wire, target, data):
        if target == "/lists":
            return super().send(wire, target, data)
        began = time.monotonic()
        self.began = self.began or began
        try:
            for at in range(len(data)):
                pause = began + at / self.BYTES_A_SECOND - time.monotonic()
                if attacker.readable([wire], pause) and not wire.recv(1):
                    break
                wire.sendall(data[at:at + 1])
        finally:
            if not self.ended.is_set():
                self.seconds = time.monotonic() - began
            self.ended.set()


def slow_member(stage):
    """The change of another member waits until the page times out, because rows of one other person are requested at a time."""
    hexes = SharedHexes.of(stage)
    shared = Shared(hexes, "with a slow member")
    slow = shared.admit(Slow(stage, "slow"), "write")
    rig.until(lambda: slow.began, "a request of a page")
    of_member, of_owner = shared.add(hexes.honest), shared.add(stage.victim)
    asked = time.monotonic()
    to_member = shared.await_link(hexes.honest, of_owner, SOON)
    with during(stage, "slow-member"):
        if not stage.long:
            time.sleep(3)
            slow.close()
        require(slow.ended.wait(PAGE_TIMEOUT + 30), f"a page that never ends was not given up after {PAGE_TIMEOUT} s")
    require(slow.seconds > (PAGE_TIMEOUT - 5 if stage.long else 3), f"a page was given up after {slow.seconds:.0f} s")
    rest = shared.await_link(stage.victim, of_member, SOON)
    to_owner = time.monotonic() - asked
    slow.close()
    shared.check_after(slow)
    ended = "" if stage.long else ", when the session ended"
    return (f"a page given up after {slow.seconds:.0f} s{ended}; a change of the owner arrived at another member after "
            f"{to_member:.1f} s, one of that member at the owner after {to_owner:.1f} s, {rest:.1f} s after the page")


ATTACKS = {"member-liar": member_liar, "member-flood": member_flood, "reader-writes": reader_writes, "wrong-lists": wrong_lists,
           "slow-member": slow_member}
ONCE = set(ATTACKS)
