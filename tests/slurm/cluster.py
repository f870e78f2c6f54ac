# SPDX-License-Identifier: BSD-3-Clause
"""Run a real Slurm on one machine, with its daemons in namespaces; this needs root.

Munge and slurmctld run on a host called the head; every other host runs a slurmd. The
daemons keep their state in the head's /run, which all hosts share. State, daemons and
jobs end with the head. The hosts see all other files of this machine, but each host has
its own /dev/shm.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.testbed.host import Host

TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "srun")
# Without this library Slurm lists PMIx among its plugins, but cannot load it.
PMIX = "usr/lib/*/pmix2/lib/libpmix.so"

FOLDER = "/run/slurm"
CONF = f"{FOLDER}/slurm.conf"
_SOCKET = f"{FOLDER}/munge/socket"
_PORT = 6817
_ADDRESS = "10.77.1.1"
_LIMIT_S = 60
_POLL_S = 0.1
_NODES_A_SWITCH = 2

RATE_MBIT = 200  # of each link

# TmpFS must be a different folder on each node, such as /dev/shm, since PMIx names its
# folders there after the job only. A node that does not answer for SlurmdTimeout
# seconds is down. A job gets SIGKILL KillWait seconds after its SIGTERM.
_TEMPLATE = """
ClusterName=test
SlurmctldHost={head}
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={socket}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
TmpFS=/dev/shm
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
EnforcePartLimits=ALL
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
TopologyPlugin=topology/tree
KillWait=20
SlurmdTimeout=10
MinJobAge=600
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=60 DefaultTime=5 State=UP
"""


@contextlib.contextmanager
def one_network(nhosts: int) -> Iterator[tuple[Host, list[Host]]]:
    """Make a head, and hosts that share its network.

    The network has an interface besides loopback, since MPI libraries do not use
    loopback between hosts.
    """
    head = Host("head")
    hosts: list[Host] = []
    try:
        head.run("ip", "link", "add", "eth0", "type", "veth", "peer", "eth1")
        head.run("ip", "addr", "add", f"{_ADDRESS}/24", "dev", "eth0")
        for device in ("eth0", "eth1"):
            head.run("ip", "link", "set", device, "up")
        names = [f"host{number}" for number in range(nhosts)]
        lines = "".join(f"{_ADDRESS} {name}\n" for name in [*names, "head"])
        head.write("/run/hosts", f"127.0.0.1 localhost\n{lines}")
        head.run("mount", "--bind", "/run/hosts", "/etc/hosts")
        # extend() adds each host once it is made, so all are closed even if one fails.
        hosts.extend(Host(name, head, own_network=False) for name in names)
        yield head, hosts
    finally:
        head.close()
        for host in hosts:
            host.close()


class Slurm:
    """A Slurm on hosts that can resolve each other's names.

    Parameters
    ----------
    head
        The host on which the controller runs and jobs are submitted.
    hosts
        The nodes. Slurm's topology has two nodes on each switch, in reverse order: the
        last two nodes are on the first switch.
    """

    def __init__(self, head: Host, hosts: Sequence[Host]) -> None:
        self.head = head
        self.hosts = {host.name: host for host in hosts}
        head.run("mkdir", "-m", "755", "-p", FOLDER, f"{FOLDER}/munge")
        head.write(CONF, self._conf())
        head.write(f"{FOLDER}/topology.conf", self._topology())
        # If no plugin is named, Slurm looks for one, and may fail because it finds
        # none, though it would not use it.
        head.write(f"{FOLDER}/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        self._start_munge()
        head.run("env", f"SLURM_CONF={CONF}", "slurmctld", "-i")
        for host in hosts:
            self.start(host.name)
        self.wait_idle()

    def _conf(self) -> str:
        """Return the text of slurm.conf."""
        nodes = "".join(
            f"NodeName={name} NodeHostname={name} NodeAddr={name} Port={port} "
            "CPUs=2 RealMemory=1024\n"
            for port, name in enumerate(self.hosts, start=_PORT + 1)
        )
        return _TEMPLATE.format(
            head=self.head.name,
            port=_PORT,
            socket=_SOCKET,
            folder=FOLDER,
            nodes=nodes,
        )

    def _topology(self) -> str:
        """Return the text of topology.conf."""
        names = list(reversed(self.hosts))
        leaves = [
            names[begin : begin + _NODES_A_SWITCH]
            for begin in range(0, len(names), _NODES_A_SWITCH)
        ]
        lines = [
            f"SwitchName=leaf{i} Nodes={','.join(x)}\n" for i, x in enumerate(leaves)
        ]
        return "".join(lines) + f"SwitchName=core Switches=leaf[0-{len(leaves) - 1}]\n"

    def _start_munge(self) -> None:
        key = f"{FOLDER}/munge/key"
        self.head.run("dd", "if=/dev/urandom", f"of={key}", "bs=1024", "count=1")
        self.head.run("chmod", "400", key)
        files = {"key": key, "seed": f"{key}.seed", "log": f"{key}.log"}
        self.head.run(
            "munged",
            *(f"--{name}-file={path}" for name, path in files.items()),
            f"--pid-file={key}.pid",
            f"--socket={_SOCKET}",
        )

    # ---- nodes ---------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a node's daemon, which must not be running."""
        self.hosts[name].run("mkdir", "-p", f"{FOLDER}/spool-{name}")
        self.hosts[name].run("env", f"SLURM_CONF={CONF}", "slurmd", "-N", name)

    def wait_idle(self) -> None:
        """Wait until all nodes can take a job."""
        deadline_s = time.monotonic() + _LIMIT_S + 2 * len(self.hosts)
        while True:
            idle = self.run("sinfo", "--noheader", "-N", "-t", "idle", "-o", "%N")
            if set(idle.split()) == set(self.hosts):
                return
            if time.monotonic() > deadline_s:
                raise RuntimeError(
                    f"not all nodes are idle:\n{self.run('sinfo', '-lN')}"
                )
            time.sleep(_POLL_S)

    def log(self) -> str:
        """Return the last lines of the controller's log."""
        return self.head.run("tail", "-n", "30", f"{FOLDER}/slurmctld.log")

    def run(
        self,
        *command: str,
        folder: str | Path = "/",
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """Run one of Slurm's commands on the head; return what it printed.

        Raises RuntimeError, with all that it printed, if the command fails.

        Parameters
        ----------
        command
            The command and its arguments.
        folder
            The directory to run it in.
        variables
            Variables to add to its environment.
        """
        words = [f"{name}={value}" for name, value in (variables or {}).items()]
        done = subprocess.run(
            [*self.head.enter(folder), "env", f"SLURM_CONF={CONF}", *words, *command],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout
