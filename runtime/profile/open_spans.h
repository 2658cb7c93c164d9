// Which of the engine's spans a thread is in, so that what it launches can be attributed to an owner. Fed
// with the events that the engine emits anyway, in the order of the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "instrumentation/event.h"

namespace shardscope::profile {

struct Owner {
  instrumentation::GpuOwner kind = instrumentation::GpuOwner::none;
  std::uint32_t id = instrumentation::kNoId;
  friend bool operator==(const Owner&, const Owner&) = default;
};

/// An owner as the 64 bits that travel through CUPTI's external correlation; 0: no owner.
[[nodiscard]] constexpr std::uint64_t owner_id(Owner owner) noexcept {
  return static_cast<std::uint64_t>(owner.kind) << 32U | (owner.kind == Owner{}.kind ? 0 : owner.id);
}
/// No owner for a number that owner_id() does not make: another library may push ids of its own.
[[nodiscard]] constexpr Owner owner_of_id(std::uint64_t id) noexcept {
  const std::uint64_t kind = id >> 32U;
  if (kind == 0 || kind >= instrumentation::kGpuOwnerCount) return {};
  return {static_cast<instrumentation::GpuOwner>(kind), static_cast<std::uint32_t>(id)};
}

/// The open spans of one thread. They need not nest: a gather begins inside one module and may end inside
/// another. A new phase of computation proves that all of them are over: their ends were not emitted if the
/// detail level was lowered meanwhile.
class OpenSpans {
 public:
  /// Takes in an event; true if it opened or closed a span of which there are owners.
  bool note(const instrumentation::Event& event) noexcept;
  /// The span opened last of those still open.
  [[nodiscard]] Owner innermost() const noexcept { return count_ == 0 ? Owner{} : open_[count_ - 1].owner; }

 private:
  static constexpr std::size_t kMost = 64;  ///< deeper ones are their parents'
  struct Open {
    instrumentation::EventKind end{};
    instrumentation::StreamId stream{};
    Owner owner;
  };
  std::array<Open, kMost> open_;
  std::size_t count_ = 0;
  std::size_t beyond_ = 0;  ///< open, but not kept
};

/// Whether a thread's kernel spans are emitted: not while the driver's records show the same. The state at
/// its begin decides for a whole span, since recording begins and ends between two launches or within one: a
/// span without its end would last until its module's.
class KernelSpans {
 public:
  /// Whether an event is emitted; call it for each event of the thread, in order.
  [[nodiscard]] bool emits(const instrumentation::Event& event, bool recording) noexcept {
    if (event.kind == instrumentation::EventKind::kernel_begin) emitted_ = !recording;
    const bool of_kernel = event.kind == instrumentation::EventKind::kernel_begin ||
                           event.kind == instrumentation::EventKind::kernel_end;
    return emitted_ || !of_kernel;
  }

 private:
  bool emitted_ = true;
};

/// [Note: owners]
/// CUPTI keeps a stack of ids per thread and gives the top one to every call. Ours is never deeper than one:
/// whenever the innermost open span of a thread changes, its id replaces the one before. So spans that do not
/// nest need no unwinding, and an id of another library below stays where it is. The stack may outlive a
/// period of recording: what was pushed in the last one is still there when the next begins.
class PushedOwner {
 public:
  /// Makes `id` (owner_id) what the thread's calls are given. `pop()` gives the id it took from the stack, if
  /// it could; `push(id)` whether it could.
  template <typename Pop, typename Push>
  void replace_with(std::uint64_t id, const Pop& pop, const Push& push) {
    if (pushed_ != 0) {
      const std::optional<std::uint64_t> top = pop();
      if (top && *top != pushed_) push(*top);  // another's: ours has gone with what CUPTI forgot
    }
    pushed_ = id != 0 && push(id) ? id : 0;
  }

 private:
  std::uint64_t pushed_ = 0;  ///< 0: none
};

}  // namespace shardscope::profile
