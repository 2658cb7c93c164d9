// `--set zero_optimization.overlap_comm=false`: keys over a DeepSpeed file.
#pragma once

#include <string>
#include <vector>

#include "app/cli/scratch_folder.h"

namespace shardscope::cli {

/// Text of the configuration with each KEY=VALUE applied (VALUE is JSON; what is not JSON is a string).
/// Throws UserError for an unreadable file or a malformed assignment, config::ConfigError for broken JSON
/// (line, column).
[[nodiscard]] std::string config_with(const std::string& path, const std::vector<std::string>& assignments);

/// The same for a configuration that is in no file, called `name` in messages.
[[nodiscard]] std::string config_text_with(const std::string& text, const std::string& name,
                                           const std::vector<std::string>& assignments);

/// A file with `text` in a folder of its own in the temporary one, for as long as the object lives. Its path
/// is nothing to the user: programs are given name(), `of` and what was changed, to call it in messages.
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
