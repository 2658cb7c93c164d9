#include "tests/runtime/engine/bounded_mlp.h"

#include <algorithm>
#include <cstddef>

#include "runtime/data/stream.h"
#include "runtime/model/init.h"

namespace shardscope::engine::testing {
namespace {

using Vector = std::vector<Bounded>;

/// A sum in fp32 of n terms that are products or gradients, in any order, with fused multiply-add or
/// without: a term passes at most one product and n additions, each of which errs by 2^-24 of at most
/// sum|terms|. (1 + 2^-24)^(n+1) is below 1 + 1.01 (n+1) 2^-24 for the n here.
class Sum {
 public:
  void add(Bounded term) {
    sum_ = sum_ + term;
    magnitude_ += term.magnitude();
    ++terms_;
  }
  [[nodiscard]] Bounded value() const {
    return {sum_.value, sum_.error + 1.01 * (terms_ + 1) * kFp32.unit * magnitude_};
  }
  [[nodiscard]] double magnitude() const { return magnitude_; }

 private:
  Bounded sum_;
  double magnitude_ = 0;
  int terms_ = 0;
};

/// max(x, 0) is no steeper than x.
Bounded relu(Bounded x) { return {std::max(x.value, 0.0), x.error}; }
/// Its derivative is known only where the sign of x is.
Bounded relu_slope(Bounded x) { return {x.value > 0 ? 1.0 : 0.0, std::abs(x.value) > x.error ? 0.0 : 1.0}; }

struct Layer {
  std::size_t in = 0, out = 0;
  Vector weight, bias;      ///< fp32 master
  Vector weight16, bias16;  ///< as the layer sees them
};

class Mlp {
 public:
  Mlp(const plan::ModelPlan& model, NumberFormat format) : format_(format) {
    const model::Initializer initializer(model, model::parse_init_scheme("hash"), 1);
    for (std::size_t i = 0; i < model.params.size(); i += 2) {
      Layer layer;
      layer.out = static_cast<std::size_t>(model.params[i].shape.at(0));
      layer.in = static_cast<std::size_t>(model.params[i].shape.at(1));
      layer.weight = initial(initializer, model.params[i]);
      layer.bias = initial(initializer, model.params[i + 1]);
      layers_.push_back(std::move(layer));
    }
    store();
  }

