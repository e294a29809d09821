#!/usr/bin/env python3
"""A machine with My Hexlist and shared hexes: an own machine of hexlistd, or that of another person. Written from Docs/Lists.md,
Docs/Sharing.md and Docs/Protocol.md. Where a sentence was not sufficient, the page was corrected. Change this program from the pages, not
from the sources. Identity and session are those of foreign-peer.py; foreign_nodes.py
has nodes, trees and pages.

    foreign-list.py --state DIR id
    foreign-list.py --state DIR own FINGERPRINT
    foreign-list.py --state DIR trust FINGERPRINT
    foreign-list.py --state DIR exchange HOST PORT [--stay] [--cut-in BYTES] [--cut-out BYTES] [--give-up SECONDS]
    foreign-list.py --state DIR show
    foreign-list.py --state DIR add [--list LIST] [--in HEX] [--url URL] [--title TEXT] [--register NAME=TEXT] [--kind N] [--copies N]
    foreign-list.py --state DIR set [--list LIST] NODE [--title TEXT] [--register NAME=TEXT]
    foreign-list.py --state DIR move [--list LIST] NODE [--in HEX] [--before NODE]
    foreign-list.py --state DIR delete [--list LIST] NODE
    foreign-list.py --state DIR share HEX --with UUID --access read|write|none
    foreign-list.py --state DIR join LIST
    foreign-list.py --state DIR leave LIST

DIR contains the identity, the trusted fingerprints, the own machines (own.json), My Hexlist (list.json), the shared lists (shared/) and
the offers of others (offers.json). Only one process at a time may use it. `own` trusts a machine and adds it to the own machines; `trust`
trusts that of another person. On the side of hexlistd, `hexlist peer trust` and `hexlist own add` do so. `exchange` dials hexlistd, takes
and gives all changes, and ends when both have all changes of each other; with `--stay` it continues until SIGTERM. Meanwhile it takes the
commands `add` to `leave` from standard input, one per line. `--cut-in` and `--cut-out` cut all connections once, after so many bytes of
lists were received or sent, then it dials again. A NODE is an id, a title or a URL, a LIST the title or UUID of a shared list or an
offer; both have to be unique. Without `--list`, commands change My Hexlist. `show` prints My Hexlist and the shared lists as JSON: the
digest, the number of nodes, the tree as HexJMs, and the nodes of unknown kinds.
"""
import argparse, asyncio, contextlib, hashlib, importlib.util, json, os, re, secrets, shlex, sys, threading, uuid
from dataclasses import dataclass, replace
from pathlib import Path

sys.dont_write_bytecode = True  # leaves no __pycache__ beside the examples
from foreign_nodes import (
    HALF_DAY, HEX, KIB, LEVELS, LINK, MIB, PAGE_BYTES, PAGE_ROWS, PRIVATE, READ_BYTES, ROOT, SHARED_LEVELS, SHARED_LIST, Malformed, Node,
    Refused, Tree, base64url, canonical, clock_now, dump, full_version, greater, hash_of, hex64, is_integer, kind_of, list_of, members_of,
    merge, most_registers, new_id, node_of, page_of, page_row, read_json, referring)

_spec = importlib.util.spec_from_file_location("foreign_peer", Path(__file__).resolve().with_name("foreign-peer.py"))
foreign = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = foreign
_spec.loader.exec_module(foreign)
event, printed = foreign.event, foreign.printed

FILES, FILES_SERVE = "hexlist-files/1", "hexlist-files-serve/1"


def uuid_text(data):
    return printed(uuid.UUID(bytes=data))


# ---- A replica --------------------------------------------------------------------------------------------------------------------

@dataclass
class Row:
    node: Node
    number: int
    origin: int = None  # the replica number from which the node was received unaltered
    confirmed: bool = False  # a machine of the owner of the list has sent or acknowledged it


