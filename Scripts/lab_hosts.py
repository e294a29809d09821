"""The hosts of Scripts/lab and its commands. A module, so that Python keeps it compiled: a test run calls the script thousands of times."""

import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

FAILED, USAGE, MISSING, NOT_PERMITTED = 1, 2, 69, 77
ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
BIN = os.path.realpath(os.environ.get("HEXLIST_BIN") or os.path.join(ROOT, ".build", "debug"))
BASE = os.environ.get("HEXLIST_LAB_DIR") or f"/tmp/hexlist-lab-{os.getuid()}"
PROGRAMS = {
    "ip": "iproute2", "bridge": "iproute2", "unshare": "util-linux", "nsenter": "util-linux",
    "mount": "mount", "dbus-daemon": "dbus", "avahi-daemon": "avahi-daemon",
}
# Time limits for hanging commands, far above normal durations on a slow, loaded machine.
READY_SECONDS = 120
STOP_SECONDS = 60  # hexlistd limits the duration of its own stop
COMMAND_SECONDS = 120
MOST_HOSTS = 200  # the host numbers of one /24 network

# A socket's path with its terminator must fit into sockaddr_un: 108 bytes.
LONGEST_SOCKET = 107

# Without these settings, another locale or a stray variable would change the programs' output.
os.environ["PATH"] = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"


class Failure(Exception):
    """An error message for the user, with the exit status."""

    def __init__(self, message, status=FAILED):
        super().__init__(message)
        self.status = status


# --- processes ---------------------------------------------------------------------------------------------------


def start_time(pid):
    """The kernel's start time of a process. With its id it identifies one process for good. None once it has exited."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def is_alive(process):
    """Whether a process is running. `process`: [pid, start time] as returned by `spawned`."""
    return process is not None and start_time(process[0]) == process[1]


def spawned(pid):
    started = start_time(pid)
    return None if started is None else [pid, started]


def wait_for_exit(process, seconds):
    """Waits for the exit of a process by pidfd, without polling. False after the timeout."""
    if not is_alive(process):
        return True
    try:
        descriptor = os.pidfd_open(process[0])
    except ProcessLookupError:
        return True
    try:
        if start_time(process[0]) != process[1]:
            return True
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def send_signal(process, number):
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process[0], number)


def read_process(path):
    try:
        with open(path) as file:
            return [int(field) for field in file.read().split()][:2]
    except FileNotFoundError:
        return None


def write_file(path, text, mode=0o600):
    """Writes a file atomically."""
    temporary = f"{path}.{os.getpid()}"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
    os.replace(temporary, path)


def run(command, **options):
    """Runs a setup command. If it fails, raises `Failure` with its error message."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=COMMAND_SECONDS, **options)
    except subprocess.TimeoutExpired:
        raise Failure(f"{' '.join(command)}: not done in {COMMAND_SECONDS} s") from None
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stdout.strip() or f'status {done.returncode}'}")
    return done.stdout


def detach(command, log, environment=None, pass_fds=()):
    """Starts a process that outlives this one, in its own session, writing to `log`."""
    with open(log, "ab") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                                cwd="/", env=environment, pass_fds=pass_fds)


def last_lines(path, count=15):
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - 8192))
            return b"\n".join(file.read().splitlines()[-count:]).decode(errors="replace")
    except FileNotFoundError:
        return ""


# --- permissions of this machine ------------------------------------------------------------------------------------


def require_programs():
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        raise Failure(f"lab: {', '.join(missing)} not found. Run Scripts/setup, or: apt-get install {packages}", MISSING)


def namespace_mode():
    """`root` if this process may create namespaces itself, `user` if it needs a user namespace for that."""
    # Tests the actual requirements of a lab: a device in a new namespace, and a private mount.
    trial = "ip link add lab0 type bridge && mount -t tmpfs tmpfs /run && ip link set lo up"
    words = []
    for mode, options in (("root", []), ("user", ["--user", "--map-root-user"])):
        if mode == "root" and os.geteuid() != 0:
            continue
        command = ["unshare", *options, "--net", "--mount", "--uts", "sh", "-c", trial]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=COMMAND_SECONDS)
        if done.returncode == 0:
            return mode
        words.append(" ".join(done.stdout.split()) or f"status {done.returncode}")
    raise Failure("lab: this machine does not permit network namespaces (" + "; ".join(words) + ").\n"
                  "Run as root, or allow user namespaces (kernel.unprivileged_userns_clone=1, user.max_user_namespaces>0; "
                  "in a container: --privileged).", NOT_PERMITTED)


