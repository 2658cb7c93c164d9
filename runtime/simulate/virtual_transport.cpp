#include "runtime/simulate/virtual_transport.h"

#include <cstring>

namespace shardscope::simulate {
namespace {

class VirtualTransport final : public comm::Transport {
 public:
  VirtualTransport(Recorder& recorder, std::uint16_t comm, const GroupShape& group)
      : recorder_(recorder), comm_(comm), group_(group) {}

  [[nodiscard]] std::string describe() const override { return "simulated links"; }
  void check_memory(const void*, std::size_t) const override {}
  void enter(const comm::Collective&) override {
    recorder_.join(static_cast<std::uint16_t>(2 * comm_), calls_);
  }
  void move(const comm::Collective& collective, const kernels::Exec&) override {
    const CostModel& cost = recorder_.cost();
    recorder_.hold(cost.collective_latency_ns(collective.op, group_));
    recorder_.move(static_cast<std::uint16_t>(2 * comm_), calls_++,
                   cost.collective_moving_ns(collective.op, collective.bytes, group_));
  }
  void leave(const comm::Collective&) override {}
  void check_failure() const override {}
  void abandon() noexcept override {}

  void host_all_gather(const char*, std::span<const std::byte> mine, std::span<std::byte> all) override {
    meet();
    for (std::size_t at = 0; at + mine.size() <= all.size(); at += mine.size()) {
      std::memcpy(all.data() + at, mine.data(), mine.size());
      if (mine.empty()) break;
    }
  }
  void host_broadcast(std::span<std::byte>, std::uint32_t) override { meet(); }

 private:
  void meet() {
    recorder_.join(static_cast<std::uint16_t>(2 * comm_ + 1), host_calls_++);
    recorder_.hold(recorder_.cost().host_exchange_ns(group_));
  }

  Recorder& recorder_;
  const std::uint16_t comm_;
  const GroupShape group_;
  std::uint32_t calls_ = 0;
  std::uint32_t host_calls_ = 0;
};

}  // namespace

std::unique_ptr<comm::Transport> make_virtual_transport(Recorder& recorder, std::uint16_t comm,
                                                        const GroupShape& group) {
  return std::make_unique<VirtualTransport>(recorder, comm, group);
}

}  // namespace shardscope::simulate
