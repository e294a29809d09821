"""Common code of the programs that run hexlistd on hosts of a lab (Scripts/lab), found by announcement."""

import os
import subprocess

import rig


class Lab:
    """Hosts in namespaces with avahi-daemons: new ones, or without `hosts` those of a running lab."""

    def __init__(self, name, *hosts):
        self.variables = {"HEXLIST_LAB": name, "HEXLIST_BIN": os.path.realpath(rig.BIN)}
        if hosts:
            self.run("up", "--owner", str(os.getpid()), *hosts)

    def run(self, *arguments):
        done = subprocess.run([rig.LAB, *arguments], env={**os.environ, **self.variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise rig.Failure(f"lab {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout.strip()

    def inside(self, host, *command):
        """Runs a program of this folder on a host. It finds the lab by HEXLIST_LAB. Returns its status."""
        variables = [f"{name}={value}" for name, value in {**self.variables, "PATH": os.environ["PATH"]}.items()]
        return subprocess.run([rig.LAB, "exec", host, "env", f"--chdir={os.getcwd()}", *variables, *command], env={**os.environ, **self.variables}).returncode

    def down(self):
        self.run("down")


class HostDaemon(rig.Daemon):
    """hexlistd on a host of the lab, which listens there and announces itself."""

    def __init__(self, folder, name, lab, host, config=""):
        super().__init__(folder, name, config=config)
        self.host = host
        self.bus = os.path.join(os.path.dirname(lab.run("path", host, "folder")), "bus")
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        self.entered = ["nsenter", "--target", lab.run("path", host, "holder"), *user, "--net", "--mount", "--uts", "--"]

    def environment(self, extra=None):
        return super().environment({"DBUS_SYSTEM_BUS_ADDRESS": f"unix:path={self.bus}", **(extra or {})})

    def write_config(self):
        with open(os.path.join(self.folder, "config.yaml"), "w") as file:
            file.write(f"name: {self.name}\nport: {self.port}\n{self.config}")

    def begin(self, environment=None, before=()):
        super().begin(environment, [*self.entered, *before])
