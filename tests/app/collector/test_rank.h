// Ranks without a training process, and what tests of a collector wait for.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/collector/collector.h"
#include "app/collector/viewer.h"
#include "instrumentation/clock.h"
#include "instrumentation/local_keys.h"
#include "instrumentation/rank_link.h"

namespace shardscope::collector {

using namespace std::chrono_literals;
using namespace instrumentation;
using Clock = std::chrono::steady_clock;

inline RunTables tables_of(std::uint32_t rank, std::uint32_t world) {
  RunTables t;
  t.run_id = "collector-test";
  t.model = "tiny";
  t.rank = rank;
  t.world = world;
  t.local_world = world;
  t.stage = 3;
  t.elems = 10;
  t.modules = {{0, kNoId, "", "Root", {}, true}, {1, 0, "fc", "Linear", {0}, true}};
  t.params = {{0, "fc.weight", "fp32", {10}, 10, 5, 0, {1}, false}};
  return t;
}

inline Event event_of(EventKind kind, std::int64_t ns, StreamId stream = StreamId::host, std::uint32_t a = 0,
                      std::uint32_t b = 0, std::uint8_t code = 0) {
  Event event;
  event.ticks = static_cast<std::uint64_t>(ns);
  event.kind = kind;
  event.stream = stream;
  event.a = a;
  event.b = b;
  event.code = code;
  return event;
}

inline bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds limit = 10s) {
  const auto end = Clock::now() + limit;
  while (Clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(2ms);
  }
  return condition();
}

/// Of what the collector at `endpoint` has left for programs of this user; none where it asks for none.
inline std::optional<KeyFile> local_key(const std::string& endpoint, KeyRole role) {
  const std::string folder = local_key_folder(endpoint);
  if (folder.empty()) return std::nullopt;
  return client_key(folder + "/" + name_of(role) + ".key", {role});
}

/// A rank without rings: hands over steps with module spans and memory events made here.
class Rank {
 public:
  Rank(const std::string& endpoint, std::uint32_t rank, std::uint32_t world, std::int64_t skew = 0)
      : skew_(skew) {
    RankLinkOptions options;
    options.endpoint = endpoint;
    options.gate = &gate;
    options.detail = [] { return 3; };
    if (skew != 0) {
      options.clock_id = "another-host";
      options.clock.skew_ns = skew;
    }
    link = std::make_unique<RankLink>(std::move(options), tables_of(rank, world));
  }
  void step(std::uint32_t number, std::uint64_t dropped = 0) {
    std::vector<Event> events;
    std::int64_t t = monotonic_now_ns() + skew_;
    const std::int64_t begin = t;
    const auto add = [&](Event event) {
      event.ticks = static_cast<std::uint64_t>(t += 1000);
      events.push_back(event);
    };
    add(event_of(EventKind::step_begin, 0, StreamId::host, number));
    for (std::uint32_t m = 0; m < 2; ++m) {
      add(event_of(EventKind::module_begin, 0, StreamId::compute, m));
      add(event_of(EventKind::memory_alloc, 0, StreamId::host, m));
      events.back().v0 = events.back().v1 = 4096;
      add(event_of(EventKind::memory_free, 0, StreamId::host, m));
      events.back().v0 = 4096;
      add(event_of(EventKind::module_end, 0, StreamId::compute, m));
    }
    add(event_of(EventKind::step_end, 0, StreamId::host, number));
    link->push(std::move(events), dropped, begin, t, 25);
    link->pump();
  }
  /// Until the collector has received all of it. Before it has answered, drain() returns soon.
  void settle() {
    EXPECT_TRUE(until([&] { return link->collector_alive(); }));
    static_cast<void>(link->drain(10));
  }
  void finish(int code = 0, const std::string& text = "done") {
    link->post(wire::Body(wire::Finish{code, monotonic_now_ns(), 0, text}));
    EXPECT_TRUE(until([&] { return link->finish_received(); }));
  }
  /// Sends meanwhile what could not be sent yet, as a publisher's thread does.
  bool until(const std::function<bool()>& condition, std::chrono::milliseconds limit = 10s) {
    return eventually(
        [&] {
          link->pump();
          return condition();
        },
        limit);
  }
  GateKeeper gate;
  std::unique_ptr<RankLink> link;

 private:
  std::int64_t skew_;
};
inline constexpr std::uint64_t kEventsPerStep = 10;

/// A rank whose detail level viewers can set.
struct SettableRank {
  explicit SettableRank(const std::string& endpoint, const std::string& key = {})
      : link(options(endpoint, key), tables_of(0, 1)) {}
  [[nodiscard]] Detail level() const { return detail.load(); }

  GateKeeper gate;
  std::atomic<Detail> detail{Detail::params};
  RankLink link;

 private:
  [[nodiscard]] RankLinkOptions options(const std::string& endpoint, const std::string& key) {
    RankLinkOptions options;
    options.endpoint = endpoint;
    options.key_file = key;
    options.gate = &gate;
    options.detail = [this] { return static_cast<int>(detail.load()); };
    options.set_detail = [this](Detail to) { detail = to; };
    return options;
  }
};

/// Reads a collector's store while it lives: the recorder, which may not change a store being read, takes
/// nothing in.
class IntakeHold {
 public:
  explicit IntakeHold(const Collector& collector)
      : reader_([&collector, this] {
          collector.read([this](const store::Store&) {
            held_.set_value();
            open_.get_future().wait();
          });
        }) {
    held_.get_future().wait();
  }
  ~IntakeHold() {
    open_.set_value();
    reader_.join();
  }
  IntakeHold(const IntakeHold&) = delete;
  IntakeHold& operator=(const IntakeHold&) = delete;

 private:
  std::promise<void> open_, held_;
  std::thread reader_;
};

inline CollectorOptions local(const std::string& listen = "tcp://127.0.0.1:0") {
  CollectorOptions options;
  options.listen = listen;
  return options;
}

/// Without keys: any peer is let in.
inline CollectorOptions open_to_all() {
  CollectorOptions options = local();
  options.insecure = true;
  return options;
}

/// Follows until `condition`, in a viewer's way.
inline bool follow(Viewer& viewer, store::Store& store, const std::function<bool()>& condition,
                   std::chrono::milliseconds limit = 10s) {
  return eventually(
      [&] {
        viewer.poll(store, 5ms);
        return condition();
      },
      limit);
}

inline std::string all_texts(const store::Store& store) {
  std::string out;
  for (const auto& message : store.messages()) out += message.text + "\n";
  return out;
}

}  // namespace shardscope::collector
