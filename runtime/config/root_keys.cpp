// Keys of DeepSpeed's root object that have no setting here, and activation_checkpointing.
#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

struct RootKey {
  const char* name;
  KeyPolicy policy;
  const char* why;
};

// Source: deepspeed/runtime/constants.py, deepspeed/runtime/config.py. A key is `ignored` only if it cannot
// change weights, traffic or memory.
constexpr RootKey kRootKeys[] = {
    {"comms_logger", KeyPolicy::ignored, "every collective is an event"},
    {"flops_profiler", KeyPolicy::ignored, "use the dashboard"},
    {"tensorboard", KeyPolicy::ignored, "use the dashboard or export"},
    {"wandb", KeyPolicy::ignored, "use the dashboard or export"},
    {"comet", KeyPolicy::ignored, "use the dashboard or export"},
    {"csv_monitor", KeyPolicy::ignored, "use the dashboard or export"},
    {"timers", KeyPolicy::ignored, "events carry every phase"},
    {"zero_allow_untested_optimizer", KeyPolicy::ignored, "the optimizer is built in"},
    {"zero_force_ds_cpu_optimizer", KeyPolicy::ignored, "the optimizer is built in"},
    {"disable_allgather", KeyPolicy::ignored, "DeepSpeed reads it and does nothing with it"},
    {"dataloader_drop_last", KeyPolicy::ignored, "the sampler uses whole batches only"},
    {"checkpoint", KeyPolicy::ignored, "checkpoints are written by --checkpoint, in one format"},
    {"nebula", KeyPolicy::ignored, "checkpoints are written by --checkpoint, in one format"},
    {"datastates_ckpt", KeyPolicy::ignored, "checkpoints are written by --checkpoint, in one format"},
    {"load_universal_checkpoint", KeyPolicy::refused,
     "every checkpoint continues at any world and stage with --resume"},
    {"graph_harvesting", KeyPolicy::ignored, "it concerns CUDA graphs of torch"},
    {"compile", KeyPolicy::ignored, "there is no graph compiler here"},
    {"use_data_before_expert_parallelism", KeyPolicy::ignored, "there are no experts here"},
    {"vocabulary_size", KeyPolicy::ignored, "the model file says it"},
    {"autotuning", KeyPolicy::refused, "use shardscope simulate to search settings"},
    {"elasticity", KeyPolicy::refused, "give the batch sizes instead"},
    {"amp", KeyPolicy::refused, "use fp16 or bf16"},
    {"torch_autocast", KeyPolicy::refused, "use fp16 or bf16"},
    {"sparse_gradients", KeyPolicy::refused, "gradients are dense"},
    {"fp32_allreduce", KeyPolicy::refused, "set communication_data_type to fp32 instead"},
    {"sparse_attention", KeyPolicy::refused, "attention is dense and causal"},
    {"progressive_layer_drop", KeyPolicy::refused, "not supported; remove the section"},
    {"eigenvalue", KeyPolicy::refused, "not supported; remove the section"},
    {"quantize_training", KeyPolicy::refused, "not supported; remove the section"},
    {"weight_quantization", KeyPolicy::refused, "not supported; remove the section"},
    {"compression_training", KeyPolicy::refused, "not supported; remove the section"},
    {"curriculum_learning", KeyPolicy::refused, "not supported; remove the section"},
    {"data_efficiency", KeyPolicy::refused, "not supported; remove the section"},
    {"pipeline", KeyPolicy::refused, "pipeline parallelism is not supported"},
    {"tensor_parallel", KeyPolicy::refused, "tensor parallelism is not supported"},
    {"expert_parallel", KeyPolicy::refused, "there are no experts here; remove the section"},
    {"seq_parallel_communication_data_type", KeyPolicy::ignored, "there is no sequence parallelism"},
    {"data_parallel_size", KeyPolicy::ignored, "every rank is data parallel"},
    {"mesh_param", KeyPolicy::refused,
     "sequences are not split over ranks; shardscope.data_parallel_groups has ranks train in groups"},
    {"hybrid_engine", KeyPolicy::refused, "not supported; remove the section"},
    {"zenflow", KeyPolicy::refused, "belongs into zero_optimization"},
    {"retain_graph", KeyPolicy::refused,
     "a micro-step has one backward, which frees its activations; there is no graph for a second one"},
    {"max_train_batch_size", KeyPolicy::refused, "give train_batch_size"},
};

}  // namespace

void read_other_root_keys(Section& root) {
  std::int64_t sequence_parallel = 1;  // 1 is DeepSpeed's way of "off"
  root.read("sequence_parallel_size", sequence_parallel, 1);
  if (sequence_parallel > 1) {
    root.fail("sequence_parallel_size", "is " + std::to_string(sequence_parallel) +
                                            ", but sequence parallelism is not supported; set it to 1");
  }
  root.read_enum("gradient_allreduce_op", {"mean", "sum"}, [&](std::size_t i) {
    if (i == 1)
      root.fail("gradient_allreduce_op", "is \"sum\": gradients are averaged over ranks; set it to \"mean\"");
  });
  bool managed = true;
  root.read("managed_gradient_accumulation", managed);
  if (!managed) {
    root.fail(
        "managed_gradient_accumulation",
        "is false: a step ends after gradient_accumulation_steps micro-steps, there is no program to end "
        "it elsewhere; set it to true");
  }
  for (const RootKey& key : kRootKeys) root.without_setting(key.name, key.policy, key.why);
}

void read_activation_checkpointing(Section section) {
  // DeepSpeed's section configures how activation checkpoints are stored; the model or
  // shardscope.activation_checkpointing selects the modules.
  section.without_setting("partition_activations", KeyPolicy::refused,
                          "splits checkpoints over model-parallel ranks, of which there are none");
  section.without_setting("cpu_checkpointing", KeyPolicy::refused, "checkpoints stay on the device");
  section.without_setting("contiguous_memory_optimization", KeyPolicy::ignored,
                          "checkpoints come from the arena, which does not fragment");
  section.without_setting("number_checkpoints", KeyPolicy::ignored, "the model says which blocks checkpoint");
  section.without_setting("synchronize_checkpoint_boundary", KeyPolicy::ignored, "it changes no result");
  section.without_setting("profile", KeyPolicy::ignored, "events carry every recomputation");
  section.finish();
}

}  // namespace shardscope::config
