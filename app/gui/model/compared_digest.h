// The digest of a run that is compared: of a recording its analysis has it, of a live run it is continued
// from frame to frame, since reading all steps again takes longer than a frame.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "app/analysis/digest.h"
#include "app/gui/model/session.h"

namespace shardscope::gui {

class ComparedDigest {
 public:
  /// Takes what is known, or digests further steps of a live run for about `time`. True when nothing is left.
  bool advance(const Session& run, std::chrono::nanoseconds time);
  /// Null before the first advance().
  [[nodiscard]] const analysis::Digest* get() const noexcept {
    return known_ ? known_.get() : own_ ? own_.get() : nullptr;
  }

 private:
  std::shared_ptr<const analysis::Digest> known_;
  std::unique_ptr<analysis::Digest> own_;
  std::uint64_t run_ = 0;       ///< Session::number() of own_
  std::int64_t origin_ns_ = 0;  ///< of its times
};

/// The digests of A and B; null: those of their analyses, or made when needed.
struct ComparedDigests {
  const analysis::Digest *a = nullptr, *b = nullptr;
};
/// `given`, or else that of the run's analysis; null for a live run.
[[nodiscard]] const analysis::Digest* digest_for(const Session& run, const analysis::Digest* given);

}  // namespace shardscope::gui
