#include "app/export/html_template.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace shardscope::exporter {
namespace {

TEST(HtmlTemplate, NamesAreReplacedAndValuesNotSearchedAgain) {
  EXPECT_EQ(fill_template("<b>{{a}}</b> {{b}}{{a}}", {{"a", "{{b}}"}, {"b", "2"}}), "<b>{{b}}</b> 2{{b}}");
}

TEST(HtmlTemplate, ASectionThatLacksAValueIsLeftOutWithItsLine) {
  const char* page = "<p>{{a}}</p>\n<section>{{a}}{{b}}</section>\n<section>{{b}}</section>\nend";
  EXPECT_EQ(fill_template(page, {{"a", ""}, {"b", "2"}}), "<p></p>\n<section>2</section>\nend");
}

TEST(HtmlTemplate, PageAndValuesMustFit) {
  EXPECT_THROW((void)fill_template("{{a}}", {}), std::logic_error);
  EXPECT_THROW((void)fill_template("{{a}}", {{"a", "1"}, {"b", "2"}}), std::logic_error);
  EXPECT_THROW((void)fill_template("{{a", {{"a", "1"}}), std::logic_error);
  EXPECT_THROW((void)fill_template("<section>{{a}}", {{"a", "1"}}), std::logic_error);
}

}  // namespace
}  // namespace shardscope::exporter
