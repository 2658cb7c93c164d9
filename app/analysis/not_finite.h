// The first parameter with an infinite or NaN gradient in each step: the origin of an overflow.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/store/store.h"
#include "instrumentation/event_fields.h"

namespace shardscope::analysis {

namespace ev = shardscope::instrumentation;

/// The first over all ranks in one step. See [Note: the first gradient that is not finite] in
/// runtime/plan/checked_gradients.h.
struct FirstNotFinite {
  std::uint32_t rank = 0;  ///< of several the lowest
  std::int64_t at_ns = 0;  ///< of its event, in run time
  ev::Fields<ev::EventKind::gradient_not_finite> fields;
  std::uint32_t more_ranks = 0;  ///< further ranks with elements of that parameter that are not finite
  /// Further parameters that were not finite: the largest number found by one rank, a lower bound. 0 if every
  /// rank of the step was recorded and counted none; -1: unknown.
  std::int64_t other_params = -1;
  [[nodiscard]] bool ordered() const noexcept { return fields.position != ev::kNoId; }
};

/// By step, for steps whose events are complete. Where limits of the recording or a live window deleted most
/// of a step's events, the other ranks are unknown and the step is omitted, except the first one: every
/// rank's first event is kept. If a rank does not know the order of backward, the parameter with the highest
/// id counts as the first in backward.
[[nodiscard]] std::vector<FirstNotFinite> first_not_finite(const store::Store& store);

/// Over the whole run, including deleted events.
struct NotFiniteGradients {
  std::uint64_t events = 0;  ///< number of (step, rank) pairs with a gradient that was not finite
  std::optional<FirstNotFinite> first;
  std::string param, text;  ///< of `first`: the name of its parameter; text_of()
};
/// nullopt if the program does not record it.
[[nodiscard]] std::optional<NotFiniteGradients> not_finite_gradients(const store::Store& store);
/// null for nullopt.
[[nodiscard]] nlohmann::json not_finite_json(const std::optional<NotFiniteGradients>& gradients);

/// "h.1.mlp.weight (module h.1.mlp)".
[[nodiscard]] std::string param_and_module(const store::Store& store, std::uint32_t param);

/// "17 elements infinite", "17 elements infinite or NaN", "at least one element NaN".
[[nodiscard]] std::string elements_text(const ev::Fields<ev::EventKind::gradient_not_finite>& fields);

/// "In step 12 the first gradient that was not finite, in the order of backward, was that of ... on rank 1:
/// 17 elements infinite in its partition; at least 3 further parameters were not finite."
[[nodiscard]] std::string text_of(const store::Store& store, const FirstNotFinite& first);

}  // namespace shardscope::analysis