class Replica:
    """My Hexlist with its numbered rows and the cursors of other machines, in one file that is replaced as a whole."""
    levels, newest_first = LEVELS, True

    def __init__(self, path, list_id=None):
        self.path, self.tree_cache = path, None
        if path.exists():
            self.load(json.loads(path.read_text()))
        else:
            self.id, self.replicas, self.number, self.clock, self.drawn, self.repaired = list_id or new_id(HEX), [], 0, 0, 0, 0
            self.rows, self.cursors = {}, {}
            self.draw_replica()
            self.save()

    @property
    def replica(self):
        """The replica number in use."""
        return self.replicas[-1]

    def load(self, saved):
        self.id, self.replicas = bytes.fromhex(saved["list"]), [int(replica, 16) for replica in saved["replicas"]]
        self.number, self.clock, self.drawn, self.repaired = (saved[name] for name in ("number", "clock", "drawn", "repaired"))
        self.rows = {}
        for number, origin, confirmed, members in saved["rows"]:
            node = node_of(members, self.id)
            self.rows[node.id] = Row(node, number, int(origin, 16) if origin else None, confirmed)
        self.cursors = {key: (int(replica, 16), after) for key, (replica, after) in saved["cursors"].items()}
        self.tree_cache = None

    def saved(self):
        rows = [[row.number, f"{row.origin:016x}" if row.origin is not None else "", row.confirmed,
                 members_of(row.node, self.id, full_version)] for row in self.rows.values()]
        cursors = {key: [f"{replica:016x}", after] for key, (replica, after) in self.cursors.items()}
        return {"list": self.id.hex(), "replicas": [f"{replica:016x}" for replica in self.replicas], "number": self.number,
                "clock": self.clock, "drawn": self.drawn, "repaired": self.repaired, "cursors": cursors, "rows": rows}

    def save(self):
        write_json(self.path, self.saved())
        self.tree_cache = None

    def nodes(self):
        return {node_id: row.node for node_id, row in self.rows.items()}

    def tree(self):
        if not self.tree_cache:
            self.tree_cache = Tree(self.nodes(), self.id, self.levels)
        return self.tree_cache

    def digest(self):
        digest = 0
        for row in self.rows.values():
            digest ^= hash_of(row.node, self.id)
        return f"{digest:016x}"

    def put(self, node, origin=None, confirmed=False):
        self.number += 1
        self.rows[node.id] = Row(node, self.number, origin, confirmed)

    def tick(self):
        self.clock = max(clock_now() << 16, self.clock + 1)
        return self.clock, self.replica

    def witness(self, node):
        self.clock = max([self.clock, *node.times()])

    def draw_replica(self):
        self.replicas.append(secrets.randbits(64))

    # -- local changes

    def find(self, name, or_root=False):
        tree = self.tree()
        for node_id in tree.nodes:
            if base64url(node_id) == name:
                return node_id
        named = {*tree.shown, *({self.id} & {*tree.nodes} if or_root else ())}
        found = [node_id for node_id in named if name in ((tree.nodes[node_id].title or [None, None])[1], tree.nodes[node_id].url)]
        if len(found) != 1:
            raise Refused(f"{len(found)} nodes are {name!r}")
        return found[0]

    def hex(self, name):
        node_id = self.find(name) if name else ROOT
        if name and node_id not in self.tree().shown & self.tree().hexes:
            raise Refused(f"{name!r} is no hex")
        return node_id

    def key(self, parent, before=None):
        """An order key for the end of a hex, or the beginning of My Hexlist, or before a node."""
        at_first = self.newest_first and parent == ROOT
        tree, now = self.tree(), clock_now()
        keys = [tree.order(node_id)[0] for node_id in tree.contents.get(parent, [])]
        if before is None:
            before_at = 0 if at_first else len(keys)
        else:
            before_at = tree.contents[parent].index(before)
        low = keys[before_at - 1] if before_at else b""
        high = keys[before_at] if before_at < len(keys) else None
        tail = secrets.token_bytes(1) + bytes([1 + secrets.randbelow(255)])
        wanted = ((1 << 48) - 1 - now if at_first else now).to_bytes(6, "big") + tail
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
        node_id = self.find(arguments.node, or_root=True)
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
        if name in PRIVATE or name in counted or len(counted) < most_registers(node.id):
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
        return self.delete_node(self.find(arguments.node))

    def delete_node(self, node_id):
        tree = self.tree()
        marks = [(node_id, b"")] + [(child, tree.parent[child]) for child in tree.below(node_id)]  # hexes before the marks with them
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

    # -- pages

    def page(self, replica, after, requester, is_person):
        """The page after a number, as JSON, for an own machine or another person."""
        if replica != self.replica:
            after = 0
        elif after > self.number:
            if not is_person:
                self.refuse_old_copy()
            after = 0
        by, rows, size, through, last = {}, [], 0, self.number, True
        numbered = sorted((row for row in self.rows.values() if row.number > after), key=lambda row: row.number)
        for index, row in enumerate(numbered):
            if row.origin == requester or self.is_unconfirmed(row):
                continue
            members = dump(page_row(row.node.public() if is_person else row.node, self.id, by))
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

    def is_unconfirmed(self, row):
        return False

    def take(self, page, key, confirms=False, gives_url=lambda sent, known: False):
        """Merges a page and moves the cursor of the machine, in one transaction. A machine of the owner confirms the rows that it sends."""
        changed = 0
        for node in page.nodes:
            known = self.rows.get(node.id)
            merged = merge(known.node, node) if known else node
            if known and known.node.versions() and node.versions() and gives_url(node, known.node):
                merged = replace(merged, url=node.url, service=node.service)
            if known and self.is_unconfirmed(known):
                self.reject(known.node, node)
                merged = node
            self.witness(node)
            if not known or merged != known.node:
                self.put(merged, page.replica if merged == node and node.id not in page.altered else None)
                changed += 1
            if confirms and merged.public() == node.public():
                self.rows[node.id].confirmed = True
        self.cursors[key] = page.replica, page.through
        self.save()
        return changed

    # -- joining another collection

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
        tree, node = self.tree(), self.rows[node_id or self.id].node
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
        return {"list": uuid_text(self.id), "nodes": len(self.rows), "digest": self.digest(),
                "tree": [self.hexjm(node_id) for node_id in top if node_id in tree.hexes],
                "links": [self.link(node_id) for node_id in top if kind_of(node_id) == LINK],
                "unknown": [canonical(node, self.id) for node_id, node in sorted(tree.nodes.items()) if kind_of(node_id) > 3]}


