#include "instrumentation/nvtx_ranges.h"

#if SHARDSCOPE_HAS_NVTX
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>

namespace shardscope::instrumentation::nvtx {
namespace {

constexpr std::size_t kDeepest = 64;
constexpr std::size_t kPhases = kValueCount<Phase>, kPasses = kValueCount<Pass>,
                      kOperations = kValueCount<CollectiveOp>;

std::mutex g_mutex;                // guards g_paths until the domain exists
std::vector<std::string> g_paths;  // of modules

/// Strings registered with the tool, once. NVTX loads the tool at the first call; without a tool it returns
/// null.
struct Domain {
  nvtxDomainHandle_t handle = nullptr;
  std::array<nvtxStringHandle_t, kPhases> phases{};
  std::array<nvtxStringHandle_t, kOperations> operations{};
  std::array<nvtxStringHandle_t, kFunctionNames.size()> functions{};
  std::vector<std::array<nvtxStringHandle_t, kPasses>> modules;
  nvtxStringHandle_t other = nullptr;

  Domain() {
    handle = nvtxDomainCreateA("shardscope");
    if (handle == nullptr) return;
    const std::lock_guard lock(g_mutex);
    const auto text = [this](const std::string& name) {
      return nvtxDomainRegisterStringA(handle, name.c_str());
    };
    for (std::size_t i = 0; i < kPhases; ++i) phases[i] = text(label_of(static_cast<Phase>(i)));
    for (std::size_t i = 0; i < kOperations; ++i) operations[i] = text(name_of(static_cast<CollectiveOp>(i)));
    for (std::size_t i = 0; i < functions.size(); ++i) functions[i] = text(kFunctionNames[i]);
    for (const std::string& path : g_paths) {
      std::array<nvtxStringHandle_t, kPasses>& names = modules.emplace_back();
      for (std::size_t i = 0; i < kPasses; ++i) {
        const auto pass = static_cast<Pass>(i);
        names[i] = text(pass == Pass::forward ? path : path + " (" + name_of(pass) + ")");
      }
    }
    other = text("unnamed");
  }
  [[nodiscard]] nvtxStringHandle_t name(const Event& event) const noexcept {
    switch (event.kind) {
      case EventKind::phase_begin:
        return event.code < kPhases ? phases[event.code] : other;
      case EventKind::module_begin:
        return event.a < modules.size() && event.code < kPasses ? modules[event.a][event.code] : other;
      case EventKind::collective_begin:
        return event.code < kOperations ? operations[event.code] : other;
      default:
        return other;
    }
  }
};

const Domain& domain() {
  static const Domain made;
  return made;
}

struct Range {
  enum class Of : std::uint8_t { event, function } of = Of::event;
  EventKind end{};
  std::uint8_t code = 0;  ///< the function, if the range is of one
  std::uint32_t a = 0;
  friend bool operator==(const Range&, const Range&) = default;
};
/// Open ranges of this thread. Ranges beyond its capacity are not shown.
struct Stack {
  std::array<Range, kDeepest> ranges;
  std::size_t depth = 0;
};
/// Null if memory is short. On the heap: a library's thread-locals must fit into the small static TLS space
/// that the loader has left when the library is opened after the program started (`import`, `dlopen`).
Stack* stack() noexcept {
  thread_local const std::unique_ptr<Stack> made(new (std::nothrow) Stack);
  return made.get();
}

nvtxEventAttributes_t named(nvtxStringHandle_t name) noexcept {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = name;
  return attributes;
}

void open(const Domain& in, const Range& range, const nvtxEventAttributes_t& attributes) noexcept {
  Stack* const opened = stack();
  if (opened == nullptr || opened->depth == kDeepest) return;
  nvtxDomainRangePushEx(in.handle, &attributes);
  opened->ranges[opened->depth++] = range;
}

void open(const Domain& in, const Event& event) noexcept {
  nvtxEventAttributes_t attributes = named(in.name(event));
  if (event.kind == EventKind::collective_begin) {  // bytes, S of metrics 2.3
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = event.v1;
  }
  open(in, {Range::Of::event, end_of(event.kind), event.code, event.a}, attributes);
}

void close(const Domain& in, const Range& range) noexcept {
  Stack* const opened = stack();
  if (opened == nullptr) return;
  for (std::size_t depth = opened->depth; depth > 0; --depth) {
    if (!(opened->ranges[depth - 1] == range)) continue;
    for (; opened->depth >= depth; --opened->depth) nvtxDomainRangePop(in.handle);
    return;
  }
}

}  // namespace

void name_modules(std::vector<std::string> paths) {
  const std::lock_guard lock(g_mutex);
  g_paths = std::move(paths);
}

void note(const Event& event) noexcept {
  switch (event.kind) {
    case EventKind::phase_begin:
    case EventKind::module_begin:
    case EventKind::collective_begin:
      if (const Domain& in = domain(); in.handle != nullptr) open(in, event);
      return;
    case EventKind::phase_end:
    case EventKind::module_end:
    case EventKind::collective_end:
      if (const Domain& in = domain(); in.handle != nullptr) {
        close(in, {Range::Of::event, event.kind, event.code, event.a});
      }
      return;
    default:
      return;
  }
}

FunctionRange::FunctionRange(Function function) noexcept : function_(function) {
  const Domain& in = domain();
  if (in.handle == nullptr) return;
  const auto code = static_cast<std::uint8_t>(function);
  open(in, {Range::Of::function, {}, code, 0}, named(in.functions[code]));
}
FunctionRange::~FunctionRange() {
  const Domain& in = domain();
  if (in.handle != nullptr) close(in, {Range::Of::function, {}, static_cast<std::uint8_t>(function_), 0});
}

}  // namespace shardscope::instrumentation::nvtx

#else

namespace shardscope::instrumentation::nvtx {
void name_modules(std::vector<std::string>) {}
void note(const Event&) noexcept {}
FunctionRange::FunctionRange(Function function) noexcept : function_(function) {
  static_cast<void>(function_);
}
FunctionRange::~FunctionRange() = default;
}  // namespace shardscope::instrumentation::nvtx

#endif
