// Collectives by NCCL, with one NCCL communicator per object. Parts of a collective are one group call, each
// in place. Every wait is bounded: communicators are non-blocking, and a watchdog aborts one whose collective
// does not end in time or whose peers have failed.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/comm/transport.h"

namespace shardscope::comm {

class NcclTransport final : public Transport {
 public:
  /// Collective over the group. `host` carries the bootstrap, host values and notices of failures. `ordinal`:
  /// the CUDA device, which must be the calling thread's.
  NcclTransport(std::unique_ptr<Transport> host, std::string name, std::uint32_t rank, std::uint32_t world,
                int ordinal, std::chrono::milliseconds timeout);
  ~NcclTransport() override;

  [[nodiscard]] std::string describe() const override;
  void check_memory(const void*, std::size_t) const override {}
  [[nodiscard]] bool asynchronous() const noexcept override { return true; }
  [[nodiscard]] bool compares() const noexcept override { return false; }
  void enter(const Collective&) override {}
  void move(const Collective& collective, const kernels::Exec& exec) override;
  void leave(const Collective&) override {}
  void check_failure() const override;
  void abandon() noexcept override;
  void host_all_gather(const char* what, std::span<const std::byte> mine, std::span<std::byte> all) override {
    host_->host_all_gather(what, mine, all);
  }
  void host_broadcast(std::span<std::byte> bytes, std::uint32_t root) override {
    host_->host_broadcast(bytes, root);
  }

 private:
  class Watchdog;
  struct State;
  void queue_part(const Collective& collective, const Part& part, void* stream);
  void settle(const char* call);
  [[nodiscard]] bool has_failed() const noexcept;

  const std::unique_ptr<Transport> host_;
  const std::string name_;
  const std::uint32_t rank_;
  const std::uint32_t world_;
  const std::chrono::milliseconds timeout_;  ///< of a call and of a collective on the device, each
  std::unique_ptr<State> state_;             ///< NCCL's types stay out of this header
};

}  // namespace shardscope::comm
