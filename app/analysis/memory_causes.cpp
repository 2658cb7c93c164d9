// Names and descriptions of the causes of memory beyond the formula.
#include "app/analysis/summary.h"

namespace shardscope::analysis {

const char* name_of(MemoryCause cause) noexcept {
  switch (cause) {
    case MemoryCause::padding:
      return "padding";
    case MemoryCause::scales:
      return "scales of int8 weights";
    case MemoryCause::unquantized:
      return "weights that are not int8";
    case MemoryCause::rounding:
      return "rounding";
    case MemoryCause::pieces:
      return "owned parameters in a row";
    case MemoryCause::no_secondary:
      return "no secondary shards";
    case MemoryCause::whole_gradients:
      return "whole gradients";
    case MemoryCause::gradient_copies:
      return "fp32 copies of gradients";
    case MemoryCause::cut_gradients:
      return "gradients of parameters cut between ranks";
    case MemoryCause::earlier_gradients:
      return "gradients of earlier micro-steps";
    case MemoryCause::later_gradients:
      return "gradient shards that do not exist yet";
    case MemoryCause::secondary_shards:
      return "secondary shards";
    case MemoryCause::zenflow_chosen:
      return "states of chosen columns (ZenFlow)";
    case MemoryCause::zenflow_device_gradients:
      return "owned gradients on the device (ZenFlow)";
    case MemoryCause::zenflow_sums:
      return "accumulated gradients (ZenFlow)";
  }
  return "unknown";
}

const char* explain(MemoryCause cause) noexcept {
  switch (cause) {
    case MemoryCause::padding:
      return "shards of equal size: what fills the last ones";
    case MemoryCause::scales:
      return "each group of int8 values has a scale of 4 bytes";
    case MemoryCause::unquantized:
      return "persistent parameters and shards on NVMe keep the storage type";
    case MemoryCause::rounding:
      return "each state is a buffer of whole blocks: of 256 bytes, on NVMe of 4096";
    case MemoryCause::pieces:
      return "the first layout of stage 1 with several communications: what a rank owns lies apart, and the "
             "optimizer steps a copy";
    case MemoryCause::no_secondary:
      return "of parameters that were not released after their forward at the peak, as persistent ones are "
             "not "
             "(hpZ)";
    case MemoryCause::whole_gradients:
      return "of modules whose gradients are computed and not reduced to their owners yet";
    case MemoryCause::gradient_copies:
      return "compat gradient_buffers: the update casts what it owns to 4 bytes an element, and what has "
             "been "
             "reduced or cast is freed, so this is less than nothing where the peak is in a backward";
    case MemoryCause::cut_gradients:
      return "DeepSpeed 2 cuts a partition anywhere in a parameter, and until the step each of its "
             "owners has the whole gradient";
    case MemoryCause::earlier_gradients:
      return "DeepSpeed 2 reduces each micro-step's gradients into a buffer of its own, beside their sums";
    case MemoryCause::later_gradients:
      return "a group has its gradient shards once it is reduced; at the peak these groups were not";
    case MemoryCause::secondary_shards:
      return "reshard_after_forward=N: between forward and backward a rank has a part for each of N ranks "
             "beside its shard";
    case MemoryCause::zenflow_chosen:
      return "master weights, momentum and variance of what the device steps every time; host memory has "
             "them "
             "too";
    case MemoryCause::zenflow_device_gradients:
      return "the device scores and steps columns of them before they leave";
    case MemoryCause::zenflow_sums:
      return "fp32 sums of what waits for the CPU optimizer, two with overlap_step, beyond one set of "
             "gradients";
  }
  return "";
}

}  // namespace shardscope::analysis
