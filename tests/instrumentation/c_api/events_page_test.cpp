// docs/events.md against the declarations: every kind with its number and every value of every code, by name.
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <map>
#include <sstream>
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
#include "runtime/plan/zenflow.h"
#include "tests/instrumentation/enumerators.h"

namespace shardscope {
namespace {

namespace ev = instrumentation;
using Values = std::vector<test::Enumerator>;

struct Page {
  Values kinds;
  std::map<std::string, Values> enumerations;
};

/// "12 `a`, 13 `b`": each name in backquotes with the number in front of it.
Values numbered_names(const std::string& text) {
  Values values;
  for (std::size_t open = text.find('`'); open != std::string::npos;) {
    const std::size_t close = text.find('`', open + 1);
    if (close == std::string::npos) break;
    std::size_t digits = open;
    while (digits > 0 && (text[digits - 1] == ' ' || std::isdigit(text[digits - 1]) != 0)) --digits;
    const std::string number = text.substr(digits, open - digits);
    if (number.find_first_of("0123456789") != std::string::npos)
      values.push_back({std::stoi(number), text.substr(open + 1, close - open - 1)});
    open = text.find('`', close + 1);
  }
  return values;
}

/// The cells of a table's row, without the spaces around them.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream row(line);
  std::string cell;
  std::getline(row, cell, '|');  // what is in front of the first
  while (std::getline(row, cell, '|')) {
    const std::size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? ""
                                               : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

Page read_page() {
  Page page;
  std::ifstream file(EVENTS_PAGE);
  EXPECT_TRUE(file);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| ")) continue;
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() < 2) continue;
    if (std::isdigit(cells[0].front()) != 0) {  // "| 12 | `name` | ..."
      const Values kind = numbered_names(cells[0] + " " + cells[1]);
      page.kinds.insert(page.kinds.end(), kind.begin(), kind.end());
    } else if (cells[0].front() == '`' && cells[1].starts_with("0 `")) {  // "| `Name` | 0 `a`, 1 `b` |"
      page.enumerations[cells[0].substr(1, cells[0].size() - 2)] = numbered_names(cells[1]);
    }
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
  check("ElementType", test::enumerators<ev::ElementType>());
  check("GroupPurpose", test::enumerators<ev::GroupPurpose>());
  check("MemoryPool", test::enumerators<ev::MemoryPool>());
  check("MemoryCategory", test::enumerators<ev::MemoryCategory>());
  check("TransferKind", test::enumerators<ev::TransferKind>());
  check("DeferredState", test::enumerators<ev::DeferredState>());
  check("SelectionCause", test::enumerators<plan::SelectionCause>());
  check("UpdateCause", test::enumerators<plan::UpdateCause>());
  check("FlushReason", test::enumerators<plan::FlushReason>());
  check("TraceMode", test::enumerators<plan::TraceMode>());
  check("InvalidationCause", test::enumerators<plan::InvalidationCause>());
  check("PrefetchStop", test::enumerators<plan::PrefetchStop>());
  check("PrefetchOutcome", test::enumerators<plan::PrefetchOutcome>());
  check("KeepReason", test::enumerators<plan::KeepReason>());
  check("FetchCounter", test::enumerators<plan::FetchCounter>());
  check("LimitedOperation", test::enumerators<plan::LimitedOperation>());
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
