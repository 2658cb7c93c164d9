// The files generated from instrumentation/event_kinds.def are in the repository as they would be generated
// now: a kind that is added or changed in the table and not there fails. SHARDSCOPE_WRITE_TEXTS=1 writes it
// anew.
#include "tests/instrumentation/c_api/event_texts.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace shardscope {
namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Compares the text between the lines that contain `begin` and `end`, or replaces it.
void expect_written(const std::string& path, const std::string& begin, const std::string& end,
                    const std::string& wanted) {
  const std::string text = read(path);
  std::size_t from = text.find(begin);
  ASSERT_NE(from, std::string::npos) << path << " lacks the line " << begin;
  from = text.find('\n', from) + 1;
  std::size_t to = text.find(end, from);
  ASSERT_NE(to, std::string::npos) << path << " lacks the line " << end;
  to = text.rfind('\n', to) + 1;
  if (std::getenv("SHARDSCOPE_WRITE_TEXTS") != nullptr) {
    std::ofstream(path, std::ios::binary) << text.substr(0, from) << wanted << text.substr(to);
    return;
  }
  std::istringstream is(text.substr(from, to - from)), should_be(wanted);
  std::string line, other;
  while (std::getline(should_be, other)) {
    std::getline(is, line);
    ASSERT_EQ(line, other) << path << " differs from what instrumentation/event_kinds.def gives: run "
                           << "SHARDSCOPE_WRITE_TEXTS=1 build/release/bin/c_api_texts_test "
                           << "--gtest_filter='EventTexts.*'";
  }
  EXPECT_FALSE(std::getline(is, line)) << path << " has a line too many: " << line;
}

constexpr const char* kBegin = "written from event_kinds.def";
constexpr const char* kEnd = "end of what is written";

TEST(EventTexts, ConstantsOfTheCHeader) {
  expect_written(EVENT_CODES_HEADER, kBegin, kEnd, test::c_constants());
}
TEST(EventTexts, FunctionsOfTheCHeader) {
  expect_written(EVENT_FUNCTIONS_HEADER, kBegin, kEnd, test::c_functions());
}
TEST(EventTexts, FunctionsOfThePythonPackage) {
  expect_written(PYTHON_EVENTS, kBegin, kEnd, test::python_functions());
}
TEST(EventTexts, TableOfTheManual) {
  expect_written(EVENTS_PAGE, "|---|---|---|---|---|", "\\* The reduce and gather phases",
                 test::manual_rows() + "\n");
}

}  // namespace
}  // namespace shardscope
