// Pauses and steps a live run as the dashboard does, without a window, for the tests of attached runs.
//   attach_control ENDPOINT COMMAND...
// pause; any, module, micro_step, step: on to the next gate of this kind; resume; on: waits until every rank
// has passed 100 more gates; stacks: where every rank's threads are, as a line of JSON {"stacks": [text of
// rank 0, ...]}. Each but `resume` and `on` waits until every rank holds, and prints a line of JSON: the gate
// that the collector names, its note, and the gate at which each rank holds. A rank's gate: its number, kind
// and id.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "app/collector/viewer.h"

namespace {

using namespace std::chrono_literals;
using shardscope::collector::Command;
using shardscope::collector::ControlState;
using shardscope::collector::Viewer;
using shardscope::instrumentation::StopRule;
using shardscope::store::Store;
using Clock = std::chrono::steady_clock;

/// Polls until `condition` holds; exits the process where it does not within five minutes: ranks import
/// slowly on a busy machine.
template <typename Condition>
void wait_for(Viewer& viewer, Store& store, const char* what, Condition condition) {
  const auto end = Clock::now() + 300s;
  while (!condition()) {
    if (Clock::now() > end) {
      std::fprintf(stderr, "attach_control: %s: not within 300 s; %s\n", what, viewer.control().note.c_str());
      std::exit(1);
    }
    // What is asked may need the processors that this one would take.
    if (!viewer.poll(store, 5ms)) std::this_thread::sleep_for(5ms);
  }
}

bool all_connected(const Store& store) {
  std::size_t connected = 0;
  for (const auto& rank : store.ranks()) connected += rank.connected ? 1 : 0;
  return store.has_tables() && connected > 0 && connected == store.tables().world;
}

/// Every rank's last recorded gate is the one that the collector names. Where ranks number their gates
/// differently, which the note says, it names the largest number: the others hold at the same place.
bool all_gates_known(const Store& store, const ControlState& control) {
  const auto first = store.gate_before(0, Store::kEnd);
  std::uint64_t largest = 0;
  for (std::uint32_t rank = 0; rank < store.tables().world; ++rank) {
    const auto gate = store.gate_before(rank, Store::kEnd);
    if (!gate || gate->kind != first->kind || gate->id != first->id) return false;
    if (control.note.empty() && gate->number != control.gate) return false;
    largest = std::max<std::uint64_t>(largest, gate->number);
  }
  return largest == control.gate;
}

void print(const Store& store, const ControlState& control) {
  nlohmann::json ranks = nlohmann::json::array();
  for (std::uint32_t rank = 0; rank < store.tables().world; ++rank) {
    const auto gate = store.gate_before(rank, Store::kEnd);
    ranks.push_back({{"gate", gate->number}, {"kind", static_cast<int>(gate->kind)}, {"id", gate->id}});
  }
  const nlohmann::json line{{"gate", control.gate}, {"note", control.note}, {"ranks", ranks}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

/// Waits until every rank has passed 100 more gates.
void wait_on(Viewer& viewer, Store& store) {
  std::vector<std::uint64_t> from(store.tables().world);
  const auto last = [&](std::uint32_t rank) {
    const auto gate = store.gate_before(rank, Store::kEnd);
    return gate ? std::uint64_t{gate->number} : 0;
  };
  for (std::uint32_t rank = 0; rank < from.size(); ++rank) from[rank] = last(rank);
  wait_for(viewer, store, "on", [&] {
    for (std::uint32_t rank = 0; rank < from.size(); ++rank)
      if (last(rank) < from[rank] + 100) return false;
    return true;
  });
}

/// Every rank's answers so far, the newest last.
std::vector<std::vector<std::string>> answers(const Store& store) {
  using shardscope::instrumentation::Request;
  const std::string prefix = shardscope::instrumentation::answer_prefix(Request::stacks);
  std::vector<std::vector<std::string>> found(store.tables().world);
  for (const auto& message : store.messages()) {
    if (message.text.starts_with(prefix) && message.rank < found.size())
      found[message.rank].push_back(message.text);
  }
  return found;
}

/// Asks all ranks and waits for each one's answer.
void print_stacks(Viewer& viewer, Store& store) {
  const auto before = answers(store);
  viewer.send({.kind = Command::Kind::ask, .rule = {}, .detail = {}, .request = {}});
  wait_for(viewer, store, "stacks", [&] {
    const auto now = answers(store);
    for (std::size_t rank = 0; rank < now.size(); ++rank)
      if (now[rank].size() <= before[rank].size()) return false;
    return true;
  });
  nlohmann::json texts = nlohmann::json::array();
  for (const auto& of_rank : answers(store)) texts.push_back(of_rank.back());
  std::printf("%s\n", nlohmann::json{{"stacks", texts}}.dump().c_str());
  std::fflush(stdout);
}

bool command_of(const char* word, Command& command) {
  struct Word {
    const char* text;
    Command::Kind kind;
    StopRule::Kind rule;
  };
  using Kind = StopRule::Kind;
  static constexpr std::array kWords = {Word{"pause", Command::Kind::pause, Kind::never},
                                        Word{"resume", Command::Kind::resume, Kind::never},
                                        Word{"any", Command::Kind::resume, Kind::any_gate},
                                        Word{"module", Command::Kind::resume, Kind::module},
                                        Word{"micro_step", Command::Kind::resume, Kind::micro_step},
                                        Word{"step", Command::Kind::resume, Kind::step}};
  for (const Word& known : kWords) {
    if (std::strcmp(word, known.text) != 0) continue;
    command.kind = known.kind;
    command.rule.kind = known.rule;
    return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s ENDPOINT pause|any|module|micro_step|step|resume|on|stacks ...\n",
                 argv[0]);
    return 2;
  }
  Viewer viewer(argv[1]);
  Store store;
  wait_for(viewer, store, "connecting",
           [&] { return all_connected(store) && viewer.link() == Viewer::Link::live; });
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "stacks") == 0) {
      print_stacks(viewer, store);
      continue;
    }
    if (std::strcmp(argv[i], "on") == 0) {
      wait_on(viewer, store);
      continue;
    }
    Command command;
    if (!command_of(argv[i], command)) {
      std::fprintf(stderr, "attach_control: %s: no such command\n", argv[i]);
      return 2;
    }
    const std::uint64_t before = viewer.control().gate;
    const bool was_paused = viewer.control().paused;
    viewer.send(command);
    const bool resumes = command.kind == Command::Kind::resume && command.rule.kind == StopRule::Kind::never;
    wait_for(viewer, store, argv[i], [&] {
      const auto control = viewer.control();
      if (resumes) return !control.paused;
      return control.paused && (!was_paused || control.gate != before) && all_gates_known(store, control);
    });
    if (resumes) continue;
    // The note may come after the gates that it is about.
    for (const auto end = Clock::now() + 300ms; Clock::now() < end;) (void)viewer.poll(store, 5ms);
    print(store, viewer.control());
  }
  return 0;
}
