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
from shardscope import _core, _hooks, _kinds as k, modules
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

    def test_each_tensor_of_a_module_s_result_has_one_hook_also_in_dicts_tuples_and_lists(self):
        # `same` is the output of ReLU, the input and an output of Twice, and one of the model. What ReLU changed in place has no hooks
        # of before. A list in a tuple in a dict is too deep.
        expected = [["GradientHook"]] * 3 + [[]]
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

    def test_a_backward_is_that_of_the_module_that_made_the_tensor_not_of_one_that_returns_its_input(self):
        before = ("seen, open_now = [], lambda: [session.spans.holds(k.PASS_BACKWARD, number) for number in (10, 11)]; "
                  "Own = type('Own', (torch.autograd.Function,), {'forward': staticmethod(lambda ctx, x: x * 2), "
                  "'backward': staticmethod(lambda ctx, gradient: (seen.append(open_now()), gradient * 2)[1])}); "
                  "pair = nn.Sequential(type('Made', (nn.Module,), {'forward': lambda self, x: Own.apply(x)})(), nn.Dropout(0.0)); "
                  "session.modules[id(pair[0])], session.modules[id(pair[1])] = 10, 11; "
                  "[modules.calls.watch(module, modules.PLAIN) for module in pair]")
        show = ("(setattr(session, 'phase', k.FORWARD), (y := pair(torch.ones(2, 4, requires_grad=True))), "
                "setattr(session, 'phase', k.BACKWARD), y.sum().backward(), seen)[-1]")
        self.assertEqual(shown(show, before), "[[True, False]]")

    def test_a_hook_that_raises_is_off_and_the_model_runs_on(self):
        fails = ("modules.calls = _core.ModuleCalls(session, torch.Tensor, None, lambda: 1 / 0, modules._failed)")
        self.assertEqual(shown("(said, x.grad is None, len(torch.nn.modules.module._global_forward_hooks))", fails),
                         "([('a module', 'ZeroDivisionError')], False, 0)")

    # After modules.watch(): the model's last module raises in its first forward; global hooks of others are around ours.
    FIRST_RAISES = """
    registry, watched, error, before, came = torch.nn.modules.module, modules.watch, {error}, {before}, []
    def raises(*_):
        if came == []:
            came.append(None)
            raise error
    if before:
        registry.register_module_forward_hook(raises)
    else:
        model[2].register_forward_pre_hook(raises)
    def watch(model):
        watched(model)
        registry.register_module_forward_hook(lambda *_: None, always_call=True)
        try:
            model(torch.ones(2, 4))
        except Exception as raised:
            came.append(raised is error)
        came.append(modules.Wrapped.now is not None)
    modules.watch = watch
"""

    def test_the_exception_of_the_first_forward_arrives_and_the_next_forward_is_recorded(self):
        for before in (False, True):  # in the forward, or in a hook before ours
            with self.subTest(before=before):
                raises = self.FIRST_RAISES.format(error="ValueError('the user')", before=before)
                self.assertEqual(shown("(came, said, modules.Wrapped.now is not None, session.spans.any(k.PASS_BACKWARD))", raises),
                                 "([None, True, False], [], True, True)")

    def test_neither_does_a_hook_that_fails_after_it_replace_it(self):
        raises = self.FIRST_RAISES.format(error="ValueError('the user')", before=False) + """
    modules.calls = type("Fails", (), {"leaving": lambda self, module, result: modules._failed(KeyError("ours")), "entered": k.NO_ID,
                                       **{name: lambda *_: None for name in ("watch", "entering", "forget")}})()
"""
        self.assertEqual(shown("(came, set(said), len(torch.nn.modules.module._global_forward_hooks))", raises),
                         "([None, True, False], {('a module', 'KeyError')}, 1)")

    def test_a_call_that_cannot_be_wrapped_is_said_once_and_the_model_runs_on(self):
        fails = "_hooks.Table = lambda *_: 1 / 0"
        self.assertEqual(shown("(model(x)['d'], said, len(torch.nn.modules.module._global_forward_hooks))", fails),
                         "(None, [('a module', 'ZeroDivisionError')], 0)")

    # `enters()`: how many modules a forward of the model enters. `other`: the wrapper of another tool.
    ANOTHER = """
    asked = []
    modules.calls = _core.ModuleCalls(session, torch.Tensor, None, lambda: asked.append(None) or -1, modules._failed)
    def enters():
        asked.clear()
        model(x)
        return len(asked)
    def patch():
        ours = nn.Module._call_impl
        def other(self, *args, **kwargs):
            return ours(self, *args, **kwargs)
        nn.Module._call_impl = other
        return other
"""

    def test_the_wrapper_within_another_one_records_each_call_once(self):
        show = ("[enters(), patch(), enters(), modules.by_torch_s_hooks(), enters(), modules.watch(model), enters()][::2]")
        self.assertEqual(shown(show, self.ANOTHER), "[4, 4, 4, 4]")

    def test_a_detach_leaves_the_other_wrapper_and_ours_within_it_is_off(self):
        show = ("[other := patch(), _hooks.turn_off_all(), enters(), nn.Module._call_impl is other, modules.watch(model), enters(), enters()][2:]")
        self.assertEqual(shown(show, self.ANOTHER), "[0, True, None, 4, 4]")

    def test_calls_that_are_open_when_dynamo_traces_are_ended(self):
        show = ("(patch(), model[1].register_forward_pre_hook(lambda *_: modules.by_torch_s_hooks()), model(x), modules.entered() == k.NO_ID, "
                "enters())[3:]")
        self.assertEqual(shown(show, self.ANOTHER), "(True, 4)")

    def test_dynamo_keeps_torch_s_own_function(self):
        before = """
    def kept():
        import torch._dynamo.utils as one, torch._dynamo.variables.nn_module as other
        return [module.unpatched_nn_module_call_impl for module in (one, other)] == 2 * [nn.Module._call_impl]
"""
        show = "[kept(), modules.Wrapped.now is not None, {off}, modules.Wrapped.now is None, kept(), type(nn.Module._call_impl).__name__]"
        for off in ("modules.by_torch_s_hooks()", "_hooks.turn_off_all()"):
            with self.subTest(off):
                self.assertEqual(shown(show.format(off=off), before), "[True, True, None, True, True, 'function']")

    FAILS_TO_REPORT = ("failing = lambda error: (said.append(type(error).__name__), [][0]); "
                       "modules.calls = _core.ModuleCalls(session, torch.Tensor, None, {graph_task}, failing)")

    def test_what_the_report_of_a_failure_raises_does_not_reach_the_training(self):
        before = self.FAILS_TO_REPORT.format(graph_task="lambda: 1 / 0")
        self.assertEqual(shown("x.grad.tolist()", before), shown("x.grad.tolist()", "modules.watch = lambda model: None"))
        self.assertEqual(shown("set(said)", before), "{'ZeroDivisionError'}")

    def test_neither_does_it_after_an_exception_of_c_plus_plus(self):
        before = self.FAILS_TO_REPORT.format(graph_task="lambda: 'no number'")
        self.assertEqual(shown("(set(said), x.grad is None)", before), "({'RuntimeError'}, False)")

    # A collective that the hooks of the backward find to be complete; what is then called raises, or is no function of ours: an
    # exception of Python's, or of C++.
    LATE = ("Work = type('Work', (), {{'is_completed': lambda self: session.phase == k.BACKWARD, 'exception': lambda self: {error}}}); "
            "fail = lambda: session.wait_for(Work(), lambda failed: 1 / 0)")
    RAISED = (("'failed'", "ZeroDivisionError"), ("None", "RuntimeError"))

    def test_a_gradient_s_hook_that_raises_is_off_with_one_message_and_the_gradients_are_the_same(self):
        plain = shown("x.grad.tolist()", "modules.watch = lambda model: None")
        for error, name in self.RAISED:
            with self.subTest(name):
                self.assertEqual(shown("(x.grad.tolist(), said, session.spans.any(k.PASS_BACKWARD))", self.LATE.format(error=error) + "; fail()"),
                                 f"({plain}, [('a module', '{name}')], False)")

    def test_a_hook_of_a_group_s_backward_that_raises_is_off_and_the_call_returns(self):
        group = (self.LATE, "group = type('Group', (), {{'_training_state': None}})()",
                 "hooks = _core.Fsdp2Hooks(session, _core.Buckets(session), 1, 2, None, None, None, torch._C._current_graph_task_id, print)",
                 "hooks.describe(group, 9, _core.Parts([(0, 1)]), 4, 4, 0, 1, 0, 0)", "hooks.begin_backward = {begin}",
                 "adapter = _hooks.Adapter('groups', '', None)",
                 "call = _hooks.wrapped(adapter, 'pre_backward', lambda self: 'ran', hooks.pre_backward, hooks.backward_span)")
        for error, name in self.RAISED:
            with self.subTest(name):
                before = "; ".join(group).format(error=error, begin="modules.calls.group_begun")
                self.assertEqual(shown("(fail(), call(group), call(group), said, adapter.on)[1:]", before),
                                 f"('ran', 'ran', [('a module', '{name}')], True)")
        with self.subTest("a function in Python"):
            before = "; ".join(group).format(error="None", begin="lambda number: said.append(number) or 1 / 0")
            self.assertEqual(shown("(call(group), call(group), said, adapter.on)", before), "('ran', 'ran', [9], False)")

    def test_an_interrupt_reaches_the_training(self):
        interrupt = "lambda: (_ for _ in ()).throw(KeyboardInterrupt())"
        with self.assertRaisesRegex(AssertionError, "KeyboardInterrupt"):
            shown("said", f"modules.calls = _core.ModuleCalls(session, torch.Tensor, None, {interrupt}, modules._failed)")


if __name__ == "__main__":
    unittest.main()
