"""Simulated runs whose findings are read and whose advice is followed."""
import json
import pathlib

from command_line import ROOT, read, said


def machine(folder, gb_per_s, tflops=0.2, latency_us=20, host=51):
    """A hardware file: the rates of a small machine with a link of `gb_per_s`."""
    hardware = json.loads((ROOT / "assets/hardware/a100.json").read_text())
    hardware.update(f32_tflops=tflops, f16_tflops=tflops, memory_gb_per_s=40, host_memory_gb_per_s=host, matrix_efficiency=0.69,
                    attention_efficiency=0.35, memory_efficiency=0.25, processors=0, matrix_half_depth=0, overlap_slowdown=0)
    hardware["inside"] = {"gb_per_s": gb_per_s, "latency_us": latency_us}
    path = pathlib.Path(folder) / f"machine-{gb_per_s}-{tflops}-{latency_us}-{host}.json"
    path.write_text(json.dumps(hardware))
    return path


def placed(finding):
    """A click on it opens a time; else its kind says why not (FindingPlaces of the analysis tests)."""
    return finding["at_ns"] > 0 or finding["until_ns"] > 0 or finding["id"] in ("rehearsed_fault", "recording_damaged")


class Run:
    """A simulated run: its findings by id, and its step."""

    def __init__(self, folder, name, hardware, zero, ranks=2, steps=8, root=None, more=(), sets=(), model="gpt-mini"):
        self.arguments = (folder, name, hardware, zero, ranks, steps, root, more)
        self.model = model
        config = pathlib.Path(folder) / f"{name}.json"
        config.write_text(json.dumps({"train_micro_batch_size_per_gpu": 4,
                                      "optimizer": {"type": "AdamW", "params": {"lr": 1e-3}},
                                      "zero_optimization": zero, **(root or {})}))
        self.recording = pathlib.Path(folder) / f"{name}.zscope"
        said("simulate", "--model", model, "--config", config, "--hardware", hardware, "--ranks", ranks, "--steps", steps,
             "-o", self.recording, *more, *[part for one in sets for part in ("--set", one)])
        self.findings = read("findings", self.recording)
        self.by_id = {finding["id"]: finding for finding in self.findings}
        assert all(placed(finding) for finding in self.findings), self.findings
        self.summary = read("summary", self.recording)
        self.step_ms = self.summary["step_ms"]["median"]

    def followed(self, finding):
        folder, name, hardware, zero, ranks, steps, root, more = self.arguments
        sets = [f"{change['key']}={change['value']}" for change in self.by_id[finding]["changes"]]
        return Run(folder, f"{name}-followed", hardware, zero, ranks, steps, root, more, sets, self.model)
