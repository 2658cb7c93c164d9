// What a viewer receives and a recording holds, in any order: chunks, tables, names, messages and rows of
// ranks go to a store, from which everything is then computed and written.
#include <stdexcept>
#include <string>

#include "app/store/chunk.h"
#include "app/store/run_tables_codec.h"
#include "app/store/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/read_all.h"
#include "tests/fuzz/sealed_chunk.h"
#include "tests/fuzz/take.h"

using namespace shardscope;

namespace {

void add(store::Store& store, fuzz::Input& input) {
  const auto kind = input.number<std::uint8_t>();
  const std::uint32_t rank = input.number<std::uint8_t>() % 4;
  const std::string_view block = input.block();
  switch (kind % 5) {
    case 0: {
      const std::vector<std::byte> bytes = fuzz::sealed_chunk(block);
      store.ingest(store::Chunk::decode(bytes.data(), bytes.size()));
      break;
    }
    case 1:
      store.set_tables(rank,
                       store::decode_tables(reinterpret_cast<const std::byte*>(block.data()), block.size()));
      break;
    case 2:
      store.add_name(rank, input.number<std::uint32_t>() % (1U << 20), std::string(block));
      break;
    case 3:
      store.add_message(
          {input.number<std::int64_t>() / 4, rank, store::ev::Severity::error, std::string(block)});
      break;
    default: {
      store::RankRow row;
      row.rank = rank;
      row.host = std::string(block);
      row.exit_message = std::string(block);
      row.clock_offset_ns = input.number<std::int64_t>();
      row.clock_residual_ns = input.number<std::int64_t>();
      row.dropped = input.number<std::uint64_t>();
      row.gate.kind = static_cast<store::ev::GateKind>(input.number<std::uint8_t>());
      row.exit_code = input.number<std::int32_t>();
      store.set_rank(row);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  store::Store store;
  while (!input.empty()) {
    try {
      add(store, input);
    } catch (const std::runtime_error&) {
    }
  }
  fuzz::read_all(store);
  return 0;
}
