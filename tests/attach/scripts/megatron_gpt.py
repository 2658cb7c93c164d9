"""A small GPT trained by Megatron-Core, its data parallelism and its optimizers, as a user's script would write it:
megatron_gpt.py OUT [name=value ...]. Writes OUT.RANK as tests/attach/train.py does. Knows nothing of Shardscope.
"""
import functools
import gc
import json
import os
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import cuda_on_cpu  # noqa: E402

cuda_on_cpu.install()

import torch.distributed as dist  # noqa: E402
from megatron.core import parallel_state, tensor_parallel  # noqa: E402
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads  # noqa: E402
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec  # noqa: E402
from megatron.core.models.gpt.gpt_model import GPTModel  # noqa: E402
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer  # noqa: E402
from megatron.core.pipeline_parallel.schedules import get_forward_backward_func  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402

from train import census, digest  # noqa: E402

LAYERS, WIDTH, VOCABULARY, LENGTH, BATCH = 2, 32, 64, 16, 2
BUCKET = 20000  # elements
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def options_of(arguments):
    options = {"steps": 3, "accumulate": 2, "dtype": "fp32", "distributed": 1, "overlap": 0, "census": 0, "pipeline": 1, "evaluate": 0,
               "scale": 0.0}
    for argument in arguments:
        name, value = argument.split("=")
        options[name] = type(options[name])(value)
    return options


def model_of(options):
    config = TransformerConfig(num_layers=LAYERS, hidden_size=WIDTH, num_attention_heads=4, use_cpu_initialization=True,
                               attention_dropout=0.0, hidden_dropout=0.0, pipeline_dtype=TYPES[options["dtype"]],
                               pipeline_model_parallel_size=options["pipeline"], params_dtype=TYPES[options["dtype"]],
                               bf16=options["dtype"] == "bf16", fp16=options["dtype"] == "fp16",
                               gradient_accumulation_fusion=False, bias_dropout_fusion=False, masked_softmax_fusion=False)
    model = GPTModel(config=config, transformer_layer_spec=get_gpt_layer_local_spec(), vocab_size=VOCABULARY,
                     max_sequence_length=LENGTH, pre_process=parallel_state.is_pipeline_first_stage(),
                     post_process=parallel_state.is_pipeline_last_stage())
    return config, model.to(TYPES[options["dtype"]])


def batches(rank, first=0):
    generator = torch.Generator().manual_seed(1000 * first + rank)
    while True:
        tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=generator)
        yield tokens[:, :-1], tokens[:, 1:]


def forward_step(losses, data, model):
    tokens, labels = next(data)
    positions = torch.arange(LENGTH).expand(BATCH, LENGTH)
    mask = torch.ones(BATCH, 1, LENGTH, LENGTH).tril() < 0.5
    return model(tokens, positions, mask, labels=labels), functools.partial(loss_of, losses)


def loss_of(losses, output):
    loss = output.float().mean()
    losses.append(loss.item().hex())
    return loss, {"loss": loss.detach()}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    out, options = sys.argv[1], options_of(sys.argv[2:])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    parallel_state.initialize_model_parallel(pipeline_model_parallel_size=options["pipeline"])
    torch.manual_seed(7)
    tensor_parallel.random.get_cuda_rng_tracker = tensor_parallel.get_cuda_rng_tracker = Dice
    config, model = model_of(options)
    overlap, distributed = bool(options["overlap"]), bool(options["distributed"])
    model = DistributedDataParallel(config, DistributedDataParallelConfig(
        use_distributed_optimizer=distributed, overlap_grad_reduce=overlap, overlap_param_gather=overlap and distributed,
        bucket_size=BUCKET, grad_reduce_in_fp32=options["dtype"] == "bf16"), model)
    scaling = {"initial_loss_scale": options["scale"], "loss_scale_window": 1000.0, "hysteresis": 1} if options["scale"] else {}
    optimizer = get_megatron_optimizer(OptimizerConfig(
        optimizer="adam", lr=1e-3, weight_decay=0.1, bf16=config.bf16, fp16=config.fp16, params_dtype=config.params_dtype,
        use_distributed_optimizer=distributed, overlap_param_gather=overlap and distributed, clip_grad=1.0, **scaling), [model])
    config.grad_scale_func, config.finalize_model_grads_func = optimizer.scale_loss, finalize_model_grads
    if overlap:
        config.no_sync_func = model.no_sync
    train = get_forward_backward_func()
    data, held_out, losses, norms, bytes_held = batches(rank), batches(rank, 1), [], [], []
    for step in range(options["steps"]):
        model.zero_grad_buffer()
        optimizer.zero_grad()
        train(forward_step_func=functools.partial(forward_step, losses), data_iterator=data, model=[model],
              num_microbatches=options["accumulate"], seq_length=LENGTH, micro_batch_size=BATCH, forward_only=False)
        succeeded, norm, _ = optimizer.step()
        norms.append(float(norm).hex() if succeeded else "skipped")
        if options["census"]:
            gc.collect()
            bytes_held.append(census())
        if options["evaluate"] and step == 1:
            model.eval()
            with torch.no_grad():
                train(forward_step_func=functools.partial(forward_step, []), data_iterator=held_out, model=[model],
                      num_microbatches=2, seq_length=LENGTH, micro_batch_size=BATCH, forward_only=True)
            model.train()
    if overlap and distributed:
        model.disable_forward_pre_hook()  # the last step's parameters are gathered
    with open(f"{out}.{rank}", "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "norms": norms, "weights": digest(model.module.named_parameters()), "census": bytes_held},
                  file)
    dist.barrier()
    dist.destroy_process_group()


class Dice:
    """In place of the tracker of CUDA's random numbers: nothing here is random but the weights' start."""

    @staticmethod
    def fork(name=None):
        return torch.random.fork_rng(devices=[])

    @staticmethod
    def is_initialized():
        return True


if __name__ == "__main__":
    main()