  /// Mean squared error of a batch; adds the gradients of all layers, each rounded as backward stores it, to
  /// `gradients` (weight, bias, weight, ...; one list of terms per element).
  Bounded micro_step(const data::HostBatch& batch, double grad_scale,
                     std::vector<std::vector<Vector>>& gradients) const {
    const auto rows = static_cast<std::size_t>(batch.B);
    // Forward: inputs of each layer, and what goes into each ReLU.
    std::vector<Vector> inputs, sums;
    Vector x;
    for (const float value : batch.inputs) x.push_back(rounded({static_cast<double>(value), 0}, format_));
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const Layer& layer = layers_[l];
      inputs.push_back(x);
      Vector z(rows * layer.out);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t o = 0; o < layer.out; ++o) {
          Sum sum;
          sum.add(layer.bias16[o]);
          for (std::size_t i = 0; i < layer.in; ++i) {
            sum.add(layer.weight16[o * layer.in + i] * x[r * layer.in + i]);
          }
          z[r * layer.out + o] = rounded(sum.value(), format_);
        }
      }
      sums.push_back(z);
      x = z;
      if (l + 1 < layers_.size()) std::transform(z.begin(), z.end(), x.begin(), relu);
    }
    // The loss is a double sum, stored in fp32; its gradient is (y - t) 2 scale / n.
    Bounded loss;
    Vector dz(x.size());
    const double n = static_cast<double>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Bounded difference = rounded(x[i] - Bounded{static_cast<double>(batch.labels[i]), 0}, kFp32);
      loss = loss + difference * difference * Bounded{1 / n, 0};
      const Bounded factor = rounded(rounded({2 * grad_scale / n, 0}, kFp32), kFp32);
      dz[i] = rounded(rounded(difference * factor, kFp32), format_);
    }
    for (std::size_t l = layers_.size(); l-- > 0;) dz = backward(l, rows, dz, inputs, sums, gradients);
    return rounded(rounded(loss, kFp32), kFp32);
  }

  /// `terms` of each gradient element: k micro-steps of n ranks. Whatever is added first, a term passes at
  /// most k + 1 roundings to the format (k - 1 sums of micro-steps, on its way over the wire and at its
  /// arrival) and k + n of fp32 sums and the factor 1/n, each of at most sum|terms|.
  void update(const std::vector<std::vector<Vector>>& gradients, std::size_t micro_steps, std::size_t ranks,
              double lr, double loss_scale) {
    const double k = static_cast<double>(micro_steps), n = static_cast<double>(ranks);
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      Vector& weights = p % 2 == 0 ? layers_[p / 2].weight : layers_[p / 2].bias;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        Sum sum;
        for (const Bounded& term : gradients[p][i]) sum.add(term);
        Bounded g = sum.value();
        const double roundings = (k + 1) * format_.unit + (k + n) * kFp32.unit;
        g.error += std::expm1(roundings) * sum.magnitude() + (k * n + k + 1) * format_.tiny;
        g = g * Bounded{1 / (n * loss_scale), 0};
        weights[i] = updated(weights[i], g, lr);
      }
    }
    store();
  }

  [[nodiscard]] std::vector<Vector> weights() const {
    std::vector<Vector> all;
    for (const Layer& layer : layers_) {
      all.push_back(layer.weight);
      all.push_back(layer.bias);
    }
    return all;
  }

 private:
  static Vector initial(const model::Initializer& initializer, const plan::ParamPlan& param) {
    std::vector<float> values(static_cast<std::size_t>(param.elems));
    initializer.fill(param.id, {0, param.elems}, values.data());
    Vector exact;
    for (const float value : values) exact.push_back({static_cast<double>(value), 0});
    return exact;
  }

  /// The layer's gradients join `gradients`; returns that of what goes into the ReLU before it.
  Vector backward(std::size_t l, std::size_t rows, const Vector& dz, const std::vector<Vector>& inputs,
                  const std::vector<Vector>& sums, std::vector<std::vector<Vector>>& gradients) const {
    const Layer& layer = layers_[l];
    for (std::size_t o = 0; o < layer.out; ++o) {
      Sum bias;
      for (std::size_t r = 0; r < rows; ++r) bias.add(dz[r * layer.out + o]);
      gradients[2 * l + 1][o].push_back(rounded(bias.value(), format_));
      for (std::size_t i = 0; i < layer.in; ++i) {
        Sum weight;
        for (std::size_t r = 0; r < rows; ++r) {
          weight.add(dz[r * layer.out + o] * inputs[l][r * layer.in + i]);
        }
        gradients[2 * l][o * layer.in + i].push_back(rounded(weight.value(), format_));
      }
    }
    if (l == 0) return {};
    Vector before(rows * layer.in);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < layer.in; ++i) {
        Sum dx;
        for (std::size_t o = 0; o < layer.out; ++o) {
          dx.add(layer.weight16[o * layer.in + i] * dz[r * layer.out + o]);
        }
        before[r * layer.in + i] = rounded(dx.value(), format_) * relu_slope(sums[l - 1][r * layer.in + i]);
      }
    }
    return before;
  }

  /// w - lr g / (sqrt(g^2) + 1), eight operations of fp32, each of at most |w| + lr. d/dg g/(|g| + 1) is
  /// 1/(|g| + 1)^2, at most 1.
  static Bounded updated(Bounded w, Bounded g, double lr) {
    const Bounded next{w.value - lr * g.value / (std::abs(g.value) + 1), w.error + lr * g.error};
    return {next.value, next.error + 8 * kFp32.unit * (w.magnitude() + lr)};
  }

  void store() {
    const auto in_format = [this](const Vector& master) {
      Vector stored = master;
      if (format_.unit != kFp32.unit) {
        for (Bounded& value : stored) value = rounded(value, format_);
      }
      return stored;
    };
    for (Layer& layer : layers_) {
      layer.weight16 = in_format(layer.weight);
      layer.bias16 = in_format(layer.bias);
    }
  }

  NumberFormat format_;
  std::vector<Layer> layers_;
};

}  // namespace

BoundedRun train_bounded(const RunSpec& spec, NumberFormat format, double lr, double loss_scale) {
  config::ParseOptions parse;
  parse.world = spec.world;
  const config::TrainingConfig config = config::parse_config(spec.config.dump(), parse);
  const plan::ModelPlan model = plan::build_model_plan(spec.model);
  const auto micro_steps = static_cast<std::size_t>(config.batch.accumulation_steps);
  std::vector<std::unique_ptr<data::BatchStream>> streams;
  for (std::uint32_t rank = 0; rank < spec.world; ++rank) {
    data::StreamOptions options;
    options.path = spec.data;
    options.micro_batch = config.batch.micro_batch_size;
    options.rank = rank;
    options.world = spec.world;
    streams.push_back(data::open_stream(model.spec, options));
  }
  Mlp mlp(model, format);
  BoundedRun run;
  run.losses.resize(spec.world);
  for (std::int64_t step = 0; step < spec.steps; ++step) {
    std::vector<std::vector<Vector>> gradients;
    for (const plan::ParamPlan& param : model.params) gradients.emplace_back(param.elems);
    for (std::uint32_t rank = 0; rank < spec.world; ++rank) {
      std::vector<Bounded>& losses = run.losses[rank].emplace_back();
      for (std::size_t micro = 0; micro < micro_steps; ++micro) {
        data::HostBatch batch;
        streams[rank]->next(batch);
        const double scale = loss_scale / static_cast<double>(micro_steps);
        losses.push_back(mlp.micro_step(batch, scale, gradients));
      }
    }
    mlp.update(gradients, micro_steps, spec.world, lr, loss_scale);
  }
  run.weights = mlp.weights();
  return run;
}

}  // namespace shardscope::engine::testing
