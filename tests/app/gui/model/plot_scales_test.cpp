// The axis of each plot as chosen, and what a logarithmic one shows.
#include "app/gui/model/plot_scales.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "app/gui/model/curve.h"

namespace shardscope::gui {
namespace {

TEST(PlotScales, AreChosenByPlotAndReadAgain) {
  PlotScales scales;
  EXPECT_EQ(scales.of("Loss"), AxisScale::automatic);
  scales.set("Loss", AxisScale::logarithmic);
  scales.set("Step time", AxisScale::linear);
  EXPECT_EQ(scales.of("Gradient norm"), AxisScale::automatic);
  PlotScales read;
  for (const std::string& line : scales.lines()) read.take_line(line);
  EXPECT_EQ(read, scales);
  EXPECT_EQ(read.of("Step time"), AxisScale::linear) << "names have spaces";
  for (const char* wrong :
       {"PlotScale=", "PlotScale=linear", "PlotScale=linear ", "PlotScale=cubic Loss", "Scale=linear Loss"})
    read.take_line(wrong);
  EXPECT_EQ(read, scales);
  scales.set("Loss", AxisScale::automatic);
  EXPECT_EQ(scales.lines().size(), 1U) << "automatic is not written";
}

TEST(PlotScales, AreBounded) {
  PlotScales scales;
  for (std::size_t i = 0; i < 2 * PlotScales::kMost; ++i)
    scales.set("plot " + std::to_string(i), AxisScale::linear);
  EXPECT_EQ(scales.lines().size(), PlotScales::kMost);
  scales.set("plot 0", AxisScale::logarithmic);
  EXPECT_EQ(scales.of("plot 0"), AxisScale::logarithmic) << "one that is kept can be changed";
}

TEST(Curves, WithoutWhatALogarithmicAxisCannotShow) {
  std::vector<double> values{1, 0, -2, 5, NAN};
  EXPECT_EQ(drop_not_positive(values), 2U);
  EXPECT_EQ(values[0], 1);
  EXPECT_TRUE(std::isnan(values[1]) && std::isnan(values[2]));
  EXPECT_EQ(values[3], 5);
}

TEST(Curves, BinsOfALogarithmicAxisHaveEqualRatiosAndHoldEveryValue) {
  const std::vector<double> edges = log_edges(1, 1000, 3);
  ASSERT_EQ(edges.size(), 4U);
  EXPECT_NEAR(edges[1], 10, 1e-9);
  EXPECT_NEAR(edges[2], 100, 1e-9);
  EXPECT_EQ(edges[3], 1000);
  const std::vector<double> values{1, 2, 10.5, 1000};
  const std::vector<double> shares = shares_in(values, edges);
  EXPECT_EQ(shares, (std::vector<double>{0.5, 0.25, 0.25}));
  EXPECT_DOUBLE_EQ(std::accumulate(shares.begin(), shares.end(), 0.0), 1);
}

}  // namespace
}  // namespace shardscope::gui
