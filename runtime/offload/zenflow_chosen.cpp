#include "runtime/offload/zenflow_chosen.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "runtime/execution/context.h"
#include "runtime/execution/events.h"
#include "runtime/offload/floats.h"
#include "runtime/offload/transfer.h"

namespace shardscope::offload {
namespace {

namespace ev = shardscope::instrumentation;
using execution::bytes_of;
using kernels::DType;

}  // namespace

ZenFlowChosen::ZenFlowChosen(const ZenFlowInput& input, execution::EventPool& events, const HostStates& whole)
    : in_(input), device_(input.device), events_(events), whole_(whole) {
  std::int64_t columns = 0;
  for (const plan::ColumnSlice& slice : in_.slices) {
    // Offsets for the maximum that may be chosen (capacity); pack() then makes the items contiguous.
    items_.push_back({slice, {}, capacity_, 0, columns});
    capacity_ += slice.capacity();
    columns += slice.choose;
    scores_elems_ += slice.columns;
  }
  // On the compute stream, which packs, updates and writes the chosen elements.
  const auto packed = [&](std::size_t bytes, ev::MemoryCategory category) {
    return device_.memory().allocate(bytes, {category, ev::kNoId}, device_.compute());
  };
  device::Arena& host = host_pool(device_, in_.pin_memory);
  constexpr std::array kCategories{ev::MemoryCategory::master_weight, ev::MemoryCategory::momentum,
                                   ev::MemoryCategory::variance};
  for (std::size_t k = 0; k < states_.size(); ++k) {
    if (!in_.settings.offload_chosen) {
      states_[k] = packed(floats(capacity_), kCategories[k]);
      continue;
    }
    // zenflow.offload: packed states in host memory. Between a take_out() and the next bring_back() only the
    // copy stream uses them.
    states_[k] = host.allocate(floats(capacity_), {kCategories[k], ev::kNoId}, device_.copy());
    for (Stage& stage : stages_) {
      stage.states[k] = device_.memory().allocate(floats(std::min(capacity_, in_.piece_elems)),
                                                  {ev::MemoryCategory::temporary}, device_.copy());
    }
  }
  for (Stage& stage : stages_) stage.there = device_.make_event();
  // Packed as the states are: AdamW reads and writes dense arrays.
  gradient_ = packed(bytes_of(capacity_, in_.gradient.type), ev::MemoryCategory::temporary);
  params_ = packed(bytes_of(capacity_, in_.type), ev::MemoryCategory::temporary);
  const std::size_t chosen_bytes = static_cast<std::size_t>(columns) * sizeof(std::int32_t);
  chosen_ = packed(chosen_bytes, ev::MemoryCategory::temporary);
  // Pinned, independent of pin_memory.
  host_chosen_ = device_.pinned().allocate(chosen_bytes, {ev::MemoryCategory::temporary}, device_.compute());
  scores_ = packed(floats(scores_elems_), ev::MemoryCategory::temporary);
  host_scores_ =
      device_.pinned().allocate(floats(scores_elems_), {ev::MemoryCategory::temporary}, device_.compute());
  // One buffer for three uses that never overlap: states out, states back, values of offloaded parameters.
  moving_ = device_.pinned().allocate(floats(capacity_), {ev::MemoryCategory::temporary}, device_.copy());
  if (device_.backend() != kernels::Backend::cost) return;
  for (const Item& item : items_) {
    for (std::int32_t column = 0; column < item.slice.columns; ++column) {
      // Without values all gradients count as equal: the score is the number of elements.
      even_scores_.push_back(static_cast<float>(kernels::elems_in_columns(item.part(), &column, 1)));
    }
  }
}

const float* ZenFlowChosen::scores() const noexcept {
  return even_scores_.empty() ? data(host_scores_) : even_scores_.data();
}

/// scores (scores_elems_): sum of |gradient| down each column, over the rows that this rank owns. Gradients
/// still include the loss scale, which does not change the order of columns.
void ZenFlowChosen::score() {
  std::int64_t offset = 0;
  for (const Item& item : items_) {
    if (!item.matrix()) continue;
    device_.compute().run(
        [sums = data(scores_) + offset, part = item.part(),
         gradient = execution::advance(in_.gradient, item.slice.owned_offset)](const kernels::Exec& exec) {
          kernels::column_abs_sums(exec, sums, gradient, part);
        });
    offset += item.slice.columns;
  }
  // 4 bytes per column: the columns are chosen on the host.
  device_.copy_async(host_scores_.data(), scores_.data(), floats(scores_elems_), device_.compute());
  // The host reads the scores next.
  device_.compute().synchronize();
}

void ZenFlowChosen::choose(std::uint32_t step, plan::SelectionCause cause) {
  const float* scores = this->scores();
  for (Item& item : items_) {
    if (!item.matrix()) continue;
    choose(item, scores);
    scores += item.slice.columns;
  }
  pack();
  for (const Item& item : items_) {
    if (!item.matrix()) continue;
    execution::emit_host<ev::EventKind::columns_selected>(
        {.cause = cause,
         .param = plan::raw(item.slice.param),
         .step = step,
         .columns = static_cast<std::uint32_t>(item.columns.size()),
         .elems_chosen = item.packed_elems,
         .elems_of_rank = item.slice.elems});
  }
}

void ZenFlowChosen::choose(Item& item, const float* scores) const {
  const std::int64_t columns = item.slice.columns;
  // A row or more: every column has an element here.
  if (item.slice.elems >= columns) {
    item.columns = plan::select_columns({scores, static_cast<std::size_t>(columns)}, in_.settings.topk_ratio);
    return;
  }
  // Less than a row: only the columns in it may be chosen.
  std::vector<std::int32_t> touched;
  for (std::int64_t i = 0; i < item.slice.elems; ++i) {
    // The slice begins at first_column and may wrap into the next row.
    touched.push_back(static_cast<std::int32_t>((item.slice.first_column + i) % columns));
  }
  std::sort(touched.begin(), touched.end());
  std::vector<float> of_touched;
  // Other columns have a score of 0 on this rank and would displace those that it can update.
  for (const std::int32_t column : touched) of_touched.push_back(scores[column]);
  item.columns.clear();
  for (const std::int32_t i : plan::select_columns(of_touched, in_.settings.topk_ratio)) {
    item.columns.push_back(touched[static_cast<std::size_t>(i)]);
  }
}

/// Items are contiguous: the packed buffers are dense, and one AdamW call updates all of them.
void ZenFlowChosen::pack() {
  elems_ = 0;
  for (Item& item : items_) {
    // Slices without columns (no matrix) are chosen whole, in every step.
    item.packed_offset = elems_;
    item.packed_elems = item.matrix()
                            ? kernels::elems_in_columns(item.part(), item.columns.data(),
                                                        static_cast<std::int64_t>(item.columns.size()))
                            : item.slice.elems;
    elems_ += item.packed_elems;
    std::copy(item.columns.begin(), item.columns.end(),
              static_cast<std::int32_t*>(host_chosen_.data()) + item.chosen_offset);
  }
  // In choose() no earlier copy still reads the host's buffer: score() has waited for the compute stream.
  device_.copy_async(chosen_.data(), host_chosen_.data(), host_chosen_.bytes(), device_.compute());
  any_ = true;
}

std::vector<double> ZenFlowChosen::masses() const {
  // (matrices, 2) in double: absolute gradients in chosen columns, in all.
  std::vector<double> sums(2 * in_.matrices, 0.0);
  const float* scores = this->scores();
  for (const Item& item : items_) {
    if (!item.matrix()) continue;
    // Matrix indices are the same on all ranks, so that their sums match.
    const std::uint32_t matrix = in_.matrix_of[plan::raw(item.slice.param)];
    for (std::int64_t column = 0; column < item.slice.columns; ++column) {
      sums[2 * matrix + 1] += static_cast<double>(scores[column]);
    }
    for (const std::int32_t column : item.columns) sums[2 * matrix] += static_cast<double>(scores[column]);
    scores += item.slice.columns;
  }
  // Every rank has slices of some matrices only; whole matrices vote.
  in_.sum_over_ranks(sums);
  return sums;
}

/// One state at a time: from the device to moving_ by the copy stream (states in host memory are read there),
/// then scattered to the columns by the worker. The wait in the loop frees moving_ for the next state.
void ZenFlowChosen::bring_back() {
  if (!any_ || back_) return;
  events_.order(device_.compute(), device_.copy());
  for (std::size_t k = 0; k < states_.size(); ++k) {
    const device::Buffer& packed = in_.settings.offload_chosen ? states_[k] : moving_;
    if (&packed == &moving_) {
      transfer(device_, ev::TransferKind::device_to_host, moving_.data(), states_[k].data(), floats(elems_),
               {});
    }
    events_.order(device_.copy(), device_.worker());
    device_.worker().run([this, &packed, whole = whole_[k]](const kernels::Exec& exec) {
      for (const Item& item : items_) {
        float* to = whole + item.slice.owned_offset;
        const float* from = data(packed) + item.packed_offset;
        if (item.matrix()) {
          kernels::put_columns(exec, {to, DType::f32}, {from, DType::f32}, item.part(), item.columns.data(),
                               static_cast<std::int64_t>(item.columns.size()));
        } else {
          kernels::cast(exec, {to, DType::f32}, {from, DType::f32}, item.packed_elems);
        }
      }
    });
    device_.worker().synchronize();
  }
  back_ = true;
}

/// The reverse. The wait in the loop frees moving_; the last order() lets compute use the copies.
void ZenFlowChosen::take_out() {
  for (std::size_t k = 0; k < states_.size(); ++k) {
    const device::Buffer& packed = in_.settings.offload_chosen ? states_[k] : moving_;
    device_.worker().run([this, &packed, whole = whole_[k]](const kernels::Exec& exec) {
      for (const Item& item : items_) {
        const float* from = whole + item.slice.owned_offset;
        float* to = data(packed) + item.packed_offset;
        if (item.matrix()) {
          kernels::take_columns(exec, {to, DType::f32}, {from, DType::f32}, item.part(), item.columns.data(),
                                static_cast<std::int64_t>(item.columns.size()));
        } else {
          kernels::cast(exec, {to, DType::f32}, {from, DType::f32}, item.packed_elems);
        }
      }
    });
    events_.order(device_.worker(), device_.copy());
    if (&packed == &moving_) {
      transfer(device_, ev::TransferKind::host_to_device, states_[k].data(), moving_.data(), floats(elems_),
               {});
    }
    device_.copy().synchronize();
  }
  events_.order(device_.copy(), device_.compute());
  back_ = true;
}

/// Packs the gradients of chosen elements on the device, updates them, and writes the new values to the
/// parameters; all on the compute stream unless states or parameters are on the host.
void ZenFlowChosen::step(std::uint32_t step, const kernels::AdamW& settings) {
  // From here on the packed states are newer than those in host memory.
  back_ = false;
  device::Stream& compute = device_.compute();
  const ev::Fields<ev::EventKind::optimizer_begin> fields{.sub_group = 0, .step = step, .elems = elems_};
  execution::emit_on<ev::EventKind::optimizer_begin>(compute, fields);
  compute.run([this](const kernels::Exec& exec) {
    const DType type = in_.gradient.type;
    for (const Item& item : items_) {
      // owned_offset counts elements of the owned range, packed_offset those of the packed arrays.
      const kernels::ConstPtr from = execution::advance(in_.gradient, item.slice.owned_offset);
      const kernels::Ptr to = execution::advance(kernels::Ptr{gradient_.data(), type}, item.packed_offset);
      if (item.matrix()) {
        kernels::take_columns(exec, to, from, item.part(), chosen(item),
                              static_cast<std::int64_t>(item.columns.size()));
      } else {
        kernels::cast(exec, to, from, item.packed_elems);
      }
    }
  });
  update(settings);
  put();
  execution::emit_end_on<ev::EventKind::optimizer_begin>(compute, fields);
}

kernels::Ptr ZenFlowChosen::values() const noexcept {
  // In fp32 the master weights are the parameters.
  const bool masters = in_.type == DType::f32 && !in_.settings.offload_chosen;
  return {masters ? states_[0].data() : params_.data(), in_.type};
}

/// One kernel over all chosen elements of the rank, across matrices.
void ZenFlowChosen::update(const kernels::AdamW& settings) {
  if (in_.settings.offload_chosen) return update_by_pieces(settings);
  device_.compute().run([this, settings](const kernels::Exec& exec) {
    kernels::adamw_step(exec, data(states_[0]), data(states_[1]), data(states_[2]),
                        {in_.type == DType::f32 ? nullptr : params_.data(), in_.type},
                        {gradient_.data(), in_.gradient.type}, elems_, settings);
  });
}

/// States on the host: piece k + 1 is copied to the device while piece k is updated, and back afterwards. Two
/// stages alternate. All copies are in one stream, so a stage is overwritten only after its piece has been
/// copied out.
void ZenFlowChosen::update_by_pieces(const kernels::AdamW& settings) {
  const std::int64_t pieces = (elems_ + in_.piece_elems - 1) / in_.piece_elems;
  const auto range_of = [&](std::int64_t piece) {
    return plan::Range{piece * in_.piece_elems, std::min(elems_, (piece + 1) * in_.piece_elems)};
  };
  const auto bring = [&](std::int64_t piece) {
    const plan::Range range = range_of(piece);
    const Stage& stage = stages_[static_cast<std::size_t>(piece % 2)];
    for (std::size_t k = 0; k < states_.size(); ++k) {
      transfer(device_, ev::TransferKind::host_to_device, stage.states[k].data(),
               data(states_[k]) + range.begin, floats(range.size()), {});
    }
    device_.copy().record(*stage.there);
  };
  if (pieces > 0) bring(0);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    // The copy stream first copies the previous piece out of that stage.
    if (piece + 1 < pieces) bring(piece + 1);
    const plan::Range range = range_of(piece);
    const Stage& stage = stages_[static_cast<std::size_t>(piece % 2)];
    device_.compute().wait(*stage.there);
    device_.compute().run([this, &stage, range, settings](const kernels::Exec& exec) {
      float* master = data(stage.states[0]);
      const kernels::Ptr to = execution::advance(values(), range.begin);
      const bool rounded = in_.type != DType::f32;
      kernels::adamw_step(
          exec, master, data(stage.states[1]), data(stage.states[2]), {rounded ? to.data : nullptr, in_.type},
          execution::advance(kernels::ConstPtr{gradient_.data(), in_.gradient.type}, range.begin),
          range.size(), settings);
      // In fp32 the stage is reused, so the values are kept packed.
      if (!rounded) kernels::cast(exec, to, {master, DType::f32}, range.size());
    });
    events_.order(device_.compute(), device_.copy());
    for (std::size_t k = 0; k < states_.size(); ++k) {
      transfer(device_, ev::TransferKind::device_to_host, data(states_[k]) + range.begin,
               stage.states[k].data(), floats(range.size()), {});
    }
  }
}

