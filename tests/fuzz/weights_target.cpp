// Safetensors headers.
#include <cstring>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    (void)checkpoint::parse_safetensors({reinterpret_cast<const std::byte*>(data), size});
  } catch (const checkpoint::CheckpointError&) {
  }
  return 0;
}
