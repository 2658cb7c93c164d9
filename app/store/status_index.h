// Parameter status on one rank: what it was at any time, forwards and backwards at the same cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/store/store.h"

namespace shardscope::store {

/// Status changes in order of time, a keyframe of every parameter each few thousand changes, and for each
/// parameter the places of its own changes.
class StatusIndex {
 public:
  struct Change {
    std::int64_t at_ns = 0;
    std::uint32_t param = 0, module = ev::kNoId, gather = ev::kNoId;
    std::uint8_t code = 0;  ///< status_code()
  };
  /// Ids at or over this are garbage and ignored.
  static constexpr std::uint32_t kMaxParams = 1U << 20;

  void set_initial(ParamState state) { initial_ = state; }  ///< before the first change
  void push(const Change& change);
  /// Orders what was pushed since the last call and brings the index up to date.
  void settle();
  void shift(std::int64_t delta_ns);
  [[nodiscard]] ParamState at(std::uint32_t param, std::int64_t at_ns) const;
  void all_at(std::int64_t at_ns, std::span<ParamState> out) const;
  [[nodiscard]] std::vector<Store::StatusChange> history(std::uint32_t param) const;

 private:
  struct Keyframe {
    std::size_t next = 0;  ///< first change that it does not hold
    std::vector<ParamState> states;
  };
  [[nodiscard]] static ParamState state_of(const Change& change) noexcept;

  ParamState initial_;
  std::vector<Change> changes_;
  std::size_t settled_ = 0;
  std::vector<std::vector<std::uint32_t>> places_;  ///< by param: indices into changes_
  std::vector<Keyframe> keyframes_;
  std::vector<ParamState> latest_;  ///< after changes_[0, settled_)
};

}  // namespace shardscope::store
