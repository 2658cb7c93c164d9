// What reaches store and recording of tables that ranks send again.
#include "app/collector/run_sink.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "app/store/database.h"
#include "app/store/recording.h"

namespace shardscope::collector {
namespace {

namespace ev = shardscope::instrumentation;

wire::Tables rank_tables(std::uint32_t rank) {
  wire::Tables tables;
  ev::RunTables& t = tables.tables;
  t.run_id = "run";
  t.world = t.local_world = 2;
  t.rank = rank;
  t.elems = 8;
  t.modules.resize(1);
  t.modules[0].params = {0};
  t.params.resize(1);
  t.params[0].name = "w";
  t.params[0].elems = 8;
  t.params[0].shape = {8};
  t.params[0].modules = {0};
  return tables;
}

wire::Header sink_header(std::uint32_t rank) {
  wire::Header header;
  header.run_id = "run";
  header.rank = rank;
  return header;
}

// With thousands of ranks the configuration would be most of what a viewer waits for.
TEST(RunSink, AViewerGetsTheRunsConfigurationOnceAndAnotherOneToo) {
  RunSink sink("");
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    wire::Tables tables = rank_tables(rank);
    tables.tables.world = tables.tables.local_world = 3;
    tables.tables.config_json = rank == 2 ? R"({"other": 1})" : R"({"run": 1})";
    if (rank == 1) tables.tables.drop_lists();
    sink.tables(sink_header(rank), tables);
  }
  wire::ViewReply reply;
  sink.log().read(0, 0, 1U << 20, 100, reply);
  ASSERT_EQ(reply.items.size(), 3U);
  store::Store viewed;
  std::vector<std::string> configurations;
  for (const std::size_t i : {1U, 2U, 0U}) {  // whatever comes first
    const auto& data = reply.items[i].data;
    wire::Decoded decoded = wire::decode(data.data(), data.size(), wire::From::rank_publish);
    ASSERT_TRUE(decoded.message) << decoded.why;
    const ev::RunTables& tables = std::get<wire::Tables>(decoded.message->body).tables;
    configurations.push_back(tables.config_json);
    viewed.set_tables(reply.items[i].rank, tables);
  }
  EXPECT_EQ(configurations, (std::vector<std::string>{"", R"({"other": 1})", R"({"run": 1})"}));
  EXPECT_EQ(viewed.tables().config_json, R"({"run": 1})");
}

// Both ranks add the same. What the second one adds is what the first one has added, and is its own all the
// same.
TEST(RunSink, WhatRanksAddAlikeIsRecordedOfEach) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("run_sink_" + std::to_string(getpid()) + ".zscope"))
          .string();
  for (const std::uint32_t first : {0U, 1U}) {
    RunSink sink(path);
    sink.open_recording(path);
    const std::array order{first, 1 - first};
    for (const std::uint32_t rank : order) sink.tables(sink_header(rank), rank_tables(rank));
    for (const std::uint32_t rank : order) {
      wire::Tables more = rank_tables(rank);
      more.tables.param_groups.push_back({"all", 1e-3, 0.9, 0.99, 1e-8, 0.1, {0}});
      sink.tables(sink_header(rank), more);
    }
    sink.read([](const store::Store& store) { EXPECT_EQ(store.tables().param_groups.size(), 1U); });
    EXPECT_EQ(sink.finish(), "");
    store::RecordingInfo info;
    const store::Store store = store::open_recording(path, &info);
    EXPECT_EQ(store.tables().param_groups.size(), 1U) << "rank " << first << " was first";
    store::Database file(path, store::Database::Access::read);
    EXPECT_EQ(file.integer("SELECT count(DISTINCT length(bytes)) FROM tables"), 1)
        << "rank " << first << " was first";
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace shardscope::collector
