// Optimizer states on NVMe: what pipeline_read and pipeline_write put beside an update, seen by the order in
// which transfers and updates are queued.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "instrumentation/emitter.h"
#include "instrumentation/ring.h"
#include "runtime/execution/events.h"
#include "runtime/offload/state_storage.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;

struct Pipelining {
  bool read, write;
};

/// v0 of the mark that an update was queued.
constexpr std::int64_t kQueued = -2;

std::vector<ev::Event> drain() {
  std::vector<ev::Event> events;
  static_cast<void>(ev::RingRegistry::instance().drain(events));
  return events;
}

class Swapped : public ::testing::TestWithParam<Pipelining> {
 protected:
  Swapped() : folder_(::testing::TempDir() + "shardscope-states-XXXXXX") {
    if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("mkdtemp " + folder_);
    zero_.offload_optimizer.nvme_path = folder_;
    zero_.offload_optimizer.pipeline_read = GetParam().read;
    zero_.offload_optimizer.pipeline_write = GetParam().write;
    zero_.offload_optimizer.buffer_count = 8;
    detail_before_ = ev::g_detail.exchange(static_cast<int>(ev::Detail::params));
    states_ = make_swapped_states(*device_, device_->pinned(), {{0, 64}, {64, 128}, {128, 192}}, 0, zero_);
  }
  ~Swapped() override {
    states_.reset();
    ev::g_detail.store(detail_before_);
    std::filesystem::remove_all(folder_);
  }

  /// Opens tile t and queues its update.
  void update(std::size_t tile) {
    const TileStates states = states_->open(tile);
    device_->worker().run([states, tile](const kernels::Exec&) {
      const auto id = static_cast<std::uint32_t>(tile);
      ev::emit({.kind = ev::EventKind::optimizer_begin, .a = id});
      for (int i = 0; i < 64; ++i) states.master[i] += static_cast<float>(tile + 1);
      ev::emit({.kind = ev::EventKind::optimizer_end, .a = id});
    });
  }
  void close(std::size_t tile) { states_->close(tile, TileUse::changed); }

  int detail_before_ = 0;
  std::string folder_;
  const std::unique_ptr<device::Device> device_ = device::make_cpu_device(nullptr);
  plan::ZeroConfig zero_;
  std::unique_ptr<StateStorage> states_;
};

/// A step over three tiles, as it comes to the nvme stream: "r1" reads tile 1, "w1" writes it, "u1" is where
/// the update of tile 1 was queued on the worker stream.
TEST_P(Swapped, TransfersAreQueuedAroundUpdates) {
  drain();
  for (const std::size_t tile : {0U, 1U, 2U}) {
    update(tile);
    device_->nvme().run([tile](const kernels::Exec&) {
      ev::emit({.kind = ev::EventKind::tokens, .a = static_cast<std::uint32_t>(tile), .v0 = kQueued});
    });
    close(tile);
  }
  states_->finish();
  device_->synchronize();

  std::string order;
  std::map<std::string, std::uint64_t> begins, ends;
  for (const ev::Event& event : drain()) {
    const bool read = event.code == static_cast<std::uint8_t>(ev::TransferKind::nvme_read);
    const std::string transfer = (read ? "r" : "w") + std::to_string(event.b);
    switch (event.kind) {
      case ev::EventKind::transfer_begin:
        order += transfer + ' ';
        begins[transfer] = event.ticks;
        break;
      case ev::EventKind::transfer_end:
        ends[transfer] = event.ticks;
        break;
      case ev::EventKind::tokens:
        order += "u" + std::to_string(event.a) + ' ';
        break;
      case ev::EventKind::optimizer_begin:
        begins["u" + std::to_string(event.a)] = event.ticks;
        break;
      case ev::EventKind::optimizer_end:
        ends["u" + std::to_string(event.a)] = event.ticks;
        break;
      default:
        break;
    }
  }
  const auto& [read, write] = GetParam();
  EXPECT_EQ(order, read    ? "r0 r1 u0 w0 r2 u1 w1 u2 w2 "
                   : write ? "r0 u0 r1 w0 u1 r2 w1 u2 w2 "
                           : "r0 u0 w0 r1 u1 w1 r2 u2 w2 ");
  // What is not pipelined has been waited for, whichever stream is the faster.
  for (const std::string tile : {"0", "1"}) {
    const std::string next = tile == "0" ? "1" : "2";
    if (!read) {
      EXPECT_LE(ends.at("u" + tile), begins.at("r" + next));
    }
    if (!write) {
      EXPECT_LE(ends.at("w" + tile), begins.at("u" + next));
    }
  }
}

// With both, a write that does not end holds no update up: the nvme stream stands from before the first write
// until the second update has run.
TEST_P(Swapped, AnUpdateDoesNotWaitForTheWriteBefore) {
  if (!GetParam().read || !GetParam().write) return;
  update(0);
  std::promise<void> updated;
  bool in_time = false;
  device_->nvme().run([&in_time, done = updated.get_future().share()](const kernels::Exec&) {
    in_time = done.wait_for(std::chrono::seconds(20)) == std::future_status::ready;  // at once, or never
  });
  close(0);
  update(1);
  device_->worker().run([&updated](const kernels::Exec&) { updated.set_value(); });
  close(1);
  states_->finish();
  device_->synchronize();
  EXPECT_TRUE(in_time);
}

// Whatever is pipelined, a tile comes back as it was left.
TEST_P(Swapped, EveryTileKeepsItsValues) {
  for (int step = 0; step < 3; ++step) {
    for (const std::size_t tile : {0U, 1U, 2U}) {
      update(tile);
      close(tile);
    }
    states_->finish();
  }
  for (const std::size_t tile : {0U, 1U, 2U}) {
    const TileStates states = states_->open(tile);
    device_->worker().synchronize();
    EXPECT_EQ(states.master[63], 3 * (static_cast<float>(tile) + 1));
    states_->close(tile, TileUse::read);
  }
  states_->finish();
  device_->synchronize();
}

INSTANTIATE_TEST_SUITE_P(Pipelining, Swapped,
                         ::testing::Values(Pipelining{false, false}, Pipelining{true, false},
                                           Pipelining{false, true}, Pipelining{true, true}),
                         [](const auto& c) {
                           return std::string(c.param.read ? "read" : "") + (c.param.write ? "write" : "") +
                                  (c.param.read || c.param.write ? "" : "none");
                         });

}  // namespace
}  // namespace shardscope::offload
