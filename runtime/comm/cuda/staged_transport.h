// Collectives of device memory through the host: a rank's input is copied to memory that its peers can read,
// a host thread performs the collective there, the result is copied back. Nothing blocks the calling thread:
// the copies are queued on the CUDA stream, which waits for the host thread by an event. Sums are computed on
// the host in rank order, so that results are bitwise equal to a CPU run.
#pragma once

#include <memory>

#include "runtime/comm/cuda/staging.h"
#include "runtime/comm/transport.h"
#include "runtime/device/device.h"

namespace shardscope::comm {

class StagedTransport final : public Transport {
 public:
  StagedTransport(std::shared_ptr<Staging> staging, std::unique_ptr<Transport> host, std::uint32_t rank,
                  std::uint32_t world);
  ~StagedTransport() override;

  [[nodiscard]] std::string describe() const override {
    return host_->describe() + ", staged through the host";
  }
  void check_memory(const void*, std::size_t) const override {}
  [[nodiscard]] bool asynchronous() const noexcept override { return true; }
  void enter(const Collective&) override {}
  void move(const Collective& collective, const kernels::Exec& exec) override;
  void leave(const Collective&) override {}
  void check_failure() const override { host_->check_failure(); }
  void abandon() noexcept override { host_->abandon(); }
  void host_all_gather(const char* what, std::span<const std::byte> mine, std::span<std::byte> all) override {
    host_->host_all_gather(what, mine, all);
  }
  void host_broadcast(std::span<std::byte> bytes, std::uint32_t root) override {
    host_->host_broadcast(bytes, root);
  }

 private:
  struct Copy;
  struct Plan;
  [[nodiscard]] Plan plan(const Collective& collective);

  const std::shared_ptr<Staging> staging_;
  const std::shared_ptr<Transport> host_;  ///< shared with work that is still queued
  const std::uint32_t rank_;
  const std::uint32_t world_;
  const std::unique_ptr<device::Event> copied_;  ///< on the CUDA stream: inputs are on the host
  const std::unique_ptr<device::Event> done_;    ///< on the host stream: results are there
  device::Stream* here_ = nullptr;               ///< of the first collective
};

}  // namespace shardscope::comm
