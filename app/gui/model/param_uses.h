// Whether the parameters that a rank has whole are used at a time, kept for a later use, or held for nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/analysis/held_long.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class ParamUse : std::uint8_t {
  not_here,     ///< not whole on the rank
  persistent,   ///< whole all the time
  wanted,       ///< a module uses it, or none has used it since it is whole
  kept,         ///< its last use is over; it is used again before it is released
  for_nothing,  ///< its last use is over and it is not used again before it is released, or the step ends
};
struct ParamUseAt {
  ParamUse use = ParamUse::not_here;
  std::int64_t unused_ns = 0;  ///< kept, for_nothing: since the last use
  std::int64_t left_ns = 0;    ///< kept: until the next use; for_nothing: until it is released
};
/// `held`: of the rank in the step that `at_ns` lies in.
[[nodiscard]] ParamUseAt param_use(const analysis::HeldLong& held, const ev::RunTables& tables,
                                   std::uint32_t param, const store::ParamState& state, std::int64_t at_ns);
/// "last used 1.2 ms ago, used again in 3.4 ms"; empty where there is nothing to say.
[[nodiscard]] std::string text_of(const ParamUseAt& use);

/// Of the ranks that are looked at, in one step. A rank's is read once; a few ranks a frame, since the events
/// of a step may be many.
class ParamUses {
 public:
  /// Once a frame, before of(). `run`: Session::number().
  void look_at(std::uint64_t run, const store::Store& store, std::int64_t at_ns);
  /// Null where it is not known: from the next frame on missing() says why, or reading() that it is being
  /// read.
  [[nodiscard]] const analysis::HeldLong* of(const store::Store& store, std::uint32_t rank);
  [[nodiscard]] std::string_view missing() const noexcept { return missing_; }
  /// In the frame before of() was called for ranks that are not read yet.
  [[nodiscard]] bool reading() const noexcept { return reading_; }

 private:
  struct Key {
    std::uint64_t run = 0;
    std::uint32_t step = 0;
    std::int64_t end_ns = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  std::optional<Key> key_;
  std::optional<store::StepRow> step_;
  std::map<std::uint32_t, analysis::HeldLong> by_rank_;
  std::string missing_;
  int may_read_ = 0;
  bool reading_ = false;  ///< of the frame before
  bool unread_ = false;   ///< of this one
};

}  // namespace shardscope::gui
