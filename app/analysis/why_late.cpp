#include "app/analysis/why_late.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "app/analysis/slow_rank.h"
#include "app/analysis/summary.h"

namespace shardscope::analysis {
namespace {

struct Class {
  WhyLate::Part part;
  double OwnParts::*of;
};
constexpr std::array kClasses{Class{WhyLate::Part::compute, &OwnParts::compute},
                              Class{WhyLate::Part::copy, &OwnParts::copy},
                              Class{WhyLate::Part::idle, &OwnParts::idle}};

}  // namespace

const char* verb_of(const WhyLate& why) noexcept {
  if (why.for_data) return "waited for data";
  switch (why.part) {
    case WhyLate::Part::compute:
      return "computed";
    case WhyLate::Part::copy:
      return "copied";
    case WhyLate::Part::idle:
      return "did nothing";
  }
  return "?";
}

std::string text_of(const WhyLate& why) {
  return why.for_data ? fmt::format("it waited {:.1f} ms of a step for its data", why.data_ms)
                      : fmt::format("it {} {:.1f} ms of a step, the others {:.1f} ms", verb_of(why),
                                    why.own_ms, why.usual_ms);
}

std::optional<WhyLate> why_late(const std::vector<OwnParts>& ranks, std::uint32_t rank) {
  const auto own = std::ranges::find(ranks, rank, &OwnParts::rank);
  if (own == ranks.end()) return std::nullopt;
  std::optional<WhyLate> out;
  for (const Class& one : kClasses) {
    std::vector<double> all;
    for (const OwnParts& other : ranks) all.push_back(other.*one.of);
    const auto usual = OthersMedian(std::move(all)).without((*own).*one.of);
    if (!usual) return std::nullopt;
    const double excess = (*own).*one.of - *usual;
    if (excess <= 0 || (out && excess <= out->excess_ms())) continue;
    out = {.part = one.part, .own_ms = (*own).*one.of, .usual_ms = *usual, .data_ms = own->data};
  }
  if (!out) return out;
  std::vector<double> data;
  for (const OwnParts& other : ranks) data.push_back(other.data);
  out->for_data = own->data - *OthersMedian(std::move(data)).without(own->data) > out->excess_ms() / 2;
  return out;
}

std::optional<WhyLate> why_late(const Summary& summary, std::uint32_t rank) {
  std::vector<OwnParts> parts;
  double waited_ms = 0;  // of a step, each of the others for it
  for (const RankSummary& one : summary.ranks) {
    if (one.time_steps == 0) continue;
    const auto of_step = [&](std::int64_t ns) { return static_cast<double>(ns) * 1e-6 / one.time_steps; };
    parts.push_back({.rank = one.rank,
                     .compute = of_step(one.time.compute_ns),
                     .copy = of_step(one.time.exposed_copy_ns),
                     .idle = of_step(one.time.idle_ns),
                     .data = of_step(one.data_wait_ns.value_or(0))});
    if (one.rank == rank)
      waited_ms = of_step(one.others_waited_ns) /
                  static_cast<double>(std::max<std::size_t>(summary.ranks.size() - 1, 1));
  }
  auto why = why_late(parts, rank);
  if (why && why->excess_ms() < waited_ms / 2) why.reset();
  return why;
}

std::uint64_t allocator_retries(const store::Store& store, std::uint32_t rank,
                                const std::vector<Interval>& within) {
  if (within.empty()) return 0;
  std::uint64_t sum = 0;
  std::optional<std::uint64_t> before;  // the allocator counts them itself, from its begin on
  auto in = within.begin();
  for (const ev::Event& event : store.instants_of(rank, ev::EventKind::allocator_state)) {
    const auto at_ns = static_cast<std::int64_t>(event.ticks);
    const std::uint64_t count = ev::as<ev::EventKind::allocator_state>(event).retries;
    while (in != within.end() && in->end <= at_ns) ++in;
    if (in == within.end()) break;
    if (at_ns >= in->begin && before) sum += count - std::min(*before, count);
    before = count;
  }
  return sum;
}

}  // namespace shardscope::analysis
