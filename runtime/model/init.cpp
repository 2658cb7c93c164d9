#include "runtime/model/init.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "runtime/base/hash.h"
#include "runtime/model/philox.h"
#include "runtime/model/program.h"

namespace shardscope::model {
namespace {

constexpr double kGptDeviation = 0.02;

/// Weights of the last linear of each residual branch, and how many branches the model has.
struct ResidualEnds {
  std::vector<plan::ParamId> weights;
  std::int64_t branches = 0;
};

const Node* last_linear(const Node& node) {
  if (node.kind == plan::NodeKind::linear) return &node;
  for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
    if (const Node* found = last_linear(*child)) return found;
  }
  return nullptr;
}

void find_residual_ends(const Node& node, ResidualEnds& ends) {
  if (node.kind == plan::NodeKind::residual) {
    ++ends.branches;
    if (const Node* last = last_linear(node)) ends.weights.push_back(last->weight);
  }
  for (const Node& child : node.children) find_residual_ends(child, ends);
}

/// Uniform in (0, 1): never 0, whose logarithm is infinite.
double open_unit(std::uint32_t bits) noexcept { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

/// Four independent standard normal numbers (Box and Muller 1958) for elements 4*block .. 4*block+3.
std::array<double, 4> normals(std::uint64_t seed, std::uint32_t param, std::uint64_t block) noexcept {
  const PhiloxCounter bits =
      philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), param, 0},
             {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  std::array<double, 4> out{};
  for (std::size_t pair = 0; pair < 2; ++pair) {
    const double radius = std::sqrt(-2 * std::log(open_unit(bits[2 * pair])));
    const double angle = 2 * std::numbers::pi * open_unit(bits[2 * pair + 1]);
    out[2 * pair] = radius * std::cos(angle);
    out[2 * pair + 1] = radius * std::sin(angle);
  }
  return out;
}

void fill_normal(double deviation, std::uint64_t seed, std::uint32_t param, plan::Range range, float* out) {
  for (std::int64_t i = range.begin; i < range.end;) {
    const std::array<double, 4> block = normals(seed, param, static_cast<std::uint64_t>(i) / 4);
    for (std::int64_t k = i % 4; k < 4 && i < range.end; ++k, ++i) {
      *out++ = static_cast<float>(deviation * block[static_cast<std::size_t>(k)]);
    }
  }
}

}  // namespace

InitScheme parse_init_scheme(const std::string& name) {
  if (name == "gpt2") return InitScheme::gpt2;
  if (name == "hash") return InitScheme::hash;
  if (name == "sin") return InitScheme::sine;
  throw std::invalid_argument("initial weights: \"" + name + "\" is unknown; give gpt2, hash or sin");
}

Initializer::Initializer(const plan::ModelPlan& model, InitScheme scheme, std::uint64_t seed)
    : scheme_(scheme), seed_(seed) {
  ResidualEnds ends;
  const Program program(model);
  find_residual_ends(program.root(), ends);
  const bool vectors = model.spec.input == plan::InputKind::vectors;
  for (const plan::ParamPlan& param : model.params) {
    ParamInit init;
    init.kind = param.kind;
    init.in = param.shape.back();
    const bool linear = param.kind == plan::ParamKind::matrix;
    init.deviation = vectors && linear ? 1 / std::sqrt(static_cast<double>(init.in)) : kGptDeviation;
    params_.push_back(init);
  }
  const double shrink = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, ends.branches)));
  if (vectors) return;
  for (const plan::ParamId param : ends.weights) params_[plan::raw(param)].deviation = kGptDeviation * shrink;
}

void Initializer::fill(plan::ParamId param, plan::Range range, float* out) const {
  const ParamInit& init = params_[plan::raw(param)];
  const std::uint32_t p = plan::raw(param);
  const bool layer_norm_weight = init.kind == plan::ParamKind::layer_norm_weight;
  switch (scheme_) {
    case InitScheme::gpt2:
      if (init.kind == plan::ParamKind::matrix || init.kind == plan::ParamKind::embedding) {
        fill_normal(init.deviation, seed_, p, range, out);
      } else {
        std::fill_n(out, range.size(), layer_norm_weight ? 1.0F : 0.0F);
      }
      return;
    case InitScheme::hash: {
      double offset = 0;
      double factor = 0;
      switch (init.kind) {
        case plan::ParamKind::matrix:
          factor = std::sqrt(3.0 / static_cast<double>(init.in));
          break;
        case plan::ParamKind::bias:
          factor = 0.05;
          break;
        case plan::ParamKind::layer_norm_weight:
          offset = 1;
          factor = 0.1;
          break;
        case plan::ParamKind::embedding:
          factor = 0.5;
          break;
      }
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        *out++ = static_cast<float>(offset + factor * base::uniform(p + 1, static_cast<std::uint64_t>(i)));
      }
      return;
    }
    case InitScheme::sine:
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const double wave = 0.02 * std::sin(0.37 * static_cast<double>(i) + 0.11 * static_cast<double>(p));
        *out++ = static_cast<float>((layer_norm_weight ? 1 : 0) + wave);
      }
      return;
  }
}

}  // namespace shardscope::model
