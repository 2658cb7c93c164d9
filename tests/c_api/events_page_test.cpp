// docs/events.md against the declarations: every kind with its number and every value of every code, by name.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "instrumentation/event.h"
#include "instrumentation/gate.h"
#include "kernels/types.h"
#include "runtime/plan/bucket.h"
#include "runtime/plan/fetch_counters.h"
#include "runtime/plan/in_flight_limit.h"
#include "runtime/plan/prefetch_outcome.h"
#include "runtime/plan/scheduler.h"
#include "tests/instrumentation/enumerators.h"

namespace shardscope {
namespace {

namespace ev = instrumentation;
using Values = std::vector<test::Enumerator>;

struct Page {
  Values kinds;
  std::map<std::string, Values> enumerations;
};

Page read_page() {
  Page page;
  std::ifstream file(EVENTS_PAGE);
  EXPECT_TRUE(file);
  const std::regex kind(R"(\| (\d+) \| `(\w+)` \|.*)"), enumeration(R"(\| `(\w+)` \| (0 `.*) \|)"),
      value(R"((\d+) `(\w+)`)");
  for (std::string line; std::getline(file, line);) {
    std::smatch found;
    if (std::regex_match(line, found, kind)) page.kinds.push_back({std::stoi(found[1]), found[2]});
    if (!std::regex_match(line, found, enumeration)) continue;
    Values& values = page.enumerations[found[1]];
    const std::string text = found[2];
    for (std::sregex_iterator at(text.begin(), text.end(), value), end; at != end; ++at)
      values.push_back({std::stoi((*at)[1]), (*at)[2]});
  }
  return page;
}

void expect_same(const Values& said, const Values& known, const std::string& name) {
  ASSERT_EQ(said.size(), known.size()) << name;
  for (std::size_t i = 0; i < known.size(); ++i) {
    EXPECT_EQ(said[i].name, known[i].name) << name;
    EXPECT_EQ(said[i].value, known[i].value) << name << " " << known[i].name;
  }
}

TEST(EventsPage, HasEveryKindAndEveryValueOfACode) {
  Page page = read_page();
  expect_same(page.kinds, test::enumerators<ev::EventKind>(), "kinds");
  const auto check = [&](const char* name, const Values& known) {
    expect_same(page.enumerations[name], known, name);
    page.enumerations.erase(name);
  };
  check("StreamId", test::enumerators<ev::StreamId>());
  check("Phase", test::enumerators<ev::Phase>());
  check("Pass", test::enumerators<ev::Pass>());
  check("ParamStatus", test::enumerators<plan::ParamStatus>());
  check("StatusCause", test::enumerators<ev::StatusCause>());
  check("CollectiveOp", test::enumerators<ev::CollectiveOp>());
  check("CollectiveScope", test::enumerators<ev::CollectiveScope>());
  check("DType", test::enumerators<kernels::DType>());
  check("MemoryPool", test::enumerators<ev::MemoryPool>());
  check("MemoryCategory", test::enumerators<ev::MemoryCategory>());
  check("TransferKind", test::enumerators<ev::TransferKind>());
  check("DeferredState", test::enumerators<ev::DeferredState>());
  check("FlushReason", test::enumerators<plan::FlushReason>());
  check("TraceMode", test::enumerators<plan::TraceMode>());
  check("InvalidationCause", test::enumerators<plan::InvalidationCause>());
  check("PrefetchStop", test::enumerators<plan::PrefetchStop>());
  check("PrefetchOutcome", test::enumerators<plan::PrefetchOutcome>());
  check("KeepReason", test::enumerators<plan::KeepReason>());
  check("FetchCounter", test::enumerators<plan::FetchCounter>());
  check("InFlight", test::enumerators<plan::InFlight>());
  check("GateKind", test::enumerators<ev::GateKind>());
  check("PauseCause", test::enumerators<ev::PauseCause>());
  check("ResumeCause", test::enumerators<ev::ResumeCause>());
  check("Severity", test::enumerators<ev::Severity>());
  check("NcclAlgorithm", test::enumerators<ev::NcclAlgorithm>());
  check("NcclProtocol", test::enumerators<ev::NcclProtocol>());
  check("GpuWork", test::enumerators<ev::GpuWork>());
  check("GpuOwner", test::enumerators<ev::GpuOwner>());
  check("GpuSync", test::enumerators<ev::GpuSync>());
  check("Detail", test::enumerators<ev::Detail>());
  for (const auto& [name, values] : page.enumerations)
    ADD_FAILURE() << name << " is on the page and nowhere else";
}

}  // namespace
}  // namespace shardscope
