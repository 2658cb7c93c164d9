// The status of every parameter on each rank at one time. Kept while nothing changes; after a change each
// frame reads the ranks that its time budget allows, those left out longest first, and the others keep what
// they had.
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
  /// Starts a frame that shows a time of a run (Session::number()). `budget`: for reading, exceeded by one
  /// block of a rank at most; nullopt: unlimited. Where it is 0 and the time moves, each frame reads one rank
  /// of one block, and as many frames as there are ranks read all.
  void begin_frame(std::uint64_t run, const store::Store& store, std::int64_t at_ns, std::size_t params,
                   std::optional<std::chrono::nanoseconds> budget);
  [[nodiscard]] const OfRank& of(const store::Store& store, std::uint32_t rank);
  /// A rank was left out since begin_frame().
  [[nodiscard]] bool behind() const noexcept { return oldest_left_out_ != kNever; }

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
    std::uint64_t read_in = 0;  ///< number of the frame; 0: not read yet
  };
  Key key_;
  std::map<std::uint32_t, Kept> ranks_;
  std::optional<std::chrono::nanoseconds> budget_;
  std::chrono::nanoseconds spent_{0};
  static constexpr std::uint64_t kNever = UINT64_MAX;
  std::uint64_t frame_ = 0;
  std::uint64_t oldest_left_out_ = kNever;  ///< least `read_in` of the ranks left out since begin_frame()
  std::uint64_t turn_ = kNever;             ///< the same of the frame before: only such ranks are read
};

}  // namespace shardscope::gui