def write_json(path, value):
    new = path.with_suffix(".new")
    with open(new, "w") as out:
        json.dump(value, out)
        out.flush()
        os.fsync(out.fileno())
    new.rename(path)


# ---- Shared lists -----------------------------------------------------------------------------------------------------------------

class SharedReplica(Replica):
    """A shared list. While `checking`, after the access of this machine became `read`, its rows that are not confirmed are sent to nobody,
    and replaced by those of the owner. `rejected` keeps those of them that have values which the owner does not have."""
    levels, newest_first = SHARED_LEVELS, False

    def __init__(self, path, list_id=None):
        self.epoch, self.checking, self.is_complete, self.rejected = "", False, False, {}
        super().__init__(path, list_id)

    def load(self, saved):
        super().load(saved)
        self.epoch, self.checking, self.is_complete = saved["epoch"], saved["checking"], saved["complete"]
        nodes = [node_of(members, self.id) for members in saved["rejected"]]
        self.rejected = {node.id: node for node in nodes}

    def saved(self):
        rejected = [members_of(node, self.id, full_version) for node in self.rejected.values()]
        return {**super().saved(), "epoch": self.epoch, "checking": self.checking, "complete": self.is_complete, "rejected": rejected}

    @property
    def title(self):
        return self.rows[self.id].node.title[1] if self.rows else ""

    def is_unconfirmed(self, row):
        return self.checking and not row.confirmed

    def acknowledge(self, number):
        """A machine of the owner has all rows up to a number. Unconfirmed ones were not sent."""
        for row in self.rows.values():
            row.confirmed = row.confirmed or row.number <= number and not self.checking

    def follow(self, access, epoch):
        """Begins a check with a new epoch, and ends it when the access is not `read` any more."""
        if self.checking and access != "read":
            self.checking = False
            self.save()
        if self.epoch != epoch:
            self.epoch = epoch
            self.checking = access == "read" and not all(row.confirmed for row in self.rows.values())
            if self.checking:
                self.draw_replica()
                self.cursors = {}
            self.save()

    def reject(self, node, other=None):
        """Keeps a node if this machine wrote a value that the owner's node does not have."""
        values = other.values() if other else {}
        if any(value[0][1] in self.replicas and value != values.get(name) for name, value in node.values().items()):
            self.rejected[node.id] = node

    def end_check(self):
        """The owner has sent all rows."""
        for row in list(filter(self.is_unconfirmed, self.rows.values())):
            self.reject(row.node)
            del self.rows[row.node.id]
        self.checking = False

    def copies(self):
        """The ids, values and parents of copies of rejected nodes and the hexes around them. The first copy is the hex of the others."""
        nodes = {**self.nodes(), **self.rejected}
        tree, numbers = Tree(nodes, self.id, self.levels), {}
        for node_id in self.rejected.keys() & tree.shown:
            path = list(tree.path(node_id))
            numbers.update({at: len(path) - level for level, at in enumerate(path)})
        if numbers or self.id in self.rejected:
            yield self.copy_id(self.id), replace(nodes[self.id], title=((0, 0), f"{self.title} (not accepted)")), None
        for node_id in sorted(numbers, key=numbers.get):
            yield self.copy_id(node_id), nodes[node_id], self.copy_id(tree.parent[node_id] or self.id)

    def copy_id(self, node_id):
        digest = hashlib.sha256(node_id + self.id + self.epoch.encode()).digest()
        return node_id[:7] + digest[:1] + bytes([digest[1] & 0x3F | 0x80]) + digest[2:9]

    def check_member_page(self, page, key):
        """Refuses or changes a page of a member of this list."""
        others = [replica for other, (replica, _) in self.cursors.items() if other != key]
        if page.replica in [*self.replicas, *others]:
            raise Refused("another machine has this replica number")
        known = {*self.rows, *(node.id for node in page.nodes)}
        for index, node in enumerate(page.nodes):
            before = self.rows[node.id].node if node.id in self.rows else None
            if kind_of(node.id) == LINK and before and before.versions():
                node = replace(node, url=before.url, service=before.service)
            if before and node.gone and node.gone[1] and node.gone[1] not in known:
                node = replace(node, gone=(node.gone[0], b""))
            if node != page.nodes[index]:
                page.altered.add(node.id)
            page.nodes[index] = node


