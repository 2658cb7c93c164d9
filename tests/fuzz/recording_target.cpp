// A recording file as a whole: SQLite's pages, the rows, the chunks, and all that is made of what was read.
#include <stdexcept>

#include "app/store/recording.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/read_all.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::ScratchPath file(".zscope");
  fuzz::write_file(file.path(), fuzz::text_of(data, size));
  try {
    store::RecordingInfo info;
    fuzz::read_all(store::open_recording(file.path(), &info));
  } catch (const std::runtime_error&) {
  }
  return 0;
}
