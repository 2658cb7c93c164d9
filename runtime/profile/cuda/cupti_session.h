// One period of recording through CUPTI: what is switched on when it begins and off when it ends.
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

/// Buffers of CUPTI's callbacks, which are the process's: never destroyed, for CUPTI may fill one until the
/// process is gone. Small ones: CUPTI does not give back a buffer in which anything still runs, so what is
/// shown live is late by what fills one.
[[nodiscard]] BufferPool& buffers();
inline constexpr std::size_t kBufferBytes = 512U << 10;
inline constexpr std::size_t kMostBuffers = 256;  ///< 128 MiB
/// A buffer held for longer is taken to be one that a thread which launches nothing has.
inline constexpr std::int64_t kHeldAtMostNs = 30'000'000'000;

/// At most one at a time in a process. All members are called from one thread.
class CuptiSession {
 public:
  explicit CuptiSession(const CuptiApi& api) : api_(api) {}
  ~CuptiSession() { end(); }
  CuptiSession(const CuptiSession&) = delete;
  CuptiSession& operator=(const CuptiSession&) = delete;

  /// Switches on; empty if it could, else why not. What had been switched on is off again then.
  [[nodiscard]] std::string begin();
  /// Switches off and waits, for a bounded time, until CUPTI has given back what it had.
  void end() noexcept;
  /// For the times of this period's records.
  [[nodiscard]] RecordClock clock() const { return RecordClock(gave_clock_); }
  /// Pairs CUPTI's clock and the wall clock with the host's: of each the narrowest of a few readings.
  void pair_clocks(RecordClock& clock) const;
  enum class Flush : std::uint8_t {
    complete,  ///< buffers of which every record is complete
    forced     ///< all of them
  };
  /// Appends the records that CUPTI gives back now.
  void collect(Flush how, RecordClock& clock, Names& names, RecordBatch& batch);
  /// The same for what has come back already.
  void collect(RecordClock& clock, Names& names, RecordBatch& batch);

 private:
  [[nodiscard]] std::string enable();
  [[nodiscard]] std::string failure(CUptiResult result, const char* call) const;
  /// Switches off records of calls that queue no work: a record of each would cost the host and say
  /// nothing.
  void leave_out_calls() const noexcept;

  const CuptiApi& api_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool on_ = false;
  bool gave_clock_ = false;  ///< CUPTI reads the host's clock
};

}  // namespace shardscope::profile::cuda
