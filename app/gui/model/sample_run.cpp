#include "app/gui/model/sample_run.h"

#include <filesystem>
#include <utility>

namespace shardscope::gui {

std::vector<std::string> sample_arguments(const std::string& program, const std::string& out) {
  return {program,       "simulate",
          "--model",     "gpt2",
          "--ranks",     "4",
          "--steps",     "8",
          "--straggler", "2:1.25",
          "--jitter",    "0.03",
          "--set",       "zero_optimization.stage3_prefetch_bucket_size=1000000",
          "--record",    out};
}

SampleRun::~SampleRun() {
  command_.reset();
  std::error_code ignored;
  for (const std::string& file : files_) std::filesystem::remove(file, ignored);
}

void SampleRun::start() {
  command_.reset();
  const std::string out = temporary_recording("sample");
  files_.push_back(out);
  wanted_ = true;
  command_.emplace();
  command_->start(sample_arguments(shardscope_program(), out), [this, out](CommandRun::Ended ended) {
    outcome_ = ended.problem.empty() ? Outcome{out, {}} : Outcome{{}, std::move(ended.problem)};
  });
}

std::optional<SampleRun::Outcome> SampleRun::take() {
  if (!wanted_ || running()) return std::nullopt;
  wanted_ = false;
  command_.reset();  // joins its thread, which has written outcome_
  return std::exchange(outcome_, {});
}

}  // namespace shardscope::gui
