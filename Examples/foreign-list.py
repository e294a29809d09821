#!/usr/bin/env python3
"""An own machine: it keeps one My Hexlist with hexlistd. Written from Docs/Lists.md and Docs/Protocol.md. Details of joins, malformed nodes
and restoring were compared with the sources later, and the pages say all of it now. Change it from these pages, not from the sources.
Identity and session are those of foreign-peer.py.

    foreign-list.py --state DIR id
    foreign-list.py --state DIR own FINGERPRINT
    foreign-list.py --state DIR exchange HOST PORT [--stay] [--cut-in BYTES] [--cut-out BYTES] [--give-up SECONDS]
    foreign-list.py --state DIR show
    foreign-list.py --state DIR add [--in HEX] [--url URL] [--title TEXT] [--register NAME=TEXT] [--kind N] [--copies N]
    foreign-list.py --state DIR set NODE [--title TEXT] [--register NAME=TEXT]
    foreign-list.py --state DIR move NODE [--in HEX] [--before NODE]
    foreign-list.py --state DIR delete NODE

DIR contains the identity, the trusted fingerprints, the own machines (own.json) and the list (list.json). Only one process at a time may
use it. `own` trusts a machine and adds it to the own machines. On the side of hexlistd, `hexlist peer trust` and `hexlist own add` do so.
`exchange` dials hexlistd, takes and gives all changes, and ends when both have all changes of each other; with `--stay` it continues until
SIGTERM. Meanwhile it takes the commands `add` to `delete` from standard input, one per line. `--cut-in` and `--cut-out` cut all connections
once, after so many bytes of lists were received or sent, then it dials again. A NODE is an id, a title or a URL, and has to be unique.
`show` prints the list as JSON: its digest, the number of its nodes, the tree as HexJMs, and the nodes of unknown kinds.
"""
import argparse, asyncio, base64, contextlib, hashlib, importlib.util, json, os, re, secrets, shlex, ssl, sys, threading, time, uuid
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.dont_write_bytecode = True  # leaves no __pycache__ beside the examples
_spec = importlib.util.spec_from_file_location("foreign_peer", Path(__file__).resolve().with_name("foreign-peer.py"))
foreign = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = foreign
_spec.loader.exec_module(foreign)
event, printed, KIB, MIB = foreign.event, foreign.printed, foreign.KIB, foreign.MIB

FILES, FILES_SERVE = "hexlist-files/1", "hexlist-files-serve/1"
HEX, LINK, SHARED_LIST = 1, 2, 3
LEVELS, REGISTERS, PAGE_ROWS, PAGE_BYTES, READ_BYTES = 8, 64, 2000, MIB, 2 * MIB
YEARS, LAST_MILLISECOND, HALF_DAY = 100 * 366 * 86_400_000, 105_553_116_266_495, 12 * 3_600_000
PRIVATE = ("read",)
ROOT = b""


def clock_now():
    return int(time.time() * 1000)


# ---- Nodes ------------------------------------------------------------------------------------------------------------------------

class Malformed(Exception):
    """A node of a page that is left out."""


class Refused(Exception):
    """A page that is refused as a whole, or a command that cannot be carried out."""


def new_id(kind):
    raw = bytearray(clock_now().to_bytes(6, "big") + secrets.token_bytes(10))
    raw[6], raw[8] = 0x80 | kind, raw[8] & 0x3F | 0x80
    return bytes(raw)


def kind_of(node_id):
    return node_id[6] & 0x0F


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64url(text, least, most):
    if not isinstance(text, str) or not re.fullmatch("[A-Za-z0-9_-]*", text):
        raise Malformed("base64url")
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise Malformed("base64url") from None
    if not least <= len(data) <= most or base64url(data) != text:
        raise Malformed("base64url")
    return data


def text(value, most=64 * KIB):
    if not isinstance(value, str):
        raise Malformed("text")
    value = re.sub("[\ud800-\udfff]", "\ufffd", value)
    if len(value.encode()) > most:
        raise Malformed("text is too long")
    return value


@dataclass(frozen=True)
class Node:
    """A version is (time, replica); the time is milliseconds << 16 | counter. A place is (version, parent, key, previous parent), a title
    and a register (version, text), a deletion mark (version, hex), with the hex b"" if it has none. A place in the root names the list."""
    id: bytes
    url: str = ""
    service: str = ""
    place: tuple = None
    title: tuple = None
    registers: dict = field(default_factory=dict)
    gone: tuple = None

    def times(self):
        marks = [self.gone[0]] if self.gone else []
        return [version[0] for version in [*self.versions(), *marks, *(value[0] for value in self.registers.values())]]

    def versions(self):
        values = [value for name, value in self.registers.items() if name not in PRIVATE]
        return [value[0] for value in [self.place, self.title, *values] if value]

    @property
    def version(self):
        return max(self.versions(), default=(0, 0))

    @property
    def covered(self):
        return bool(self.gone) and self.gone[0] >= self.version

    def value(self, name):
        return self.registers[name][1] if name in self.registers else ""

    def with_register(self, name, value):
        return replace(self, registers=limited({**self.registers, name: value}))

    def with_mark(self, mark):
        return replace(self, gone=greater(self.gone, mark, mark_order))


def mark_order(mark):
    return mark[0], not mark[1], mark[1]


def greater(one, other, order=lambda value: value):
    """The greater of two values that may be missing."""
    return max((value for value in (one, other) if value), key=order, default=None)


def limited(registers):
    counted = sorted((name for name in registers if name not in PRIVATE), key=lambda name: (registers[name][0], name), reverse=True)
    return {name: value for name, value in registers.items() if name in PRIVATE or name in counted[:REGISTERS]}


def merge(one, other):
    """Merges two nodes with one id, value by value. The order of Python's strings is that of their UTF-8."""
    names = {*one.registers, *other.registers}
    registers = {name: greater(one.registers.get(name), other.registers.get(name)) for name in names}
    return Node(one.id, max(one.url, other.url), max(one.service, other.service), greater(one.place, other.place),
                greater(one.title, other.title), limited(registers), greater(one.gone, other.gone, mark_order))


