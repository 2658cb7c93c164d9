"""Starts runs of zero_train and of its peers, and makes the virtual environment that the peers need."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

import peer_models

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEFAULT_VENV = ROOT / "build" / "peers-venv"
DEFAULT_BUILD = ROOT / "build" / "release"


class PeerError(Exception):
    """A run that ended badly; the text says which, how, and where its output is."""


def ensure_venv(path):
    """The python of a virtual environment that has requirements.txt; made at the first call (5 GB, minutes)."""
    python = pathlib.Path(path) / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(path)], check=True)
    probe = "import deepspeed, ninja, numpy, safetensors, torch"
    if subprocess.run([python, "-c", probe], capture_output=True, check=False).returncode != 0:
        print(f"installing the peers into {path}", file=sys.stderr)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True,
                       env={**os.environ, "DS_BUILD_OPS": "0"})
    return python


def versions(python):
    code = "import deepspeed, torch; print('DeepSpeed', deepspeed.__version__ + ', PyTorch', torch.__version__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, env=peer_environment(python))
    return done.stdout.strip().splitlines()[-1]


def peer_environment(python):
    # The folder of the environment first, because DeepSpeed compiles with the ninja found there.
    path = f"{pathlib.Path(python).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "DS_ACCELERATOR": "cpu", "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1", "TOKENIZERS_PARALLELISM": "false"}


def bf16_environment(python):
    """{} or what PyTorch needs here: some virtual machines announce AMX but trap its instructions."""
    code = "import torch; x = torch.ones(64, 64, dtype=torch.bfloat16); x @ x"
    if subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0:
        return {}
    return {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Run:
    """Processes of one run. `ranks` are their ids in order of rank; output is in files of `folder`."""

    def __init__(self, name, folder, processes):
        self.name, self.folder, self.processes = name, folder, processes
        self.out = folder

    @property
    def ranks(self):
        return [process.pid for process in self.processes]

    def running(self):
        return all(process.poll() is None for process in self.processes)

    def signal(self, number):
        for pid in self.ranks:
            os.kill(pid, number)

    def wait(self, timeout):
        codes = [process.wait(timeout) for process in self.processes]
        if any(codes):
            logs = "\n".join((self.folder / f"log{i}").read_text()[-2000:] for i, code in enumerate(codes) if code)
            raise PeerError(f"{self.name} ended with {codes}; end of its output in {self.folder}:\n{logs}")

    def kill(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def steps(self):
        """[(time the step ended, [losses of rank 0], norm of the gradient or None)] of rank 0."""
        path = self.out / "rank0.steps"
        lines = path.read_text().splitlines() if path.exists() else []
        return [tuple(json.loads(line)) for line in lines]


class OwnRun(Run):
    """zero_train under mpirun, whose only processes are the ranks."""

    @property
    def ranks(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if parent != self.processes[0].pid:
                    continue
                environment = (entry / "environ").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            rank = [v for v in environment if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
            found += [(int(rank[0].split(b"=")[1]), int(entry.name))] if rank else []
        return [pid for _, pid in sorted(found)]

    def started_steps(self):
        """How many steps it has said to have made: for waiting until it is warm."""
        return (self.folder / "log0").read_text().count("step ")

    def steps(self):
        path = self.folder / "losses.json"
        if not path.exists():
            return []
        log = json.loads((self.folder / "losses.json").read_text())
        return list(zip(log["ended_s"], log["losses"][0], log["grad_norm"]))


def fresh(folder):
    folder = pathlib.Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def start_peers(python, jobs, world, folder, extra_environment=None, prefix=()):
    """The ranks of a peer, which do the jobs one after the other; each job's output is in its own folder, job["out"]."""
    folder = fresh(folder)
    for job in jobs:
        job["port"] = free_port()
        fresh(job["out"])
    (folder / "jobs.json").write_text(json.dumps(jobs))
    processes = []
    for rank in range(world):
        environment = {**peer_environment(python), **(extra_environment or {}), "RANK": str(rank),
                       "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
        with open(folder / f"log{rank}", "w") as log:
            processes.append(subprocess.Popen([*prefix, python, HERE / "peer_rank.py", folder / "jobs.json"],
                                              env=environment, stdout=log, stderr=subprocess.STDOUT))
    return Run(jobs[0]["peer"], folder, processes)


def start_peer(python, job, world, folder, extra_environment=None, prefix=()):
    """One job, whose output is in `folder` too."""
    job = {**job, "out": str(pathlib.Path(folder) / "run")}
    run = start_peers(python, [job], world, folder, extra_environment, prefix)
    run.out = pathlib.Path(job["out"])
    return run


def own_arguments(job, folder):
    """Arguments of zero_train for a peer's job."""
    (folder / "model.json").write_text(peer_models.tree(job["model"], peer_models.shape_of(job)))
    (folder / "config.json").write_text(json.dumps(job["config"]))
    return ["--config", folder / "config.json", "--model", folder / "model.json", "--data", f"golden:{peer_models.DATA[job['model']]}",
            "--init-scheme", "hash", "--steps", str(job["steps"]), "--losses", folder / "losses.json"]


def mpirun(world):
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return ["mpirun", *as_root, "--oversubscribe", "--bind-to", "none", "-n", str(world)]


def start_own(build, job, world, folder, more=(), prefix=()):
    folder = fresh(folder)
    program = pathlib.Path(build) / "bin" / "zero_train"
    command = [*prefix, *mpirun(world), program, *own_arguments(job, folder), *more]
    with open(folder / "log0", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    return OwnRun("shardscope", folder, [process])
