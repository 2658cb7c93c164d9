"""Starts training runs of the attach tests, plain and attached, and reads their recordings."""
import csv
import functools
import json
import os
import pathlib
import shutil
import socket
import sqlite3
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ.get("SHARDSCOPE_BUILD", ROOT / "build" / "release"))
SHARDSCOPE = BUILD / "bin" / "shardscope"
PACKAGE = BUILD / "attach-package"  # the Python package as a wheel installs it
DEADLINE_S = 300

sys.path.insert(0, str(ROOT / "tests" / "peers"))


def environment_folder(*arguments):
    done = subprocess.run([HERE / "environment", *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return pathlib.Path(done.stdout.strip())


ENVIRONMENT = environment_folder()
PYTHON = ENVIRONMENT / "bin" / "python"


DEEPSPEED = "0.19.8"  # the environment's own


@functools.cache
def deepspeed_folder(version):
    return ENVIRONMENT / f"deepspeed-{version}" if version == DEEPSPEED else environment_folder("--deepspeed", version)


@functools.cache
def torch_folder(version):
    """Of another PyTorch than the environment's own."""
    return environment_folder("--torch", version)


@functools.cache
def other_folder(name):
    """Of another framework than the environment's own."""
    return environment_folder("--with", name)


def newest(*folders):
    return max(path.stat().st_mtime for folder in folders for path in folder.rglob("*") if path.is_file())


def build_package():
    """Installs python/ into PACKAGE, if a source of it is newer."""
    marker = PACKAGE / "built"
    libraries = [BUILD / "lib" / name for name in ("libshardscope.so.1", "libshardscope_reader.so")]
    sources = newest(ROOT / "python", HERE.parents[1] / "instrumentation/include", HERE.parents[1] / "app/arrow")
    if marker.exists() and marker.stat().st_mtime > max(sources, *(library.stat().st_mtime for library in libraries)):
        return
    shutil.rmtree(PACKAGE, ignore_errors=True)
    done = subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index",
                           "--disable-pip-version-check", "--target", PACKAGE,
                           "-C", f"cmake.define.SHARDSCOPE_LIB={BUILD / 'lib'}", "-C", "cmake.define.SHARDSCOPE_PROGRAMS=OFF",
                           ROOT / "python"],
                          env={**os.environ, "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}"},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"tests/attach: the package does not build:\n{done.stdout[-4000:]}")
    marker.touch()


def process_environment(deepspeed=DEEPSPEED, torch=None, other=None, **more):
    before = (f"{torch_folder(torch)}:" if torch else "") + (f"{other_folder(other)}:" if other else "")
    extensions = (torch_folder(torch) if torch else ENVIRONMENT) / f"extensions-{deepspeed}"
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("SHARDSCOPE", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "PYTHON"))}
    return {**kept, "PATH": f"{ENVIRONMENT / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": f"{before}{deepspeed_folder(deepspeed)}:{PACKAGE}", "DS_ACCELERATOR": "cpu",
            # DeepSpeed compiles an extension again that another compiler made.
            "TORCH_EXTENSIONS_DIR": str(extensions), "CXX": str(ENVIRONMENT / "bin" / "not-optimising-c++"), "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo", "TOKENIZERS_PARALLELISM": "false", "PYTHONWARNINGS": "ignore", **more}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def torchrun(script, *arguments, ranks=2):
    return [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", str(free_port()),
            script, *map(str, arguments)]


def attach(recording, *options):
    return [SHARDSCOPE, "attach", "--record", recording, "--overwrite", *options, "--"]


def start(command, **environment):
    return subprocess.Popen(list(map(str, command)), env=process_environment(**environment), stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def finish(process, expected=0):
    """The output of a run that must end with `expected`."""
    try:
        output, _ = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.terminate()  # which launchers and attach pass on: ranks that go on would hold the output open
        try:
            output, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        raise AssertionError(f"no end within {DEADLINE_S} s:\n{output[-3000:]}") from None
    if expected is not None and process.returncode != expected:
        raise AssertionError(f"ended with {process.returncode}, not {expected}:\n{output[-3000:]}")
    return output


def results(path, ranks=2):
    return [json.loads(pathlib.Path(f"{path}.{rank}").read_text(encoding="utf-8")) for rank in range(ranks)]


def figures(recording):
    done = subprocess.run([SHARDSCOPE, "summary", "--json", recording], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def has_events(recording):
    """Whether the live recording holds a chunk of events yet."""
    if not recording.exists():
        return False
    with sqlite3.connect(f"file:{recording}?mode=ro", uri=True) as database:
        try:
            return database.execute("SELECT count(*) FROM chunks").fetchone()[0] > 0
        except sqlite3.OperationalError:
            return False  # its tables are being made


@functools.cache
def read(path):
    return Recording(path)


class Recording:
    """A recording's rows, by `shardscope export --format csv`."""

    def __init__(self, path):
        self.path = path
        folder = pathlib.Path(f"{path}.csv")
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([SHARDSCOPE, "export", path, "--format", "csv", "-o", folder], check=True, capture_output=True)
        self.folder = folder
        self.events = self.table("events")
        self.params = self.table("params")
        self.modules = self.table("modules")
        self.slices = self.table("slices")
        self.spans = self.table("spans")

    def spans_of(self, rank, kind):
        """A rank's spans that this event begins, in the order of their begin."""
        rows = [s for s in self.spans if int(s["rank"]) == rank and s["kind"] == kind]
        return sorted(rows, key=lambda s: int(s["begin_ns"]))

    def table(self, name):
        with open(self.folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def of(self, rank, *kinds):
        """A rank's events of these kinds in the order in which it made them."""
        rows = [e for e in self.events if int(e["rank"]) == rank and e["kind"] in kinds]
        return sorted(rows, key=lambda e: int(e["at_ns"]))
