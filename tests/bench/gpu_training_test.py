#!/usr/bin/env python3
"""gpu_training.py without a GPU: its formulas, its table from a file, and what it says where there is none."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import gpu_torch_peer  # noqa: E402
import gpu_training  # noqa: E402


def made_up(peer):
    rows = {gpu_training.label(*one): {"step_ms": [100.0 + i, 90.0 + i, 110.0 + i], "peak_bytes": 2 << 30}
            for i, one in enumerate(gpu_training.OURS)}
    if peer:
        rows[gpu_training.PEER] = {"step_ms": [120.0], "peak_bytes": 3 << 30}
    return {"device": "NVIDIA H200", "micro_batch": 16, "context": 1024, "made_up": True, "models": {"124m": rows}}


class Table(unittest.TestCase):
    def test_parameters_are_gpt2s(self):
        at_50257 = gpu_training.params_of(gpu_training.SHAPES["124m"]) - (50304 - 50257) * 768
        self.assertEqual(at_50257, 124439808)
        at_50257 = gpu_training.params_of(gpu_training.SHAPES["350m"]) - (50304 - 50257) * 1024
        self.assertEqual(at_50257, 354823168)

    def test_figures(self):
        text = gpu_training.table(made_up(peer=True))
        row = next(line for line in text.splitlines() if line.startswith("stage 0, detail steps"))
        ms, tokens, mfu, gib, base, peer = row.split()[4:]
        self.assertEqual((ms, tokens, gib, base, peer), ("100.00", "163840", "2.00", "1.0000", "1.200"))
        flops = 6 * (124475904 - 768 * 1024) + 12 * 12 * 768 * 1024
        self.assertAlmostEqual(float(mfu), 100 * 163840 * flops / 989.4e12, delta=0.05)
        self.assertIn("MADE-UP", text)
        self.assertIn("3.00", next(line for line in text.splitlines() if line.startswith("PyTorch")))

    def test_which_attention_is_faster(self):
        result = made_up(peer=True)
        self.assertIn("no cuDNN here", gpu_training.table(result))
        rows = result["models"]["124m"]
        rows[gpu_training.BY_CUDNN] = {"step_ms": [95.0], "peak_bytes": 2 << 30}
        self.assertIn("cuDNN is the faster one, by 5.00 %", gpu_training.table(result))
        rows[gpu_training.BY_CUDNN]["step_ms"] = [102.0]
        self.assertIn("our own is the faster one, by 2.00 %", gpu_training.table(result))

    def test_without_pytorch_it_says_so(self):
        text = gpu_training.table(made_up(peer=False))
        self.assertIn("PyTorch is not installed here", text)
        self.assertNotIn("nan", text)

    def test_unknown_gpu_has_no_mfu(self):
        result = made_up(peer=True)
        result["device"] = "Some GPU"
        self.assertIn("not known here", gpu_training.table(result))

    def test_goals_are_met_missed_or_not_measured(self):
        def verdict(result, text):
            return next(line for line in gpu_training.goals(result) if text in line).rsplit(", ", 1)[-1]
        result = made_up(peer=True)
        self.assertEqual(verdict(result, "times PyTorch"), "met")  # 120 to 100
        self.assertEqual(verdict(result, "stage 3, detail steps"), "met")  # 103 to 100
        self.assertEqual(verdict(result, "detail params"), "MISSED")  # 104 to 100
        self.assertEqual(verdict(result, "peak memory"), "met")
        self.assertEqual(verdict(result, "MFU"), "MISSED")
        rows = result["models"]["124m"]
        rows[gpu_training.PEER] = {"step_ms": [109.0], "peak_bytes": 2 << 30}
        rows[gpu_training.label(3, "steps")]["step_ms"] = [103.2]
        rows[gpu_training.label(0, "params")]["step_ms"] = [100.4]
        self.assertEqual(verdict(result, "times PyTorch"), "MISSED")
        self.assertEqual(verdict(result, "stage 3, detail steps"), "MISSED")
        self.assertEqual(verdict(result, "detail params"), "met")
        self.assertEqual(verdict(result, "peak memory"), "MISSED")
        without = made_up(peer=False)
        for text in ("times PyTorch", "peak memory"):
            self.assertIn("not measured", next(line for line in gpu_training.goals(without) if text in line))


class Program(unittest.TestCase):
    def run_it(self, *args, path=None):
        env = {"PATH": path} if path is not None else None
        return subprocess.run([sys.executable, str(HERE / "gpu_training.py"), *args], capture_output=True, text=True,
                              env=env)

    def test_without_a_gpu(self):
        with tempfile.TemporaryDirectory() as empty:
            done = self.run_it(path=empty)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no GPU here", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_table_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "made_up.json"
            path.write_text(json.dumps(made_up(peer=True)))
            done = self.run_it("--from", str(path))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("GPT-2 124m", done.stdout)
            self.assertEqual(self.run_it("--from", str(path) + ".not").returncode, 1)

    def test_arguments(self):
        self.assertEqual(self.run_it("--rounds", "0").returncode, 2)
        self.assertEqual(self.run_it("--models", "7b").returncode, 2)
        with self.assertRaises(SystemExit):
            gpu_torch_peer.parse(["--layers", "12"])


if __name__ == "__main__":
    unittest.main()
