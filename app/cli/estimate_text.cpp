#include "app/cli/estimate_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::cli {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = kMiB * 1024.0;
constexpr double kTiB = kGiB * 1024.0;

/// Unit of a table: small models would be all zeros in GB.
struct Unit {
  double bytes = kGiB;
  const char* name = "GB";
  const char* means = "GB = 2^30 bytes";
};
Unit unit_for(double largest_bytes) {
  return largest_bytes >= kGiB ? Unit{} : Unit{kMiB, "MB", "MB = 2^20 bytes"};
}
std::string in(const Unit& unit, double bytes) {
  return fmt::format("{:.2f}{}", bytes / unit.bytes, unit.name);
}
std::string in(const Unit& unit, std::int64_t bytes) { return in(unit, static_cast<double>(bytes)); }

const char* device(bool cpu) { return cpu ? "cpu" : "none"; }

double gib(double bytes) { return bytes / kGiB; }
double gib(std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

/// The formulas sum all nodes; a node pins its share.
std::int64_t pinned_per_node(const plan::EstimateInput& input, EstimatedStage stage, bool offload_param,
                             std::int64_t accumulation_steps) {
  switch (stage) {
    case EstimatedStage::zero2:
      return plan::pinned_bytes_zero2(input.params, accumulation_steps) / input.nodes;
    case EstimatedStage::zero3:
      return plan::pinned_bytes_zero3(input.params, offload_param, accumulation_steps) / input.nodes;
  }
  return 0;
}

const char* bucket_rule(plan::BufferPolicy policy) {
  switch (policy) {
    case plan::BufferPolicy::shardscope:
      return "at most; in place below stage 2, with overlap_comm up to three buckets";
    case plan::BufferPolicy::deepspeed:
      return "allocated whole, below stage 3 twice with overlap_comm";
  }
  return "";
}

const char* gathered_rule(const plan::StageEstimateInput& input) {
  if (input.model != nullptr) return "the scheduler's own highest point over three iterations";
  return input.largest_layer_params > 0 ? "at most, with the largest layer"
                                        : "at most, but for the largest layer: --largest-layer is not given";
}

std::string offload_of(const plan::StageEstimate& row) {
  if (row.offload_param) return "optimizer, param";
  return row.offload_optimizer ? "optimizer" : "none";
}

}  // namespace

nlohmann::json estimate_json(const plan::EstimateInput& input, const std::vector<plan::EstimateRow>& rows,
                             EstimatedStage stage, std::int64_t accumulation_steps) {
  nlohmann::json out = nlohmann::json::array();
  for (const plan::EstimateRow& row : rows) {
    nlohmann::json entry = {{"per_cpu_bytes", row.cpu_bytes},
                            {"per_gpu_bytes", row.gpu_bytes},
                            {"offload_optimizer", device(row.offload_optimizer)}};
    if (stage == EstimatedStage::zero3) {
      entry["offload_param"] = device(row.offload_param);
      entry["zero_init"] = row.zero_init;
    }
    entry["pinned_bytes"] =
        row.offload_optimizer ? pinned_per_node(input, stage, row.offload_param, accumulation_steps) : 0;
    out.push_back(entry);
  }
  return out;
}

std::string pinned_text(const plan::EstimateInput& input, EstimatedStage stage,
                        std::int64_t accumulation_steps) {
  std::string text = "Pinned, a part of per CPU, where pin_memory is on:\n";
  const auto line = [&](bool offload_param, const std::string& options) {
    text += fmt::format(" {:7.2f}GB | {}\n",
                        gib(pinned_per_node(input, stage, offload_param, accumulation_steps)), options);
  };
  if (stage == EstimatedStage::zero2) {
    line(false, "offload_optimizer=cpu");
    return text +
           "The documents say of ZeRO-2 that it cannot be controlled; this is what DeepSpeed 0.19 pins with "
           "offload_optimizer.pin_memory.\n";
  }
  for (const bool offload_param : {true, false}) {
    line(offload_param, std::string("offload_param=") + device(offload_param));
  }
  return text;
}

