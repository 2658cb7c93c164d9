// Dumps of PyTorch's Flight Recorder, as its pickler writes them (tests/attach/flight_test.py has real ones):
// what differs between ranks, who waits for whom, and what no dump is.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/analysis/flight_compare.h"

namespace shardscope::analysis {
namespace {

using Json = nlohmann::json;

/// Writes opcodes as torch/csrc/jit/serialization/pickler.cpp does: protocol 2, texts kept and named again.
class FlightPickler {
 public:
  static std::string of(const Json& value) {
    FlightPickler out;
    out.bytes_ = "\x80\x02";
    out.push(value);
    return out.bytes_ + '.';
  }

 private:
  void little(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  void push(const Json& value) {
    if (value.is_null()) bytes_ += 'N';
    if (value.is_boolean()) bytes_ += value.get<bool>() ? '\x88' : '\x89';
    if (value.is_number_integer()) {
      const auto number = value.get<std::int64_t>();
      if (number >= 0 && number < 256) {
        bytes_ += 'K';
        little(static_cast<std::uint64_t>(number), 1);
      } else if (number >= INT32_MIN && number <= INT32_MAX) {
        bytes_ += 'J';
        little(static_cast<std::uint64_t>(number), 4);
      } else {
        bytes_ += "\x8a\x08";
        little(static_cast<std::uint64_t>(number), 8);
      }
    }
    if (value.is_string()) {
      const auto [known, is_new] = kept_.try_emplace(value.get<std::string>(), kept_.size());
      bytes_ += is_new ? 'X' : 'j';
      if (is_new) {
        little(known->first.size(), 4);
        bytes_ += known->first + 'r';
      }
      little(known->second, 4);
    }
    if (value.is_array()) {
      bytes_ += "](";
      for (const Json& one : value) push(one);
      bytes_ += 'e';
    }
    if (value.is_object()) {
      bytes_ += "}(";
      for (const auto& [key, one] : value.items()) {
        push(key);
        push(one);
      }
      bytes_ += 'u';
    }
  }
  std::string bytes_;
  std::map<std::string, std::size_t> kept_;
};

struct FlightMade {
  std::string name = "all_reduce";
  std::vector<int> sizes = {4};
  std::string type = "Float";
  std::string state = "completed";
  std::string group = "0";
  int line = 10;
  bool retired = false;
};

/// One rank's operations, in their order, as NCCL's are recorded.
Json dump_of(const std::vector<FlightMade>& issued, const std::vector<int>& world, int first_record = 0) {
  Json entries = Json::array();
  std::map<std::string, int> sequences;
  int record = first_record;
  for (const FlightMade& one : issued) {
    const bool is_message = one.name.starts_with("send") || one.name.starts_with("recv");
    const int sequence = ++sequences[one.group + (is_message ? "p" : "")] + first_record;
    entries.push_back(
        {{"record_id", record},
         {"process_group", {one.group, one.group == "0" ? "default_pg" : "pair"}},
         {"profiling_name", "nccl:" + one.name},
         {"collective_seq_id", is_message ? 0 : sequence},
         {"p2p_seq_id", is_message ? sequence : 0},
         {"is_p2p", is_message},
         {"time_created_ns", 1'700'000'000'000'000'000 + record * 1000},
         {"input_sizes", {one.sizes}},
         {"output_sizes", {one.sizes}},
         {"input_dtypes", {one.type}},
         {"output_dtypes", {one.type}},
         {"state", one.state},
         {"retired", one.retired},
         {"frames",
          {{{"name", one.name}, {"filename", "/x/site-packages/torch/distributed/c10d.py"}, {"line", 1}},
           {{"name", "step"}, {"filename", "train.py"}, {"line", one.line}}}}});
    ++record;
  }
  Json groups = {{"0", {{"name", "0"}, {"desc", "default_pg"}, {"ranks", Json(world).dump()}}},
                 {"1", {{"name", "1"}, {"desc", "pair"}, {"ranks", "[0, 1]"}}}};
  return {{"version", "2.10"}, {"pg_config", std::move(groups)}, {"entries", std::move(entries)}};
}

struct FlightAnswer {
  FlightTexts texts;
  std::vector<FlightDump> dumps;
  FlightComparison comparison;
  std::vector<std::string> lines;
  [[nodiscard]] const FlightDifference& difference(std::size_t group = 0) const {
    return comparison.groups.at(group).difference.value();
  }
};

/// Of ranks 0, 1, ...; an empty text: that rank has no dump.
void compare(FlightAnswer& out, const std::vector<std::string>& dumps) {
  for (std::size_t rank = 0; rank < dumps.size(); ++rank) {
    if (!dumps[rank].empty())
      out.dumps.push_back(parse_flight_dump(dumps[rank], static_cast<std::uint32_t>(rank), out.texts));
  }
  out.comparison = compare_flights(out.dumps, out.texts);
  out.lines = flight_lines(out.comparison, out.texts);
}

FlightMade begun(FlightMade made) {
  made.state = "started";
  return made;
}

using FlightRanks = std::vector<std::uint32_t>;
using What = FlightDifference::What;

TEST(FlightRecorder, ARankThatNeverCameIsNamedWithItsLastLine) {
  const FlightMade first{.line = 10}, second = begun({.name = "all_gather", .line = 20});
  const Json came = dump_of({first, second}, {0, 1, 2}), absent = dump_of({first}, {0, 1, 2});
  for (const bool is_pickle : {true, false}) {
    FlightAnswer answer;
    const auto written = [&](const Json& dump) { return is_pickle ? FlightPickler::of(dump) : dump.dump(); };
    compare(answer, {written(came), written(absent), written(came)});
    EXPECT_EQ(answer.difference().what, What::missing);
    EXPECT_EQ(answer.difference().sequence, 2);
    EXPECT_EQ(answer.comparison.culprits, FlightRanks{1});
    EXPECT_EQ(
        answer.lines.front(),
        "Ranks 0, 2 wait for rank 1 in all_gather #2 of group 0 (default_pg), [4] Float, started, at "
        "train.py:20 in step. Rank 1 never issued it: its last there is all_reduce #1, [4] Float, completed, "
        "at train.py:10 in step. It is in no recorded operation. Nothing has timed out: an "
        "instant of a run that goes on looks so too.");
  }
}

TEST(FlightRecorder, TheFirstDifferenceIsNamedWithBothSides) {
  struct Case {
    FlightMade usual, odd;
    What what = What::operation;
  };
  const std::vector<Case> cases = {{{}, {.name = "broadcast", .line = 30}, What::operation},
                                   {{}, {.sizes = {6}, .line = 30}, What::sizes},
                                   {{}, {.type = "Half", .line = 30}, What::type}};
  for (const auto& one : cases) {
    FlightAnswer answer;
    const std::string usual = FlightPickler::of(dump_of({{}, begun(one.usual)}, {0, 1, 2}));
    compare(answer, {usual, FlightPickler::of(dump_of({{}, begun(one.odd)}, {0, 1, 2})), usual});
    const FlightDifference& difference = answer.difference();
    EXPECT_EQ(difference.what, one.what) << answer.lines.front();
    EXPECT_EQ(difference.sequence, 2);
    ASSERT_EQ(difference.sides.size(), 2u);
    EXPECT_EQ(difference.sides[0].ranks, (FlightRanks{0, 2}));
    EXPECT_EQ(difference.sides[1].ranks, FlightRanks{1});
    EXPECT_EQ(answer.comparison.culprits, FlightRanks{1});
    EXPECT_NE(answer.lines.front().find("train.py:10 in step; rank 1"), std::string::npos)
        << answer.lines.front();
    EXPECT_NE(answer.lines.front().find("train.py:30 in step"), std::string::npos) << answer.lines.front();
  }
}

TEST(FlightRecorder, PartsOfACoalescedOperationAreCounted) {
  Json two = dump_of({{}, begun({}), begun({.name = "broadcast", .line = 60})}, {0, 1});
  two["entries"][2]["collective_seq_id"] = 2;  // issued with the one before, as one
  Json one = two;
  one["entries"].erase(2);
  FlightAnswer answer;
  compare(answer, {FlightPickler::of(two), FlightPickler::of(one)});
  EXPECT_EQ(answer.difference().what, What::count) << answer.lines.front();
  EXPECT_EQ(answer.difference().sequence, 2);
  // In another part they differ by what that is.
  Json other = two;
  other["entries"][2]["profiling_name"] = "nccl:reduce";
  FlightAnswer unlike;
  compare(unlike, {FlightPickler::of(two), FlightPickler::of(other)});
  EXPECT_EQ(unlike.difference().what, What::operation);
  EXPECT_NE(unlike.lines.front().find("rank 0 broadcast #2"), std::string::npos) << unlike.lines.front();
}

TEST(FlightRecorder, SizesThatMayDifferDoNot) {
  const auto alike = [](const FlightMade& a, const FlightMade& b) {
    FlightAnswer answer;
    compare(answer, {FlightPickler::of(dump_of({a}, {0, 1})), FlightPickler::of(dump_of({b}, {0, 1}))});
    return !answer.comparison.groups.at(0).difference.has_value();
  };
  EXPECT_TRUE(alike({.name = "all_gather_v", .sizes = {3}}, {.name = "all_gather_v", .sizes = {5}}));
  EXPECT_TRUE(
      alike({.name = "all_to_all", .sizes = {3}}, {.name = "all_to_all", .sizes = {5}}));  // in and out alike
  EXPECT_FALSE(alike({.name = "all_gather", .sizes = {3}}, {.name = "all_gather", .sizes = {5}}));
  // The root alone gives what is scattered.
  Json root = dump_of({{.name = "scatter"}}, {0, 1}), other = root;
  other["entries"][0]["input_sizes"] = Json::array();
  other["entries"][0]["input_dtypes"] = Json::array();
  FlightAnswer answer;
  compare(answer, {FlightPickler::of(root), FlightPickler::of(other)});
  EXPECT_FALSE(answer.comparison.groups.at(0).difference.has_value());
  // What all give and take together must agree.
  Json uneven = dump_of({{.name = "all_to_all"}}, {0, 1});
  uneven["entries"][0]["output_sizes"] = {{7}};
  FlightAnswer unequal;
  compare(unequal, {FlightPickler::of(uneven), FlightPickler::of(dump_of({{.name = "all_to_all"}}, {0, 1}))});
  EXPECT_EQ(unequal.difference().detail, "all ranks together give 8 elements and take 11");
}

TEST(FlightRecorder, TheRankThatAllWaitForInTheEndIsBlamed) {
  // Rank 2 waits in the world for 0 and 1; 0 waits in the pair for 1, which is in nothing.
  FlightAnswer answer;
  compare(answer, {FlightPickler::of(dump_of({{}, begun({.group = "1"})}, {0, 1, 2})),
                   FlightPickler::of(dump_of({{}}, {0, 1, 2})),
                   FlightPickler::of(dump_of({{}, begun({})}, {0, 1, 2}))});
  EXPECT_EQ(answer.comparison.culprits, FlightRanks{1});
  EXPECT_EQ(answer.comparison.ranks.at(2).waits_for, (FlightRanks{0, 1}));
}

TEST(FlightRecorder, WithoutADumpARankIsNamedAsSuch) {
  FlightAnswer answer;
  compare(answer, {FlightPickler::of(dump_of({begun({})}, {0, 1, 2})), "",
                   FlightPickler::of(dump_of({begun({})}, {0, 1, 2}))});
  EXPECT_EQ(answer.comparison.without_dump, FlightRanks{1});
  EXPECT_EQ(answer.comparison.culprits, FlightRanks{1});
  EXPECT_NE(answer.lines.front().find("Rank 1 has no dump here"), std::string::npos) << answer.lines.front();
}

TEST(FlightRecorder, AllCameAndItHasNotEnded) {
  FlightAnswer answer;
  const FlightMade late = {.state = "started", .retired = true};
  compare(answer,
          {FlightPickler::of(dump_of({{}, late}, {0, 1})), FlightPickler::of(dump_of({{}, {}}, {0, 1}))});
  EXPECT_EQ(answer.difference().what, What::unfinished);
  EXPECT_TRUE(answer.comparison.culprits.empty());
  EXPECT_NE(answer.lines.front().find("started and timed out"), std::string::npos) << answer.lines.front();
  EXPECT_EQ(answer.lines.front().find("an instant of a run"), std::string::npos) << answer.lines.front();
}

TEST(FlightRecorder, HealthyRunsDoNotDiffer) {
  FlightAnswer answer;
  const std::string dump = FlightPickler::of(dump_of({{}, {.name = "broadcast"}, {.group = "1"}}, {0, 1}));
  compare(answer, {dump, dump});
  EXPECT_EQ(answer.lines.front(),
            "The ranks issued the same operations, and all have ended: these dumps show no hang.");
}

TEST(FlightRecorder, MessagesArePairedBySenderAndReceiver) {
  const auto compared = [](FlightAnswer& answer, const std::vector<FlightMade>& of_0,
                           const std::vector<FlightMade>& of_1) {
    compare(answer, {FlightPickler::of(dump_of(of_0, {0, 1})), FlightPickler::of(dump_of(of_1, {0, 1}))});
  };
  FlightAnswer missing, sizes, alike;
  compared(missing, {{.name = "send 0->1"}},
           {{.name = "recv 1<-0"}, begun({.name = "recv 1<-0", .line = 50})});
  EXPECT_EQ(missing.difference().what, What::missing);
  EXPECT_TRUE(missing.difference().point_to_point);
  EXPECT_EQ(missing.comparison.culprits, FlightRanks{0});
  EXPECT_NE(missing.lines.front().find("Rank 1 waits for rank 0 in recv 1<-0 #2"), std::string::npos)
      << missing.lines.front();
  compared(sizes, {begun({.name = "send 0->1", .sizes = {5}})}, {begun({.name = "recv 1<-0"})});
  EXPECT_EQ(sizes.difference().what, What::sizes) << sizes.lines.front();
  compared(alike, {{.name = "send 0->1", .sizes = {2, 2}}}, {{.name = "recv 1<-0"}});
  EXPECT_FALSE(alike.comparison.groups.at(0).difference.has_value());
}

TEST(FlightRecorder, OfABufferThatHasWrappedNothingIsSaidBeforeItsBegin) {
  // Rank 1 is at 2; of rank 0 everything before 101 is overwritten.
  FlightAnswer behind;
  compare(behind, {FlightPickler::of(dump_of({{}, begun({})}, {0, 1}, 100)),
                   FlightPickler::of(dump_of({{}, {}}, {0, 1}))});
  EXPECT_EQ(behind.difference().what, What::missing);
  EXPECT_EQ(behind.difference().sequence, 3);
  EXPECT_EQ(behind.comparison.culprits, FlightRanks{1});
  // Operations that have completed may be left out: then one that is not there may have been issued.
  Json active = dump_of({{}, {}}, {0, 1});
  active["entries"][1]["record_id"] = 7;
  FlightAnswer unknown;
  compare(unknown, {FlightPickler::of(dump_of({{}, {}, begun({})}, {0, 1})), FlightPickler::of(active)});
  EXPECT_NE(unknown.difference().what, What::missing) << unknown.lines.front();
}

TEST(FlightRecorder, WhatIsNoDumpIsRefused) {
  const auto refused = [](const std::string& bytes, const std::string& why) {
    FlightTexts texts;
    try {
      (void)parse_flight_dump(bytes, 0, texts);
      ADD_FAILURE() << "accepted: " << why;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("nccl_trace_rank_0"), std::string::npos) << error.what();
    }
  };
  refused("", "it is empty");
  refused("hello", "does not begin as one");
  refused("{\"version\": ", "its JSON ends or is wrong");
  refused("{}", "no version");
  refused(FlightPickler::of({{"version", "9.0"}}), "version 9.0");
  refused(FlightPickler::of({{"version", "2.10"}, {"entries", {1}}}), "an entry is no dictionary");
  refused(FlightPickler::of(Json::array()), "no dictionary");
  const std::string sound = FlightPickler::of(dump_of({{}}, {0, 1}));
  refused(sound.substr(0, sound.size() / 2), "ends early");
  // os.system("id"), as `pickle.dumps` writes what runs it when loaded.
  refused(std::string("\x80\x02"
                      "cos\nsystem\nX\x02\x00\x00\x00idR.",
                      22),
          "import or call Python code");
  refused(std::string("\x80\x04\x8c\x02os\x8c\x06system\x93."), "import or call Python code");
  refused(std::string("\x80\x02h\x05.", 5), "has not kept");
  refused(std::string("\x80\x02"
                      "e.",
                      4),
          "a mark that it has not set");
  refused(std::string("\x80\x02"
                      "K\x01K\x01"
                      "a.",
                      8),
          "no list or dictionary");
  Json negative = dump_of({{}}, {0, 1});
  negative["entries"][0]["input_sizes"] = {{-1}};
  refused(FlightPickler::of(negative), "are no sizes");
}

TEST(FlightRecorder, AListThatHoldsItselfIsNoHarm) {
  FlightTexts texts;
  // l = []; l.append(l): as the dump itself, and in the place of its entries
  EXPECT_THROW((void)parse_flight_dump(std::string("\x80\x02]q\x00h\x00"
                                                   "a.",
                                                   8),
                                       0, texts),
               std::invalid_argument);
  std::string many = "\x80\x02}(X\x07";
  many += std::string("\0\0\0version", 10) + std::string("X\x04\0\0\0", 5) + "2.10" +
          std::string("X\x07\0\0\0entries]q\x00(", 16);
  for (int i = 0; i < 1000; ++i) many += std::string("h\0", 2);
  EXPECT_THROW((void)parse_flight_dump(many + "eu.", 0, texts), std::invalid_argument);
}

}  // namespace
}  // namespace shardscope::analysis
