"""The setting of `hostile`: the attacked hexlistd, a trusted peer that keeps sending to it, and the cost of each attack."""

import contextlib
import ctypes
import mmap
import os
import signal
import struct
import time

import attacker
import foreign
import rig

# MiB by which an attack may increase the memory. A session with a trusted peer may have 8 MiB in flight; 512 connections with TLS take
# about 20.
MEMORY_BOUND = 32
# Timeout of one reply to the trusted peer's user; the next hex is sent after it. Late replies are counted in the output.
PATIENCE = 2
RELOADED = "configuration reloaded"


class TrustedSends:
    """The trusted peer's user: continuous single sends, each waited for until it is stored. A separate process, so that the attackers'
    process cannot delay it; the durations are in shared memory."""

    MOST = 1 << 20

    def __init__(self, sender, receiver, seed, folder):
        self.seed = seed
        self.shared = mmap.mmap(-1, 8 + 4 * self.MOST)
        self.fault_file = os.path.join(folder, "trusted-sends-fault")
        self.parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            self.is_over = False
            signal.signal(signal.SIGTERM, self.end_soon)
            try:
                self.run(sender, receiver)
            except BaseException as fault:
                with open(self.fault_file, "w") as file:
                    file.write(f"{type(fault).__name__}: {fault}")
            os._exit(0)

    def end_soon(self, *_):
        self.is_over = True

    def run(self, sender, receiver):
        connection = rig.Connection(sender.socket, timeout=rig.STALL_LIMIT)
        count = 0
        while not self.is_over and count < self.MOST:
            key = self.key(count)
            asked = time.monotonic()
            sender.request(connection, "POST", f"/v1/sends?to={receiver.uuid}&wait=stored&timeout={PATIENCE}",
                           dict(rig.hex_of(key), key=key))
            struct.pack_into("f", self.shared, 8 + 4 * count, time.monotonic() - asked)
            count += 1
            struct.pack_into("q", self.shared, 0, count)
        connection.close()

    def key(self, number):
        return f"{self.seed}-{number}"

    @property
    def count(self):
        return struct.unpack_from("q", self.shared, 0)[0]

    @property
    def keys(self):
        return [self.key(number) for number in range(self.count)]

    def seconds(self, start=0):
        """The durations of the sends, from number `start` on."""
        return struct.unpack_from(f"{self.count - start}f", self.shared, 8 + 4 * start)

    @property
    def late(self):
        return sum(seconds >= PATIENCE for seconds in self.seconds())

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        self.check()

    def check(self):
        if os.path.exists(self.fault_file):
            with open(self.fault_file) as file:
                raise rig.Failure(f"the trusted peer's send after {self.count}: {file.read()}")


def processor_time(pid):
    """The processor time of a process in seconds."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid, key="VmRSS"):
    """A figure of a process's memory in MiB; `VmRSS` is its resident memory."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(key + ":")) / 1024


def pin(pid, cores):
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(int(thread), cores)


