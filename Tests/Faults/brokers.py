"""MQTT brokers of three nodes for `away`: RabbitMQ with quorum queues and NATS with JetStream, with the configuration of Docs/Network.md.

Each node has its own loopback address, its own folder, and is a child process that can be killed. The host name of the broker resolves to
the addresses of all nodes, through a hosts file in the rig's mount namespace.
"""

import contextlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import urllib.request

import rig

NAME = "broker.hexlist.test"


class Client:
    """A minimal MQTT 3.1.1 client."""

    def __init__(self, host, port, ca, client, pem=None, user=None, password=None, clean=False):
        context = ssl.create_default_context(cafile=ca)
        context.check_hostname = False
        if pem:
            context.load_cert_chain(pem)
        self.wire = context.wrap_socket(socket.create_connection((host, port), 5), server_hostname=host)
        self.wire.settimeout(10)
        body = self.text("MQTT") + bytes([4, (0xC0 if user else 0) | (2 if clean else 0)]) + struct.pack(">H", 60) + self.text(client)
        if user:
            body += self.text(user) + self.text(password)
        self.send(0x10, body)
        kind, body = self.receive()
        if kind != 0x20 or body[1] != 0:
            raise ConnectionError(f"refused: {body.hex()}")

    @staticmethod
    def text(text):
        return struct.pack(">H", len(text.encode())) + text.encode()

    def send(self, first, body):
        length, digits = len(body), b""
        while True:
            length, digit = length >> 7, length & 0x7F
            digits += bytes([digit | (0x80 if length else 0)])
            if not length:
                break
        self.wire.sendall(bytes([first]) + digits + body)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.wire.recv(count - len(data))
            if not piece:
                raise ConnectionError("closed")
            data += piece
        return data

    def receive(self):
        first, length, shift = self.exactly(1)[0], 0, 0
        while True:
            byte = self.exactly(1)[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return first, self.exactly(length)

    def subscribe(self, topic):
        self.send(0x82, struct.pack(">H", 1) + self.text(topic) + b"\1")

    def publish(self, topic, data, number=1):
        self.send(0x32, self.text(topic) + struct.pack(">H", number) + data)

    def publishes(self, seconds):
        """The bytes of all messages that arrive within a time."""
        self.wire.settimeout(seconds)
        found = 0
        with contextlib.suppress(OSError):
            while True:
                kind, body = self.receive()
                if kind & 0xF0 == 0x30:
                    found += len(body)
        return found

    def close(self):
        self.wire.close()


def certificate(folder, names):
    """Creates a certificate that is its own CA. Returns its path and the path of the key."""
    pem, key = os.path.join(folder, "broker.pem"), os.path.join(folder, "broker.key")
    rig.run_quietly("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=broker", "-addext", f"subjectAltName={names}", "-keyout", key, "-out", pem)
    return pem, key


def documented(title):
    """The code blocks of Docs/Network.md that follow a title in bold type."""
    with open(os.path.join(rig.ROOT, "Docs/Network.md")) as file:
        text = file.read()
    start = text.find(f"**{title}**")
    if start < 0:
        raise rig.Failure(f"Docs/Network.md has no configuration of {title}")
    return re.findall(r"```\n(.*?)```", text[start:], re.S)


class Cluster:
    """Three nodes of one broker."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "cluster")
        os.mkdir(self.folder)
        net = random.SystemRandom().randrange(2, 250)
        self.hosts = [f"127.0.{net}.{number}" for number in (1, 2, 3)]
        self.port = rig.free_port()
        self.ca, self.key = certificate(self.folder, f"DNS:{NAME}")
        self.nodes = [None] * 3
        self.passwords = {}
        hosts = os.path.join(self.folder, "hosts")
        with open("/etc/hosts") as old, open(hosts, "w") as file:
            file.write(old.read() + "".join(f"\n{host} {NAME}" for host in self.hosts) + "\n")
        rig.run_quietly("mount", "--bind", hosts, "/etc/hosts")

    def config_of(self, daemon):
        """The routes of a daemon with its user and password."""
        file = os.path.join(daemon.folder, "password")
        with open(file, "w") as out:
            out.write(self.passwords[daemon.uuid])
        os.chmod(file, 0o600)
        return (f'routes: ["office=mqtts://{daemon.uuid}@{NAME}:{self.port}?ca={self.ca}&password={file}'
                f'&id={self.client_of(daemon.uuid)}"]\n')

    def client_of(self, user):
        return user

    def run(self, number, command, environment=None):
        log = open(os.path.join(self.folder, f"log{number}"), "ab")
        # A group of its own, so that helper processes of the broker end with it.
        self.nodes[number] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(os.environ, **(environment or {})), start_new_session=True,
            preexec_fn=rig.die_with_parent)

    def listens(self, number):
        with contextlib.suppress(OSError), socket.create_connection((self.hosts[number], self.port), 1):
            return True
        return False

    def await_nodes(self, *numbers):
        for number in numbers:
            rig.until(lambda number=number: self.listens(number), f"node {number + 1} to listen", 240, pause=0.1)

    def kill(self, number):
        node, self.nodes[number] = self.nodes[number], None
        if node:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(node.pid, signal.SIGKILL)
            node.wait()

    def end(self):
        for number in range(3):
            self.kill(number)

    def client(self, number, user, clean=False, client=None):
        return Client(self.hosts[number], self.port, self.ca, client or self.client_of(user), user=user, password=self.passwords[user],
                      clean=clean)


class RabbitMQ(Cluster):
    title = "RabbitMQ"
    # A bound for a mailbox in bytes, so small that the test reaches it quickly.
    FULL = 400_000

    def __init__(self, folder, users):
        if not os.path.isdir("/usr/lib/rabbitmq/lib") or not shutil.which("epmd", path=rig.PATH):
            raise rig.Unavailable("RabbitMQ is not installed")
        super().__init__(folder)
        found = sorted(path for path in (os.path.join("/usr/lib/rabbitmq/lib", name, "sbin") for name in os.listdir("/usr/lib/rabbitmq/lib"))
                       if os.path.isdir(path))
        self.programs = found[-1]
        self.home = os.path.join(self.folder, "home")
        os.mkdir(self.home)
        with open(os.path.join(self.home, ".erlang.cookie"), "w") as file:
            file.write("hexlistfault")
        os.chmod(file.name, 0o400)
        with open(os.path.join(self.folder, "plugins"), "w") as file:
            file.write("[rabbitmq_mqtt].\n")
        self.names = [f"hexlist{number}-{self.port}@localhost" for number in (1, 2, 3)]
        self.ports = [rig.free_port() for _ in range(3)]
        self.registry_port = rig.free_port()
        text, commands = documented(self.title)[:2]
        text = text.replace("/etc/rabbitmq/hexlist/broker.pem", self.ca).replace("/etc/rabbitmq/hexlist/broker.key", self.key)
        if "mqtt.durable_queue_type = quorum" not in text or "set_topic_permissions" not in commands:
            raise rig.Failure("Docs/Network.md has no configuration of RabbitMQ")
        for number, host in enumerate(self.hosts):
            with open(os.path.join(self.folder, f"{number}.conf"), "w") as file:
                file.write(text.replace("mqtt.listeners.ssl.default = 8883", f"mqtt.listeners.ssl.1 = {host}:{self.port}"))
                file.write("listeners.tcp = none\ncluster_formation.peer_discovery_backend = classic_config\n")
                for other, name in enumerate(self.names):
                    file.write(f"cluster_formation.classic_config.nodes.{other + 1} = {name}\n")
        self.registry = subprocess.Popen(["epmd", "-port", str(self.registry_port), "-address", "127.0.0.1"], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=rig.die_with_parent)
        for number in range(3):
            self.start(number)
        self.await_nodes(0, 1, 2)
        once = [line for line in commands.splitlines() if "UUID" not in line]
        each = [line for line in commands.splitlines() if "UUID" in line]
        for line in once:
            self.control(shlex.split(line, comments=True))
        for user in users:
            self.passwords[user] = f"{random.SystemRandom().getrandbits(128):x}"
            for line in each:
                self.control(shlex.split(line.replace("UUID", user), comments=True), text=self.passwords[user])

    def environment(self, number):
        return {"HOME": self.home, "ERL_EPMD_PORT": str(self.registry_port), "ERL_EPMD_ADDRESS": "127.0.0.1",
                "RABBITMQ_NODENAME": self.names[number], "RABBITMQ_CONFIG_FILE": os.path.join(self.folder, f"{number}.conf"),
                "RABBITMQ_MNESIA_BASE": os.path.join(self.folder, f"data{number}"), "RABBITMQ_LOG_BASE": os.path.join(self.folder, f"logs{number}"),
                "RABBITMQ_ENABLED_PLUGINS_FILE": os.path.join(self.folder, "plugins"), "RABBITMQ_DIST_PORT": str(self.ports[number]),
                "RABBITMQ_CONF_ENV_FILE": "/dev/null", "RABBITMQ_PID_FILE": os.path.join(self.folder, f"pid{number}")}

    def start(self, number):
        self.run(number, [os.path.join(self.programs, "rabbitmq-server")], self.environment(number))

    def control(self, words, number=0, text=None):
        done = subprocess.run([os.path.join(self.programs, words[0]), *words[1:]], env=dict(os.environ, **self.environment(number)), input=text,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180)
        if done.returncode != 0:
            raise rig.Failure(f"{shlex.join(words)}: {done.stdout[-600:]}")
        return done.stdout

    def leader(self, user):
        """The node with the leader of a mailbox."""
        for line in self.control(["rabbitmqctl", "-q", "list_queues", "name", "leader", "--no-table-headers"], number=self.any_node()).splitlines():
            words = line.split()
            if len(words) == 2 and user in words[0]:
                return self.names.index(words[1])
        raise rig.Failure(f"{user} has no queue")

    def any_node(self):
        return next(number for number in range(3) if self.nodes[number])

    def empty(self, number):
        """Empties the disk of a killed node, and adds the node to the cluster again as RabbitMQ's documentation says."""
        shutil.rmtree(os.path.join(self.folder, f"data{number}"))
        other = (number + 1) % 3
        self.control(["rabbitmqctl", "forget_cluster_node", self.names[number]], number=other)
        self.start(number)
        self.await_nodes(number)
        self.control(["rabbitmq-queues", "grow", self.names[number], "all"], number=other)

    def limit(self, size):
        """Bounds the mailboxes to few bytes; `None` for the documented bound."""
        line = next(line for line in documented(self.title)[1].splitlines() if "set_policy" in line)
        if size:
            line = re.sub(r'"max-length-bytes":\d+', f'"max-length-bytes":{size}', line)
        self.control(shlex.split(line, comments=True), number=self.any_node())

    def end(self):
        super().end()
        if getattr(self, "registry", None):
            self.registry.kill()
            self.registry.wait()


class NATS(Cluster):
    title = "NATS"
    FULL = 1_000_000
    # The first version without the faults of 2.9.10 (Docs/Network.md).
    OLDEST = (2, 12)

    def __init__(self, folder, users):
        self.program = NATS.find()
        super().__init__(folder)
        self.cluster_port, self.http_port, self.plain_port = rig.free_port(), rig.free_port(), rig.free_port()
        self.clients = {}
        for user in users:
            self.passwords[user] = f"{random.SystemRandom().getrandbits(128):x}"
            # NATS does not bind the client id to the user.
            self.clients[user] = f"{random.SystemRandom().getrandbits(128):x}"
        self.size = None
        for number in range(3):
            self.start(number)
        self.await_nodes(0, 1, 2)

    @classmethod
    def find(cls):
        """The program; `HEXLIST_NATS` names another one."""
        program = os.environ.get("HEXLIST_NATS") or shutil.which("nats-server", path=rig.PATH)
        if not program:
            raise rig.Unavailable("nats-server is not installed")
        text = subprocess.run([program, "--version"], stdout=subprocess.PIPE, text=True).stdout
        version = tuple(int(word) for word in re.findall(r"\d+", text)[:2])
        if version < cls.OLDEST:
            raise rig.Unavailable(f"nats-server is too old ({text.strip()}); HEXLIST_NATS may name a newer one")
        return program

    def client_of(self, user):
        return self.clients[user]

    def start(self, number):
        text = documented(self.title)[0]
        host = self.hosts[number]
        line = next((line for line in text.splitlines() if 'user: "UUID"' in line), None)
        if not line or "stream_replicas: 3" not in text:
            raise rig.Failure("Docs/Network.md has no configuration of NATS")
        users = "\n".join(line.replace("UUID", user).replace("PASSWORD", self.passwords[user]) for user in self.passwords)
        text = text.replace(line, users)
        for old, new in (("n1.example:6222", f"{self.hosts[0]}:{self.cluster_port}"), ("n2.example:6222", f"{self.hosts[1]}:{self.cluster_port}"),
                         ("n3.example:6222", f"{self.hosts[2]}:{self.cluster_port}"), ("0.0.0.0:6222", f"{host}:{self.cluster_port}"),
                         ("0.0.0.0:8883", f"{host}:{self.port}"), ("127.0.0.1:4222", f"{host}:{self.plain_port}"),
                         ("/etc/nats/hexlist/broker.pem", self.ca), ("/etc/nats/hexlist/broker.key", self.key),
                         ("server_name: n1", f"server_name: n{number + 1}"), ("/var/lib/nats", os.path.join(self.folder, f"data{number}"))):
            if old not in text:
                raise rig.Failure(f"the configuration of NATS in Docs/Network.md has no {old}")
            text = text.replace(old, new)
        if self.size:
            text = re.sub(r"max_file_store: \w+", f"max_file_store: {self.size}", text)
        path = os.path.join(self.folder, f"{number}.conf")
        with open(path, "w") as file:
            file.write(text + f'\nhttp: "{host}:{self.http_port}"\n')
        self.run(number, [self.program, "-c", path])

    def leader(self, user):
        """The node with the leader of the stream of all messages."""
        for number in range(3):
            with contextlib.suppress(OSError, ValueError, KeyError):
                url = f"http://{self.hosts[number]}:{self.http_port}/jsz?streams=true&accounts=true"
                for account in json.load(urllib.request.urlopen(url, timeout=5))["account_details"]:
                    for stream in account["stream_detail"]:
                        if stream["name"] == "$MQTT_msgs":
                            return int(stream["cluster"]["leader"][1:]) - 1
        raise rig.Failure("the stream $MQTT_msgs has no leader")

    def empty(self, number):
        """Empties the disk of a killed node, and starts the node again. The others copy everything to it."""
        shutil.rmtree(os.path.join(self.folder, f"data{number}"))
        self.start(number)
        self.await_nodes(number)

    def limit(self, size):
        """Restarts all nodes with a bound for the bytes of all mailboxes; `None` for the documented bound."""
        self.size = size
        for number in range(3):
            self.nodes[number].terminate()
            self.nodes[number].wait()
            self.start(number)
            self.await_nodes(number)
