// Short description of a run for the top bar, from its tables and its configuration.
#pragma once

#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

/// Marks a simulated run: no rank trained.
inline constexpr const char* kSimulated = "simulated";

struct Identity {
  std::string model;
  std::vector<std::string> facts;  ///< "ZeRO-3", "4 ranks", "bf16", "overlap on", "emulated link 10 Gb/s"
  std::string link;                ///< "emulated link 10 Gb/s, 20 µs"; empty without one
};
[[nodiscard]] Identity identify(const store::Store& store);

}  // namespace shardscope::gui
