// Raises the ranks' level of detail for some steps after a trigger, then lowers it again.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "app/analysis/watch.h"
#include "app/cli/checks.h"
#include "instrumentation/emitter.h"

namespace shardscope::cli {

struct DetailOptions {
  std::string raise, otherwise = "steps";  ///< names of levels; `raise` empty: never raised
  std::uint32_t raise_steps = 20;
};

/// The options write to `options`, which must outlive `verb`. Returns --raise-detail, which the others need.
inline CLI::Option* add_detail_switch(CLI::App& verb, DetailOptions& options) {
  CLI::Option* raise =
      verb.add_option("--raise-detail", options.raise, "At a trigger the ranks emit this much ...")
          ->check(CLI::IsMember(detail_names()));
  verb.add_option("--raise-steps", options.raise_steps, "... for N steps ...")
      ->check(kAboveZero)
      ->needs(raise)
      ->capture_default_str();
  verb.add_option("--detail-otherwise", options.otherwise, "... and before and after that this much")
      ->check(CLI::IsMember(detail_names()))
      ->needs(raise)
      ->capture_default_str();
  return raise;
}

class DetailSwitch {
 public:
  /// `request`: sets the ranks' level of detail by name.
  using Request = std::function<void(const std::string& name)>;
  DetailSwitch(DetailOptions options, Request request)
      : options_(std::move(options)), request_(std::move(request)) {}

  [[nodiscard]] bool used() const noexcept { return !options_.raise.empty(); }
  /// `step`: the last completed one; kNoId: none.
  void follow(std::uint32_t step, bool triggered) {
    if (!used() || step == instrumentation::kNoId) return;
    if (!set_) set(options_.otherwise);
    // Ranks that are started again continue from a checkpoint, many steps back.
    until_ = std::min(until_, std::uint64_t{step} + options_.raise_steps);
    if (triggered) {
      if (until_ == 0) set(options_.raise);
      until_ = std::uint64_t{step} + options_.raise_steps;
    } else if (until_ != 0 && step >= until_) {
      until_ = 0;
      set(options_.otherwise);
    }
  }

 private:
  void set(const std::string& name) {
    set_ = true;
    request_(name);
  }
  DetailOptions options_;
  Request request_;
  bool set_ = false;
  std::uint64_t until_ = 0;  ///< step at which the detail is lowered; 0: not raised
};

}  // namespace shardscope::cli
