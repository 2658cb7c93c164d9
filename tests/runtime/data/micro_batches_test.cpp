// Micro-batches that are as long as what is in them, and shapes that take turns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include "runtime/data/stream.h"

namespace shardscope::data {
namespace {

using plan::MicroBatches;
using plan::Packing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class MicroBatchSizes : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("shardscope_micro_batches_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    model_.vocabulary = 256;
    model_.context = 8;
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string write(const std::string& name, const std::string& bytes) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  [[nodiscard]] StreamOptions options(const std::string& path, const MicroBatches& sizes,
                                      std::int64_t micro_batch = 1) const {
    StreamOptions options;
    options.path = path;
    options.micro_batch = micro_batch;
    options.seed = 3;
    options.micro_batches = sizes;
    return options;
  }
  [[nodiscard]] std::string error_of(const StreamOptions& options) const {
    try {
      static_cast<void>(open_stream(model_, options));
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }
  /// Inputs of one epoch, sample by sample without padding, and the targets of each.
  struct Sample {
    std::string inputs, targets;
    friend bool operator<(const Sample& a, const Sample& b) {
      return std::tie(a.inputs, a.targets) < std::tie(b.inputs, b.targets);
    }
    friend bool operator==(const Sample&, const Sample&) = default;
  };
  [[nodiscard]] std::multiset<Sample> samples_of(const StreamOptions& options) const {
    const auto stream = open_stream(model_, options);
    std::multiset<Sample> found;
    HostBatch batch;
    for (std::int64_t i = 0; i < stream->samples(); ++i) {
      stream->next(batch);
      Sample sample;
      for (std::size_t k = 0; k < batch.tokens.size(); ++k) {
        if (batch.targets[k] == kIgnoredTarget) continue;
        sample.inputs += static_cast<char>(batch.tokens[k]);
        sample.targets += static_cast<char>(batch.targets[k]);
      }
      found.insert(sample);
    }
    return found;
  }

  fs::path folder_;
  plan::ModelSpec model_;
};

constexpr const char* kText = "abc\n\n\n\nde\n\nfghijklmnopqrst\n\nz";

TEST_F(MicroBatchSizes, ADocumentIsASampleWithItsSeparatorAsItsEnd) {
  const auto found = samples_of(options(write("a.txt", kText), {.packing = Packing::padded}));
  // "z" alone has no target. The long one is cut at the context, without losing a target.
  EXPECT_THAT(found, ElementsAre(Sample{"abc\n\n\n", "bc\n\n\n\n"}, Sample{"de\n", "e\n\n"},
                                 Sample{"fghijklm", "ghijklmn"}, Sample{"nopqrst\n", "opqrst\n\n"}));
}

TEST_F(MicroBatchSizes, PackedSamplesHoldWholeDocumentsWhileTheyFit) {
  MicroBatches sizes{.packing = Packing::packed, .separator = ";"};
  const auto found = samples_of(options(write("a.txt", "ab;cd;efg;hijklmnopqr;st;uvwxyz"), sizes));
  // Of "ab;cd;efg;" 10 tokens are 9 inputs: one too many. What is left of the long one shares its sample.
  EXPECT_THAT(found,
              ElementsAre(Sample{"ab;cd", "b;cd;"}, Sample{"efg", "fg;"}, Sample{"hijklmno", "ijklmnop"},
                          Sample{"pqr;st", "qr;st;"}, Sample{"uvwxy", "vwxyz"}));
}

TEST_F(MicroBatchSizes, AMicroBatchIsAsLongAsItsLongestOrAMultiple) {
  const std::string path = write("a.txt", "abc;defgh;ij;");
  for (const auto& [multiple, length] :
       {std::pair<std::int64_t, std::int64_t>{1, 5}, {4, 8}, {6, 6}, {7, 7}, {100, 8}}) {
    const auto stream = open_stream(
        model_,
        options(path, {.packing = Packing::padded, .separator = ";", .pad_to_multiple_of = multiple}, 3));
    HostBatch batch;
    stream->next(batch);
    EXPECT_EQ(batch.B, 3);
    EXPECT_EQ(batch.T, length) << multiple;
    ASSERT_EQ(batch.targets.size(), static_cast<std::size_t>(3 * length));
    EXPECT_EQ(std::ranges::count_if(batch.targets, [](std::int32_t t) { return t >= 0; }), 3 + 5 + 2);
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
      EXPECT_TRUE(batch.targets[i] > 0 || (batch.targets[i] == kIgnoredTarget && batch.tokens[i] == 0)) << i;
    }
  }
}

TEST_F(MicroBatchSizes, EveryDocumentOncePerEpochWhateverTheRanks) {
  std::string text;
  for (char c = 'A'; c < 'A' + 23; ++c) text += std::string(static_cast<std::size_t>(c % 5 + 1), c) + ";";
  const std::string path = write("a.txt", text);
  std::string order_of_one;
  for (const std::uint32_t world : {1U, 2U, 3U}) {
    StreamOptions given = options(path, {.packing = Packing::padded, .separator = ";"}, 2);
    given.world = world;
    std::vector<std::unique_ptr<BatchStream>> ranks;
    for (given.rank = 0; given.rank < world; ++given.rank) ranks.push_back(open_stream(model_, given));
    std::string order;
    HostBatch batch;
    while (order.size() < 46) {
      for (auto& rank : ranks) {
        rank->next(batch);
        for (std::int64_t b = 0; b < 2; ++b)
          order += static_cast<char>(batch.tokens[static_cast<std::size_t>(b * batch.T)]);
      }
    }
    order.resize(46);
    EXPECT_EQ(std::set<char>(order.begin(), order.begin() + 23).size(), 23U);
    EXPECT_EQ(std::set<char>(order.begin() + 23, order.end()).size(), 23U);
    if (world == 1) order_of_one = order;
    EXPECT_EQ(order, order_of_one) << world;
  }
}

TEST_F(MicroBatchSizes, TokenIdsNeedTheSeparatorsNumber) {
  const std::string ids{"\1\0\2\0\3\0\7\0\4\0\5\0\7\0\6\0", 16};
  const std::string path = write("a.bin", ids);
  EXPECT_THAT(error_of(options(path, {.packing = Packing::padded})),
              HasSubstr("a.bin: holds 16-bit tokens; give the token that separates documents"));
  const auto found = samples_of(options(path, {.packing = Packing::padded, .separator_token = 7}));
  EXPECT_THAT(found, ElementsAre(Sample{"\1\2\3", "\2\3\7"}, Sample{"\4\5", "\5\7"}));
  EXPECT_THAT(error_of(options(write("a.txt", kText), {.packing = Packing::padded, .separator_token = 300})),
              HasSubstr("holds bytes, and 300 is none"));
}

TEST_F(MicroBatchSizes, ADocumentEndsWithItsFile) {
  fs::create_directories(folder_ / "docs");
  std::ofstream(folder_ / "docs" / "a.txt") << "abc";
  std::ofstream(folder_ / "docs" / "b.txt") << "defg";
  const auto found = samples_of(options((folder_ / "docs").string(), {.packing = Packing::padded}));
  EXPECT_THAT(found, ElementsAre(Sample{"ab", "bc"}, Sample{"def", "efg"}));
}

TEST_F(MicroBatchSizes, ShapesTakeTurnsByMicroStepAndRankAndContinueWhereTheyWere) {
  std::string text;
  for (int i = 0; i < 8 * 40 + 1; ++i) text += static_cast<char>('a' + i % 26);
  const MicroBatches sizes{.shapes = {{4, 8}, {1, 5}, {2, 1}}};
  const std::string path = write("a.txt", text);
  StreamOptions given = options(path, sizes);
  given.world = 2;
  std::vector<std::unique_ptr<BatchStream>> ranks;
  for (given.rank = 0; given.rank < 2; ++given.rank) ranks.push_back(open_stream(model_, given));
  HostBatch batch;
  std::int64_t position = 0;
  for (std::int64_t micro = 0; micro < 4; ++micro) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      ranks[rank]->next(batch);
      const plan::MicroBatchShape& shape = sizes.shapes[static_cast<std::size_t>(micro + rank) % 3];
      EXPECT_EQ(batch.B, shape.samples);
      EXPECT_EQ(batch.T, shape.tokens);
      EXPECT_EQ(batch.tokens.size(), static_cast<std::size_t>(shape.samples * shape.tokens));
      EXPECT_EQ(batch.targets.front(), batch.tokens.front() == 'z' ? 'a' : batch.tokens.front() + 1);
      EXPECT_EQ(std::ranges::count(batch.targets, kIgnoredTarget), 0);
      position += shape.samples;
    }
    // Every rank counts the samples of all.
    EXPECT_EQ(ranks[0]->state().position, position % 40);
    EXPECT_EQ(ranks[1]->state().position, position % 40);
  }
  given.rank = 1;
  const auto again = open_stream(model_, given);
  again->restore(ranks[1]->state());
  HostBatch other;
  for (int i = 0; i < 5; ++i) {
    ranks[1]->next(batch);
    again->next(other);
    EXPECT_EQ(batch.T, other.T);
    EXPECT_EQ(batch.tokens, other.tokens);
  }
}