@dataclass
class Entry:
    """The entry of a shared list, which is one or more nodes of kind 3 in the collection. `id` is that of the shown one."""
    id: bytes
    list: bytes
    is_owned: bool
    is_deleted: bool
    registers: dict

    def value(self, name):
        return self.registers[name][1] if name in self.registers else ""

    def concerns(self, person):
        """Whether the list is or was shared with a person, or by this machine of a person."""
        return f"{'with' if self.is_owned else 'from'}/{person}" in self.registers

    def granted(self, member):
        """The access of a member of an owned list, and the time at which it was set."""
        (time, _), access = self.registers[f"with/{member}"]
        return ("none", time + 1) if self.is_deleted and access != "none" else (access, time)

    @property
    def access(self):
        """The access of this machine, and its time."""
        access, _, time = ("write 0" if self.is_owned else self.value("access")).partition(" ")
        return "none" if self.is_deleted else access, int(time or 0)

    @property
    def owners(self):
        """The number of machines of the owner of a joined list."""
        return sum(name.startswith("from/") and value == "1" for name, (_, value) in self.registers.items())

    def serves(self, person):
        if self.is_owned:
            return self.concerns(person) and self.granted(person)[0] in ("read", "write")
        return not self.is_deleted and self.value(f"from/{person}") == "1"

    def requests(self, person):
        if self.is_owned:
            return self.concerns(person) and self.granted(person)[0] == "write"
        return self.serves(person) and self.access[0] in ("read", "write")


