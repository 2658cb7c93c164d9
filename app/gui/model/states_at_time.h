// The status of every parameter on each rank at one time. Kept while nothing changes; after a change each
// frame reads the ranks that its time budget allows, and the others keep what they had.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

class StatesAtTime {
 public:
  struct OfRank {
    std::vector<store::ParamState> states;  ///< by parameter
    bool known = true;                      ///< StoreQuery::is_known()
    bool current = false;                   ///< false: of an earlier time; empty where nothing was read yet
  };
  /// A rank is left out in this many frames in a row at most.
  static constexpr int kMostLeftOut = 4;

  /// Starts a frame that shows a time of a run (Session::number()). `budget`: for reading, spent by one rank
  /// at least; nullopt: unlimited.
  void begin_frame(std::uint64_t run, const store::Store& store, std::int64_t at_ns, std::size_t params,
                   std::optional<std::chrono::nanoseconds> budget);
  [[nodiscard]] const OfRank& of(const store::Store& store, std::uint32_t rank);
  /// A rank was left out since begin_frame().
  [[nodiscard]] bool behind() const noexcept { return behind_; }

 private:
  struct Key {
    std::uint64_t run = 0, revision = 0;
    std::int64_t at_ns = 0;
    std::size_t params = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Kept {
    OfRank rank;
    Key key;
    int left_out = 0;
  };
  Key key_;
  std::map<std::uint32_t, Kept> ranks_;
  std::optional<std::chrono::nanoseconds> budget_;
  std::chrono::nanoseconds spent_{0};
  bool behind_ = false;
};

}  // namespace shardscope::gui
