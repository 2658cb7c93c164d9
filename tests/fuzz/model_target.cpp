// Model descriptions (docs/models.md).
#include <stdexcept>
#include <string>

#include "runtime/plan/model_plan.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    (void)plan::build_model_plan(plan::parse_model_spec({reinterpret_cast<const char*>(data), size}));
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
