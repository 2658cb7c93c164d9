// Parameter statuses of one rank at any time, at the same cost forwards and backwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/store/store.h"

namespace shardscope::store {

/// Status changes in order of time, and a keyframe of all parameters every few thousand changes.
class StatusIndex {
 public:
  struct Change {
    std::int64_t at_ns = 0;
    std::uint32_t param = 0, module = ev::kNoId, gather = ev::kNoId;
    std::uint8_t code = 0;  ///< status_code()
  };
  /// Ids from here on are invalid and ignored.
  static constexpr std::uint32_t kMaxParams = 1U << 20;
  static constexpr std::int64_t kNever = INT64_MIN;  ///< `since_ns` of a parameter that never changed

  StatusIndex() = default;
  /// Continues from keyframe() of another index.
  explicit StatusIndex(std::vector<ParamState> from);
  /// By parameter: the state after every change so far; those that never changed are not distinguished from
  /// the initial one.
  [[nodiscard]] const std::vector<ParamState>& keyframe() const noexcept { return latest_; }
  /// The same before the first change of this block.
  [[nodiscard]] const std::vector<ParamState>& before() const noexcept { return base_; }
  /// Removes every change, but keeps the state they lead to.
  void begin_next_stretch();
  /// For few queries: builds no keyframes, so that a query replays all changes, and keyframe() is not
  /// available. Call before the first change.
  void without_keyframes() noexcept { with_keyframes_ = false; }
  /// Keeps the latest state and no changes. Call before the first change.
  void without_history() noexcept { history_ = false; }

  void set_initial(ParamState state);  ///< before the first change
  void push(const Change& change);
  void reserve(std::size_t changes) { changes_.reserve(changes); }
  /// Sorts and indexes the changes pushed since the last call.
  void settle();
  void all_at(std::int64_t at_ns, std::span<ParamState> out) const;
  /// Applies the changes of this block up to a time to `out`, without the state before them.
  void replay(std::int64_t at_ns, std::span<ParamState> out) const;
  /// Changes of one parameter in this block.
  [[nodiscard]] std::vector<Store::StatusChange> history(std::uint32_t param) const;
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  struct Keyframe {
    std::size_t next = 0;  ///< first change not in it
    std::vector<ParamState> states;
  };
  [[nodiscard]] static ParamState state_of(const Change& change) noexcept;
  static void apply(const Change& change, ParamState& state) noexcept;

  ParamState initial_{.since_ns = kNever};
  std::vector<ParamState> base_;  ///< before the first change of this block
  std::vector<Change> changes_;
  std::size_t settled_ = 0;
  bool history_ = true, with_keyframes_ = true;
  std::vector<Keyframe> keyframes_;
  std::vector<ParamState> latest_;  ///< after changes_[0, settled_)
};

}  // namespace shardscope::store
