// Whether the parameters gathered on a rank are in use at a time, kept for a later use, or held without one.
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
  not_here,     ///< not gathered on the rank
  persistent,   ///< gathered permanently
  wanted,       ///< a module uses it, or none has used it since it was gathered
  kept,         ///< between two uses, without a release between them
  for_nothing,  ///< after its last use before its release or the end of the step
};
struct ParamUseAt {
  ParamUse use = ParamUse::not_here;
  std::int64_t unused_ns = 0;  ///< kept, for_nothing: time since the last use
  std::int64_t left_ns = 0;    ///< kept: time until the next use; for_nothing: until the release
};
/// `held`: of the rank, for the step at `at_ns`.
[[nodiscard]] ParamUseAt param_use(const analysis::HeldLong& held, const ev::RunTables& tables,
                                   std::uint32_t param, const store::ParamState& state, std::int64_t at_ns);
/// Time since the parameter was used on the rank, or, if it is not there, since it was released: 0 while a
/// module uses it. `held` null, or persistent: since its status changed.
[[nodiscard]] std::int64_t unused_for_ns(const analysis::HeldLong* held, const ev::RunTables& tables,
                                         std::uint32_t param, const store::ParamState& state,
                                         std::int64_t at_ns);
/// "last used 1.2 ms ago, used again in 3.4 ms"; empty for the other uses.
[[nodiscard]] std::string text_of(const ParamUseAt& use);

/// HeldLong of the ranks looked at, for one step. Each rank is read once, a few ranks per frame, since a step
/// may have many events.
class ParamUses {
 public:
  /// Call once per frame, before of(). `run`: Session::number().
  void look_at(std::uint64_t run, const store::Store& store, std::int64_t at_ns);
  /// Null if unknown: from the next frame on missing() gives the reason, or reading() is true while it is
  /// read.
  [[nodiscard]] const analysis::HeldLong* of(const store::Store& store, std::uint32_t rank);
  [[nodiscard]] std::string_view missing() const noexcept { return missing_; }
  /// Whether of() was called in the last frame for ranks that are not read yet.
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
  bool reading_ = false;  ///< reading() of the last frame
  bool unread_ = false;   ///< of this frame
};

}  // namespace shardscope::gui
