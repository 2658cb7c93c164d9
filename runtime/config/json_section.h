// Reading one JSON object key by key: every key must be read, with the right type and range; a remaining key
// is an error that names the nearest known key.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/config/json_positions.h"

namespace shardscope::config {

/// State of one parse, shared by its sections.
struct ParseContext {
  std::string file;
  bool generated = false;  ///< the user has no such file: messages contain no positions
  JsonPositions positions;
  std::vector<std::string> warnings;
  /// For a recorded run, possibly by another program: keys that cannot be read keep their defaults, nothing
  /// fails.
  bool foreign = false;
  /// Keys that were read, by the path of their section: the valid keys of a file.
  std::map<std::string, std::set<std::string>> known;
  /// Known keys, by path, that set nothing.
  std::set<std::string> settingless;

  /// Throws ConfigError: "file:line:column: path: text". Does nothing with `foreign`.
  void fail(const std::string& path, const std::string& text) const;
  void warn(const std::string& path, const std::string& text);
};

/// "optimizer" in {"optimzer"}: the known key with the smallest edit distance; empty when none is near.
[[nodiscard]] std::string nearest_key(const std::string& key, const std::set<std::string>& known);

/// Why a key is not read into a setting.
enum class KeyPolicy : std::uint8_t {
  ignored,  ///< cannot change the result: a warning
  refused,  ///< would change the result: an error unless it is off
};

class Section {
 public:
  /// `object` must outlive the section; `path` is "" for the root.
  Section(ParseContext& context, const nlohmann::json& object, std::string path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string path_of(const std::string& key) const;
  /// Throws, or does nothing with `foreign`: the caller continues without the key.
  void fail(const std::string& key, const std::string& text) const;
  void warn(const std::string& key, const std::string& text) { context_->warn(path_of(key), text); }

  /// Marks a key as known; returns its value, or null if it is absent, or JSON null where that is DeepSpeed's
  /// default. Fails on any other JSON null.
  [[nodiscard]] const nlohmann::json* find(const std::string& key);
  [[nodiscard]] bool is_auto(const std::string& key);

  // Each reads a key if it is present; `value` is unchanged if it is absent, null or "auto".
  void read(const std::string& key, bool& value);
  void read(const std::string& key, std::int64_t& value, std::int64_t min = 0,
            std::int64_t max = std::numeric_limits<std::int64_t>::max());
  void read(const std::string& key, double& value, double min = 0,
            double max = std::numeric_limits<double>::max());
  void read(const std::string& key, std::string& value);
  void read(const std::string& key, std::vector<std::string>& value);
  /// One of `names`; `set` gets its index.
  void read_enum(const std::string& key, const std::vector<std::string>& names,
                 const std::function<void(std::size_t)>& set);
  /// The sub-object under `key`, or none. Any other type is an error.
  [[nodiscard]] std::optional<Section> child(const std::string& key);
  /// The same, with an empty object if there is none.
  [[nodiscard]] Section child_or_empty(const std::string& key);

  /// The objects of the list under `key`, with paths "key[0]" and so on; none without the key. Any other type
  /// is an error.
  [[nodiscard]] std::vector<Section> children(const std::string& key);

  /// A key without a setting here. A value that means off (false, null, 0, {} or {"enabled": false}) is
  /// accepted.
  void without_setting(const std::string& key, KeyPolicy policy, const std::string& why);
  /// Fails on the first key that was never read.
  void finish() const;

 private:
  [[nodiscard]] const nlohmann::json* find_or_null(const std::string& key);
  ParseContext* context_;
  const nlohmann::json* object_;
  std::string path_;
};

}  // namespace shardscope::config
