// Data and its sampling: every window once per epoch, the same order for any number of ranks, resumable.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>

#include "runtime/data/permutation.h"
#include "runtime/data/stream.h"

namespace shardscope::data {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Data : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("shardscope_data_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& bytes) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  static plan::ModelSpec tokens_model(std::int64_t vocabulary, std::int64_t context) {
    plan::ModelSpec spec;
    spec.vocabulary = vocabulary;
    spec.context = context;
    return spec;
  }
  static std::string error_of(const plan::ModelSpec& spec, const std::string& path) {
    try {
      static_cast<void>(open_stream(spec, {path, 1, 0, 0, 1, 1}));
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }
  fs::path folder_;
};

TEST_F(Data, PermutationsAreCompleteAndDiffer) {
  for (const std::int64_t n : {1, 2, 3, 7, 64, 1000}) {
    const Permutation first(n, 5, 0);
    std::vector<bool> seen(static_cast<std::size_t>(n), false);
    std::int64_t fixed = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const std::int64_t value = first(i);
      ASSERT_TRUE(value >= 0 && value < n);
      ASSERT_FALSE(seen[static_cast<std::size_t>(value)]);
      seen[static_cast<std::size_t>(value)] = true;
      fixed += value == i ? 1 : 0;
    }
    if (n >= 64) {
      EXPECT_LT(fixed, n / 4);
      EXPECT_NE(first(0) * n + first(1), Permutation(n, 5, 1)(0) * n + Permutation(n, 5, 1)(1));
    }
  }
}

TEST_F(Data, EveryWindowOncePerEpochWhateverTheRanks) {
  // 103 windows of 4: divides by none of the worlds. Window w begins with the bytes of its own number.
  std::string text;
  for (int w = 0; w < 103; ++w) text += {static_cast<char>(w), 'a', 'b', 'c'};
  text += static_cast<char>(103);
  const std::string path = write("windows.txt", text);
  std::vector<std::int32_t> order_of_one;
  for (const std::uint32_t world : {1U, 2U, 3U, 4U}) {
    std::vector<std::unique_ptr<BatchStream>> ranks;
    for (std::uint32_t r = 0; r < world; ++r) {
      ranks.push_back(open_stream(tokens_model(256, 4), {path, 3, 0, r, world, 9}));
      ASSERT_EQ(ranks.back()->samples(), 103);
    }
    std::vector<std::int32_t> order;
    HostBatch batch;
    while (order.size() < 309) {
      for (auto& rank : ranks) {
        rank->next(batch);
        for (std::size_t b = 0; b < 3; ++b) order.push_back(batch.tokens[4 * b]);
        EXPECT_EQ(batch.targets[0], 'a');
        EXPECT_EQ(batch.targets[3], batch.tokens[0] + 1);
      }
    }
    order.resize(309);
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::map<std::int32_t, int> uses;
      for (int i = 0; i < 103; ++i) ++uses[order[static_cast<std::size_t>(epoch * 103 + i)]];
      EXPECT_EQ(uses.size(), 103U) << "world " << world << " epoch " << epoch;
    }
    if (world == 1) order_of_one = order;
    EXPECT_EQ(order, order_of_one) << "world " << world;
  }
}

// The end of the data is held out: training sees the rest in every epoch, evaluation that alone, whatever the
// ranks.
TEST_F(Data, HeldOutWindowsAreNeverTrainedOn) {
  std::string text;
  for (int w = 0; w < 103; ++w) text += {static_cast<char>(w), 'a', 'b', 'c'};
  text += 'x';
  StreamOptions options{write("windows.txt", text), 2, 0, 0, 1, 9};
  options.held_out = 0.1;
  const auto whole = open_stream(tokens_model(256, 4), options);
  for (const std::uint32_t world : {1U, 3U}) {
    std::map<Part, std::map<std::int32_t, int>> seen;
    for (const Part part : {Part::training, Part::held_out}) {
      std::vector<std::unique_ptr<BatchStream>> ranks;
      for (std::uint32_t r = 0; r < world; ++r) {
        options.part = part;
        options.rank = r;
        options.world = world;
        ranks.push_back(open_stream(tokens_model(256, 4), options));
        EXPECT_EQ(ranks.back()->samples(), part == Part::training ? 93 : 10);
        EXPECT_NE(ranks.back()->fingerprint(), whole->fingerprint());
      }
      HostBatch batch;
      for (int i = 0; i < 200; ++i) {
        for (auto& rank : ranks) {
          rank->next(batch);
          for (std::size_t b = 0; b < 2; ++b) ++seen[part][batch.tokens[4 * b]];
        }
      }
    }
    EXPECT_EQ(seen[Part::training].size(), 93U);
    EXPECT_EQ(seen[Part::training].rbegin()->first, 92);
    EXPECT_EQ(seen[Part::held_out].size(), 10U);
    EXPECT_EQ(seen[Part::held_out].begin()->first, 93);
  }
}