class Store:
    """The collection, the shared lists and the offers of other persons."""

    def __init__(self, folder):
        self.folder, self.collection, self.shared = folder, Replica(folder / "list.json"), {}
        (folder / "shared").mkdir(exist_ok=True)
        for path in (folder / "shared").glob("*.json"):
            replica = SharedReplica(path)
            self.shared[replica.id] = replica
        self.offers = read_file(folder / "offers.json", {})  # by list, then by the UUID of the machine

    def new_replica(self, list_id):
        self.shared[list_id] = SharedReplica(self.folder / "shared" / f"{uuid_text(list_id)}.json", list_id)
        return self.shared[list_id]

    def lists(self):
        return {self.collection.id: self.collection, **self.shared}

    def entries(self):
        """The entries of shared lists by list."""
        tree, found = self.collection.tree(), {}
        for node in tree.nodes.values():
            if kind_of(node.id) == SHARED_LIST and node.title:
                with contextlib.suppress(Malformed):
                    found.setdefault(list_of(node.title[1]), []).append(node)
        entries = {}
        for list_id, nodes in found.items():
            owned = [node for node in nodes if not any(name.startswith("from/") for name in node.registers)]
            shown = sorted((node for node in owned or nodes if node.id in tree.shown), key=lambda node: node.id)
            registers = {}
            for node in shown or owned or nodes:
                registers.update({name: greater(registers.get(name), value) for name, value in node.registers.items()})
            entries[list_id] = Entry((shown or owned or nodes)[0].id, list_id, bool(owned), not shown, registers)
        return entries

    def exchanged(self, person):
        """The shared lists with this person, of which this machine has a replica."""
        return [entry for entry in self.entries().values() if entry.list in self.shared and entry.concerns(person)]

    # -- the collection's entries

    def write_entry(self, entry, values):
        """Writes registers of an entry, which restores a deleted one."""
        collection, registers = self.collection, {name: (self.collection.tick(), value) for name, value in values.items()}
        node = collection.rows[entry.id].node
        for name, value in registers.items():
            node = node.with_register(name, value)
        collection.put(node)
        collection.save()

    def new_entry(self, list_id, key):
        collection, at = self.collection, self.collection.tick()
        node = Node(new_id(SHARED_LIST), place=(at, collection.id, key, collection.id), title=(at, uuid_text(list_id)))
        collection.put(node)
        return Entry(node.id, list_id, True, False, {})

    def set_access(self, entry, access, time, joins=False):
        """Notes the access that the owner grants to this user."""
        values = {"access": f"{access} {time}"}
        if access == "read" and (joins or entry.access[0] != "read"):
            values["epoch"] = str(time)
        self.write_entry(entry, values)
        event("access", list=uuid_text(entry.list), access=access)

    def drop_lost_rows(self, entry):
        """Begins a check of all rows of a list, because its owner may have lost some."""
        for row in self.shared[entry.list].rows.values():
            row.confirmed = False
        self.write_entry(entry, {"epoch": str(int(entry.value("epoch") or 0) + 1)})
        self.follow()

    def follow(self):
        """Brings the replicas of shared lists up to their entries, and copies rejected nodes into the collection."""
        for entry in self.entries().values():
            replica = self.shared.get(entry.list) or self.new_replica(entry.list)  # another own machine has joined or shared it
            if not entry.is_owned and not entry.is_deleted:
                replica.follow(entry.access[0], entry.value("epoch"))
                if replica.rejected and not replica.checking:
                    self.copy_rejected(replica)

    def copy_rejected(self, replica):
        collection, copies = self.collection, list(replica.copies())
        for copy, node, parent in copies:
            at = collection.tick()
            place = at, parent or collection.id, node.place[2] if parent else collection.key(ROOT), parent or collection.id
            registers = {name: (at, value) for name, (_, value) in node.registers.items()}
            collection.put(Node(copy, node.url, node.service, place, (at, node.title[1] if node.title else ""), registers))
        collection.save()
        event("notAccepted", list=uuid_text(replica.id), nodes=len(replica.rejected))
        replica.rejected = {}
        replica.save()

    def learn(self, person, lists):
        """Notes offers and the access of this user in an overview of another person."""
        entries = self.entries()
        for served in lists:
            entry, name = entries.get(served.list), uuid_text(served.list)
            if served.role == "joined" and entry and entry.is_owned and entry.concerns(person) and served.access == "none":
                event("left", list=name, peer=person)
            if served.role != "shared" or not served.access_at or entry and entry.is_owned:
                continue
            if entry and not entry.is_deleted and entry.value(f"from/{person}") == "1":
                if served.access_at > entry.access[1]:
                    self.set_access(entry, served.access, served.access_at)
                continue
            offers = self.offers.setdefault(name, {})
            if served.access == "none":
                offers.pop(person, None)
            elif person in offers or sum(person in others for others in self.offers.values()) < 20:
                offers[person] = {"title": served.title, "access": served.access, "at": served.access_at}
                event("offered", list=name, title=served.title, access=served.access)
        write_json(self.folder / "offers.json", self.offers)

    # -- commands

    def edit(self, arguments):
        """Carries out a command. Returns the id of the node that was changed, or of the list."""
        try:
            if arguments.command in ("share", "join", "leave"):
                return getattr(self, arguments.command)(arguments)
            replica = self.writable(arguments.list)
            node_id = getattr(replica, arguments.command)(arguments)
            replica.save()
            return node_id
        except Refused:
            self.__init__(self.folder)
            raise

    def writable(self, name):
        if not name:
            return self.collection
        entry = self.entry_named(name)
        if entry.access[0] != "write":
            raise Refused("this machine can only read the list")
        return self.shared[entry.list]

    def entry_named(self, name):
        found = [entry for entry in self.entries().values() if entry.list in self.shared and not entry.is_deleted
                 and name in (self.shared[entry.list].title, uuid_text(entry.list))]
        if len(found) != 1:
            raise Refused(f"{len(found)} shared lists are {name!r}")
        return found[0]

    def share(self, arguments):
        try:
            entry = self.entry_named(arguments.node)
        except Refused:
            entry = self.begin_sharing(self.collection.hex(arguments.node))
        if not entry.is_owned:
            raise Refused("another person owns the list")
        self.write_entry(entry, {f"with/{member}": arguments.access for member in arguments.members})
        return entry.list

    def begin_sharing(self, hex_id):
        """Copies a hex and everything inside into a new list, and deletes it in the collection."""
        collection, tree, replica = self.collection, self.collection.tree(), self.new_replica(new_id(HEX))
        copies = {hex_id: replica.id, **{node_id: new_id(kind_of(node_id)) for node_id in tree.below(hex_id)}}
        for node_id, copy in copies.items():
            node, at = collection.rows[node_id].node, replica.tick()
            parent = copies.get(tree.parent[node_id])
            place = (at, parent, node.place[2], parent) if parent else None
            registers = {name: (at, value) for name, (_, value) in node.registers.items()}
            replica.put(Node(copy, node.url, node.service, place, (at, node.title[1] if node.title else ""), registers))
        replica.save()
        entry = self.new_entry(replica.id, collection.key(ROOT) if tree.parent[hex_id] else collection.rows[hex_id].node.place[2])
        self.write_entry(entry, {"copied": uuid_text(hex_id)})
        collection.delete_node(hex_id)
        return entry

    def join(self, arguments):
        """Joins an offered list, or confirms that it comes from another machine of its owner."""
        found = [(list_of(name), person, offer) for name, offers in self.offers.items() for person, offer in offers.items()
                 if arguments.node in (name, offer["title"])]
        if len(found) != 1:
            raise Refused(f"{len(found)} offers are {arguments.node!r}")
        list_id, person, offer = found[0]
        if list_id not in self.shared:
            replica = self.new_replica(list_id)
            replica.put(Node(list_id, title=((1, replica.replica), offer["title"])))
            replica.save()
        entry = self.entries().get(list_id) or self.new_entry(list_id, self.collection.key(ROOT))
        self.write_entry(entry, {f"from/{person}": "1"})
        entry = self.entries()[list_id]
        if offer["at"] > entry.access[1]:
            self.set_access(entry, offer["access"], offer["at"], joins=True)
        del self.offers[uuid_text(list_id)]
        write_json(self.folder / "offers.json", self.offers)
        self.follow()
        return list_id

    def leave(self, arguments):
        """Deletes a list of this user. If it is an owned one, sharing ends for all members."""
        entry = self.entry_named(arguments.node)
        self.write_entry(entry, {name: "none" for name in entry.registers if name.startswith("with/")})
        self.collection.delete_node(entry.id)
        self.collection.save()
        return entry.list

    # -- the overview

    def overview(self, person, is_own):
        """The answer to `/lists` for a machine of another person, or an own one."""
        lists = [self.described(self.collection, "own", "write")] if is_own else []
        for entry in self.entries().values():
            replica, role = self.shared.get(entry.list), "shared" if entry.is_owned else "joined"
            if not replica or not replica.rows:
                continue
            if is_own:
                if not entry.is_deleted and (entry.is_owned or replica.is_complete and not replica.checking):
                    lists.append(self.described(replica, role, entry.access[0], epoch=replica.epoch))
            elif entry.concerns(person) and entry.is_owned:
                access, time = entry.granted(person)
                lists.append(self.described(replica, role, access, accessAt=time))
            elif entry.value(f"from/{person}") == "1":
                access = entry.access[0]
                lists.append(self.described(replica, role, "read" if access == "none" and not entry.is_deleted else access))
        return dump({"now": clock_now(), "machine": "own" if is_own else "peer", "lists": lists})

    def described(self, replica, role, access, **more):
        tree, is_shared = replica.tree(), access != "none"
        return {"list": uuid_text(replica.id), "role": role, "access": access, "hexes": len(tree.shown & tree.hexes),
                "title": "" if role == "own" else replica.title.encode()[:256].decode(errors="ignore"),
                "links": sum(kind_of(node_id) == LINK for node_id in tree.shown), "replica": f"{replica.replica:016x}",
                "seq": replica.number if is_shared else 0, "digest": replica.digest() if is_shared else "0" * 16, **more}

    def shown(self):
        shared = []
        for entry in self.entries().values():
            if entry.list in self.shared and self.shared[entry.list].rows and not entry.is_deleted:
                replica = self.shared[entry.list]
                shared.append({**replica.shown(), "title": replica.title, "access": entry.access[0], "tree": [replica.hexjm(ROOT)]})
        return {**self.collection.shown(), "shared": shared}


