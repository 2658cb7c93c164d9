// The chunk codec: what is accepted is written again and reads back the same.
#include <algorithm>
#include <stdexcept>

#include "app/store/chunk.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/sealed_chunk.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::byte> bytes = fuzz::sealed_chunk(fuzz::text_of(data, size));
  try {
    const store::Chunk chunk = store::Chunk::decode(bytes.data(), bytes.size());
    (void)chunk.times();
    const std::vector<std::byte> again = chunk.encode();
    const store::Chunk second = store::Chunk::decode(again.data(), again.size());
    fuzz::must(second.rank == chunk.rank && second.sequence == chunk.sequence &&
               second.events.size() == chunk.events.size() && second.encode() == again);
  } catch (const std::runtime_error&) {
  }
  return 0;
}
