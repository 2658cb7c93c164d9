// The simplest engine there can be: every parameter and gradient whole in memory, on one rank. It also
// records the calls of the executor.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "runtime/device/device.h"
#include "runtime/model/executor.h"
#include "runtime/model/init.h"

namespace shardscope::model {

class WholeModelHooks final : public Hooks {
 public:
  WholeModelHooks(const plan::ModelPlan& plan, kernels::DType type) : plan_(plan), type_(type) {
    for (const plan::ParamPlan& param : plan.params) {
      const auto elems = static_cast<std::size_t>(param.elems);
      stored_.emplace_back(elems * kernels::size_of(type));
      grads_.emplace_back(elems * kernels::size_of(type));
      master_.emplace_back(elems);
      momentum_.emplace_back(elems, 0.0F);
      variance_.emplace_back(elems, 0.0F);
      asked_.push_back(false);
    }
  }

  void initialise(InitScheme scheme, std::uint64_t seed) {
    const Initializer initializer(plan_, scheme, seed);
    for (const plan::ParamPlan& param : plan_.params) {
      initializer.fill(param.id, {0, param.elems}, master_[plan::raw(param.id)].data());
    }
    publish();
  }
  [[nodiscard]] std::vector<float>& master(plan::ParamId param) { return master_[plan::raw(param)]; }
  /// Copies the master weights, rounded, to where the executor reads them.
  void publish() {
    for (std::size_t p = 0; p < master_.size(); ++p) {
      kernels::cast({}, {stored_[p].data(), type_}, {master_[p].data(), kernels::DType::f32},
                    static_cast<std::int64_t>(master_[p].size()));
    }
  }
  [[nodiscard]] std::vector<float> gradient(plan::ParamId param) const {
    const std::size_t p = plan::raw(param);
    std::vector<float> out(master_[p].size());
    kernels::cast({}, {out.data(), kernels::DType::f32}, {grads_[p].data(), type_},
                  static_cast<std::int64_t>(out.size()));
    return out;
  }

  /// Clears what the next backward accumulates onto.
  void begin_backward() { asked_.assign(asked_.size(), accumulate_all); }
  bool accumulate_all = false;  ///< as in a later micro-step

  void step(kernels::AdamW settings) {
    for (std::size_t p = 0; p < master_.size(); ++p) {
      kernels::adamw_step({}, master_[p].data(), momentum_[p].data(), variance_[p].data(),
                          {stored_[p].data(), type_}, {grads_[p].data(), type_},
                          static_cast<std::int64_t>(master_[p].size()), settings);
    }
  }
  [[nodiscard]] double gradient_norm() {
    double sum = 0;
    std::uint32_t bad = 0;
    for (std::size_t p = 0; p < grads_.size(); ++p) {
      kernels::squared_norm({}, &sum, &bad, {grads_[p].data(), type_},
                            static_cast<std::int64_t>(master_[p].size()));
    }
    return std::sqrt(sum);
  }

  void pre_forward(plan::ModuleId m) override { log("pre_forward", m); }
  void post_forward(plan::ModuleId m) override { log("post_forward", m); }
  void begin_recompute(plan::ModuleId m) override { log("begin_recompute", m); }
  void end_recompute(plan::ModuleId m) override { log("end_recompute", m); }
  void pre_backward(plan::ModuleId m) override { log("pre_backward", m); }
  void post_backward(plan::ModuleId m) override { log("post_backward", m); }
  void use_external(plan::ParamId p, plan::ModuleId m) override {
    calls.push_back("use_external " + std::to_string(plan::raw(p)) + " in " + std::to_string(plan::raw(m)));
  }
  [[nodiscard]] kernels::ConstPtr param(plan::ParamId p) override {
    return {stored_[plan::raw(p)].data(), type_};
  }
  [[nodiscard]] GradTarget grad(plan::ParamId p) override {
    const bool accumulate = asked_[plan::raw(p)];
    asked_[plan::raw(p)] = true;
    return {{grads_[plan::raw(p)].data(), type_}, accumulate};
  }
  void grad_ready(plan::ParamId p) override {
    ready.push_back(plan::raw(p));
    calls.push_back("grad_ready " + std::to_string(plan::raw(p)));
  }

  std::vector<std::string> calls;
  std::vector<std::uint32_t> ready;  ///< parameters in the order their gradients arrived

 private:
  void log(const char* what, plan::ModuleId m) {
    calls.push_back(std::string(what) + " " + std::to_string(plan::raw(m)));
  }
  const plan::ModelPlan& plan_;
  kernels::DType type_;
  std::vector<std::vector<std::byte>> stored_, grads_;
  std::vector<std::vector<float>> master_, momentum_, variance_;
  std::vector<bool> asked_;
};

}  // namespace shardscope::model
