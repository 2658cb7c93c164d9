#!/usr/bin/env python3
"""Wrong configurations: what, value, file and line, what to do.

Usage: configuration_errors_test.py BIN_FOLDER SOURCE_ROOT [unittest arguments]
"""
import json
import os
import pathlib
import tempfile

from command_line import ROOT, OneLineErrors, main, print_config, said, shardscope


class ConfigurationErrors(OneLineErrors):
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

    def test_a_key_that_was_set_is_named_as_such(self):
        config = ROOT / "samples" / "stage3.json"
        for verb in (["run", "--ranks", "1"], ["simulate", "--model", "mlp", "--ranks", "2"]):
            with tempfile.TemporaryDirectory() as folder:
                printed = self.refused([*verb, "--config", config, "--set", "foo.bar=3", "--steps", "1"],
                                    f"shardscope: {config} with --set: foo: unknown key", temporary=folder)
                self.assertNotIn(folder, printed)
                self.assertNotRegex(printed, r":\d+:\d+:")  # the user has no file with these lines
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

    def test_a_recorded_configuration_is_named_as_such(self):
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


if __name__ == "__main__":
    main()
