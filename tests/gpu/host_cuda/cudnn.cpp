// The part of cuDNN's backend API that kernels/cuda/cudnn_graph.cpp uses, as its manual describes it:
// descriptors that are set, finalized and then fixed; graphs of matrix products, pointwise operations,
// reductions and reshapes, worked through operation by operation in fp32. What the manual calls wrong is
// refused. The first engine it proposes can never be planned, and its workspace is filled with garbage.
#include "tests/gpu/host_cuda/cudnn.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>

#include "kernels/cuda/cudnn_library.h"
#include "tests/gpu/host_cuda/numbers.h"
#include "tests/gpu/host_cuda/runtime.h"

namespace shardscope::host_cuda {
namespace {

constexpr std::int64_t kWorkspaceBytes = 1000;

[[noreturn]] void wrong(const std::string& what) {
  std::fprintf(stderr, "host cuDNN: %s\n", what.c_str());
  std::abort();
}

struct Descriptor {
  struct Attribute {
    cudnnBackendAttributeType_t type;
    std::int64_t count;
    std::vector<std::byte> bytes;
  };
  cudnnBackendDescriptorType_t type;
  bool final = false;
  bool hopeless = false;  ///< an engine that cannot be planned
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;

  [[nodiscard]] bool has(cudnnBackendAttributeName_t name) const { return attributes.contains(name); }
  template <class T>
  [[nodiscard]] std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) wrong("attribute " + std::to_string(name) + " was not set");
    std::vector<T> out(found->second.bytes.size() / sizeof(T));
    std::memcpy(out.data(), found->second.bytes.data(), out.size() * sizeof(T));
    return out;
  }
  template <class T>
  [[nodiscard]] T one(cudnnBackendAttributeName_t name) const {
    return all<T>(name).at(0);
  }
  [[nodiscard]] const Descriptor& ref(cudnnBackendAttributeName_t name) const {
    return *one<const Descriptor*>(name);
  }
};

Descriptor& of(cudnnBackendDescriptor_t descriptor) { return *static_cast<Descriptor*>(descriptor); }

std::size_t size_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;  // enumerations, float
  }
}

using Index = std::array<std::int64_t, 4>;

/// A tensor while its graph is worked through: its values by place, in the order of its last dimension first.
struct Tensor {
  explicit Tensor(const Descriptor& d)
      : type(d.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        id(d.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)) {
    const auto dims = d.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    const auto steps = d.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    std::copy_n(dims.begin(), 4, sizes.begin());
    std::copy_n(steps.begin(), 4, strides.begin());
    is_virtual = d.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    by_value = d.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  }
  [[nodiscard]] std::size_t at(const Index& i) const {  // a dimension of 1 is the same everywhere
    std::int64_t place = 0;
    for (std::size_t d = 0; d < 4; ++d) place = place * sizes[d] + (sizes[d] == 1 ? 0 : i[d]);
    return static_cast<std::size_t>(place);
  }
  [[nodiscard]] std::int64_t offset(const Index& i) const {
    std::int64_t out = 0;
    for (std::size_t d = 0; d < 4; ++d) out += i[d] * strides[d];
    return out;
  }
  void each(const std::function<void(const Index&)>& f) const {
    Index i;
    for (i[0] = 0; i[0] < sizes[0]; ++i[0])
      for (i[1] = 0; i[1] < sizes[1]; ++i[1])
        for (i[2] = 0; i[2] < sizes[2]; ++i[2])
          for (i[3] = 0; i[3] < sizes[3]; ++i[3]) f(i);
  }
  /// Of the numbers; indices and truths are never in memory.
  [[nodiscard]] kernels::DType kept_as() const {
    if (type == CUDNN_DATA_BFLOAT16) return kernels::DType::bf16;
    return type == CUDNN_DATA_HALF ? kernels::DType::f16 : kernels::DType::f32;
  }

  cudnnDataType_t type;
  std::int64_t id;
  Index sizes{}, strides{};
  bool is_virtual, by_value;
  void* memory = nullptr;  ///< as the device sees it
  std::vector<float> values;
};

