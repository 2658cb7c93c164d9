#include "kernels/cuda/cudnn_graph.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/error.h"

namespace shardscope::kernels::cuda {
namespace {

// Alignment of every array, bytes: attention.cpp only uses this path for such arrays.
constexpr std::int64_t kAlignment = 16;
/// Proposals are in order of expected speed; a later one is only used if earlier ones cannot be planned.
constexpr std::int64_t kMostProposals = 8;

}  // namespace

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary& library, const char* kernel,
                                 cudnnBackendDescriptorType_t type)
    : library_(library), kernel_(kernel) {
  library_.check(library_.create_descriptor(type, &descriptor_), kernel_, "cudnnBackendCreateDescriptor");
}
// Null after a move. A destructor cannot report a failure.
CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) (void)library_.destroy_descriptor(descriptor_);
}
CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : library_(other.library_),
      kernel_(other.kernel_),
      descriptor_(std::exchange(other.descriptor_, nullptr)) {}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::int64_t count, const void* values) {
  library_.check(library_.set_attribute(descriptor_, name, type, count, values), kernel_,
                 "cudnnBackendSetAttribute");
}
void CudnnDescriptor::set(cudnnBackendAttributeName_t name, const CudnnDescriptor& of) {
  const cudnnBackendDescriptor_t other = of.get();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other);
}
// Attributes must be set before this; other descriptors may refer to it only afterwards.
void CudnnDescriptor::finalize() {
  library_.check(library_.finalize(descriptor_), kernel_, "cudnnBackendFinalize");
}

CudnnGraph::CudnnGraph(const char* kernel) : kernel_(kernel), library_(cudnn_library(kernel)) {}

// Always four dimensions, as attention has them: batch, heads, rows, columns. Strides let one array of q, k
// and v be three tensors.
CudnnDescriptor& CudnnGraph::describe(cudnnDataType_t type, const Shape& shape) {
  CudnnDescriptor& tensor = tensors_.emplace_back(library_, kernel_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, shape.sizes.data());
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, shape.strides.data());
  // Ids count from 1, in order of description: of() finds a tensor by its id.
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<std::int64_t>(tensors_.size()));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  return tensor;
}
// In device memory; its address comes with each run().
CudnnGraph::Tensor CudnnGraph::array(cudnnDataType_t type, const Shape& shape) {
  describe(type, shape).finalize();
  return static_cast<Tensor>(tensors_.size());
}
// "Virtual" in cuDNN's terms. The T x T scores of attention are such tensors, so they never take device
// memory.
CudnnGraph::Tensor CudnnGraph::between(cudnnDataType_t type, const Shape& shape) {
  CudnnDescriptor& tensor = describe(type, shape);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  tensor.finalize();
  return static_cast<Tensor>(tensors_.size());
}
CudnnGraph::Tensor CudnnGraph::number(float value) {
  CudnnDescriptor& tensor = describe(CUDNN_DATA_FLOAT, {{1, 1, 1, 1}, {1, 1, 1, 1}});
  // In host memory: run() passes its address along with those of the arrays.
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  tensor.finalize();
  const auto id = static_cast<Tensor>(tensors_.size());
  numbers_.push_back({id, value});
  return id;
}

// References stay valid: a deque does not move its elements.
CudnnDescriptor& CudnnGraph::operation(cudnnBackendDescriptorType_t type) {
  return operations_.emplace_back(library_, kernel_, type);
}

// Of the last two dimensions; the first two are batches.
void CudnnGraph::multiply(Tensor c, Tensor a, Tensor b) {
  // cuDNN has two descriptors per operation: its computation, and its tensors.
  CudnnDescriptor& how = parts_.emplace_back(library_, kernel_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  // Sums in fp32 whatever the operands' types.
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  CudnnDescriptor& product = operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(a));
  product.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(b));
  product.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(c));
  product.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  product.finalize();
}

// Not finalized: index() adds the axis first.
CudnnDescriptor CudnnGraph::begin_pointwise(cudnnPointwiseMode_t mode, cudnnDataType_t compute) {
  CudnnDescriptor how(library_, kernel_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute);
  return how;
}
CudnnDescriptor& CudnnGraph::pointwise_operation(const CudnnDescriptor& what, Tensor y, Tensor x) {
  CudnnDescriptor& made = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of(x));
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(y));
  // Scale factors of the inputs: none.
  const float one = 1;
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, CUDNN_TYPE_FLOAT, 1, &one);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, CUDNN_TYPE_FLOAT, 1, &one);
  return made;
}
void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, Tensor y, Tensor x, std::optional<Tensor> b,
                           cudnnDataType_t compute) {
  CudnnDescriptor& how = parts_.emplace_back(begin_pointwise(mode, compute));
  how.finalize();
  CudnnDescriptor& made = pointwise_operation(how, y, x);
  if (b) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(*b));
  made.finalize();
}
void CudnnGraph::select(Tensor y, Tensor x, Tensor otherwise, Tensor where) {
  CudnnDescriptor& how =
      parts_.emplace_back(begin_pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT));
  how.finalize();
  CudnnDescriptor& made = pointwise_operation(how, y, x);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(otherwise));
  // y = where ? x : otherwise.
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, of(where));
  made.finalize();
}
void CudnnGraph::index(Tensor y, Tensor like, std::int64_t axis) {
  CudnnDescriptor& how = parts_.emplace_back(begin_pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT));
  // y's element is its index along this axis; x only gives the shape.
  how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
  how.finalize();
  pointwise_operation(how, y, like).finalize();
}