TEST_F(MicroBatchSizes, WhatDoesNotFitIsRefused) {
  const std::string path = write("a.txt", kText);
  EXPECT_THAT(error_of(options(path, {.shapes = {{1, 8}, {2, 9}}})),
              HasSubstr("shapes[1]: samples of 9 tokens do not fit the context of 8"));
  EXPECT_THAT(error_of(options("golden:gpt", {.packing = Packing::packed})),
              HasSubstr("golden:gpt has no documents"));
  EXPECT_THAT(error_of(options(write("none.txt", "a"), {.packing = Packing::packed})),
              HasSubstr("holds no document of two tokens or more"));
  model_.input = plan::InputKind::vectors;
  model_.name = "mlp";
  EXPECT_THAT(error_of(options("", {.packing = Packing::padded})), HasSubstr("reads vectors, not documents"));
  EXPECT_THAT(error_of(options("", {.shapes = {{2, 3}}})), HasSubstr("write 1 for the vectors of mlp"));
}

// Two runs whose samples differ continue from one another's checkpoints in neither direction.
TEST_F(MicroBatchSizes, PackingIsPartOfTheData) {
  const std::string path = write("a.txt", kText);
  std::set<std::uint64_t> prints;
  for (const MicroBatches& sizes :
       {MicroBatches{}, MicroBatches{.packing = Packing::padded}, MicroBatches{.packing = Packing::packed},
        MicroBatches{.packing = Packing::padded, .separator = "o"}}) {
    prints.insert(open_stream(model_, options(path, sizes))->fingerprint());
  }
  EXPECT_EQ(prints.size(), 4U);
}

}  // namespace
}  // namespace shardscope::data
