// Our own keys.
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "runtime/base/emulated_link.h"
#include "runtime/config/sections.h"

namespace shardscope::config {
namespace {

const std::vector<std::string>& compat_names() {
  static const std::vector<std::string> names{"shardscope", "deepspeed", "notes"};
  return names;
}

void read_link(Section section, base::EmulatedLink& link) {
  section.read("gbps", link.gbps, 0, 1e6);
  section.read("latency_us", link.latency_us, 0, 1e9);
  section.read("intra_gbps", link.intra_gbps, 0, 1e6);
  section.read("intra_latency_us", link.intra_latency_us, 0, 1e9);
  section.finish();
}

void read_compat(Section& section, TrainingConfig& config) {
  auto preset = [&](std::size_t i) { config.shardscope.compat = static_cast<plan::Compat>(i); };
  const nlohmann::json* value = section.find("compat");
  if (value == nullptr) return;
  if (!value->is_object()) {
    section.read_enum("compat", compat_names(), preset);
    config.zero.compat = plan::default_switches(config.shardscope.compat);
    return;
  }
  auto switches = section.child("compat");
  switches->read_enum("preset", compat_names(), preset);
  plan::CompatSwitches& s = config.zero.compat;
  s = plan::default_switches(config.shardscope.compat);
  switches->read_enum("scheduler", compat_names(),
                      [&](std::size_t i) { s.scheduler = static_cast<plan::Compat>(i); });
  switches->read("multi_rank_bucket_allreduce", s.multi_rank_bucket_allreduce);
  switches->read("ignore_allgather_bucket_size", s.ignore_allgather_bucket_size);
  switches->read("hpz_secondary_in_forward", s.hpz_secondary_in_forward);
  switches->read("hpz_prefetch_by_pass", s.hpz_prefetch_by_pass);
  switches->read("legacy_stage1_layout", s.legacy_stage1_layout);
  switches->read("update_scale_before_unscale", s.update_scale_before_unscale);
  switches->read("stage3_skips_fp16_only", s.stage3_skips_fp16_only);
  switches->read("keep_spanning_gradients", s.keep_spanning_gradients);
  switches->read("max_ongoing_fetch_events", s.max_ongoing_fetch_events, 0, 1 << 20);
  switches->read("max_param_reduce_events", s.max_param_reduce_events, 0, 1 << 20);
  switches->read("gradient_buffers", s.gradient_buffers);
  switches->read("flat_gathers", s.flat_gathers);
  switches->read("hpz_quantized_copies", s.hpz_quantized_copies);
  switches->read("broadcast_weights", s.broadcast_weights);
  switches->finish();
}

}  // namespace

void read_shardscope(Section section, TrainingConfig& config) {
  ShardscopeConfig& s = config.shardscope;
  read_compat(section, config);
  if (auto link = section.child("emulated_link")) read_link(*link, s.link);
  if (auto comm = section.child("comm")) {
    if (auto link = comm->child("emulated_link")) read_link(*link, s.link);
    comm->finish();
  }
  section.read("ranks_per_node", config.zero.ranks_per_node, 0, 1 << 20);
  std::vector<std::string> details;
  for (std::uint8_t i = 0; i < instrumentation::kValueCount<instrumentation::Detail>; ++i)
    details.emplace_back(instrumentation::name_of(static_cast<instrumentation::Detail>(i)));
  section.read_enum("detail", details,
                    [&](std::size_t i) { s.detail = static_cast<instrumentation::Detail>(i); });
  section.read("ring_events", s.ring_events, 1 << 10, 1 << 26);
  if ((s.ring_events & (s.ring_events - 1)) != 0) section.fail("ring_events", "must be a power of two");
  section.read("queue_bytes", s.queue_bytes, 1 << 16);
  section.read("key", s.key);
  section.read("linger_s", s.linger_s, 0, 3600);
  section.read("activation_checkpointing", s.activation_checkpointing);
  section.read("checkpoint_early_stop", s.checkpoint_early_stop);
  if (auto sizes = section.child("micro_batches")) read_micro_batches(*sizes, s.micro_batches);
  section.read("data_prefetch", s.data_prefetch, 0, 1 << 10);
  section.read("eval_interval", s.eval_interval, 0);
  section.read("eval_batches", s.eval_batches, 1, 1 << 24);
  section.read("eval_fraction", s.eval_fraction, 0, 1);
  if (s.eval_fraction <= 0 || s.eval_fraction >= 1) {
    section.fail("eval_fraction", "must be above 0 and below 1: one part is trained on, the other evaluated");
  }
  section.read("zero_init", s.zero_init);
  read_param_groups(section, config);
  section.finish();
}

}  // namespace shardscope::config
