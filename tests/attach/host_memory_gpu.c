// A CUDA runtime and driver of one device whose memory is the host's, 256 MiB: enough for torch's own caching
// allocator, which launches nothing. Loaded before the real ones (torch_helper_test.py).
#include <stdlib.h>
#include <string.h>

enum { kBlocks = 4096, kOutOfMemory = 2, kNotReady = 600 };
static const size_t total = (size_t)256 << 20;
static size_t used;
static struct {
  void* at;
  size_t size;
} blocks[kBlocks];

int cudaMalloc(void** made, size_t size) {
  *made = NULL;
  for (int i = 0; used + size <= total && i < kBlocks; ++i) {
    if (blocks[i].at != NULL) continue;
    *made = blocks[i].at = aligned_alloc(512, (size + 511) / 512 * 512);
    used += blocks[i].size = size;
    return 0;
  }
  return kOutOfMemory;
}
int cudaFree(void* freed) {
  for (int i = 0; freed != NULL && i < kBlocks; ++i) {
    if (blocks[i].at != freed) continue;
    used -= blocks[i].size;
    blocks[i].at = NULL;
    free(freed);
  }
  return 0;
}
int cudaMemGetInfo(size_t* available, size_t* all) {
  *all = total;
  *available = total - used;
  return 0;
}
int cudaGetDeviceProperties(void* properties, int device) {
  (void)device;
  memset(properties, 0, 1008);  // cudaDeviceProp of CUDA 13
  strcpy(properties, "host memory");
  return 0;
}
static int zero(int* value) {
  *value = 0;
  return 0;
}
int cudaGetDeviceCount(int* count) { return zero(count), *count = 1, 0; }
int cudaGetDevice(int* device) { return zero(device); }
int cudaSetDevice(int device) { return (void)device, 0; }
int cudaStreamIsCapturing(void* stream, int* status) { return (void)stream, zero(status); }
int cudaThreadExchangeStreamCaptureMode(int* mode) { return (void)mode, 0; }
int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  return (void)attribute, (void)device, zero(value);
}
int cudaDeviceCanAccessPeer(int* value, int device, int peer) {
  return (void)device, (void)peer, zero(value);
}
int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return zero(least), zero(greatest); }
int cudaDriverGetVersion(int* version) { return *version = 13020, 0; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaStreamSynchronize(void* stream) { return (void)stream, 0; }
// No stream ever gets to an event.
int cudaEventCreateWithFlags(void** event, unsigned flags) {
  static char one;
  return (void)flags, *event = &one, 0;
}
int cudaEventRecord(void* event, void* stream) { return (void)event, (void)stream, 0; }
int cudaEventQuery(void* event) { return (void)event, kNotReady; }
int cudaEventSynchronize(void* event) { return (void)event, 0; }
int cudaEventDestroy(void* event) { return (void)event, 0; }
int cudaGetLastError(void) { return 0; }
int cudaPeekAtLastError(void) { return 0; }
const char* cudaGetErrorString(int error) { return error == kOutOfMemory ? "out of memory" : "no error"; }
const char* cudaGetErrorName(int error) {
  return error == kOutOfMemory ? "cudaErrorMemoryAllocation" : "cudaSuccess";
}