/// For parameters that are not in one device buffer: opens each where it is stored and scatters the packed
/// values there, from the device's copy or from moving_, on the stream returned by the store.
void ZenFlowChosen::put_where_they_rest() {
  // One copy to the host for all items, since some shards are there; those on the device read `packed`
  // directly.
  const kernels::Ptr packed = values();
  events_.order(device_.compute(), device_.copy());
  transfer(device_, ev::TransferKind::device_to_host, moving_.data(), packed.data, bytes_of(elems_, in_.type),
           {});
  for (const Item& item : items_) {
    // The rank's shard of the parameter; the slice begins at its start. open() orders the returned stream
    // after the copy stream, close() the copy stream after it.
    const optim::StoredPart part = in_.params.open(item.slice.param);
    // The columns too are read from memory that this stream can access.
    const bool on_device = part.stream == &device_.compute();
    part.stream->run(
        [&item, to = part.data,
         from = execution::advance(kernels::Ptr{on_device ? packed.data : moving_.data(), in_.type},
                                   item.packed_offset),
         columns = on_device ? chosen(item) : item.columns.data()](const kernels::Exec& exec) {
          if (item.matrix()) {
            kernels::put_columns(exec, to, from, item.part(), columns,
                                 static_cast<std::int64_t>(item.columns.size()));
          } else {
            kernels::cast(exec, to, from, item.packed_elems);
          }
        });
    in_.params.close(item.slice.param, optim::PartUse::changed);
  }
}

