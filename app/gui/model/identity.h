// What identifies a run, as the few words of the top bar, read from its tables and its configuration.
#pragma once

#include <string>
#include <vector>

#include "app/store/store.h"

namespace shardscope::gui {

/// The fact that must not be overlooked: no rank trained.
inline constexpr const char* kSimulated = "simulated";

struct Identity {
  std::string model;
  std::vector<std::string> facts;  ///< "ZeRO-3", "4 ranks", "bf16", "overlap on", "emulated link 10 Gb/s"
  std::string link;                ///< "emulated link 10 Gb/s, 20 µs"; empty without one
};
[[nodiscard]] Identity identify(const store::Store& store);

}  // namespace shardscope::gui
