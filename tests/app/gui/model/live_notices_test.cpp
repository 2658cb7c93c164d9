// Lost and late events of a live run are news when they happen, and for a while after that.
#include "app/gui/model/live_notices.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

namespace ev = shardscope::instrumentation;

using Traffic = collector::Viewer::Traffic;

store::Losses losses(std::uint64_t dropped, std::uint64_t shed = 0, std::uint64_t messages = 0) {
  store::Losses out;
  out.dropped = dropped;
  out.shed = shed;
  out.lost_messages = messages;
  return out;
}

TEST(LiveNotices, NameWhatIsLostFromNowOnAndStopAWhileAfterIt) {
  LiveNotices notices;
  notices.look({.run = 1, .losses = losses(500), .messages = {}, .traffic = {}}, 10);
  EXPECT_FALSE(notices.at(10)) << "lost before this window";
  notices.look({.run = 1, .losses = losses(700, 50), .messages = {}, .traffic = {}}, 12);
  notices.look({.run = 1, .losses = losses(1'700, 1'050, 1), .messages = {}, .traffic = {}}, 20);
  const auto now = notices.at(21);
  ASSERT_TRUE(now);
  EXPECT_TRUE(now->bad);
  EXPECT_EQ(now->what, "Events lost in the last 9 s");
  EXPECT_EQ(now->hint.substr(0, now->hint.find(". ")),
            "150 events dropped by ranks, " + grouped(1050) +
                " events shed by a collector, 1 message lost on the way; last now");
  notices.look({.run = 1, .losses = losses(1'700, 1'050, 1), .messages = {}, .traffic = {}}, 40);
  ASSERT_TRUE(notices.at(40));
  EXPECT_NE(notices.at(40)->hint.find("last 20 s ago"), std::string::npos) << notices.at(40)->hint;
  EXPECT_FALSE(notices.at(20 + LiveNotices::kShown + 1));

  // Again: only what is new.
  notices.look({.run = 1, .losses = losses(1'702, 1'050, 1), .messages = {}, .traffic = {}}, 90);
  EXPECT_EQ(notices.at(90)->hint.substr(0, 25), "2 events dropped by ranks");
  Traffic traffic;
  traffic.items_missing = 3;
  notices.look({.run = 1, .losses = losses(1'702, 1'050, 1), .messages = {}, .traffic = traffic}, 91);
  EXPECT_NE(notices.at(91)->hint.find("3 chunks of events that the collector discarded"), std::string::npos);
  notices.look({.run = 2, .losses = losses(9), .messages = {}, .traffic = {}}, 92);
  EXPECT_FALSE(notices.at(92)) << "another run";
}

TEST(LiveNotices, ABacklogIsNamedWhenItLasts) {
  LiveNotices notices;
  Traffic traffic;
  traffic.waiting_bytes = 3 << 20;
  notices.look({.run = 1, .losses = {}, .messages = {}, .traffic = traffic}, 0);
  EXPECT_FALSE(notices.at(4)) << "as while a window connects";
  notices.look({.run = 1, .losses = {}, .messages = {}, .traffic = traffic}, 6);
  ASSERT_TRUE(notices.at(6));
  EXPECT_FALSE(notices.at(6)->bad);
  EXPECT_NE(notices.at(6)->what.find("behind by 3.00 MiB"), std::string::npos) << notices.at(6)->what;
  traffic.items_behind = 7;
  notices.look({.run = 1, .losses = {}, .messages = {}, .traffic = traffic}, 7);
  EXPECT_NE(notices.at(7)->what.find("and what the collector has not sent"), std::string::npos);
  notices.look({.run = 1, .losses = losses(5), .messages = {}, .traffic = traffic}, 8);
  EXPECT_TRUE(notices.at(8)->bad) << "missing events come before late ones";
  notices.look({.run = 1, .losses = losses(5), .messages = {}, .traffic = {}}, 60);
  EXPECT_FALSE(notices.at(60));
  EXPECT_FALSE(notices.behind(60));
}

TEST(LiveNotices, WarningsAndErrorsOfTheRunAreNamedWhenTheyCome) {
  std::vector<store::Message> messages(3);
  messages[0].severity = ev::Severity::error;  // from before this window
  messages[0].text = "old";
  messages[1].text = "for information";
  messages[2].severity = ev::Severity::warning;
  messages[2].rank = 3;
  messages[2].text = "a hook is off";
  LiveNotices notices;
  const auto up_to = [&](std::size_t count, double at) {
    notices.look({.run = 1,
                  .revision = count,
                  .losses = {},
                  .messages = std::span(messages).first(count),
                  .traffic = {}},
                 at);
  };
  up_to(1, 0);
  up_to(2, 1);
  EXPECT_FALSE(notices.at(1));
  up_to(3, 2);
  ASSERT_TRUE(notices.at(3));
  EXPECT_EQ(notices.at(3)->what, "Rank 3");
  EXPECT_EQ(notices.at(3)->hint, "a hook is off");
  EXPECT_FALSE(notices.at(3)->bad);
  EXPECT_STREQ(notices.at(3)->panel, "messages");
  EXPECT_FALSE(notices.at(2 + LiveNotices::kShown + 1));

  // One that arrives late stands before others, and oldest ones are removed.
  std::vector<store::Message> late = {messages[2], messages[2], messages[1]};
  late[0].text = "from before, from another node";
  notices.look({.run = 1, .revision = 4, .losses = {}, .messages = late, .traffic = {}}, 50);
  ASSERT_TRUE(notices.at(50));
  EXPECT_EQ(notices.at(50)->hint, "from before, from another node");
  late.push_back(messages[2]);
  notices.look({.run = 1, .revision = 5, .losses = {}, .messages = late, .traffic = {}}, 90);
  EXPECT_EQ(notices.at(90)->hint, "a hook is off") << "the same once more";
  EXPECT_TRUE(notices.changes(90));
}

TEST(LiveNotices, WhatAWindowCatchesUpWithIsNoNews) {
  std::vector<store::Message> messages(1);
  messages[0].severity = ev::Severity::error;
  LiveNotices notices;
  notices.look({.run = 1, .caught_up = false, .losses = {}, .messages = {}, .traffic = {}}, 0);
  notices.look({.run = 1,
                .revision = 1,
                .caught_up = false,
                .losses = losses(400),
                .messages = messages,
                .traffic = {}},
               1);
  notices.look({.run = 1, .revision = 1, .losses = losses(500), .messages = messages, .traffic = {}}, 2);
  EXPECT_FALSE(notices.at(2));
  // A connection that was lost: what was lost meanwhile is news.
  notices.look({.run = 1,
                .revision = 1,
                .caught_up = false,
                .losses = losses(510),
                .messages = messages,
                .traffic = {}},
               9);
  EXPECT_TRUE(notices.at(9));
}

}  // namespace
}  // namespace shardscope::gui