def require_base():
    """The folder of all labs: owned by us, closed to others, and not below /run, which hosts replace."""
    if os.path.realpath(BASE).startswith("/run/"):
        raise Failure(f"lab: HEXLIST_LAB_DIR={BASE} is under /run, which every host has of its own. Choose another folder.", USAGE)
    os.makedirs(BASE, mode=0o700, exist_ok=True)
    status = os.lstat(BASE)
    if status.st_uid != os.getuid() or os.path.islink(BASE) or not os.path.isdir(BASE):
        raise Failure(f"lab: {BASE} is not a folder of this user. Remove it, or set HEXLIST_LAB_DIR.")


# --- the lab -----------------------------------------------------------------------------------------------------


class Lab:
    """The hosts of a lab, and the processes that hold their namespaces. `up` records its choices in lab.json; other state is looked up."""

    def __init__(self, name):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}", name):
            raise Failure(f"lab: {name!r} is no name for a lab: up to 31 letters, digits, dots, dashes.", USAGE)
        self.name = name
        self.folder = os.path.join(BASE, name)
        self.record = None

    def load(self):
        try:
            with open(os.path.join(self.folder, "lab.json")) as file:
                self.record = json.load(file)
        except FileNotFoundError:
            raise Failure(f"lab: there is no lab {self.name!r}. Make it with: Scripts/lab up --name {self.name}") from None
        return self

    def save(self):
        write_file(os.path.join(self.folder, "lab.json"), json.dumps(self.record, indent=1))

    @contextlib.contextmanager
    def lock(self):
        """Serialises commands that create or end hosts."""
        require_base()
        folder = os.open(BASE, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def host(self, name):
        hosts = self.record["hosts"]
        if name not in hosts:
            raise Failure(f"lab: no host {name!r} in lab {self.name!r}; it has {', '.join(hosts)}.", USAGE)
        return Host(self, name, hosts[name])

    def hosts(self):
        return [Host(self, name, record) for name, record in self.record["hosts"].items()]

    def entered(self, holder, command):
        """Runs `command` inside the namespaces of `holder`."""
        user = ["--user", "--preserve-credentials"] if self.record["mode"] == "user" else []
        return ["nsenter", "--target", str(holder[0]), *user, "--net", "--mount", "--uts", "--", *command]

    def in_switch(self, *command):
        return run(self.entered(self.record["switch"], command))

    # -- up and down

    def up(self, names, owner):
        require_programs()
        require_base()
        remove_orphans()
        if os.path.exists(os.path.join(self.folder, "lab.json")):
            raise Failure(f"lab: lab {self.name!r} is up already. End it with: Scripts/lab down --name {self.name}")
        longest = os.path.join(self.folder, max(names, key=len), "second", "control.sock")
        if len(os.fsencode(longest)) > LONGEST_SOCKET:
            raise Failure(f"lab: {longest} is too long for a socket's path. Set HEXLIST_LAB_DIR to a shorter folder.", USAGE)
        mode = namespace_mode()
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder, mode=0o700)
        self.record = {"mode": mode, "owner": spawned(owner) if owner else None, "processes": process_namespace(), "switch": None, "hosts": {}}
        try:
            self.make_switch()
            for index, name in enumerate(names, 1):
                self.record["hosts"][name] = {"index": index, "holder": None}
                self.host(name).make()
            starting = [host.start_avahi() for host in self.hosts()]
            for wait in starting:
                wait()
        except BaseException:
            self.down()
            raise

    def hold(self, command_of, log):
        """Starts a process that keeps new namespaces alive. Returns once they exist."""
        # The line it prints signals readiness. The shell then becomes the sleeping process with the same id.
        reader, writer = os.pipe()
        try:
            process = detach(command_of(["sh", "-c", f"echo up >&{writer} && exec {writer}>&- && exec sleep infinity"]), log,
                             pass_fds=(writer,))
        finally:
            os.close(writer)
        with open(reader, "rb") as answers:
            ready = select.select([answers], [], [], READY_SECONDS)[0] and answers.read(3) == b"up\n"
        holder = spawned(process.pid)
        if not ready or holder is None:
            process.kill()
            process.wait()
            raise Failure(f"lab: no namespaces: {last_lines(log)}")
        return holder

    def make_switch(self):
        user = ["--user", "--map-root-user"] if self.record["mode"] == "user" else []
        self.record["switch"] = self.hold(lambda command: ["unshare", *user, "--net", "--mount", "--uts", "--", *command],
                                          os.path.join(self.folder, "switch.log"))
        self.save()
        # Multicast is flooded to every port, and a port forwards immediately.
        self.in_switch("ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
        self.in_switch("ip", "link", "set", "br0", "up")

    def down(self):
        holders = [host.record["holder"] for host in self.hosts()] + [self.record["switch"]]
        for holder in holders:
            end_everything(holder)
        shutil.rmtree(self.folder, ignore_errors=True)


def end_everything(holder):
    """Sends SIGKILL to all processes of the holder's network namespace, the holder last."""
    if not is_alive(holder):
        return
    namespace = os.readlink(f"/proc/{holder[0]}/ns/net")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = [process for process in processes_in(namespace) if process[0] != holder[0]]
        if not found:
            break
        for process in found:
            send_signal(process, signal.SIGKILL)
        for process in found:
            wait_for_exit(process, max(0.0, deadline - time.monotonic()))
    send_signal(holder, signal.SIGKILL)
    wait_for_exit(holder, 5)


def processes_in(namespace):
    """[pid, start time] of all processes in this network namespace (`net:[…]`)."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        process = spawned(int(entry))
        with contextlib.suppress(OSError):  # the process has exited, or belongs to another user
            if process is not None and os.readlink(f"/proc/{entry}/ns/net") == namespace:
                found.append(process)
    return found


def process_namespace():
    """The PID namespace of this program. Process ids are valid only in the namespace in which they were read."""
    return os.readlink("/proc/self/ns/pid")


def remove_orphans():
    """Removes labs whose owner (`up --owner PID`) has exited without removing them."""
    for name in os.listdir(BASE):
        with contextlib.suppress(Failure, ValueError):
            lab = Lab(name).load()
            if lab.record.get("processes") == process_namespace() and lab.record["owner"] is not None and not is_alive(lab.record["owner"]):
                lab.down()


# --- a host ------------------------------------------------------------------------------------------------------


BUS_CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path={folder}/bus</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
    <allow user="*"/>
  </policy>
</busconfig>
"""

# As shipped by distributions, except for the host's name.
AVAHI_CONFIGURATION = """[server]
host-name={name}
domain-name=local
use-ipv4=yes
use-ipv6=yes
enable-dbus=yes
ratelimit-interval-usec=1000000
ratelimit-burst=1000

[wide-area]
enable-wide-area=no

[publish]
publish-hinfo=no
publish-workstation=no
"""


class Host:
    """One machine of the lab: network, mount and host-name namespaces, held open by one sleeping process."""

    def __init__(self, lab, name, record):
        self.lab = lab
        self.name = name
        self.record = record
        self.folder = os.path.join(lab.folder, name)

    @property
    def address(self):
        if self.subnet:
            return f"10.78.{self.subnet}.2"
        return f"10.77.0.{self.record['index']}"

    @property
    def address6(self):
        if self.subnet:
            return f"fd48:6578:6c69:{self.subnet}::2"
        return f"fd48:6578:6c69::{self.record['index']:x}"

    @property
    def subnet(self):
        """The number of its subnet behind a router; None if it is on the switch."""
        return self.record.get("subnet")

    @property
    def is_on(self):
        return is_alive(self.record["holder"])

    @property
    def port(self):
        """The cable's end at the switch."""
        return f"port{self.record['index']}"

    def entered(self, command):
        if not self.is_on:
            raise Failure(f"lab: {self.name} is off. Switch it on with: Scripts/lab power-on {self.name}")
        return self.lab.entered(self.record["holder"], command)

    def run(self, *command):
        return run(self.entered(command))

    def make(self):
        """Creates the namespaces, the cable, the addresses and the bus."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        lab = self.lab
        self.record.update(subnet=None, router=None)  # a host that was behind a router is on the switch again
        self.record["holder"] = lab.hold(
            lambda command: lab.entered(lab.record["switch"], ["unshare", "--net", "--mount", "--uts", "--", *command]),
            os.path.join(self.folder, "holder.log"))
        lab.save()
        index = self.record["index"]
        lab.in_switch("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", str(self.record["holder"][0]))
        lab.in_switch("ip", "link", "set", self.port, "master", "br0", "up")
        # Addresses are assigned without duplicate detection, so the network is ready at once.
        has_ipv6 = os.path.exists("/proc/sys/net/ipv6")
        self.run("sh", "-ec", f"""
            hostname {self.name} 2>/dev/null || echo {self.name} > /proc/sys/kernel/hostname || true
            mount -t tmpfs -o mode=0755 tmpfs /run
            mkdir -p /run/avahi-daemon
            for folder in /etc/avahi/services; do if [ -d $folder ]; then mount -t tmpfs tmpfs $folder; fi; done
            ip link set lo up
            ip link set eth0 addrgenmode none 2>/dev/null || true
            ip address add {self.address}/24 dev eth0
            ip link set eth0 up
            """)
        if lab.record["mode"] == "user":
            self.give_avahi_a_user()
        if has_ipv6:
            self.run("ip", "address", "add", f"fe80::{index:x}/64", "dev", "eth0", "nodad")
            self.run("ip", "address", "add", f"{self.address6}/64", "dev", "eth0", "nodad")
        self.start_bus()

    def give_avahi_a_user(self):
        """Makes `avahi` a name of the only user id, because avahi-daemon gives its runtime folder to that user."""
        for file, line in (("passwd", "x:0:0::/:/bin/sh"), ("group", "x:0:")):
            own = os.path.join(self.folder, file)
            write_file(own, f"root:{line}\navahi:{line}\n", 0o644)
            self.run("mount", "--bind", own, f"/etc/{file}")

    # -- bus and avahi-daemon

    def environment(self):
        environment = dict(os.environ)
        for name in list(environment):
            if name.startswith("HEXLIST_") or name in ("NOTIFY_SOCKET", "DBUS_SESSION_BUS_ADDRESS"):
                del environment[name]
        environment["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={self.folder}/bus"
        environment["PATH"] = f"{BIN}:{environment['PATH']}"
        return environment

    def start_bus(self):
        configuration = os.path.join(self.folder, "bus.conf")
        write_file(configuration, BUS_CONFIGURATION.format(folder=self.folder))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, "bus"))
        log = os.path.join(self.folder, "bus.log")
        reader, writer = os.pipe()
        try:
            process = detach(self.entered(["dbus-daemon", f"--config-file={configuration}", "--nofork", "--nopidfile",
                                           f"--print-address={writer}"]), log, self.environment(), pass_fds=(writer,))
        finally:
            os.close(writer)
        with open(reader, "rb") as answers:
            if not select.select([answers], [], [], READY_SECONDS)[0] or not answers.readline():
                process.kill()
                raise Failure(f"lab: dbus-daemon of {self.name} did not start: {last_lines(log)}")
        write_file(os.path.join(self.folder, "bus.pid"), "{} {}".format(*(spawned(process.pid) or [process.pid, 0])))

    def end_bus(self):
        process = read_process(os.path.join(self.folder, "bus.pid"))
        send_signal(process, signal.SIGTERM)
        if not wait_for_exit(process, STOP_SECONDS):
            raise Failure(f"lab: dbus-daemon of {self.name} (process {process[0]}) does not end.")

    @property
    def avahi(self):
        return read_process(os.path.join(self.folder, "avahi.pid"))

    def start_avahi(self):
        """Starts avahi-daemon. Returns a function that waits until its host name is confirmed (RFC 6762 probing: about a second)."""
        if is_alive(self.avahi):
            return lambda: None
        configuration = os.path.join(self.folder, "avahi.conf")
        write_file(configuration, AVAHI_CONFIGURATION.format(name=self.name))
        log = os.path.join(self.folder, "avahi.log")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(log)
        process = detach(self.entered(["avahi-daemon", "--file", configuration, "--no-drop-root", "--no-chroot", "--no-rlimits"]),
                         log, self.environment())
        write_file(os.path.join(self.folder, "avahi.pid"), "{} {}".format(*(spawned(process.pid) or [process.pid, 0])))

        def wait():
            deadline = time.monotonic() + READY_SECONDS
            while "Server startup complete" not in last_lines(log, 200):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise Failure(f"lab: avahi-daemon of {self.name} did not start:\n{last_lines(log)}")
                time.sleep(0.01)

        return wait

    def end_avahi(self, number):
        process = self.avahi
        send_signal(process, number)
        if process is not None and not wait_for_exit(process, STOP_SECONDS):
            raise Failure(f"lab: avahi-daemon of {self.name} (process {process[0]}) does not end.")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.folder, "avahi.pid"))
        if number == signal.SIGKILL:  # the files of a killed avahi-daemon would prevent its next start
            self.run("rm", "-f", "/run/avahi-daemon/pid", "/run/avahi-daemon/socket")

    # -- the cable and the power

    def second_cable(self, segment):
        bridge, index = f"br{segment}", self.record["index"]
        if f" {bridge}:" not in self.lab.in_switch("ip", "link", "show"):
            self.lab.in_switch("ip", "link", "add", bridge, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
            self.lab.in_switch("ip", "link", "set", bridge, "up")
        port = f"second{index}"
        self.lab.in_switch("ip", "link", "add", port, "type", "veth", "peer", "name", "eth1", "netns", str(self.record["holder"][0]))
        self.lab.in_switch("ip", "link", "set", port, "master", bridge, "up")
        self.run("ip", "address", "add", f"10.77.{segment}.{index}/24", "dev", "eth1")
        self.run("ip", "link", "set", "eth1", "up")

    def unplug(self):
        """Removes both ends of the cable."""
        if self.subnet:
            self.lab.host(self.record["router"]).run("ip", "link", "delete", f"net{self.subnet}")
        else:
            self.lab.in_switch("ip", "link", "delete", self.port)

    def move_behind(self, router, subnet):
        """Moves the host from the switch into a subnet whose gateway is the router."""
        self.unplug()
        self.record.update(subnet=subnet, router=router.name)
        cable = ["ip", "link", "add", f"net{subnet}", "netns", str(router.record["holder"][0]), "type", "veth",
                 "peer", "name", "eth0", "netns", str(self.record["holder"][0])]
        self.lab.in_switch(*cable)
        gateway, gateway6 = f"10.78.{subnet}.1", f"fd48:6578:6c69:{subnet}::1"
        for host, device, address, address6 in ((router, f"net{subnet}", gateway, gateway6), (self, "eth0", self.address, self.address6)):
            host.run("ip", "link", "set", device, "up")
            host.run("ip", "address", "add", f"{address}/24", "dev", device)
            if os.path.exists("/proc/sys/net/ipv6"):
                host.run("ip", "address", "add", f"{address6}/64", "dev", device, "nodad")
        self.run("ip", "route", "add", "default", "via", gateway)
        if os.path.exists("/proc/sys/net/ipv6"):
            self.run("ip", "-6", "route", "add", "default", "via", gateway6)
        self.lab.save()

    def link(self, state):
        if self.subnet:
            raise Failure(f"lab: {self.name} is behind a router; its cable is not at the switch.", USAGE)
        if state == "up":
            self.lab.in_switch("ip", "link", "set", self.port, "master", "br0", "up")
        elif state == "down":
            self.lab.in_switch("ip", "link", "set", self.port, "down")
        else:
            self.lab.in_switch("ip", "link", "set", self.port, "nomaster", "up")

    def link_state(self):
        if self.subnet:
            return f"behind {self.record['router']}"
        link = json.loads(self.lab.in_switch("ip", "-json", "link", "show", "dev", self.port) or "[{}]")[0]
        if "UP" not in link.get("flags", []):
            return "down"
        return "up" if link.get("master") == "br0" else "silent"

    def power_cut(self):
        # The switch drops the port first, so that the kernel's own packets of dying processes (FIN, RST) reach no host.
        self.unplug()
        end_everything(self.record["holder"])
        self.record["holder"] = None
        self.lab.save()

    # -- hexlistd

    def daemon(self, name):
        return Daemon(self, name)

    def daemons(self):
        folder = self.folder
        names = sorted(entry for entry in os.listdir(folder) if os.path.isdir(os.path.join(folder, entry)))
        return [Daemon(self, name) for name in names]


class Daemon:
    """One hexlistd with its own folders. Several may run on one host."""

    def __init__(self, host, name):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}", name):
            raise Failure(f"lab: {name!r} is no name for a daemon.", USAGE)
        self.host = host
        self.name = name
        self.folder = os.path.join(host.folder, name)

    @property
    def label(self):
        return self.host.name if self.name == "main" else f"{self.host.name}/{self.name}"

    def path(self, what):
        return os.path.join(self.folder, what)

    @property
    def process(self):
        return read_process(self.path("pid"))

    def make_folders(self):
        for folder in ("", "state", "config/hexlist", "data", "runtime", "home"):
            os.makedirs(self.path(folder), mode=0o700, exist_ok=True)
        if not os.path.exists(self.config):
            write_file(self.config, f"name: {self.label.replace('/', '-')}\n")

    @property
    def config(self):
        return self.path("config/hexlist/config.yaml")

    def environment(self):
        environment = self.host.environment()
        environment.update({
            "HOME": self.path("home"), "XDG_CONFIG_HOME": self.path("config"), "XDG_DATA_HOME": self.path("data"),
            "XDG_RUNTIME_DIR": self.path("runtime"), "HEXLIST_STATE_DIR": self.path("state"), "HEXLIST_CONFIG": self.config,
            "HEXLIST_SOCKET": self.path("control.sock"),
        })
        return environment

    def start(self, arguments):
        """Starts hexlistd. Returns once it has sent READY (sd_notify) and its local API answers."""
        program = os.path.join(BIN, "hexlistd")
        if not os.access(program, os.X_OK):
            raise Failure(f"lab: {program} is not there. Build it with `make build`, or set HEXLIST_BIN.", MISSING)
        if is_alive(self.process):
            raise Failure(f"lab: hexlistd on {self.label} runs already (process {self.process[0]}).")
        self.make_folders()
        notify = self.path("notify")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(notify)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(notify)
            environment = {**self.environment(), "NOTIFY_SOCKET": notify}
            process = detach(self.host.entered([program, *arguments]), self.path("log"), environment)
            write_file(self.path("pid"), "{} {}".format(*(spawned(process.pid) or [process.pid, 0])))
            try:
                self.await_ready(process, listener)
            except BaseException:
                process.kill()
                process.wait()
                raise
            finally:
                os.unlink(notify)

    def await_ready(self, process, listener):
        deadline = time.monotonic() + READY_SECONDS
        ended = os.pidfd_open(process.pid)
        try:
            while True:
                readable = select.select([listener, ended], [], [], max(0.0, deadline - time.monotonic()))[0]
                if listener in readable:
                    if b"READY=1" in listener.recv(4096).split(b"\n"):
                        return
                elif ended in readable:
                    status = process.wait()
                    words = last_lines(self.path("log"))
                    raise Failure(f"lab: hexlistd on {self.label} ended with status {status}:\n{words}",
                                  status if status > 0 else FAILED)
                else:
                    raise Failure(f"lab: hexlistd on {self.label} was not ready in {READY_SECONDS} s:\n{last_lines(self.path('log'))}")
        finally:
            os.close(ended)

    def end(self, number):
        process = self.process
        if not is_alive(process):
            raise Failure(f"lab: hexlistd does not run on {self.label}.")
        send_signal(process, number)
        if not wait_for_exit(process, STOP_SECONDS):
            send_signal(process, signal.SIGKILL)
            raise Failure(f"lab: hexlistd on {self.label} did not stop in {STOP_SECONDS} s and was killed.")


# --- the command line --------------------------------------------------------------------------------------------


def target(lab, word):
    """Returns the daemon for an argument `HOST` or `HOST/NAME`."""
    host, _, name = word.partition("/")
    return lab.host(host).daemon(name or "main")


def choose(word, choices, what):
    if word not in choices:
        raise Failure(f"lab: {what} is one of {', '.join(choices)}, not {word!r}.", USAGE)
    return word


def execute(daemon, command):
    """Replaces this process with the command, on the host."""
    daemon.make_folders()
    entered = daemon.host.entered(command)
    sys.stdout.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores SIGPIPE. The command must not.
    os.execvpe(entered[0], entered, daemon.environment())


def command_up(lab, words):
    owner = None
    if words[:1] == ["--owner"]:
        if len(words) < 2 or not words[1].isdigit():
            raise Failure("lab: --owner takes a process id.", USAGE)
        owner, words = int(words[1]), words[2:]
    if not words or (len(words) == 1 and words[0].isdigit()):
        count = int(words[0]) if words else 2
        names = [f"h{index}" for index in range(1, count + 1)]
    else:
        names = words
    if not 1 <= len(names) <= MOST_HOSTS or len(set(names)) != len(names):
        raise Failure(f"lab: 1 to {MOST_HOSTS} hosts, each with a name of its own.", USAGE)
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,15}", name):
            raise Failure(f"lab: {name!r} is no name for a host: up to 16 of a-z, 0-9 and -, a letter first.", USAGE)
    with lab.lock():
        lab.up(names, owner)
    print(f"lab {lab.name} is up: {', '.join(names)}; files in {lab.folder}")


def command_down(lab, words):
    with lab.lock():
        lab.load().down()


def command_status(lab, words):
    lab.load()
    how = "as root" if lab.record["mode"] == "root" else "in a user namespace"
    print(f"lab {lab.name} ({how}), files in {lab.folder}")
    for host in lab.hosts():
        if not host.is_on:
            print(f"{host.name}: off")
            continue
        avahi = "runs" if is_alive(host.avahi) else "does not run"
        print(f"{host.name}: {host.address} {host.address6}, link {host.link_state()}, avahi-daemon {avahi}")
        for daemon in host.daemons():
            state = f"runs as process {daemon.process[0]}" if is_alive(daemon.process) else "does not run"
            print(f"  hexlistd {daemon.label} {state}, log {daemon.path('log')}")


def command_entry(lab, words):
    """Prints the command line that runs a command on the host, each word ended by a NUL: for a caller that runs many commands there."""
    daemon = target(lab.load(), words[0])
    daemon.make_folders()
    variables = [f"{name}={value}" for name, value in daemon.environment().items()]
    sys.stdout.write("".join(f"{word}\0" for word in ["env", "-i", *variables, *daemon.host.entered([])]))


def command_exec(lab, words):
    execute(target(lab.load(), words[0]), words[1:])


def command_hexlist(lab, words):
    execute(target(lab.load(), words[0]), [os.path.join(BIN, "hexlist"), *words[1:]])


def command_start(lab, words):
    target(lab.load(), words[0]).start(words[2:] if words[1:2] == ["--"] else words[1:])


def command_stop(lab, words):
    target(lab.load(), words[0]).end(signal.SIGTERM)


def command_kill(lab, words):
    target(lab.load(), words[0]).end(signal.SIGKILL)


def command_signal(lab, words):
    daemon = target(lab.load(), words[0])
    name = words[1].upper()
    number = getattr(signal, name if name.startswith("SIG") else f"SIG{name}", None)
    if not isinstance(number, signal.Signals):
        raise Failure(f"lab: no signal {words[1]!r}.", USAGE)
    if not is_alive(daemon.process):
        raise Failure(f"lab: hexlistd does not run on {daemon.label}.")
    send_signal(daemon.process, number)


def command_avahi(lab, words):
    host = lab.load().host(words[0])
    action = choose(words[1], ("start", "stop", "kill", "restart"), "what to do with avahi-daemon")
    if action in ("stop", "restart"):
        host.end_avahi(signal.SIGTERM)
    elif action == "kill":
        host.end_avahi(signal.SIGKILL)
    if action in ("start", "restart"):
        host.start_avahi()()


def command_bus(lab, words):
    host = lab.load().host(words[0])
    if choose(words[1], ("start", "stop"), "what to do with D-Bus") == "start":
        host.start_bus()
    else:
        host.end_bus()


def command_cable(lab, words):
    segment = choose(words[1], tuple(str(number) for number in range(1, 10)), "the segment")
    with lab.lock():
        lab.load().host(words[0]).second_cable(segment)


def command_link(lab, words):
    lab.load().host(words[0]).link(choose(words[1], ("up", "down", "silent"), "the link"))


def command_switch(lab, words):
    entered = lab.load().entered(lab.record["switch"], words)
    sys.stdout.flush()
    os.execvp(entered[0], entered)


def command_route(lab, words):
    with lab.lock():
        router = lab.load().host(words[0])
        hosts = [lab.host(name) for name in words[1:]]
        if router.subnet or any(host.subnet or host.name == router.name for host in hosts):
            raise Failure("lab: a router and the hosts behind it are different ones, all on the switch until now.", USAGE)
        forward = "echo 1 > /proc/sys/net/ipv4/ip_forward; [ ! -e /proc/sys/net/ipv6 ] || echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
        router.run("sh", "-ec", forward)
        taken = [host.subnet for host in lab.hosts() if host.subnet]
        for subnet, host in enumerate(hosts, max(taken, default=0) + 1):
            host.move_behind(router, subnet)


def command_power_cut(lab, words):
    with lab.lock():
        host = lab.load().host(words[0])
        if not host.is_on:
            raise Failure(f"lab: {host.name} is off.")
        host.power_cut()


def command_power_on(lab, words):
    with lab.lock():
        host = lab.load().host(words[0])
        if host.is_on:
            raise Failure(f"lab: {host.name} is on.")
        host.make()
        host.start_avahi()()


def command_path(lab, words):
    daemon = target(lab.load(), words[0])
    daemon.make_folders()
    host = daemon.host
    answers = {
        "folder": daemon.folder, "state": daemon.path("state"), "config": daemon.config, "socket": daemon.path("control.sock"),
        "log": daemon.path("log"), "address": host.address, "address6": host.address6,
        "pid": daemon.process[0] if is_alive(daemon.process) else "", "holder": host.record["holder"][0] if host.is_on else "",
    }
    print(answers[choose(words[1] if len(words) > 1 else "folder", tuple(answers), "the path")])


def command_check(lab, words):
    require_programs()
    mode = namespace_mode()
    print("A lab can run here " + ("as root." if mode == "root" else "in a user namespace."))


# Minimum and maximum number of arguments (None: any number), and the function.
COMMANDS = {
    "up": (0, None, command_up), "down": (0, 0, command_down), "status": (0, 0, command_status), "check": (0, 0, command_check),
    "entry": (1, 1, command_entry), "exec": (2, None, command_exec), "hexlist": (1, None, command_hexlist),
    "start": (1, None, command_start),
    "stop": (1, 1, command_stop), "kill": (1, 1, command_kill), "signal": (2, 2, command_signal), "avahi": (2, 2, command_avahi),
    "bus": (2, 2, command_bus), "cable": (2, 2, command_cable), "link": (2, 2, command_link), "switch": (1, None, command_switch),
    "route": (2, None, command_route), "power-cut": (1, 1, command_power_cut), "power-on": (1, 1, command_power_on),
    "path": (1, 2, command_path),
}


def main(words, usage):
    name = os.environ.get("HEXLIST_LAB") or "lab"
    # Options count only before the host. Those after it belong to another program.
    if words[:1] == ["--name"] and len(words) > 1:
        name, words = words[1], words[2:]
    elif words[1:2] == ["--name"] and len(words) > 2:
        name, words = words[2], words[:1] + words[3:]
    elif len(words) > 2 and words[0] == "up" and words[-2] == "--name":
        name, words = words[-1], words[:-2]
    if not words or words[0] in ("-h", "--help", "help"):
        print(usage.strip())
        return 0 if words else USAGE
    if words[0] not in COMMANDS:
        raise Failure(f"lab: no command {words[0]!r}. See Scripts/lab --help", USAGE)
    least, most, command = COMMANDS[words[0]]
    if len(words) - 1 < least or (most is not None and len(words) - 1 > most):
        raise Failure(f"lab: {words[0]} takes other arguments. See Scripts/lab --help", USAGE)
    command(Lab(name), words[1:])
    return 0


def run_main(usage):
    """Runs the command of the command line and exits with its status."""
    # The parent's threads may have blocked signals. Programs started here must end on SIGTERM all the same.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    try:
        sys.exit(main(sys.argv[1:], usage))
    except Failure as failure:
        print(failure, file=sys.stderr)
        sys.exit(failure.status)
    except KeyboardInterrupt:
        sys.exit(130)