TEST_F(Data, WhatCannotBeHeldOutIsRefused) {
  const auto refused = [](const plan::ModelSpec& model, StreamOptions options) {
    options.part = Part::held_out;
    options.held_out = 0.5;
    try {
      static_cast<void>(open_stream(model, options));
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string one = write("one.txt", "abcde");
  EXPECT_THAT(refused(tokens_model(256, 4), {one, 1, 0, 0, 1, 1}), HasSubstr("leaves none to train on"));
  EXPECT_EQ(refused(tokens_model(256, 2), {one, 1, 0, 0, 1, 1}), "no error");
  EXPECT_THAT(refused(tokens_model(256, 4), {"golden:gpt", 1, 0, 0, 1, 1}), HasSubstr("give --eval-data"));
}

TEST_F(Data, AStreamContinuesWhereItWas) {
  std::string text(1000, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  const StreamOptions options{write("text.txt", text), 2, 0, 1, 3, 4};
  const auto whole = open_stream(tokens_model(256, 8), options);
  const auto resumed = open_stream(tokens_model(256, 8), options);
  HostBatch a;
  HostBatch b;
  for (int i = 0; i < 30; ++i) whole->next(a);
  resumed->restore(whole->state());
  for (int i = 0; i < 30; ++i) {
    whole->next(a);
    resumed->next(b);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.targets, b.targets);
  }
  EXPECT_THROW(resumed->restore({0, 1'000'000}), DataError);
}

TEST_F(Data, AFolderIsItsTextFilesInOrder) {
  write("tree/b.txt", "bbbb");
  write("tree/a/z.txt", "aaaa");
  write("tree/.hidden/x.txt", "hidden");
  write("tree/picture.bin.png", std::string("\0\1\2\3", 4));
  write("tree/out/CMakeCache.txt", "build tree");
  const auto stream = open_stream(tokens_model(256, 7), {(folder_ / "tree").string(), 1, 0, 0, 1, 1});
  HostBatch batch;
  stream->next(batch);
  EXPECT_EQ(std::string(batch.tokens.begin(), batch.tokens.end()), "aaaabbb");
  EXPECT_EQ(batch.targets.back(), 'b');
  EXPECT_THAT(stream->describe(), HasSubstr("2 files"));
}

TEST_F(Data, SixteenBitTokensWithAndWithoutHeader) {
  std::string tokens;
  for (int i = 0; i < 9; ++i) tokens += {static_cast<char>(i), static_cast<char>(1)};
  std::string header(1024, '\0');
  const std::uint32_t fields[] = {20240520, 1, 9};
  std::memcpy(header.data(), fields, sizeof(fields));
  for (const std::string& bytes : {tokens, header + tokens}) {
    const auto stream = open_stream(tokens_model(300, 8), {write("t.bin", bytes), 1, 0, 0, 1, 1});
    HostBatch batch;
    stream->next(batch);
    EXPECT_EQ(batch.tokens[0], 256);
    EXPECT_EQ(batch.targets[7], 264);
  }
}

TEST_F(Data, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(error_of(tokens_model(256, 4), "/no/such/file"),
              HasSubstr("/no/such/file: there is no such file"));
  EXPECT_THAT(error_of(tokens_model(256, 8), write("short.txt", "abc")),
              HasSubstr("holds 3 tokens, but one window takes 9"));
  EXPECT_THAT(error_of(tokens_model(256, 8), write("odd.bin", "abc")), HasSubstr("3 bytes, an odd number"));
  EXPECT_THAT(error_of(tokens_model(100, 2), write("big.txt", "aaaz")),
              HasSubstr("token 3 is 122, but the model's vocabulary is 100"));
  EXPECT_THAT(error_of(tokens_model(256, 2), write("empty.txt", "")), HasSubstr("holds no tokens"));
  EXPECT_THAT(error_of(tokens_model(256, 2), "golden:nothing"), HasSubstr("unknown"));
}

std::string npy(const std::string& descr, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.append(118 - header.size(), ' ');
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size());
  out += '\0';
  return out + header + data;
}

TEST_F(Data, VectorsFromNpy) {
  plan::ModelSpec spec;
  spec.input = plan::InputKind::vectors;
  spec.input_width = 2;
  spec.output_width = 1;
  const float x[] = {1, 2, 3, 4};
  const double y[] = {5, 6};
  const std::string x_path =
      write("v/x.npy", npy("<f4", "(2, 2)", {reinterpret_cast<const char*>(x), sizeof(x)}));
  const std::string y_path =
      write("v/y.npy", npy("<f8", "(2,)", {reinterpret_cast<const char*>(y), sizeof(y)}));
  for (const std::string& path : {(folder_ / "v").string(), x_path + "," + y_path}) {
    const auto stream = open_stream(spec, {path, 2, 0, 0, 1, 1});
    HostBatch batch;
    stream->next(batch);
    for (std::size_t b = 0; b < 2; ++b) EXPECT_EQ(batch.labels[b], batch.inputs[2 * b] == 1 ? 5 : 6);
  }
  // Halves are read too: 1, 2, 3 and 4.
  const std::uint16_t halves[] = {0x3C00, 0x4000, 0x4200, 0x4400};
  const std::string half_path =
      write("half.npy", npy("<f2", "(2, 2)", {reinterpret_cast<const char*>(halves), sizeof(halves)}));
  const auto of_halves = open_stream(spec, {half_path + "," + y_path, 2, 0, 0, 1, 1});
  HostBatch batch;
  of_halves->next(batch);
  for (std::size_t b = 0; b < 2; ++b) {
    EXPECT_EQ(batch.inputs[2 * b + 1], batch.inputs[2 * b] + 1);
    EXPECT_EQ(batch.labels[b], batch.inputs[2 * b] == 1 ? 5 : 6);
  }
  // Of other types the bytes say something else.
  for (const std::string type : {"<i2", "<i4", ">f4", "|u1"}) {
    EXPECT_THAT(error_of(spec, write("type.npy", npy(type, "(2, 2)", std::string(16, '\1'))) + "," + y_path),
                HasSubstr("holds elements of type '" + type + "'; save it as float32"));
  }
  // A cut file, at every length, is an error and never a crash.
  const std::string whole = npy("<f4", "(2, 2)", {reinterpret_cast<const char*>(x), sizeof(x)});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(error_of(spec, write("cut.npy", whole.substr(0, length)) + "," + y_path), "no error") << length;
  }
  EXPECT_THAT(error_of(spec, write("none.npy", npy("<f4", "(0, 1000000000)", "")) + "," + y_path),
              HasSubstr("its shape is [0, 1000000000]; save at least one row"));
  EXPECT_THAT(error_of(spec, write("odd.npy", npy("<f4", "(2, -2)", "")) + "," + y_path),
              HasSubstr("not a tuple of numbers"));
}

