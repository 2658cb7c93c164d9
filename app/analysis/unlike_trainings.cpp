#include "app/analysis/unlike_trainings.h"

#include <fmt/format.h>

#include <optional>

#include "app/analysis/statistics.h"

namespace shardscope::analysis {
namespace {

/// The median over steps: batches may vary in size.
std::optional<double> tokens_of_a_step(const Run& run) {
  std::vector<double> tokens;
  for (const store::StepRow& row : run.store->steps()) {
    if (row.end_ns != store::kOpen && row.tokens > 0) tokens.push_back(static_cast<double>(row.tokens));
  }
  return tokens.empty() ? std::nullopt : std::optional(quantile(std::move(tokens), 0.5));
}

std::string model_of(const Summary& summary) {
  const std::string name = summary.model.empty() ? "a model without a name" : summary.model;
  return summary.params > 0 ? fmt::format("{} ({} parameters)", name, summary.params) : name;
}

}  // namespace

std::vector<std::string> unlike_trainings(const Run& a, const Run& b) {
  std::vector<std::string> out;
  const Summary &of_a = *a.summary, &of_b = *b.summary;
  if (of_a.model != of_b.model || of_a.params != of_b.params)
    out.push_back(fmt::format("model: {} and {}", model_of(of_a), model_of(of_b)));
  if (of_a.world != of_b.world) out.push_back(fmt::format("ranks: {} and {}", of_a.world, of_b.world));
  // Documents and padded batches vary slightly between runs; a different batch size differs by more.
  constexpr double kLike = 0.05;
  const auto tokens_a = tokens_of_a_step(a), tokens_b = tokens_of_a_step(b);
  if (tokens_a && tokens_b && (*tokens_b < (1 - kLike) * *tokens_a || *tokens_a < (1 - kLike) * *tokens_b))
    out.push_back(fmt::format("{}: {:.0f} and {:.0f}", kUnlikeTokens, *tokens_a, *tokens_b));
  return out;
}

std::string unlike_text(const std::vector<std::string>& unlike) {
  std::string out;
  for (const std::string& one : unlike) out += (out.empty() ? " (" : "; ") + one;
  return out.empty() ? out : out + ")";
}

}  // namespace shardscope::analysis
