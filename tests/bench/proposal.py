#!/usr/bin/env python3
"""What `shardscope what-if --search` proposes for the demo's run, and what the proposals take when they are run.

usage: tests/bench/proposal.py [--ranks 4 2] [--memory-limit 16MiB] [--repeat 3] [--steps 60] [--build FOLDER]

Per number of ranks: the demo's configuration is recorded, as `shardscope demo --headless` records it; the search names the
fastest settings, without and with the memory limit. Recorded settings, DeepSpeed's defaults of the same stage, and all
proposals are then trained in turns. Step times are medians over the repeats of each run's median; the change is the
median over the repeats of proposal over recorded. Wants a machine with nothing else to do.
"""
import argparse
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import launch  # noqa: E402
from what_if import measured, shardscope  # noqa: E402

DEMO = launch.ROOT / "samples" / "demo.json"
SIZES = ("reduce_bucket_size", "stage3_prefetch_bucket_size", "stage3_max_live_parameters", "stage3_max_reuse_distance",
         "stage3_param_persistence_threshold")


def without_sizes(folder):
    """The demo's configuration with DeepSpeed's default sizes."""
    config = json.loads(DEMO.read_text())
    for key in SIZES:
        del config["zero_optimization"][key]
    path = folder / "defaults.json"
    path.write_text(json.dumps(config))
    return path


def train(options, folder, name, ranks, config, settings):
    folder = launch.fresh(folder / name)
    shardscope(options, "run", "--no-view", "--ranks", ranks, "--config", config, "--steps", options.steps, "--record",
               folder / "run.zscope", *(part for key, value in settings.items() for part in ("--set", f"{key}={value}")))
    return measured(options, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 2])
    parser.add_argument("--memory-limit", default="16MiB")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--build", default=launch.DEFAULT_BUILD)
    parser.add_argument("--scratch", default=launch.ROOT / "build" / "proposal")
    options = parser.parse_args()
    for ranks in options.ranks:
        folder = launch.fresh(pathlib.Path(options.scratch) / str(ranks))
        train(options, folder, "recorded", ranks, DEMO, {})
        runs = {"recorded": (DEMO, {}, None), "default sizes": (without_sizes(folder), {}, None)}
        for name, limit in (("fastest", ()), (f"within {options.memory_limit}", ("--memory-limit", options.memory_limit))):
            search = json.loads(shardscope(options, "what-if", folder / "recorded" / "run.zscope", "--search", "--json", *limit))
            print(f"{ranks} ranks, {name}: {search['played']} of {search['combinations']} played, model "
                  f"{search['model_error_pct']:+.1f} %, error {search['error_pct']:.1f} %. {search['verdict']}")
            for i, one in enumerate(search["best"][:2]):
                runs[f"{name}, {i + 1}"] = (DEMO, one["settings"], one)
        seen = {name: [] for name in runs}
        for turn in range(options.repeat):
            for name, (config, settings, _) in runs.items():
                seen[name].append(train(options, folder, f"{turn}-{name}", ranks, config, settings))
        print("\n| ranks | run | settings | predicted, ms | change | peak, MiB | measured, ms | change | peak, MiB |")
        print("|---|---|---|---|---|---|---|---|---|")
        for name, (_, settings, one) in runs.items():
            step = statistics.median(ms for ms, _ in seen[name])
            changes = sorted(100 * (a[0] / b[0] - 1) for a, b in zip(seen[name], seen["recorded"]))
            words = " ".join(f"`{key}={value}`" for key, value in settings.items()) or "-"
            predicted = (f"{one['predicted_step_ms']:.1f} | {one['predicted_change_pct']:+.1f} % | "
                         f"{one['peak_memory_bytes'] / 2**20:.1f}") if one else "- | - | -"
            print(f"| {ranks} | {name} | {words} | {predicted} | {step:.1f} | {statistics.median(changes):+.1f} % "
                  f"({changes[0]:+.1f} to {changes[-1]:+.1f}) | {max(pools['device'] for _, pools in seen[name]) / 2**20:.1f} |",
                  flush=True)
        print()


if __name__ == "__main__":
    main()
