#include "app/analysis/attached/recorded_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/analysis/attached/ddp_buckets.h"
#include "app/analysis/attached/group_reader.h"
#include "app/analysis/attached/rank_reader.h"
#include "app/analysis/digest.h"
#include "app/analysis/foreign_json.h"
#include "app/analysis/framework.h"
#include "app/analysis/missing_reason.h"
#include "app/analysis/recorded_boundaries.h"
#include "app/analysis/statistics.h"
#include "app/analysis/zero_settings.h"

namespace shardscope::analysis::attached {
namespace {

/// Minimum number of steps for a median.
constexpr std::size_t kFewestSteps = 3;

/// Fits time per operation and per element; hops are operations, bytes elements.
HostCost cost_of(const std::vector<Transfer>& samples, double base_ns) {
  std::vector<Transfer> above = samples;
  for (Transfer& one : above) one.ns = std::max(0.0, one.ns - base_ns);
  const auto line = fit_link(above);
  if (!line) return {};
  double sum = 0, operations = 0;
  for (const Transfer& one : above) sum += one.ns, operations += one.hops;
  return {line->latency_us * 1e3, 1 / line->gb_per_s, sum / operations};
}

/// fit_link(), scaled to the sum of the transfers instead of the medians: a step has many of them, so
/// outliers are part of every step.
LinkPace link_of(const std::vector<Transfer>& transfers) {
  const auto line = fit_link(transfers);
  if (!line) return {};
  double seen = 0, fitted = 0;
  for (const Transfer& one : transfers) {
    seen += one.ns;
    fitted += one.hops * line->latency_us * 1e3 + one.bytes / line->gb_per_s;
  }
  LinkPace out = *line;
  out.gb_per_s *= fitted / seen;
  out.latency_us *= seen / fitted;
  double error = 0;
  for (const Transfer& one : transfers)
    error += std::abs(one.hops * out.latency_us * 1e3 + one.bytes / out.gb_per_s - one.ns);
  out.error_pct = 100 * error / seen;
  return out;
}

double median_or_zero(const std::vector<double>& values) {
  return values.empty() ? 0 : quantile(values, 0.5);
}

/// Whether every rank has `micro_steps` micro-steps with the same boundaries.
bool all_alike(const std::vector<StepOfRank>& ranks, const std::vector<Piece>& pieces,
               std::size_t micro_steps) {
  return std::ranges::all_of(ranks, [&](const StepOfRank& rank) {
    return rank.micro_steps.size() == micro_steps &&
           std::ranges::all_of(rank.micro_steps,
                               [&](const std::vector<Piece>& one) { return one == pieces; });
  });
}

/// Adds the scheduler's visits to the pieces that begin with their gates.
void add_visits(const store::Store& store, std::uint32_t rank, std::int64_t at_ns,
                std::vector<Piece>& pieces) {
  const std::optional<MicroStepGates> gates = micro_step_at(store, rank, at_ns);
  if (!gates) return;
  const Boundaries boundaries = boundaries_of(store, rank, *gates);
  std::map<std::uint64_t, std::size_t> piece_of;  // by number of the gate
  std::size_t next = 0;
  for (const store::Store::GateRow& gate : *gates) {
    if (next < pieces.size() && (gate.kind == ev::GateKind::micro_step || visit_kind(gate.kind)))
      piece_of[gate.number] = next++;
  }
  for (std::size_t i = 0; i < boundaries.visits.size(); ++i) {
    if (const auto found = piece_of.find(boundaries.gates[i].number); found != piece_of.end())
      pieces[found->second].visits.push_back(boundaries.visits[i]);
  }
}

/// Bytes per element that a collective transfers: with mixed precision another type travels than that of
/// the parameters.
void set_elem_bytes(const ev::RunTables& tables, const Samples& samples, RecordedCosts& out) {
  out.gather_elem_bytes = tables.param_bytes;
  out.reduce_elem_bytes = tables.grad_bytes;
  if (samples.gathered_elems > 0) out.gather_elem_bytes = samples.gathered_bytes / samples.gathered_elems;
  if (samples.reduced_elems > 0) out.reduce_elem_bytes = samples.reduced_bytes / samples.reduced_elems;
}

/// A recorded setting of fully_shard; null: not recorded.
nlohmann::json group_setting(const ev::RunTables& tables, const std::string& name) {
  const nlohmann::json config = parse_foreign(tables.config_json);
  const nlohmann::json::json_pointer at("/fully_shard/" + name);
  return config.is_object() && config.contains(at) ? config[at] : nlohmann::json();
}

/// Whether a recorded reshard_after_forward is a number of ranks, of some groups at least: where groups
/// differ the setting has the number of groups by value.
bool counts_ranks(const nlohmann::json& reshards) {
  if (reshards.is_number()) return true;
  if (!reshards.is_object()) return false;
  return std::ranges::any_of(reshards.items(), [](const auto& value) {
    return !value.key().empty() &&
           std::ranges::all_of(value.key(), [](char c) { return c >= '0' && c <= '9'; });
  });
}

std::string why_not_measured(const store::Store& store) {
  if (!store.has_tables()) return "the recording does not describe the run";
  const ev::RunTables& tables = store.tables();
  if (tables.param_bytes == 0 || tables.grad_bytes == 0) return "the size of its elements was not recorded";
  if (!numbered_in_order(tables)) return "its tables of modules and parameters are not complete";
  if (tables.models.size() > 1)
    return "it trains several models, and which one a step is of was not recorded";
  if (framework_of(tables) == Framework::fsdp2) {
    if (shard_ranks(tables) != tables.world)
      return "its groups are sharded over a part of the ranks, and what replicas reduce is not modelled";
    if (counts_ranks(group_setting(tables, "reshard_after_forward")) ||
        counts_ranks(group_setting(tables, "root_reshard_after_forward")))
      return "groups are resharded to a part of the ranks after their forward, which is not modelled";
  }
  return {};
}

}  // namespace

std::string why_no_times(const ev::RunTables& tables) {
  return has_times_of_host(tables) ? "on a GPU the hooks see the host, which queues work: what modules and "
                                     "collectives take there is not in their spans"
                                   : "";
}

RecordedCosts recorded_costs(const store::Store& store) {
  RecordedCosts out;
  const auto lacking = [](std::string why) {
    RecordedCosts none;
    none.missing = std::move(why);
    return none;
  };
  if (std::string why = why_not_measured(store); !why.empty()) return lacking(std::move(why));
  const bool groups = framework_of(store.tables()) == Framework::fsdp2;
  const bool ddp = framework_of(store.tables()) == Framework::ddp;
  out.no_times = why_no_times(store.tables());
  const Digest digest = digest_of(store);
  Samples samples;
  std::size_t unlike = 0, without_gates = 0;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    const StepDigest& step = digest.steps()[i];
    double total = 0;
    bool paused = false;
    for (const RankStep& rank : step.ranks) {
      total += static_cast<double>(rank.time.total_ns);
      paused = paused || rank.time.total_ns != rank.end_ns - rank.begin_ns;
    }
    if (step.lacks_events() || paused) continue;
    std::vector<StepOfRank> ranks;
    Samples of_step;
    for (const RankStep& rank : step.ranks) {
      if (auto read = read_step(store, rank, of_step)) ranks.push_back(std::move(*read));
    }
    if (ranks.size() != step.ranks.size()) {
      ++without_gates;
      continue;
    }
    // Stage 1 fills buckets only in the last micro-step of a step.
    if (out.steps.empty()) out.pieces = ranks.front().micro_steps.back();
    const std::size_t micro_steps =
        (out.steps.empty() ? ranks.front().time : out.steps.front().ranks.front()).micro_steps.size();
    if (!all_alike(ranks, out.pieces, micro_steps)) {
      ++unlike;
      continue;
    }
    if (out.steps.empty() && groups) {
      GroupsOfStep of = groups_of_step(store, step.ranks.front());
      if (!of.missing.empty()) return lacking(std::move(of.missing));
      out.groups = std::move(of.groups);
      out.decisions = std::move(of.decisions);
      out.explicit_backward =
          !group_setting(store.tables(), "modules_with_explicit_backward_prefetch").is_null();
    } else if (out.steps.empty() && ddp) {
      out.reduced = reduced_buckets(store, step.ranks.front());
      set_bucket_order(out);
      if (out.bucket_ends.empty() || out.bucket_ends.back() != out.gradient_order.size())
        return lacking("the contents of its buckets were not recorded");
    } else if (out.steps.empty()) {
      add_visits(store, step.ranks.front().rank, ranks.front().first_gate_ns, out.pieces);
      out.external = external_uses(store, step.ranks.front().rank);
    }
    // The last step's numbers remain: by then it follows a trace.
    out.gathers = ranks.front().gathers;
    out.gathered_elems = ranks.front().gathered_elems;
    out.flushes = ranks.front().flushes;
    samples.add_step(of_step);
    RecordedStep recorded{step.step, total / static_cast<double>(step.ranks.size()), {}};
    for (StepOfRank& rank : ranks) recorded.ranks.push_back(std::move(rank.time));
    out.steps.push_back(std::move(recorded));
  }
  if (out.steps.size() < kFewestSteps) {
    if (unlike > 0)
      return lacking("its micro-steps or its ranks do not pass the same module boundaries in the same order");
    if (without_gates > 0)
      return lacking("the gates of its micro-steps and module boundaries are not there: " +
                     missing_reason("gates", ev::Detail::modules, store.recorded_detail()));
    return lacking(fmt::format("it holds {} whole steps after the first; {} are needed", out.steps.size(),
                               kFewestSteps));
  }
  const std::size_t modules = store.tables().modules.size();
  const std::size_t params = store.tables().params.size();
  const auto is_known = [&](const plan::Visit& visit) {
    return (visit.module == plan::kNone<plan::ModuleId> || plan::raw(visit.module) < modules) &&
           (visit.param == plan::kNone<plan::ParamId> || plan::raw(visit.param) < params);
  };
  const auto is_described = [&](const Piece& piece) {
    return (piece.module == ev::kNoId || piece.module < modules) &&
           std::ranges::all_of(piece.visits, is_known);
  };
  if (!std::ranges::all_of(out.pieces, is_described))
    return lacking("its gates name modules or parameters that its tables do not have");
  out.model = model_of(store.tables());
  out.world = copy_size(store.tables());
  std::vector<double> step_ms;
  for (const RecordedStep& step : out.steps) step_ms.push_back(step.total_ns * 1e-6);
  out.step_ms = quantile(step_ms, 0.5);
  if (!(out.step_ms > 0)) return lacking("its steps take no time");
  set_elem_bytes(store.tables(), samples, out);
  if (!out.no_times.empty()) return out;
  out.gather = link_of(samples.gathers);
  out.reduce = link_of(samples.reductions);
  out.fetch_ns = median_or_zero(samples.idle_fetches);
  out.release_ns = median_or_zero(samples.releases);
  out.issue = cost_of(samples.issues, out.fetch_ns);
  out.unpack = cost_of(samples.unpacked, 0);
  out.flush = cost_of(samples.flushes, 0);
  out.gathers_block = groups && 2 * samples.demanded_ended > samples.demanded;
  return out;
}

}  // namespace shardscope::analysis::attached
