// What ranks of other nodes are given to connect to.
#include "app/cli/attach_nodes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

#include "app/cli/verb.h"

namespace shardscope::cli {
namespace {

TEST(AttachNodes, AnAddressThatIsOfNoMachineIsNamedForTheOthers) {
  std::array<char, 256> name{};
  ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
  const std::string own = std::string("tcp://") + name.data() + ":5711";
  for (const char* bound : {"tcp://0.0.0.0:5711", "tcp://*:5711", "tcp://[::]:5711"}) {
    EXPECT_EQ(endpoint_for_nodes(bound, ""), own);
    EXPECT_EQ(endpoint_for_nodes(bound, "head.cluster"), "tcp://head.cluster:5711");
  }
  EXPECT_EQ(endpoint_for_nodes("tcp://10.0.0.7:5711", ""), "tcp://10.0.0.7:5711");
  EXPECT_EQ(endpoint_for_nodes("tcp://10.0.0.7:5711", "head"), "tcp://head:5711")
      << "behind an address translation";
  EXPECT_EQ(endpoint_for_nodes("tcp://0.0.0.0:5711", "fd00::7"), "tcp://[fd00::7]:5711");
  EXPECT_EQ(endpoint_for_nodes("ipc:///tmp/run.sock", "head"), "ipc:///tmp/run.sock");
}

std::string refused(const NodeOptions& nodes, const collector::CollectorOptions& collector,
                    const RetentionOptions& kept = {}) {
  try {
    check_nodes(nodes, collector, kept);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(AttachNodes, OptionsThatContradictOneAnotherAreRefused) {
  collector::CollectorOptions collector;
  collector.listen = "tcp://127.0.0.1:0";
  EXPECT_EQ(refused({}, collector), "");
  EXPECT_NE(refused({.folder = "/shared", .advertise = {}}, collector).find("cannot reach tcp://127.0.0.1:0"),
            std::string::npos);
  collector.listen = "tcp://0.0.0.0:0";
  EXPECT_EQ(refused({.folder = "/shared", .advertise = {}}, collector), "");
  collector.upstream = "tcp://head:5711";
  EXPECT_NE(refused({}, collector).find("--run-id NAME"), std::string::npos);
  collector.run_id = "job-17";
  EXPECT_EQ(refused({}, collector), "");
  RetentionOptions kept;
  kept.detail.raise = "kernels";
  EXPECT_NE(refused({}, collector, kept).find("recorder at tcp://head:5711"), std::string::npos);
}

}  // namespace
}  // namespace shardscope::cli
