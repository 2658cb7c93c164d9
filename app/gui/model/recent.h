// What was opened before, newest first: kept from window to window.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::gui {

struct Endpoint {
  std::string address;
  std::string key_file;  ///< empty: found by the address
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

struct Recent {
  static constexpr std::size_t kMost = 12;
  std::vector<std::string> files;
  std::vector<Endpoint> endpoints;
  void opened(const std::string& file);
  void connected(const Endpoint& endpoint);
  /// Lines of a settings file, and back. A line that is none of these is passed over.
  [[nodiscard]] std::vector<std::string> lines() const;
  void take_line(std::string_view line);
};

}  // namespace shardscope::gui