namespace {

const char* width(std::int64_t bytes) { return bytes == 2 ? "16-bit" : "fp32"; }

/// With the weights of frozen parameters, where they are `here`.
std::string expression(const std::string& text, const plan::StateExpression& frozen, bool here) {
  const std::string weights = here ? frozen.text("F") : "";
  if (weights.empty()) return text;
  return text == "0" ? weights : text + " + " + weights;
}
std::string device_expression(const plan::StageEstimate& row) {
  return expression(row.device_text, row.frozen, !row.frozen_on_host);
}
/// Per node, as the figure beside it: one rank's part, "14S/n", times the g ranks of the node.
std::string host_expression(const plan::StageEstimate& row) {
  std::string text = expression(row.host_expression.text(), row.frozen, row.frozen_on_host);
  constexpr std::string_view kOfRank = "/n", kOfNode = " g/n";
  for (auto at = text.find(kOfRank); at != std::string::npos; at = text.find(kOfRank, at + kOfNode.size())) {
    text.replace(at, kOfRank.size(), kOfNode);
  }
  return text;
}

}  // namespace

std::string stages_text(const plan::StageEstimateInput& input, const std::vector<plan::StageEstimate>& rows,
                        const std::optional<plan::TransformerShape>& activations) {
  const std::int64_t params = input.model != nullptr ? plan::trainable_elems(*input.model) : input.params;
  const std::int64_t frozen = input.model != nullptr ? input.model->elems - params : 0;
  std::int64_t largest = 0;
  for (const plan::StageEstimate& row : rows) largest = std::max(largest, row.device_total());
  const Unit unit = unit_for(static_cast<double>(largest));
  std::string text = fmt::format(
      "S = {}parameters, n = {} GPUs on {} node{}, g = {} of a node; {} parameters and {} gradients, fp32 "
      "Adam; {}\n",
      frozen == 0 ? fmt::format("{} ", params) : fmt::format("{} trained and F = {} frozen ", params, frozen),
      input.gpus_per_node * input.nodes, input.nodes, input.nodes > 1 ? "s" : "", input.gpus_per_node,
      width(input.bytes.param), width(input.bytes.gradient), unit.means);
  const auto add_row = [&text](const auto&... cells) {
    text +=
        fmt::format("{:<5} {:<16} | {:<{}} {:>11} {:>11} {:>11} {:>11} | {:<{}} {:>11} {:>11}\n", cells...);
  };
  std::size_t wide = 7;
  std::size_t host_wide = 7;
  for (const plan::StageEstimate& row : rows) {
    wide = std::max(wide, device_expression(row).size());
    host_wide = std::max(host_wide, host_expression(row).size());
  }
  add_row("stage", "offload to CPU", "per GPU", wide, "states", "buckets", "gathered", "sum", "per CPU",
          host_wide, "states", "pinned");
  for (const plan::StageEstimate& row : rows) {
    add_row(row.stage, offload_of(row), device_expression(row), wide, in(unit, row.model_states),
            in(unit, row.buckets), in(unit, row.gathered), in(unit, row.device_total()), host_expression(row),
            host_wide, in(unit, row.host_states), in(unit, row.pinned));
  }
  text += fmt::format("buckets: gradients on their way to their owner; reduce_bucket_size {}; {}\n",
                      input.zero.reduce_bucket_size, bucket_rule(input.buffers));
  if (input.zero.compat.gradient_buffers && input.buffers == plan::BufferPolicy::shardscope) {
    text +=
        "compat gradient_buffers: buckets are buffers, and sums hold the fp32 copies of the update, 4 bytes "
        "for "
        "each gradient of a rank, where they are more than the buckets (stage 3: beside them).\n";
  }
  text += fmt::format(
      "gathered: stage-3 parameters; stage3_max_live_parameters {}, stage3_prefetch_bucket_size {}; {}\n",
      input.zero.max_live_parameters, input.zero.prefetch_bucket_size, gathered_rule(input));
  return text +
         (activations ? activations_text(*activations) : "Activations come on top: estimate activations.\n");
}