void ZenFlowChosen::put() {
  if (!in_.params.in_place()) return put_where_they_rest();
  device_.compute().run([this](const kernels::Exec& exec) {
    const kernels::ConstPtr packed = values();
    for (const Item& item : items_) {
      const kernels::ConstPtr from = execution::advance(packed, item.packed_offset);
      // Only the chosen columns are written: the others have the values last published by the host.
      const std::int64_t first = item.slice.owned_offset;
      const kernels::Ptr to = in_.params.at({first, first + item.slice.elems});
      if (item.matrix()) {
        kernels::put_columns(exec, to, from, item.part(), chosen(item),
                             static_cast<std::int64_t>(item.columns.size()));
      } else {
        kernels::cast(exec, to, from, item.packed_elems);
      }
    }
  });
}

/// For each matrix: the count, then that many columns.
std::vector<std::int32_t> ZenFlowChosen::columns() const {
  std::vector<std::int32_t> all;
  for (const Item& item : items_) {
    if (!item.matrix()) continue;
    all.push_back(static_cast<std::int32_t>(item.columns.size()));
    all.insert(all.end(), item.columns.begin(), item.columns.end());
  }
  return all;
}

/// Columns come from a file: every number is checked before it is used as an index.
void ZenFlowChosen::set_columns(const std::vector<std::int32_t>& columns) {
  std::size_t at = 0;
  const auto require = [](bool good) {
    if (!good)
      throw std::invalid_argument(
          "zenflow: these chosen columns are not those of this rank's "
          "parameters, or more than topk_ratio lets be chosen");
  };
  for (Item& item : items_) {
    if (!item.matrix()) continue;
    // At most `choose` columns, the capacity of the packed buffers.
    require(at < columns.size() && columns[at] >= 0 && columns[at] <= item.slice.choose);
    const auto count = static_cast<std::size_t>(columns[at++]);
    require(columns.size() - at >= count);
    const auto first = columns.begin() + static_cast<std::ptrdiff_t>(at);
    const auto last = first + static_cast<std::ptrdiff_t>(count);
    for (auto column = first; column != last; ++column) {
      // Within the matrix and ascending, as the kernels expect them.
      require(*column >= 0 && *column < item.slice.columns && (column == first || *column > *(column - 1)));
    }
    item.columns.assign(first, last);
    at += count;
  }
  require(at == columns.size());
  pack();
}

}  // namespace shardscope::offload
