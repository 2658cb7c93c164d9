#include "app/collector/gate_comparison.h"

#include "instrumentation/event_fields.h"

namespace shardscope::collector {

using instrumentation::Event;
using instrumentation::EventKind;

std::optional<GateComparison::Difference> GateComparison::add(std::uint32_t rank,
                                                              std::span<const Event> events) {
  if (returned_) return std::nullopt;
  for (const Event& event : events) {
    if (event.kind != EventKind::gate) continue;
    const auto passed = instrumentation::as<EventKind::gate>(event);
    if (passed.number <= after_) continue;
    Gate& gate = gates_[passed.number % kRemembered];
    // The gates of a rank that is thousands of gates behind the others are not compared.
    if (gate.known && static_cast<std::int32_t>(passed.number - gate.number) < 0) continue;
    if (!gate.known || gate.number != passed.number) {
      gate = {.number = passed.number, .rank = rank, .id = passed.id, .kind = passed.gate, .known = true};
      continue;
    }
    if (gate.id == passed.id && gate.kind == passed.gate) continue;
    returned_ = true;
    return Difference{.number = passed.number,
                      .one = {gate.rank, gate.id, gate.kind},
                      .other = {rank, passed.id, passed.gate}};
  }
  return std::nullopt;
}

std::string GateComparison::text_of(const Difference& difference) const {
  const auto passed = [&](const Difference::Gate& gate) {
    return "rank " + std::to_string(gate.rank) + " passed " + names_.name(gate.kind, gate.id);
  };
  return "ranks pass different gates: as gate " + std::to_string(difference.number) + " " +
         passed(difference.one) + ", " + passed(difference.other);
}

void GateComparison::alike_from(std::uint64_t number) {
  const auto after = static_cast<std::uint32_t>(number);
  if (after == after_) return;
  after_ = after;
  returned_ = false;
}

}  // namespace shardscope::collector