# ---- JSON -------------------------------------------------------------------------------------------------------------------------

def read_json(data):
    def refuse(name):
        raise ValueError(name)
    try:
        return json.loads(data.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Refused(f"no JSON: {error}") from None


def is_integer(value, most):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def hex64(value):
    if not isinstance(value, str) or not re.fullmatch("[0-9a-fA-F]{16}", value):
        raise Malformed("not 16 hexadecimal digits")
    return int(value, 16)


def version_of(value, by=None):
    """A version in JSON: with an index into `by`, the replica numbers of the page, or with the replica number itself."""
    if value is None:
        return None
    if not isinstance(value, list) or len(value) < 3 or not is_integer(value[0], LAST_MILLISECOND) or not is_integer(value[1], 0xFFFF):
        raise Malformed("version")
    if by is None:
        return value[0] << 16 | value[1], hex64(value[2])
    if not value[0] << 16 | value[1] or not is_integer(value[2], len(by) - 1):
        raise Malformed("version")
    return value[0] << 16 | value[1], hex64(by[value[2]])


def id_of(value):
    node_id = from_base64url(value, 16, 16)
    if node_id[6] >> 4 != 8 or node_id[8] >> 6 != 2:
        raise Malformed("no UUID of version 8")
    return node_id


def node_of(row, list_id, by=None):
    if not isinstance(row, dict):
        raise Malformed("row")
    row = {name: value for name, value in row.items() if value is not None}
    node_id, version = id_of(row.get("n")), version_of(row.get("v"), by)
    place = title = gone = None
    at = version_of(row.get("inAt"), by) or version
    if "in" in row:
        parent, was = (list_id if value == "" else id_of(value) for value in (row["in"], row.get("was", row["in"])))
        key = from_base64url(row.get("key"), 1, 128)
        place = at and (at, parent, key, was)
    at = version_of(row.get("titleAt"), by) or version
    if "title" in row and at:
        title = at, text(row["title"])
    registers = {}
    if not isinstance(row.get("r", {}), dict):
        raise Malformed("registers")
    for name, value in row.get("r", {}).items():
        if not text(name, 64) or not isinstance(value, list) or len(value) < 2:
            raise Malformed("register")
        register = version_of(value[0], by), text(value[1])
        if register[0]:
            registers[name] = register
    if len([name for name in registers if name not in PRIVATE]) > REGISTERS:
        raise Malformed("too many registers")
    if "gone" in row:
        gone = version_of(row["gone"], by), id_of(row["with"]) if "with" in row else b""
    node = Node(node_id, text(row.get("url", "")), text(row.get("service", "")), place, title, registers, gone)
    if not place and not title and not registers and not gone:
        raise Malformed("nothing has a version")
    values = [node.url, node.service, title[1] if title else "", *registers, *(value for _, value in registers.values())]
    if sum(len(value.encode()) for value in values) > 256 * KIB:
        raise Malformed("too much text")
    return node


ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def quoted(value):
    return '"' + re.sub(r'["\\\x00-\x1f]', lambda found: ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", value) + '"'


def dump(value):
    """JSON without white space, with the members in the order of their names' bytes."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(name)}:{dump(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def members_of(node, list_id, version):
    """The members of a node in JSON. `version` turns a version into JSON."""
    def place_id(node_id):
        return "" if node_id == list_id else base64url(node_id)

    row = {"n": base64url(node.id)}
    row.update({name: value for name, value in (("url", node.url), ("service", node.service)) if value})
    if node.place:
        at, parent, key, was = node.place
        row.update({"in": place_id(parent), "inAt": version(at), "key": base64url(key), "was": place_id(was)})
    if node.title:
        row.update(title=node.title[1], titleAt=version(node.title[0]))
    if node.registers:
        row["r"] = {name: [version(at), value] for name, (at, value) in node.registers.items()}
    if node.gone:
        row["gone"] = version(node.gone[0])
        row.update({"with": base64url(node.gone[1])} if node.gone[1] else {})
    return row


def full_version(version):
    return [version[0] >> 16, version[0] & 0xFFFF, f"{version[1]:016x}"]


def canonical(node, list_id):
    public = replace(node, registers={name: value for name, value in node.registers.items() if name not in PRIVATE})
    if kind_of(node.id) == LINK and node.covered and not node.gone[1]:
        public = Node(node.id, gone=node.gone)
    return dump(members_of(public, list_id, full_version))


def hash_of(node, list_id):
    return int.from_bytes(hashlib.sha256(canonical(node, list_id).encode()).digest()[:8], "big")


def page_row(node, list_id, by):
    """A node as a row of a page. `by` has the index of each replica number, and gets new ones."""
    def version(at):
        return [at[0] >> 16, at[0] & 0xFFFF, by.setdefault(at[1], len(by))]
    row = members_of(node, list_id, version)
    if node.versions():
        row["v"] = version(node.version)
        for at in ("inAt", "titleAt"):
            if row.get(at) == row["v"]:
                del row[at]
    if node.place and row["was"] == row["in"]:
        del row["was"]
    return row


# ---- The tree ---------------------------------------------------------------------------------------------------------------------

class Tree:
    """The tree of nodes, a dictionary by id. `parent` has the parent of each hex and link, `contents` the shown ones in order."""

    def __init__(self, nodes, list_id):
        self.nodes = nodes
        self.hexes = {node_id for node_id in nodes if kind_of(node_id) == HEX and node_id != list_id}
        self.deleted = self.find_deleted()
        self.ignored, self.parent = {}, {}
        self.place_hexes()
        self.limit_levels()
        items = [node_id for node_id in nodes if node_id in self.hexes or kind_of(node_id) in (LINK, SHARED_LIST)]
        for node_id in items:
            if node_id not in self.hexes:
                self.parent[node_id] = self.named(node_id)
        self.shown = set()
        for node_id in items:
            if node_id not in self.deleted:
                while node_id and node_id not in self.shown:
                    self.shown.add(node_id)
                    node_id = self.parent[node_id]
        self.contents = {}
        for node_id in self.shown:
            self.contents.setdefault(self.parent[node_id], []).append(node_id)
        for inside in self.contents.values():
            inside.sort(key=self.order)

    def order(self, node_id):
        place = self.nodes[node_id].place
        return place[2] if place else b"", node_id

    def named(self, node_id):
        """The hex that the place of a node names, or the root."""
        place = self.nodes[node_id].place
        return place[1] if place and place[1] in self.hexes else ROOT

    def find_deleted(self):
        known = {}
        for start in self.nodes:
            path, at = [], start
            while at not in known:
                node = self.nodes[at]
                if not node.covered or not node.gone[1] or node.gone[1] not in self.hexes:
                    known[at] = node.covered
                    break
                known[at] = True  # if this is found again on the path, the marks are in a cycle
                path.append(at)
                at = node.gone[1]
            for node_id in path:
                known[node_id] = known[at]
        return {node_id for node_id, is_deleted in known.items() if is_deleted}

    def cycles(self):
        """The cycles of the parents that places name, and the hexes that do not lead to the root."""
        done, cycles, lost = {}, [], set()
        for start in self.hexes:
            path, at = [], start
            while at and at not in done:
                done[at] = start
                path.append(at)
                at = self.named(at)
            if at and done[at] == start:
                cycles.append(path[path.index(at):])
            if at and (done[at] == start or at in lost):
                lost.update(path)
        return cycles, lost

    def place_hexes(self):
        cycles, lost = self.cycles()
        self.parent = {node_id: self.named(node_id) for node_id in self.hexes}
        for cycle in cycles:
            loser = max(cycle, key=lambda node_id: (self.nodes[node_id].place[0], node_id))
            was = self.nodes[loser].place[3]
            self.parent[loser] = self.ignored[loser] = was if was in self.hexes and was not in lost else ROOT

    def limit_levels(self):
        inside = {}
        for node_id in self.hexes:
            inside.setdefault(self.parent[node_id], []).append(node_id)
        level = [(node_id, ROOT) for node_id in inside.get(ROOT, [])]
        for _ in range(LEVELS - 1):
            level = [(child, node_id) for node_id, _ in level for child in inside.get(node_id, [])]
        while level:  # the hexes of level 8 and those that would be below, with their parents on level 7
            for node_id, parent in level:
                self.parent[node_id] = parent
            level = [(child, parent) for node_id, parent in level for child in inside.get(node_id, [])]

    def below(self, node_id):
        """The shown nodes inside a hex, at all levels."""
        for child in self.contents.get(node_id, []):
            yield child
            yield from self.below(child)


# ---- A replica --------------------------------------------------------------------------------------------------------------------

@dataclass
class Row:
    node: Node
    number: int
    origin: int = None  # the replica number from which the node was received unaltered


class Replica:
    """My Hexlist with its numbered rows and the cursors of other machines, in one file that is replaced as a whole."""

    def __init__(self, path):
        self.path, self.tree_cache = path, None
        if path.exists():
            self.load(json.loads(path.read_text()))
        else:
            self.id, self.replica, self.number, self.clock, self.drawn, self.repaired = new_id(HEX), secrets.randbits(64), 0, 0, 0, 0
            self.rows, self.cursors = {}, {}
            self.save()

    def load(self, saved):
        self.id, self.replica = bytes.fromhex(saved["list"]), int(saved["replica"], 16)
        self.number, self.clock, self.drawn, self.repaired = (saved[name] for name in ("number", "clock", "drawn", "repaired"))
        self.rows = {}
        for number, origin, members in saved["rows"]:
            node = node_of(members, self.id)
            self.rows[node.id] = Row(node, number, int(origin, 16) if origin else None)
        self.cursors = {key: (int(replica, 16), after) for key, (replica, after) in saved["cursors"].items()}
        self.tree_cache = None

    def save(self):
        rows = [[row.number, f"{row.origin:016x}" if row.origin is not None else "", members_of(row.node, self.id, full_version)]
                for row in self.rows.values()]
        cursors = {key: [f"{replica:016x}", after] for key, (replica, after) in self.cursors.items()}
        saved = {"list": self.id.hex(), "replica": f"{self.replica:016x}", "number": self.number, "clock": self.clock, "drawn": self.drawn,
                 "repaired": self.repaired, "cursors": cursors, "rows": rows}
        new = self.path.with_suffix(".new")
        with open(new, "w") as out:
            json.dump(saved, out)
            out.flush()
            os.fsync(out.fileno())
        new.rename(self.path)
        self.tree_cache = None

    def nodes(self):
        return {node_id: row.node for node_id, row in self.rows.items()}

    def tree(self):
        if not self.tree_cache:
            self.tree_cache = Tree(self.nodes(), self.id)
        return self.tree_cache

    def digest(self):
        digest = 0
        for row in self.rows.values():
            digest ^= hash_of(row.node, self.id)
        return f"{digest:016x}"

    def put(self, node, origin=None):
        self.number += 1
        self.rows[node.id] = Row(node, self.number, origin)

    def tick(self):
        self.clock = max(clock_now() << 16, self.clock + 1)
        return self.clock, self.replica

    def witness(self, node):
        self.clock = max([self.clock, *node.times()])

    def draw_replica(self):
        self.replica = secrets.randbits(64)

    # -- local changes

    def find(self, name):
        tree = self.tree()
        for node_id in tree.nodes:
            if base64url(node_id) == name:
                return node_id
        found = [node_id for node_id in tree.shown if name in ((tree.nodes[node_id].title or [None, None])[1], tree.nodes[node_id].url)]
        if len(found) != 1:
            raise Refused(f"{len(found)} nodes are {name!r}")
        return found[0]

    def hex(self, name):
        node_id = self.find(name) if name else ROOT
        if name and node_id not in self.tree().shown & self.tree().hexes:
            raise Refused(f"{name!r} is no hex")
        return node_id

    def key(self, parent, before=None):
        """An order key for the end of a hex, or the beginning of the root, or before a node."""
        tree, now = self.tree(), clock_now()
        keys = [tree.order(node_id)[0] for node_id in tree.contents.get(parent, [])]
        if before is None:
            before_at = 0 if parent == ROOT else len(keys)
        else:
            before_at = tree.contents[parent].index(before)
        low = keys[before_at - 1] if before_at else b""
        high = keys[before_at] if before_at < len(keys) else None
        tail = secrets.token_bytes(1) + bytes([1 + secrets.randbelow(255)])
        wanted = ((1 << 48) - 1 - now if parent == ROOT else now).to_bytes(6, "big") + tail
        if low < wanted and (high is None or wanted < high):
            return wanted
        key = self.between(low, high) + tail
        if not low < key or high is not None and not key < high or len(key) > 128:
            raise Refused("there is no order key left at this place")
        return key

    @staticmethod
    def between(low, high):
        """The shortest prefix after `low` of which every continuation is below `high`."""
        at, prefix = 0, b""
        while True:
            under = low[at] if at < len(low) else 0
            over = high[at] if high is not None and at < len(high) else 256
            if over - under > 1:
                return prefix + bytes([(under + over) // 2])
            prefix += bytes([under])
            high = high if over == under else None
            at += 1

    def unshadow(self, node_id):
        """Before a deleted but shown hex is changed, the nodes whose marks have this hex get marks without one."""
        tree = self.tree()
        if node_id not in tree.deleted or node_id not in tree.hexes:
            return
        for other in [row.node for row in self.rows.values() if row.node.gone and row.node.gone[1] == node_id and row.node.covered]:
            self.put(other.with_mark((other.gone[0], b"")))

    def add(self, arguments):
        parent, kind = self.hex(arguments.into), arguments.kind or (LINK if arguments.url else HEX)
        for number in range(arguments.copies):
            key, at = self.key(parent), self.tick()
            node = Node(new_id(kind), place=(at, parent or self.id, key, parent or self.id), title=(at, arguments.title or ""))
            if arguments.url:
                node = replace(node, url=arguments.url + (str(number + 1) if arguments.copies > 1 else ""))
            for name, value in arguments.register:
                node = node.with_register(name, (at, value))
            self.put(node)
        return node.id

    def set(self, arguments):
        node_id = self.find(arguments.node)
        self.unshadow(node_id)
        node, at = self.rows[node_id].node, self.tick()
        if arguments.title is not None:
            node = replace(node, title=(at, arguments.title))
        for name, value in arguments.register:
            node = self.make_room(node, name, at).with_register(name, (at, value))
        self.put(node)
        return node_id

    @staticmethod
    def make_room(node, name, at):
        """Before a 65th register, those older than the oldest empty one are written again, so that the empty one is dropped."""
        counted = {other: value for other, value in node.registers.items() if other not in PRIVATE}
        if name in PRIVATE or name in counted or len(counted) < REGISTERS:
            return node
        empty = [(value[0], other) for other, value in counted.items() if not value[1]]
        if not empty:
            raise Refused("a node has at most 64 registers")
        again = {other: (at, value[1]) for other, value in counted.items() if (value[0], other) < min(empty)}
        return replace(node, registers={**node.registers, **again})

    def move(self, arguments):
        node_id, tree = self.find(arguments.node), self.tree()
        before = self.find(arguments.before) if arguments.before else None
        parent = tree.parent[before] if before else self.hex(arguments.into)
        if node_id in tree.hexes:
            above = parent
            while above:
                if above == node_id:
                    raise Refused("a hex cannot be inside itself")
                above = tree.parent[above]
            for ignored in [hex_id for hex_id in tree.ignored if hex_id not in tree.deleted]:
                self.place(ignored, tree.parent[ignored], self.rows[ignored].node.place[2], tree.parent[ignored])
            self.unshadow(node_id)
        key = self.key(parent, before)
        self.place(node_id, parent, key, tree.parent[node_id])
        return node_id

    def place(self, node_id, parent, key, was):
        self.put(replace(self.rows[node_id].node, place=(self.tick(), parent or self.id, key, was or self.id)))

    def delete(self, arguments):
        node_id, tree = self.find(arguments.node), self.tree()
        marks = [(child, tree.parent[child]) for child in tree.below(node_id)] + [(node_id, b"")]
        for marked, hex_id in marks:
            if marked in tree.deleted:  # and shown: it is restored first, because its mark would not change
                self.unshadow(marked)
                at, parent, key, was = self.rows[marked].node.place
                self.place(marked, parent, key, was)
            node = self.rows[marked].node
            after = node.with_mark((node.version, hex_id))
            if after != node:
                self.put(after)
        return node_id

    def edit(self, arguments):
        try:
            node_id = getattr(self, arguments.command)(arguments)
        except Refused:
            self.load(json.loads(self.path.read_text()))
            raise
        self.save()
        return node_id

    # -- pages

    def page(self, replica, after, requester):
        """The page after a number, as JSON."""
        if replica != self.replica:
            after = 0
        elif after > self.number:
            self.refuse_old_copy()
            after = 0
        by, rows, size, through, last = {}, [], 0, self.number, True
        numbered = sorted((row for row in self.rows.values() if row.number > after), key=lambda row: row.number)
        for index, row in enumerate(numbered):
            if row.origin == requester:
                continue
            members = dump(page_row(row.node, self.id, by))
            if rows and (len(rows) == PAGE_ROWS or size + len(members.encode()) + 40 * len(by) > PAGE_BYTES - KIB):
                through, last = numbered[index - 1].number, False
                break
            rows.append(members)
            size += len(members.encode()) + 1
        replicas = [f"{number:016x}" for number in by]
        head = dump({"list": printed(uuid.UUID(bytes=self.id)), "replica": f"{self.replica:016x}", "after": after, "through": through,
                     "last": last, "by": replicas})
        return f'{head[:-1]},"rows":[{",".join(rows)}]}}', (after, through, last and not rows)

    def refuse_old_copy(self):
        """An old copy of the state is running: a new replica number and no cursors, at most once an hour."""
        if clock_now() - self.drawn < 3_600_000:
            raise Refused("503")
        self.drawn, self.cursors = clock_now(), {}
        self.draw_replica()
        self.save()

    def take(self, page, key):
        """Merges a page and moves the cursor of the machine, in one transaction."""
        changed = 0
        for node in page.nodes:
            known = self.rows.get(node.id)
            merged = merge(known.node, node) if known else node
            self.witness(node)
            if not known or merged != known.node:
                self.put(merged, page.replica if merged == node else None)
                changed += 1
        self.cursors[key] = page.replica, page.through
        self.save()
        return changed

    # -- joining

    def remains(self, other):
        """Whether this collection and not the other one remains: the older one. Ids begin with their time."""
        return self.id < other

    def join(self, other, nodes, key, replica, through):
        """Merges this collection into another one, which was received completely."""
        self.path.with_name(f"before-join-{clock_now()}.json").write_text(self.path.read_text())
        for node in nodes.values():
            self.witness(node)
        own = {node_id: referring(row.node, {self.id: other}) for node_id, row in self.rows.items() if node_id != self.id}
        union = {**nodes, **{node_id: merge(node, nodes[node_id]) if node_id in nodes else node for node_id, node in own.items()}}
        same, touched = self.same_nodes(*(Tree(tree, other) for tree in (own, nodes, union)))
        result = dict(nodes)
        for remaining in touched:
            node = result[remaining]
            result[remaining] = replace(node, place=(self.tick(), *node.place[1:])) if node.place else node
        for node_id, node in own.items():
            if node_id in same:
                remaining = result[same[node_id]]
                if node.title and node.title[1]:
                    remaining = replace(remaining, title=greater(remaining.title, node.title))
                for name, value in node.registers.items():
                    if value[1]:
                        remaining = remaining.with_register(name, greater(remaining.registers.get(name), value))
                if not (node_id in nodes and nodes[node_id].covered):
                    result[same[node_id]] = remaining
                node = Node(node_id, gone=(node.version, b""))
            node = referring(node, same)
            result[node_id] = merge(node, result[node_id]) if node_id in result else node
        self.rows, self.id = {}, other
        self.draw_replica()
        for node in result.values():
            self.put(node, replica if nodes.get(node.id) == node else None)
        self.cursors = {key: (replica, through)}
        self.save()

    @staticmethod
    def same_nodes(own, other, union):
        """The own nodes that become one with nodes of the other collection, and remaining links that need a new version."""
        def value(tree, node_id):
            node = tree.nodes[node_id]
            return node.url if kind_of(node_id) == LINK else node.title[1] if node.title else ""

        def listed(tree, place):
            found = {}
            for node_id in tree.contents.get(place, []):
                if kind_of(node_id) == LINK or kind_of(node_id) == HEX and value(tree, node_id):
                    found.setdefault((kind_of(node_id), value(tree, node_id)), []).append(node_id)
            return found

        def may_join(tree, node_id, opposite):
            return node_id not in tree.deleted and (node_id not in opposite.nodes or node_id in opposite.deleted)

        same, touched, places = {}, [], [(ROOT, ROOT)]
        while places:
            here, there = places.pop()
            theirs = listed(other, there)
            for what, mine in listed(own, here).items():
                mine = [node_id for node_id in mine if may_join(own, node_id, other)]
                partners = [node_id for node_id in theirs.get(what, []) if may_join(other, node_id, own)]
                if what[0] == HEX and (len(mine) != 1 or len(partners) != 1):
                    continue
                for one, remaining in zip(mine, partners):
                    if what[0] == LINK and one in union.deleted and remaining in union.deleted:
                        touched.append(remaining)
                    elif one not in union.deleted and remaining not in union.deleted:
                        same[one] = remaining
            inside = [node_id for node_id in own.contents.get(here, []) if node_id in own.hexes]
            places += [(node_id, same.get(node_id, node_id)) for node_id in inside if node_id in same or node_id in other.hexes]
        return same, touched

    # -- printing

    def hexjm(self, node_id):
        tree, node = self.tree(), self.rows[node_id].node
        inside = tree.contents.get(node_id, [])
        children = [self.hexjm(child) for child in inside if child in tree.hexes]
        return {**self.described(node, "hexDescription"), "hexColor": node.value("color"),
                "links": [self.link(link) for link in inside if kind_of(link) == LINK], **({"children": children} if children else {})}

    def link(self, node_id):
        node = self.rows[node_id].node
        return {"url": node.url, **self.described(node, "linkDescription"), "service": node.service}

    @staticmethod
    def described(node, title):
        tags = [(int(value) if re.fullmatch("[0-9]{1,9}", value) else 1 << 62, name[4:])
                for name, (_, value) in node.registers.items() if name.startswith("tag/") and value]
        described = {"id": base64url(node.id), title: node.title[1] if node.title else ""}
        optional = {"tags": [name for _, name in sorted(tags)], "note": node.value("note")}
        return {**described, **{name: value for name, value in optional.items() if value}}

    def shown(self):
        tree = self.tree()
        top = tree.contents.get(ROOT, [])
        return {"list": printed(uuid.UUID(bytes=self.id)), "nodes": len(self.rows), "digest": self.digest(),
                "tree": [self.hexjm(node_id) for node_id in top if node_id in tree.hexes],
                "links": [self.link(node_id) for node_id in top if kind_of(node_id) == LINK],
                "unknown": [canonical(node, self.id) for node_id, node in sorted(tree.nodes.items()) if kind_of(node_id) > 3]}


def referring(node, same):
    """The node with its references to replaced hexes changed to the remaining ones."""
    if node.place:
        at, parent, key, was = node.place
        node = replace(node, place=(at, same.get(parent, parent), key, same.get(was, was)))
    return replace(node, gone=(node.gone[0], same.get(node.gone[1], node.gone[1]))) if node.gone else node


@dataclass
class Page:
    list: bytes
    replica: int
    after: int
    through: int
    last: bool
    nodes: list
    left_out: int


def page_of(data):
    page = read_json(data)
    try:
        if not isinstance(page, dict) or not isinstance(page.get("by"), list) or not isinstance(page.get("rows"), list):
            raise Malformed("page")
        list_id, replica, by = foreign.uuid_of(page.get("list")), hex64(page.get("replica")), page["by"]
        if not list_id or not isinstance(page.get("last"), bool) or not is_integer(page.get("after"), 2 ** 63 - 1) \
                or not is_integer(page.get("through"), 2 ** 63 - 1) or page["through"] < page["after"] \
                or len(page["rows"]) > PAGE_ROWS:
            raise Malformed("page")
    except Malformed as error:
        raise Refused(str(error)) from None
    nodes, left_out = [], 0
    for row in page["rows"]:
        try:
            nodes.append(node_of(row, list_id.bytes, by))
        except Malformed as error:
            left_out += 1
            event("leftOut", error=str(error))
    limit = clock_now() + YEARS << 16
    for node in nodes:
        if max(node.times()) > limit:
            raise Refused("a version is more than 100 years ahead")
    return Page(list_id.bytes, replica, page["after"], page["through"], page["last"], nodes, left_out)


# ---- Connections for files --------------------------------------------------------------------------------------------------------

class Cut(Exception):
    """The connections were cut by `--cut-in` or `--cut-out`."""


FAULTS = OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, Refused, Cut


async def read_head(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head[:-4].decode("latin-1").split("\r\n")
    fields = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise Refused("no field")
        fields.setdefault(name.lower(), []).append(value.strip())
    return lines[0], fields, len(head)


class ListClient:
    """Requests on one connection for files to the other machine."""

    def __init__(self, machine, session):
        self.machine, self.session, self.writer = machine, session, None

    async def open(self):
        arguments = self.machine.arguments
        context = self.machine.identity.tls(server=False, alpn=FILES)
        self.reader, self.writer = await asyncio.wait_for(asyncio.open_connection(arguments.host, arguments.port, ssl=context), 5)
        if foreign.proven_key(self.writer, FILES) != self.session.fingerprint:
            raise Refused("another machine has answered")

    async def get(self, target, most):
        if not self.writer:
            await self.open()
        self.writer.write(f"GET {target} HTTP/1.1\r\nHost: hexlist\r\n\r\n".encode())
        line, fields, size = await read_head(self.reader)
        found, lengths = re.fullmatch(r"HTTP/1\.1 ([0-9]{3})( .*)?", line), fields.get("content-length", [])
        if not found or len(lengths) != 1 or not re.fullmatch("[0-9]{1,9}", lengths[0]) or int(lengths[0]) > most \
                or "transfer-encoding" in fields or "content-encoding" in fields:
            raise Refused(f"invalid answer: {line}")
        body = b""
        while len(body) < int(lengths[0]):
            data = await self.reader.read(min(4 * KIB, int(lengths[0]) - len(body)))
            if not data:
                raise Refused("the answer is not complete")
            body += data
            self.machine.carried("cut_in", len(data))
        if found[1] != "200":
            raise Refused(found[1])
        return body

    def close(self):
        if self.writer:
            self.writer.close()


class ListServer:
    """Answers to requests for lists of one session's peer."""

    def __init__(self, machine, session):
        self.machine, self.session = machine, session

    async def serve(self, port):
        machine, session = self.machine, self.session
        host = session.writer.get_extra_info("peername")[0]
        try:
            context = machine.identity.tls(server=False, alpn=FILES_SERVE)
            reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port, ssl=context), 5)
        except (OSError, asyncio.TimeoutError) as error:
            machine.no_dial_until = foreign.now() + 10
            return event("fileDialFailed", error=str(error))
        machine.wires.add(writer)
        try:
            if foreign.proven_key(writer, FILES_SERVE) == session.fingerprint:
                while not session.ended and await asyncio.wait_for(self.answer(reader, writer), 60):
                    pass
        except FAULTS:
            pass
        finally:
            machine.wires.discard(writer)
            writer.close()

    async def answer(self, reader, writer):
        """Answers one request. Returns whether the connection stays open."""
        line, fields, size = await read_head(reader)
        found = re.fullmatch(r"(GET|HEAD) (\S+) HTTP/1\.1", line)
        if not found or size > 16 * KIB or sum(map(len, fields.values())) > 64 or {"transfer-encoding", "upgrade"} & {*fields} \
                or fields.get("content-length", ["0"]) != ["0"]:
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return False
        status, body, answered = self.respond(found[2])
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        data = head + (body if found[1] == "GET" else b"")
        while data:
            writer.write(data[:4 * KIB])
            await writer.drain()
            self.machine.carried("cut_out", len(data[:4 * KIB]))
            data = data[4 * KIB:]
        if answered:
            self.machine.has_received(self.session, *answered)
        return "connection" not in fields

    def respond(self, target):
        machine, replica = self.machine, self.machine.replica
        is_own = self.session.trusted() and self.session.key in machine.own
        number = r"([0-9a-fA-F]{16})"
        found = re.fullmatch(rf"/lists/([0-9a-fA-F-]{{36}})\?(?:replica={number}&after=([0-9]{{1,18}})&)?as={number}", target)
        if target == "/lists":
            return "200 OK", machine.overview(is_own).encode(), None
        list_id = foreign.uuid_of(found[1]) if found else None
        if not list_id or not is_own:
            return "404 Not Found", b"", None
        if list_id.bytes != replica.id:
            return ("503 Service Unavailable" if list_id.bytes == machine.joining else "404 Not Found"), b"", None
        try:
            page, answered = replica.page(int(found[2], 16) if found[2] else None, int(found[3] or 0), int(found[4], 16))
        except Refused:
            return "503 Service Unavailable", b"", None
        return "200 OK", page.encode(), answered


