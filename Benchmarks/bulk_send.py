"""One measured `hexlist send --bulk` between two new hexlistd. A library, not a program."""

import json
import os
import signal
import subprocess
import time

import bench_kit as kit


class Run:
    """The figures of a run. rate: hexes per second. cpu: microseconds per hex, by process. peak: MB. waits: fsync and fdatasync calls."""


def run(base, hexes, sums, traced=False):
    """Measures `hexlist send --bulk` from its start to its end, when every hex is acknowledged as durable.

    Then kills the receiver with SIGKILL and checks that it has every hex.
    """
    paths = {label: os.path.join(base, f"{label}.strace") for label in ("a", "b")}
    result = Run()
    with kit.Pair(base, trace=lambda label: kit.counting(paths[label]) if traced else None) as pair:
        before = {daemon.label: kit.cpu_seconds(daemon.pid) for daemon in (pair.a, pair.b)}
        started = time.monotonic()
        client = kit.start(
            [os.path.join(kit.BIN, "hexlist"), "send", "--bulk", hexes, "--to", pair.b.uuid, "--wait", "stored", "--timeout", "60s", "--json"],
            env=pair.a.environment, stdout=subprocess.PIPE, text=True)
        output = client.stdout.read()
        client_cpu, client_peak = kit.finished(client, "hexlist send --bulk")
        took = time.monotonic() - started
        after = {daemon.label: kit.cpu_seconds(daemon.pid) for daemon in (pair.a, pair.b)}
        memory = {daemon.label: kit.memory_mb(daemon.pid)[1] for daemon in (pair.a, pair.b)}
        if client.returncode != 0:
            kit.wrong(f"hexlist send --bulk ended with status {client.returncode}: {output.strip()[-500:]}")
        summary = json.loads(output.splitlines()[-1])["summary"]
        if summary["stored"] != sums["hexes"]:
            kit.wrong(f"not all is stored: {summary}")
        if not traced:
            pair.b.end(signal.SIGKILL)
        else:
            for daemon in (pair.a, pair.b):
                daemon.end()
        kit.check_store(pair.b.database, sums, "hexlistd")
    names = {"a": "sender", "b": "receiver"}
    result.rate = sums["hexes"] / took
    result.cpu = {"client": 1e6 * client_cpu / sums["hexes"]}
    result.cpu.update({names[label]: 1e6 * (after[label] - before[label]) / sums["hexes"] for label in before})
    result.peak = {"client": client_peak, **{names[label]: value for label, value in memory.items()}}
    result.waits = {names[label]: kit.counted(path) for label, path in paths.items()} if traced else None
    return result
