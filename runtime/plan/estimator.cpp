#include "runtime/plan/estimator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace shardscope::plan {
namespace {

// Bytes per parameter (M11): fp32 initialisation; fp32 parameter, gradient and two moments; the same and a
// 16-bit parameter; 16-bit parameters or gradients.
constexpr std::int64_t kInit = 4;
constexpr std::int64_t kStates32 = 16;
constexpr std::int64_t kStateBytes = 18;
constexpr std::int64_t kHalf = 2;

/// Products of bytes and parameters: exact, as Python's integers are.
__extension__ using Wide = __int128;

void check(const EstimateInput& input, bool needs_layer) {
  constexpr std::int64_t kMost = 1'000'000'000;  // so that no product below exceeds 128 bits
  const auto positive = [](const char* what, std::int64_t value) {
    if (value < 1 || value > kMost) {
      throw std::invalid_argument(std::string("estimate: ") + what + " is " + std::to_string(value) +
                                  "; it must be from 1 to a billion");
    }
  };
  // The largest: 2^63 parameters * 4 bytes * 10^18 GPUs, below 2^125.
  positive("gpus per node", input.gpus_per_node);
  positive("nodes", input.nodes);
  // DeepSpeed accepts a model without parameters, and a layer without parameters of its own.
  if (input.params < 0) {
    throw std::invalid_argument("estimate: params is " + std::to_string(input.params) +
                                "; it must be at least 0");
  }
  if (needs_layer && input.largest_layer_params < 0) {
    throw std::invalid_argument("estimate: largest layer params is " +
                                std::to_string(input.largest_layer_params) + "; it must be at least 0");
  }
  if (!(input.additional_buffer_factor > 0)) {
    throw std::invalid_argument("estimate: additional buffer factor is " +
                                std::to_string(input.additional_buffer_factor) + "; it must be above 0");
  }
}

/// Python's int() of a number of bytes.
std::int64_t bytes_of(double bytes) {
  // As a double the largest int64 rounds up to 2^63, which does not fit: hence not `>`. A cast of a larger
  // value would be undefined.
  if (bytes >= static_cast<double>(std::numeric_limits<std::int64_t>::max())) {
    throw std::invalid_argument("estimate: " + std::to_string(bytes) +
                                " bytes are beyond what is counted here (8 EiB); give fewer parameters");
  }
  return static_cast<std::int64_t>(bytes);
}

/// A whole number of bytes or GPUs.
// Rounding to a double is monotonic, so values of 2^63 or more throw.
std::int64_t counted(Wide number) {
  (void)bytes_of(static_cast<double>(number));
  return static_cast<std::int64_t>(number);
}

/// a / b rounded once, as Python divides integers; a plain division of doubles would round `a` before.
double divided(Wide a, std::int64_t b) {
  constexpr int kEnough = 60;  // bits of the quotient: more than a double's 53 and one that tells ties
  int shift = 0;
  // `b` is at most 10^18 (GPUs), so that a << 1 stays below b * 2^60 < 2^120. A quotient above 2^60 already
  // is not shifted, and share() has rejected those of 2^63 and more.
  while (a != 0 && (a << 1) / b < (Wide{1} << kEnough)) {
    a <<= 1;
    ++shift;
  }
  const auto quotient = static_cast<std::uint64_t>(a / b);
  // The remainder matters only for ties: the lowest bit represents it (a sticky bit).
  return std::ldexp(static_cast<double>(quotient | (a % b != 0 ? 1U : 0U)), -shift);
}

/// Python's int(a / b) of two integers.
// M3 and M5 truncate a quotient of floats, not of integers: for large totals the two differ.
std::int64_t share(Wide total, std::int64_t ranks) {
  (void)bytes_of(static_cast<double>(total) / static_cast<double>(ranks));
  return bytes_of(divided(total, ranks));
}

std::string header(const EstimateInput& input, bool with_layer) {
  // int(count / 1e6) in Python.
  const auto millions = [](std::int64_t count) {
    return std::to_string(static_cast<std::int64_t>(static_cast<double>(count) / 1e6));
  };
  std::string text = "Estimated memory needed for params, optim states and gradients for a:\nHW: Setup with ";
  text += std::to_string(input.nodes);
  text += input.nodes > 1 ? " nodes, " : " node, ";
  text += std::to_string(input.gpus_per_node);
  text += input.gpus_per_node > 1 ? " GPUs per node.\n" : " GPU per node.\n";
  text += "SW: Model with " + millions(input.params) + "M total params";
  if (with_layer) text += ", " + millions(input.largest_layer_params) + "M largest layer params";
  return text + ".\n  per CPU  |  per GPU |   Options\n";
}

std::string line(const EstimateRow& row, const std::string& options) {
  // M7: "GB" is 2^30 bytes.
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, " %7.2fGB | %6.2fGB | ", static_cast<double>(row.cpu_bytes) / kGib,
                static_cast<double>(row.gpu_bytes) / kGib);
  return numbers + options + "\n";
}

