// NumPy files; every row of what is accepted can be read.
#include <algorithm>
#include <vector>

#include "runtime/data/npy.h"
#include "runtime/data/stream.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ScratchPath file(".npy");
  fuzz::write_file(file.path(), fuzz::text_of(data, size));
  try {
    const data::NpyArray array(file.path());
    std::vector<float> row(static_cast<std::size_t>(array.width()));
    const std::int64_t rows = std::min<std::int64_t>(array.rows(), 64);
    for (std::int64_t i = 0; i < rows; ++i) array.read(i, row);
    if (array.rows() > 0) array.read(array.rows() - 1, row);
  } catch (const data::DataError&) {
  }
  return 0;
}
