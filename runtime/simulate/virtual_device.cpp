#include "runtime/simulate/virtual_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "instrumentation/emitter.h"
#include "runtime/device/error.h"

namespace shardscope::simulate {
namespace {

using device::Stream;

// Above all mappings of a process, so that device addresses can be recognised.
constexpr std::uintptr_t kDeviceBegin = std::uintptr_t{1} << 60;

bool on_device(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) >= kDeviceBegin;
}

class DeviceArena final : public device::Arena {
 public:
  DeviceArena() : Arena(instrumentation::MemoryPool::device) {}
  ~DeviceArena() override { release_segments(); }

 protected:
  void* raw_allocate(std::size_t bytes) override {
    return reinterpret_cast<void*>(std::exchange(next_, next_ + bytes));  // NOLINT(performance-no-int-to-ptr)
  }
  void raw_free(void*, std::size_t) noexcept override {}

 private:
  std::uintptr_t next_ = kDeviceBegin;
};

/// The pages behind every large piece of host memory.
class SharedPages {
 public:
  static constexpr std::size_t kBytes = std::size_t{16} << 20;
  static SharedPages& instance() {
    static SharedPages pages;
    return pages;
  }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  [[nodiscard]] int file() const noexcept { return file_; }

 private:
  SharedPages() : file_(memfd_create("shardscope-simulate", MFD_CLOEXEC)) {
    if (file_ < 0 || ftruncate(file_, kBytes) != 0) {
      throw BackendError("memfd_create", errno, "no memory for what stands for host memory", "simulate");
    }
  }
  ~SharedPages() { close(file_); }
  int file_;
};

/// See [Note: memory that is not there].
class HostArena final : public device::Arena {
 public:
  explicit HostArena(instrumentation::MemoryPool pool) : Arena(pool) {}
  ~HostArena() override { release_segments(); }

 protected:
  void* raw_allocate(std::size_t bytes) override {
    constexpr int kAccess = PROT_READ | PROT_WRITE;
    void* data = mmap(nullptr, bytes, kAccess, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    if (bytes <= SharedPages::kBytes) return data;
    for (std::size_t at = 0; at < bytes; at += SharedPages::kBytes) {
      const std::size_t piece = std::min(SharedPages::kBytes, bytes - at);
      if (mmap(static_cast<std::byte*>(data) + at, piece, kAccess, MAP_SHARED | MAP_FIXED,
               SharedPages::instance().file(), 0) == MAP_FAILED) {
        munmap(data, bytes);
        return nullptr;
      }
    }
    return data;
  }
  void raw_free(void* data, std::size_t bytes) noexcept override { munmap(data, bytes); }
};

class VirtualEvent final : public device::Event {
 public:
  explicit VirtualEvent(Recorder& recorder) : recorder_(recorder) {}
  ~VirtualEvent() override { forget(); }
  VirtualEvent(const VirtualEvent&) = delete;
  VirtualEvent& operator=(const VirtualEvent&) = delete;

  [[nodiscard]] bool reached() const override { return !mark_; }
  void host_wait() override {
    if (mark_) recorder_.wait(StreamId::host, *mark_);
  }
  [[nodiscard]] std::optional<Mark> mark() const noexcept { return mark_; }
  void set(Mark mark) {
    forget();
    mark_ = mark;
    recorder_.keep(mark);
  }

 private:
  void forget() {
    if (mark_) recorder_.drop(*mark_);
    mark_.reset();
  }
  Recorder& recorder_;
  std::optional<Mark> mark_;
};

class VirtualStream final : public Stream {
 public:
  VirtualStream(Recorder& recorder, StreamId id) : recorder_(recorder), id_(id) {}

