"""DeepSpeed ZeRO stage 3: parameter statuses, and why parameters are fetched, prefetched, kept or released.

One table per module of DeepSpeed; each file beside this one holds one or two of them.
"""
from shardscope._hooks import Adapter
from shardscope.deepspeed import zero3_coordinator, zero3_gradients, zero3_modules, zero3_params


def adapters():
    zero = "deepspeed.runtime.zero."
    return [Adapter("DeepSpeed stage 3, coordinator", zero + "partitioned_param_coordinator",
                    zero3_coordinator.install_coordinator),
            Adapter("DeepSpeed stage 3, parameters", zero + "partition_parameters", zero3_params.install_parameters),
            Adapter("DeepSpeed stage 3, modules", zero + "parameter_offload", zero3_modules.install_modules),
            Adapter("DeepSpeed stage 3, counters", zero + "partitioned_param_profiler", zero3_modules.install_counters),
            Adapter("DeepSpeed stage 3, optimizer", zero + "stage3", zero3_gradients.install_optimizer)]