/// A graph at work.
class Work {
 public:
  Work(const std::map<std::int64_t, void*>& arrays, const std::map<std::int64_t, float>& numbers)
      : arrays_(arrays), numbers_(numbers) {}

  void run(const Descriptor& operation) {
    switch (operation.type) {
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return product(operation);
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return pointwise(operation);
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return reduction(operation);
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return reshape(operation);
      default:
        wrong("an operation it does not have");
    }
  }

 private:
  const Tensor& in(const Descriptor& description) {
    Tensor& x = tensor(description);
    if (!x.values.empty()) return x;
    if (x.by_value) return x.values = {numbers_.at(x.id)}, x;
    if (x.is_virtual) wrong("tensor " + std::to_string(x.id) + " is read before it is made");
    x.values.resize(static_cast<std::size_t>(x.sizes[0] * x.sizes[1] * x.sizes[2] * x.sizes[3]));
    x.each([&](const Index& i) { x.values[x.at(i)] = load(x.memory, x.kept_as(), x.offset(i)); });
    return x;
  }
  void out(const Descriptor& description, const std::function<float(const Index&)>& value) {
    Tensor& y = tensor(description);
    y.values.resize(static_cast<std::size_t>(y.sizes[0] * y.sizes[1] * y.sizes[2] * y.sizes[3]));
    y.each([&](const Index& i) {
      y.values[y.at(i)] = rounded(y.kept_as(), value(i));
      if (!y.is_virtual) store(y.memory, y.kept_as(), y.offset(i), y.values[y.at(i)]);
    });
  }
  Tensor& tensor(const Descriptor& description) {
    const auto id = description.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    const auto [found, made] = tensors_.try_emplace(id, description);
    if (made && !found->second.is_virtual && !found->second.by_value) {
      const auto array = arrays_.find(id);
      if (array == arrays_.end()) wrong("array " + std::to_string(id) + " is not in the variant pack");
      found->second.memory = array->second;
    }
    return found->second;
  }

