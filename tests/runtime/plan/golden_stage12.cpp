// stage12.json: flat layouts, bucket flushes and their collectives, elements communicated.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "runtime/plan/stage12.h"
#include "tests/runtime/plan/golden.h"
#include "tests/runtime/plan/gradient_reducer.h"

namespace shardscope::golden {
namespace {

using plan::ParamId;
using plan::raw;
using plan::testing_support::GradientReducer;

struct Model {
  std::vector<std::int64_t> elems;
  std::vector<ParamId> arrival;
};

Model model_from(const Json& golden) {
  Model model;
  for (const Json& param : list_at(golden, "params")) {
    model.elems.push_back(param.at("numel").get<std::int64_t>());
    if (!param.contains("shape")) continue;
    std::int64_t of_shape = 1;
    for (const Json& extent : list_at(param, "shape")) of_shape *= extent.get<std::int64_t>();
    if (of_shape != model.elems.back()) {
      throw std::invalid_argument("parameter " + std::to_string(model.elems.size() - 1) + " has numel " +
                                  std::to_string(model.elems.back()) + ", but its shape holds " +
                                  std::to_string(of_shape));
    }
  }
  for (const Json& id : list_at(golden, "grad_arrival_order")) {
    const auto param = id.get<std::uint32_t>();
    if (param >= model.elems.size()) {
      throw std::invalid_argument("grad_arrival_order names parameter " + std::to_string(param) + " of " +
                                  std::to_string(model.elems.size()));
    }
    model.arrival.push_back(static_cast<ParamId>(param));
  }
  return model;
}

plan::GradientOrder order_of(const Json& config) {
  return config.value("round_robin_gradients", false) ? plan::GradientOrder::round_robin
                                                      : plan::GradientOrder::parameter_order;
}

Json ids_of(const std::vector<ParamId>& ids) {
  Json list = Json::array();
  for (const ParamId id : ids) list.push_back(raw(id));
  return list;
}

Json layout_json(const plan::FlatLayout& layout) {
  Json json;
  json["flat_size"] = layout.flat_elems;
  json["partition_size"] = layout.shard_elems;
  json["order"] = ids_of(layout.order);
  std::vector<std::size_t> index(layout.order.size());
  for (std::size_t i = 0; i < layout.order.size(); ++i) index[raw(layout.order[i])] = i;
  json["index_map"] = index;
  json["param_to_partition_ids"] = Json::object();
  json["grad_start_offset"] = Json::object();
  json["insertion_offset"] = Json::object();
  for (std::uint32_t rank = 0; rank < layout.world; ++rank) {
    json["grad_start_offset"][std::to_string(rank)] = Json::object();
    json["insertion_offset"][std::to_string(rank)] = Json::object();
  }
  for (const plan::FlatSlice& slice : layout.slices) {
    const std::string id = std::to_string(raw(slice.param));
    const std::string rank = std::to_string(slice.rank);
    json["param_to_partition_ids"][id].push_back(slice.rank);
    json["grad_start_offset"][rank][id] = slice.param_offset;
    json["insertion_offset"][rank][id] = slice.shard_offset;
  }
  json["ranks"] = Json::array();
  for (std::uint32_t rank = 0; rank < layout.world; ++rank) {
    // DeepSpeed's bookkeeping of a partition (S4): parameters with elements in it, in the order of the flat
    // buffer, and how many elements of the first one lower ranks own.
    std::vector<plan::ParamId> params;
    std::int64_t first_offset = 0;
    for (const plan::FlatSlice& slice : layout.slices) {
      if (slice.rank != rank) continue;
      if (params.empty()) first_offset = slice.param_offset;
      params.push_back(slice.param);
    }
    json["ranks"].push_back({{"rank", rank},
                             {"padding", layout.padding_of(rank)},
                             {"params_in_partition", ids_of(params)},
                             {"first_offset", first_offset}});
  }
  return json;
}

void check_layout(const Json& golden, const Model& model, Report& report) {
  const std::uint32_t world = world_of(golden.at("world"));
  const std::string name = "layout " + golden.at("model").get<std::string>() + " world " +
                           std::to_string(world) +
                           (golden.value("round_robin_gradients", false) ? " round robin" : "");
  const Json whole = layout_json(plan::make_flat_layout(model.elems, world, order_of(golden)));
  Json got = Json::object();
  Json expected = Json::object();
  for (const auto& [key, value] : whole.items()) {
    if (!golden.contains(key)) continue;
    expected[key] = golden[key];
    got[key] = value;
  }
  if (compare(report, name, expected, got)) {
    report.agree(name, "sizes, order, owners, offsets, padding");
  }
}

Json collective_json(const plan::ReduceCollective& collective) {
  const bool reduce = collective.op == plan::ReduceCollective::Op::reduce;
  Json json = {{"op", reduce ? "reduce" : "all_reduce"}, {"numel", collective.elems}};
  if (reduce) json["dst"] = collective.rank;
  if (collective.slices.empty()) {
    json["whole_bucket"] = true;
  } else {
    for (const plan::ReduceSlice& slice : collective.slices) {
      json["slices"].push_back({slice.rank, slice.bucket_offset, slice.elems});
    }
  }
  return json;
}

/// Drives the reducer through one accumulation window and writes flushes as the file does.
class FlushLog {
 public:
  explicit FlushLog(GradientReducer& reducer) : reducer_(reducer) {}

