#!/usr/bin/env python3
"""Wrong arguments and wrong files: what, value, what to do.

Usage: errors_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import contextlib
import csv
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import unittest.mock

from command_line import BIN, ENV, ROOT, CommandTest, main, print_config, said, shardscope


class Errors(CommandTest):
    def refused(self, arguments, *words, temporary=None):
        """In one line, all of them."""
        with unittest.mock.patch.dict(ENV, {"TMPDIR": str(temporary)} if temporary else {}):
            printed = super().refused(arguments, *words)
        self.assertEqual(printed.count("\n"), 1, printed)
        return printed

    def test_no_verb(self):
        self.refused([], "--help")

    def test_unknown_option(self):
        self.refused(["run", "--frobnicate"], "run --help")

    def test_missing_configuration(self):
        self.refused(["run", "--config", "/nowhere/ds.json"], "/nowhere/ds.json")

    def test_broken_json_names_line_and_column(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{\n  "zero_optimization": {"stage": 3,,}\n}\n')
            file.flush()
            self.refused(["run", "--config", file.name], f"{file.name}:2:36: not valid JSON")

    def test_unknown_key_names_the_nearest(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "overlap_com": True}}, file)
            file.flush()
            self.refused(["run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--data", "golden:mlp"],
                         "overlap_com", "overlap_comm")

    def test_a_word_near_no_key_gets_no_hint(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"train_micro_batch_size_per_gpu": 1, "foo": 1}, file)
            file.flush()
            arguments = ["estimate", "all", "--model", "mlp", "--config", file.name]
            self.refused(arguments, "foo: unknown key", "docs/configuration.md")
            self.assertNotIn("did you mean", shardscope(*arguments).stderr)

    def test_groups_that_do_not_divide_the_ranks_are_found_before_the_run(self):
        for key in ("zero_hpz_partition_size", "mics_shard_size"):
            for said in (print_config({"stage": 3, key: 3}, 4), print_config({"stage": 3, key: 3}, 4, {"ranks_per_node": 3})):
                self.assertNotEqual(said.returncode, 0, key)
                self.assertIn("is 3, which does not divide the 4 ranks", said.stderr)
            self.assertEqual(print_config({"stage": 3, key: 2}, 4).returncode, 0, key)

    def test_the_configuration_is_printed_with_its_warnings(self):
        said = print_config({"stage": 1, "round_robin_gradients": True, "legacy_stage1": True, "zero_hpz_partition_size": 2}, 4)
        self.assertEqual(said.returncode, 0)
        self.assertTrue(said.stderr.startswith("shardscope: warning: zero_optimization.zero_hpz_partition_size: ignored"), said.stderr)
        self.assertEqual(json.loads(said.stdout)["zero_optimization"]["stage"], 1)

    def test_the_first_form_of_zero_optimization(self):
        said = print_config(True, 2, allgather_size=1000)
        self.assertIn("warning: zero_optimization: deprecated", said.stderr)
        zero = json.loads(said.stdout)["zero_optimization"]
        self.assertEqual((zero["stage"], zero["allgather_bucket_size"]), (1, 1000))
        self.assertEqual(json.loads(print_config(False, 2).stdout)["zero_optimization"]["stage"], 0)

    def test_messages_name_the_file_and_line_of_a_file_with_comments(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{ // one rank\n  "train_micro_batch_size_per_gpu": 1, /* small */ "zero_optimisation": {}\n}\n')
            file.flush()
            self.refused(["run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--data", "golden:mlp"],
                         f"{file.name}:2:52: zero_optimisation", "zero_optimization")

    def test_warnings_reach_the_user_and_are_no_failure(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write('{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2, "contiguous_gradients": false}}')
            file.flush()
            run = shardscope("run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--steps", "2")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("warning: ", run.stderr)
            self.assertIn("contiguous_gradients", run.stderr)
            # Of a run that fails it is not what is said last.
            self.refused(["run", "--config", file.name, "--ranks", "1", "--model", "mlp", "--data", "golden:gpt"], "golden:gpt")

    def test_missing_data(self):
        self.refused(["run", "--config", ROOT / "samples/stage0.json", "--data", "/nowhere/text"], "/nowhere/text")

    def test_pipes_are_refused_not_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            # Nobody writes to it: whoever opens it to read waits for ever.
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

    def test_what_is_written_from_a_recording_replaces_none(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            recording, other = folder / "run.zscope", folder / "other.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
            shutil.copy(recording, other)
            link = folder / "link.zscope"
            link.hardlink_to(recording)
            before = recording.read_bytes()
            for out in (recording, other, link):
                for form in ("chrome", "perfetto", "sqlite"):
                    self.refused(["export", recording, "--format", form, "-o", out], str(out), "is a recording", "another name")
                self.refused(["report", recording, "-o", out], str(out), "is a recording", "another name")
            for out in (recording, link):
                self.refused(["what-if", recording, "-o", out], str(out), "the recording that is read", "another name")
            self.assertEqual((before, before), (recording.read_bytes(), other.read_bytes()))
            # What was simulated can be again, a run that was made cannot.
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "1", "-o", other)
            self.assertNotEqual(before, other.read_bytes())
            with contextlib.closing(sqlite3.connect(other)) as made, made:
                made.execute("UPDATE run SET simulated = 0")
            kept = other.read_bytes()
            for verb in (["simulate", "--model", "mlp", "--ranks", "2", "--steps", "2"], ["what-if", recording]):
                self.refused([*verb, "-o", other], str(other), "a run that was made", "another name")
            self.assertEqual(kept, other.read_bytes())
            # Its own output is replaced, and somebody else's file.
            for _ in range(2):
                said("export", recording, "--format", "sqlite", "-o", folder / "a.sqlite", "--overwrite")
                said("export", recording, "-o", folder / "a.sqlite", "--overwrite")

    def test_what_a_run_leaves_is_not_replaced_unasked(self):
        run = ["run", "--config", ROOT / "samples/stage0.json", "--ranks", "1", "--model", "mlp", "--steps", "1"]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            recording, weights, log = folder / "a1.zscope", folder / "w.safetensors", folder / "cut.zscope-wal"
            said(*run, "--record", recording, "--save", weights)
            log.write_bytes(b"what a recorder that was killed had not folded in")
            before = recording.read_bytes(), weights.read_bytes()
            for option, path in (("--record", recording), ("--save", weights), ("--record", folder / "cut.zscope")):
                printed = self.refused([*run, option, path], f"{option} {path}", "another name", "--overwrite")
                self.assertIn("the log of a recording" if "cut" in path.name else "exists", printed)
            self.refused(["record", recording], str(recording), "exists", "--overwrite")
            self.refused(["collect", "--upstream", "tcp://127.0.0.1:1", "--record", recording], str(recording), "--overwrite")
            self.refused(["ab", *run[1:], "--set-b", "gradient_clipping=1", "--out", folder], f"--out {folder}", "a1.zscope",
                         "another folder", "--overwrite")
            self.refused(["consolidate", folder, recording], str(recording), "is a recording", "another name")
            self.refused(["view", recording, "--screenshot", recording], str(recording), "is a recording", "another name")
            direct = subprocess.run([BIN / "zero_train", "--model", "mlp", "--steps", "1", "--save", weights], env=ENV, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn(f"--save {weights}: exists; choose another name or give --overwrite", direct.stderr)
            self.assertEqual(before, (recording.read_bytes(), weights.read_bytes()))
            self.assertEqual({path.name for path in folder.iterdir()}, {recording.name, weights.name, log.name})
            said(*run, "--record", recording, "--save", weights, "--seed", "5", "--overwrite")
            self.assertNotEqual(before[0], recording.read_bytes())
            self.assertNotEqual(before[1], weights.read_bytes())
            # What is no recording is nobody's to replace, asked or not.
            self.refused([*run, "--record", weights, "--overwrite"], str(weights), "not a recording")

    def test_there_is_a_place_for_what_is_written(self):
        run = ["run", "--config", ROOT / "samples/stage0.json", "--ranks", "1", "--model", "mlp", "--steps", "1"]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            file = folder / "file"
            file.write_text("no folder")
            self.refused([*run, "--save", folder / "none" / "w"], f"--save {folder}/none/w", "no such folder", "make it")
            self.refused([*run, "--save", folder, "--overwrite"], f"--save {folder}", "is a folder", "name a file")
            self.refused(["run", "--config", folder], f"configuration {folder}", "is a folder; give a file")
            self.refused(["keys", file], str(file), "Not a directory", "choose a folder")
            recording, cut = folder / "run.zscope", folder / "cut.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
            whole = recording.read_bytes()
            cut.write_bytes(whole[:8000])
            self.refused(["info", cut], f"8000 of {len(whole)} bytes", "cut off", "a whole copy")
            # What failed leaves nothing to show.
            printed = shardscope("demo", "--headless", "--model", "nope", "--ranks", "1", "--out", folder / "demo")
            self.assertEqual((printed.returncode, printed.stdout), (2, ""))

    def test_a_number_that_is_none_is_told_without_its_range(self):
        self.refused(["simulate", "--layers", "-1"], "--layers: -1 is not a number above 0; see")
        self.refused(["estimate", "zero3", "--model", "mlp", "--nodes", "-1"], "shardscope estimate zero3 --help")

    def test_the_demo_is_shown_twice(self):
        with tempfile.TemporaryDirectory() as name:
            for _ in range(2):
                printed = said("demo", "--headless", "--model", "mlp", "--ranks", "1", "--steps", "1", "--out", name)
                self.assertIn("demo.zscope", printed)

    def test_a_key_that_was_set_is_told_as_such(self):
        config = ROOT / "samples" / "stage3.json"
        for verb in (["run", "--ranks", "1"], ["simulate", "--model", "mlp", "--ranks", "2"]):
            with tempfile.TemporaryDirectory() as folder:
                printed = self.refused([*verb, "--config", config, "--set", "foo.bar=3", "--steps", "1"],
                                    f"shardscope: {config} with --set: foo: unknown key", temporary=folder)
                self.assertNotIn(folder, printed)
                self.assertNotRegex(printed, r":\d+:\d+:")  # nobody has the file that these would be lines of
                # Nothing stays in the temporary folder.
                self.assertEqual([path for path in os.listdir(folder) if "shardscope" in path], [])

    def test_a_broken_file_is_named_with_its_place_though_a_key_is_set(self):
        with tempfile.TemporaryDirectory() as name:
            config, temporary = pathlib.Path(name) / "ds.json", pathlib.Path(name) / "tmp"
            temporary.mkdir()
            for text, place in ((b'{"gradient_clipping": 1}\0', ":1:25: not valid JSON: holds a zero byte"),
                                (b'{"gradient_clipping":\n  1e999}', ":2:3: gradient_clipping: is 1e999, which is beyond"),
                                (b'{"gradient_clipping": 1,\n "gradient_clipping": 2}', ": gradient_clipping: is given twice"),
                                (b'{"gradient_clipping" 1}', ":1:22: not valid JSON: syntax error")):
                config.write_bytes(text)
                for verb in (["run", "--ranks", "1"], ["simulate", "--model", "mlp", "--ranks", "2"],
                             ["estimate", "all", "--model", "mlp"]):
                    printed = self.refused([*verb, "--config", config, "--set", "seed=3"], f"shardscope: {config}", place,
                                        temporary=temporary)
                    self.assertNotIn(str(temporary), printed)
                    self.assertNotIn("json.exception", printed)
            config.write_text("{}")
            for value in ("1e999", "[1, -1e999]"):
                arguments = ["run", "--config", config, "--set", f"gradient_clipping={value}"]
                self.refused(arguments, f"--set gradient_clipping={value}: holds a number beyond")
                self.assertEqual(shardscope(*arguments).returncode, 2)

    def test_a_recorded_configuration_is_told_as_such(self):
        with tempfile.TemporaryDirectory() as name:
            recording, temporary = pathlib.Path(name) / "run.zscope", pathlib.Path(name) / "tmp"
            temporary.mkdir()
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "4", "-o", recording)
            printed = self.refused(["what-if", recording, "--set", "foo.bar=3"], "run.zscope's configuration with --set: foo: unknown key",
                                temporary=temporary)
            self.assertNotIn(str(temporary), printed)
            printed = self.refused(["what-if", recording, "--set", "optimizer.type.bar=3"], "--set optimizer.type.bar=3: optimizer.type is no object",
                                "run.zscope's configuration", temporary=temporary)
            self.assertNotIn(str(temporary), printed)

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

    def test_an_export_that_finds_no_room_names_its_file(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            said("simulate", "--model", "gpt-mini", "--ranks", "2", "--steps", "20", "-o", recording)
            for form in ("chrome", "perfetto"):
                self.refused(["export", recording, "--format", form, "-o", "/dev/full"], "/dev/full: not written",
                             "No space left")

    def test_ranks_and_steps_of_an_export(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
            kineto = ["export", recording, "--format", "kineto", "-o", pathlib.Path(folder) / "trace"]
            self.refused([*kineto, "--ranks", "0,5"], "--ranks 5", "no such rank")
            self.refused([*kineto, "--ranks", "1-0"], "--ranks 1-0", "0,4-7")
            self.refused([*kineto, "--steps", "one"], "--steps one", "10-20")
            self.refused(["export", recording, "--format", "kineto", "-o", recording], str(recording), "cannot make the folder")
            self.refused([*kineto, "--steps", "1000-2000"], "steps 1000-2000", "none of them", "0-1")
            said(*kineto, "--ranks", "1", "--steps", "0-1")
            self.assertEqual(["rank_1.json"], [file.name for file in (pathlib.Path(folder) / "trace").iterdir()])
            self.refused([*kineto, "--ranks", "0"], "trace: exists and is not empty", "--overwrite")
            self.refused([*kineto, "--ranks", "0", "--overwrite"], "trace: holds rank_1.json")

    def test_parts_of_an_export(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            recording = folder / "run.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "3", "-o", recording)
            for form in ("kineto", "otlp"):
                for more in (["--from", "0.1"], ["--to", "1ms"], ["--detail", "phases"]):
                    self.refused(["export", recording, "--format", form, "-o", folder / "no", *more], f"--format {form}", "--steps")
            for form in ("chrome", "perfetto", "csv", "sqlite"):
                export = ["export", recording, "--format", form, "-o", folder / "no"]
                self.refused([*export, "--ranks", "0,5"], "--ranks 5", "no such rank")
                self.refused([*export, "--steps", "7-9"], "--steps 7-9", "none of them")
                self.refused([*export, "--from", "soon"], "--from soon", "1.25s")
                self.refused([*export, "--from", "2ms", "--to", "1ms"], "--from 2ms --to 1ms", "nothing lies between")
                self.refused([*export, "--to", "0ns"], ": --to 0ns: nothing lies before it")
                self.refused([*export, "--from", "1000s"], "--from 1000s", "the recording ends at")
                self.refused([*export, "--from", "0", "--steps", "1"], "--from", "--steps")
                self.refused([*export, "--detail", "more"], "--detail", "phases")
                self.assertFalse((folder / "no").exists())
            said("export", recording, "--format", "csv", "-o", folder / "part", "--ranks", "1", "--steps", "1")
            with open(folder / "part/spans.csv", newline="") as file:
                spans = list(csv.DictReader(file))
            self.assertEqual({span["rank"] for span in spans}, {"1"})
            self.assertIn("ProfilerStep#1", {span["label"] for span in spans})
            self.assertNotIn("ProfilerStep#0", {span["label"] for span in spans})
            self.assertNotIn("ProfilerStep#2", {span["label"] for span in spans})
            with open(folder / "part/steps.csv", newline="") as file:
                self.assertEqual([row["step"] for row in csv.DictReader(file)], ["1"])
            with open(folder / "part/messages.csv", newline="") as file:
                self.assertIn("--ranks 1 --steps 1", [row["text"] for row in csv.DictReader(file)][-1])
            self.refused(["export", recording, "--format", "csv", "-o", folder / "part", "--ranks", "7", "--overwrite"], "--ranks 7")
            said("export", recording, "--format", "csv", "-o", folder / "part", "--overwrite")
            self.refused(["export", recording, "--format", "csv", "-o", folder / "part", "--ranks", "1", "--overwrite"], "bandwidths.csv",
                         "another folder")

    def test_what_was_written_before_is_replaced_only_when_asked(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            recording = folder / "run.zscope"
            said("simulate", "--model", "mlp", "--ranks", "2", "--steps", "2", "-o", recording)
            mine = folder / "mine"
            for command in (["report", recording], *(["export", recording, "--format", form]
                                                     for form in ("chrome", "perfetto", "sqlite", "otlp"))):
                mine.write_text("mine")
                self.refused([*command, "-o", mine], f"-o {mine}: exists", "--overwrite")
                self.assertEqual(mine.read_text(), "mine")
            said("report", recording, "-o", mine, "--overwrite")
            self.assertIn("<html", mine.read_text())
            said("report", recording)
            self.refused(["report", recording], "run.html: exists", "--overwrite")
            tables = folder / "tables"
            tables.mkdir()  # an empty folder is no loss
            said("export", recording, "--format", "csv", "-o", tables)
            self.refused(["export", recording, "--format", "csv", "-o", tables], "tables: exists and is not empty", "--overwrite")
            said("export", recording, "--format", "csv", "-o", tables, "--overwrite")
            said("export", recording, "-o", "/dev/null")

    def test_a_full_disk_takes_nothing_in_silence(self):
        for arguments in (["--help"], ["estimate", "zero2", "--params", "1000000"]):
            with open("/dev/full", "w") as full:
                result = subprocess.run([BIN / "shardscope", *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertIn("standard output", result.stderr)

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
