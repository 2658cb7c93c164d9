// `keys`: makes the key files with which a collector may be reached from other machines.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "app/cli/verb.h"
#include "instrumentation/keys.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;
using instrumentation::KeyFile;
using instrumentation::KeyRole;

struct KeysOptions {
  std::string folder;
  std::vector<std::string> add;
};

/// A new holder's file beside the collector's, which from now on lets it in.
std::string add_holder(const fs::path& folder, KeyFile& collector, KeyRole role, const std::string& name) {
  const fs::path path = folder / (name + ".key");
  if (fs::exists(path))
    throw UserError(path.string() +
                    ": exists; a key is never replaced, choose another name or delete it first");
  KeyFile key;
  key.role = role;
  key.pair = instrumentation::make_key_pair();
  key.collector = collector.pair.public_key;
  collector.allowed.push_back({role, key.pair.public_key});
  // The list first: a key that nobody has yet harms nobody.
  instrumentation::write_key_file((folder / "collector.key").string(), collector);
  instrumentation::write_key_file(path.string(), key);
  return path.string();
}

int make_set(const fs::path& folder) {
  if (fs::exists(folder / "collector.key")) {
    throw UserError((folder / "collector.key").string() +
                    ": exists; add holders with --add ROLE=NAME, or choose another folder");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw UserError(fmt::format("{}: cannot be made: {}; choose a folder that can be written",
                                folder.string(), error.message()));
  }
  fs::permissions(folder, fs::perms::owner_all);
  KeyFile collector;
  collector.role = KeyRole::collector;
  collector.pair = instrumentation::make_key_pair();
  fmt::print("{}  for `run --keys` and `record --keys`\n", (folder / "collector.key").string());
  for (const auto& [role, what] :
       {std::pair{KeyRole::publish, "for ranks: SHARDSCOPE_KEY, zero_train --key"},
        std::pair{KeyRole::view, "for `view --key`: may look"},
        std::pair{KeyRole::control, "for `view --key`: may look, pause and step"}}) {
    fmt::print("{}  {}\n", add_holder(folder, collector, role, instrumentation::name_of(role)), what);
  }
  return 0;
}

int make_keys(const KeysOptions& options) {
  const fs::path folder = options.folder;
  if (options.add.empty()) return make_set(folder);
  KeyFile collector = *instrumentation::collector_key((folder / "collector.key").string());
  for (const std::string& wish : options.add) {
    const std::size_t equals = wish.find('=');
    const std::string role = wish.substr(0, equals);
    const std::string name = equals == std::string::npos ? "" : wish.substr(equals + 1);
    const bool known = role == "publish" || role == "view" || role == "control";
    if (!known || name.empty() || name == "collector" || name.find('/') != std::string::npos) {
      throw UserError(fmt::format("--add {}: write ROLE=NAME with a role of publish, view or control", wish),
                      2);
    }
    const KeyRole what = role == "publish" ? KeyRole::publish
                         : role == "view"  ? KeyRole::view
                                           : KeyRole::control;
    fmt::print("{}\n", add_holder(folder, collector, what, name));
  }
  fmt::print(stderr,
             "shardscope: collectors read their list when they start: restart those that are running\n");
  return 0;
}

}  // namespace

void add_keys(CLI::App& app, Action& action) {
  auto options = std::make_shared<KeysOptions>();
  CLI::App* verb = app.add_subcommand("keys", "Make keys for collectors that other machines can reach");
  verb->add_option("folder", options->folder, "Folder for the key files")->required();
  verb->add_option(
      "--add", options->add,
      "ROLE=NAME: one more key in an existing folder; roles are publish, view and control; repeatable");
  verb->callback([options, &action] { action = [options] { return make_keys(*options); }; });
}

}  // namespace shardscope::cli
