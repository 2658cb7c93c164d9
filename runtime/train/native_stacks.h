// Native stacks of all threads of this process, for `why --stacks`. Each thread records its own frames in a
// signal handler, one thread at a time; the requesting thread looks names up afterwards.
#pragma once

#include <string>

namespace shardscope::train {

/// Call early, on the main thread: loads what the handler needs. Returns false if the signal is already in
/// use.
[[nodiscard]] bool prepare_native_stacks();
/// Stacks of all other threads, innermost frame first; for a thread that does not respond (it blocks the
/// signal, or is in the kernel) its kernel wait. Waits at most 100 ms for each of those. Without a successful
/// prepare_native_stacks() the reason why there are none. Must not be called in a signal handler.
[[nodiscard]] std::string native_stacks();

}  // namespace shardscope::train