// Every rank looks at its share of the rows before the first step, and at what it reads.
TEST_F(Data, ValuesThatAreNotFiniteAreNamed) {
  plan::ModelSpec spec;
  spec.input = plan::InputKind::vectors;
  spec.input_width = 2;
  spec.output_width = 1;
  const auto y_path = write("y.npy", npy("<f4", "(5,)", std::string(20, '\1')));
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto error = [&](const std::string& x_path, std::uint32_t rank, std::uint32_t world) -> std::string {
    try {
      static_cast<void>(open_stream(spec, {x_path + "," + y_path, 1, 0, rank, world, 1}));
    } catch (const DataError& problem) {
      return problem.what();
    }
    return "";
  };
  for (const float bad : {nan, -nan, inf, -inf}) {
    for (std::int64_t row = 0; row < 5; ++row) {
      std::vector<float> x(10, 1);
      x[static_cast<std::size_t>(2 * row + 1)] = bad;
      const auto path = write("x.npy", npy("<f4", "(5, 2)", {reinterpret_cast<const char*>(x.data()), 40}));
      EXPECT_THAT(error(path, 0, 1), HasSubstr("x.npy: column 1 of row " + std::to_string(row) + " is " +
                                               (std::isnan(bad) ? "nan"
                                                : bad > 0       ? "inf"
                                                                : "-inf")));
      int found = 0;
      for (std::uint32_t rank = 0; rank < 3; ++rank) found += error(path, rank, 3).empty() ? 0 : 1;
      EXPECT_EQ(found, 1) << "row " << row << ": one of three ranks has it";
      // A rank whose share is clean meets it when it reads it.
      const auto stream = open_stream(spec, {path + "," + y_path, 5, 0, row < 3 ? 2U : 0U, 3, 1});
      HostBatch batch;
      EXPECT_THROW(stream->next(batch), DataError);
    }
  }
  // More than fp32 holds.
  const double wide[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1e300};
  const auto path = write("x.npy", npy("<f8", "(5, 2)", {reinterpret_cast<const char*>(wide), sizeof wide}));
  EXPECT_THAT(error(path, 0, 1), HasSubstr("column 1 of row 4 is inf as fp32"));
}