  void backward(const std::vector<ParamId>& arrival, bool at_the_end) {
    const std::int64_t micro = reducer_.micro_step();
    for (const ParamId param : arrival) {
      const auto due = reducer_.gradient_ready(param);
      if (!at_the_end) arrived(param);
      for (const plan::DueFlush& flush : due) add(flush, micro);
    }
    for (const plan::DueFlush& flush : reducer_.end_backward()) {
      // Parameters are added one after another at the end: what follows an extra-large one names it.
      if (!flush.flush.params.empty()) arrived(flush.flush.params.front());
      add(flush, micro);
    }
    if (open_extra_large_) flushes_[*open_extra_large_]["trigger"] = "epilogue";
    open_extra_large_.reset();
  }

  Json take() { return std::move(flushes_); }

 private:
  /// DeepSpeed leaves an extra-large gradient in the bucket until the next one arrives; that one is the
  /// trigger it reports. We reduce it at once.
  void arrived(ParamId param) {
    if (open_extra_large_) flushes_[*open_extra_large_]["trigger"] = raw(param);
    open_extra_large_.reset();
  }

  void add(const plan::DueFlush& due, std::int64_t micro) {
    const bool extra_large = due.flush.reason == plan::FlushReason::extra_large;
    Json flush = {{"micro", micro},
                  {"params", ids_of(due.flush.params)},
                  {"elements", due.flush.elems},
                  {"extra_large", extra_large},
                  {"buffer_index", due.flush.buffer_index},
                  {"collectives", Json::array()}};
    flush["trigger"] =
        due.flush.trigger == plan::kNone<ParamId> ? Json("epilogue") : Json(raw(due.flush.trigger));
    for (const plan::ReduceCollective& collective : due.collectives) {
      flush["collectives"].push_back(collective_json(collective));
      (collective.op == plan::ReduceCollective::Op::reduce ? reduced_ : all_reduced_) += collective.elems;
    }
    flushes_.push_back(std::move(flush));
    if (extra_large) open_extra_large_ = flushes_.size() - 1;
  }

 public:
  [[nodiscard]] std::int64_t reduced() const noexcept { return reduced_; }
  [[nodiscard]] std::int64_t all_reduced() const noexcept { return all_reduced_; }

