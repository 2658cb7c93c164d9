// Lists of the panels without a window: order, copying, where a finding leads, messages, curves, colours.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "app/analysis/finding_kinds.h"
#include "app/gui/model/block_name.h"
#include "app/gui/model/colour_vision.h"
#include "app/gui/model/curve.h"
#include "app/gui/model/finding_place.h"
#include "app/gui/model/message_rows.h"
#include "app/gui/model/name_cell.h"
#include "app/gui/model/table.h"
#include "tests/app/gui/colour_distance.h"
#include "tests/app/gui/known_run.h"

namespace shardscope::gui {
namespace {

namespace ev = shardscope::instrumentation;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
using Order = std::vector<std::size_t>;

Table three_rows() {
  Table table;
  table.columns = {{"name"}, {"time", 1, true}};
  table.add({{"rank 10", {}, Tone::normal, {}, ""}, number_cell(2.0, "2 ms")});
  table.add({{"rank 9", {}, Tone::normal, {}, ""}, number_cell(std::nullopt, "")});
  table.add({{"rank 1", {}, Tone::normal, {}, ""}, number_cell(0.5, "500 \u00b5s")});
  return table;
}

TEST(TableRows, NumbersSortByValueAndWhatIsMissingComesLastEitherWay) {
  const Table table = three_rows();
  EXPECT_EQ(sorted_rows(table, 1, false), (Order{2, 0, 1}));
  EXPECT_EQ(sorted_rows(table, 1, true), (Order{0, 2, 1}));
}

TEST(TableRows, TextsSortWithTheirNumbersAsNumbers) {
  EXPECT_EQ(sorted_rows(three_rows(), 0, false), (Order{2, 1, 0}));
  EXPECT_EQ(sorted_rows(three_rows(), 0, true), (Order{0, 1, 2}));
}

TEST(TableRows, KeepTheirOrderWithoutASortedColumnAndWhereTheyAreEqual) {
  EXPECT_EQ(sorted_rows(three_rows(), SIZE_MAX, false), (Order{0, 1, 2}));
  Table table = three_rows();
  for (auto& row : table.rows) row[1] = number_cell(1.0, "1");
  EXPECT_EQ(sorted_rows(table, 1, true), (Order{0, 1, 2}));
}

TEST(TableRows, AreCopiedAsASpreadsheetTakesThem) {
  Table table = three_rows();
  table.rows[0][0].text = "a\tb\nc";
  EXPECT_EQ(tab_separated(table, Order{2, 0}), "name\ttime\nrank 1\t500 \u00b5s\na b c\t2 ms\n");
}

TEST(TableRows, AsAFileAreQuotedAndNothingIsComputed) {
  Table table = three_rows();
  table.rows[0][0].text = "=1+2";
  table.rows[1][0].text = "a, \"b\"";
  table.rows[2][1].text = "-2 ms";
  EXPECT_EQ(comma_separated(table, Order{0, 1, 2}),
            "name,time\r\n'=1+2,2 ms\r\n\"a, \"\"b\"\"\",\u2013\r\nrank 1,-2 ms\r\n");
}

TEST(FindingPlace, IsThePanelThatShowsWhatTheFindingIsAbout) {
  const std::set<std::string> panels{"overview", "timeline", "memory", "communication", "stepper"};
  const std::vector<analysis::FindingKind> kinds = analysis::finding_kinds();
  EXPECT_GE(kinds.size(), 30U);
  for (const analysis::FindingKind& kind : kinds) {
    analysis::Finding finding;
    finding.id = kind.id;
    finding.panel = kind.panel;
    finding.title = "Rank 3 of the memory bucket prefetches a loss";  // words decide nothing
    EXPECT_EQ(panel_of(finding), kind.panel) << kind.id;
    EXPECT_TRUE(panels.contains(kind.panel)) << kind.id << ": " << kind.panel;
  }
  EXPECT_EQ(panel_of({}), "timeline");
}

TEST(Messages, AreFilteredByWordsAndSeverity) {
  std::vector<store::Message> messages(3);
  messages[0].text = "Loss scale lowered to 512";
  messages[1].text = "checkpoint saved";
  messages[1].severity = ev::Severity::warning;
  messages[2].text = "LOSS is not finite";
  messages[2].severity = ev::Severity::error;
  EXPECT_EQ(matching_messages(messages, "loss", ev::Severity::info), (Order{0, 2}));
  EXPECT_EQ(matching_messages(messages, "", ev::Severity::warning), (Order{1, 2}));
  EXPECT_EQ(matching_messages(messages, "nothing of it", ev::Severity::info), Order{});
  MessageFilter filter;
  filter.rank = messages[0].rank;
  for (const std::size_t i : matching_messages(messages, filter))
    EXPECT_EQ(messages[i].rank, messages[0].rank);
  EXPECT_FALSE(matching_messages(messages, filter).empty());
  const std::vector<store::Message> said{{1, 0, ev::Severity::info, "loss scale lowered"},
                                         {2, ev::kNoId, ev::Severity::info, "rank 3 has connected"},
                                         {3, ev::kNoId, ev::Severity::info, "control: paused by a viewer"}};
  const auto only = [](MessageSource source) {
    MessageFilter of;
    of.source = source;
    return of;
  };
  EXPECT_EQ(matching_messages(said, MessageFilter{}), (Order{0, 1, 2}));
  EXPECT_EQ(matching_messages(said, only(MessageSource::ranks)), Order{0});
  EXPECT_EQ(matching_messages(said, only(MessageSource::run)), Order{1});
  EXPECT_EQ(matching_messages(said, only(MessageSource::commands)), Order{2});
}

TEST(Curves, KeepEverySpikeWhenTheyAreThinned) {
  std::vector<double> values(10'000, 1.0);
  values[5'003] = 50;
  values[7'777] = -3;
  const CurvePoints points = thinned(values, 100, 0, 1e9, 200);
  EXPECT_LE(points.y.size(), 400U);
  EXPECT_DOUBLE_EQ(*std::ranges::max_element(points.y), 50);
  EXPECT_DOUBLE_EQ(*std::ranges::min_element(points.y), -3);
  EXPECT_TRUE(std::ranges::is_sorted(points.x));
  EXPECT_DOUBLE_EQ(points.x.front(), 100) << "the first value is at the first step";
}

TEST(Curves, ShowWhatTheRangeHoldsAndOneValueBesideIt) {
  const std::vector<double> values{0, 1, 2, kNan, 4, 5, 6};
  const CurvePoints points = thinned(values, 10, 12.2, 14.5, 100);
  EXPECT_EQ(points.x, (std::vector<double>{12, 13, 14, 15}));
  EXPECT_TRUE(std::isnan(points.y[1])) << "a gap stays one";
}

TEST(Curves, HaveARangeThatBeginsAtZeroWhereItShallAndIsPositiveOnALogarithmicAxis) {
  const std::vector<std::vector<double>> curves{{4, kNan, 8}, {2}};
  const auto from_zero = value_range(curves, Zero::shown, Scale::linear);
  ASSERT_TRUE(from_zero);
  EXPECT_DOUBLE_EQ(from_zero->low, 0);
  EXPECT_GT(from_zero->high, 8);
  const auto tight = value_range(curves, Zero::not_shown, Scale::linear);
  EXPECT_LT(tight->low, 2);
  EXPECT_GT(tight->low, 1);
  const std::vector<std::vector<double>> mixed{{-1, 0, 10, 1000}};
  EXPECT_GT(value_range(mixed, Zero::shown, Scale::logarithmic)->low, 1);
  const std::vector<std::vector<double>> none{{kNan}, {}};
  EXPECT_FALSE(value_range(none, Zero::shown, Scale::linear));
}

TEST(BlockNames, EndAtTheBlocksNumber) {
  EXPECT_EQ(block_of("transformer.h.3.attn.c_attn.weight"), "transformer.h.3");
  EXPECT_EQ(block_of("lm_head.weight"), "lm_head");
  EXPECT_EQ(block_of("weight"), "weight");
}

TEST(ColourVision, LeavesGreysAndMapsRedAndGreenTogether) {
  for (const Vision vision : {Vision::no_red, Vision::no_green, Vision::no_blue}) {
    EXPECT_LT(test::colour_distance(seen(0x808080, vision), 0x808080), 1.5);
  }
  EXPECT_LT(test::colour_distance(seen(0xC04040, Vision::no_green), seen(0x6E6A38, Vision::no_green)),
            test::colour_distance(0xC04040, 0x6E6A38) / 3);
}

// Buffers were a brown that looked like the red of waits without red or green.
TEST(ColourVision, BuffersAndTheRunsOfAComparisonAreToldApartFromAllElse) {
  constexpr double kApart = 20;  // about nine times what is just noticeable
  for (const ThemeKind theme : kThemes) {
    const Palette& c = palette(theme);
    for (const Vision vision : {Vision::all, Vision::no_red, Vision::no_green}) {
      const auto distance = [&](Rgb a, Rgb b) {
        return test::colour_distance(seen(a, vision), seen(b, vision));
      };
      for (int i = 0; i < kMeaningCount; ++i) {
        const auto meaning = static_cast<Meaning>(i);
        if (meaning != Meaning::buffer) {
          EXPECT_GT(distance(c.of(Meaning::buffer), c.of(meaning)), kApart)
              << i << " " << static_cast<int>(vision);
        }
        for (const Rgb run : c.runs)
          EXPECT_GT(distance(run, c.of(meaning)), kApart) << i << " " << static_cast<int>(vision);
      }
      EXPECT_GT(distance(c.runs[0], c.runs[1]), kApart);
    }
  }
}

TEST(NameCells, KeepTheEndWhereNotAllFits) {
  const auto within = [](std::size_t most) {
    return [most](std::string_view text) { return text.size() <= most; };
  };
  const std::size_t dots = std::string_view("\u2026").size();
  EXPECT_EQ(end_of_name("transformer.h.3.attn.c_proj.weight", within(34)),
            "transformer.h.3.attn.c_proj.weight");
  EXPECT_EQ(end_of_name("transformer.h.3.attn.c_proj.weight", within(22 + dots)),
            "\u2026h.3.attn.c_proj.weight");
  EXPECT_EQ(end_of_name("transformer.h.3.attn.c_proj.weight", within(13 + dots)), "\u2026c_proj.weight");
  EXPECT_EQ(end_of_name("transformer.h.3.attn.c_proj.weight", within(2)), "\u2026weight")
      << "cut by who draws it";
  EXPECT_EQ(end_of_name("wte", within(2)), "wte");
}

TEST(NameCells, AreKeptUntilAnotherRunOrOtherTables) {
  const auto give = [](store::Store& store, std::uint32_t rank, std::initializer_list<const char*> paths) {
    ev::RunTables tables = known::tables();
    tables.rank = rank;
    tables.modules.clear();
    std::uint32_t id = 0;
    for (const char* const path : paths)
      tables.modules.push_back({id++, ev::kNoId, path, "Module", {}, true});
    store.set_tables(rank, tables);
  };
  store::Store store;
  KeptNameCells kept;
  EXPECT_EQ(kept.of(1, store).without_model("net.attn"), "net.attn") << "no tables yet";
  give(store, 1, {"", "net", "net.attn"});
  EXPECT_EQ(kept.of(1, store).without_model("net.attn"), "attn");
  const NameCells* const before = &kept.of(1, store);
  EXPECT_EQ(&kept.of(1, store), before);
  give(store, 0, {"", "body", "body.attn"});
  EXPECT_EQ(kept.of(1, store).without_model("net.attn"), "net.attn")
      << "as many modules, of a lower rank: they are the run's now";
  EXPECT_EQ(kept.of(1, store).without_model("body.attn"), "attn");
  give(store, 1, {"", "net", "net.attn", "head.fc"});
  EXPECT_EQ(kept.of(1, store).without_model("net.attn"), "net.attn")
      << "not all paths begin with it any more";
  store::Store other;
  give(other, 0, {"", "net", "net.attn"});
  EXPECT_EQ(kept.of(2, other).without_model("net.attn"), "attn");
}

TEST(NameCells, LeaveOutTheModelsNameAndNoOther) {
  const auto shown = [](std::initializer_list<const char*> modules, const std::string& name) {
    store::Store store;
    ev::RunTables tables = known::tables();
    tables.modules.clear();
    std::uint32_t id = 0;
    for (const char* const path : modules)
      tables.modules.push_back({id++, ev::kNoId, path, "Module", {}, true});
    store.set_tables(0, tables);
    const Cell cell = NameCells(store).cell(name);
    EXPECT_EQ(cell.tip, name) << "whole under the pointer";
    return cell.text;
  };
  EXPECT_EQ(shown({"", "transformer", "transformer.h.0", "lm_head"}, "transformer.h.0.qkv"), "h.0.qkv");
  EXPECT_EQ(shown({"", "transformer", "transformer.h.0", "lm_head"}, "lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(shown({"", "h.0", "h.1", "norm"}, "h.1.qkv"), "h.1.qkv") << "of a list of blocks";
  EXPECT_EQ(shown({"", "encoder.block.0", "decoder.block.0"}, "encoder.block.0.attn"), "encoder.block.0.attn")
      << "else the decoder's were named the same";
  EXPECT_EQ(shown({"", "model.layers.0"}, "aten.mm.out"), "aten.mm.out") << "no module";
  EXPECT_EQ(shown({"", "attn", "attn.q", "fc"}, "attn.q.weight"), "attn.q.weight")
      << "a layer beside another";
  EXPECT_EQ(shown({"", "net", "net.attn", "net.attn.q", "net.fc"}, "net.attn.q.weight"), "attn.q.weight")
      << "the only child";
  EXPECT_EQ(shown({"", "model", "model.h.0", "model.head", "head"}, "model.head.weight"), "model.head.weight")
      << "else two were named head";
}

}  // namespace
}  // namespace shardscope::gui