// Names and sizes are the same: the fingerprint is, what the samples hold is not.
TEST_F(Data, SamplesOfOtherFilesOfTheSameNameDiffer) {
  const auto open = [&](const std::string& folder, char last) {
    std::string text(1001, 'a');
    text.back() = last;
    return open_stream(tokens_model(256, 4), {write(folder + "/text.txt", text), 2, 0, 0, 1, 1});
  };
  const auto a = open("a", 'a'), same = open("b", 'a'), other = open("c", 'z');
  EXPECT_EQ(a->fingerprint(), other->fingerprint());
  EXPECT_EQ(a->sample_checksum(), same->sample_checksum());
  EXPECT_NE(a->sample_checksum(), other->sample_checksum()) << "the last window is among them";
}

TEST_F(Data, ModelsOfVectorsHaveGeneratedData) {
  plan::ModelSpec spec;
  spec.input = plan::InputKind::vectors;
  spec.input_width = 3;
  spec.output_width = 2;
  const auto stream = open_stream(spec, {"", 8, 0, 0, 1, 7});
  EXPECT_EQ(stream->samples(), 4096);
  // Labels are linear in the inputs: the map that four samples give predicts the others.
  HostBatch batch;
  stream->next(batch);
  const auto x = [&](std::size_t b, std::size_t j) { return double{batch.inputs[3 * b + j]}; };
  const auto solve = [&](std::size_t k) {  // Cramer's rule over samples 0, 1, 2
    const auto y = [&](std::size_t b) { return double{batch.labels[2 * b + k]}; };
    const auto det = [&](auto column) {
      return column(0, 0) * (column(1, 1) * column(2, 2) - column(1, 2) * column(2, 1)) -
             column(0, 1) * (column(1, 0) * column(2, 2) - column(1, 2) * column(2, 0)) +
             column(0, 2) * (column(1, 0) * column(2, 1) - column(1, 1) * column(2, 0));
    };
    std::array<double, 3> w{};
    for (std::size_t j = 0; j < 3; ++j)
      w[j] = det([&](std::size_t b, std::size_t i) { return i == j ? y(b) : x(b, i); }) / det(x);
    return w;
  };
  for (std::size_t k = 0; k < 2; ++k) {
    const std::array<double, 3> w = solve(k);
    for (std::size_t b = 3; b < 8; ++b)
      EXPECT_NEAR(batch.labels[2 * b + k], w[0] * x(b, 0) + w[1] * x(b, 1) + w[2] * x(b, 2), 1e-4) << b;
  }
  EXPECT_NE(batch.labels[0], batch.labels[1]);
  // A model of tokens has no such data.
  EXPECT_THAT(error_of(tokens_model(256, 4), ""), HasSubstr("reads tokens; give a text file"));
}

}  // namespace
}  // namespace shardscope::data
