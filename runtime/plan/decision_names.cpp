#include "runtime/plan/decision_names.h"

#include <array>
#include <cstddef>

namespace shardscope::plan {
namespace {

/// `last`: the last value of the enumeration; a value added without a name does not compile.
template <auto last, typename... Names>
constexpr auto names(Names... all) {
  static_assert(sizeof...(all) == static_cast<std::size_t>(last) + 1);
  return std::array<const char*, sizeof...(all)>{all...};
}

template <typename Enum, typename Names>
const char* named(Enum value, const Names& all) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < all.size() ? all[index] : "unknown";
}

}  // namespace

const char* name_of(FlushReason reason) noexcept {
  static constexpr auto kNames = names<FlushReason::group_complete>(
      "full", "extra_large", "epilogue", "boundary", "group_changed", "group_complete");
  return named(reason, kNames);
}

const char* name_of(TraceMode mode) noexcept {
  static constexpr auto kNames = names<TraceMode::complete>("invalid", "record", "complete");
  return named(mode, kNames);
}

const char* name_of(PrefetchStop stop) noexcept {
  static constexpr auto kNames = names<PrefetchStop::returned>(
      "disabled", "no_trace", "end_of_trace", "bucket_full", "live_limit", "offloaded", "returned");
  return named(stop, kNames);
}

const char* name_of(KeepReason reason) noexcept {
  static constexpr auto kNames = names<KeepReason::reshard_off>(
      "persistent", "reused_soon", "already_fetched", "in_use", "external", "not_available", "reshard_off");
  return named(reason, kNames);
}

const char* name_of(InvalidationCause cause) noexcept {
  static constexpr auto kNames =
      names<InvalidationCause::params_differ>("module_differs", "trace_too_short", "params_differ");
  return named(cause, kNames);
}

const char* name_of(PrefetchOutcome outcome) noexcept {
  static constexpr auto kNames =
      names<PrefetchOutcome::unused>("early", "just_in_time", "late", "mistargeted", "unused");
  return named(outcome, kNames);
}

}  // namespace shardscope::plan