def share(values, part):
    """The value that the given share of all values does not exceed."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0.0


class Stage:
    """The victim, the trusted peer beside it, a stranger's key and that of a malicious trusted peer."""

    def __init__(self, options, folder):
        self.long = options.long
        self.folder = folder
        self.trusted, self.victim = rig.pair(folder, "trusted", "victim")
        self.stranger, self.other, self.traitor = (foreign.Identity(folder, name) for name in ("stranger", "other", "traitor"))
        foreign.acquaint(self.victim, self.traitor)
        self.sends = TrustedSends(self.trusted, self.victim, options.seed, folder)
        # Ids of well-formed hexes accepted from the malicious trusted peer.
        self.taken = []
        self.rows = []
        self.undisturbed = None
        self.is_apart = options.long and self.set_apart()

    def set_apart(self):
        """Gives the victim a core, and another to everything else, on which the attackers yield to the trusted peer. So a drop in its rate
        is caused by the victim, not by the attackers, which would normally be on other machines."""
        cores = sorted(os.sched_getaffinity(0))
        if len(cores) < 2:
            return False
        pin(self.victim.pid, cores[:1])
        for pid in (self.trusted.pid, self.sends.pid, os.getpid()):
            pin(pid, cores[1:2])
        os.nice(10)
        return True

    def count(self, small, long):
        return long if self.long else small

    def attacker(self, source=0):
        return attacker.Attacker(self.victim, source)

    def session(self, identity, source=0, **others):
        return self.attacker(source).tls(identity).meet(identity, **others)

    def reconfigure(self, config):
        before = self.victim.log_text().count(RELOADED)
        self.victim.config = config
        self.victim.write_config()
        self.victim.signal(signal.SIGHUP)
        rig.until(lambda: self.victim.log_text().count(RELOADED) > before, "the configuration to be read again", attacker.END_LIMIT)

    def trust(self):
        """The rows of all peers in the victim's store: UUID, fingerprint, trust and alias."""
        with rig.Reader(self.victim) as store:
            return store.all("SELECT uuid, fingerprint, trust, alias FROM peer ORDER BY uuid")

    # -- measurements of the victim

    def memory(self, key="VmRSS"):
        return memory(self.victim.pid, key)

    def forget_peak(self):
        # Resets the peak of the resident memory. If the kernel does not permit this, the peak is that of the whole run, which is only
        # stricter.
        with contextlib.suppress(OSError), open(f"/proc/{self.victim.pid}/clear_refs", "w") as file:
            file.write("5")

    def descriptors(self):
        return rig.descriptors(self.victim.pid)

    def measure(self, name, attack, seconds):
        """Repeats an attack for about `seconds`. The result of the last repetition is printed."""
        self.forget_peak()
        before, sent = self.memory(), self.sends.count
        processor, own, start = processor_time(self.victim.pid), time.process_time(), time.monotonic()
        times = 0
        while True:
            what = attack(self)
            times += 1
            if time.monotonic() - start >= seconds:
                break
        took = time.monotonic() - start
        latencies = self.sends.seconds(sent)
        row = {"attack": name, "what": what, "times": times, "seconds": took, "before": before, "peak": self.memory("VmHWM"),
               "processor": processor_time(self.victim.pid) - processor, "own": time.process_time() - own,
               "sent": len(latencies), "rate": len(latencies) / took, "p99": share(latencies, 0.99),
               "late": sum(each >= PATIENCE for each in latencies)}
        self.rows.append(row)
        self.print_row(row)
        self.sends.check()
        if not self.victim.is_running:
            raise rig.Failure(f"{name}: the victim is gone")
        return row

    def faults(self, least, seconds, elsewhere, bounds):
        """Limits for every attack.

        `bounds`: MiB by which attacks may increase the memory, by name, in place of `MEMORY_BOUND`.

        `least`: the share of the undisturbed rate that must remain, in attacks of so many seconds and more; not in those on another
        hexlistd, `elsewhere`, which takes processor time from the trusted peer and not from the victim.
        """
        faults = [f"{row['attack']}: memory grew from {row['before']:.1f} to {row['peak']:.1f} MiB" for row in self.rows
                  if row["peak"] - row["before"] > bounds.get(row["attack"], MEMORY_BOUND)]
        if self.long:
            faults += [f"{row['attack']}: {100 * self.part(row):.0f} % of the trusted peer's rate was left" for row in self.rows
                       if row["seconds"] >= seconds and self.part(row) < least and row["attack"] not in elsewhere]
        return faults

    def part(self, row):
        """The rate of the trusted peer's sends during an attack, as a share of the undisturbed rate."""
        return row["rate"] / self.undisturbed["rate"] if self.undisturbed else 1

    def print_head(self):
        print("victim, attacker: processor time in parts of one core; the victim's is for the attack and for the trusted sends meanwhile")
        if self.is_apart:
            print("the victim has a core of its own; the attackers share the other one with the trusted peer, at a lower priority")
        print(f"{'attack':<16} {'times':>5} {'seconds':>7} {'memory, MiB':>14} {'victim':>6} {'attacker':>8} {'trusted sends':>15} {'p99':>8}  "
              "what happened")

    def print_row(self, row):
        rate = f"{row['rate']:.0f}/s ({100 * self.part(row):.0f} %)"
        cores = [f"{100 * row[who] / row['seconds']:.0f} %" for who in ("processor", "own")]
        print(f"{row['attack']:<16} {row['times']:>5} {row['seconds']:>7.1f} {row['before']:>5.1f} → {row['peak']:>5.1f} "
              f"{cores[0]:>7} {cores[1]:>8} {rate:>15} {1000 * row['p99']:>5.1f} ms  {row['what']}")
