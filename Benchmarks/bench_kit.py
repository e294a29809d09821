"""Shared parts of the benchmarks: records, a pair of hexlistd that trust each other, the floor in C++, process figures.

A library, not a program. All files are in a temporary folder under Benchmarks/.build, on the disk of the checkout. The folder
and all started processes are removed at the end.
"""

import atexit
import contextlib
import json
import os
import random
import select
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(HERE)
BIN = os.path.realpath(os.environ.get("HEXLIST_BIN") or os.path.join(ROOT, ".build", "release"))
SKIPPED = 77  # exit status of a benchmark whose packages are missing
READY_SECONDS = 30
os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"


def name():
    return os.path.basename(sys.argv[0])


def wrong(message):
    raise SystemExit(f"{name()}: {message}")


# --- requirements ------------------------------------------------------------------------------------------------

FLOOR_NEEDS = {"c++": "g++", "/usr/include/simdjson.h": "libsimdjson-dev", "/usr/include/openssl/ssl.h": "libssl-dev",
               "/usr/include/sqlite3.h": "libsqlite3-dev", "openssl": "openssl"}


def missing(needs):
    """Returns the packages of the programs and headers that are missing. A need that begins with `/` is the path of a header."""
    exists = lambda item: os.path.exists(item) if item.startswith("/") else shutil.which(item)
    return sorted({package for item, package in needs.items() if not exists(item)})


def require(needs):
    """Ends the benchmark with status 77 if a package is missing, and names the package."""
    packages = missing(needs)
    if packages:
        print(f"{name()}: skipped: not installed: {' '.join(packages)} (apt-get install {' '.join(packages)})")
        raise SystemExit(SKIPPED)


def require_hexlist():
    for program in ("hexlistd", "hexlist"):
        if not os.access(os.path.join(BIN, program), os.X_OK):
            wrong(f"no {program} in {BIN}: `make release`, or set HEXLIST_BIN")


def compiled(program, libraries):
    """The path of the program of Sources/Floor/PROGRAM.cpp. Compiles it if a source is newer."""
    sources = os.path.join(HERE, "Sources", "Floor")
    source, output = os.path.join(sources, f"{program}.cpp"), os.path.join(HERE, ".build", program)
    inputs = [source] + [os.path.join(sources, file) for file in os.listdir(sources) if file.endswith(".hpp")]
    if not os.path.exists(output) or os.path.getmtime(output) < max(map(os.path.getmtime, inputs)):
        os.makedirs(os.path.dirname(output), exist_ok=True)
        subprocess.run(["c++", "-O2", "-std=c++17", "-Wall", "-Wextra", source, "-o", output,
                        *(f"-l{library}" for library in libraries)], check=True)
    return output


def floor():
    return compiled("floor", ["ssl", "crypto", "sqlite3", "simdjson"])


