// Files that a verb must not write over: recordings of runs that were made, and the weights that they left.
#pragma once

#include <string>

namespace shardscope::cli {

/// Throws UserError where `path`, given by `option`, is a recording of a run that was made: what is simulated
/// can be simulated again, that cannot. Of other files the writer says what may be replaced.
void keep_made_run(const std::string& option, const std::string& path);

/// For what a run leaves, hours of training perhaps: throws UserError where anything is at `path`, or the log
/// of a recording that was cut off. Not called with --overwrite.
void keep_existing(const std::string& option, const std::string& path);

}  // namespace shardscope::cli
