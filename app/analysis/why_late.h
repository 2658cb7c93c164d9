// Why a rank entered collectives last: what it spent more time with than the others. One measure for
// findings, the summary, the report and the window.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::analysis {

struct RankStep;
struct Summary;

/// What a rank spends its time with by itself, in milliseconds of a step: without waiting for others and
/// without communication.
struct OwnParts {
  std::uint32_t rank = 0;
  double compute = 0, copy = 0, idle = 0;
  double data = 0;       ///< waits for a micro-batch: a part of the others
  double processor = 0;  ///< its threads waited for a processor, summed over them: they lie in the others
  std::uint64_t retries = 0;  ///< of its caching allocator, in all steps
};

struct WhyLate {
  enum class Part : std::uint8_t { compute, copy, idle };
  Part part{};
  bool for_data =
      false;  ///< it waits longer for a micro-batch than the median of the others: most of what is too much
  double own_ms = 0;    ///< of a step
  double usual_ms = 0;  ///< median of the other ranks
  double data_ms = 0;   ///< of a step, waited for data
  /// Its threads waited for a processor longer than the median of the others': a third of what is too much.
  bool for_processor = false;
  double processor_ms = 0, usual_processor_ms = 0;  ///< of a step
  std::uint64_t retries = 0;  ///< its allocator had to free its cache, and waited for the device each time
  [[nodiscard]] double excess_ms() const noexcept { return own_ms - usual_ms; }
};
/// "computed", "copied", "waited for data", "did nothing".
[[nodiscard]] const char* verb_of(const WhyLate& why) noexcept;
/// "it computed 14.0 ms of a step, the others 10.0 ms", with what explains it.
[[nodiscard]] std::string text_of(const WhyLate& why);
/// What the rank did is explained by: sentences, each after a blank; empty where nothing is known.
[[nodiscard]] std::string causes_of(const WhyLate& why);

/// Of what `rank` has more than the median of the others, the most; nothing where it has more of none, or is
/// the only one.
[[nodiscard]] std::optional<WhyLate> why_late(const std::vector<OwnParts>& ranks, std::uint32_t rank);
/// The same of the means of the measured steps. Nothing where it is not most of what each of the others
/// waited for the rank: ranks take turns in coming last.
[[nodiscard]] std::optional<WhyLate> why_late(const Summary& summary, std::uint32_t rank);

/// How often a rank's caching allocator had to free its cache in the steps that count: what it counts itself
/// is from its begin on.
class RetryCount {
 public:
  /// In order of time.
  void add(const RankStep& step, bool counts);
  /// Nothing where it was not recorded.
  [[nodiscard]] std::optional<std::uint64_t> count() const noexcept { return count_; }

 private:
  std::optional<std::uint32_t> before_;
  std::optional<std::uint64_t> count_;
};

}  // namespace shardscope::analysis
