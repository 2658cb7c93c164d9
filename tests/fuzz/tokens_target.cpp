// Training text: files of 16-bit tokens, with and without llm.c's header, and plain bytes, as windows and as
// documents. The first byte chooses.
#include "runtime/data/dataset.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

namespace {

constexpr std::int64_t kContext = 4, kVocabulary = 50'000;

/// The first and the last sample.
void read(const data::Dataset& dataset) {
  data::HostBatch batch;
  batch.B = 1;
  batch.T = kContext;
  batch.tokens.resize(kContext);
  batch.targets.resize(kContext);
  for (const std::int64_t sample : {std::int64_t{0}, dataset.samples() - 1}) {
    dataset.read(sample, 0, batch);
    const std::int64_t length = dataset.length(sample);
    fuzz::must(length > 0 && length <= kContext);
    for (std::int64_t i = 0; i < kContext; ++i) {
      const auto at = static_cast<std::size_t>(i);
      fuzz::must(batch.tokens[at] >= 0 && batch.tokens[at] < kVocabulary);
      fuzz::must(i < length ? batch.targets[at] >= 0 && batch.targets[at] < kVocabulary
                            : batch.targets[at] == data::kIgnoredTarget);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const fuzz::ScratchPath ids(".bin"), bytes(".txt");
  const std::string& path = data[0] % 2 == 0 ? ids.path() : bytes.path();
  fuzz::write_file(path, fuzz::text_of(data + 1, size - 1));
  try {
    read(*data::open_token_windows(path, kContext, kVocabulary));
  } catch (const data::DataError&) {
  }
  try {
    plan::MicroBatches sizes;
    sizes.packing = (data[0] & 2) != 0 ? plan::Packing::packed : plan::Packing::padded;
    sizes.separator_token = 10;
    read(*data::open_documents(path, kContext, kVocabulary, sizes));
  } catch (const data::DataError&) {
  }
  return 0;
}
