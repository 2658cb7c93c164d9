// Where the gradients of a rank are at a time, at every stage: not made yet, in a bucket, being reduced,
// reduced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "app/store/store.h"
#include "app/store/vocabulary.h"
#include "instrumentation/event_fields.h"

namespace shardscope::gui {

namespace ev = shardscope::instrumentation;

enum class GradientStatus : std::uint8_t {
  none,       ///< not written in this step yet, or freed
  in_bucket,  ///< joined a bucket that fills
  flushed,    ///< its bucket is full and waits for its reduction
  reducing,
  reduced,  ///< at its owner, or at every rank below stage 2
};
/// In the words of the run's framework.
[[nodiscard]] const char* word(const store::Vocabulary& words, GradientStatus status) noexcept;

struct GradientState {
  GradientStatus status = GradientStatus::none;
  std::uint32_t bucket = ev::kNoId;
  std::int64_t since_ns = 0;
};
/// By parameter id, from the events of the step that holds `at_ns` (of a gradient accumulated over
/// micro-steps: what happened to it last).
[[nodiscard]] std::vector<GradientState> gradient_states(const store::Store& store, std::uint32_t rank,
                                                         std::int64_t at_ns);

/// The same, kept for the time that is looked at: the map asks for every cell of every rank in every frame.
class GradientStatesAt {
 public:
  /// Valid until the next call with another time or another revision of the store.
  [[nodiscard]] const std::vector<GradientState>& of(const store::Store& store, std::uint32_t rank,
                                                     std::int64_t at_ns);

 private:
  struct Key {
    const store::Store* store = nullptr;
    std::uint64_t revision = 0;
    std::int64_t at_ns = 0;
    bool operator==(const Key&) const = default;
  };
  std::optional<Key> key_;
  std::map<std::uint32_t, std::vector<GradientState>> by_rank_;
};

/// A flush of a bucket.
struct BucketFlush {
  std::int64_t at_ns = 0, opened_ns = 0;  ///< 0: when it was opened is not known
  std::uint32_t bucket = ev::kNoId, buffer = ev::kNoId, trigger_param = ev::kNoId;
  std::uint32_t params = 0;
  std::int64_t elems = 0;
  plan::FlushReason reason{};
};
/// What a bucket_open says of the flush that will come: bucket, buffer and when it was opened.
[[nodiscard]] BucketFlush opened_bucket(const ev::Event& event);
/// Of a bucket_flush, and of the bucket's opening where that is known.
[[nodiscard]] BucketFlush flush_of(const ev::Event& event, const BucketFlush& opened);
/// Flushes of a rank in [begin, end), oldest first.
[[nodiscard]] std::vector<BucketFlush> bucket_flushes(const store::Store& store, std::uint32_t rank,
                                                      std::int64_t begin_ns, std::int64_t end_ns);

}  // namespace shardscope::gui
