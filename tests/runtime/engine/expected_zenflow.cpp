#include "tests/runtime/engine/expected_zenflow.h"

#include <algorithm>

namespace shardscope::engine::testing {
namespace {

std::int64_t up_to_multiple(std::int64_t value, std::int64_t of) { return (value + of - 1) / of * of; }

}  // namespace

std::optional<std::uint8_t> ExpectedZenFlow::selection_cause(std::int64_t step) const {
  if (step == warm_up) return std::uint8_t{1};
  if (step > warm_up && select_interval > 0 && step % select_interval == 0) return std::uint8_t{2};
  return std::nullopt;
}

std::optional<std::uint8_t> ExpectedZenFlow::update_cause(std::int64_t step, bool voted) const {
  if (warms_up(step)) return std::uint8_t{0};
  if (update_interval > 0 && (step - warm_up) % update_interval == update_interval - 1)
    return std::uint8_t{1};
  if (update_interval == 0 && voted) return std::uint8_t{2};
  if (select_interval > 0 && step % select_interval == select_interval - 1) return std::uint8_t{3};
  return std::nullopt;
}

ExpectedVotes::ExpectedVotes(const ExpectedZenFlow& rule, std::size_t matrices)
    : rule_(rule), mean_(matrices, 0), rest_(matrices, 0), steps_(rule.warm_up) {}

bool ExpectedVotes::decides(const std::vector<Mass>& step) {
  const double u = static_cast<double>(++steps_);
  std::size_t votes = 0;
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    mean_[i] = (mean_[i] * (u - 1) + step.at(i).chosen) / u / (10 * rule_.topk);
    rest_[i] += (step.at(i).all - step.at(i).chosen) / (10 * (1 - rule_.topk));
    if (rest_[i] >= mean_[i]) ++votes;
  }
  const bool decided =
      votes >= static_cast<std::size_t>(rule_.auto_ratio * static_cast<double>(mean_.size()));
  if (decided) {
    steps_ = 0;
    std::fill(rest_.begin(), rest_.end(), 0);
  }
  return decided;
}

std::int64_t ExpectedPiece::chosen_columns(double topk) const {
  return static_cast<std::int64_t>(topk * static_cast<double>(std::min(columns, elems)));
}

std::int64_t ExpectedPiece::held(double topk) const {
  if (columns == 0) return elems;
  const std::int64_t last_row = (first_column + elems - 1) / columns;  // the first one is row 0
  return std::min(elems, chosen_columns(topk) * (last_row + 1));
}

std::int64_t ExpectedPiece::fewest_in(std::int64_t of) const { return of * (elems / columns); }

std::int64_t ExpectedPiece::most_in(std::int64_t of) const {
  return std::min(elems, of * (up_to_multiple(elems, columns) / columns));
}

std::vector<std::vector<std::int64_t>> mlp_shapes() {
  std::vector<std::vector<std::int64_t>> shapes{{64, 10}, {64}};
  for (int block = 0; block < 3; ++block)
    shapes.insert(shapes.end(), {{64}, {64}, {256, 64}, {256}, {64, 256}, {64}});
  shapes.insert(shapes.end(), {{1, 64}, {1}});
  return shapes;
}

ExpectedShare expected_share(const std::vector<std::vector<std::int64_t>>& shapes, int stage,
                             std::uint32_t world, std::uint32_t rank, std::int64_t element_bytes) {
  const auto elems_of = [](const std::vector<std::int64_t>& shape) {
    return shape.size() == 2 ? shape[0] * shape[1] : shape[0];
  };
  ExpectedShare share;
  const auto add = [&](std::uint32_t param, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    const std::int64_t columns = shapes[param].size() == 2 ? shapes[param][1] : 0;
    share.pieces.push_back({param, end - begin, columns, columns > 0 ? begin % columns : 0});
  };
  const std::int64_t ranks = world, mine = rank;
  std::int64_t all = 0;
  for (const auto& shape : shapes) all += elems_of(shape);
  const std::int64_t part = up_to_multiple(all, 2 * ranks) / ranks;
  std::int64_t before = 0;
  for (std::uint32_t param = 0; param < shapes.size(); ++param) {
    const std::int64_t elems = elems_of(shapes[param]);
    if (stage == 3) {
      const std::int64_t shard = (elems + ranks - 1) / ranks;
      add(param, mine * shard, std::min(elems, (mine + 1) * shard));
      share.elems += up_to_multiple(shard, 16 / element_bytes);
    } else {
      add(param, std::max(mine * part - before, std::int64_t{0}),
          std::min(elems, (mine + 1) * part - before));
    }
    before += elems;
  }
  if (stage != 3) share.elems = part;
  return share;
}

}  // namespace shardscope::engine::testing