// D3: since Python 3.11 an enumeration prints with its class name.
const char* device(bool cpu, EstimateFormula formula) {
  if (!cpu) return "none";
  switch (formula) {
    case EstimateFormula::doc:
      return "cpu";
    case EstimateFormula::deepspeed_0_19:
      return "OffloadDeviceEnum.cpu";
  }
  return "?";
}

// "cpu " and "none" have the same width, so that the columns after them line up; a longer name is not
// truncated.
std::string padded(std::string text) {
  constexpr std::size_t kWidth = 4;
  if (text.size() < kWidth) text.append(kWidth - text.size(), ' ');
  return text;
}

}  // namespace

const char* to_string(EstimateFormula formula) noexcept {
  switch (formula) {
    case EstimateFormula::doc:
      return "doc";
    case EstimateFormula::deepspeed_0_19:
      return "deepspeed-0.19";
  }
  return "?";
}

EstimateInput estimate_input(const ModelPlan& model) {
  EstimateInput input;
  input.params = model.elems;
  input.largest_layer_params = model.largest_module_elems;
  return input;
}

std::vector<EstimateRow> estimate_zero2(const EstimateInput& input) {
  // The largest layer is not read: ZeRO-2 gathers none (M2 to M4).
  check(input, false);
  const std::int64_t P = input.params;
  const std::int64_t total_gpus = counted(Wide{input.nodes} * input.gpus_per_node);
  const double f = input.additional_buffer_factor;
  std::vector<EstimateRow> rows;
  // In DeepSpeed's order (M9).
  for (const bool offload : {true, false}) {
    EstimateRow row;
    row.offload_optimizer = offload;
    double cpu = 0;
    switch (input.formula) {
      // M2 and M3 (documents), M4 by the GPUs of a node.
      case EstimateFormula::doc:
        row.gpu_bytes = counted(offload ? Wide{kHalf} * P : Wide{4} * P + share(Wide{16} * P, total_gpus));
        cpu = static_cast<double>(Wide{P} * std::max(Wide{kInit} * input.gpus_per_node, Wide{kStates32})) * f;
        break;
      // M3 (source), M4 by the GPUs of all nodes: D1 and D2.
      case EstimateFormula::deepspeed_0_19:
        row.gpu_bytes = counted(Wide{kHalf} * P + (offload ? 0 : share(Wide{kStateBytes} * P, total_gpus)));
        cpu = static_cast<double>(Wide{P} * std::max(Wide{kInit} * total_gpus, Wide{kStates32})) * f;
        break;
    }
    // Without offload both formulas agree: the host holds only the initial model, once for each GPU of the
    // node.
    if (!offload) cpu = static_cast<double>(Wide{P} * kInit * input.gpus_per_node) * f;
    row.cpu_bytes = bytes_of(cpu);
    rows.push_back(row);
  }
  return rows;
}

