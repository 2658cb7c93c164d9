// Runs `shardscope what-if` for the panel and reads its results.
#include <exception>
#include <filesystem>
#include <utility>

#include "app/gui/model/what_if.h"
#include "app/store/recording.h"

namespace shardscope::gui {
namespace {

/// Plan counts of the simulated run; empty if it was not stored or cannot be read.
std::vector<PlanCount> counts_of(const std::string& recording) {
  if (recording.empty()) return {};
  try {
    store::RecordingInfo info;
    const store::Store store = store::open_recording(recording, &info);
    return plan_counts(store, analysis::summarize(store));
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

WhatIfRun::~WhatIfRun() {
  command_.reset();
  std::error_code ignored;
  for (const std::string& file : files_) std::filesystem::remove(file, ignored);
}

void WhatIfRun::forget() {
  command_ = std::make_unique<CommandRun>();  // ends a running command; its outcome is dropped below
  const std::lock_guard lock(mutex_);
  outcome_.reset();
}

void WhatIfRun::start(std::vector<std::string> argv, std::string recording) {
  forget();
  if (!recording.empty()) files_.push_back(recording);
  command_->start(std::move(argv), [this, recording = std::move(recording)](CommandRun::Ended ended) {
    auto outcome = std::make_shared<Outcome>();
    outcome->problem = std::move(ended.problem);
    if (outcome->problem.empty()) {
      auto [result, problem] = read_what_if(ended.out);
      if (result) {
        result->warnings = std::move(ended.words);
        result->recording = recording;
        result->counts = counts_of(recording);
      }
      outcome->result = std::move(result);
      outcome->problem = std::move(problem);
    }
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
  });
}

std::shared_ptr<const WhatIfRun::Outcome> WhatIfRun::outcome() const {
  const std::lock_guard lock(mutex_);
  return outcome_;
}

}  // namespace shardscope::gui
