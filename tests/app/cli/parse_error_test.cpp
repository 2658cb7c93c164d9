// Errors for a command line that cannot be parsed.
#include "app/cli/parse_error.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace shardscope::cli {
namespace {

/// Of `words` for a program with the verbs `summary FILE [--json]` and `keys make|list`.
std::string said_of(std::vector<std::string> words) {
  CLI::App app("", "shardscope");
  app.require_subcommand(1);
  CLI::App* summary = app.add_subcommand("summary");
  std::string file;
  bool json = false;
  summary->add_option("file", file)->required();
  summary->add_flag("--json", json);
  std::string detail;
  summary->add_option("--detail", detail);
  CLI::App* keys = app.add_subcommand("keys");
  keys->require_subcommand(1);
  keys->add_subcommand("make");
  keys->add_subcommand("list");
  words.insert(words.begin(), "shardscope");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  try {
    app.parse(static_cast<int>(argv.size()), argv.data());
  } catch (const CLI::ParseError& error) {
    return parse_error_text(app, error, static_cast<int>(argv.size()), argv.data());
  }
  return "";
}

TEST(ParseError, NamesTheNearestVerb) {
  EXPECT_EQ(said_of({"sumary", "x"}),
            "sumary: no such verb; did you mean summary?; `shardscope --help` lists them");
  EXPECT_EQ(said_of({"zebra"}), "zebra: no such verb; `shardscope --help` lists them");
  EXPECT_EQ(said_of({"keys", "lst"}),
            "keys lst: no such verb; did you mean list?; `shardscope keys --help` lists them");
}

TEST(ParseError, NamesTheNearestOption) {
  EXPECT_EQ(said_of({"summary", "x", "--jsn"}),
            "--jsn: unknown; did you mean --json?; see `shardscope summary --help`");
  EXPECT_EQ(said_of({"summary", "x", "--detial=steps"}),
            "--detial=steps: unknown; did you mean --detail?; see `shardscope summary --help`");
}

TEST(ParseError, SaysWhatIsTooMuchOrMissing) {
  EXPECT_EQ(said_of({"summary", "x", "y"}), "y: not expected; see `shardscope summary --help`");
  EXPECT_EQ(said_of({"summary", "x", "--detail", "a", "--detail", "b"}),
            "--detail is given twice; give it once; see `shardscope summary --help`");
  EXPECT_NE(said_of({"summary"}).find("file is required"), std::string::npos);
  EXPECT_EQ(said_of({"summary", "x"}), "");
}

}  // namespace
}  // namespace shardscope::cli