std::vector<EstimateRow> estimate_zero3(const EstimateInput& input) {
  check(input, true);
  const std::int64_t P = input.params;
  const std::int64_t L = input.largest_layer_params;
  const std::int64_t n = input.gpus_per_node;
  const std::int64_t total_gpus = counted(Wide{input.nodes} * n);
  const double f = input.additional_buffer_factor;
  const double share_of_node = 1.0 / static_cast<double>(input.nodes);
  // LM of M5: the largest layer gathered and its gradient, in 16 bits each.
  const std::int64_t layer = counted(Wide{kInit} * L);

  // Products are ordered as in DeepSpeed: they are truncated, so rounding must not differ.
  const auto host = [&](std::int64_t bytes_per_param, bool zero_init) {
    // M6 with `g` = 1/nodes. zero.Init shards at once; without it each GPU's process first holds the whole
    // model in fp32, and the larger of the two counts.
    if (zero_init) return static_cast<double>(Wide{P} * bytes_per_param) * share_of_node * f;
    const double sharded = static_cast<double>(bytes_per_param) * share_of_node;
    return static_cast<double>(P) * std::max(static_cast<double>(Wide{kInit} * n), sharded) * f;
  };
  std::vector<EstimateRow> rows;
  const auto add = [&](bool optimizer, bool param, bool zero_init, double cpu, std::int64_t gpu) {
    rows.push_back({optimizer, param, zero_init, bytes_of(cpu), gpu});
  };
  // Both offloaded: the GPU holds the largest layer alone. `kStateBytes` on the host include the 16-bit
  // parameters.
  for (const bool zero_init : {true, false}) add(true, true, zero_init, host(kStateBytes, zero_init), layer);
  for (const bool zero_init : {true, false}) {
    // Only the optimizer: 16-bit parameters stay on the GPUs, sharded, and are not in the host's 16 bytes.
    add(true, false, zero_init, host(kStates32, zero_init),
        counted(Wide{layer} + share(Wide{kHalf} * P, total_gpus)));
  }
  for (const bool zero_init : {true, false}) {
    // Nothing offloaded: host memory is used in initialisation only, for one layer at a time with zero.Init.
    const double cpu = static_cast<double>(Wide{zero_init ? L : P} * kInit * n) * f;
    add(false, false, zero_init, cpu, counted(Wide{layer} + share(Wide{kStateBytes} * P, total_gpus)));
  }
  return rows;
}

std::string format_zero2(const EstimateInput& input) {
  const std::vector<EstimateRow> rows = estimate_zero2(input);
  std::string text = header(input, false);
  for (const EstimateRow& row : rows) {
    text += line(row, std::string("offload_optimizer=") + device(row.offload_optimizer, input.formula));
  }
  return text;
}

std::string format_zero3(const EstimateInput& input) {
  const std::vector<EstimateRow> rows = estimate_zero3(input);
  std::string text = header(input, true);
  for (const EstimateRow& row : rows) {
    text += line(row, "offload_param=" + padded(device(row.offload_param, input.formula)) +
                          ", offload_optimizer=" + padded(device(row.offload_optimizer, input.formula)) +
                          ", zero_init=" + (row.zero_init ? "1" : "0"));
  }
  return text;
}

ThreeCases zero3_cases(const EstimateInput& input) {
  check(input, true);
  const Wide gpus = Wide{input.gpus_per_node} * input.nodes;
  ThreeCases cases;
  // Whole bytes and integer division, as in the documents' worked examples (M14).
  const Wide layer = 2 * kHalf * Wide{input.largest_layer_params};
  cases.largest_layer = cases.all_offloaded = counted(layer);
  cases.nothing_offloaded = counted(layer + kStateBytes * Wide{input.params} / gpus);
  cases.optimizer_offloaded = counted(layer + kHalf * Wide{input.params} / gpus);
  return cases;
}

std::string format_cases(const EstimateInput& input) {
  const ThreeCases cases = zero3_cases(input);
  std::array<char, 320> text{};
  // Truncated, not rounded: the documents shift by 20.
  const auto mb = [](std::int64_t bytes) { return static_cast<long long>(bytes >> 20); };
  (void)std::snprintf(
      text.data(), text.size(),
      "total params:         %6.2fM\nlargest layer params: %6.2fM\nlargest layer memory: %6lldMB\n"
      "case1 gpu memory: %6lldMB\ncase2 gpu memory: %6lldMB\ncase3 gpu memory: %6lldMB\n",
      static_cast<double>(input.params) / 1e6, static_cast<double>(input.largest_layer_params) / 1e6,
      mb(cases.largest_layer), mb(cases.nothing_offloaded), mb(cases.all_offloaded),
      mb(cases.optimizer_offloaded));
  return text.data();
}

// 4 master, 4 fp32 gradient, 2 staging copy; 2 more if 16-bit gradients accumulate between two steps.
std::int64_t pinned_bytes_zero2(std::int64_t params, std::int64_t gradient_accumulation_steps) noexcept {
  return 10 * params + (gradient_accumulation_steps > 1 ? 2 * params : 0);
}

// M12: 2P are 16-bit parameters, pinned only when they are on the host; 4P fp32 gradients.
std::int64_t pinned_bytes_zero3(std::int64_t params, bool offload_param,
                                std::int64_t gradient_accumulation_steps) noexcept {
  if (!offload_param) return 4 * params;
  return 6 * params + (gradient_accumulation_steps > 1 ? 2 * params : 0);
}

double activation_bytes(double sequence, double heads, double hidden, double batch) noexcept {
  return (2 * sequence * heads + 16 * hidden) * sequence * batch;
}

}  // namespace shardscope::plan
