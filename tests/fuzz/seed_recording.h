// A small whole run: static tables and an event of every kind. The corpus' seeds and some targets' starting
// point.
#pragma once

#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/event.h"

namespace shardscope::fuzz {

[[nodiscard]] instrumentation::RunTables seed_tables();
/// One of every kind, 100 ns apart, each begin before its end.
[[nodiscard]] std::vector<instrumentation::Event> seed_events();
/// Writes a finished recording of them to `path` and returns its bytes.
[[nodiscard]] std::string seed_recording(const std::string& path);

}  // namespace shardscope::fuzz