  void run(std::function<void(const kernels::Exec&)> work) override {
    const Recorder::Work working(recorder_, id_);
    work({kernels::Backend::cost, nullptr, &recorder_, 1});
  }
  void wait(device::Event& event) override {
    if (const auto mark = static_cast<VirtualEvent&>(event).mark()) recorder_.wait(id_, *mark);
  }
  void record(device::Event& event) override { static_cast<VirtualEvent&>(event).set(recorder_.record(id_)); }
  void emit(const instrumentation::Event& event) override {
    if (instrumentation::enabled(instrumentation::detail_of(event.kind))) recorder_.emit(id_, event);
  }
  void emit_timed(const instrumentation::Event& event, std::span<device::Event* const> points,
                  device::Complete complete) override {
    if (!instrumentation::enabled(instrumentation::detail_of(event.kind))) return;
    TimedEvent timed{event, {}, complete};
    for (device::Event* point : points)
      timed.marks.push_back(static_cast<VirtualEvent&>(*point).mark().value());
    recorder_.emit(id_, std::move(timed));
  }
  void synchronize() override { recorder_.wait(StreamId::host, recorder_.record(id_)); }
  [[nodiscard]] StreamId id() const noexcept override { return id_; }
  [[nodiscard]] kernels::Backend backend() const noexcept override { return kernels::Backend::cost; }

 private:
  Recorder& recorder_;
  StreamId id_;
};

class VirtualDevice final : public device::Device {
 public:
  explicit VirtualDevice(Recorder& recorder)
      : recorder_(recorder),
        pinned_(instrumentation::MemoryPool::pinned),
        host_(instrumentation::MemoryPool::host),
        compute_(recorder, StreamId::compute),
        gather_(recorder, StreamId::gather),
        reduce_(recorder, StreamId::reduce),
        copy_(recorder, StreamId::copy) {
    memory_.set_limit(
        static_cast<std::size_t>(recorder.cost().hardware().memory_gib * static_cast<double>(1U << 30)));
  }

  Stream& compute() override { return compute_; }
  Stream& gather() override { return gather_; }
  Stream& reduce() override { return reduce_; }
  Stream& copy() override { return copy_; }
  Stream& worker() override { return started(worker_, StreamId::worker); }
  Stream& nvme() override { return started(nvme_, StreamId::nvme); }
  std::vector<Stream*> started_streams() override {
    std::vector<Stream*> streams{&compute_, &gather_, &reduce_, &copy_};
    if (worker_) streams.push_back(&*worker_);
    if (nvme_) streams.push_back(&*nvme_);
    return streams;
  }
  std::unique_ptr<device::Event> make_event() override { return std::make_unique<VirtualEvent>(recorder_); }
  std::unique_ptr<device::Event> make_timed_event() override { return make_event(); }
  device::Arena& memory() override { return memory_; }
  device::Arena& pinned() override { return pinned_; }
  device::Arena& host() override { return host_; }

  void copy_async(void* dst, const void* src, std::size_t bytes, Stream& stream) override {
    if (bytes == 0 || dst == src) return;
    const CostModel& cost = recorder_.cost();
    const bool from_device = on_device(src);
    const bool to_device = on_device(dst);
    std::int64_t ns = cost.host_copy_ns(bytes);
    if (from_device && to_device) ns = cost.device_copy_ns(bytes);
    if (!from_device && !to_device) ns = cost.host_work_ns({0, 2.0 * static_cast<double>(bytes)});
    recorder_.busy(stream.id(), ns);
  }

  std::string describe() const override {
    const Hardware& h = recorder_.cost().hardware();
    return h.description.empty() ? h.name : h.description;
  }
  kernels::Backend backend() const noexcept override { return kernels::Backend::cost; }

 private:
  Stream& started(std::optional<VirtualStream>& stream, StreamId id) {
    if (!stream) stream.emplace(recorder_, id);
    return *stream;
  }

  Recorder& recorder_;
  DeviceArena memory_;
  HostArena pinned_;
  HostArena host_;
  VirtualStream compute_, gather_, reduce_, copy_;
  std::optional<VirtualStream> worker_, nvme_;
};

}  // namespace

std::unique_ptr<device::Device> make_virtual_device(Recorder& recorder) {
  return std::make_unique<VirtualDevice>(recorder);
}

}  // namespace shardscope::simulate
