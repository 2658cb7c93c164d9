#include "app/analysis/efficiency.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "app/analysis/framework.h"
#include "app/analysis/quantity_text.h"
#include "app/analysis/zero_settings.h"

namespace shardscope::analysis {
namespace {

/// Dense peak rates of 16-bit matrix products, 10^12 operations per second (metrics.md 2.12).
std::optional<double> peak_of(const instrumentation::RunTables& tables) {
  const std::string& type = tables.params.empty() ? std::string() : tables.params.front().dtype;
  if (type != "bf16" && type != "f16" && type != "fp16") return std::nullopt;
  constexpr std::array<std::pair<std::string_view, double>, 4> kPeaks{
      {{"A100", 312}, {"H100", 989}, {"H200", 989}, {"B200", 2250}}};
  for (const auto& [name, tflops] : kPeaks) {
    if (tables.hardware.find(name) != std::string::npos || tables.device.find(name) != std::string::npos)
      return tflops;
  }
  return std::nullopt;
}

bool is_looked_up(const instrumentation::RunTables& tables, const instrumentation::ParamInfo& param) {
  if (param.modules.size() != 1 || param.modules.front() >= tables.modules.size()) return false;
  return tables.modules[param.modules.front()].type.find("mbedding") != std::string::npos;
}

}  // namespace

std::optional<Efficiency> efficiency_of(const instrumentation::RunTables& tables,
                                        std::optional<double> tokens_per_s) {
  std::int64_t trained = 0, frozen = 0;
  for (const instrumentation::ParamInfo& param : tables.params) {
    if (is_looked_up(tables, param)) continue;  // an embedding: a lookup without a multiplication
    (param.frozen ? frozen : trained) += param.elems;
  }
  if (trained + frozen == 0) return std::nullopt;
  Efficiency out;
  out.flop_per_token = 6 * static_cast<double>(trained) + 4 * static_cast<double>(frozen);
  out.formula = fmt::format("6 x {} parameters that are multiplied", elements_text(trained));
  if (frozen > 0) out.formula += fmt::format(" + 4 x {} frozen ones", elements_text(frozen));
  out.formula += "; products of attention scores and recomputation not counted";
  if (!tokens_per_s || tables.world == 0) return out;
  // Tokens of a step are those of one copy of the model: the ranks of a copy read the same data.
  const std::uint32_t ranks = framework_of(tables) == Framework::zero ? copy_size(tables) : tables.world;
  out.tflops_per_rank = out.flop_per_token * *tokens_per_s * 1e-12 / ranks;
  out.peak_tflops = peak_of(tables);
  if (out.peak_tflops) out.mfu_pct = 100 * *out.tflops_per_rank / *out.peak_tflops;
  return out;
}

std::string rate_text(const Efficiency& efficiency) {
  if (!efficiency.tflops_per_rank) return {};
  return fmt::format("{:.3g} TFLOP/s a rank{}", *efficiency.tflops_per_rank,
                     efficiency.mfu_pct ? fmt::format(", {:.1f} % of {:.0f} TFLOP/s (MFU)",
                                                      *efficiency.mfu_pct, *efficiency.peak_tflops)
                                        : ", the hardware's peak is not known");
}

std::string energy_text(const EnergyUse& energy) {
  std::string out = fmt::format("{:.0f} W", energy.watts);
  if (energy.tokens_per_joule)
    out += fmt::format(", {:.3g} tokens per joule (tokens/s / power of all GPUs)", *energy.tokens_per_joule);
  return out;
}

std::string flop_text(const Efficiency& efficiency) {
  return fmt::format("a token takes {:.3g} FLOP: {}", efficiency.flop_per_token, efficiency.formula);
}

}  // namespace shardscope::analysis
