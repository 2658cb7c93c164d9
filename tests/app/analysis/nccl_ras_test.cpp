// Answers of NCCL's RAS, as its user guide prints them (NCCL 2.24 to 2.29, "Troubleshooting: RAS").
#include "app/analysis/nccl_ras.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace shardscope::analysis {
namespace {

constexpr const char* kText = R"(NCCL version 2.26.2 compiled with CUDA 12.8
CUDA runtime version 12080, driver version 12080

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        32        32   RUNNING  MISMATCH

Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-1 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  30 ranks have launched up to operation 6650
  Rank 4 has launched up to operation 6648 -- GPU 4 managed by process 483076 on node 172.16.64.210
  Rank 9 has not launched any operations -- [process information not found]

)";

std::string json_answer(int of_rank_1) {
  nlohmann::json out = {{"nccl_version", "2.29.1"}, {"communicators", nlohmann::json::array()}};
  nlohmann::json ranks = nlohmann::json::array();
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back({{"rank", rank},
                     {"host", "node1"},
                     {"pid", 100 + rank},
                     {"cuda_dev", rank},
                     {"collective_counts", {{"AllGather", rank == 1 ? of_rank_1 : 42}, {"AllReduce", 7}}}});
  }
  out["communicators"].push_back({{"hash", "0xae94423cfbb2ef4a"},
                                  {"size", 4},
                                  {"ranks", ranks},
                                  {"missing_ranks",
                                   {{{"rank", 3},
                                     {"host", "node2"},
                                     {"pid", 103},
                                     {"status", {{"unresponsive", true}, {"considered_dead", true}}}}}}});
  return out.dump();
}

TEST(NcclRas, TextNamesWhoIsBehindMissingAndDead) {
  const RasAnswer answer = parse_ras(kText);
  EXPECT_EQ(answer.version, "2.26.2");
  ASSERT_EQ(answer.uneven.size(), 1U);
  EXPECT_EQ(answer.uneven[0].communicator, "27a079b828ff1a75");
  EXPECT_EQ(answer.uneven[0].operation, "AllReduce");
  ASSERT_EQ(answer.uneven[0].sets.size(), 3U);
  EXPECT_EQ(answer.uneven[0].sets[0].launched, 0U);
  EXPECT_EQ(answer.uneven[0].sets[1].ranks.at(0).pid, 483076);
  EXPECT_EQ(answer.uneven[0].sets[2].count, 30U);
  const auto lines = ras_lines(answer);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(
      lines[0].rfind("communicator 27a079b828ff1a75: rank 9 has launched AllReduce never; rank 4 (process "
                     "483076 on 172.16.64.210, GPU 4) has launched AllReduce up to number 6648, 30 ranks up "
                     "to number 6650. An instant of a run that goes on looks so too",
                     0),
      0U)
      << lines[0];
  EXPECT_EQ(lines[1], "communicator cf264af53edbe986: no answer of rank 21");
  EXPECT_EQ(lines[2], "given up as dead: Process 3487984 on node 172.16.64.213 managing GPU 5");
}

TEST(NcclRas, TextOfOlderVersionsAndListsOfMembers) {
  const RasAnswer answer = parse_ras(
      "Communicators... (0.00s)\n=============\n\n#0-0 (27a079b828ff1a75) MISMATCH\n"
      "  Communicator ranks have different collective operation counts\n"
      "  26 ranks have launched up to operation 6650\n  6 ranks have launched up to operation 6649\n"
      "  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210\n"
      "  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210\n");
  ASSERT_EQ(answer.uneven.size(), 1U);
  EXPECT_EQ(answer.uneven[0].sets[0].launched, 6649U);
  EXPECT_EQ(answer.uneven[0].sets[0].ranks.size(), 2U);
  EXPECT_NE(ras_lines(answer)[0].find("GPU 2) and 4 more have launched collective up to number 6649"),
            std::string::npos)
      << ras_lines(answer)[0];
}