// cuDNN derives the reduced dimensions from the shapes: those that are 1 in y.
void CudnnGraph::reduce(cudnnReduceTensorOp_t by, Tensor y, Tensor x) {
  CudnnDescriptor& how = parts_.emplace_back(library_, kernel_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &by);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.finalize();
  CudnnDescriptor& made = operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(x));
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(y));
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  made.finalize();
}
void CudnnGraph::reshape(Tensor y, Tensor x) {
  CudnnDescriptor& made = operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, of(x));
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, of(y));
  made.finalize();
}

// Done once per shape: cudnn_attention.cpp keeps the planned graphs.
bool CudnnGraph::plan_one_of(cudnnBackendHeurMode_t mode) {
  CudnnDescriptor heuristic(library_, kernel_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  // Not an error: this mode's heuristic has no engine for the graph.
  if (library_.finalize(heuristic.get()) != CUDNN_STATUS_SUCCESS) return false;
  std::vector<CudnnDescriptor> proposals;
  std::vector<cudnnBackendDescriptor_t> filled;
  // cuDNN fills descriptors made by the caller.
  for (std::int64_t i = 0; i < kMostProposals; ++i)
    filled.push_back(proposals.emplace_back(library_, kernel_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  std::int64_t count = 0;
  library_.check(library_.get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostProposals, &count, filled.data()),
                 kernel_, "cudnnBackendGetAttribute");
  for (std::int64_t i = 0; i < std::min(count, kMostProposals); ++i) {
    CudnnDescriptor& plan = plan_.emplace(library_, kernel_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    CudnnDescriptor& proposal = proposals[static_cast<std::size_t>(i)];
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposal);
    // A proposal may not fit the device; the next one may.
    if (library_.finalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;
    // Size of the workspace for run().
    std::int64_t bytes = 0, got = 0;
    library_.check(library_.get_attribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                          CUDNN_TYPE_INT64, 1, &got, &bytes),
                   kernel_, "cudnnBackendGetAttribute");
    workspace_bytes_ = static_cast<std::size_t>(bytes);
    // The plan refers to it: both have the same lifetime.
    engine_.emplace(std::move(proposal));
    return true;
  }
  plan_.reset();
  return false;
}

// Everything described so far becomes one graph; nothing can be added afterwards.
void CudnnGraph::plan(cudnnHandle_t handle) {
  std::vector<cudnnBackendDescriptor_t> all;
  for (const CudnnDescriptor& one : operations_) all.push_back(one.get());
  CudnnDescriptor& graph = graph_.emplace(library_, kernel_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<std::int64_t>(all.size()), all.data());
  graph.finalize();
  // The fallback mode proposes slower engines that support more.
  if (plan_one_of(CUDNN_HEUR_MODE_A) || plan_one_of(CUDNN_HEUR_MODE_FALLBACK)) return;
  const std::string why = library_.last_error_text();
  throw_bad_argument(kernel_, "cuDNN has no way to do it on this device" + (why.empty() ? "" : ": " + why) +
                                  "; SHARDSCOPE_ATTENTION=own does it by a kernel of its own");
}

// Called for every attention of a step: it queues and does not synchronize.
void CudnnGraph::run(cudnnHandle_t handle, std::span<const Given> arrays, void* workspace) {
  std::vector<std::int64_t> ids;
  std::vector<void*> data;
  for (const Given& array : arrays) {
    ids.push_back(array.tensor);
    data.push_back(array.data);
  }
  // By value, but cuDNN reads them through pointers.
  for (Number& number : numbers_) {
    ids.push_back(number.tensor);
    data.push_back(&number.value);
  }
  // Ids and addresses in the same order. The pack is only needed during this call, which queues the work and
  // does not wait.
  CudnnDescriptor pack(library_, kernel_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(ids.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  pack.finalize();
  library_.check(library_.execute(handle, plan_->get(), pack.get()), kernel_, "cudnnBackendExecute");
}

}  // namespace shardscope::kernels::cuda
