#include "app/gui/model/live_notes.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

namespace shardscope::gui {
namespace {

std::filesystem::path folder() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  if (state != nullptr && *state == '/') return std::filesystem::path(state) / "shardscope" / "notes";
  if (home == nullptr || *home != '/') return {};
  return std::filesystem::path(home) / ".local" / "state" / "shardscope" / "notes";
}

}  // namespace

std::string live_notes_path(const std::string& run_id) {
  constexpr std::size_t kLongest = 120;
  const std::filesystem::path in = folder();
  if (run_id.empty() || in.empty()) return {};
  // The id comes from the run: it must not name another folder. The file itself holds the whole id.
  std::string name = run_id.substr(0, kLongest);
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; }, '_');
  return (in / (name + ".json")).string();
}

}  // namespace shardscope::gui
