// Dumps of PyTorch's Flight Recorder, of two ranks at a time: what is read can be compared, and said.
#include <stdexcept>
#include <string>
#include <vector>

#include "app/analysis/flight_compare.h"
#include "tests/fuzz/fuzz.h"

using namespace shardscope;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The whole as rank 0; what stands behind the first "||" as rank 1, else the same again.
  const std::string_view all = fuzz::text_of(data, size);
  const std::size_t middle = all.find("||");
  const std::string_view second = middle == std::string_view::npos ? all : all.substr(middle + 2);
  analysis::FlightTexts texts;
  std::vector<analysis::FlightDump> dumps;
  for (const std::string_view bytes : {all, second}) {
    try {
      dumps.push_back(analysis::parse_flight_dump(bytes, static_cast<std::uint32_t>(dumps.size()), texts));
    } catch (const std::invalid_argument&) {
    }
  }
  if (dumps.empty()) return 0;
  const analysis::FlightComparison comparison = analysis::compare_flights(dumps, texts);
  fuzz::must(!analysis::flight_lines(comparison, texts).empty());
  fuzz::must(!analysis::flight_json(comparison, dumps, texts).empty());
  return 0;
}