nlohmann::json stages_json(const std::vector<plan::StageEstimate>& rows,
                           const std::optional<plan::TransformerShape>& activations) {
  nlohmann::json out = nlohmann::json::array();
  for (const plan::StageEstimate& row : rows) {
    nlohmann::json entry = {{"stage", row.stage},
                            {"offload_optimizer", device(row.offload_optimizer)},
                            {"offload_param", device(row.offload_param)},
                            {"expression", device_expression(row)},
                            {"model_states_bytes", row.model_states},
                            {"bucket_bytes_at_most", row.buckets},
                            {"gathered_bytes_at_most", row.gathered},
                            {"buffers_bytes_at_most", row.buckets + row.gathered},
                            {"gradient_copies_bytes", row.copies},
                            {"per_gpu_bytes", row.device_total()},
                            {"host_expression", host_expression(row)},
                            {"per_cpu_bytes", row.host_states},
                            {"pinned_bytes", row.pinned}};
    if (activations) entry["activations"] = activations_json(*activations);
    out.push_back(entry);
  }
  return out;
}

std::string activations_text(const plan::TransformerShape& shape) {
  const plan::ActivationEstimate activations = plan::estimate_activations(shape);
  const Unit unit = unit_for(activations.kept);
  return fmt::format(
      "Activations of a micro-batch, {:g} x {:g} tokens, {:g} layers of width {:g} with {:g} heads, 16-bit, "
      "around ({}):\n"
      "{:>12}  one layer: (2 sequence heads + 16 hidden) sequence batch\n"
      "{:>12}  all layers kept\n"
      "{:>12}  a checkpoint every {:g} layer{}: the checkpoints and what is recomputed between two\n",
      shape.batch_per_gpu, shape.sequence, shape.layers, shape.hidden, shape.heads, unit.means,
      in(unit, activations.per_layer), in(unit, activations.kept), in(unit, activations.checkpointed),
      shape.checkpoint_interval, shape.checkpoint_interval == 1 ? "" : "s");
}

nlohmann::json activations_json(const plan::TransformerShape& shape) {
  const plan::ActivationEstimate activations = plan::estimate_activations(shape);
  return {{"sequence", shape.sequence},
          {"heads", shape.heads},
          {"hidden", shape.hidden},
          {"layers", shape.layers},
          {"micro_batch", shape.batch_per_gpu},
          {"checkpoint_interval", shape.checkpoint_interval},
          {"per_layer_bytes", activations.per_layer},
          {"kept_bytes", activations.kept},
          {"checkpointed_bytes", activations.checkpointed}};
}

std::string zero_tables_text(const plan::ZeroTable1& table1, const std::vector<plan::ZeroTable2Row>& table2) {
  std::string text =
      "ZeRO, Table 1: model states per GPU in GB (10^9 bytes), 16-bit with Adam: os / os+g / os+g+p\n";
  text += fmt::format("{:>6}", "DP");
  for (const double params : table1.params) {
    text += fmt::format(" | {:<22}", fmt::format("{:g}B", params / 1e9));
  }
  text += '\n';
  for (const plan::ZeroTable1Row& row : table1.rows) {
    text += fmt::format("{:>6}", row.ranks);
    for (const auto& cell : row.bytes) {
      text += fmt::format(" | {:<22}",
                          fmt::format("{} / {} / {}", plan::as_in_table1(cell[0] / 1e9),
                                      plan::as_in_table1(cell[1] / 1e9), plan::as_in_table1(cell[2] / 1e9)));
    }
    text += '\n';
  }
  text += "Printed as in the paper: from 100 GB on without decimals, not rounded; --json has every byte.\n\n";
  text += "ZeRO, Table 2, theory: largest model by GPUs of 32 GB, billions of parameters\n";
  text += fmt::format("{:>4} {:>6} | {:>10} {:>10} {:>10} {:>10}\n", "MP", "GPUs", "baseline", "os", "os+g",
                      "os+g+p");
  for (const plan::ZeroTable2Row& row : table2) {
    text += fmt::format("{:>4} {:>6} |", row.model_parallel, row.gpus);
    for (const double params : row.params) {
      text += fmt::format(" {:>9}B", plan::as_in_table2(params, row.model_parallel));
    }
    text += '\n';
  }
  text += "As in the paper, which multiplies the rounded figures of MP 1.\n";
  return text;
}