@contextlib.contextmanager
def folder():
    """A temporary folder on the disk of the checkout. On a /tmp in memory an fsync would cost nothing."""
    os.makedirs(os.path.join(HERE, ".build"), exist_ok=True)
    path = tempfile.mkdtemp(prefix=f"{name()}-", dir=os.path.join(HERE, ".build"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


# --- the records -------------------------------------------------------------------------------------------------

WORDS = ("archive basket canopy delta ember field garden harbour island journal kettle lantern meadow notes orchard paper quarry "
         "river summer timber umbrella valley window yellow").split()
ODD = ["Zoë", "山田 太郎", "naïve café", "עברית", "😀 smile", 'a "quoted" word', "two\nlines", "back\\slash", "Ærø"]
SENDER, NAME = "7F3B52C1-0A64-8D1E-9B7A-53F0C2D4E6A8", "a machine"
SERVICES = ["Dropbox", "GoogleDrive", "Box", "Unknown"]


def make_records(hexes, frames, count, seed=1):
    """Writes `count` hexes to two files, one per line: as HexJM without a sender, the input of `send --bulk`, and as frames (without
    length) with sender and message id, as hexlistd sends them.

    A hex has 5 links; 15 of 100 texts have UTF-8 or an escape; the median frame has 1 008 bytes. Returns the sums that a store with
    all of them must have.
    """
    choose = random.Random(seed)
    pick, below = choose.choice, choose.random
    sums = {"hexes": count, "links": 5 * count, "bytes": 0}

    def text(words):
        chosen = [pick(WORDS) for _ in range(words)]
        if below() < 0.15:
            chosen[int(below() * words)] = pick(ODD)
        return " ".join(chosen)

    def compact(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    with open(hexes, "w", encoding="utf-8") as hex_file, open(frames, "w", encoding="utf-8") as frame_file:
        for number in range(1, count + 1):
            links = [{
                "url": f"https://{pick(WORDS)}.example.org/{pick(WORDS)}/{pick(WORDS)}-{pick(WORDS)}-{int(below() * 100_000)}",
                "linkDescription": text(3), "service": pick(SERVICES),
            } for _ in range(5)]
            bits = f"{choose.getrandbits(128):032X}"
            identifier = f"0193{number:08X}7{bits[:3]}8{bits[3:18]}"
            message_id = "-".join((identifier[:8], identifier[8:12], identifier[12:16], identifier[16:20], identifier[20:]))
            content = {"hexDescription": text(2), "hexColor": "#3366CC", "links": links}
            jm = {"senderUUID": SENDER, "senderName": NAME, **content}
            wrapper = {"versionID": "1.0.0", "operationType": "Store", "jmObjectType": "Hex", "messageID": message_id,
                       "sequence": number, "jmObject": jm}
            room = min(max(round(choose.gauss(1_008, 8)), 987), 1_038) - len(compact(wrapper).encode())
            while room > 1:
                word = pick(WORDS)[:room - 1]
                content["hexDescription"] += " " + word
                room -= len(word) + 1
            wrapper["jmObject"]["hexDescription"] = content["hexDescription"]
            hex_file.write(compact(content) + "\n")
            frame_file.write(compact(wrapper) + "\n")
            sums["bytes"] += len(content["hexDescription"].encode()) + sum(
                len(link[member].encode()) for link in links for member in ("url", "linkDescription"))
    return sums


def check_store(path, sums, what):
    """Ends the benchmark unless a database has the rows of all records, each once."""
    database = sqlite3.connect(path)
    hexes, texts, ids = database.execute(
        "SELECT count(*), total(length(CAST(description AS BLOB))), count(DISTINCT messageID) FROM hex").fetchone()
    links, link_texts = database.execute(
        "SELECT count(*), total(length(CAST(url AS BLOB)) + length(CAST(description AS BLOB))) FROM link").fetchone()
    found = {"hexes": hexes, "links": links, "bytes": int(texts + link_texts)}
    database.close()
    if found != sums or ids != hexes:
        wrong(f"{what} stored {found} with {ids} message ids instead of {sums}")


def count_hexes(path):
    database = sqlite3.connect(path)
    try:
        return database.execute("SELECT count(*) FROM hex").fetchone()[0]
    finally:
        database.close()


# --- processes ---------------------------------------------------------------------------------------------------


def cpu_seconds(pid):
    """The processor time of a process. Its clock counts nanoseconds, /proc/PID/stat ticks of 10 ms."""
    return time.clock_gettime(~pid << 3 | 2)  # MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED) of the kernel


def memory_mb(pid):
    """MB of anonymous memory now, and of resident memory at its high-water mark (the kernel keeps none for anonymous memory)."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        values = dict(line.split(":", 1) for line in status)
    return tuple(int(values[key].split()[0]) / 1024 for key in ("RssAnon", "VmHWM"))


def wake_ups(pid):
    """The number of voluntary context switches of each thread, by the thread's id and start time."""
    counts = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread ended meanwhile
            with open(f"/proc/{pid}/task/{thread}/stat", "rb") as stat:
                began = int(stat.read().rpartition(b")")[2].split()[19])
            with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as status:
                switches = next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
            counts[thread, began] = switches
    return counts


class WakeUps:
    """Counts the wake-ups of a process. The kernel's count of a thread is lost when the thread ends, so the counts are sampled often. Only
    the wake-ups of a thread after its last sample are missing."""

    LOOK = 0.25  # seconds between two samples, which do not wake the process

    def __init__(self, pid):
        self.pid, self.total, self.last = pid, 0, wake_ups(pid)

    def look(self):
        now = wake_ups(self.pid)
        self.total += sum(count - self.last.get(thread, 0) for thread, count in now.items())
        self.last = now


def wake_ups_during(seconds, *pids):
    """The number of wake-ups of each process."""
    counters = [WakeUps(pid) for pid in pids]
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(WakeUps.LOOK, left))
        for counter in counters:
            counter.look()
    return [counter.total for counter in counters]


started = []


def start(command, **options):
    """Starts a process. It is killed at the end of the benchmark if it still runs."""
    started.append(subprocess.Popen(command, **options))
    return started[-1]


@atexit.register
def end_all():
    for process in started:
        if process.poll() is None:
            process.kill()


def finished(process, what, seconds=600):
    """Waits for a process. Returns its processor seconds and its peak memory in MB."""
    deadline = time.monotonic() + seconds
    descriptor = os.pidfd_open(process.pid)
    try:
        if not select.select([descriptor], [], [], max(0, deadline - time.monotonic()))[0]:
            process.kill()
            wrong(f"{what} did not end within {seconds} s")
    finally:
        os.close(descriptor)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def child_of(pid):
    """The process that strace runs. Waits until it has replaced strace's own fork."""
    for _ in range(500):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
            for child in map(int, children.read().split()):
                try:
                    if os.readlink(f"/proc/{child}/exe") != os.readlink(f"/proc/{pid}/exe"):
                        return child
                except PermissionError:  # only root can read these files of hexlistd
                    return child
                except OSError:
                    pass
        time.sleep(0.01)
    raise SystemExit(f"{name()}: strace started nothing")


def counting(path):
    """Arguments that run a command under strace, which writes the number of fsync and fdatasync calls to `path`."""
    return ["strace", "-f", "-c", "--seccomp-bpf", "-e", "trace=fdatasync,fsync", "-o", path]


def counted(path):
    with open(path, encoding="utf-8") as summary:
        fields = [line.split() for line in summary]
    return sum(int(line[3]) for line in fields if line and line[-1] in ("fdatasync", "fsync"))


# --- two daemons -------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Daemon:
    """One hexlistd on loopback, with a state folder of its own."""

    def __init__(self, base, label, port, peer_port, trace=None):
        self.label = label
        self.state = os.path.join(base, label)
        # A socket's path has 107 bytes at most.
        self.sockets = tempfile.mkdtemp(prefix="hexlist-bench-")
        self.environment = {
            **os.environ, "HEXLIST_STATE_DIR": self.state, "HEXLIST_CONFIG": os.path.join(base, f"{label}.yaml"),
            "HEXLIST_SOCKET": os.path.join(self.sockets, "control.sock"),
        }
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        with open(self.environment["HEXLIST_CONFIG"], "w", encoding="ascii") as file:
            file.write(f"name: {NAME}\nport: {port}\nlisten: [127.0.0.1]\npeers: [\"127.0.0.1:{peer_port}\"]\nlog:\n  level: warning\n")
        self.log = os.path.join(base, f"{label}.log")
        with open(self.log, "wb") as log:
            self.process = start([*(trace or []), os.path.join(BIN, "hexlistd")], env=self.environment, stderr=log)
        self.pid = child_of(self.process.pid) if trace else self.process.pid

    @property
    def database(self):
        return os.path.join(self.state, "hexlist.sqlite")

    @property
    def socket(self):
        return self.environment["HEXLIST_SOCKET"]

    def hexlist(self, *arguments, **options):
        return subprocess.run([os.path.join(BIN, "hexlist"), *arguments], check=True, capture_output=True, text=True,
                              env=self.environment, **options).stdout

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        while True:
            if self.process.poll() is not None:
                with open(self.log, encoding="utf-8", errors="replace") as log:
                    wrong(f"hexlistd {self.label} ended: {log.read().strip()}")
            try:
                self.uuid = json.loads(self.hexlist("id", "--json"))["uuid"]
                return
            except subprocess.CalledProcessError as error:
                if time.monotonic() > deadline:
                    wrong(f"hexlistd {self.label} is not ready: {error.stderr.strip()}")
                time.sleep(0.05)

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            try:
                self.process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.sockets, ignore_errors=True)


class Pair:
    """Two hexlistd that trust each other and have a session: `a` and `b`."""

    def __init__(self, base, trace=lambda label: None):
        ports = free_port(), free_port()
        self.base = tempfile.mkdtemp(prefix="pair-", dir=base)
        self.a = Daemon(self.base, "a", *ports, trace=trace("a"))
        self.b = Daemon(self.base, "b", *reversed(ports), trace=trace("b"))

    def __enter__(self):
        try:
            for daemon in (self.a, self.b):
                daemon.wait_until_ready()
            for daemon, other in ((self.a, self.b), (self.b, self.a)):
                daemon.hexlist("peers", "--wait", "1", "--timeout", "20")
                daemon.hexlist("peer", "trust", other.uuid)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for daemon in (self.a, self.b):
            daemon.end()
        shutil.rmtree(self.base, ignore_errors=True)


# --- the floor ---------------------------------------------------------------------------------------------------


def make_certificates(base):
    """A P-256 key and a certificate for each side."""
    for side in ("sender", "receiver"):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", f"/CN={side}", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", f"{base}/{side}.key", "-out", f"{base}/{side}.pem"], check=True, capture_output=True)


