"""The values of a replicated list: nodes and their merge, their JSON and hash, the tree, and pages. Without IO. foreign-list.py uses them.
Written from Docs/Lists.md, like foreign-list.py."""
import base64, hashlib, json, math, re, secrets, time, uuid
from dataclasses import dataclass, field, replace

KIB, MIB = 1 << 10, 1 << 20
HEX, LINK, SHARED_LIST = 1, 2, 3
LEVELS, SHARED_LEVELS, PAGE_ROWS, PAGE_BYTES, READ_BYTES = 8, 7, 2000, MIB, 2 * MIB
NODE_BYTES = 256 * KIB
YEARS, LAST_MILLISECOND, HALF_DAY = 100 * 366 * 86_400_000, 105_553_116_266_495, 12 * 3_600_000
PRIVATE = ("read", "seen")
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

    def values(self):
        """The place, the title and the registers by name."""
        values = {"place": self.place, "title": self.title, **{f"r/{name}": value for name, value in self.registers.items()}}
        return {name: value for name, value in values.items() if value}

    @property
    def version(self):
        return max(self.versions(), default=(0, 0))

    @property
    def covered(self):
        return bool(self.gone) and self.gone[0] >= self.version

    def value(self, name):
        return self.registers[name][1] if name in self.registers else ""

    def public(self):
        """The node for other persons and for the digest: without private registers, and of a link that was deleted alone only the mark."""
        if kind_of(self.id) == LINK and self.covered and not self.gone[1]:
            return Node(self.id, gone=self.gone)
        return replace(self, registers={name: value for name, value in self.registers.items() if name not in PRIVATE})

    def with_register(self, name, value):
        return replace(self, registers=limited({**self.registers, name: value}, self.id))

    def with_mark(self, mark):
        return replace(self, gone=greater(self.gone, mark, mark_order))


def mark_order(mark):
    return mark[0], not mark[1], mark[1]


def greater(one, other, order=lambda value: value):
    """The greater of two values that may be missing."""
    return max((value for value in (one, other) if value), key=order, default=None)


def most_registers(node_id):
    return 256 if kind_of(node_id) == SHARED_LIST else 64


def limited(registers, node_id, room=math.inf):
    """The newest registers, as many as a node may have and as fit into so many bytes, and all private ones."""
    counted = sorted((name for name in registers if name not in PRIVATE), key=lambda name: (registers[name][0], name), reverse=True)
    kept = {name: value for name, value in registers.items() if name in PRIVATE}
    for name in counted[:most_registers(node_id)]:
        room -= size(name, registers[name][1])
        if room < 0:
            break
        kept[name] = registers[name]
    return kept


def size(*texts):
    return sum(len(text.encode()) for text in texts)


def merge(one, other):
    """Merges two nodes with one id, value by value. The order of Python's strings is that of their UTF-8."""
    names = {*one.registers, *other.registers}
    registers = {name: greater(one.registers.get(name), other.registers.get(name)) for name in names}
    url, service, title = max(one.url, other.url), max(one.service, other.service), greater(one.title, other.title)
    private = [text for name, (_, value) in registers.items() if name in PRIVATE for text in (name, value)]
    room = NODE_BYTES - size(url, service, title[1] if title else "", *private)
    return Node(one.id, url, service, greater(one.place, other.place), title, limited(registers, one.id, room),
                greater(one.gone, other.gone, mark_order))


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
    if len([name for name in registers if name not in PRIVATE]) > most_registers(node_id):
        raise Malformed("too many registers")
    if "gone" in row:
        gone = version_of(row["gone"], by), id_of(row["with"]) if "with" in row else b""
    node = Node(node_id, text(row.get("url", "")), text(row.get("service", "")), place, title, registers, gone)
    if not place and not title and not registers and not gone:
        raise Malformed("nothing has a version")
    values = [node.url, node.service, title[1] if title else "", *registers, *(value for _, value in registers.values())]
    if size(*values) > NODE_BYTES:
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
    return dump(members_of(node.public(), list_id, full_version))


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

    def __init__(self, nodes, list_id, levels=LEVELS):
        self.nodes, self.levels = nodes, levels
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
        for _ in range(self.levels - 1):
            level = [(child, node_id) for node_id, _ in level for child in inside.get(node_id, [])]
        while level:  # the hexes of the last level and those that would be below, with their parents on the level above
            for node_id, parent in level:
                self.parent[node_id] = parent
            level = [(child, parent) for node_id, parent in level for child in inside.get(node_id, [])]

    def path(self, node_id):
        """A node and the hexes around it."""
        while node_id:
            yield node_id
            node_id = self.parent[node_id]

    def below(self, node_id):
        """The shown nodes inside a hex, at all levels."""
        for child in self.contents.get(node_id, []):
            yield child
            yield from self.below(child)


def referring(node, same):
    """The node with its references to replaced hexes changed to the remaining ones."""
    if node.place:
        at, parent, key, was = node.place
        node = replace(node, place=(at, same.get(parent, parent), key, same.get(was, was)))
    return replace(node, gone=(node.gone[0], same.get(node.gone[1], node.gone[1]))) if node.gone else node


# ---- Pages ------------------------------------------------------------------------------------------------------------------------

@dataclass
class Page:
    list: bytes
    replica: int
    after: int
    through: int
    last: bool
    nodes: list
    left_out: list  # the reasons
    altered: set = field(default_factory=set)  # the ids of nodes that differ from those that were sent


def list_of(value):
    """The id of a list as a UUID."""
    if not isinstance(value, str) or not re.fullmatch("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", value):
        raise Malformed("no UUID")
    return uuid.UUID(value).bytes


def page_of(data, is_person, is_shared):
    """A page from an own machine or from another person, of the collection or of a shared list."""
    page = read_json(data)
    try:
        if not isinstance(page, dict) or not isinstance(page.get("by"), list) or not isinstance(page.get("rows"), list):
            raise Malformed("page")
        list_id, replica, by = list_of(page.get("list")), hex64(page.get("replica")), page["by"]
        if not isinstance(page.get("last"), bool) or not is_integer(page.get("after"), 2 ** 63 - 1) \
                or not is_integer(page.get("through"), 2 ** 63 - 1) or page["through"] < page["after"] \
                or len(page["rows"]) > PAGE_ROWS:
            raise Malformed("page")
    except Malformed as error:
        raise Refused(str(error)) from None
    nodes, left_out = [], []
    for row in page["rows"]:
        try:
            node = node_of(row, list_id, by)
            node = of_person(node) if is_person else node
            if is_shared and max(node.times()) > clock_now() + HALF_DAY << 16:
                raise Malformed("a version is more than 12 hours ahead")
            nodes.append(node)
        except Malformed as error:
            left_out.append(str(error))
    if any(max(node.times()) > clock_now() + YEARS << 16 for node in nodes):
        raise Refused("a version is more than 100 years ahead")
    return Page(list_id, replica, page["after"], page["through"], page["last"], nodes, left_out)


def of_person(node):
    """A node that another person sent."""
    if kind_of(node.id) == SHARED_LIST:
        raise Malformed("a shared list inside a shared list")
    node = replace(node, registers={name: value for name, value in node.registers.items() if name not in PRIVATE})
    if not node.times():
        raise Malformed("nothing has a version")
    return node
