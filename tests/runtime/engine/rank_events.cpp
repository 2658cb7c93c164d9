#include "tests/runtime/engine/rank_events.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"

namespace shardscope::engine::testing {
namespace {

using instrumentation::Event;
using instrumentation::EventKind;
using instrumentation::RingRegistry;

/// Says in a thread's ring whose it is: rings hold no rank.
Event owner(std::uint32_t rank) { return {.kind = EventKind::tokens, .a = rank, .v0 = -1}; }
bool names_owner(const Event& event) { return event.kind == EventKind::tokens && event.v0 == -1; }

/// Of each rank, in order of time.
std::map<std::uint32_t, std::vector<Event>> drain_by_rank() {
  std::vector<Event> all;
  std::vector<std::size_t> begins = RingRegistry::instance().drain(all).run_begins;
  begins.push_back(all.size());
  std::map<std::uint32_t, std::vector<Event>> ranks;
  for (std::size_t ring = 0; ring + 1 < begins.size(); ++ring) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(begins[ring]);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(begins[ring + 1]);
    const auto named = std::find_if(begin, end, names_owner);
    if (named == end) continue;
    std::vector<Event>& events = ranks[named->a];
    std::copy_if(begin, end, std::back_inserter(events), [](const Event& e) { return !names_owner(e); });
  }
  for (auto& [rank, events] : ranks) {
    std::stable_sort(events.begin(), events.end(),
                     [](const Event& a, const Event& b) { return a.ticks < b.ticks; });
  }
  return ranks;
}

}  // namespace

std::vector<Event> ObservedRun::lane(std::uint32_t rank, instrumentation::StreamId stream) const {
  std::vector<Event> result;
  const std::vector<Event>& all = events.at(rank);
  std::copy_if(all.begin(), all.end(), std::back_inserter(result),
               [stream](const Event& e) { return e.stream == stream; });
  return result;
}

ObservedRun train_observed(RunSpec spec, instrumentation::Detail detail) {
  spec.prepare = [](const Context& context, std::uint32_t rank) {
    const Event mark = owner(rank);
    instrumentation::emit(mark);
    device::Device& device = context.device;
    for (device::Stream* stream : {&device.compute(), &device.gather(), &device.reduce(), &device.copy(),
                                   &device.nvme(), &device.worker()}) {
      stream->run([mark](const kernels::Exec&) { instrumentation::emit(mark); });
    }
    device.synchronize();
  };
  const int before = instrumentation::g_detail.exchange(static_cast<int>(detail));
  static_cast<void>(drain_by_rank());
  const std::uint64_t dropped = RingRegistry::instance().dropped();
  ObservedRun observed;
  observed.run = train(spec);
  observed.events = drain_by_rank();
  instrumentation::g_detail.store(before);
  EXPECT_EQ(RingRegistry::instance().dropped(), dropped);
  EXPECT_EQ(observed.events.size(), spec.world);
  for (const RankRun& rank : observed.run.ranks) EXPECT_EQ(rank.error, "");
  return observed;
}

}  // namespace shardscope::engine::testing
