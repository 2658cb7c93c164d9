#include "runtime/checkpoint/consolidate.h"

#include <cstdint>
#include <vector>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/weights.h"

namespace shardscope::checkpoint {

void consolidate(const std::string& checkpoint, const std::string& output) {
  const CheckpointReader reader(checkpoint);
  // The checkpoint has names and shapes, but no modules: enough of a plan to write weights.
  plan::ModelPlan model;
  model.spec.name = reader.manifest().model;
  for (const SavedParam& saved : reader.manifest().params) {
    plan::ParamPlan param;
    param.id = plan::ParamId{static_cast<std::uint32_t>(model.params.size())};
    param.name = saved.name;
    param.shape = saved.shape;
    param.elems = saved.elems;
    model.params.push_back(param);
  }
  WeightWriter writer(output, model, kernels::DType::f32);
  // One parameter at a time, for any world and stage.
  std::vector<float> values;
  for (const plan::ParamPlan& param : model.params) {
    values.resize(static_cast<std::size_t>(param.elems));
    // Master weights: fp32 whatever type the run trained in (O12).
    reader.read(base::StateKind::master, param.id, {0, param.elems}, values.data());
    writer.write(param.id, values);
  }
  writer.finish();
}

}  // namespace shardscope::checkpoint
