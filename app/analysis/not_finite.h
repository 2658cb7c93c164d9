// The first parameter whose gradient was infinite or NaN, step by step: what an overflow comes from.
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

/// Of one step: the first of all ranks. See [Note: the first gradient that is not finite] in
/// runtime/plan/checked_gradients.h.
struct FirstNotFinite {
  std::uint32_t rank = 0;  ///< that has it; of several the lowest
  std::int64_t at_ns = 0;  ///< of its event; time of the run
  ev::Fields<ev::EventKind::gradient_not_finite> fields;
  std::uint32_t more_ranks =
      0;  ///< whose partitions hold elements of the same parameter that were not finite
  /// Further parameters that were not finite: the most that one rank found, so at least these. 0 where every
  /// rank of the step has been recorded and has counted none; -1: it is not known whether there were any.
  std::int64_t other_params = -1;
  [[nodiscard]] bool ordered() const noexcept { return fields.position != ev::kNoId; }
};

/// By step, of those whose events are there: steps that the recording's limits, or a live window's bounds,
/// left nothing of but a rank's first event of a stretch say nothing of the other ranks, and are left out but
/// for the first of all, which every rank that had one has as its first. Where a rank does not know the order
/// of backward, the last parameter in the order of ids is taken for the first in backward.
[[nodiscard]] std::vector<FirstNotFinite> first_not_finite(const store::Store& store);

/// Over the whole run, also where a recording's limits deleted the events.
struct NotFiniteGradients {
  std::uint64_t events = 0;  ///< steps x ranks in which a gradient was not finite
  std::optional<FirstNotFinite> first;
  std::string param, text;  ///< of the first: name of its parameter, and text_of()
};
/// Nothing where the program does not record it.
[[nodiscard]] std::optional<NotFiniteGradients> not_finite_gradients(const store::Store& store);
/// null likewise.
[[nodiscard]] nlohmann::json not_finite_json(const std::optional<NotFiniteGradients>& gradients);

/// "h.1.mlp.weight (module h.1.mlp)".
[[nodiscard]] std::string param_and_module(const store::Store& store, std::uint32_t param);

/// "17 elements infinite", "17 elements infinite or NaN", "at least one element NaN".
[[nodiscard]] std::string elements_text(const ev::Fields<ev::EventKind::gradient_not_finite>& fields);

/// "In step 12 the first gradient that was not finite, in the order of backward, was that of ... on rank 1:
/// 17 elements infinite in its partition; at least 3 further parameters were not finite."
[[nodiscard]] std::string text_of(const store::Store& store, const FirstNotFinite& first);

}  // namespace shardscope::analysis
