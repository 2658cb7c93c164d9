// A framework's terms for operations on parameters and gradients, where they differ from ZeRO's: used in
// labels, tool tips, the Stepper and the Inspector. For reasons of decisions see
// app/analysis/decision_text.h.
#pragma once

#include "app/store/framework.h"

namespace shardscope::store {

/// Words for use within a sentence, in lower case.
struct Vocabulary {
  const char* unit = "";  ///< what is gathered and released as one, before the module's path: "group "
  const char* gather = "gather";       ///< gathering the parameters of a unit
  const char* awaited = "parameters";  ///< in "waits for ...", also "... of" a gathered unit
  const char* fetch = "fetch";         ///< a gather that a module needs now
  const char* fetched = "fetched";
  const char* released = "released";      ///< each rank has only its part again
  const char* bucket = "bucket";          ///< gradients that are reduced together
  const char* in_bucket = "in a bucket";  ///< of a gradient: others of its bucket are still missing
  const char* flushed = "flushed";        ///< of those gradients: complete
  bool has_buckets = true;                ///< buckets have a set size; else each unit's gradients are one
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
  // The same, but a wrapped unit has one flat parameter.
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
