// `_core.OpenSpans`: open spans of modules in the compute lane.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardscope/shardscope.h"

namespace shardscope::python {

/// Open passes of modules, the outermost first.
class OpenSpans {
 public:
  void begin(std::uint8_t pass, std::uint32_t module, std::uint32_t micro_step) {
    open_.push_back({pass, module});
    shardscope_module_begin(pass, module, micro_step);
  }
  /// Ends the innermost span of the module, and unfinished ones within it. No effect if none is open.
  void end(std::uint32_t module, std::uint32_t micro_step) {
    const auto of_module = [&](const Span& span) { return span.module == module; };
    const auto found = std::find_if(open_.rbegin(), open_.rend(), of_module);
    if (found != open_.rend()) close(static_cast<std::size_t>(found.base() - open_.begin()) - 1, micro_step);
  }
  void end_all(std::uint32_t micro_step) { close(0, micro_step); }

  [[nodiscard]] std::size_t size() const { return open_.size(); }
  /// Whether this pass of the module is open.
  [[nodiscard]] bool holds(std::uint8_t pass, std::uint32_t module) const {
    return std::any_of(open_.begin(), open_.end(),
                       [&](const Span& span) { return span.pass == pass && span.module == module; });
  }
  [[nodiscard]] bool any(std::uint8_t pass) const {
    return std::any_of(open_.begin(), open_.end(), [&](const Span& span) { return span.pass == pass; });
  }

 private:
  struct Span {
    std::uint8_t pass;
    std::uint32_t module;
  };

  /// Ends all but the outermost `count`.
  void close(std::size_t count, std::uint32_t micro_step) {
    while (open_.size() > count) {
      shardscope_module_end(open_.back().pass, open_.back().module, micro_step);
      open_.pop_back();
    }
  }

  std::vector<Span> open_;
};

void add_open_spans(nanobind::module_& module);

}  // namespace shardscope::python