nlohmann::json zero_tables_json(const plan::ZeroTable1& table1,
                                const std::vector<plan::ZeroTable2Row>& table2) {
  nlohmann::json first = nlohmann::json::array();
  for (const plan::ZeroTable1Row& row : table1.rows) {
    for (std::size_t i = 0; i < row.bytes.size(); ++i) {
      first.push_back({{"data_parallel", row.ranks},
                       {"params", table1.params[i]},
                       {"os_bytes", row.bytes[i][0]},
                       {"os_g_bytes", row.bytes[i][1]},
                       {"os_g_p_bytes", row.bytes[i][2]},
                       {"as_printed",
                        {plan::as_in_table1(row.bytes[i][0] / 1e9), plan::as_in_table1(row.bytes[i][1] / 1e9),
                         plan::as_in_table1(row.bytes[i][2] / 1e9)}}});
    }
  }
  nlohmann::json second = nlohmann::json::array();
  for (const plan::ZeroTable2Row& row : table2) {
    second.push_back({{"model_parallel", row.model_parallel},
                      {"gpus", row.gpus},
                      {"baseline", row.params[0]},
                      {"os", row.params[1]},
                      {"os_g", row.params[2]},
                      {"os_g_p", row.params[3]}});
  }
  return {{"table1", first}, {"table2", second}};
}

std::string infinity_text(const std::vector<plan::InfinityRow>& rows) {
  std::string text = fmt::format("{:>8} {:>6} {:>7} {:>6} | {:>12} {:>14} | {:>10} {:>10}\n", "params",
                                 "layers", "hidden", "heads", "states", "checkpoints", "MSWM", "AWM");
  for (const plan::InfinityRow& row : rows) {
    text += fmt::format("{:>7}T {:>6g} {:>7g} {:>6g} | {:>9}TiB {:>6}TiB/node | {:>7}GiB {:>7}GiB\n",
                        plan::rounded_half_up(row.params / 1e12, 2), row.shape.layers, row.shape.hidden,
                        row.shape.heads, plan::rounded_half_up(row.state_bytes / kTiB, 2),
                        plan::rounded_half_up(row.checkpoint_bytes_per_node / kTiB, 2),
                        plan::rounded_half_up(gib(row.model_state_working_bytes), 2),
                        plan::rounded_half_up(gib(row.activation_working_bytes), 2));
  }
  if (!rows.empty()) {
    const plan::TransformerShape& shape = rows.front().shape;
    text += fmt::format(
        "Sequence {:g}, batch {:g} per GPU and {:g} per node, a checkpoint every {:g} layer{}. MSWM, AWM: "
        "working memory of a GPU for model states and activations.\n",
        shape.sequence, shape.batch_per_gpu, shape.batch_per_node, shape.checkpoint_interval,
        shape.checkpoint_interval == 1 ? "" : "s");
  }
  return text;
}

nlohmann::json infinity_json(const std::vector<plan::InfinityRow>& rows) {
  nlohmann::json out = nlohmann::json::array();
  for (const plan::InfinityRow& row : rows) {
    out.push_back({{"layers", row.shape.layers},
                   {"hidden", row.shape.hidden},
                   {"heads", row.shape.heads},
                   {"sequence", row.shape.sequence},
                   {"batch_per_gpu", row.shape.batch_per_gpu},
                   {"batch_per_node", row.shape.batch_per_node},
                   {"checkpoint_interval", row.shape.checkpoint_interval},
                   {"params", row.params},
                   {"state_bytes", row.state_bytes},
                   {"checkpoint_bytes_per_node", row.checkpoint_bytes_per_node},
                   {"model_state_working_bytes", row.model_state_working_bytes},
                   {"activation_working_bytes", row.activation_working_bytes}});
  }
  return out;
}

}  // namespace shardscope::cli
