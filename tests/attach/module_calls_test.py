"""Hooks of modules and of their tensors in one process, in a run without a collector.

    tests/attach/run module_calls_test
"""
import os
import subprocess
import unittest

import runs

# A model in a micro-step, with a hook of ours on every module. Prints what the last expression gives.
PROGRAM = """
import tempfile
import torch
from torch import nn
from shardscope import _core, _kinds as k, modules
from shardscope._session import session

class Twice(nn.Module):
    def forward(self, x):
        return {{"a": (x * 2, [x * 3]), "b": [x * 3], "c": x, "d": None}}

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), Twice())
run = _core.Run(run_id="calls", model="none", device="", hardware="", versions="", config_json="{{}}", rank=0, world=1,
                local_world=1, stage=0, param_bytes=4, grad_bytes=4, master_bytes=0, framework="", records=0)
for number, (path, module) in enumerate(model.named_modules()):
    run.add_module(parent=k.NO_ID, path=path, type="M", hooks=True)
    session.modules[id(module)] = number
session.started = session.in_micro_step = True
said = []
modules._adapter.failed = lambda symbol, error: said.append((symbol, type(error).__name__))
with tempfile.TemporaryDirectory() as folder:
    run.start(endpoint=f"ipc://{{folder}}/none", detail=k.PARAMS, key_file="none", linger_s=0.0)
    {before}
    modules.watch(model)
    x = torch.ones(2, 4, requires_grad=True)
    session.phase = k.FORWARD
    out = model(x)
    session.phase = k.BACKWARD
    one, deep, two, same = out["a"][0], out["a"][1][0], out["b"][0], out["c"]
    (one + two + deep + same).sum().backward()
    print({show})
    run.finish(0, "done")
    run.close()
"""


def shown(show, before=""):
    done = subprocess.run([runs.PYTHON, "-c", PROGRAM.format(show=show, before=before)], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(runs.PACKAGE), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"})
    if done.returncode != 0:
        raise AssertionError(done.stderr[-2000:])
    return done.stdout.strip()


def setUpModule():
    runs.build_package()


class Hooks(unittest.TestCase):
    HOOKS = "[[type(h).__name__ for h in (t._backward_hooks or {}).values()] for t in (one, two, same, deep)]"

    def test_each_tensor_of_a_module_s_result_has_a_hook_also_in_dicts_tuples_and_lists(self):
        # `same` is the output of ReLU, the input and an output of Twice, and one of the model. What ReLU changed in place has no hooks
        # of before. A list in a tuple in a dict is too deep.
        expected = [["GradientHook"] * 2, ["GradientHook"] * 2, ["GradientHook"] * 4, []]
        self.assertEqual(shown(self.HOOKS), str(expected))

    def test_the_same_by_torch_s_own_method(self):
        by_method = ("modules.calls = _core.ModuleCalls(session, torch.Tensor, None, torch._C._current_graph_task_id, modules._failed); "
                     "modules._entering.__globals__['calls'] = modules.calls")
        self.assertEqual(shown(self.HOOKS, by_method), shown(self.HOOKS))

    def test_gradients_are_those_without_hooks(self):
        self.assertEqual(shown("x.grad.tolist()"), shown("x.grad.tolist()", "modules.watch = lambda model: None"))
        self.assertNotEqual(shown("x.grad.tolist()"), "[]")

    def test_spans_of_the_backward_are_open_within_it(self):
        self.assertEqual(shown("(session.spans.any(k.PASS_BACKWARD), session.spans.any(k.PASS_FORWARD), said)"), "(True, False, [])")

    def test_a_hook_that_raises_is_off_and_the_model_runs_on(self):
        fails = ("modules.calls = _core.ModuleCalls(session, torch.Tensor, None, lambda: 1 / 0, modules._failed)")
        self.assertEqual(shown("(said, x.grad is None, len(torch.nn.modules.module._global_forward_hooks))", fails),
                         "([('a module', 'ZeroDivisionError')], False, 0)")

    FAILS_TO_REPORT = ("failing = lambda error: (said.append(type(error).__name__), [][0]); "
                       "modules.calls = _core.ModuleCalls(session, torch.Tensor, None, {graph_task}, failing)")

    def test_what_the_report_of_a_failure_raises_does_not_reach_the_training(self):
        before = self.FAILS_TO_REPORT.format(graph_task="lambda: 1 / 0")
        self.assertEqual(shown("x.grad.tolist()", before), shown("x.grad.tolist()", "modules.watch = lambda model: None"))
        self.assertEqual(shown("set(said)", before), "{'ZeroDivisionError'}")

    def test_neither_does_it_after_an_exception_of_c_plus_plus(self):
        before = self.FAILS_TO_REPORT.format(graph_task="lambda: 'no number'")
        self.assertEqual(shown("(set(said), x.grad is None)", before), "({'RuntimeError'}, False)")

    def test_an_interrupt_reaches_the_training(self):
        interrupt = "lambda: (_ for _ in ()).throw(KeyboardInterrupt())"
        with self.assertRaisesRegex(AssertionError, "KeyboardInterrupt"):
            shown("said", f"modules.calls = _core.ModuleCalls(session, torch.Tensor, None, {interrupt}, modules._failed)")


if __name__ == "__main__":
    unittest.main()
