#include "app/cli/run_source.h"

#include <fmt/format.h>

#include "app/cli/live_look.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "app/collector/viewer.h"

namespace shardscope::cli {
namespace {

RunSource look_at(const std::string& endpoint, const std::string& key) {
  constexpr double kMostSeconds = 20;
  RunSource run;
  run.live = true;
  run.info.path = endpoint;
  collector::Viewer viewer(endpoint, key);
  if (!catch_up(endpoint, viewer, run.store, kMostSeconds))
    run.info.problems.push_back(fmt::format("not all of the run has arrived within {:.0f} s", kMostSeconds));
  if (!run.store.has_tables())
    throw UserError(endpoint + ": no event of any rank has arrived; ask again later");
  return run;
}

RunSource read_from(const std::string& path) {
  RunSource run;
  run.store = store::open_recording(path, &run.info);
  return run;
}

}  // namespace

RunSource open_run(const std::string& recording_or_endpoint, const std::string& key) {
  RunSource run = is_endpoint(recording_or_endpoint) ? look_at(recording_or_endpoint, key)
                                                     : read_from(recording_or_endpoint);
  for (const std::string& problem : run.info.problems)
    say(stderr, "shardscope: {}: {}\n", recording_or_endpoint, problem);
  return run;
}

}  // namespace shardscope::cli
