#include "runtime/plan/trace_warning.h"

namespace shardscope::plan {

std::string trace_cache_warning(const Invalidation& invalidation) {
  const std::string got = std::to_string(raw(invalidation.got));
  std::string text = "Invalidate trace cache @ step " + std::to_string(invalidation.trace_step);
  switch (invalidation.cause) {
    case InvalidationCause::module_differs:
      return text + ": expected module " + std::to_string(raw(invalidation.expected)) + ", but got module " +
             got;
    case InvalidationCause::trace_too_short:
      return text + " and module " + got + ": cache has only " + std::to_string(invalidation.recorded) +
             " modules";
    case InvalidationCause::params_differ:
      break;
  }
  return text + ": module " + got + " uses parameters that were not recorded for it";
}

}  // namespace shardscope::plan
