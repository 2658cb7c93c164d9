// `--set zero_optimization.overlap_comm=false`: keys over a DeepSpeed file.
#pragma once

#include <string>
#include <vector>

namespace shardscope::cli {

/// Text of the configuration with each KEY=VALUE applied (VALUE is JSON; what is not JSON is a string).
/// Throws UserError for an unreadable file, broken JSON (line, column) or a malformed assignment.
[[nodiscard]] std::string config_with(const std::string& path, const std::vector<std::string>& assignments);

/// A file with `text` in a folder of its own in the temporary one, for as long as the object lives. It is
/// called as `of` and what was changed: what is wrong in it is told by that name. Throws UserError when it
/// cannot be created.
class TemporaryConfig {
 public:
  TemporaryConfig(const std::string& text, const std::string& of,
                  const std::vector<std::string>& assignments);
  ~TemporaryConfig();
  TemporaryConfig(const TemporaryConfig&) = delete;
  TemporaryConfig& operator=(const TemporaryConfig&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string folder_, path_;
};

}  // namespace shardscope::cli