def floor_receiver(base, batch, trace=()):
    """The floor's receiver with a new database: the process, its port, and the path of the database."""
    database = os.path.join(base, "floor.sqlite")
    for end in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(database + end)
    process = start(
        [*trace, floor(), "receive", database, f"{base}/receiver.pem", f"{base}/receiver.key", f"{base}/sender.pem", str(batch)],
        stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip(), database


def floor_sender(base, port, frames, how, **options):
    return start(
        [floor(), "send", frames, port, f"{base}/sender.pem", f"{base}/sender.key", f"{base}/receiver.pem", how], **options)


# --- mosquitto ---------------------------------------------------------------------------------------------------


def mosquitto(folder, port, certificates=None):
    """The command of a broker on loopback with its files in `folder`. With certificates it requires mutual TLS."""
    configuration = f"{folder}/mosquitto.conf"
    with open(configuration, "w", encoding="ascii") as file:
        # The defaults drop messages of a consumer that is more than 1 000 behind, and allow 20 in flight.
        file.write(f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\n"
                   f"set_tcp_nodelay true\npersistence true\npersistence_location {folder}/\nuser root\n")
        if certificates:
            file.write(f"certfile {certificates}/receiver.pem\nkeyfile {certificates}/receiver.key\ncafile {certificates}/sender.pem\n"
                       "require_certificate true\n")
    return ["mosquitto", "-c", configuration]


def wait_for_port(port, process, log, what):
    """Waits until a port accepts connections. Ends the benchmark if the process ended or the wait is too long."""
    deadline = time.monotonic() + READY_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > deadline or process.poll() is not None:
            with open(log, encoding="utf-8", errors="replace") as file:
                wrong(f"{what} did not start: {file.read().strip()}")
        time.sleep(0.05)


# --- figures -----------------------------------------------------------------------------------------------------


def median(values, digits=2):
    return round(statistics.median(values), digits)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def file_system(path):
    return subprocess.run(["stat", "--file-system", "--format=%T", path], check=True, capture_output=True, text=True).stdout.strip()
