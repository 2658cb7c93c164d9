// Answers of NCCL's RAS, text and JSON: what is read can be said, alone and beside itself.
#include <stdexcept>
#include <string>

#include "app/analysis/nccl_ras.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const analysis::RasAnswer answer = analysis::parse_ras(std::string(fuzz::text_of(data, size)));
    fuzz::must(!analysis::ras_lines(answer, answer).empty());
    fuzz::must(!analysis::ras_json(answer).empty());
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
