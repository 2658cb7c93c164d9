// Golden files of the formats that drive planners (tests/golden): any JSON is checked to the end, and every
// case of it is counted once, as an agreement or not.
#include "tests/fuzz/fuzz.h"
#include "tests/runtime/plan/golden.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const golden::Json file = golden::Json::parse(fuzz::text_of(data + 1, size - 1), nullptr, false);
  if (file.is_discarded()) return 0;
  using Check = void (*)(const golden::Json&, golden::Report&);
  constexpr Check kChecks[] = {golden::check_coordinator, golden::check_stage12, golden::check_loss_scale,
                               golden::check_estimator};
  golden::Report report;
  try {
    kChecks[data[0] % std::size(kChecks)](file, report);
  } catch (const std::exception&) {  // named in golden_check's answer; the file is not one of the format
  }
  fuzz::must(report.lines().size() >= static_cast<std::size_t>(report.disagreed()));
  return 0;
}
