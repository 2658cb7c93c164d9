// Which of the engine's spans a thread is in, so that what it launches can be attributed to an owner. Input:
// the events that the engine emits anyway, in the order of the host.
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

/// An owner as the 64-bit id of CUPTI's external correlation; 0: no owner.
[[nodiscard]] constexpr std::uint64_t owner_id(Owner owner) noexcept {
  return static_cast<std::uint64_t>(owner.kind) << 32U | (owner.kind == Owner{}.kind ? 0 : owner.id);
}
/// No owner for a number that owner_id() does not return: another library may push its own ids.
[[nodiscard]] constexpr Owner owner_of_id(std::uint64_t id) noexcept {
  const std::uint64_t kind = id >> 32U;
  if (kind == 0 || kind >= instrumentation::kGpuOwnerCount) return {};
  return {static_cast<instrumentation::GpuOwner>(kind), static_cast<std::uint32_t>(id)};
}

/// The open spans of one thread. They need not nest: a gather begins inside one module and may end inside
/// another. A new phase of computation closes all of them: their ends are missing if the detail level was
/// lowered meanwhile.
class OpenSpans {
 public:
  /// Processes an event; returns true if it opened or closed a span that can be an owner.
  bool note(const instrumentation::Event& event) noexcept;
  /// The span opened last of those still open.
  [[nodiscard]] Owner innermost() const noexcept { return count_ == 0 ? Owner{} : open_[count_ - 1].owner; }

 private:
  static constexpr std::size_t kMost = 64;  ///< deeper spans count to their parents
  struct Open {
    instrumentation::EventKind end{};
    instrumentation::StreamId stream{};
    Owner owner;
  };
  std::array<Open, kMost> open_;
  std::size_t count_ = 0;
  std::size_t beyond_ = 0;  ///< open spans beyond kMost
};

/// Whether a thread's kernel spans are emitted: not while the driver's records contain them. The state at its
/// begin decides for a whole span, since recording may begin or end within a launch: a span without its end
/// would last until its module's end.
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
/// CUPTI keeps a stack of ids per thread and assigns the top one to every call. We push at most one: whenever
/// the innermost open span of a thread changes, its id replaces the previous one. So spans that do not nest
/// need no unwinding, and an id of another library below is not affected. The stack may outlive a period of
/// recording: an id pushed in the last one is still there when the next begins.
class PushedOwner {
 public:
  /// Makes `id` (owner_id) the owner of the thread's calls. `pop()` returns the id removed from the stack, or
  /// nullopt; `push(id)` returns whether it succeeded.
  template <typename Pop, typename Push>
  void replace_with(std::uint64_t id, const Pop& pop, const Push& push) {
    if (pushed_ != 0) {
      const std::optional<std::uint64_t> top = pop();
      if (top && *top != pushed_) push(*top);  // another library's: CUPTI has dropped ours
    }
    pushed_ = id != 0 && push(id) ? id : 0;
  }

 private:
  std::uint64_t pushed_ = 0;  ///< 0: none
};

}  // namespace shardscope::profile
