// Dumps of PyTorch's Flight Recorder set beside one another: in each process group the first operation in
// which its ranks differ, which rank is behind, and who waits in which operation for whom.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/analysis/torch_flight.h"

namespace shardscope::analysis {

/// What some ranks issued at a place where others issued something else. Entries are of the dumps compared.
struct FlightSide {
  std::vector<std::uint32_t> ranks;
  const FlightEntry* entry = nullptr;  ///< null: these ranks issued nothing there
};

struct FlightDifference {
  enum class What : std::uint8_t {
    operation,   ///< other operations
    count,       ///< one of them more of a coalesced operation's parts
    sizes,       ///< the same with other sizes
    type,        ///< with other data types
    missing,     ///< some never issued it
    unfinished,  ///< all issued it alike, and it has completed on some at most
  } what{};
  std::int64_t sequence = 0;
  bool point_to_point = false;
  std::vector<FlightSide> sides;  ///< most ranks first; missing last
  std::string detail;             ///< of sizes that must agree in sum alone
};
[[nodiscard]] const char* name_of(FlightDifference::What what);

/// How far a rank is in a group. No sequence: it holds no operation of it.
struct FlightProgress {
  std::uint32_t rank = 0;
  bool has_dump = true;
  /// Whether its dump has all that it issued since the first that it holds, so that what is not there was
  /// never issued: not so where its buffer no longer reaches back to one, or completed operations were left
  /// out.
  bool whole = true;
  std::optional<std::int64_t> first, issued,
      completed;                      ///< sequences: first held, last issued, last completed
  const FlightEntry* last = nullptr;  ///< last issued
};

struct FlightGroupState {
  std::string name, description;
  std::vector<FlightProgress> ranks;  ///< its members, ascending
  std::optional<FlightDifference> difference;
};

/// What a rank stands in, at the time of its dump.
struct FlightRankState {
  std::uint32_t rank = 0;
  const FlightEntry* open = nullptr;     ///< its oldest operation that has not completed; null: none
  const FlightEntry* last = nullptr;     ///< its last operation of any group
  std::size_t group = 0;                 ///< of `open`, by index; of none where its dump does not name it
  std::vector<std::uint32_t> waits_for;  ///< that have not entered it, issued something else, or have no dump
};

struct FlightComparison {
  std::vector<FlightGroupState> groups;  ///< those that any dump holds an operation of
  std::vector<FlightRankState> ranks;
  std::vector<std::uint32_t> without_dump;  ///< members of these groups
  std::vector<std::uint32_t> culprits;      ///< that others wait for in the end; empty where none stands out
};

/// `dumps`: ascending by rank, each once; they and `texts` outlive the result.
[[nodiscard]] FlightComparison compare_flights(const std::vector<FlightDump>& dumps,
                                               const FlightTexts& texts);

/// A paragraph, then a line for each further group that differs and each rank.
[[nodiscard]] std::vector<std::string> flight_lines(const FlightComparison& comparison,
                                                    const FlightTexts& texts);
[[nodiscard]] std::string flight_json(const FlightComparison& comparison,
                                      const std::vector<FlightDump>& dumps, const FlightTexts& texts);

}  // namespace shardscope::analysis
