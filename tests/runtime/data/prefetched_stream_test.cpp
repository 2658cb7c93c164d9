// What is read ahead is what the stream underneath gives, in its order, and no batch is lost or repeated.
#include "runtime/data/prefetched_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::data {
namespace {

/// Batch n holds the number n. Fails at one of them; waits where it is asked to.
class Numbers : public BatchStream {
 public:
  explicit Numbers(std::int64_t fails_at = -1) : fails_at_(fails_at) {}
  void next(HostBatch& batch) override {
    if (position_ == fails_at_) throw DataError("data: number " + std::to_string(position_));
    batch.tokens.assign(1, static_cast<std::int32_t>(position_));
    ++position_;
    ++read;
  }
  [[nodiscard]] StreamState state() const override { return {0, position_}; }
  void restore(StreamState state) override {
    if (state.position > 1000) throw DataError("data: too far");
    position_ = state.position;
  }
  [[nodiscard]] std::int64_t samples() const override { return 1001; }
  [[nodiscard]] std::string describe() const override { return "numbers"; }
  [[nodiscard]] std::uint64_t fingerprint() const override { return 7; }
  [[nodiscard]] std::uint64_t sample_checksum() const override { return 8; }
  std::atomic<int> read = 0;

 private:
  std::int64_t fails_at_, position_ = 0;
};

std::int32_t number(BatchStream& stream) {
  HostBatch batch;
  stream.next(batch);
  return batch.tokens.at(0);
}

TEST(PrefetchedStream, GivesTheSameBatchesInTheSameOrder) {
  for (const std::size_t depth : {1U, 2U, 7U}) {
    const auto stream = read_ahead(std::make_unique<Numbers>(), depth);
    HostBatch batch;
    for (int i = 0; i < 200; ++i) {
      stream->next(batch);
      ASSERT_EQ(batch.tokens, std::vector<std::int32_t>{i}) << "depth " << depth;
      ASSERT_EQ(stream->state().position, i + 1);
    }
  }
}

TEST(PrefetchedStream, ReadsAheadBeforeItIsAskedAndNoFurtherThanItsDepth) {
  auto numbers = std::make_unique<Numbers>();
  const Numbers& source = *numbers;
  const auto stream = read_ahead(std::move(numbers), 3);
  while (source.read < 3) std::this_thread::yield();
  EXPECT_EQ(number(*stream), 0);
  while (source.read < 4) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(source.read, 4);
  EXPECT_EQ(stream->state().position, 1);
}

TEST(PrefetchedStream, ContinuesAtAStateWhateverWasReadAhead) {
  const auto stream = read_ahead(std::make_unique<Numbers>(), 4);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(number(*stream), i);
  const StreamState state = stream->state();
  EXPECT_EQ(number(*stream), 5);
  stream->restore(state);
  EXPECT_EQ(number(*stream), 5);
  EXPECT_THROW(stream->restore({0, 2000}), DataError);
  EXPECT_EQ(number(*stream), 6);
}

TEST(PrefetchedStream, AnErrorArrivesWithTheBatchThatIsNotThere) {
  const auto stream = read_ahead(std::make_unique<Numbers>(2), 4);
  EXPECT_EQ(number(*stream), 0);
  EXPECT_EQ(number(*stream), 1);
  for (int i = 0; i < 2; ++i) {
    try {
      number(*stream);
      FAIL();
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "data: number 2");
    }
  }
  stream->restore({0, 0});
  EXPECT_EQ(number(*stream), 0);
}

TEST(PrefetchedStream, SaysOfTheDataWhatItsSourceSays) {
  const auto stream = read_ahead(std::make_unique<Numbers>(), 1);
  EXPECT_EQ(stream->samples(), 1001);
  EXPECT_EQ(stream->describe(), "numbers");
  EXPECT_EQ(stream->fingerprint(), 7U);
  EXPECT_EQ(stream->sample_checksum(), 8U);
}

}  // namespace
}  // namespace shardscope::data
