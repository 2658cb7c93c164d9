"""What ranks communicate is explained to the last element: expression + named extras = measured, for every stage,
world and setting that changes the volume. Real ranks, read back from the recording."""
import pathlib
import tempfile
import unittest

from command_line import ROOT, main, read, summary_of_run


def communicated(folder, stage, ranks, model="mlp", steps=3, **settings):
    more = [part for key, value in settings.items() for part in ("--set", f"{key.replace('__', '.')}={value}")]
    return summary_of_run(pathlib.Path(folder) / "run.zscope", "--config", ROOT / f"samples/stage{stage}.json", "--ranks", ranks,
                          "--model", model if isinstance(model, pathlib.Path) else ROOT / f"samples/models/{model}.json", "--data",
                          "golden:gpt" if str(model).startswith("gpt") else "golden:mlp", "--steps", steps, *more)["comm"]


def advised_volume(folder):
    """Changes of the finding volume_above of the run in this folder; None: it was not found."""
    for finding in read("findings", pathlib.Path(folder) / "run.zscope"):
        if finding["id"] == "volume_above" and "all-reduced gradients" in finding["title"]:
            return [f"{change['key']}={change['value']}" for change in finding["changes"]]
    return None


class Volume(unittest.TestCase):
    def check(self, *causes, **how):
        """Runs it; exactly these causes are named, and nothing is left over."""
        with tempfile.TemporaryDirectory() as folder:
            comm = communicated(folder, **how)
            self.advised = advised_volume(folder)
        said = (how, comm["expression"], comm["extras"], comm["elements_per_step"], comm["unexplained_elements_per_step"])
        self.assertEqual(comm["unexplained_elements_per_step"], 0, said)
        self.assertEqual(set(comm["extras"]), set(causes), said)
        self.assertEqual(comm["expected_elements_per_step"] + sum(comm["extras"].values()), comm["elements_per_step"], said)
        return comm

    def test_every_stage_and_world(self):
        no_limits = {"zero_optimization__stage3_prefetch_bucket_size": 0}
        for stage in (0, 1, 2, 3):
            for ranks in (1, 2, 3, 4, 5):
                causes = ["padding"] if stage > 0 and ranks > 1 else []
                if stage in (1, 2) and ranks == 1:
                    causes = ["padding"]  # to an even number of elements
                comm = self.check(*causes, stage=stage, ranks=ranks, gradient_accumulation_steps=1 + ranks % 2, **no_limits)
                padding = comm["extras"].get("padding", 0)
                if stage in (1, 2):  # the all-gather alone carries it: flat buffers of a multiple of 2 n elements
                    self.assertEqual(padding, -100417 % (2 * ranks))

    def test_reductions_that_cost_more(self):
        for stage in (1, 2, 3):
            self.check("all-reduced gradients", "padding", stage=stage, ranks=3, zero_optimization__reduce_scatter="false",
                       zero_optimization__stage3_prefetch_bucket_size=0)
            self.assertEqual(self.advised, ["zero_optimization.reduce_scatter=true"] if stage < 3 else [])
        comm = self.check("all-reduced gradients", "padding", stage=2, ranks=2, shardscope__compat="deepspeed")
        self.assertEqual(comm["extras"]["all-reduced gradients"], 100417)
        for limit in (5e8, 30_000, 7001):  # one communication, several: parameters that lie in two of them
            for more in ({}, {"zero_optimization__reduce_scatter": "false"}):  # which has no effect there
                self.check("padding", stage=1, ranks=3, zero_optimization__legacy_stage1="true",
                           zero_optimization__max_elements_per_comm=int(limit), **more)
        self.check("padding", stage=1, ranks=2, shardscope__compat="notes")

    def test_a_tied_weight_is_gathered_again_for_the_head(self):
        limits = {"zero_optimization__stage3_prefetch_bucket_size": 0, "zero_optimization__stage3_max_live_parameters": 1}
        comm = self.check("padding", "shared weights", stage=3, ranks=4, model="gpt_tied", **limits)
        # 59 rows of 30: once more in forward and once more in backward.
        self.assertEqual(comm["extras"]["shared weights"], 2 * 59 * 30)
        # Read as an external parameter of the root, it stays from the root's beginning to its end.
        self.check("padding", stage=3, ranks=4, model="gpt_functional", **limits)

    def test_what_stays_is_a_saving(self):
        comm = self.check("padding", "persistent parameters", stage=3, ranks=3,
                          zero_optimization__stage3_param_persistence_threshold=300,
                          zero_optimization__stage3_prefetch_bucket_size=0)
        small = 64 + 3 * (64 + 64 + 256 + 64) + 64 + 1  # biases, layer norms, the output layer
        self.assertEqual(comm["extras"]["persistent parameters"], -small)
        self.check("kept between uses", "padding", stage=3, ranks=2,
                   zero_optimization__stage3_max_reuse_distance=10_000_000)
        self.check("repeated uses", "padding", stage=3, ranks=2, model="mlp_reuse",
                   zero_optimization__stage3_prefetch_bucket_size=0)

    def test_zero_plus_plus_and_mics(self):
        prefetch = {"zero_optimization__stage3_prefetch_bucket_size": 0}
        for settings in ({"zero_quantized_weights": "true"}, {"mics_shard_size": 2},
                         {"zero_hpz_partition_size": 2}, {"stage3_use_all_reduce_for_fetch_params": "true"}):
            named = {f"zero_optimization__{key}": value for key, value in settings.items()}
            self.check(stage=3, ranks=4, **named, **prefetch)
        self.check(stage=3, ranks=4, zero_optimization__zero_quantized_weights="true",
                   zero_optimization__stage3_param_persistence_threshold=300, **prefetch)
        self.check(stage=3, ranks=4, zero_optimization__zero_quantized_gradients="true", shardscope__ranks_per_node=2,
                   **prefetch)

    def test_what_hpz_keeps_and_repeats_has_the_cost_of_its_way(self):
        """The forward's gathers carry scales, or twice the elements, and the backward's from copies do not."""
        for dear in ("zero_quantized_weights", "stage3_use_all_reduce_for_fetch_params"):
            both = {"zero_optimization__zero_hpz_partition_size": 2, f"zero_optimization__{dear}": "true"}
            self.check("kept between uses", stage=3, ranks=4, zero_optimization__stage3_max_reuse_distance=10_000_000, **both)
            self.check("repeated uses", stage=3, ranks=2, model="mlp_reuse",
                       zero_optimization__stage3_prefetch_bucket_size=0, **both)
            # What the last modules of the forward prefetch comes from all ranks in the notes.
            self.check("kept between uses", "other copies", stage=3, ranks=4, shardscope__compat="notes",
                       zero_optimization__stage3_max_reuse_distance=0, zero_optimization__stage3_max_live_parameters=30_000,
                       **both)

    def test_what_is_skipped_is_not_reduced_at_its_whole_cost(self):
        """One block of mlp_visit does not run in one of the steps: its gradients would have travelled with padding."""
        for more in ({"zero_hpz_partition_size": 3}, {"zero_hpz_partition_size": 3, "reduce_scatter": "false"},
                     {"zero_quantized_weights": "true"}):
            named = {f"zero_optimization__{key}": value for key, value in more.items()}
            self.check("skipped modules", "no gradient", stage=3, ranks=3, model="mlp_visit", steps=5,
                       zero_optimization__stage3_prefetch_bucket_size=0, **named)

    def test_what_no_pass_used_was_not_kept(self):
        """One of five steps skips a block: it is gathered in the others, and the mean over four says so."""
        how = {"stage": 3, "ranks": 2, "model": "mlp_visit", "steps": 5}
        comm = self.check("skipped modules", "no gradient", "padding", zero_optimization__stage3_prefetch_bucket_size=0, **how)
        block = 2 * 64 + 64 * 256 + 256 + 256 * 64 + 64
        self.assertEqual(comm["extras"]["skipped modules"], -2 * block / 4)
        self.assertEqual(comm["extras"]["no gradient"], -block / 4)

    def test_below_everything_trained_there_is_no_backward(self):
        """The first layer is frozen: gathered in forward, and backward ends above it."""
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "frozen_first.json"
            text = (ROOT / "samples/models/mlp.json").read_text()
            first = '"name": "inp", '
            self.assertIn(first, text)
            model.write_text(text.replace(first, first + '"trainable": false, '))
            comm = self.check("no backward", "padding", stage=3, ranks=2, model=model, gradient_accumulation_steps=2,
                              zero_optimization__stage3_prefetch_bucket_size=0)
        self.assertEqual(comm["extras"]["no backward"], -2 * (64 * 10 + 64))


if __name__ == "__main__":
    main()
