// Initial weights, element by element: a pure function of (seed, parameter, element), so that a rank can fill
// its own shard and a model larger than one rank's memory is never whole in one place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan/model_plan.h"
#include "runtime/plan/partition.h"

namespace shardscope::model {

enum class InitScheme : std::uint8_t {
  gpt2,  ///< normal, see Initializer
  hash,  ///< uniform from a 64-bit hash, as in the recorded DeepSpeed runs (tests/golden/losses.json, "init
         ///< hash")
  sine,  ///< 0.02 sin(...), same file, "init sin"
};

/// By name: gpt2, hash, sin. Throws std::invalid_argument listing the names.
[[nodiscard]] InitScheme parse_init_scheme(const std::string& name);

/// `gpt2`: weights and embeddings of token models are normal with deviation 0.02, and 0.02/sqrt(R) for the
/// last linear of each of the R residual branches (Radford et al. 2019, section 2.3); linear weights of
/// vector models have deviation 1/sqrt(in). Biases are 0, layer-norm weights 1. The numbers come from
/// Philox 4x32-10 (Salmon et al. 2011) with key = seed and counter = (element / 4, parameter).
class Initializer {
 public:
  Initializer(const plan::ModelPlan& model, InitScheme scheme, std::uint64_t seed);
  /// Elements [range.begin, range.end) of a parameter, row-major, to `out` (host, fp32, range.size()).
  /// The caller keeps the range within the parameter.
  void fill(plan::ParamId param, plan::Range range, float* out) const;

 private:
  struct ParamInit {
    plan::ParamKind kind{};
    double deviation = 0;
    std::int64_t in = 1;  ///< columns of a matrix
  };
  InitScheme scheme_;
  std::uint64_t seed_;
  std::vector<ParamInit> params_;
};

}  // namespace shardscope::model
