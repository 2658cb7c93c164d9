// Which run a collector receives, by what ranks send in hellos and publish.
#include "app/collector/run_identity.h"

#include <gtest/gtest.h>

namespace shardscope::collector {
namespace {

using Proof = RunIdentity::Proof;
using Verdict = RunIdentity::Verdict;
using Tables = RunIdentity::Tables;

TEST(RunIdentity, TheRunThatTheUserNamedIsReceivedAndNoOther) {
  RunIdentity identity("mine");
  EXPECT_TRUE(identity.known());
  EXPECT_EQ(identity.judge("other", Proof::hello), Verdict::other);
  EXPECT_EQ(identity.judge("other", Proof::published), Verdict::other);
  EXPECT_EQ(identity.judge("mine", Proof::published), Verdict::ours);
  EXPECT_EQ(identity.run_id(), "mine");
}

TEST(RunIdentity, AHelloOnlySupposesTheRun) {
  RunIdentity identity("");
  EXPECT_EQ(identity.judge("stray", Proof::hello), Verdict::ours);
  EXPECT_FALSE(identity.known());
  EXPECT_EQ(identity.judge("real", Proof::hello), Verdict::undecided) << "not refused yet";
  EXPECT_EQ(identity.run_id(), "stray");
  EXPECT_EQ(identity.judge("real", Proof::published), Verdict::ours_instead);
  EXPECT_TRUE(identity.known());
  EXPECT_EQ(identity.judge("real", Proof::hello), Verdict::ours);
  EXPECT_EQ(identity.judge("stray", Proof::hello), Verdict::other);
}

TEST(RunIdentity, WhatThePublishedRunSupposedStays) {
  RunIdentity identity("");
  EXPECT_EQ(identity.judge("real", Proof::hello), Verdict::ours);
  EXPECT_EQ(identity.judge("real", Proof::published), Verdict::ours);
  EXPECT_TRUE(identity.known());
}

TEST(RunIdentity, ARefusalNamesBothRunsAndTheRemedy) {
  const RunIdentity identity("mine");
  EXPECT_EQ(
      identity.refusal_of("other"),
      "it belongs to run 'other', this collector receives 'mine'; give each run an endpoint of its own, "
      "or start this one with --run-id other");
}

TEST(RunIdentity, TablesCorrectASupposedWorldAndNoLaterOnesDo) {
  RunIdentity identity("");
  EXPECT_FALSE(identity.contradicts(4)) << "the number of ranks is not known";
  identity.set_provisional_world(4);
  EXPECT_FALSE(identity.contradicts(4));
  EXPECT_TRUE(identity.contradicts(8));
  EXPECT_EQ(identity.contradiction_of(8), "its world has 8 ranks, that of other ranks 4");
  EXPECT_EQ(identity.set_world(8, 2), Tables::change);
  EXPECT_TRUE(identity.world_known());
  EXPECT_EQ(identity.set_world(8, 0), Tables::agree);
  EXPECT_EQ(identity.local_world(), 1U) << "a machine has a rank at least";
  EXPECT_EQ(identity.set_world(4, 3), Tables::contradict);
  EXPECT_EQ(identity.world(), 8U);
  EXPECT_EQ(identity.local_world(), 1U);
}

TEST(RunIdentity, AForgottenWorldContradictsNothing) {
  RunIdentity identity("");
  identity.set_provisional_world(4);
  identity.forget_world();
  EXPECT_EQ(identity.world(), 0U);
  EXPECT_FALSE(identity.contradicts(8));
}

}  // namespace
}  // namespace shardscope::collector
