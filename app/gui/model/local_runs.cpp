#include "app/gui/model/local_runs.h"

#include <cmath>
#include <cstdint>
#include <fstream>

#include "instrumentation/local_keys.h"
#include "instrumentation/plain_text.h"

namespace shardscope::gui {
namespace {

/// The program without its folder, and its arguments.
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

const std::vector<LocalRun>& LocalRuns::at(double seconds) {
  if (!looked_at_ || std::fabs(seconds - *looked_at_) >= 1) {
    looked_at_ = seconds;
    runs_ = local_runs();
  }
  return runs_;
}

}  // namespace shardscope::gui
