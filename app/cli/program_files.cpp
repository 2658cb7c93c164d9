#include "app/cli/program_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

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

std::string program_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : std::string();
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder) / name;
    std::error_code error;
    if (access(file.c_str(), X_OK) == 0 && !fs::is_directory(file, error)) return file.string();
  }
  return {};
}

std::string python_of(const std::string& program) {
  const auto is_python = [](const std::string& path) {
    return fs::path(path).filename().string().starts_with("python");
  };
  const std::string path = program_of(program);
  if (is_python(path)) return path;
  std::ifstream script(path, std::ios::binary);
  if (script.get() != '#' || script.get() != '!') return {};
  constexpr std::size_t kLongest = 256;  // the kernel reads no more of a first line
  std::string line(kLongest, '\0');
  script.read(line.data(), kLongest);
  line.resize(static_cast<std::size_t>(script.gcount()));
  std::istringstream words(line.substr(0, line.find('\n')));
  std::string interpreter;
  words >> interpreter;
  if (fs::path(interpreter).filename() == "env") {
    words >> interpreter;
    interpreter = program_of(interpreter);
  }
  return is_python(interpreter) ? interpreter : std::string();
}

std::string data_root() {
  const char* root = std::getenv("SHARDSCOPE_ROOT");
  if (root != nullptr && *root != '\0') return root;
  const std::string installed = installed_data();
  return installed.empty() ? SHARDSCOPE_SOURCE_ROOT : installed;
}

}  // namespace shardscope::cli
