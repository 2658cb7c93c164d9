#include "app/gui/model/states_at_time.h"

#include <algorithm>
#include <utility>

namespace shardscope::gui {

void StatesAtTime::begin_frame(std::uint64_t run, const store::Store& store, std::int64_t at_ns,
                               std::size_t params, std::optional<std::chrono::nanoseconds> budget) {
  // Parameters of another run must not be taken for those of this one.
  if (run != key_.run || params != key_.params) ranks_.clear();
  key_ = {run, store.revision(), at_ns, params};
  budget_ = budget;
  spent_ = std::chrono::nanoseconds(0);
  turn_ = std::exchange(oldest_left_out_, kNever);
  ++frame_;
}

const StatesAtTime::OfRank& StatesAtTime::of(const store::Store& store, std::uint32_t rank) {
  Kept& kept = ranks_[rank];
  if (kept.rank.current && kept.key == key_) return kept.rank;
  const auto leave_out = [&]() -> const OfRank& {
    kept.rank.current = false;
    oldest_left_out_ = std::min(oldest_left_out_, kept.read_in);
    return kept.rank;
  };
  if (budget_ && (kept.read_in > turn_ || (spent_.count() > 0 && spent_ >= *budget_))) return leave_out();
  const auto began = std::chrono::steady_clock::now();
  if (budget_ && !store.read_states(rank, key_.at_ns, *budget_ - spent_)) {
    spent_ += std::chrono::steady_clock::now() - began;
    return leave_out();
  }
  kept.rank.states.assign(key_.params, {});
  store.param_states(rank, key_.at_ns, kept.rank.states);
  // After the read, which finds damage.
  kept.rank.known = store.is_known(rank, key_.at_ns);
  kept.rank.current = true;
  kept.key = key_;
  kept.read_in = frame_;
  spent_ += std::chrono::steady_clock::now() - began;
  return kept.rank;
}

}  // namespace shardscope::gui
