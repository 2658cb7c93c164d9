// The operations of dumps of PyTorch's Flight Recorder, by process group and rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/analysis/flight_compare.h"
#include "app/analysis/torch_flight.h"

namespace shardscope::analysis {

/// Entries of one sequence: several where they are coalesced.
using FlightParts = std::span<const FlightEntry* const>;

/// What one rank issued in one group.
struct FlightLane {
  std::uint32_t rank = 0;
  const FlightDump* dump = nullptr;                ///< null: there is none
  std::vector<const FlightEntry*> collectives;     ///< by sequence
  std::vector<const FlightEntry*> point_to_point;  ///< as issued

  [[nodiscard]] FlightParts at(std::int64_t sequence) const;
};

struct FlightGroupLanes {
  std::string name, description;
  std::vector<FlightLane> lanes;  ///< a member each, ascending by rank

  /// Null: no member.
  [[nodiscard]] const FlightLane* of(std::uint32_t rank) const;
};

/// Lanes of the groups that any dump has an operation of; by name.
[[nodiscard]] std::vector<FlightGroupLanes> flight_groups(const std::vector<FlightDump>& dumps,
                                                          const FlightTexts& texts);
[[nodiscard]] FlightProgress flight_progress(const FlightLane& lane);

/// The first difference among what the members issued as collectives.
[[nodiscard]] std::optional<FlightDifference> collective_difference(const FlightGroupLanes& group,
                                                                    const std::vector<FlightProgress>& ranks,
                                                                    const FlightTexts& texts);
/// Whether two ranks issued the same at a sequence, by what must be the same.
[[nodiscard]] bool issued_alike(FlightParts a, FlightParts b, const FlightTexts& texts);

/// The two ends of a send or receive by place in the group; nothing of another operation or of any source.
struct FlightPeers {
  bool is_send = false;
  std::size_t from = 0, to = 0;
};
[[nodiscard]] std::optional<FlightPeers> flight_peers(const FlightEntry& entry, const FlightTexts& texts);
/// The first send without its receive, or receive without its send, or pair of other sizes or types.
[[nodiscard]] std::optional<FlightDifference> pair_difference(const FlightGroupLanes& group,
                                                              const FlightTexts& texts);

}  // namespace shardscope::analysis