def read_file(path, default):
    return json.loads(path.read_text()) if path.exists() else default


@dataclass
class Served:
    """A list in an overview of the other side."""
    list: bytes
    role: str
    access: str
    access_at: int
    epoch: str
    title: str
    replica: int
    number: int
    digest: str


def overview_of(data):
    """The machine, the clock and the lists of an overview. Entries of another form are left out."""
    answer = read_json(data)
    if not isinstance(answer, dict) or not is_integer(answer.get("now"), 2 ** 63 - 1) or not isinstance(answer.get("lists"), list):
        raise Refused("invalid overview")
    lists = []
    for entry in answer["lists"]:
        with contextlib.suppress(Malformed):
            lists.append(served_of(entry))
    return answer.get("machine"), answer["now"], lists


def served_of(entry):
    if not isinstance(entry, dict):
        raise Malformed("entry")
    access_at, epoch, title = entry.get("accessAt", 0), entry.get("epoch", ""), entry.get("title", "")
    if entry.get("role") not in ("own", "shared", "joined") or entry.get("access") not in ("read", "write", "none") \
            or not is_integer(entry.get("seq"), 2 ** 63 - 1) or not is_integer(access_at, 2 ** 64 - 1) \
            or not isinstance(epoch, str) or not isinstance(title, str):
        raise Malformed("entry")
    return Served(list_of(entry.get("list")), entry["role"], entry["access"], access_at, epoch, title, hex64(entry.get("replica")),
                  entry["seq"], f"{hex64(entry.get('digest')):016x}")


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
        machine, store, person = self.machine, self.machine.store, printed(self.session.uuid)
        is_own = machine.is_own(self.session)
        number = r"([0-9a-fA-F]{16})"
        found = re.fullmatch(rf"/lists/([0-9a-fA-F-]{{36}})\?(?:replica={number}&after=([0-9]{{1,18}})&)?as={number}", target)
        if not self.session.trusted():
            return "404 Not Found", b"", None
        if target == "/lists":
            event("overview", peer=person)
            if self.session not in machine.informed:
                machine.informed.add(self.session)
                machine.news.set()
            return "200 OK", store.overview(person, is_own).encode(), None
        list_id = foreign.uuid_of(found[1]) if found else None
        replica = machine.served(self.session, list_id.bytes) if list_id else None
        if not replica:
            is_joining = is_own and list_id and list_id.bytes == machine.joining
            return ("503 Service Unavailable" if is_joining else "404 Not Found"), b"", None
        try:
            after = int(found[2], 16) if found[2] else None, int(found[3] or 0)
            page, answered = replica.page(*after, int(found[4], 16), not is_own)
        except Refused:
            return "503 Service Unavailable", b"", None
        return "200 OK", page.encode(), (replica, *answered)


