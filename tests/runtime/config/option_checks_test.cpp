// What CLI11 takes in silence for something else is refused, of every option and of none but options.
#include "runtime/config/option_checks.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::config {
namespace {

TEST(OptionValues, AreWhatTheyAreReadAs) {
  using enum OptionValue;
  for (const OptionValue kind : {text, number, whole_number, count})
    EXPECT_NE(validate(kind, "").find("empty"), std::string::npos);
  for (const char* good : {"0", "7", "18446744073709551615", "0x5eed", "0xffffffffffffffff"})
    EXPECT_EQ(validate(count, good), "") << good;
  for (const char* good : {"0", "-7", "9223372036854775807", "-9223372036854775808", "0x10"})
    EXPECT_EQ(validate(whole_number, good), "") << good;
  for (const char* far : {"18446744073709551616", "99999999999999999999999", "0x10000000000000000"})
    EXPECT_EQ(validate(count, far), std::string(far) + " is beyond the numbers of 64 bits");
  for (const char* far : {"9223372036854775808", "-9223372036854775809"})
    EXPECT_EQ(validate(whole_number, far), std::string(far) + " is beyond the numbers of 64 bits");
  EXPECT_EQ(validate(count, "-7"), "-7 is below 0");
  EXPECT_EQ(validate(count, "010"), "010 begins with a 0; write it without");
  EXPECT_EQ(validate(whole_number, "-010"), "-010 begins with a 0; write it without");
  for (const char* none : {"many", "1.5", "-", "0x"})
    EXPECT_EQ(validate(whole_number, none), "") << none << ": CLI11 refuses what is no number";
  for (const char* none : {"nan", "-nan", "inf", "-infinity", "1e999"})
    EXPECT_EQ(validate(number, none), std::string(none) + " is not a finite number");
  for (const char* value : {"0", "-1.5", "1e300", "much", "1.5x"})
    EXPECT_EQ(validate(number, value), "") << value << ": the option's own check has the range";
}

TEST(OptionValues, AnOptionIsNoValueOfTheOneBeforeIt) {
  using enum OptionValue;
  EXPECT_EQ(validate(text, "--help"), "its value is missing before --help; a file of that name is ./--help");
  for (const char* option : {"--", "-o", "-hm"}) EXPECT_NE(validate(text, option), "") << option;
  for (const char* value : {"-", "-1", "-.5", "./--help", "a-b", "key=-x"})
    EXPECT_EQ(validate(text, value), "") << value;
}

class Programs : public ::testing::Test {
 protected:
  Programs() {
    app_.add_option("--file", file_);
    CLI::App* verb = app_.add_subcommand("verb", "");
    verb->add_option("--set", set_);
    verb->add_option("--steps", steps_)->check(CLI::PositiveNumber);
    verb->add_option("--seed", seed_);
    verb->add_flag("--flag", flag_);
    verb->add_option("command", command_);
    verb->positionals_at_end();
    help_ = app_.help("", CLI::AppFormatMode::All);
    check_option_values(app_);
  }
  /// Why it was refused, or "".
  std::string parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    app_.clear();
    try {
      app_.parse(std::move(words));
    } catch (const CLI::ParseError& error) {
      return error.what();
    }
    return {};
  }
  CLI::App app_;
  std::string file_, help_;
  std::vector<std::string> set_, command_;
  std::int64_t steps_ = 0;
  std::uint64_t seed_ = 0;
  bool flag_ = false;
};

TEST_F(Programs, CheckEveryOptionOfEveryVerb) {
  EXPECT_EQ(parse({"--file", ""}), "--file: its value is empty; give one, or leave the option out");
  EXPECT_NE(parse({"verb", "--set", "a=1", "--set", ""}).find("--set: its value is empty"),
            std::string::npos);
  EXPECT_NE(parse({"verb", "--set", "--", "train"}).find("--set: its value is missing before --"),
            std::string::npos);
  EXPECT_NE(parse({"verb", "--steps", ""}).find("--steps: its value is empty"), std::string::npos);
  EXPECT_NE(parse({"verb", "--steps", "99999999999999999999999"}).find("beyond"), std::string::npos);
  EXPECT_NE(parse({"verb", "--seed", "-7"}).find("--seed: -7 is below 0"), std::string::npos);
}

TEST_F(Programs, TakeWhatIsRightAndPositionsAsTheyAre) {
  EXPECT_EQ(parse({"--file", "a", "verb", "--set", "a=1", "--steps", "8", "--seed", "18446744073709551615",
                   "--flag", "--", "train", "--name", "", "-v"}),
            "");
  EXPECT_EQ(steps_, 8);
  EXPECT_EQ(seed_, UINT64_MAX);
  EXPECT_TRUE(flag_);
  EXPECT_EQ(command_, (std::vector<std::string>{"train", "--name", "", "-v"}));
}

TEST_F(Programs, ReadInTheirHelpAsBefore) { EXPECT_EQ(app_.help("", CLI::AppFormatMode::All), help_); }

}  // namespace
}  // namespace shardscope::config
