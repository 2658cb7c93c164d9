#include "app/collector/frame_pack.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "instrumentation/wire.h"

namespace shardscope::collector {
namespace {

namespace wire = instrumentation::wire;
using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> frames_in(const Bytes& message, bool* damaged = nullptr) {
  PackedFrames frames(message);
  std::vector<Bytes> out;
  for (auto frame = frames.next(); !frame.empty(); frame = frames.next())
    out.emplace_back(frame.begin(), frame.end());
  if (damaged != nullptr) *damaged = frames.damaged();
  return out;
}

TEST(FramePack, WhatGoesInComesOutInOrderWhateverItsLength) {
  const std::vector<Bytes> in = {Bytes(1, 'a'), Bytes(8, 'b'), Bytes(15, 'c'), Bytes(16, 'd')};
  FramePack pack;
  for (const Bytes& frame : in) pack.add(frame);
  bool damaged = true;
  EXPECT_EQ(frames_in(pack.take(), &damaged), in);
  EXPECT_FALSE(damaged);
  EXPECT_TRUE(pack.empty());
}

TEST(FramePack, OneFrameAloneIsSentAsItIs) {
  FramePack pack;
  const Bytes only(13, 'x');
  pack.add(only);
  const Bytes message = pack.take();
  EXPECT_EQ(message, only);
  EXPECT_EQ(frames_in(message), std::vector<Bytes>{only});
}

TEST(FramePack, ItIsBoundedAndAFrameLongerThanTheBoundGoesAlone) {
  FramePack pack;
  EXPECT_TRUE(pack.fits(10 * FramePack::kBytes)) << "it must go somehow";
  pack.add(Bytes(FramePack::kBytes / 2));
  EXPECT_TRUE(pack.fits(1000));
  EXPECT_FALSE(pack.fits(FramePack::kBytes / 2));
}

TEST(FramePack, APackThatIsCutOffAnywhereIsDamagedAndNothingBeyondItIsRead) {
  FramePack pack;
  pack.add(Bytes(40, 'a'));
  pack.add(Bytes(24, 'b'));
  const Bytes whole = pack.take();
  for (std::size_t bytes = 8; bytes < whole.size(); ++bytes) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
    bool damaged = false;
    const std::vector<Bytes> frames = frames_in(cut, &damaged);
    EXPECT_LE(frames.size(), 1U) << bytes;
    EXPECT_EQ(damaged, bytes != 8 + 8 + 40) << bytes << ": a pack may only end after a frame";
  }
  Bytes wrong = whole;
  for (std::size_t i = 8; i < 16; ++i) wrong[i] = 0xff;  // a length beyond all memory
  bool damaged = false;
  EXPECT_TRUE(frames_in(wrong, &damaged).empty());
  EXPECT_TRUE(damaged);
}

TEST(FramePack, OneThatIsLongerThanAnyIsNotTakenIn) {
  FramePack pack;
  const Bytes frame(100, 1);
  std::size_t frames = 0;
  for (; pack.fits(frame.size()); ++frames) pack.add(frame);
  FramePack longer = pack;
  longer.add(frame);
  bool damaged = false;
  EXPECT_EQ(frames_in(pack.take(), &damaged).size(), frames);
  EXPECT_FALSE(damaged);
  EXPECT_TRUE(frames_in(longer.take(), &damaged).empty());
  EXPECT_TRUE(damaged);
}

TEST(FramePack, AMessageOfTheProtocolIsNotTakenForAPack) {
  const wire::Frame frame = wire::encode({{3, 1, 0, "run"}, wire::Name{1, "kernel"}});
  const Bytes bytes(frame.data(), frame.data() + frame.size());
  EXPECT_EQ(frames_in(bytes), std::vector<Bytes>{bytes});
}

TEST(Receipts, ThoseOfOtherRanksOfANodeArriveWithTheFirst) {
  wire::Received sent{7, 4, {}};
  for (std::uint32_t i = 0; i < wire::Received::kMostOthers; ++i) sent.others.push_back({i + 1, 100 + i, i});
  const wire::Frame frame = wire::encode({{0, 9, 0, "run"}, sent});
  ASSERT_LE(frame.size(), wire::kMaxControlBytes);
  const wire::Decoded decoded = wire::decode(frame.data(), frame.size(), wire::From::collector_control);
  ASSERT_TRUE(decoded.message) << decoded.why;
  const auto& got = std::get<wire::Received>(decoded.message->body);
  EXPECT_EQ(got.next, 4U);
  ASSERT_EQ(got.others.size(), wire::Received::kMostOthers);
  EXPECT_EQ(got.others.back().rank, wire::Received::kMostOthers);
  EXPECT_EQ(got.others.back().source, 100 + wire::Received::kMostOthers - 1);
  sent.others.back().next = wire::kMaxMessages + 2;
  const wire::Frame wrong = wire::encode({{0, 9, 0, "run"}, sent});
  EXPECT_EQ(wire::decode(wrong.data(), wrong.size(), wire::From::collector_control).reject,
            wire::Reject::value);
}

}  // namespace
}  // namespace shardscope::collector