TEST(NcclRas, ListsOfMissingRanksEndWithTheirNumber) {
  const RasAnswer answer = parse_ras(
      "Communicators... (0.00s)\n#0-1 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 4 "
      "ranks\n"
      "  The missing ranks: 21, 23-25\n");
  EXPECT_EQ(ras_lines(answer)[0],
            "communicator cf264af53edbe986: no answer of rank 21, rank 23, rank 24, rank 25");
  const RasAnswer endless = parse_ras(
      "Communicators... (0.00s)\n#0-1 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 2 "
      "ranks\n"
      "  The missing ranks: 1-999999999\n");
  EXPECT_EQ(endless.missing.at(0).ranks.size(), 2U);
}

/// Ranks of different status are those of a communicator that is made or torn down: no rank is behind.
TEST(NcclRas, DifferentStatusIsNotBehind) {
  const RasAnswer answer = parse_ras(
      "Communicators... (0.00s)\n#0-0 (9e17999afaa87dbb) MISMATCH\n  Communicator ranks have different "
      "status\n"
      "  26 ranks have status UNKNOWN\n  Rank 0 -- GPU 0 managed by process 507285 on node 172.16.64.210\n");
  EXPECT_TRUE(answer.uneven.empty());
  EXPECT_EQ(ras_lines(answer),
            std::vector<std::string>{
                "every communicator's ranks have launched the same numbers of operations, and all answered"});
}

TEST(NcclRas, JsonHasEveryCount) {
  const RasAnswer answer = parse_ras(json_answer(41));
  ASSERT_EQ(answer.uneven.size(), 1U) << "AllReduce is even";
  EXPECT_EQ(answer.uneven[0].operation, "AllGather");
  EXPECT_EQ(answer.uneven[0].sets[0].ranks.at(0).rank, 1U);
  const auto lines = ras_lines(answer);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[0].find(
                "rank 1 (process 101 on node1, GPU 1) has launched AllGather up to number 41, 2 ranks up to "
                "number 42."),
            std::string::npos)
      << lines[0];
  EXPECT_EQ(lines[1],
            "communicator ae94423cfbb2ef4a: no answer of rank 3 (process 103 on node2), given up as dead");
  const auto json = nlohmann::json::parse(ras_json(answer));
  EXPECT_EQ(json["uneven"][0]["sets"][0]["ranks"][0]["pid"], 101);
  EXPECT_TRUE(json["uneven"][0]["unchanged"].is_null());
}

TEST(NcclRas, ALaterAnswerTellsWhetherItStands) {
  const RasAnswer first = parse_ras(json_answer(41));
  EXPECT_NE(ras_lines(first, parse_ras(json_answer(41)))[0].find("nothing was launched between the two"),
            std::string::npos);
  EXPECT_NE(ras_lines(first, parse_ras(json_answer(42)))[0].find("it goes on"), std::string::npos);
  EXPECT_NE(ras_lines(first, parse_ras(json_answer(40)))[0].find("it goes on"), std::string::npos);
}

TEST(NcclRas, WhatIsNoAnswerIsRefused) {
  for (
      const char* wrong :
      {"", "  \n", "hello", "{", "[]", "{\"communicators\": 3}", "{\"communicators\": [{}]}",
       "{\"communicators\": [{\"hash\": \"1\", \"ranks\": [{\"rank\": -1}]}]}",
       R"({"communicators": [{"hash": "1", "ranks": [{"rank": 4294967296, "collective_counts": {"A": 1}}]}]})",
       R"({"communicators": [{"hash": "1", "ranks": [{"rank": 1e9, "collective_counts": {"A": 1}}]}]})",
       R"({"communicators": [{"hash": "1", "ranks": [{"rank": 1, "collective_counts": {"A": 6e40}}]}]})",
       R"({"communicators": [{"hash": "1", "ranks": [{"rank": 1, "cuda_dev": 6e40, "collective_counts": {"A": 1}}]}]})"}) {
    EXPECT_THROW((void)parse_ras(wrong), std::invalid_argument) << wrong;
  }
}

}  // namespace
}  // namespace shardscope::analysis