 private:
  GradientReducer& reducer_;
  Json flushes_ = Json::array();
  std::optional<std::size_t> open_extra_large_;
  std::int64_t reduced_ = 0;
  std::int64_t all_reduced_ = 0;
};

/// Keeps of recorded flushes what the legend defines.
Json known_flushes(Json flushes) {
  static const std::set<std::string> kFlush{"micro",       "trigger",      "params",     "elements",
                                            "extra_large", "buffer_index", "collectives"};
  for (Json& flush : flushes) {
    Json kept = Json::object();
    for (const auto& [key, value] : flush.items()) {
      if (kFlush.count(key) != 0) kept[key] = value;
    }
    flush = std::move(kept);
  }
  return flushes;
}

plan::ZeroConfig zero_config(const Json& run) {
  const Json& config = run.at("config");
  plan::ZeroConfig zero;
  zero.compat = plan::default_switches(plan::Compat::deepspeed);
  zero.stage = run.at("stage").get<std::uint32_t>();
  zero.reduce_bucket_size = config.value("reduce_bucket_size", zero.reduce_bucket_size);
  zero.overlap_comm = config.value("overlap_comm", false);
  zero.round_robin_gradients = config.value("round_robin_gradients", false);
  zero.use_multi_rank_bucket_allreduce = config.value("use_multi_rank_bucket_allreduce", true);
  zero.reduce_scatter = config.value("reduce_scatter", true);
  zero.contiguous_gradients = config.value("contiguous_gradients", true);
  zero.allgather_bucket_size = config.value("allgather_bucket_size", zero.allgather_bucket_size);
  zero.gradient_accumulation_steps = run.value("gradient_accumulation_steps", std::int64_t{1});
  return zero;
}

void check_run(const Json& run, const Model& model, const Json& sequence, Report& report) {
  const plan::ZeroConfig zero = zero_config(run);
  const std::uint32_t world = world_of(run.at("world"));
  const std::string name = "run " + run.at("run").dump() + " " + run.at("model").get<std::string>() +
                           " stage " + std::to_string(zero.stage) + " world " + std::to_string(world);
  const plan::FlatLayout layout = plan::make_flat_layout(model.elems, world, order_of(run.at("config")));
  GradientReducer reducer(layout, {.stage = zero.stage,
                                   .bucket_elems = zero.reduce_bucket_size,
                                   .overlap_comm = zero.overlap(),
                                   .contiguous_gradients = zero.contiguous_gradients,
                                   .mode = plan::reduce_mode(zero),
                                   .accumulation_steps = zero.gradient_accumulation_steps,
                                   .report_empty = true});
  FlushLog log(reducer);
  const bool at_the_end = zero.stage == 1 && !zero.overlap();
  for (std::int64_t micro = 0; micro < zero.gradient_accumulation_steps; ++micro) {
    log.backward(model.arrival, at_the_end);
  }
  Json elements = {{"all_reduce_step", 1}};  // the norm
  std::int64_t gathered = 0;
  for (const plan::Range& shard : plan::all_gather_shards(
           layout.shard_elems, world, zero.allgather_bucket_size, zero.compat.ignore_allgather_bucket_size)) {
    gathered += shard.size();
  }
  // With one rank DeepSpeed leaves the gather out.
  if (world > 1) elements["all_gather_into_tensor_step"] = gathered;
  if (log.reduced() > 0) elements["reduce"] = log.reduced();
  if (log.all_reduced() > 0) elements["all_reduce"] = log.all_reduced();

  const Json flushes = log.take();
  bool same = compare(report, name + " flushes", known_flushes(list_at(sequence, "flushes")), flushes);
  if (run.contains("comm_elements_per_rank")) {
    same &= compare(report, name + " comm_elements_per_rank", run["comm_elements_per_rank"], elements);
  }
  if (same) report.agree(name, std::to_string(flushes.size()) + " flushes, elements communicated");
}

}  // namespace

void check_stage12(const Json& file, Report& report) {
  std::map<std::string, Model> models;
  for (const auto& [name, golden] : file.at("models").items()) {
    guarded(report, "model " + name,
            [&, &name = name, &golden = golden] { models.emplace(name, model_from(golden)); });
  }
  const auto model_named = [&models](const Json& holder) -> const Model& {
    const auto name = holder.at("model").get<std::string>();
    const auto found = models.find(name);
    if (found == models.end()) throw std::invalid_argument("its model \"" + name + "\" is not in the file");
    return found->second;
  };
  std::size_t number = 0;
  for (const Json& layout : list_at(file, "layouts")) {
    guarded(report, "layout " + std::to_string(number++),
            [&] { check_layout(layout, model_named(layout), report); });
  }
  std::map<std::int64_t, const Json*> sequences;
  for (const Json& sequence : list_at(file, "sequences")) {
    guarded(report, "sequence " + std::to_string(sequences.size()),
            [&] { sequences.emplace(sequence.at("seq").get<std::int64_t>(), &sequence); });
  }
  number = 0;
  for (const Json& run : file.contains("runs") ? list_at(file, "runs") : Json::array()) {
    guarded(report, "run " + std::to_string(number++), [&] {
      const auto wanted = run.at("flush_seq").get<std::int64_t>();
      const auto found = sequences.find(wanted);
      if (found == sequences.end()) {
        throw std::invalid_argument("its flush_seq " + std::to_string(wanted) + " is not in the file");
      }
      check_run(run, model_named(run), *found->second, report);
    });
  }
}

}  // namespace shardscope::golden
