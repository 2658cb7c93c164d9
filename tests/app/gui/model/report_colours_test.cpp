// The report and the dashboard give a category of memory and a span one colour.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <map>
#include <string>

#include "app/export/html_parts.h"
#include "app/gui/model/palette.h"
#include "assets/assets.h"

namespace shardscope::gui {
namespace {

std::string colour_of_report(Meaning meaning) {
  static const std::map<Meaning, std::string> kColours{{Meaning::compute, exporter::colour::kCompute},
                                                       {Meaning::gather, exporter::colour::kGather},
                                                       {Meaning::reduce, exporter::colour::kReduce},
                                                       {Meaning::optimizer, exporter::colour::kOptimizer},
                                                       {Meaning::activation, exporter::colour::kActivation},
                                                       {Meaning::copy, exporter::colour::kCopy},
                                                       {Meaning::buffer, exporter::colour::kBuffer},
                                                       {Meaning::trouble, exporter::colour::kWait},
                                                       {Meaning::neutral, exporter::colour::kIdle}};
  return kColours.at(meaning);
}

TEST(ReportColours, CategoriesOfMemoryAreThoseOfTheDashboard) {
  for (std::size_t i = 0; i < instrumentation::kMemoryCategoryCount; ++i) {
    const auto category = static_cast<instrumentation::MemoryCategory>(i);
    EXPECT_EQ(exporter::colour_of(category), colour_of_report(meaning_of(category))) << "category " << i;
  }
}

TEST(ReportColours, SpansAreThoseOfTheDashboard) {
  for (std::uint8_t kind = 0; kind < 255; ++kind) {
    const auto begin = static_cast<instrumentation::EventKind>(kind);
    if (!instrumentation::is_begin(begin)) continue;
    for (std::uint8_t lane = 0; lane < instrumentation::kStreamCount; ++lane) {
      const auto stream = static_cast<instrumentation::StreamId>(lane);
      for (int code = 0; code < 256; ++code) {
        const auto of_kind = static_cast<std::uint8_t>(code);
        const exporter::Hue hue = exporter::hue_of(store::hue_of(stream, begin, of_kind));
        ASSERT_EQ(exporter::colour_of(hue), colour_of_report(meaning_on(stream, begin, of_kind)))
            << instrumentation::name_of(begin) << " " << code << " on " << instrumentation::name_of(stream);
      }
    }
  }
}

/// "--wait:#E2555A" of the page's dark colours or of those before.
std::string in_style(bool dark, const std::string& name) {
  const std::string style(assets::report_style);
  const std::size_t from = dark ? style.find("prefers-color-scheme:dark") : 0;
  const std::size_t at = style.find(name + ":#", from);
  return at == std::string::npos ? "none" : style.substr(at + name.size() + 1, 7);
}

TEST(ReportColours, ThePageHasTheColoursOfTheUsualThemes) {
  for (const ThemeKind theme : {ThemeKind::dark, ThemeKind::light}) {
    for (int i = 0; i < kMeaningCount; ++i) {
      const auto meaning = static_cast<Meaning>(i);
      const std::string name = "-" + colour_of_report(meaning).substr(1);  // "c-wait" is filled with "--wait"
      std::array<char, 8> hex{};
      std::snprintf(hex.data(), hex.size(), "#%06X", static_cast<unsigned>(palette(theme).of(meaning)));
      EXPECT_EQ(in_style(theme == ThemeKind::dark, name), hex.data()) << name_of(theme) << " " << name;
    }
  }
}

}  // namespace
}  // namespace shardscope::gui
