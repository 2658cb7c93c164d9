// Warnings for switches of shardscope.compat without effect, and for keys of zero_optimization whose effect
// depends on a switch.
#include <string>

#include "runtime/config/sections.h"

namespace shardscope::config {

void warn_of_switches(Section& root, const plan::ZeroConfig& zero) {
  const auto ignored = [&](bool wanted, const char* key, const std::string& why) {
    if (wanted) root.warn(key, "ignored: " + why);
  };
  const plan::CompatSwitches& switches = zero.compat;
  const std::string stage = ", but stage is " + std::to_string(zero.stage);
  const bool buffers = plan::holds_gradient_buffers(zero);
  const bool legacy = plan::uses_legacy_layout(zero);
  ignored(switches.gradient_buffers && zero.stage == 0, "shardscope.compat.gradient_buffers",
          "it is how ZeRO holds gradients" + stage);
  ignored(
      buffers && legacy, "shardscope.compat.gradient_buffers",
      "the first layout of ZeRO-1 sends its flat gradients as they lie; only the fp32 copies of the update "
      "are made");
  ignored(buffers && zero.zenflow.has_value(), "shardscope.compat.gradient_buffers",
          "ZenFlow steps gradients from where they lie; only the buckets are buffers");
  ignored(switches.flat_gathers && zero.stage != 3, "shardscope.compat.flat_gathers",
          "it is a way of stage 3" + stage);
  ignored(switches.hpz_quantized_copies &&
              !(zero.stage == 3 && zero.hpz_partition_size > 1 && zero.quantized_weights),
          "shardscope.compat.hpz_quantized_copies",
          "it needs stage 3, zero_hpz_partition_size above 1 and zero_quantized_weights");
  ignored(!zero.contiguous_gradients && (!buffers || legacy), "zero_optimization.contiguous_gradients",
          "gradients are reduced from where backward left them, never copied into one buffer; "
          "shardscope.compat gradient_buffers makes the buffers that it does without");
}

}  // namespace shardscope::config
