#include "app/cli/program_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

fs::path program_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) throw UserError("/proc/self/exe: " + error.message());
  return self.parent_path();
}

/// Empty where this program is not installed.
std::string installed_data() {
  const fs::path folder = program_folder().parent_path() / "share" / "shardscope";
  std::error_code error;
  return fs::is_directory(folder, error) ? folder.string() : std::string();
}

}  // namespace

std::string sibling_program(const std::string& name) {
  const std::string path = (program_folder() / name).string();
  if (access(path.c_str(), X_OK) == 0) return path;
  throw UserError(
      installed_data().empty()
          ? fmt::format("{}: not built; build the target `{}` of the same build folder", path, name)
          : fmt::format("{}: not installed; install the package that holds it ({})", path,
                        name == "shardscope-gui" ? "shardscope" : "shardscope-cli"));
}

std::string data_root() {
  const char* root = std::getenv("SHARDSCOPE_ROOT");
  if (root != nullptr && *root != '\0') return root;
  const std::string installed = installed_data();
  return installed.empty() ? SHARDSCOPE_SOURCE_ROOT : installed;
}

}  // namespace shardscope::cli
