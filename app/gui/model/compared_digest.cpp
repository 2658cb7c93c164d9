#include "app/gui/model/compared_digest.h"

namespace shardscope::gui {
namespace {

/// Of a live run without end, about 1 KB each.
constexpr std::size_t kMostComparedRankSteps = std::size_t{1} << 16;

}  // namespace

bool ComparedDigest::advance(const Session& run, std::chrono::nanoseconds time) {
  known_ = run.analysis()->digest;
  if (known_) {
    own_.reset();
    return true;
  }
  const store::Store& store = run.store();
  // Late first events of a rank move the time 0, to which all times of a digest refer.
  if (!own_ || run_ != run.number() || origin_ns_ != store.origin_ns()) {
    own_ = std::make_unique<analysis::Digest>();
    own_->keep_at_most(kMostComparedRankSteps);
    run_ = run.number();
    origin_ns_ = store.origin_ns();
  }
  return own_->update(store, time);
}

const analysis::Digest* digest_for(const Session& run, const analysis::Digest* given) {
  return given != nullptr ? given : run.analysis()->digest.get();
}

}  // namespace shardscope::gui
