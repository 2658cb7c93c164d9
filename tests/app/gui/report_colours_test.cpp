// The report and the dashboard give a category of memory one colour.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "app/export/html_parts.h"
#include "app/gui/model/palette.h"

namespace shardscope::gui {
namespace {

TEST(ReportColours, CategoriesOfMemoryAreThoseOfTheDashboard) {
  const std::map<Meaning, std::string> classes{{Meaning::compute, exporter::colour::kCompute},
                                               {Meaning::gather, exporter::colour::kGather},
                                               {Meaning::reduce, exporter::colour::kReduce},
                                               {Meaning::optimizer, exporter::colour::kOptimizer},
                                               {Meaning::activation, exporter::colour::kActivation},
                                               {Meaning::copy, exporter::colour::kCopy},
                                               {Meaning::buffer, exporter::colour::kBuffer},
                                               {Meaning::neutral, exporter::colour::kIdle}};
  for (std::size_t i = 0; i < instrumentation::kMemoryCategoryCount; ++i) {
    const auto category = static_cast<instrumentation::MemoryCategory>(i);
    EXPECT_EQ(exporter::colour_of(category), classes.at(meaning_of(category))) << "category " << i;
  }
}

}  // namespace
}  // namespace shardscope::gui
