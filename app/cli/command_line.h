// The whole command line: parsed by main(), and the source of manual pages and completions.
#pragma once

#include "app/cli/verb.h"

namespace CLI {
class App;
}

namespace shardscope::cli {

/// Adds every verb to `app`. The parsed verb sets `action`.
void add_verbs(CLI::App& app, Action& action);

}  // namespace shardscope::cli
