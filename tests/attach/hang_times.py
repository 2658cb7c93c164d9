"""How soon `shardscope why` and PyTorch's Flight Recorder analyzer (torchfrtrace) say of the same hangs who is missing where:

    SHARDSCOPE_BUILD=build/release PYTHONPATH=. $PYTHON hang_times.py [MODE ...]    in tests/attach, $PYTHON of its environment

Three ranks of FSDP2 on gloo, of which rank 1 does in its third step what the mode says (scripts/hang.py). Seconds from that moment.
`why` is asked from then on, until it has an answer. The recorder's dumps exist only after the group's timeout (600 s by default under
NCCL) or when something asks for them: here as soon as `why` has answered, of the ranks that can still write one; what is counted for
the analyzer is that request, the dumps and its run, after the moment at which somebody decides to ask.
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import flight_test
import runs

SCRIPT = runs.HERE / "scripts" / "hang.py"
MODES = ("skips", "branches", "saves", "fewer", "stops", "dies", "returns")
ODD, WORLD = 1, 3
START_S = 180  # for the ranks to get to where they part


def started(mode, here):
    """Without torchrun, which would end the others when one rank ends."""
    port = str(runs.free_port())
    return [subprocess.Popen([runs.PYTHON, SCRIPT, "fsdp2", mode, "120"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env=runs.process_environment(RANK=str(rank), WORLD_SIZE=str(WORLD), LOCAL_RANK=str(rank),
                                                          LOCAL_WORLD_SIZE=str(WORLD), MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                                                          TORCH_FR_BUFFER_SIZE="2000", HANG_DUMPS=str(here),
                                                          SHARDSCOPE_ATTACH=str(here / "settings")))
            for rank in range(WORLD)]


def asked(endpoint, deadline):
    """`why`, until it has an answer: (when, what)."""
    while time.time() < deadline:
        done = subprocess.run([runs.SHARDSCOPE, "why", endpoint, "--json", "--wait", "60"], capture_output=True, text=True,
                              check=False)
        answer = json.loads(done.stdout) if done.returncode == 0 else {}
        if answer.get("hung") or answer.get("difference"):
            return time.time(), answer["text"]
        time.sleep(0.05)
    return None, "no answer"


def analyzed(here, ranks):
    """The analyzer on the dumps of the ranks that can write one: (seconds, how many dumps, what it names)."""
    begin = time.time()
    (here / "dump").touch()
    able = [rank for rank, process in enumerate(ranks) if process.poll() is None]
    while time.time() < begin + 5 and len(list((here / "pickle").iterdir())) < len(able):
        time.sleep(0.01)
    count = len(list((here / "pickle").iterdir()))
    if count == 0:
        return None, 0, "no rank is left to write a dump"
    flight_test.GROUPS = {"0": ("default_pg", list(range(WORLD)))}
    try:
        named = flight_test.analyzer(flight_test.completed(here / "pickle", here / "completed"))
    except AssertionError as error:
        return time.time() - begin, count, "it ends with an error: " + str(error).strip().splitlines()[-1][:120]
    said = "it names nothing" if named is None else f"ranks {sorted(named[2])} at sequence number {named[1]}"
    return time.time() - begin, count, said


def measured(mode):
    with tempfile.TemporaryDirectory(prefix=f"hang-{mode}-") as kept:
        here = pathlib.Path(kept)
        endpoint = f"ipc://{here}/run.sock"
        for name in ("settings", "pickle"):
            (here / name).mkdir()
        (here / "settings" / "settings.json").write_text(json.dumps({"endpoint": endpoint, "run_id": "x", "linger_s": 0.2}),
                                                         encoding="utf-8")
        collector = runs.start([runs.SHARDSCOPE, "record", here / "run.zscope", "--listen", endpoint])
        ranks = started(mode, here)
        try:
            latest = time.monotonic() + START_S
            while not (here / "stopped").exists() or not (here / "stopped").read_text(encoding="utf-8"):
                if time.monotonic() > latest or any(rank.poll() is not None for rank in ranks):
                    sys.exit(f"{mode}: the ranks did not get to where they part")
                time.sleep(0.01)
            stopped = float((here / "stopped").read_text(encoding="utf-8"))
            at, text = asked(endpoint, stopped + 60)
            seconds, dumps, said = analyzed(here, ranks)
            print(json.dumps({"mode": mode, "why_s": round(at - stopped, 2) if at else None, "why": text,
                              "analyzer_s": round(seconds, 2) if seconds is not None else None, "dumps": dumps, "analyzer": said}), flush=True)
        finally:
            for process in ranks:
                process.kill()
                process.wait()
            collector.send_signal(signal.SIGINT)
            collector.communicate(timeout=60)


if __name__ == "__main__":
    runs.build_package()
    for each in sys.argv[1:] or MODES:
        measured(each)
