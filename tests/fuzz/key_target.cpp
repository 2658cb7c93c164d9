// Key files.
#include <stdexcept>
#include <string>

#include "instrumentation/keys.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope::instrumentation;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const KeyFile key = parse_key_file({reinterpret_cast<const char*>(data), size});
    shardscope::fuzz::must(format_key_file(parse_key_file(format_key_file(key))) == format_key_file(key));
  } catch (const std::runtime_error&) {
  }
  return 0;
}
