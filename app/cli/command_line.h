// The whole command line: what main() parses, and what manual pages and completions are made of.
#pragma once

#include "app/cli/verb.h"

namespace CLI {
class App;
}

namespace shardscope::cli {

/// Adds every verb to `app`. The one that is parsed sets `action`.
void add_verbs(CLI::App& app, Action& action);

}  // namespace shardscope::cli
