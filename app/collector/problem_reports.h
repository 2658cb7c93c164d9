// Rate limit for reports of problems that may occur thousands of times a second. Pure: the caller passes in
// each problem and its time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::collector {

/// One text per kind and interval: a flood of garbage must not become a flood of texts. The first problem of
/// a kind is reported at once. Those that follow within the interval are counted, and the last of them is
/// reported with their number when the interval is over.
class ProblemReports {
 public:
  static constexpr double kInterval_s = 15;

  /// A problem has occurred. Returns the text to publish now, if any. `now_s`: a monotonic clock.
  [[nodiscard]] std::optional<std::string> add(const std::string& kind, const std::string& text,
                                               double now_s);
  enum class Take : std::uint8_t {
    due,  ///< of finished intervals
    all,  ///< at the end of a run
  };
  /// The texts for problems that were counted and not reported yet.
  [[nodiscard]] std::vector<std::string> take(double now_s, Take take);

 private:
  struct Kind {
    double reported_s = 0;      ///< time of the last report
    std::uint64_t pending = 0;  ///< problems since then
    std::string text;           ///< of the last of them
  };
  std::map<std::string, Kind> kinds_;
};

}  // namespace shardscope::collector
