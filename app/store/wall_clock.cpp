#include "app/store/wall_clock.h"

#include <ctime>
#include <vector>

#include "app/store/database.h"
#include "app/store/recording_file.h"

namespace shardscope::store {
namespace {

std::int64_t ns_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void write_wall_clock(Database& database) {
  Statement put = database.prepare("INSERT OR IGNORE INTO meta VALUES('unix_offset_ns', ?1)");
  put.bind(1, ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC));
  put.run();
}

std::optional<std::int64_t> unix_offset_ns(const std::string& path) {
  RecordingFile file(path);
  std::vector<std::string> listed;
  Problems problems(listed);
  file.open(problems);
  std::optional<std::int64_t> out;
  problems.guard("meta", [&] {
    Statement get = file.database()->prepare("SELECT value FROM meta WHERE key = 'unix_offset_ns'");
    if (get.step() && get.type(0) == Statement::Type::integer) out = get.integer(0);
  });
  return out;
}

}  // namespace shardscope::store
