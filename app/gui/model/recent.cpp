#include "app/gui/model/recent.h"

#include <algorithm>

namespace shardscope::gui {
namespace {

template <typename T>
void to_front(std::vector<T>& list, const T& what) {
  std::erase(list, what);
  list.insert(list.begin(), what);
  if (list.size() > Recent::kMost) list.resize(Recent::kMost);
}

/// The settings file separates entries by lines and fields by tabs.
bool one_line(std::string_view text) { return text.find_first_of("\n\r\t") == std::string_view::npos; }

}  // namespace

void Recent::opened(const std::string& file) {
  if (!file.empty() && one_line(file)) to_front(files, file);
}

void Recent::connected(const Endpoint& endpoint) {
  if (endpoint.address.empty() || !one_line(endpoint.address) || !one_line(endpoint.key_file)) return;
  // The same address with another key replaces the entry.
  std::erase_if(endpoints, [&](const Endpoint& other) { return other.address == endpoint.address; });
  to_front(endpoints, endpoint);
}

std::vector<std::string> Recent::lines() const {
  std::vector<std::string> out;
  for (const std::string& file : files) out.push_back("File=" + file);
  for (const Endpoint& endpoint : endpoints)
    out.push_back("Endpoint=" + endpoint.address + "\t" + endpoint.key_file);
  return out;
}

void Recent::take_line(std::string_view line) {
  if (line.starts_with("File=") && files.size() < kMost) files.emplace_back(line.substr(5));
  if (line.starts_with("Endpoint=") && endpoints.size() < kMost) {
    line.remove_prefix(9);
    const std::size_t tab = std::min(line.find('\t'), line.size());
    endpoints.push_back(
        {std::string(line.substr(0, tab)), std::string(line.substr(std::min(tab + 1, line.size())))});
  }
}

}  // namespace shardscope::gui
