// Options shared by all verbs that train.
#pragma once

#include "app/cli/launch.h"

namespace CLI {
class App;
}

namespace shardscope::cli {

/// Adds --ranks, --model, --data, --steps, ... to `verb`, filling `options`.
void add_training_options(CLI::App& verb, LaunchOptions& options);

/// Prints how a run ended on standard error and returns the exit code of the verb.
int report_end(const LaunchResult& result);

}  // namespace shardscope::cli
