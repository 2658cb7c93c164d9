// One line on a terminal that shows the run's progress; nothing in a pipe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "app/store/store.h"

namespace shardscope::cli {

class Progress {
 public:
  Progress(std::int64_t steps, std::string label);
  /// Draws at most ten times a second. On a pipe it writes nothing.
  void update(const store::Store& store);
  /// Ends the line; on a terminal the last state stays.
  void finish();
  /// A line of its own above the progress line.
  void print_line(const std::string& text);
  [[nodiscard]] static std::string line(const store::Store& store, std::int64_t steps,
                                        const std::string& label, std::size_t width);

 private:
  std::int64_t steps_;
  std::string label_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace shardscope::cli
