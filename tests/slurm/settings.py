"""The settings of a test cluster: slurm.conf, gres.conf and slurmdbd.conf, all on the loopback interface."""

import os
import socket
import stat
from pathlib import Path

GPUS = 2  # of each node
CPUS = 8  # of each node, where nothing else is said
# Those of profiles/slurm, which then serves as it is (tools/slurm_here.py).
ACCOUNT = "my_account"
PARTITION = "my_partition"


def write_settings(
    folder: Path, host: str, user: str, nodes: int, ports: list[int], accounting: bool, cpus: int = CPUS
) -> None:
    """Write all three; the ports are those of slurmctld, slurmdbd, the database and the nodes."""
    controller, dbd, database, first = ports[:4]
    # Told to keep to one address, the daemons take that of the host's name: 127.0.0.1, or in containers another.
    address = socket.gethostbyname(host)
    storage = f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={address}
AccountingStoragePort={dbd}
AccountingStoragePass={folder}/munge/socket
AccountingStoreFlags=job_comment
AccountingStorageTRES=gres/gpu
"""
    # A job that goes back into the queue waits until its old credentials are out of date: two minutes by default.
    # Processes are followed by their group, which needs no privilege and kills what is left of a step when its first
    # process ends, as sites with cgroups do; proctrack/linuxproc loses sight of it.
    (folder / "slurm.conf").write_text(f"""\
ClusterName=test
SlurmctldHost={host}({address})
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=15
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=2
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
GresTypes=gpu
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=2,sched_min_interval=0,bf_interval=2,batch_sched_delay=0
KillWait=30
MinJobAge=300
SlurmdTimeout=30
JobRequeue=0
{storage if accounting else "AccountingStorageType=accounting_storage/none"}
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr={address} Port=[{first}-{first + nodes - 1}] \
CPUs={cpus} RealMemory=64000 Gres=gpu:{GPUS} State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName={PARTITION} Nodes=n[1-{nodes}] Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=patient Nodes=n[1-{nodes}] MaxTime=INFINITE PriorityTier=1 GraceTime=60 State=UP
PartitionName=urgent Nodes=n[1-{nodes}] MaxTime=INFINITE PriorityTier=2 State=UP
""")
    (folder / "gres.conf").write_text(
        f"NodeName=n[1-{nodes}] Name=gpu File={_devices(folder)}[0-{GPUS - 1}] Flags=nvidia_gpu_env\n"
    )
    (folder / "slurmdbd.conf").write_text(f"""\
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CommunicationParameters=NoInAddrAny
DbdHost={host}
DbdAddr={address}
DbdPort={dbd}
SlurmUser={user}
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
""")
    (folder / "slurmdbd.conf").chmod(0o600)


def _devices(folder: Path) -> str:
    """SLURM sets CUDA_VISIBLE_DEVICES for character devices only. Root makes some; others have consoles."""
    if os.getuid() != 0:
        return "/dev/tty"
    for number in range(GPUS):
        os.mknod(folder / "dev" / f"nvidia{number}", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    return str(folder / "dev" / "nvidia")
