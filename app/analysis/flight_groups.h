// The operations in dumps of PyTorch's Flight Recorder, by process group and rank.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/analysis/flight_compare.h"
#include "app/analysis/torch_flight.h"

namespace shardscope::analysis {

/// Entries with one sequence number: several if they are coalesced.
using FlightParts = std::span<const FlightEntry* const>;

/// The operations of one rank in one group.
struct FlightLane {
  std::uint32_t rank = 0;
  const FlightDump* dump = nullptr;                ///< null: no dump
  std::vector<const FlightEntry*> collectives;     ///< by sequence number
  std::vector<const FlightEntry*> point_to_point;  ///< in order of issue

  [[nodiscard]] FlightParts at(std::int64_t sequence) const;
};

struct FlightGroupLanes {
  std::string name, description;
  std::vector<FlightLane> lanes;  ///< one per member, ascending by rank

  /// Null if `rank` is not a member.
  [[nodiscard]] const FlightLane* of(std::uint32_t rank) const;
};

/// Lanes of the groups with an operation in any dump; by name.
[[nodiscard]] std::vector<FlightGroupLanes> flight_groups(const std::vector<FlightDump>& dumps,
                                                          const FlightTexts& texts);
[[nodiscard]] FlightProgress flight_progress(const FlightLane& lane);

/// The first difference between the collectives of the members.
[[nodiscard]] std::optional<FlightDifference> collective_difference(const FlightGroupLanes& group,
                                                                    const std::vector<FlightProgress>& ranks,
                                                                    const FlightTexts& texts);
/// Whether two ranks issued matching operations, by the fields that must be equal.
[[nodiscard]] bool issued_alike(FlightParts a, FlightParts b, const FlightTexts& texts);

/// Sender and receiver of a message, as indices in the group; nullopt for collectives and "any source".
struct FlightPeers {
  bool is_send = false;
  std::size_t from = 0, to = 0;
};
[[nodiscard]] std::optional<FlightPeers> flight_peers(const FlightEntry& entry, const FlightTexts& texts);
/// The first send without a receive, receive without a send, or pair with different sizes or types.
[[nodiscard]] std::optional<FlightDifference> pair_difference(const FlightGroupLanes& group,
                                                              const FlightTexts& texts);

}  // namespace shardscope::analysis
