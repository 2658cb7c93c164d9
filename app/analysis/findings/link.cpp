// The link as the bound: by too many bytes, or by too many collectives.
#include <fmt/format.h>

#include <algorithm>

#include "app/analysis/findings/findings.h"

namespace shardscope::analysis::findings {
namespace {

/// Time of a link for the collectives of a step, in milliseconds.
struct LinkTime {
  double latency = 0, bytes = 0, count = 0;
  [[nodiscard]] bool latency_bound() const { return latency > bytes; }
};

std::optional<LinkTime> link_time(const Facts& facts) {
  const auto link = link_of(facts);
  if (!link || facts.typical.empty()) return std::nullopt;
  LinkTime time;
  const double hops = hops_of(facts.summary.copy_ranks);
  for (const auto& [op, totals] : facts.digest.steps()[facts.typical.back()].ops) {
    time.count += static_cast<double>(totals.count);
    time.bytes += totals.bus_bytes / link->gb_per_s * 1e-6;
  }
  time.latency = time.count * hops * link->latency_us * 1e-3;
  return time;
}

std::int64_t largest_vector(const Facts& facts) {
  std::int64_t largest = 0;
  for (const ev::ParamInfo& param : facts.store.tables().params)
    if (param.shape.size() == 1) largest = std::max(largest, param.elems);
  return largest;
}

std::vector<Advice> fewer_bytes(const Facts& facts) {
  std::vector<Advice> out;
  if (facts.summary.stage != 3) return out;
  const ev::RunTables& tables = facts.store.tables();
  if (!facts.zero.quantized_weights) {
    out.push_back(setting({{"zero_optimization.zero_quantized_weights", "true"}},
                          "Gathers move int8; weights are rounded on their way: watch the loss."));
  }
  if (tables.local_world > 1 && tables.local_world < tables.world && facts.zero.hpz_partition_size <= 1) {
    out.push_back(setting({{"zero_optimization.zero_hpz_partition_size", std::to_string(tables.local_world)}},
                          "The backward then gathers inside a node, from a second copy of the weights."));
  }
  return out;
}

std::vector<Advice> fewer_collectives(const Facts& facts) {
  const auto elems = static_cast<double>(facts.summary.params);
  std::vector<Advice> out;
  std::vector<Change> bucket;
  const std::int64_t eighth = round_elems(elems / 8), vector = largest_vector(facts) + 1;
  if (facts.zero.reduce_bucket_size < round_elems(elems / 16)) {
    bucket = {{"zero_optimization.reduce_bucket_size", std::to_string(eighth)}};
    out.push_back(setting(bucket));
  }
  if (facts.summary.stage != 3) return out;
  std::vector<Advice> gathers = gather_options(facts);
  if (facts.zero.param_persistence_threshold < vector) {
    std::vector<Change> kept{
        {"zero_optimization.stage3_param_persistence_threshold", std::to_string(vector)}};
    gathers.push_back(setting(kept, "Small parameters stay whole on every rank."));
    kept.push_back(
        {"zero_optimization.stage3_prefetch_bucket_size", std::to_string(round_elems(elems / 16))});
    gathers.push_back(setting(kept, "Small parameters stay whole on every rank."));
  }
  for (Advice& one : gathers) {
    const bool both = !bucket.empty() && one.changes.front().key.ends_with("prefetch_bucket_size");
    std::vector<Change> with_bucket = one.changes;
    out.push_back(std::move(one));
    if (!both) continue;
    with_bucket.insert(with_bucket.end(), bucket.begin(), bucket.end());
    out.push_back(setting(std::move(with_bucket)));
  }
  return out;
}

std::string without_settings(const Facts& facts, bool latency_bound) {
  const Framework kind = facts.summary.kind;
  if (latency_bound)
    return "Fewer, larger collectives: a larger micro-batch computes longer for as many of them.";
  std::string text = "Move fewer bytes for a token: a larger micro-batch";
  if (facts.micro_steps > 1 && kind == Framework::fsdp2) {
    text += ", set_requires_gradient_sync(False) while accumulating";
  } else if (facts.micro_steps > 1 && kind == Framework::ddp) {
    text += ", no_sync() while accumulating";
  } else if (facts.zero_keys && facts.summary.stage == 2) {
    text += ", accumulation at stage 1 (one reduction a step)";
  } else if (facts.zero_keys && facts.summary.stage == 3) {
    text += "; stage 2 moves a third less where its memory fits";
  }
  // A run in 16 bits has this already.
  if (travels_as_f32(facts)) {
    text += kind == Framework::fsdp2 ? ", a MixedPrecisionPolicy with bf16"
            : kind == Framework::ddp ? ", a bf16 communication hook"
                                     : "; bf16 halves them";
  }
  return text + ".";
}

/// Fewer bytes, and where latency is the bound fewer collectives, of FSDP2 and DDP. Reductions that are
/// repeated in each micro-step have a finding of their own.
void add_script_options(const Facts& facts, bool latency_bound, Finding& finding) {
  for (Advice& option : reshard_off_options(facts)) advise(finding, std::move(option));
  if (!latency_bound) return;
  for (Advice& option : bucket_cap_options(facts, BucketSizes::larger)) advise(finding, std::move(option));
}

}  // namespace

/// [Note: the link as the bound]
/// The link is busy for longer than the ranks compute: no order of gathers and buckets can hide more
/// communication than there is computation. If bytes dominate, only fewer bytes help; if the latency of many
/// collectives dominates, fewer collectives. The fit of latency and rate decides.
void link_bound(const Facts& facts, Found& found) {
  if (!communicates(facts)) return;
  // A slow link is a finding of its own: no setting makes it faster.
  const double link = facts.mean(&RankFacts::link) - found.slow_link_part.link,
               compute = facts.mean(&RankFacts::compute);
  const double beyond =
      std::min(link - compute, facts.mean(&RankFacts::moving) - found.slow_link_part.moving);
  if (beyond <= 0 || facts.share(beyond) < kNote) return;
  const auto time = link_time(facts);
  const bool latency_bound = time && time->latency_bound();
  Finding finding;
  finding.id = "link_bound";
  finding.title = latency_bound ? "The link is the bound: it is busy with the latency of many collectives"
                                : "The link is the bound: bytes move for longer than the ranks compute";
  finding.evidence = fmt::format(
      "Of a step of {:.1f} ms the link is busy for {:.1f} ms{} and a rank computes for {:.1f} ms: {:.1f} ms "
      "of communication cannot be hidden.",
      facts.step_ms, link, found.slow_link_part.link > 0 ? " (without what the slow link takes longer)" : "",
      compute, beyond);
  if (time) {
    finding.evidence +=
        fmt::format(" The latency of {:.0f} collectives is {:.1f} ms of it, the bytes are {:.1f} ms.",
                    time->count, time->latency, time->bytes);
  }
  finding.next_step = finding.otherwise = without_settings(facts, latency_bound);
  if (facts.zero_keys) {
    std::vector<Advice> first = fewer_bytes(facts), second = fewer_collectives(facts);
    if (latency_bound) std::swap(first, second);
    for (std::vector<Advice>* const some : {&first, &second})
      for (Advice& option : *some) advise(finding, std::move(option));
  } else {
    add_script_options(facts, latency_bound, finding);
  }
  found.add_by_cost(facts, beyond, std::move(finding));
}

/// The link is fast enough, but computation waits for the latency of gathers with few elements each.
void tiny_gathers(const Facts& facts, Found& found) {
  constexpr double kMany = 16;
  if (!communicates(facts) || facts.summary.stage != 3 || facts.typical.empty()) return;
  for (const char* cause : {"overlap_off", "link_bound", "short_prefetch", "large_prefetch"})
    if (found.has(cause)) return;
  const double exposed = facts.mean(&RankFacts::gather_moving);
  if (facts.share(exposed) < kNote) return;
  const auto link = link_of(facts);
  const auto& ops = facts.digest.steps()[facts.typical.back()].ops;
  const auto gathers = ops.find(ev::CollectiveOp::all_gather);
  if (!link || gathers == ops.end()) return;
  const auto count = static_cast<double>(gathers->second.count);
  const double latency_ms = count * hops_of(facts.summary.copy_ranks) * link->latency_us * 1e-3;
  const double bytes_ms = gathers->second.bus_bytes / link->gb_per_s * 1e-6;
  if (count < kMany || latency_ms < bytes_ms) return;
  Finding finding;
  finding.id = "tiny_gathers";
  finding.title = "Many tiny gathers: their cost is latency";
  finding.evidence = fmt::format(
      "{:.0f} gathers of a step: {:.1f} ms of latency, {:.1f} ms of bytes; they are exposed for {}.", count,
      latency_ms, bytes_ms, of_step(facts, exposed));
  finding.evidence += worst_of(exposed_modules(facts, Collectives::gathers), kExposedGathers);
  finding.next_step = finding.otherwise =
      facts.summary.kind == Framework::fsdp2
          ? "Wrap larger groups of modules with fully_shard(): each is one gather."
          : "A larger micro-batch computes longer for as many gathers.";
  if (facts.zero_keys)
    for (Advice& option : fewer_collectives(facts)) advise(finding, std::move(option));
  for (Advice& option : reshard_off_options(facts)) advise(finding, std::move(option));
  found.add_by_cost(facts, std::min(exposed, latency_ms), std::move(finding));
}

}  // namespace shardscope::analysis::findings
