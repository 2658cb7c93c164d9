// `--set zero_optimization.overlap_comm=false`: overrides keys of a DeepSpeed configuration.
#pragma once

#include <string>
#include <vector>

#include "app/cli/scratch_folder.h"

namespace shardscope::cli {

/// Text of the configuration with each KEY=VALUE applied (VALUE is JSON, or else a string).
/// Throws UserError for an unreadable file or a malformed assignment, config::ConfigError for broken JSON
/// (line, column).
[[nodiscard]] std::string config_with(const std::string& path, const std::vector<std::string>& assignments);

/// The same for a configuration that is not in a file; messages call it `name`.
[[nodiscard]] std::string config_text_with(const std::string& text, const std::string& name,
                                           const std::vector<std::string>& assignments);

/// A file with `text` in a new temporary folder, removed with the object. Users do not know
/// its path: programs are given name(), which is `of` and the changes, for their messages.
/// Throws UserError when it cannot be created.
class TemporaryConfig {
 public:
  TemporaryConfig(const std::string& text, const std::string& of,
                  const std::vector<std::string>& assignments);
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  ScratchFolder folder_;
  std::string path_, name_;
};

}  // namespace shardscope::cli
