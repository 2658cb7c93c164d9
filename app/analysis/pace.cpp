#include "app/analysis/pace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "app/analysis/communication.h"
#include "app/analysis/rank_activity.h"
#include "app/analysis/spans.h"
#include "app/analysis/statistics.h"
#include "app/store/span_time.h"
#include "instrumentation/bus_factor.h"

namespace shardscope::analysis {
namespace {

using ev::CollectiveOp;
using ev::CollectiveScope;
using ev::EventKind;
using ev::StreamId;

double median_of(const std::vector<double>& values) { return values.empty() ? 0 : quantile(values, 0.5); }

double spans_ms(const store::Store& store, store::LaneId lane, std::int64_t begin_ns, std::int64_t end_ns,
                EventKind kind) {
  std::int64_t ns = 0;
  for_each_span(store, lane, begin_ns, end_ns, [&](const store::Span& span) {
    if (span.kind == kind && span.end_ns != store::kOpen)
      ns += store::time_of(store, lane.rank, span).running_ns;
  });
  return static_cast<double>(ns) * 1e-6;
}

/// Whether all ranks of a collective are on one node.
bool stays_inside(const store::Store& store, std::uint32_t rank, const store::Span& span) {
  const ev::RunTables& tables = store.tables();
  if (tables.world <= tables.local_world) return true;
  if (const ev::GroupInfo* group = group_of(store, rank, span)) {
    // Ranks of a node are consecutive.
    const std::uint32_t per_node = std::max(tables.local_world, 1U);
    return std::ranges::all_of(group->ranks,
                               [&](std::uint32_t member) { return member / per_node == rank / per_node; });
  }
  const ev::CollectiveCode code = ev::as<EventKind::collective_begin>(span).code;
  const CollectiveScope scope = code.known() ? code.scope() : CollectiveScope::world;
  return scope == CollectiveScope::intra_node ||
         (scope == CollectiveScope::secondary && ranks_of(store, rank, span) <= tables.local_world);
}

struct CollectiveTransfers {
  std::vector<Transfer> alone, shared;
};

struct Links {
  CollectiveTransfers inside, between;
  std::vector<Transfer> host, nvme;
};

/// An instance of a collective.
struct Collective {
  Transfer transfer;  ///< as on the rank with the shortest transfer
  bool inside = false;
  bool alone = true;  ///< shared its links with no other one on any rank
};

/// The transfer of a collective on one rank: from the arrival of the last rank, if recorded, since waiting
/// for a late rank is not transfer.
struct Moving {
  std::int64_t begin_ns = 0, end_ns = 0;
  Collective* collective = nullptr;
};

/// Marks transfers that overlap others on the same links, inside the node or between nodes.
void find_shared(std::vector<Moving>& of_rank) {
  std::ranges::sort(of_rank, {}, &Moving::begin_ns);
  std::array<const Moving*, 2> last{};  ///< of those so far, the one that ends last
  for (const Moving& moving : of_rank) {
    const Moving*& before = last[moving.collective->inside ? 1 : 0];
    if (before != nullptr && before->end_ns > moving.begin_ns) {
      before->collective->alone = false;
      moving.collective->alone = false;
    }
    if (before == nullptr || before->end_ns < moving.end_ns) before = &moving;
  }
}

/// Adds the transfers of one step. The duration of a collective is the shortest over the ranks.
void add_transfers(const store::Store& store, const StepDigest& step, Links& links) {
  std::map<std::uint64_t, Collective> collectives;
  std::vector<Moving> of_rank;
  for (const RankStep& rank : step.ranks) {
    of_rank.clear();
    for_each_collective(
        store, rank.rank, rank.begin_ns, rank.end_ns, [&](StreamId stream, const store::Span& span) {
          const auto fields = ev::as<EventKind::collective_begin>(span);
          const std::uint32_t ranks = ranks_of(store, rank.rank, span);
          const double bytes = static_cast<double>(fields.bytes) * ev::bus_factor(fields.op, ranks);
          if (bytes <= 0) return;
          const std::int64_t begin = std::max(span.begin_ns, span.mark_ns);
          const Transfer seen{bytes, hops_of(ranks), static_cast<double>(span.end_ns - begin)};
          const auto [at, inserted] =
              collectives.emplace(instance_of(store, rank.rank, stream, span),
                                  Collective{seen, stays_inside(store, rank.rank, span)});
          if (!inserted) at->second.transfer.ns = std::min(at->second.transfer.ns, seen.ns);
          of_rank.push_back({begin, span.end_ns, &at->second});
        });
    find_shared(of_rank);
    for_each_span(store, {rank.rank, StreamId::nvme}, rank.begin_ns, rank.end_ns,
                  [&](const store::Span& span) {
                    if (span.kind != EventKind::transfer_begin || span.end_ns == store::kOpen) return;
                    const std::int64_t bytes = ev::as<EventKind::transfer_begin>(span).bytes;
                    if (bytes > 0)
                      links.nvme.push_back(
                          {static_cast<double>(bytes), 1, static_cast<double>(span.end_ns - span.begin_ns)});
                  });
    for_each_span(
        store, {rank.rank, StreamId::copy}, rank.begin_ns, rank.end_ns, [&](const store::Span& span) {
          // Micro-batches do not belong to offloading, and are too short to measure the rate of a link.
          if (span.kind != EventKind::transfer_begin || span.end_ns == store::kOpen) return;
          const auto transfer = ev::as<EventKind::transfer_begin>(span);
          if (transfer.transfer != ev::TransferKind::input_to_device && transfer.bytes > 0)
            links.host.push_back(
                {static_cast<double>(transfer.bytes), 1, static_cast<double>(span.end_ns - span.begin_ns)});
        });
  }
  for (const auto& [instance, collective] : collectives) {
    CollectiveTransfers& of = collective.inside ? links.inside : links.between;
    (collective.alone ? of.alone : of.shared).push_back(collective.transfer);
  }
}

/// Fits transfers that did not share the link: the others do not show its rate. Fits all if every one was
/// shared.
std::optional<LinkPace> fit_collectives(const CollectiveTransfers& transfers) {
  return fit_link(transfers.alone.empty() ? transfers.shared : transfers.alone);
}

/// got / wanted if both are above 0, else 1.
double off_by(double got, double wanted) { return got > 0 && wanted > 0 ? got / wanted : 1; }

}  // namespace

double hops_of(std::uint32_t ranks) noexcept { return std::bit_width(std::max(2U, ranks) - 1); }

std::optional<LinkPace> fit_link(const std::vector<Transfer>& transfers) {
  // Every step has the same transfers: the median removes outliers.
  std::map<std::pair<double, double>, std::vector<double>> alike;
  for (const Transfer& t : transfers) alike[{t.hops, t.bytes}].push_back(t.ns);
  double hh = 0, hb = 0, bb = 0, ht = 0, bt = 0, seen = 0;
  for (const auto& [size, durations] : alike) {
    const auto [hops, bytes] = size;
    const auto count = static_cast<double>(durations.size());
    const double ns = quantile(durations, 0.5);
    hh += count * hops * hops;
    hb += count * hops * bytes;
    bb += count * bytes * bytes;
    ht += count * hops * ns;
    bt += count * bytes * ns;
    seen += count * ns;
  }
  if (!(bb > 0) || !(seen > 0)) return std::nullopt;
  const double determinant = hh * bb - hb * hb;
  double latency = 0, per_byte = bt / bb;
  // Transfers of one size do not separate latency from rate: fit the rate alone.
  if (determinant > 1e-9 * hh * bb) {
    latency = (ht * bb - bt * hb) / determinant;
    per_byte = (bt * hh - ht * hb) / determinant;
    if (latency < 0) latency = 0, per_byte = bt / bb;
    if (per_byte <= 0) per_byte = 1e-6, latency = ht / hh;
  }
  double fitted = 0, error = 0, total = 0;
  for (const Transfer& t : transfers) fitted += t.hops * latency + t.bytes * per_byte;
  const double scale = seen / fitted;
  latency *= scale;
  per_byte *= scale;
  for (const Transfer& t : transfers) {
    error += std::abs(t.hops * latency + t.bytes * per_byte - t.ns);
    total += t.ns;
  }
  return LinkPace{1 / per_byte, latency * 1e-3, transfers.size(), 100 * error / total};
}

std::optional<LinkPace> measure_link(const store::Store& store, const std::vector<const StepDigest*>& steps) {
  if (!store.has_tables()) return std::nullopt;
  Links links;
  for (const StepDigest* step : steps) add_transfers(store, *step, links);
  const auto between = fit_collectives(links.between);
  return between ? between : fit_collectives(links.inside);
}

Pace measure_pace(const store::Store& store) {
  if (!store.has_tables())
    throw std::invalid_argument("it holds no description of the run (no rank sent tables)");
  Digest digest;
  digest.update(store);
  if (digest.steps().empty()) throw std::invalid_argument("it holds no step that every rank completed");
  std::vector<double> step, work, optimizer, worker;
  std::map<std::uint32_t, double> computed;
  Links links;
  for (std::size_t i = digest.first_measured(); i < digest.steps().size(); ++i) {
    const StepDigest& taken = digest.steps()[i];
    double total = 0, compute = 0, device = 0, cpu = 0;
    for (const RankStep& rank : taken.ranks) {
      total += static_cast<double>(rank.time.total_ns) * 1e-6;
      const double updating = spans_ms(store, {rank.rank, StreamId::compute}, rank.begin_ns, rank.end_ns,
                                       EventKind::optimizer_begin);
      const double all = static_cast<double>(rank.time.compute_ns) * 1e-6;
      const double offloaded =
          spans_ms(store, {rank.rank, StreamId::worker}, rank.begin_ns, rank.end_ns,
                   EventKind::optimizer_begin) -
          static_cast<double>(update_waits(store, rank.rank, rank.begin_ns, rank.end_ns).length()) * 1e-6;
      compute += std::max(0.0, all - updating - offloaded);
      device += updating;
      cpu += offloaded;
      computed[rank.rank] += all;
    }
    const auto ranks = static_cast<double>(taken.ranks.size());
    step.push_back(total / ranks);
    work.push_back(compute / ranks);
    optimizer.push_back(device / ranks);
    worker.push_back(cpu / ranks);
    add_transfers(store, taken, links);
  }
  Pace pace{median_of(step),
            median_of(work),
            median_of(optimizer),
            median_of(worker),
            fit_collectives(links.inside),
            fit_collectives(links.between),
            fit_link(links.host),
            fit_link(links.nvme),
            {}};
  double sum = 0;
  for (const auto& [rank, ms] : computed) sum += ms;
  const double mean = sum / static_cast<double>(computed.size());
  constexpr double kAlike = 0.01;
  const bool alike = std::ranges::all_of(
      computed, [&](const auto& rank) { return std::abs(rank.second - mean) <= kAlike * mean; });
  if (!alike && mean > 0) {
    for (const auto& [rank, ms] : computed) {
      pace.slowness.resize(rank + 1, 1.0);
      pace.slowness[rank] = ms / mean;
    }
  }
  return pace;
}

Rates calibrate(const Rates& rates, const Pace& wanted, const Pace& modelled) {
  Rates next = rates;
  next.memory_gb_per_s *= off_by(modelled.optimizer_ms, wanted.optimizer_ms);
  next.host_memory_gb_per_s *= off_by(modelled.worker_ms, wanted.worker_ms);
  next.matrix_tflops *= off_by(modelled.work_ms, wanted.work_ms);
  return next;
}

double relative_error(const Pace& wanted, const Pace& modelled) {
  double largest = 0;
  const auto take = [&](double a, double b) {
    if (a > 1e-3 * wanted.step_ms) largest = std::max(largest, std::abs(b / a - 1));
  };
  take(wanted.work_ms, modelled.work_ms);
  take(wanted.optimizer_ms, modelled.optimizer_ms);
  take(wanted.worker_ms, modelled.worker_ms);
  return largest;
}

std::string hardware_file(const Rates& rates, const std::string& description, std::uint32_t ranks_per_node) {
  const auto link = [](const LinkPace& pace) {
    return nlohmann::json{{"gb_per_s", pace.gb_per_s}, {"latency_us", pace.latency_us}};
  };
  nlohmann::json file{{"name", "as recorded"},
                      {"description", description},
                      {"sources", {"fitted to a recorded run"}},
                      {"ranks_per_node", ranks_per_node},
                      {"memory_gib", 0},
                      {"f32_tflops", rates.matrix_tflops},
                      {"f16_tflops", rates.matrix_tflops},
                      {"matrix_efficiency", 1},
                      {"memory_gb_per_s", rates.memory_gb_per_s},
                      {"memory_efficiency", 1},
                      {"kernel_us", 0},
                      {"launch_us", 0},
                      {"inside", link(rates.inside)},
                      {"between", link(rates.between)},
                      {"host", link(rates.host)},
                      {"host_memory_gb_per_s", rates.host_memory_gb_per_s}};
  if (rates.nvme) file["nvme"] = link(*rates.nvme);
  return file.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace shardscope::analysis
