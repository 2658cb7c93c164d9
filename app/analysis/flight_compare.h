// Compares dumps of PyTorch's Flight Recorder: for each process group the first operation in which its ranks
// differ, which rank is behind, and which rank waits in which operation for which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/torch_flight.h"

namespace shardscope::analysis {

/// Ranks that issued the same operation where others issued another. Entries belong to the compared dumps.
struct FlightSide {
  std::vector<std::uint32_t> ranks;
  const FlightEntry* entry = nullptr;  ///< null: nothing issued
};

struct FlightDifference {
  enum class What : std::uint8_t {
    operation,   ///< different operations
    count,       ///< different numbers of parts in a coalesced operation
    sizes,       ///< the same operation with different sizes
    type,        ///< the same operation with different data types
    missing,     ///< some ranks never issued it
    unfinished,  ///< all ranks issued the same; not completed on every rank
  } what{};
  std::int64_t sequence = 0;
  bool point_to_point = false;
  std::vector<FlightSide> sides;  ///< most ranks first; the missing side last
  std::string detail;             ///< for sizes of which only the sums must match
};
[[nodiscard]] const char* name_of(FlightDifference::What what);

/// How far a rank is in a group. Without sequences its dump has no operation of the group.
struct FlightProgress {
  std::uint32_t rank = 0;
  bool has_dump = true;
  /// Whether the dump contains every operation issued since its first one, so that a missing one was never
  /// issued. False if the buffer no longer contains an operation of the group, or completed operations were
  /// omitted.
  bool whole = true;
  std::optional<std::int64_t> first, issued,
      completed;                      ///< sequence numbers: first in the dump, last issued, last completed
  const FlightEntry* last = nullptr;  ///< last issued
};

struct FlightGroupState {
  std::string name, description;
  std::vector<FlightProgress> ranks;  ///< all members, ascending
  std::optional<FlightDifference> difference;
};

/// The state of a rank at the time of its dump.
struct FlightRankState {
  std::uint32_t rank = 0;
  const FlightEntry* open = nullptr;     ///< its oldest operation that is not completed; null: none
  const FlightEntry* last = nullptr;     ///< its last operation in any group
  std::size_t group = 0;                 ///< index of the group of `open`; unspecified without it
  std::vector<std::uint32_t> waits_for;  ///< did not enter it, issued something else, or no dump
};

struct FlightComparison {
  std::vector<FlightGroupState> groups;  ///< groups with an operation in any dump
  std::vector<FlightRankState> ranks;
  std::vector<std::uint32_t> without_dump;  ///< members of these groups without a dump
  std::vector<std::uint32_t> culprits;      ///< the likely cause of the waits; empty if unclear
};

/// `dumps`: ascending by rank, one per rank; `dumps` and `texts` must outlive the result.
[[nodiscard]] FlightComparison compare_flights(const std::vector<FlightDump>& dumps,
                                               const FlightTexts& texts);

/// A paragraph, then a line for each further group with a difference and for each rank.
[[nodiscard]] std::vector<std::string> flight_lines(const FlightComparison& comparison,
                                                    const FlightTexts& texts);
[[nodiscard]] std::string flight_json(const FlightComparison& comparison,
                                      const std::vector<FlightDump>& dumps, const FlightTexts& texts);

}  // namespace shardscope::analysis
