"""The parameter that an overflow of DeepSpeed comes from, in training whose gradients one hook makes infinite.

    tests/attach/run overflow_test
"""
import json
import subprocess
import unittest

import runs
from pairs import TRAIN, folder

NAME = "blocks.1.down.weight"


def setUpModule():
    folder()


class Overflow(unittest.TestCase):
    def trained(self, name, attach, *case):
        out, made = folder() / f"overflow-{name}.out", folder() / f"overflow-{name}.zscope"
        output = runs.finish(runs.start((runs.attach(made) if attach else []) + runs.torchrun(TRAIN, case[0], out, *case[1:])))
        return runs.results(out), made, output

    def test_the_parameter_is_named_and_training_is_the_same(self):
        for case in (("zero2", "dtype=bf16", "offload=1"), ("zero2", "dtype=fp16"), ("zero3", "dtype=fp16"), ("zero3", "dtype=fp16", "offload=1")):
            with self.subTest(case=case):
                case = (*case, f"overflow={NAME}")
                plain = self.trained("plain", False, *case)[0]
                attached, made, output = self.trained("".join(case[:3]).replace("=", "").replace(".", ""), True, *case)
                self.assertEqual(plain, attached)
                self.assertNotIn("is off", output)
                recording = runs.read(made)
                found = [(rank, event) for rank in (0, 1) for event in recording.of(rank, "gradient_not_finite")]
                self.assertEqual(len(found), 1, found)
                (rank, event), = found
                param = next(row for row in recording.params if row["name"] == NAME)
                # The last element is in the last partition that has any of it.
                self.assertEqual(rank, 1)
                self.assertEqual((int(event["a"]), int(event["b"])), (1, int(param["param"])))
                self.assertEqual((int(event["code"]), int(event["v0"]), int(event["v1"])), (1, 1, 0))
                findings = json.loads(subprocess.run([runs.SHARDSCOPE, "findings", "--json", made], check=True, capture_output=True).stdout)
                evidence = next(one["evidence"] for one in findings if one["id"] == "overflow")
                self.assertIn(f"was that of {NAME} (module blocks.1.down) on rank 1: 1 element infinite", evidence)


if __name__ == "__main__":
    unittest.main()
