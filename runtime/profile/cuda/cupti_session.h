// One period of recording through CUPTI: enables record kinds at its begin and disables them at its end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/profile/buffer_pool.h"
#include "runtime/profile/cuda/cupti_api.h"
#include "runtime/profile/cuda/cupti_records.h"
#include "runtime/profile/gpu_records.h"
#include "runtime/profile/record_clock.h"

namespace shardscope::profile::cuda {

/// Buffers of CUPTI's callbacks, one pool per process: never destroyed, since CUPTI may fill one until the
/// process ends. Small ones: CUPTI does not return a buffer with unfinished work, so live views lag by the
/// time to fill one.
[[nodiscard]] BufferPool& buffers();
inline constexpr std::size_t kBufferBytes = 512U << 10;
inline constexpr std::size_t kMostBuffers = 256;  ///< 128 MiB
/// A buffer held for longer is assumed to belong to an idle thread.
inline constexpr std::int64_t kHeldAtMostNs = 30'000'000'000;

/// At most one at a time in a process. All members are called from one thread.
class CuptiSession {
 public:
  explicit CuptiSession(const CuptiApi& api) : api_(api) {}
  ~CuptiSession() { end(); }
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  /// Starts recording; returns an empty string, or the reason of a failure, after undoing everything.
  [[nodiscard]] std::string begin();
  /// Stops recording and waits, for a bounded time, until CUPTI has returned its buffers.
  void end() noexcept;
  /// The clock of this period's records.
  [[nodiscard]] RecordClock clock() const { return RecordClock(gave_clock_); }
  /// Adds a pair of CUPTI's clock and of the wall clock with the host's: each the narrowest of a few
  /// readings.
  void pair_clocks(RecordClock& clock) const;
  enum class Flush : std::uint8_t {
    complete,  ///< buffers of which every record is complete
    forced     ///< all of them
  };
  /// Flushes and appends the returned records.
  void collect(Flush how, RecordClock& clock, Names& names, RecordBatch& batch);
  /// The same for buffers already returned, without a flush.
  void collect(RecordClock& clock, Names& names, RecordBatch& batch);

 private:
  [[nodiscard]] std::string enable();
  [[nodiscard]] std::string failure(CUptiResult result, const char* call) const;
  /// Disables records of calls that queue no work: they would cost host time without information.
  void leave_out_calls() const noexcept;

  const CuptiApi& api_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool on_ = false;
  bool gave_clock_ = false;  ///< CUPTI reads the host's clock
};

}  // namespace shardscope::profile::cuda
