#include "app/analysis/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "app/store/module_name.h"
#include "app/store/names.h"

namespace shardscope::analysis {
namespace {

using nlohmann::json;
namespace ev = shardscope::instrumentation;

/// "collective all_gather": the kind without its suffix, and the name of its code if it has one.
std::string name_of_spans(ev::EventKind kind, std::uint8_t code) {
  std::string name = ev::name_of(kind);
  if (const std::size_t end = name.rfind("_begin"); end != std::string::npos) name.resize(end);
  const char* detail = nullptr;
  if (kind == ev::EventKind::module_begin) detail = ev::name_of(static_cast<ev::Pass>(code));
  if (kind == ev::EventKind::phase_begin) detail = ev::name_of(static_cast<ev::Phase>(code));
  if (kind == ev::EventKind::collective_begin) detail = ev::name_of(static_cast<ev::CollectiveOp>(code));
  if (detail != nullptr) return name + " " + detail;
  return code == 0 ? name : fmt::format("{} {}", name, code);
}

Distribution distribution_of(std::string what, std::string module, const store::QuantileSketch& sketch) {
  const auto ms = [&](double q) { return sketch.quantile(q) * 1e-6; };
  return {.what = std::move(what),
          .module = std::move(module),
          .count = sketch.count(),
          .p50_ms = ms(0.5),
          .p90_ms = ms(0.9),
          .p95_ms = ms(0.95),
          .p99_ms = ms(0.99),
          .min_ms = static_cast<double>(sketch.min_ns()) * 1e-6,
          .max_ms = static_cast<double>(sketch.max_ns()) * 1e-6,
          .longest = std::nullopt};
}

using RankSketches = std::map<std::pair<std::string, std::uint32_t>, store::QuantileSketch>;

/// By name and rank, over lanes.
RankSketches sketches_of_ranks(const store::RecordingInfo& info) {
  RankSketches out;
  for (const auto& [key, sketch] : info.distributions) {
    if (key.module == ev::kNoId && key.rank != ev::kNoId)
      out[{name_of_spans(key.kind, key.code), key.rank}].merge(sketch);
  }
  return out;
}

/// By name, for names that more than one rank has.
std::map<std::string, Distribution::Rank> longest_of(const RankSketches& of_ranks) {
  std::map<std::string, Distribution::Rank> out;
  std::map<std::string, std::size_t> ranks;
  for (const auto& [key, sketch] : of_ranks) {
    const Distribution::Rank own{.rank = key.second, .p99_ms = sketch.quantile(0.99) * 1e-6};
    ++ranks[key.first];
    const auto known = out.try_emplace(key.first, own).first;
    if (own.p99_ms > known->second.p99_ms) known->second = own;
  }
  std::erase_if(out, [&](const auto& one) { return ranks.at(one.first) < 2; });
  return out;
}

/// Approximate total time, for sorting.
double in_all(const Distribution& one) { return one.p50_ms * static_cast<double>(one.count); }

}  // namespace

std::optional<Distributions> distributions(const store::Store& store, const store::RecordingInfo& info) {
  if (!info.limits.limited() && info.parts.empty()) return std::nullopt;
  // Distributions of ranks are mergeable.
  std::map<std::pair<std::string, std::string>, store::QuantileSketch> sums;
  for (const auto& [key, sketch] : info.distributions) {
    const std::string module =
        key.module == ev::kNoId ? std::string() : store::module_name(store, key.module);
    const std::string what = name_of_spans(key.kind, key.code);
    sums[{module, what}].merge(sketch);
  }
  const std::map<std::string, Distribution::Rank> longest = longest_of(sketches_of_ranks(info));
  Distributions all{.list = {}, .whole = info.complete};
  std::vector<Distribution>& out = all.list;
  for (const auto& [names, sketch] : sums) {
    const auto rank = names.first.empty() ? longest.find(names.second) : longest.end();
    out.push_back(distribution_of(names.second, names.first, sketch));
    if (rank != longest.end()) out.back().longest = rank->second;
  }
  std::ranges::stable_sort(out, [](const Distribution& a, const Distribution& b) {
    if (a.module.empty() != b.module.empty()) return a.module.empty();
    return in_all(a) > in_all(b);
  });
  return all;
}

std::vector<RankDistribution> rank_distributions(const store::RecordingInfo& info) {
  std::vector<RankDistribution> out;
  for (const auto& [key, sketch] : sketches_of_ranks(info))
    out.push_back({key.second, distribution_of(key.first, {}, sketch)});
  std::ranges::stable_sort(out, {}, &RankDistribution::rank);
  return out;
}

std::string text_of(const std::optional<Distributions>& all) {
  if (!all || all->list.empty()) return {};
  std::string text = fmt::format("\n{:<28} {:>12} {:>11} {:>11} {:>11} {:>11}\n",
                                 all->whole ? "whole run, all ranks" : "all ranks, so far", "count", "p50 ms",
                                 "p95 ms", "p99 ms", "longest ms");
  for (const Distribution& one : all->list) {
    if (!one.module.empty()) continue;
    text += fmt::format("{:<28} {:>12} {:>11.3f} {:>11.3f} {:>11.3f} {:>11.3f}\n", one.what, one.count,
                        one.p50_ms, one.p95_ms, one.p99_ms, one.max_ms);
  }
  return text +
         fmt::format("{}, also those that were deleted; p50 to p99 within {:.0f} %; modules: --json\n",
                     all->whole
                         ? "of all spans"
                         : "of spans up to the last minute recorded (the recorder did not end, or goes on)",
                     store::QuantileSketch::kError * 100);
}

json distributions_json(const std::optional<Distributions>& all) {
  if (!all) return nullptr;
  json out = json::array();
  for (const Distribution& one : all->list) {
    out.push_back({{"what", one.what},
                   {"module", one.module.empty() ? json(nullptr) : json(one.module)},
                   {"count", one.count},
                   {"p50_ms", one.p50_ms},
                   {"p95_ms", one.p95_ms},
                   {"p99_ms", one.p99_ms},
                   {"min_ms", one.min_ms},
                   {"max_ms", one.max_ms}});
  }
  return out;
}

}  // namespace shardscope::analysis
