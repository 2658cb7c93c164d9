// An NVTX tool: what a process that has it in NVTX_INJECTION64_PATH pushes and pops, line by line, into the
// file that NVTX_RECORDING names.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

namespace {

std::FILE* g_file = nullptr;
std::deque<std::string> g_names;  // stable addresses: they are the handles

nvtxDomainHandle_t create(const char* name) {
  std::fprintf(g_file, "domain %s\n", name);
  return reinterpret_cast<nvtxDomainHandle_t>(&g_names.emplace_back(name));
}
nvtxStringHandle_t register_string(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(&g_names.emplace_back(text));
}
int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const bool registered = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  std::fprintf(g_file, "push %s %s %lld\n", reinterpret_cast<std::string*>(domain)->c_str(),
               registered ? reinterpret_cast<std::string*>(attributes->message.registered)->c_str() : "?",
               attributes->payloadType == NVTX_PAYLOAD_TYPE_INT64
                   ? static_cast<long long>(attributes->payload.llValue)
                   : 0LL);
  std::fflush(g_file);
  return 0;
}
int pop(nvtxDomainHandle_t) {
  std::fprintf(g_file, "pop\n");
  std::fflush(g_file);
  return 0;
}

template <typename Function>
void put(NvtxFunctionTable table, unsigned size, unsigned id, Function function) {
  if (id < size) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const char* path = std::getenv("NVTX_RECORDING");
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (path == nullptr || callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0)
    return 0;
  g_file = std::fopen(path, "w");
  if (g_file == nullptr) return 0;
  put(table, size, NVTX_CBID_CORE2_DomainCreateA, create);
  put(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  put(table, size, NVTX_CBID_CORE2_DomainRangePushEx, push);
  put(table, size, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}
