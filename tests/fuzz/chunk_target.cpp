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
    // A part of it: no more events than all, and the two make up all of it where they are apart.
    const std::size_t states =
        store::Chunk::decode(bytes.data(), bytes.size(), store::Chunk::Part::states).events.size();
    const std::size_t others =
        store::Chunk::decode(bytes.data(), bytes.size(), store::Chunk::Part::others).events.size();
    fuzz::must(states + others == chunk.events.size() ||
               (states == chunk.events.size() && others == chunk.events.size()));
    const std::vector<std::byte> again = chunk.encode();
    const store::Chunk second = store::Chunk::decode(again.data(), again.size());
    fuzz::must(second.rank == chunk.rank && second.sequence == chunk.sequence &&
               second.events.size() == chunk.events.size() && second.encode() == again);
  } catch (const std::runtime_error&) {
  }
  return 0;
}
