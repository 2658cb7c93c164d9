// CPU times of building frames, and of the parts of the window in them: what --frame-stats prints.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::gui {

/// CPU time of the calling thread: what other programs and the GL driver's threads take is not in it.
[[nodiscard]] double thread_cpu_ms();

/// Times of the newest frames. Without the GL driver, which draws after a frame is built.
class FrameTimes {
 public:
  /// Adds to the time of a part in the frame that is being built.
  void add_part(std::string_view name, float ms);
  /// Ends that frame, which took `ms` in all.
  void add(float ms);
  void clear() { *this = {}; }
  [[nodiscard]] std::size_t size() const noexcept { return frames_.size(); }
  /// Of the whole frames; 0 without any.
  [[nodiscard]] float quantile(double q) const;
  /// A line for each part, the one with the longest time first: frames in which it was drawn, median, p95 and
  /// worst time in them, and its time in the worst frame. What no part covers is `the rest`. Empty without
  /// parts.
  [[nodiscard]] std::string parts_text() const;

  /// Measures a part while it lives; null: not measured.
  class Part {
   public:
    Part(FrameTimes* times, std::string_view name)
        : times_(times), name_(name), began_(times != nullptr ? thread_cpu_ms() : 0) {}
    ~Part() {
      if (times_ != nullptr) times_->add_part(name_, static_cast<float>(thread_cpu_ms() - began_));
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

   private:
    FrameTimes* times_;
    std::string_view name_;
    double began_;
  };

 private:
  struct OneFrame {
    float ms = 0;
    std::vector<std::pair<std::size_t, float>> parts;  ///< index into names_, time
  };
  std::vector<std::string> names_;
  std::vector<OneFrame> frames_;
  OneFrame building_;
};

}  // namespace shardscope::gui
