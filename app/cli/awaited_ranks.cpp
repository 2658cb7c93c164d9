#include "app/cli/awaited_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <unordered_map>

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

/// When the message is shown, and how long before that the processes are looked at first.
constexpr std::array kSayAfter{seconds{60}, seconds{600}};
constexpr seconds kOver{10};

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  // Through the stream: its buffer's own iterators throw where the process ends between the opening and the
  // reading.
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Stat {
  std::string name;
  pid_t parent = 0;
  double processor_s = 0;
};
/// Of /proc/PID/stat; nullopt where the process has ended. The name is in parentheses, and may hold any.
std::optional<Stat> stat_of(const fs::path& process) {
  const std::string text = content_of(process / "stat");
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Stat out;
  out.name = text.substr(open + 1, close - open - 1);
  std::istringstream rest(text.substr(close + 1));
  std::string state, skipped;
  rest >> state >> out.parent;
  for (int field = 5; field < 14; ++field) rest >> skipped;
  double user = 0, system = 0;
  rest >> user >> system;
  if (!rest) return std::nullopt;
  out.processor_s = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return out;
}

bool is_below(pid_t pid, pid_t ancestor, const std::unordered_map<pid_t, Stat>& all) {
  // Of processes that end meanwhile a number may come back: no endless way up.
  for (std::size_t steps = 0; steps <= all.size(); ++steps) {
    const auto at = all.find(pid);
    if (at == all.end()) return false;
    pid = at->second.parent;
    if (pid == ancestor) return true;
  }
  return false;
}

std::string pids_text(const std::vector<CommandProcess>& processes) {
  constexpr std::size_t kShown = 8;
  std::vector<pid_t> pids;
  for (const CommandProcess& one : processes) pids.push_back(one.pid);
  std::string out = pids.size() == 1 ? "process " : "processes ";
  out += fmt::format(
      "{}", fmt::join(pids.begin(), pids.begin() + static_cast<std::ptrdiff_t>(std::min(pids.size(), kShown)),
                      ", "));
  if (pids.size() > kShown) out += fmt::format(" and {} more", pids.size() - kShown);
  return out;
}

/// Of those processes, since they were looked at before.
double computed_s(const std::vector<CommandProcess>& before, const std::vector<CommandProcess>& now) {
  double out = 0;
  for (const CommandProcess& one : now) {
    const auto was = std::ranges::find(before, one.pid, &CommandProcess::pid);
    out += one.processor_s - (was == before.end() ? 0 : was->processor_s);
  }
  return out;
}

}  // namespace

std::vector<CommandProcess> python_processes(pid_t ancestor, const std::string& folder) {
  std::unordered_map<pid_t, Stat> all;
  std::error_code error;
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc() || pid == 0) continue;
    if (auto stat = stat_of(it->path())) all.emplace(pid, std::move(*stat));
  }
  std::vector<CommandProcess> out;
  for (const auto& [pid, stat] : all) {
    if (!is_below(pid, ancestor, all)) continue;
    const fs::path process = fs::path("/proc") / std::to_string(pid);
    const std::string maps = content_of(process / "maps");
    // A script may name its process as it likes.
    if (!stat.name.starts_with("python") && maps.find("/python") == std::string::npos) continue;
    out.push_back({.pid = pid,
                   .armed = maps.find("/shardscope/_core.") != std::string::npos,
                   .has_torch = maps.find("/libtorch") != std::string::npos,
                   .has_folder = content_of(process / "environ").find("SHARDSCOPE_ATTACH=" + folder) !=
                                 std::string::npos,
                   .processor_s = stat.processor_s});
  }
  std::ranges::sort(out, {}, &CommandProcess::pid);
  return out;
}

std::string no_rank_text(const std::vector<CommandProcess>& before, const std::vector<CommandProcess>& now,
                         seconds waited, seconds over) {
  std::vector<CommandProcess> armed, unarmed, apart;
  for (const CommandProcess& one : now) (one.armed ? armed : one.has_folder ? unarmed : apart).push_back(one);
  std::string out = fmt::format("no rank has sent anything for {} s: ", waited.count());
  if (!armed.empty()) {
    const bool torch = std::ranges::any_of(armed, &CommandProcess::has_torch);
    out += fmt::format(
        "{} {} armed and {} {}; in the last {} s they used {:.1f} s of processor time. Where they are: "
        "py-spy "
        "dump --pid {}",
        pids_text(armed), armed.size() == 1 ? "is" : "are", armed.size() == 1 ? "has" : "have",
        torch
            ? "made no model that is recorded yet (DDP, fully_shard, deepspeed.initialize, ...): loading, or "
              "waiting for each other"
            : "not imported PyTorch yet",
        over.count(), computed_s(before, armed), armed.front().pid);
  } else if (!unarmed.empty()) {
    out += fmt::format(
        "{} {} Python and no rank: launchers, or a Python in which the package `shardscope` is not installed",
        pids_text(unarmed), unarmed.size() == 1 ? "runs" : "run");
  } else if (!apart.empty()) {
    out += fmt::format(
        "{} {} without SHARDSCOPE_ATTACH in the environment: what starts them does not hand it on",
        pids_text(apart), apart.size() == 1 ? "runs" : "run");
  } else {
    out += "the command runs no Python on this host";
  }
  return out;
}

std::string AwaitedRanks::look(std::chrono::steady_clock::time_point now) {
  if (said_ == kSayAfter.size()) return {};
  const auto waited = std::chrono::duration_cast<seconds>(now - began_);
  if (!has_before_ && waited >= kSayAfter[said_] - kOver) {
    before_ = python_processes(getpid(), folder_);
    has_before_ = true;
  }
  if (waited < kSayAfter[said_]) return {};
  has_before_ = false;
  ++said_;
  return no_rank_text(before_, python_processes(getpid(), folder_), waited, kOver);
}

}  // namespace shardscope::cli
