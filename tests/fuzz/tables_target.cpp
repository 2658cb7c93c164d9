// The static tables as a recording holds them.
#include <stdexcept>

#include "app/store/run_tables_codec.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto tables = shardscope::store::decode_tables(reinterpret_cast<const std::byte*>(data), size);
    const auto again = shardscope::store::encode_tables(tables);
    const auto second = shardscope::store::decode_tables(again.data(), again.size());
    shardscope::fuzz::must(shardscope::store::encode_tables(second) == again);
  } catch (const std::runtime_error&) {
  }
  return 0;
}
