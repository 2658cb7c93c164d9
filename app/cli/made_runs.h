// Recordings that a verb must not write over: of runs that were made.
#pragma once

#include <string>

namespace shardscope::cli {

/// Throws UserError where `path`, given by `option`, is a recording of a run that was made: what is simulated
/// can be simulated again, that cannot. Of other files the writer says what may be replaced.
void keep_made_run(const std::string& option, const std::string& path);

}  // namespace shardscope::cli
