// The input of a verb that reads a run: a recording, or a live run.
#pragma once

#include <string>

#include "app/store/recording.h"
#include "app/store/store.h"

namespace shardscope::cli {

struct RunSource {
  store::Store store;
  store::RecordingInfo info;  ///< of a live run: possible gaps, as its problems
  bool live = false;
};

/// Opens the recording at this path, or reads the run at an endpoint (tcp://..., ipc://...)
/// so far: all of it, or what arrives within 20 s. `key`: a file, for an endpoint that needs one. Damage
/// and gaps are also reported on standard error. Throws UserError where no collector answers or
/// nothing has arrived, std::runtime_error where the file cannot be read.
[[nodiscard]] RunSource open_run(const std::string& recording_or_endpoint, const std::string& key = {});

}  // namespace shardscope::cli
