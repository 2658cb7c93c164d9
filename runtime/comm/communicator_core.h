// The communicator, independent of the transport: checks arguments, numbers collectives, emits their events,
// queues them on the stream and delays them for the emulated link.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/emulated_link.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/transport.h"

namespace shardscope::comm {

class CommunicatorCore final : public Communicator {
 public:
  /// `sequence` numbers the collectives of the rank across its communicators; every rank submits in the same
  /// program order, so a number means the same collective on all of them. It must outlive this object.
  /// `world_rank` is a member of `group`; `link` connects its members. With `compare` the ranks exchange the
  /// signature of each collective before the transport starts, which makes the host wait for the last rank.
  CommunicatorCore(const Group& group, std::uint32_t world_rank, std::string name,
                   std::unique_ptr<Transport> transport, base::EmulatedLink link,
                   std::atomic<std::uint32_t>& sequence, bool compare = false);

  /// Waits for its queued collectives. When an exception ends the rank it first notifies the others, since
  /// their unfinished collectives would otherwise wait for a rank that never arrives.
  ~CommunicatorCore() override;
  CommunicatorCore(const CommunicatorCore&) = delete;
  CommunicatorCore& operator=(const CommunicatorCore&) = delete;

  [[nodiscard]] std::uint32_t rank() const noexcept override { return rank_; }
  [[nodiscard]] std::uint32_t world() const noexcept override { return world_; }
  [[nodiscard]] std::string describe() const override;

  void all_gather(std::span<const GatherPart> parts, kernels::DType type, device::Stream& stream,
                  CollectiveLabel label) override;
  void reduce_scatter(std::span<const ReduceScatterPart> parts, kernels::DType type, float factor,
                      device::Stream& stream, CollectiveLabel label) override;
  void reduce(std::span<const ReducePart> parts, kernels::DType type, float factor, device::Stream& stream,
              CollectiveLabel label) override;
  void all_reduce(std::span<const AllReducePart> parts, kernels::DType type, float factor,
                  device::Stream& stream, CollectiveLabel label) override;
  void all_to_all(std::span<const AllToAllPart> parts, kernels::DType type, device::Stream& stream,
                  CollectiveLabel label) override;
  void all_reduce_host(std::span<double> values) override;
  void max_host(std::span<std::uint64_t> values) override;
  void broadcast_host(std::span<std::byte> bytes, std::uint32_t root) override;
  void barrier_host() override;

 private:
  struct Draft;
  struct Job;
  template <typename Item, typename Add>
  void submit_all(instrumentation::CollectiveOp op, kernels::DType type, float factor, CollectiveLabel label,
                  std::span<const Item> parts, device::Stream& stream, Add add);
  void submit(Draft draft, device::Stream& stream);
  void refuse_other_stream(instrumentation::CollectiveOp op, const device::Stream& stream);
  void run(const Collective& collective, const kernels::Exec& exec);
  void compare_signatures(const Collective& collective);
  void hold(const Collective& collective, std::int64_t entered_ns) const;
  template <typename T, typename Combine>
  void combine_host(const char* what, std::span<T> values, Combine combine);

  const std::uint32_t rank_;   ///< within the group
  const std::uint32_t world_;  ///< ranks of the group
  const instrumentation::CollectiveScope scope_;
  const std::uint32_t group_id_;  ///< used for scope `group` only
  const std::string name_;
  const std::unique_ptr<Transport> transport_;
  const base::EmulatedLink link_;
  const bool compare_;
  std::uint64_t compared_ = 0;  ///< collectives
  std::atomic<std::uint32_t>& sequence_;
  const device::Stream* stream_ = nullptr;  ///< of the first collective; every later one must use it too
  std::vector<std::byte> host_scratch_;
  const int exceptions_at_start_;

  std::mutex jobs_mutex_;
  std::condition_variable jobs_done_;
  std::size_t jobs_ = 0;  ///< queued on streams and not yet run or dropped
};

}  // namespace shardscope::comm
