#include "runtime/checkpoint/weights.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "runtime/base/checksum.h"
#include "runtime/base/finite.h"
#include "runtime/plan/model_check.h"

namespace shardscope::checkpoint {
namespace {

constexpr std::string_view kPrefix = "transformer.";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

/// See [Note: GPT-2 names].
bool is_conv1d(const plan::ParamPlan& param) {
  return param.shape.size() == 2 &&
         (ends_with(param.name, ".c_attn.weight") || ends_with(param.name, ".c_proj.weight") ||
          ends_with(param.name, ".c_fc.weight"));
}

std::vector<std::int64_t> file_shape(const plan::ParamPlan& param) {
  std::vector<std::int64_t> shape = param.shape;
  if (is_conv1d(param)) std::reverse(shape.begin(), shape.end());
  return shape;
}

TensorType tensor_type(kernels::DType type) noexcept {
  switch (type) {
    case kernels::DType::f32:
      return TensorType::f32;
    case kernels::DType::bf16:
      return TensorType::bf16;
    case kernels::DType::f16:
      return TensorType::f16;
    case kernels::DType::i8:
      break;  // never the type of stored weights
  }
  return TensorType::f32;
}

std::vector<TensorSpec> tensor_specs(const plan::ModelPlan& model, TensorType type) {
  std::vector<TensorSpec> specs;
  for (const plan::ParamPlan& param : model.params) specs.push_back({param.name, type, file_shape(param)});
  return specs;
}

}  // namespace

// Reports all problems at once.
WeightReader::WeightReader(const std::string& path, const plan::ModelPlan& model)
    : model_(model), file_(path) {
  std::string problems;
  std::set<std::string> used;
  for (const plan::ParamPlan& param : model.params) {
    // By the model's name, then without the prefix, as in published files.
    const TensorInfo* tensor = file_.find(param.name);
    // By its own name first: a file may have both.
    if (tensor == nullptr && param.name.compare(0, kPrefix.size(), kPrefix) == 0) {
      tensor = file_.find(std::string_view(param.name).substr(kPrefix.size()));
    }
    if (tensor == nullptr) {
      problems += "\n  " + param.name + " is missing";
      // For a transposed weight the shape in the file.
    } else if (tensor->shape != file_shape(param)) {
      problems += "\n  " + tensor->name + " has shape " + plan::shape_text(tensor->shape) +
                  ", the model needs " + plan::shape_text(file_shape(param));
      // Integers are no weights, although the reader could convert them.
    } else if (tensor->type != TensorType::f32 && tensor->type != TensorType::bf16 &&
               tensor->type != TensorType::f16 && tensor->type != TensorType::f64) {
      problems +=
          "\n  " + tensor->name + " has dtype " + tensor->type_name + "; F32, BF16, F16 or F64 is needed";
    } else {
      // By the file's name, which may lack the prefix.
      used.insert(tensor->name);
    }
    // Null in case of an error; the constructor throws below, so it is never read.
    sources_.push_back({tensor, is_conv1d(param)});
  }
  if (!problems.empty()) {
    throw CheckpointError("weights: " + path + " does not fit the model " + model.spec.name + ":" + problems);
  }
  // Unused tensors are no error: published files contain buffers such as attention masks.
  for (const TensorInfo& tensor : file_.tensors()) {
    if (used.count(tensor.name) == 0) unused_.push_back(tensor.name);
  }
}

void WeightReader::read(plan::ParamId param, plan::Range range, float* out) const {
  const Source& source = sources_.at(plan::raw(param));
  const TensorInfo& tensor = *source.tensor;
  if (range.begin < 0 || range.end > tensor.elems) {
    throw CheckpointError("weights: elements " + std::to_string(range.begin) + " to " +
                          std::to_string(range.end) + " of " + tensor.name + " do not exist");
  }
  read_unchecked(source, range, out);
  // After the conversion: a finite double may be infinite as fp32.
  if (const auto bad = base::first_not_finite({out, static_cast<std::size_t>(range.size())})) {
    throw CheckpointError("weights: " + file_.path() + ": element " +
                          std::to_string(range.begin + static_cast<std::int64_t>(*bad)) + " of " +
                          model_.params[plan::raw(param)].name + " is " + base::not_finite_text(out[*bad]) +
                          " as fp32; give a file of finite weights, such as an earlier checkpoint's");
  }
}

void WeightReader::read_unchecked(const Source& source, plan::Range range, float* out) const {
  const TensorInfo& tensor = *source.tensor;
  if (!source.transposed) {
    file_.read(tensor, range.begin, {out, static_cast<std::size_t>(range.size())});
    return;
  }
  // Row `o` of the model's [out,in] is column `o` of the file's [in,out].
  // The file's shape is [in, out]: its rows are inputs.
  const std::int64_t in = tensor.shape[0];
  const std::int64_t rows = tensor.shape[1];
  // Row by row of the model: a range may begin and end inside one.
  for (std::int64_t at = range.begin; at < range.end;) {
    const std::int64_t row = at / in;
    const std::int64_t column = at % in;
    const std::int64_t count = std::min(range.end - at, in - column);
    // Successive elements of a model row are `rows` elements apart in the file.
    file_.read_strided(tensor, column * rows + row, rows, {out, static_cast<std::size_t>(count)});
    at += count;
    out += count;
  }
}

// Types and bytes of each parameter, in the model's order: names and layout of the file do not matter.
std::uint64_t WeightReader::checksum() const {
  std::vector<std::uint64_t> sums;
  for (const Source& source : sources_) {
    sums.push_back(static_cast<std::uint64_t>(source.tensor->type));
    sums.push_back(base::checksum(file_.bytes(*source.tensor)));
  }
  return base::checksum(std::as_bytes(std::span(sums)));
}

WeightWriter::WeightWriter(const std::string& path, const plan::ModelPlan& model, kernels::DType type)
    : model_(model),
      file_(path, tensor_specs(model, tensor_type(type)), {{"format", "pt"}}),
      written_(model.params.size(), false) {}

void WeightWriter::write(plan::ParamId param, std::span<const float> values) {
  const plan::ParamPlan& info = model_.params.at(plan::raw(param));
  if (static_cast<std::int64_t>(values.size()) != info.elems) {
    throw CheckpointError("weights: " + info.name + " has " + std::to_string(info.elems) +
                          " elements, but got " + std::to_string(values.size()));
  }
  written_[plan::raw(param)] = true;
  if (!is_conv1d(info)) return file_.write(plan::raw(param), 0, values);
  const auto rows = static_cast<std::size_t>(info.shape[0]);
  const auto in = static_cast<std::size_t>(info.shape[1]);
  // A second copy of one parameter: the others are written in place.
  std::vector<float> transposed(values.size());
  // From the model's [out, in] to the file's [in, out].
  for (std::size_t o = 0; o < rows; ++o) {
    for (std::size_t i = 0; i < in; ++i) transposed[i * rows + o] = values[o * in + i];
  }
  file_.write(plan::raw(param), 0, transposed);
}

// Before the file gets its name: a file with unwritten zeros would look complete.
void WeightWriter::finish() {
  for (std::size_t i = 0; i < written_.size(); ++i) {
    if (!written_[i]) throw CheckpointError("weights: " + model_.params[i].name + " was never written");
  }
  file_.finish();
}

}  // namespace shardscope::checkpoint