# ---- The machine ------------------------------------------------------------------------------------------------------------------

class Machine(foreign.Peer):
    features = ["files", "lists"]

    def __init__(self, arguments, folder, identity):
        super().__init__(arguments, folder, identity)
        self.replica, self.own = Replica(folder / "list.json"), own_machines(folder)
        self.news, self.finished, self.joining, self.received = asyncio.Event(), False, None, {}
        self.wires, self.left = set(), {"cut_in": arguments.cut_in, "cut_out": arguments.cut_out}
        self.dials, self.no_dial_until, self.exchanging = [], 0, None
        self.progress, self.gave_up = foreign.now(), False

    def carried(self, direction, count):
        """Counts bytes on connections for files, and cuts all connections once."""
        if self.left[direction] is not None:
            self.left[direction] -= count
            if self.left[direction] <= 0:
                self.left[direction] = None
                event("cut", direction=direction)
                for session in self.sessions:
                    session.writer.transport.abort()
                for wire in self.wires:
                    wire.transport.abort()
                raise Cut

    def overview(self, is_own):
        tree, replica = self.replica.tree(), self.replica
        entry = {"list": printed(uuid.UUID(bytes=replica.id)), "role": "own", "access": "write", "title": "",
                 "hexes": len(tree.shown & tree.hexes), "links": sum(kind_of(node_id) == LINK for node_id in tree.shown),
                 "replica": f"{replica.replica:016x}", "seq": replica.number, "digest": replica.digest()}
        return dump({"now": clock_now(), "machine": "own" if is_own else "peer", "lists": [entry] if is_own else []})

    def has_received(self, session, after, through, is_complete):
        """A requester has all rows up to `after`; if nothing was left to send, up to `through`."""
        before = self.received.get(session.key)
        self.received[session.key] = self.replica.replica, through if is_complete else after
        if self.received[session.key] != before:
            self.news.set()

    def opened(self, session):
        super().opened(session)
        if session.trusted() and session.key in self.own and "lists" in session.other.features:
            session.say("ListNews")
            self.news.set()
            if self.exchanging:
                self.exchanging.cancel()
            self.exchanging = asyncio.create_task(self.exchange_with(session))

    async def serve(self, session):
        try:
            await super().serve(session)
        finally:
            if self.exchanging and not self.sessions:
                self.exchanging.cancel()

    def list_frame(self, session, frame):
        if frame.operation == "ListNews" and session.key in self.own:
            self.pause = 1
            self.news.set()
        elif frame.operation == "FileDial" and session.trusted():
            found = re.fullmatch(r"([0-9a-fA-F]{16}) ([0-9]{4,5})", frame.message or "")
            self.dials = [at for at in self.dials if foreign.now() - at < 10]
            may_dial = foreign.now() >= self.no_dial_until and len(self.dials) < 16 and len(self.wires) < 6
            if found and may_dial and 1024 <= int(found[2]) <= 65535:
                self.dials.append(foreign.now())
                self.start(ListServer(self, session).serve(int(found[2])))

    async def exchange_with(self, session):
        """Requests lists after each news, until it is cancelled."""
        self.pause, requested = 1, set()
        while True:
            await self.news.wait()
            self.news.clear()
            client = ListClient(self, session)
            try:
                while await self.round(client, session, requested):
                    self.pause = 1
            except FAULTS as error:
                self.joining = None
                event("failed", error=str(error) or type(error).__name__, pause=self.pause)
                asyncio.get_running_loop().call_later(self.pause, self.news.set)
                self.pause = min(2 * self.pause, 300)
            finally:
                client.close()
            await asyncio.sleep(0.2)  # at most one overview per 200 ms

    async def round(self, client, session, requested):
        """One overview and what it leads to. Returns whether another one is needed."""
        key, replica = session.key, self.replica
        had_all = self.received.get(key) == (replica.replica, replica.number)
        answer = read_json(await asyncio.wait_for(client.get("/lists", MIB), 15))
        entry = own_entry(answer)
        if not entry:
            event("notAdded", machine=answer.get("machine") if isinstance(answer, dict) else None)
            return False
        if abs(answer["now"] - clock_now()) > HALF_DAY:
            event("clocksDiffer")
            asyncio.get_running_loop().call_later(300, self.news.set)
            return False
        list_id, other, number, digest = entry
        if list_id != replica.id:
            if replica.remains(list_id):
                event("awaitsJoin", peer=printed(session.uuid))
                return False
            await self.join(client, session, list_id)
            requested.add(replica.id)
            return True
        if replica.cursors.get(key) != (other, number) or replica.id not in requested:
            await self.take_pages(client, session)
            requested.add(replica.id)
            return True
        own_digest = replica.digest()
        if had_all and self.received.get(key) == (replica.replica, replica.number):
            if own_digest == digest:
                event("inSync", digest=digest, number=replica.number)
                if not self.arguments.stay:
                    self.finished = True
                    session.close("shutdown")
            elif clock_now() - replica.repaired > 3_600_000:
                event("differs", own=own_digest, other=digest)
                replica.repaired = clock_now()
                replica.draw_replica()
                replica.cursors.pop(key, None)
                replica.save()
                session.say("ListNews")
                return True
            else:
                event("differsStill", own=own_digest, other=digest)
        return False

    async def pages(self, client, list_id, cursor):
        """The pages of a list from a cursor on, up to the last one without rows."""
        while True:
            after = f"replica={cursor[0]:016x}&after={cursor[1]}&" if cursor else ""
            target = f"/lists/{printed(uuid.UUID(bytes=list_id))}?{after}as={self.replica.replica:016x}"
            page = page_of(await asyncio.wait_for(client.get(target, READ_BYTES), 300))
            begins = page.after == 0 or cursor == (page.replica, page.after)
            if page.list != list_id or not begins or (page.nodes or page.left_out or not page.last) and page.through <= page.after:
                raise Refused("the page does not continue the list")
            self.progress = foreign.now()
            yield page
            cursor = page.replica, page.through
            if page.last and not page.nodes and not page.left_out:
                return

    async def take_pages(self, client, session):
        changes = 0
        async for page in self.pages(client, self.replica.id, self.replica.cursors.get(session.key)):
            changes += self.replica.take(page, session.key)
        if changes:
            event("changed", nodes=changes)
            session.say("ListNews")

    async def join(self, client, session, list_id):
        self.joining, nodes, page = list_id, {}, None
        async for page in self.pages(client, list_id, None):
            if page.after == 0:
                nodes = {}
            for node in page.nodes:
                nodes[node.id] = merge(nodes[node.id], node) if node.id in nodes else node
        self.replica.join(list_id, nodes, session.key, page.replica, page.through)
        self.joining, self.received = None, {}
        event("joined", list=printed(uuid.UUID(bytes=list_id)), nodes=len(self.replica.rows))
        session.say("ListNews")

    # -- commands from standard input

    def read_commands(self, loop):
        for line in sys.stdin:
            loop.call_soon_threadsafe(self.command, line)

    def command(self, line):
        try:
            node_id = self.replica.edit(parser().parse_args(["--state", str(self.folder), *shlex.split(line)]))
        except (Refused, SystemExit, ValueError) as error:
            return event("refused", error=str(error))
        event("edited", id=base64url(node_id))
        for session in self.sessions:
            if session.key in self.own:
                session.say("ListNews")
        return self.news.set()

    async def give_up(self):
        """Ends an exchange that makes no progress, such as one with a list that stays different."""
        while (left := self.progress + self.arguments.give_up - foreign.now()) > 0:
            await asyncio.sleep(left)
        event("gaveUp")
        self.gave_up = True
        self.shut_down()

    async def exchange(self):
        threading.Thread(target=self.read_commands, args=(asyncio.get_running_loop(),), daemon=True).start()
        if not self.arguments.stay:
            self.start(self.give_up())
        await self.keep_dialling(lambda: self.finished, self.arguments.give_up)
        return 0 if self.finished or self.stopping and not self.gave_up else 1


