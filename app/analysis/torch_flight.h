// Dumps of PyTorch's Flight Recorder, one per rank: its last collectives in every process group, with sizes,
// states and the lines of code that issued them. Format: version 2.x (2.10 in PyTorch 2.15),
// torch/csrc/distributed/c10d/FlightRecorderDetail.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/analysis/plain_data.h"

namespace shardscope::analysis {

struct FlightFrame {
  std::string function, file;
  std::int64_t line = 0;
};

/// Interned data that many entries of many ranks share: sizes, names, stacks. Id 0 is the empty one.
class FlightTexts {
 public:
  using Id = std::uint32_t;
  /// Sizes of all tensors of one side: "[[1024, 768], [3]]".
  struct Sizes {
    std::vector<std::vector<std::int64_t>> of;
    std::int64_t elems = 0;  ///< of all tensors
  };

  FlightTexts();
  [[nodiscard]] Id text(std::string_view text);
  [[nodiscard]] Id sizes(std::vector<std::vector<std::int64_t>> of);
  [[nodiscard]] Id frames(std::vector<FlightFrame> frames);
  [[nodiscard]] const std::string& text_of(Id id) const { return texts_[id]; }
  [[nodiscard]] const Sizes& sizes_of(Id id) const { return sizes_[id]; }
  /// Innermost first, as recorded.
  [[nodiscard]] const std::vector<FlightFrame>& frames_of(Id id) const { return frames_[id]; }

 private:
  std::vector<std::string> texts_;
  std::vector<Sizes> sizes_;
  std::vector<std::vector<FlightFrame>> frames_;
  std::unordered_map<std::string, Id> by_text_, by_sizes_, by_frames_;
};

/// scheduled: issued by the host; started: observed on the device, if the backend supports it; ended: gloo
/// does not report whether with an error.
enum class FlightState : std::uint8_t { scheduled, started, completed, ended, unknown };
[[nodiscard]] const char* name_of(FlightState state);

struct FlightEntry {
  FlightTexts::Id group = 0;        ///< its name, "0"
  FlightTexts::Id description = 0;  ///< "default_pg"
  FlightTexts::Id backend = 0;      ///< "nccl"
  FlightTexts::Id name = 0;         ///< "all_reduce", "send 0->1"
  std::int64_t sequence = 0;        ///< among the group's collectives, or among its point-to-point operations
  std::int64_t record = 0;          ///< among all operations that this rank recorded
  std::int64_t created_ns = 0;      ///< Unix time of that host's clock
  FlightTexts::Id input_sizes = 0, output_sizes = 0, input_types = 0, output_types = 0, frames = 0;
  FlightState state = FlightState::unknown;
  bool point_to_point = false;
  bool timed_out = false;  ///< its watchdog reported a timeout
  [[nodiscard]] bool is_open() const {
    return state == FlightState::scheduled || state == FlightState::started;
  }
};

struct FlightGroup {
  std::string description;           ///< "default_pg"
  std::vector<std::uint32_t> ranks;  ///< ascending; empty: not recorded
};

struct FlightDump {
  std::uint32_t rank = 0;
  std::string version, library;               ///< of the format; of NCCL, if recorded
  std::map<std::string, FlightGroup> groups;  ///< by name; gloo writes none that its entries reference
  std::vector<FlightEntry> entries;           ///< in order of issue
  /// Whether it has everything since the begin of the run: its buffer has not wrapped.
  [[nodiscard]] bool from_the_begin() const { return !entries.empty() && entries.front().record == 0; }
};

/// Parses a dump: a pickle or JSON. Throws std::invalid_argument: what, what to do.
[[nodiscard]] FlightDump parse_flight_dump(std::string_view bytes, std::uint32_t rank, FlightTexts& texts);

/// The innermost frame outside of installed packages, which is the user's code; null if none was recorded.
[[nodiscard]] const FlightFrame* users_frame(const std::vector<FlightFrame>& frames);

}  // namespace shardscope::analysis
