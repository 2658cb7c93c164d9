// Pauses and steps a live run as the dashboard does, without a window, for the tests of attached runs.
//   attach_control ENDPOINT COMMAND...
// pause; any, module, micro_step, step: on to the next gate of this kind; resume; stacks: where every rank's
// threads are, as a line of JSON {"stacks": [text of rank 0, ...]}.
// Each but `resume` waits until every rank holds, and prints a line of JSON: the gate that the collector
// names and the one at which each rank holds. A rank's gate: its number, kind and id.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/collector/viewer.h"

namespace {

using namespace std::chrono_literals;
using shardscope::collector::Command;
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
    (void)viewer.poll(store, 5ms);
  }
}

bool all_connected(const Store& store) {
  std::size_t connected = 0;
  for (const auto& rank : store.ranks()) connected += rank.connected ? 1 : 0;
  return store.has_tables() && connected > 0 && connected == store.tables().world;
}

/// Every rank's last recorded gate is the one that the collector names.
bool all_gates_known(const Store& store, std::uint64_t number) {
  for (std::uint32_t rank = 0; rank < store.tables().world; ++rank) {
    const auto gate = store.gate_before(rank, Store::kEnd);
    if (!gate || gate->number != number) return false;
  }
  return true;
}

void print(const Store& store, std::uint64_t number) {
  std::printf("{\"gate\": %llu, \"ranks\": [", static_cast<unsigned long long>(number));
  for (std::uint32_t rank = 0; rank < store.tables().world; ++rank) {
    const auto gate = store.gate_before(rank, Store::kEnd);
    std::printf("%s{\"gate\": %llu, \"kind\": %d, \"id\": %u}", rank == 0 ? "" : ", ",
                static_cast<unsigned long long>(gate->number), static_cast<int>(gate->kind), gate->id);
  }
  std::printf("]}\n");
  std::fflush(stdout);
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
    std::fprintf(stderr, "usage: %s ENDPOINT pause|any|module|micro_step|step|resume|stacks ...\n", argv[0]);
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
      return control.paused && (!was_paused || control.gate != before) &&
             all_gates_known(store, control.gate);
    });
    if (!resumes) print(store, viewer.control().gate);
  }
  return 0;
}
