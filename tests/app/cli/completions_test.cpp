// Scripts for shells, of a small command line with awkward texts; tests/app/cli/completion_test.py runs the
// real ones in the shells.
#include "app/cli/completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace shardscope::cli {
namespace {

using testing::HasSubstr;

CommandText program() {
  CommandText export_verb;
  export_verb.words = {"shardscope", "export"};
  export_verb.description = "What it's for: [other tools]";
  OptionText format;
  format.names = {"--format"};
  format.value = "FORMAT";
  format.choices = {"chrome", "csv"};
  format.description = "One of these: it's [required]";
  export_verb.options = {format};
  CommandText made;
  made.words = {"shardscope"};
  made.verbs = {export_verb};
  return made;
}

TEST(Completions, KnowVerbsOptionsAndChoices) {
  for (const std::string& script :
       {bash_completion(program()), zsh_completion(program()), fish_completion(program())}) {
    EXPECT_THAT(script, HasSubstr("export"));
    EXPECT_THAT(script, HasSubstr("format"));
    EXPECT_THAT(script, HasSubstr("chrome csv"));
  }
}

TEST(Completions, TextsCannotBreakOutOfTheirQuotes) {
  EXPECT_THAT(zsh_completion(program()), HasSubstr(R"(One of these\: it'\''s \[required\])"));
  EXPECT_THAT(fish_completion(program()), testing::Not(HasSubstr("it's")));
}

}  // namespace
}  // namespace shardscope::cli