  void product(const Descriptor& operation) {
    const Tensor& a = in(operation.ref(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    const Tensor& b = in(operation.ref(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    if (a.sizes[3] != b.sizes[2]) wrong("a product of sizes that do not fit");
    out(operation.ref(CUDNN_ATTR_OPERATION_MATMUL_CDESC), [&](const Index& i) {
      float sum = 0;
      for (std::int64_t k = 0; k < a.sizes[3]; ++k)
        sum += a.values[a.at({i[0], i[1], i[2], k})] * b.values[b.at({i[0], i[1], k, i[3]})];
      return sum;
    });
  }
  void pointwise(const Descriptor& operation) {
    const Descriptor& how = operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const auto mode = how.one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    const Descriptor& y = operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
      const auto axis = static_cast<std::size_t>(how.one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS));
      return out(y, [&](const Index& i) { return static_cast<float>(i[axis]); });
    }
    const Tensor& x = in(operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    const auto unary = [&](auto f) { out(y, [&](const Index& i) { return f(x.values[x.at(i)]); }); };
    const auto binary = [&](auto f) {
      const Tensor& b = in(operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
      out(y, [&](const Index& i) { return f(x.values[x.at(i)], b.values[b.at(i)]); });
    };
    switch (mode) {
      case CUDNN_POINTWISE_IDENTITY:
        return unary([](float v) { return v; });
      case CUDNN_POINTWISE_EXP:
        return unary([](float v) { return std::exp(v); });
      case CUDNN_POINTWISE_LOG:
        return unary([](float v) { return std::log(v); });
      case CUDNN_POINTWISE_ADD:
        return binary([](float v, float w) { return v + w; });
      case CUDNN_POINTWISE_SUB:
        return binary([](float v, float w) { return v - w; });
      case CUDNN_POINTWISE_MUL:
        return binary([](float v, float w) { return v * w; });
      case CUDNN_POINTWISE_DIV:
        return binary([](float v, float w) { return v / w; });
      case CUDNN_POINTWISE_CMP_GE:
        return binary([](float v, float w) { return v >= w ? 1.0F : 0.0F; });
      case CUDNN_POINTWISE_BINARY_SELECT: {
        const Tensor& b = in(operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
        const Tensor& t = in(operation.ref(CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
        return out(y, [&](const Index& i) {
          return t.values[t.at(i)] != 0 ? x.values[x.at(i)] : b.values[b.at(i)];
        });
      }
      default:
        wrong("a pointwise operation it does not have: " + std::to_string(mode));
    }
  }
  void reduction(const Descriptor& operation) {
    const Tensor& x = in(operation.ref(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    const auto by = operation.ref(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                        .one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    const Tensor y(operation.ref(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    const bool most = by == CUDNN_REDUCE_TENSOR_MAX;
    std::vector<float> sums(static_cast<std::size_t>(y.sizes[0] * y.sizes[1] * y.sizes[2] * y.sizes[3]),
                            most ? -INFINITY : 0.0F);
    x.each([&](const Index& i) {
      float& sum = sums[y.at(i)];
      const float value = x.values[x.at(i)];
      sum = most ? std::max(sum, value) : sum + value;
    });
    out(operation.ref(CUDNN_ATTR_OPERATION_REDUCTION_YDESC), [&](const Index& i) { return sums[y.at(i)]; });
  }
  /// The same elements, were they in memory, under other sizes and strides.
  void reshape(const Descriptor& operation) {
    const Tensor& x = in(operation.ref(CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
    const Tensor y(operation.ref(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
    std::unordered_map<std::int64_t, float> by_offset;
    x.each([&](const Index& i) { by_offset[x.offset(i)] = x.values[x.at(i)]; });
    out(operation.ref(CUDNN_ATTR_OPERATION_RESHAPE_YDESC),
        [&](const Index& i) { return by_offset.at(y.offset(i)); });
  }

  const std::map<std::int64_t, void*>& arrays_;
  const std::map<std::int64_t, float>& numbers_;
  std::map<std::int64_t, Tensor> tensors_;
};

std::vector<std::vector<std::string>> g_planned;
struct Handle {
  cudaStream_t stream = nullptr;
};

std::string words(const Tensor& tensor) {
  std::string out = " type " + std::to_string(tensor.type);
  for (const auto& [name, values] : {std::pair(" of", tensor.sizes), {" by", tensor.strides}}) {
    out += name;
    for (const std::int64_t value : values) out += ' ' + std::to_string(value);
  }
  return out + (tensor.is_virtual ? " virtual" : tensor.by_value ? " number" : " array");
}

std::vector<std::string> words(const Descriptor& graph) {
  std::vector<std::string> out;
  std::map<std::int64_t, std::size_t> numbers;
  for (const Descriptor* operation : graph.all<const Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    std::string line = std::to_string(operation->type);
    for (const auto& [name, attribute] : operation->attributes) {
      if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
      const Descriptor& other = operation->ref(name);
      line += ", " + std::to_string(name) + ':';
      if (other.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        for (const auto& [what, value] : other.attributes) {
          std::int64_t number = 0;
          std::memcpy(&number, value.bytes.data(), std::min<std::size_t>(value.bytes.size(), 8));
          line += ' ' + std::to_string(what) + '=' + std::to_string(number);
        }
        continue;
      }
      const Tensor tensor(other);
      const auto [found, first] = numbers.try_emplace(tensor.id, numbers.size());
      line += " #" + std::to_string(found->second) + (first ? words(tensor) : "");
    }
    out.push_back(line);
  }
  return out;
}

cudnnStatus_t create(cudnnHandle_t* to) {
  *to = reinterpret_cast<cudnnHandle_t>(new Handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy(cudnnHandle_t handle) {
  delete reinterpret_cast<Handle*>(handle);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<Handle*>(handle)->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
const char* error_string(cudnnStatus_t) { return "status of host cuDNN"; }
void last_error(char* to, std::size_t bytes) { std::snprintf(to, bytes, "words of host cuDNN"); }

cudnnStatus_t create_descriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* to) {
  *to = new Descriptor{.type = type, .attributes = {}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t destroy_descriptor(cudnnBackendDescriptor_t descriptor) {
  delete &of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t set_attribute(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  Descriptor& descriptor = of(to);
  if (descriptor.final) wrong("an attribute is set after the descriptor is final");
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Descriptor& other = *static_cast<Descriptor* const*>(values)[i];
      if (!other.final && other.type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
        wrong("a descriptor is used before it is final");
    }
  }
  const auto* bytes = static_cast<const std::byte*>(values);
  descriptor.attributes[name] = {
      type, count, {bytes, bytes + static_cast<std::size_t>(count) * size_of(type)}};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t get_attribute(cudnnBackendDescriptor_t from, cudnnBackendAttributeName_t name,
                            cudnnBackendAttributeType_t, std::int64_t room, std::int64_t* count,
                            void* values) {
  const Descriptor& descriptor = of(from);
  if (!descriptor.final) wrong("an attribute is read before the descriptor is final");
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
    *static_cast<std::int64_t*>(values) = kWorkspaceBytes;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name != CUDNN_ATTR_ENGINEHEUR_RESULTS || room < 2) return CUDNN_STATUS_NOT_SUPPORTED;
  for (std::int64_t i = 0; i < 2; ++i) {
    Descriptor& engine = *static_cast<Descriptor* const*>(values)[i];
    engine.attributes[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] =
        descriptor.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    engine.hopeless = i == 0;
  }
  *count = 2;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t finalize(cudnnBackendDescriptor_t of_what) {
  Descriptor& descriptor = of(of_what);
  if (descriptor.final) wrong("a descriptor is made final twice");
  if (descriptor.type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) g_planned.push_back(words(descriptor));
  if (descriptor.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const Descriptor& engine = descriptor.ref(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (engine.hopeless) return CUDNN_STATUS_NOT_SUPPORTED;
    // The plan outlives the graph's descriptor; its operations belong to who described them.
    descriptor.attributes[CUDNN_ATTR_OPERATIONGRAPH_OPS] =
        engine.ref(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  }
  descriptor.final = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t given) {
  const Descriptor& pack = of(given);
  if (!pack.final || !of(plan).final) wrong("a plan is run before it, or what it is given, is final");
  const auto pointers = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto ids = pack.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto operations = of(plan).all<const Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  std::map<std::int64_t, bool> by_value;
  for (const Descriptor* operation : operations) {
    for (const auto& [name, attribute] : operation->attributes) {
      if (attribute.type != CUDNN_TYPE_BACKEND_DESCRIPTOR) continue;
      const Descriptor& other = operation->ref(name);
      if (other.type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) continue;
      const Tensor tensor(other);
      if (!tensor.is_virtual) by_value[tensor.id] = tensor.by_value;
    }
  }
  std::map<std::int64_t, void*> arrays;
  std::map<std::int64_t, float> numbers;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!by_value.contains(ids[i])) wrong("something is given that the graph does not have");
    if (by_value.at(ids[i])) {
      numbers[ids[i]] = *static_cast<const float*>(pointers[i]);
    } else {
      if (reinterpret_cast<std::uintptr_t>(pointers[i]) % 16 != 0)
        wrong("an array that is not aligned to 16 bytes");
      arrays[ids[i]] = seen_by_device(pointers[i], "cuDNN");
    }
  }
  void* const workspace =
      seen_by_device(pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE), "cuDNN's workspace");
  launch(reinterpret_cast<Handle*>(handle)->stream, "fused_attention", [=] {
    Work work(arrays, numbers);
    for (const Descriptor* operation : operations) {
      std::memset(workspace, 0xA5, kWorkspaceBytes);
      work.run(*operation);
    }
  });
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

std::vector<std::vector<std::string>> planned_operations() { return g_planned; }

}  // namespace shardscope::host_cuda

namespace shardscope::kernels::cuda {

const CudnnLibrary& cudnn_library(const char*) {
  static const CudnnLibrary library{
      .create = host_cuda::create,
      .destroy = host_cuda::destroy,
      .set_stream = host_cuda::set_stream,
      .error_string = host_cuda::error_string,
      .last_error = host_cuda::last_error,
      .create_descriptor = host_cuda::create_descriptor,
      .destroy_descriptor = host_cuda::destroy_descriptor,
      .set_attribute = host_cuda::set_attribute,
      .get_attribute = host_cuda::get_attribute,
      .finalize = host_cuda::finalize,
      .execute = host_cuda::execute,
  };
  return library;
}

}  // namespace shardscope::kernels::cuda
