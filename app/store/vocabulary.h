// How a framework calls what is done with parameters and gradients, where it has other words than ZeRO:
// labels, tool tips, the Stepper and the Inspector say it so. Why something was decided:
// app/analysis/decision_text.h.
#pragma once

#include "app/store/framework.h"

namespace shardscope::store {

/// Words within a sentence, without a capital.
struct Vocabulary {
  const char* unit = "";  ///< what is gathered and released as one, before the module's path: "group "
  const char* gather = "gather";       ///< making the parameters of a unit whole
  const char* awaited = "parameters";  ///< in "waits for ...", also "... of" a unit that is gathered
  const char* fetch = "fetch";         ///< the same as gather, because a module needs it now
  const char* fetched = "fetched";
  const char* released = "released";      ///< each rank has its part alone again
  const char* bucket = "bucket";          ///< gradients that are reduced as one
  const char* in_bucket = "in a bucket";  ///< of a gradient: others that are reduced with it are to come
  const char* flushed = "flushed";        ///< of those gradients: all are there
  bool has_buckets = true;                ///< of a size that is set; else what is reduced as one is a unit's
};

[[nodiscard]] inline const Vocabulary& vocabulary_of(Framework framework) noexcept {
  static constexpr Vocabulary kZero;
  static constexpr Vocabulary kFsdp2{.unit = "group ",
                                     .gather = "unshard",
                                     .awaited = "unshard",
                                     .fetch = "unshard",
                                     .fetched = "unsharded",
                                     .released = "resharded",
                                     .bucket = "reduction",
                                     .in_bucket = "waiting for its group",
                                     .flushed = "group complete",
                                     .has_buckets = false};
  // The same, but what it wraps is a unit with one flat parameter.
  static constexpr Vocabulary kFsdp1 = [] {
    Vocabulary words = kFsdp2;
    words.unit = "unit ";
    words.in_bucket = "waiting for its unit";
    words.flushed = "unit complete";
    return words;
  }();
  if (framework == Framework::fsdp1) return kFsdp1;
  return framework == Framework::fsdp2 ? kFsdp2 : kZero;
}
[[nodiscard]] inline const Vocabulary& vocabulary_of(const instrumentation::RunTables& tables) {
  return vocabulary_of(framework_of(tables));
}

}  // namespace shardscope::store