# ---- The machine ------------------------------------------------------------------------------------------------------------------

class Machine(foreign.Peer):
    features = ["files", "lists"]

    def __init__(self, arguments, folder, identity):
        super().__init__(arguments, folder, identity)
        self.store, self.own = Store(folder), read_file(folder / "own.json", [])
        self.news, self.finished, self.joining, self.received = asyncio.Event(), False, None, {}
        self.wires, self.left = set(), {"cut_in": arguments.cut_in, "cut_out": arguments.cut_out}
        self.dials, self.no_dial_until, self.exchanging = [], 0, None
        self.informed = set()  # the sessions whose other side has requested the overview since the last change
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

    def is_own(self, session):
        return session.trusted() and session.key in self.own

    def concerns(self, session):
        """Whether the other side may exchange a list with this machine."""
        return self.is_own(session) or session.trusted() and bool(self.store.exchanged(printed(session.uuid)))

    def served(self, session, list_id):
        """The replica of a list that the other side may request."""
        store, entry = self.store, self.store.entries().get(list_id)
        if self.is_own(session):
            return store.lists().get(list_id)
        return store.shared.get(list_id) if entry and entry.serves(printed(session.uuid)) else None

    def requested(self, session, served):
        """The replica of a list in an overview if its rows are requested from there."""
        store, entry, replica = self.store, self.store.entries().get(served.list), self.store.shared.get(served.list)
        if self.is_own(session) and served.role == "own":
            return store.collection
        if not entry or not replica or "none" in (entry.access[0], served.access):
            return None
        wanted = replica.epoch == served.epoch if self.is_own(session) else entry.requests(printed(session.uuid))
        return replica if wanted else None

    def has_all(self, session, replica):
        return self.received.get((session.key, replica.id)) == (replica.replica, replica.number)

    def has_received(self, session, replica, after, through, is_complete):
        """A requester has all rows up to `after`; if nothing was left to send, up to `through`."""
        key, has = (session.key, replica.id), through if is_complete else after
        before, self.received[key] = self.received.get(key), (replica.replica, has)
        entry = self.store.entries().get(replica.id)
        if entry and not entry.is_owned and not self.is_own(session):
            replica.acknowledge(has)
        if self.received[key] != before:
            self.news.set()

    def tell(self):
        """Something has changed."""
        self.informed.clear()
        for session in self.sessions:
            if self.concerns(session):
                session.say("ListNews")
        self.news.set()

    def opened(self, session):
        super().opened(session)
        if session.trusted() and "lists" in session.other.features:
            self.news.clear()
            if self.concerns(session):  # others have to send ListNews first
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
        if frame.operation == "ListNews" and session.trusted():
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
        while not self.finished:
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
        store, key = self.store, session.key
        had_all = [replica for replica in store.lists().values() if self.has_all(session, replica)]
        machine, now, lists = overview_of(await asyncio.wait_for(client.get("/lists", MIB), 15))
        if abs(now - clock_now()) > HALF_DAY:
            event("clocksDiffer")
            asyncio.get_running_loop().call_later(300, self.news.set)
            return False
        if self.is_own(session):
            collection = next((served.list for served in lists if machine == "own" and served.role == "own"), None)
            if not collection:
                event("notAdded", machine=machine)
                return False
            if collection != store.collection.id:
                if store.collection.remains(collection):
                    event("awaitsJoin", peer=printed(session.uuid))
                    return False
                await self.join(client, session, collection)
                requested.add(collection)
                return True
        else:
            store.learn(printed(session.uuid), lists)
        store.follow()
        again = False
        for served in lists:
            replica = self.requested(session, served)
            if replica and (replica.cursors.get(key) != (served.replica, served.number) or replica.id not in requested):
                await self.take_pages(client, session, replica)
                requested.add(replica.id)
                again = True
        if again:
            return True
        compared = [served for served in lists if served.access != "none" and self.served(session, served.list)]
        is_informed = session in self.informed or not self.concerns(session)
        if all([self.compare(session, served, had_all) for served in compared]) and lists and is_informed and not self.arguments.stay:
            self.finished = True
            session.close("shutdown")
        return False

    def compare(self, session, served, had_all):
        """Compares the digests of a list once both sides have all rows of each other. Returns whether they are equal."""
        replica, entry = self.store.lists()[served.list], self.store.entries().get(served.list)
        reads_only = not self.is_own(session) and not entry.is_owned and entry.access[0] == "read"
        if not reads_only and not (replica in had_all and self.has_all(session, replica)):
            return False
        name, own = uuid_text(replica.id), replica.digest()
        if own == served.digest:
            event("inSync", list=name, digest=own, number=replica.number)
            return True
        owns = entry and entry.is_owned and not self.is_own(session)
        if owns or clock_now() - replica.repaired < 3_600_000:
            event("differsStill", list=name, own=own, other=served.digest)
            return False
        event("differs", list=name, own=own, other=served.digest)
        replica.repaired = clock_now()
        replica.draw_replica()
        replica.cursors.pop(session.key, None)
        replica.save()
        if reads_only and entry.owners == 1:
            self.store.drop_lost_rows(entry)
        self.tell()
        return False

    async def pages(self, client, list_id, cursor, replica_number, is_person=False):
        """The pages of a list from a cursor on, up to the last one without rows."""
        while True:
            after = f"replica={cursor[0]:016x}&after={cursor[1]}&" if cursor else ""
            target = f"/lists/{uuid_text(list_id)}?{after}as={replica_number:016x}"
            page = page_of(await asyncio.wait_for(client.get(target, READ_BYTES), 300), is_person, list_id in self.store.shared)
            for error in page.left_out:
                event("leftOut", error=error)
            begins = page.after == 0 or cursor == (page.replica, page.after)
            if page.list != list_id or not begins or (page.nodes or page.left_out or not page.last) and page.through <= page.after:
                raise Refused("the page does not continue the list")
            self.progress = foreign.now()
            yield page
            cursor = page.replica, page.through
            if page.last and not page.nodes and not page.left_out:
                return

    async def take_pages(self, client, session, replica):
        changes, is_own, entry = 0, self.is_own(session), self.store.entries().get(replica.id)
        is_owner = entry and not entry.is_owned and not is_own
        confirms = is_owner or entry and entry.access[0] == "read"
        is_joined = entry and not entry.is_owned

        def gives_url(sent, known):
            """Whether a link gets the URL of a sent one, which may be the lesser one: that of its owner."""
            return is_owner or is_joined and sent.version >= known.version

        async for page in self.pages(client, replica.id, replica.cursors.get(session.key), replica.replica, not is_own):
            if not is_own and not is_owner:
                replica.check_member_page(page, session.key)
            changes += replica.take(page, session.key, confirms, gives_url)
        if changes:
            event("changed", list=uuid_text(replica.id), nodes=changes)
        if is_checked := confirms and replica.checking:
            replica.end_check()
        if entry and not replica.is_complete or is_checked:
            replica.is_complete = True
            replica.save()
            self.store.follow()
        if changes or is_checked:
            self.tell()

    async def join(self, client, session, list_id):
        self.joining, nodes, page, collection = list_id, {}, None, self.store.collection
        async for page in self.pages(client, list_id, None, collection.replica):
            if page.after == 0:
                nodes = {}
            for node in page.nodes:
                nodes[node.id] = merge(nodes[node.id], node) if node.id in nodes else node
        collection.join(list_id, nodes, session.key, page.replica, page.through)
        self.joining, self.received = None, {}
        event("joined", list=uuid_text(list_id), nodes=len(collection.rows))
        self.tell()

    # -- commands from standard input

    def read_commands(self, loop):
        for line in sys.stdin:
            loop.call_soon_threadsafe(self.command, line)

    def command(self, line):
        try:
            node_id = self.store.edit(parser().parse_args(["--state", str(self.folder), *shlex.split(line)]))
        except (Refused, SystemExit, ValueError) as error:
            return event("refused", error=str(error))
        event("edited", id=base64url(node_id))
        return self.tell()

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


