#!/usr/bin/env python3
"""Wrong arguments and wrong files: what, value, what to do.

Usage: errors_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import unittest.mock

from command_line import BIN, ENV, ROOT, OneLineErrors, main, said, shardscope


class Errors(OneLineErrors):
    def test_no_verb(self):
        self.refused([], "--help")

    def test_unknown_option(self):
        self.refused(["run", "--frobnicate"], "run --help")

    def test_missing_data(self):
        self.refused(["run", "--config", ROOT / "samples/stage0.json", "--data", "/nowhere/text"], "/nowhere/text")

    def test_pipes_are_refused_not_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            # It has no writer: opening it for reading blocks for ever.
            pipe = pathlib.Path(folder) / "pipe.json"
            os.mkfifo(pipe)
            what = "is a pipe or a device, not a file; write it to a file first"
            run = ["run", "--config", ROOT / "samples/stage0.json", "--ranks", "1", "--steps", "1"]
            mlp = ["--model", "mlp", "--data", "golden:mlp"]
            for arguments in (["run", "--config", pipe, "--ranks", "1", *mlp], [*run, "--model", pipe],
                              [*run, "--model", "gpt-mini", "--data", pipe],
                              [*run, "--model", "mlp", "--data", f"{pipe},{pipe}"], [*run, *mlp, "--init", pipe],
                              ["simulate", "--model", pipe, "-o", f"{folder}/run.zscope"],
                              ["simulate", "--model", "mlp", "--hardware", pipe, "-o", f"{folder}/run.zscope"],
                              ["estimate", "zero3", "--model", pipe], ["estimate", "all", "--model", "mlp", "--config", pipe],
                              ["summary", pipe]):
                with self.subTest(arguments=arguments):
                    self.refused(arguments, str(pipe), what)

    def test_unknown_model_lists_the_known(self):
        self.refused(["run", "--config", ROOT / "samples/stage0.json", "--ranks", "1", "--model", "gpt9"], "gpt9", "gpt-mini")

    def test_missing_recording(self):
        for verb in ("info", "summary", "findings", "report"):
            self.refused([verb, "/nowhere/run.zscope"], "/nowhere/run.zscope")

    def test_not_a_recording(self):
        with tempfile.NamedTemporaryFile(suffix=".zscope") as file:
            file.write(b"this is not a recording" * 100)
            file.flush()
            self.refused(["summary", file.name], file.name)

    def test_a_number_that_is_none_is_named_without_its_range(self):
        self.refused(["simulate", "--layers", "-1"], "--layers: -1 is not a number above 0; see")
        self.refused(["estimate", "zero3", "--model", "mlp", "--nodes", "-1"], "shardscope estimate zero3 --help")

    def test_a_wrong_command_line_ends_with_2_everywhere_and_a_missing_file_with_1(self):
        none = "/nowhere/run.zscope"
        config = ["--config", ROOT / "samples/stage0.json"]
        wrong = [[], ["frobnicate"], ["run"], ["run", "--frobnicate"], ["run", *config, "--ranks", "many"], ["run", *config, "--ranks", "0"],
                 ["run", *config, "--steps", "0"], ["run", *config, "--detail", "all"], ["run", *config, "--device", "tpu"],
                 ["run", *config, "--set", "stage"], ["run", *config, "--set", "zero_optimization.stage.deep=1"],
                 ["run", *config, "--listen", "5711"], ["run", *config, "--listen", "tcp://127.0.0.1:99999"], ["run", *config, "--keep", "2"],
                 ["run", *config, "--ranks", "1", "--model", "gpt9"], ["run", *config, "--ranks", "2", "--model", "gpt9"],
                 ["run", *config, "--init", "a", "--resume", "b"], ["run", *config, "--log", "a"], ["ab", *config], ["ab", *config, *config, *config],
                 ["ab", *config, "--repeat", "0"], ["ab"], ["ab", "--command", "true"],
                 ["ab", "--command", "true", "--command", "true", "--command-a", "true"], ["ab", *config, "--sweep", "zero_optimization.stage"],
                 ["ab", *config, "--sweep", "zero_optimization.stage=1"], ["ab", *config, "--sweep", "zero_optimization.stage=1,"],
                 ["ab", *config, "--sweep", "=1,2"], ["ab", *config, "--sweep", "zero_optimization.stage=1,1"], ["ab", "--sweep", "a=1,2"],
                 ["ab", *config, "--sweep", "a=1,2", "--set-b", "b=1"], ["ab", "--config", "a", "b", "c", "--set-a", "b=1"], ["ab", "--command-a", "true"], ["ab", "--command-b", "true"],
                 ["ab", *config, "--command-a", "true", "--command-b", "true"], ["record"], ["record", "/nowhere/a.zscope", "--listen", "5711"],
                 ["collect"], ["collect", "--upstream", "5711"], ["collect", "--upstream", "tcp://127.0.0.1:5711"], ["info"], ["info", "a", "b"],
                 ["compare", none], ["compare", *[none] * 27], ["export", none], ["export", none, "-o", "a", "--format", "pdf"], ["keys"],
                 ["simulate", "--model", "gpt9"], ["simulate", "--straggler", "fast"], ["simulate", "--straggler", "9:1.5"], ["simulate", "--hardware", "abacus"],
                 ["simulate", "--steps", "-1"], ["simulate", "--jitter", "nan"], ["simulate", "--connect", "5711"], ["what-if"],
                 ["what-if", none, "--ranks", "0"], ["estimate"], ["estimate", "zero4"], ["estimate", "zero2"], ["estimate", "zero2", "--params", "1.5"],
                 ["estimate", "all", "--model", "gpt9"], ["estimate", "activations", "--model", "mlp"], ["view"], ["view", "a", "b", "c"],
                 ["view", none, "--screenshot", "a.png", "--theme", "blue"], ["view", none, "--screenshot", "a.png", "--layout", "tall"],
                 ["view", "tcp://127.0.0.1", "--screenshot", "a.png"], ["consolidate", "a"]]
        for arguments in wrong:
            self.assertEqual(shardscope(*arguments).returncode, 2, arguments)
        for program, arguments in (("zero_train", ["--frobnicate"]), ("zero_train", ["--steps", "0"]), ("zero_train", ["--model", "gpt9"]),
                                   ("zero_train", ["--model", "mlp", "--detail", "all"]), ("zero_train", ["--model", "mlp", "--device", "tpu"]),
                                   ("zero_train", ["--consolidate", "a"]), ("zero_simulate", ["--ranks", "0"]), ("zero_simulate", ["--model", "gpt9"]),
                                   ("shardscope-gui", ["--frobnicate"]), ("shardscope-gui", ["a", "b", "c"]), ("shardscope-gui", ["--screenshot", "a.png"])):
            done = subprocess.run([BIN / program, *arguments], env=ENV, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2, (program, arguments, done.stderr))
            self.assertTrue(done.stderr.startswith("shardscope: "), (program, arguments, done.stderr))
        for arguments in (["info", none], ["compare", none, none], ["view", none, "--screenshot", "a.png"], ["what-if", none],
                          ["run", "--config", "/nowhere.json"], ["run", *config, "--data", "/nowhere"], ["estimate", "all", "--model", "/nowhere.json"],
                          ["simulate", "--model", "/nowhere.json"], ["simulate", "--hardware", "/nowhere.json"], ["report", none]):
            self.assertEqual(shardscope(*arguments).returncode, 1, arguments)

    def test_a_value_that_would_be_read_as_something_else(self):
        run = ["run", "--config", ROOT / "samples/stage0.json", "--ranks", "1", "--model", "mlp", "--steps", "1"]
        # An unset variable of a shell: nothing was recorded, with exit code 0.
        for arguments in ([*run, "--record", ""], [*run, "--set", ""], ["view", "a.zscope", "--panel", ""], ["simulate", "--seed", ""],
                          ["attach", "--record", "", "--", "true"], ["estimate", "zero2", "--params", "5", "--model", ""]):
            self.refused(arguments, ": its value is empty; give one, or leave the option out; see `shardscope ")
            self.assertEqual(shardscope(*arguments).returncode, 2)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            try:
                for arguments in ([*run, "--record", "--overwrite"], ["attach", "--record", "--", "true"], ["simulate", "-o", "--help"]):
                    self.refused(arguments, "its value is missing before --")
                    self.assertEqual(shardscope(*arguments).returncode, 2)
                self.assertEqual(os.listdir(name), [])
            finally:
                os.chdir(before)
        for option, value, word in (("--seed", "-7", "below 0"), ("--seed", "99999999999999999999999", "beyond"),
                                    ("--steps", "99999999999999999999999", "beyond"), ("--steps", "010", "begins with a 0")):
            self.refused([*run, option, value], f"{option}: {value} ", word)
            done = subprocess.run([BIN / "zero_train", "--model", "mlp", option, value], env=ENV, text=True, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            done = subprocess.run([BIN / "zero_simulate", "--model", "mlp", option, value], env=ENV, text=True, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2, done.stderr)
        done = subprocess.run([BIN / "shardscope-gui", "--scale", "much", "a.zscope"], env=ENV, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 2)

    def test_a_collector_that_would_pass_on_to_itself(self):
        self.refused(["collect", "--upstream", "tcp://127.0.0.1:5711"], "--upstream tcp://127.0.0.1:5711", "--listen")
        self.refused(["collect", "--upstream", "tcp://localhost:7000", "--listen", "tcp://127.0.0.1:7000"], "listens itself")

    def test_a_jitter_that_is_none(self):
        for value in ("-0.1", "1.5", "much"):
            self.refused(["simulate", "--model", "mlp", "--jitter", value], "--jitter", value, "from 0 to 1")

    def test_numbers_that_are_none_or_beyond_what_is_computed(self):
        simulate = ["simulate", "--ranks", "2", "--steps", "2", "--config", ROOT / "samples/stage3.json", "--model", "mlp"]
        for option in (["simulate", "--jitter"], ["watch", "tcp://127.0.0.1:5711", "--interval"], ["why", "run.zscope", "--quiet"],
                       ["why", "run.zscope", "--wait"], ["what-if", "run.zscope", "--matrix-tflops"],
                       ["estimate", "activations", "--model", "gpt2", "--sequence", "1", "--micro-batch"]):
            for value in ("nan", "inf"):
                self.refused([*option, value], f"{option[-1]}: {value} is not a finite number")
                self.assertEqual(shardscope(*option, value).returncode, 2)
        self.refused(["estimate", "activations", "--model", "gpt2", "--micro-batch", "1e300", "--sequence", "1e300"], "beyond what is counted")
        self.refused(["why", "run.zscope", "--quiet", "0"], "--quiet: 0 is not a number above 0")
        for value in ("0:inf", "0:nan", "0:-1"):
            self.refused([*simulate, "--straggler", value], f"--straggler {value}: write RANK:FACTOR")
        for program in ("zero_train", "zero_simulate"):
            done = subprocess.run([BIN / program, "--model", "mlp", "--steps", "0"], env=ENV, text=True, stderr=subprocess.PIPE)
            self.assertIn("--steps: 0 is not a number above 0", done.stderr)
        # Beyond 64 bits of nanoseconds a straggler was as fast as the others.
        self.refused([*simulate, "--straggler", "0:1e300"], "rank 0 would take a day or more for one operation")
        for micro_batch in (2**40, 2**37):
            self.refused([*simulate[:-1], "gpt2", "--set", f"train_micro_batch_size_per_gpu={micro_batch}"],
                         f"train_micro_batch_size_per_gpu: {micro_batch} samples through model gpt2", "2^50 elements")
        # Said before the configuration, which is not there: nothing is started if it is not said.
        self.refused(["run", "--config", "/nowhere.json", "--ranks", "100000"], "--ranks 100000: at most ", "simulate")
        with tempfile.TemporaryDirectory() as name:
            recording, scratch = pathlib.Path(name) / "run.zscope", pathlib.Path(name) / "scratch"
            scratch.mkdir()
            said(*simulate, "-o", recording)
            for option, value in (("--link", "inf"), ("--link", "nan:1"), ("--link", "1:inf"), ("--link", "1:-1"), ("--node-link", "inf:1"),
                                  ("--host-link", "inf:1")):
                with unittest.mock.patch.dict(ENV, {"TMPDIR": str(scratch)}):
                    done = shardscope("what-if", recording, option, value)
                self.assertEqual((done.returncode, done.stderr),
                                 (2, f"shardscope: {option} {value}: not GB_PER_S or GB_PER_S:LATENCY_US, for example 12.5:20\n"))
            for value in ("1e-300:1", "1:1e300"):
                self.refused(["what-if", recording, "--link", value], "a day or more for one operation", temporary=scratch)
            printed = self.refused(["what-if", recording, "--ranks-per-node", "65537"], "--ranks-per-node", "65536", temporary=scratch)
            self.assertNotIn(str(scratch), printed)
            for limit, word in (("step_ms=0x5%", "not NAME=NUMBER%"), ("step_ms=5%,step_ms=6%", "given twice")):
                self.refused(["check", recording, "--baseline", recording, "--fail-over", limit], "--fail-over", word)

    def test_unknown_verb(self):
        self.refused(["frobnicate"], "frobnicate", "no such verb", "--help")
        self.refused(["sumary", "run.zscope"], "sumary: no such verb; did you mean summary?")
        self.refused(["estimate", "zero22"], "estimate zero22: no such verb; did you mean zero2?")

    def test_words_that_nothing_takes_and_what_was_meant(self):
        self.refused(["summary", "run.zscope", "--jsn"], "shardscope: --jsn: unknown; did you mean --json?; see `shardscope summary --help`")
        self.refused(["run", "--modle", "mlp", "--config", "x"], "--modle mlp: unknown; did you mean --model?")
        self.refused(["run", "--config", "x", "--modle=mlp"], "did you mean --model?")
        self.assertNotIn("did you mean", self.refused(["run", "--config", "x", "--frobnicate"], "--frobnicate: unknown"))
        self.refused(["info", "a.zscope", "b", "c", "d"], "shardscope: b c d: not expected")
        self.refused(["run", "--config", "x", "--model", "mlp", "--model", "gpt2"], "--model is given twice; give it once")
        self.refused(["run", "--config", "x", *["--model", "mlp"] * 3], "--model is given 3 times; give it once")

    def test_help_is_in_words(self):
        verbs = re.findall(r"^  ([a-z-]+) +[A-Z]", said("--help").partition("Subcommands:")[2], re.M)
        self.assertIn("what-if", verbs)
        for verb in verbs:
            shown = said(verb, "--help")
            for leftover in ("{", "}", "(0x)", " in [", "UINT", "FLOAT", "TEXT:", "REQUIRED", "Excludes:"):
                self.assertNotIn(leftover, shown, verb)
        self.assertIn("--detail steps|phases|modules|params|kernels (default params)", said("run", "--help"))
        self.assertIn("--moments N from 0 to 1000 (default 10) (with --record)", said("run", "--help"))
        self.assertIn("[source...]", said("view", "--help"))

    def test_help_has_every_panel_and_every_hardware(self):
        panels = {"workspace"}
        for file in (ROOT / "app/gui/views").glob("*.cpp"):
            panels.update(re.findall(r'name\(\) const override \{\s*return "(\w+)";', file.read_text()))
        shown = re.search(r"workspace is the whole window: ([a-z_, \n]+)", said("view", "--help")).group(1)
        self.assertEqual(set(re.findall(r"[a-z_]{3,}", shown)), panels)
        hardware = sorted(file.stem for file in (ROOT / "assets/hardware").glob("*.json"))
        self.assertIn(", ".join(hardware), said("simulate", "--help"))

    def test_a_word_that_is_no_verb_of_a_verb(self):
        self.refused(["estimate", "zero4"], "estimate zero4", "estimate --help")

    def test_an_endpoint_that_is_none(self):
        self.refused(["record", "/nowhere/run.zscope", "--listen", "5711"], "'5711'", "tcp://HOST:PORT")

    def test_occupied_port(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused(["run", "--config", ROOT / "samples/stage0.json", "--listen", f"tcp://127.0.0.1:{port}"], str(port))

    def test_view_names_an_unknown_layout_and_takes_known_ones_in_any_case(self):
        self.refused(["view", "a.zscope", "--screenshot", "a.png", "--layout", "tall"], "--layout", "tall")

    def test_estimate_without_what_it_needs(self):
        self.refused(["estimate"], "estimate --help")
        self.refused(["estimate", "zero2"], "--params", "--model")
        self.refused(["estimate", "zero2", "--params", "1.5"], "--params 1.5", "whole number")
        self.refused(["estimate", "zero2", "--params", "5", "--nodes", "0"], "--nodes", "above 0")
        self.refused(["estimate", "zero2", "--params", "5", "--formula", "mine"], "deepspeed-0.19")
        self.refused(["estimate", "zero3", "--params", "5"], "--largest-layer")
        self.refused(["estimate", "zero3", "--params", "5", "--largest-layer", "6"], "--largest-layer 6")
        self.refused(["estimate", "zero3", "--model", "mlp", "--params", "5"], "--model mlp", "leave out")
        self.refused(["estimate", "all", "--model", "mlp", "--set", "a=1"], "--set a=1", "--config")
        self.refused(["estimate", "activations", "--model", "mlp"], "attention")
        self.refused(["estimate", "infinity", "--layers", "3"], "--hidden")
        self.refused(["estimate", "infinity", "--layers", "1e300", "--hidden", "8", "--heads", "1"], "--layers", "100,000 trillion")
        self.refused(["estimate", "zero2", "--params", "0"], "--params 0", "above 0")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 5}}, file)
            file.flush()
            self.refused(["estimate", "all", "--model", "mlp", "--config", file.name], file.name, "stage")

    def test_view_without_display(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(["view", f"{folder}/none.zscope"], "display")
            self.refused(["view", f"{folder}/none.zscope", "--screenshot", f"{folder}/a.png"], "none.zscope")


if __name__ == "__main__":
    main()
