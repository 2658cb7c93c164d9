// `keys`: makes key files for connections to a collector from other machines.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "instrumentation/keys.h"
#include "instrumentation/local_keys.h"
#include "instrumentation/plain_text.h"

namespace shardscope::cli {
namespace {

namespace fs = std::filesystem;
using instrumentation::KeyFile;
using instrumentation::KeyRole;

struct KeysOptions {
  std::string folder;
  std::vector<std::string> add;
  std::string of, role = "control";
};

/// Writes a new holder's file beside the collector's, and adds it to the collector's list.
std::string add_holder(const fs::path& folder, KeyFile& collector, KeyRole role, const std::string& name) {
  const fs::path path = folder / (name + ".key");
  if (fs::exists(path))
    throw UserError(path.string() +
                    ": exists; a key is never replaced, choose another name or delete it first");
  KeyFile key;
  key.role = role;
  key.pair = instrumentation::make_key_pair();
  key.collector = collector.pair.public_key;
  collector.allowed.push_back({role, key.pair.public_key, name});
  // The list first: an entry whose key file does not exist yet admits no one.
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
  const bool made = fs::create_directories(folder, error);
  if (error) {
    throw UserError(fmt::format("{}: cannot be made: {}; choose a folder that can be written",
                                folder.string(), error.message()));
  }
  constexpr fs::perms kOthers = fs::perms::group_all | fs::perms::others_all;
  if (made) {
    fs::permissions(folder, fs::perms::owner_all);
  } else if ((fs::status(folder).permissions() & kOthers) != fs::perms::none) {
    throw UserError(fmt::format(
        "{}: others can open or change this folder; `chmod 700` it, or choose one that does not exist yet",
        folder.string()));
  }
  KeyFile collector;
  collector.role = KeyRole::collector;
  collector.pair = instrumentation::make_key_pair();
  say("{}  for `run --keys` and `record --keys`\n", (folder / "collector.key").string());
  for (const auto& [role, what] :
       {std::pair{KeyRole::publish, "for ranks: SHARDSCOPE_KEY, zero_train --key"},
        std::pair{KeyRole::view, "for `view --key`: may look"},
        std::pair{KeyRole::control, "for `view --key`: may look, pause and step"}}) {
    say("{}  {}\n", add_holder(folder, collector, role, instrumentation::name_of(role)), what);
  }
  return 0;
}

/// Prints the key file of this user's collector on this machine, to be copied to the start of a tunnel.
int print_key_of(const KeysOptions& options) {
  const std::string folder = instrumentation::local_key_folder(options.of);
  const std::string file = folder + "/" + options.role + ".key";
  if (folder.empty() || !fs::exists(file)) {
    throw UserError(fmt::format(
        "--of {}: {}", options.of,
        !folder.empty()
            ? "this collector was started with --insecure and asks for no key"
            : "no collector of yours that made its own keys listens there; give the endpoint of one "
              "on this machine, or the keys that it was started with"));
  }
  say("{}\n", file);
  return 0;
}

int make_keys(const KeysOptions& options) {
  if (!options.of.empty()) return print_key_of(options);
  const fs::path folder = options.folder;
  if (options.add.empty()) return make_set(folder);
  KeyFile collector = *instrumentation::collector_key(folder.string());
  for (const std::string& request : options.add) {
    const std::size_t equals = request.find('=');
    const std::string role = request.substr(0, equals);
    const std::string name = equals == std::string::npos ? "" : request.substr(equals + 1);
    const bool known = role == "publish" || role == "view" || role == "control";
    if (!known || name == "collector" || !instrumentation::is_key_name(name)) {
      throw UserError(
          fmt::format(
              "--add \"{}\": write ROLE=NAME with a role of publish, view or control and a name of up to "
              "64 letters, digits, '.', '_' and '-', other than collector",
              instrumentation::plain_line(request)),
          2);
    }
    const KeyRole what = role == "publish" ? KeyRole::publish
                         : role == "view"  ? KeyRole::view
                                           : KeyRole::control;
    say("{}\n", add_holder(folder, collector, what, name));
  }
  say(stderr, "shardscope: collectors read their list when they start: restart those that are running\n");
  return 0;
}

}  // namespace

void add_keys(CLI::App& app, Action& action) {
  auto options = std::make_shared<KeysOptions>();
  CLI::App* verb = app.add_subcommand("keys", "Make keys for collectors that other machines can reach");
  CLI::Option* folder = verb->add_option("folder", options->folder, "Folder for the key files");
  verb->add_option(
      "--add", options->add,
      "ROLE=NAME: one more key in an existing folder; roles are publish, view and control; repeatable");
  CLI::Option* of = verb->add_option(
      "--of", options->of,
      "Print the key file of the collector that listens at this endpoint of this machine; for an ssh tunnel");
  of->excludes(folder);
  verb->add_option("--role", options->role, "Of the key that --of prints")
      ->check(CLI::IsMember({"view", "control", "publish"}))
      ->needs(of)
      ->capture_default_str();
  verb->callback([options, &action] {
    if (options->folder.empty() && options->of.empty()) throw CLI::RequiredError("folder");
    action = [options] { return make_keys(*options); };
  });
}

}  // namespace shardscope::cli
