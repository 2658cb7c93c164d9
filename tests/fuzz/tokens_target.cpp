// Training text: files of 16-bit tokens, with and without llm.c's header, and plain bytes. The first byte
// chooses.
#include "runtime/data/dataset.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const fuzz::ScratchPath ids(".bin"), bytes(".txt");
  const std::string& path = data[0] % 2 == 0 ? ids.path() : bytes.path();
  fuzz::write_file(path, fuzz::text_of(data + 1, size - 1));
  try {
    constexpr std::int64_t kContext = 4, kVocabulary = 50'000;
    const auto windows = data::open_token_windows(path, kContext, kVocabulary);
    data::HostBatch batch;
    batch.B = 1;
    batch.T = kContext;
    batch.tokens.resize(kContext);
    batch.targets.resize(kContext);
    for (const std::int64_t window : {std::int64_t{0}, windows->samples() - 1}) {
      windows->read(window, 0, batch);
      for (const std::int32_t token : batch.tokens) fuzz::must(token >= 0 && token < kVocabulary);
    }
  } catch (const data::DataError&) {
  }
  return 0;
}