def trust(identity, folder, fingerprint, is_own):
    digest = bytes.fromhex(fingerprint.replace(" ", "").replace(":", ""))
    identity.trust(digest, "")
    if is_own:
        write_json(folder / "own.json", [*{*read_file(folder / "own.json", []), digest.hex()}])


def register(argument):
    name, equals, value = argument.partition("=")
    if not equals or not 1 <= len(name.encode()) <= 64:
        raise argparse.ArgumentTypeError("NAME=TEXT")
    return name, value


def member(argument):
    return printed(uuid.UUID(argument))


def parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", required=True, type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    add, setting, move, delete, share, join, leave = \
        (commands.add_parser(name) for name in ("add", "set", "move", "delete", "share", "join", "leave"))
    for command in (setting, move, delete, share, join, leave):
        command.add_argument("node")
    for command in (add, setting, move, delete):
        command.add_argument("--list", metavar="LIST")
    share.add_argument("--with", dest="members", action="append", required=True, type=member, metavar="UUID")
    share.add_argument("--access", choices=("read", "write", "none"), required=True)
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
    for name in ("own", "trust"):
        commands.add_parser(name).add_argument("fingerprint")
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
    store = Store(arguments.state)
    if arguments.command == "id":
        print(json.dumps({"uuid": printed(identity.uuid), "fingerprint": identity.fingerprint.hex()}))
    elif arguments.command in ("own", "trust"):
        trust(identity, arguments.state, arguments.fingerprint, arguments.command == "own")
    elif arguments.command == "show":
        print(json.dumps(store.shown()))
    else:
        try:
            print(json.dumps({"id": base64url(store.edit(arguments))}))
        except Refused as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
