// `completion`: prints a script for a shell. `manual`, not in --help: writes the files installed beside the
// programs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <memory>

#include "app/cli/command_text.h"
#include "app/cli/completions.h"
#include "app/cli/manual_pages.h"
#include "app/cli/say.h"
#include "app/cli/verb.h"
#include "assets/assets.h"
#include "runtime/base/build_facts.h"

namespace shardscope::cli {
namespace {

void write_share_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw UserError(fmt::format("{}: cannot be written", path.string()));
}

/// Writes the files below a prefix's share folder.
void write_all(const CommandText& program, const std::filesystem::path& share) {
  write_share_file(share / "bash-completion/completions" / program.name(), bash_completion(program));
  write_share_file(share / "zsh" / ("_" + program.name()), zsh_completion(program));
  write_share_file(share / "fish/vendor_completions.d" / (program.name() + ".fish"),
                   fish_completion(program));
  for (const auto& [name, text] : manual_pages(program, assets::manual_page, base::version()))
    write_share_file(share / "man/man1" / name, text);
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Completion for a shell, to be sourced by it");
  completion->add_option("shell", *shell, "Whose: source <(shardscope completion bash)")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([shell, &app, &action] {
    action = [shell, &app] {
      const CommandText program = command_text(app);
      say_text(stdout, *shell == "bash"  ? bash_completion(program)
                       : *shell == "zsh" ? zsh_completion(program)
                                         : fish_completion(program));
      return 0;
    };
  });

  auto share = std::make_shared<std::string>();
  CLI::App* manual =
      app.add_subcommand("manual", "Manual pages and completions, as installed below a prefix");
  manual->group("");
  manual->add_option("folder", *share, "Folder that is installed as PREFIX/share")->required();
  manual->callback([share, &app, &action] {
    action = [share, &app] {
      write_all(command_text(app), *share);
      return 0;
    };
  });
}

}  // namespace shardscope::cli
