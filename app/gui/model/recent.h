// Recently opened runs, newest first: saved in the settings.
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
  /// Serialization for the settings file. Ignores lines of other kinds.
  [[nodiscard]] std::vector<std::string> lines() const;
  void take_line(std::string_view line);
};

}  // namespace shardscope::gui
