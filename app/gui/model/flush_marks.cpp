#include "app/gui/model/flush_marks.h"

#include <algorithm>
#include <array>

#include "app/analysis/decision_text.h"
#include "app/gui/model/format.h"
#include "app/gui/model/names.h"
#include "runtime/plan/bucket.h"

namespace shardscope::gui {
namespace {

using plan::FlushReason;

/// Short texts, for the counts in a tooltip.
struct Short {
  FlushReason reason;
  const char* words;
};
constexpr std::array kShort{Short{FlushReason::full, "the next gradient did not fit"},
                            Short{FlushReason::extra_large, "one gradient larger than a bucket"},
                            Short{FlushReason::epilogue, "backward had ended"},
                            Short{FlushReason::boundary, "gradient accumulation had ended"},
                            Short{FlushReason::group_changed, "the next gradient was of another group"},
                            Short{FlushReason::group_complete, "every gradient of a group was there"}};

std::string text_of_one(const store::Store& store, const BucketFlush& flush) {
  const bool triggered = store.has_tables() && flush.trigger_param < store.tables().params.size();
  const std::string trigger =
      triggered ? param_name(store, flush.trigger_param) + " (" +
                      count(static_cast<double>(store.tables().params[flush.trigger_param].elems)).text() +
                      " elements)"
                : "";
  const analysis::DecisionLimits limits =
      store.has_tables() ? analysis::limits_of(store.tables()) : analysis::DecisionLimits{};
  const store::Vocabulary& words = words_of(store);
  std::string out = sentence(words.bucket) + " " + std::to_string(flush.bucket) +
                    (words.has_buckets ? " was flushed at " : " began at ") + timestamp(flush.at_ns, 1000) +
                    ": " + analysis::explain(flush.reason, flush.elems, trigger, limits) + ". " +
                    std::to_string(flush.params) + (flush.params == 1 ? " gradient" : " gradients");
  if (flush.buffer != ev::kNoId) out += ", buffer " + std::to_string(flush.buffer);
  if (flush.opened_ns > 0) out += ", filled for " + duration(flush.at_ns - flush.opened_ns).text();
  return out + ".";
}

}  // namespace

FlushShape shape_of(const BucketFlush& flush) noexcept {
  const FlushReason reason = flush.reason;
  return reason == FlushReason::full || reason == FlushReason::extra_large ? FlushShape::full
                                                                           : FlushShape::rest;
}

std::vector<FlushMark> flush_marks(std::span<const BucketFlush> flushes, const TimeScale& scale,
                                   float apart) {
  std::vector<FlushMark> out;
  // Finds each next mark by bisection: flushes under a mark are not visited.
  std::int64_t from = scale.range.begin_ns;
  while (from < scale.range.end_ns) {
    const auto first = std::partition_point(flushes.begin(), flushes.end(),
                                            [&](const BucketFlush& one) { return one.at_ns < from; });
    if (first == flushes.end() || first->at_ns >= scale.range.end_ns) break;
    const float x = scale.x_of(first->at_ns);
    from = std::max(first->at_ns + 1, scale.time_of(x + apart));
    const auto last =
        std::partition_point(first, flushes.end(), [&](const BucketFlush& one) { return one.at_ns < from; });
    out.push_back({x, shape_of(*first), {first, last}});
  }
  return out;
}

std::string text_of(const Session& run, const FlushMark& mark) {
  if (mark.flushes.empty()) return "";
  if (mark.flushes.size() == 1) return text_of_one(run.store(), mark.flushes.front());
  std::string out = grouped(static_cast<std::int64_t>(mark.flushes.size())) + " flushes here:";
  for (const Short& one : kShort) {
    const auto times = std::ranges::count(mark.flushes, one.reason, &BucketFlush::reason);
    if (times > 0) out += "\n" + grouped(times) + ": " + one.words;
  }
  return out + "\nZoom in to tell them apart.";
}

std::string figures_text(const store::Vocabulary& words, std::span<const BucketFlush> flushes,
                         std::optional<std::int64_t> capacity) {
  const auto number = static_cast<std::int64_t>(flushes.size());
  const std::string what = words.has_buckets ? "flush" : words.bucket;
  std::string out = grouped(number) + " " + what + (number == 1 ? "" : words.has_buckets ? "es" : "s");
  if (flushes.empty()) return out;
  std::int64_t elems = 0, filled_ns = 0, opened = 0;
  for (const BucketFlush& flush : flushes) {
    elems += flush.elems;
    if (flush.opened_ns <= 0) continue;
    filled_ns += flush.at_ns - flush.opened_ns;
    ++opened;
  }
  out += ", " + count(static_cast<double>(elems)).text() + " elements";
  std::string mean;
  if (capacity && *capacity > 0) {
    const double share =
        static_cast<double>(elems) / static_cast<double>(number) / static_cast<double>(*capacity);
    mean = decimal(100 * share, share < 0.1 ? 1 : 0) + " % full";
  }
  if (opened > 0) mean += (mean.empty() ? "" : ", ") + ("filled for " + duration(filled_ns / opened).text());
  if (!mean.empty()) out += (number == 1 ? "; " : "; on average ") + mean;
  std::string why;
  for (const Short& one : kShort) {
    const auto times = std::ranges::count(flushes, one.reason, &BucketFlush::reason);
    if (times > 0) why += (why.empty() ? ". " : "; ") + grouped(times) + ": " + one.words;
  }
  return out + why;
}

}  // namespace shardscope::gui
