#include "app/cli/torch_dumps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;

struct DumpName {
  std::string prefix;
  std::uint32_t rank = 0;
};

std::optional<DumpName> dump_name(const fs::path& path) {
  const std::string ending = path.extension().string();
  const bool known = ending == ".json" || ending == ".pkl" || ending == ".pickle";
  const std::string name = known ? path.stem().string() : path.filename().string();
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;  // npos + 1 is 0
  DumpName out{name.substr(0, digits), 0};
  const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), out.rank);
  constexpr std::uint32_t kLargest = 1'000'000;
  if (digits == name.size() || error != std::errc() || out.rank > kLargest) return std::nullopt;
  return out;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UserError(fmt::format("--flight-recorder {}: {}", path, why));
}

std::vector<fs::path> files_below(const std::string& folder) {
  constexpr int kDeepest = 8;
  constexpr std::size_t kMost = 200'000;
  std::map<std::string, std::vector<fs::path>> by_prefix;
  std::size_t count = 0;
  std::error_code error;
  for (auto at =
           fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    if (at.depth() >= kDeepest) at.disable_recursion_pending();
    if (++count > kMost) refuse(folder, "holds more than 200,000 files; name the folder of the dumps");
    std::error_code ignored;
    if (!at->is_regular_file(ignored)) continue;
    if (const auto name = dump_name(at->path())) by_prefix[name->prefix].push_back(at->path());
  }
  if (error) refuse(folder, "cannot be read: " + error.message());
  if (by_prefix.empty())
    refuse(folder,
           "holds no file whose name ends with a rank (nccl_trace_rank_0); see TORCH_FR_DUMP_TEMP_FILE");
  if (by_prefix.size() > 1)
    refuse(folder, fmt::format("holds files of several names ({}0, {}0): give those of one run",
                               by_prefix.begin()->first, by_prefix.rbegin()->first));
  std::vector<fs::path> out = by_prefix.begin()->second;
  std::ranges::sort(out);
  return out;
}

/// Throws std::invalid_argument.
std::string contents_of(const fs::path& path) {
  // 100,000 operations with their stacks are some 50 MB.
  constexpr std::size_t kMost = std::size_t{256} << 20;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size > kMost) throw std::invalid_argument("is larger than 256 MiB: no dump is");
  std::ifstream file(path, std::ios::binary);
  std::string out(error ? 0 : size, '\0');
  if (error || !file || (size > 0 && !file.read(out.data(), static_cast<std::streamsize>(size))))
    throw std::invalid_argument("cannot be read");
  return out;
}

}  // namespace

TorchDumps read_torch_dumps(const std::vector<std::string>& paths) {
  std::map<std::uint32_t, fs::path> files;
  const auto add = [&](const fs::path& path, std::uint32_t rank) {
    const auto [known, is_new] = files.try_emplace(rank, path);
    if (!is_new && known->second != path)
      refuse(path,
             fmt::format("is of rank {}, as {} is: give the dumps of one run", rank, known->second.string()));
  };
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      for (const fs::path& file : files_below(path)) add(file, dump_name(file)->rank);
    } else if (!fs::exists(path, error)) {
      refuse(path, "is not there");
    } else if (const auto name = dump_name(path)) {
      add(path, name->rank);
    } else {
      refuse(path, "has no rank at the end of its name (nccl_trace_rank_0), which says whose dump it is");
    }
  }
  TorchDumps out;
  for (const auto& [rank, path] : files) {
    try {
      out.dumps.push_back(analysis::parse_flight_dump(contents_of(path), rank, out.texts));
    } catch (const std::invalid_argument& error) {
      out.problems.push_back(fmt::format("{}: {}", path.string(), error.what()));
    }
  }
  if (out.dumps.empty())
    throw UserError("--flight-recorder " + (out.problems.empty() ? "needs a file" : out.problems.front()));
  return out;
}

}  // namespace shardscope::cli