def own_entry(answer):
    """The collection in an overview of an own machine: list, replica number, greatest number, digest. None if there is none."""
    if not isinstance(answer, dict) or not is_integer(answer.get("now"), 2 ** 63 - 1) or not isinstance(answer.get("lists"), list):
        raise Refused("invalid overview")
    for entry in answer["lists"] if answer.get("machine") == "own" else []:
        if isinstance(entry, dict) and entry.get("role") == "own" and foreign.uuid_of(entry.get("list")):
            with contextlib.suppress(Malformed):
                number = entry.get("seq")
                if is_integer(number, 2 ** 63 - 1):
                    return foreign.uuid_of(entry["list"]).bytes, hex64(entry.get("replica")), number, f"{hex64(entry.get('digest')):016x}"
    return None


def own_machines(folder):
    path = folder / "own.json"
    return json.loads(path.read_text()) if path.exists() else []


def add_own(identity, folder, fingerprint):
    digest = bytes.fromhex(fingerprint.replace(" ", "").replace(":", ""))
    identity.trust(digest, "")
    (folder / "own.json").write_text(json.dumps([*{*own_machines(folder), digest.hex()}]))


def register(argument):
    name, equals, value = argument.partition("=")
    if not equals or not 1 <= len(name.encode()) <= 64:
        raise argparse.ArgumentTypeError("NAME=TEXT")
    return name, value


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", required=True, type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    add, setting, move, delete = (commands.add_parser(name) for name in ("add", "set", "move", "delete"))
    for command in (setting, move, delete):
        command.add_argument("node")
    for command in (add, setting):
        command.add_argument("--title")
        command.add_argument("--register", action="append", default=[], type=register, metavar="NAME=TEXT")
    for command in (add, move):
        command.add_argument("--in", dest="into", metavar="HEX")
    add.add_argument("--url")
    add.add_argument("--copies", type=int, default=1, metavar="N", help="so many nodes, with a number after the URL")
    add.add_argument("--kind", type=int, choices=range(16), metavar="N", help="the kind of the node: 1 hex, 2 link, others are not shown")
    move.add_argument("--before", metavar="NODE")
    for name in ("id", "show"):
        commands.add_parser(name)
    commands.add_parser("own").add_argument("fingerprint")
    exchange = commands.add_parser("exchange")
    exchange.add_argument("host")
    exchange.add_argument("port", type=int)
    exchange.add_argument("--stay", action="store_true")
    exchange.add_argument("--cut-in", type=int, metavar="BYTES")
    exchange.add_argument("--cut-out", type=int, metavar="BYTES")
    exchange.add_argument("--give-up", type=float, default=120, metavar="SECONDS", help="without a session or a page for so long")
    exchange.set_defaults(expect=None)
    return parser


async def run(arguments, identity):
    return await Machine(arguments, arguments.state, identity).run()


def main():
    arguments = parser().parse_args()
    identity = foreign.Identity(arguments.state)
    if arguments.command == "exchange":
        sys.exit(asyncio.run(run(arguments, identity)))
    replica = Replica(arguments.state / "list.json")
    if arguments.command == "id":
        print(json.dumps({"uuid": printed(identity.uuid), "fingerprint": identity.fingerprint.hex()}))
    elif arguments.command == "own":
        add_own(identity, arguments.state, arguments.fingerprint)
    elif arguments.command == "show":
        print(json.dumps(replica.shown()))
    else:
        try:
            print(json.dumps({"id": base64url(replica.edit(arguments))}))
        except Refused as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
