#include "app/collector/local_runs.h"

#include <cstddef>
#include <cstdint>
#include <fstream>

#include "instrumentation/local_keys.h"
#include "instrumentation/plain_text.h"

namespace shardscope::collector {
namespace {

/// Command line of a process: the program without its folder, and its arguments.
std::string command_of(std::int64_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
  std::string out;
  for (std::string word; std::getline(in, word, '\0');)
    out += out.empty() ? word.substr(word.rfind('/') + 1) : " " + word;
  return instrumentation::plain_line(out);
}

}  // namespace

std::vector<LocalRun> local_runs() {
  std::vector<LocalRun> out;
  for (const instrumentation::LocalCollector& one : instrumentation::local_collectors())
    out.push_back({one.endpoint, command_of(one.pid)});
  return out;
}

std::string text_of(const std::vector<LocalRun>& runs, const std::string& endpoint) {
  constexpr std::size_t kMostRuns = 6, kLongest = 60;
  std::string text;
  std::size_t others = 0;
  for (const LocalRun& run : runs) {
    if (run.endpoint == endpoint || others++ >= kMostRuns) continue;
    const bool cut = run.command.size() > kLongest;
    const std::string command = cut ? run.command.substr(0, kLongest) + "..." : run.command;
    text += (text.empty() ? "your runs that listen: " : ", ") + run.endpoint +
            (command.empty() ? "" : " (" + command + ")");
  }
  if (others > kMostRuns) text += " and " + std::to_string(others - kMostRuns) + " more";
  return text;
}

}  // namespace shardscope::collector
