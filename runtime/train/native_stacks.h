// Where every thread of this process is: the answer to `why --stacks`. Each thread writes down its own calls
// in a signal handler, one thread at a time; names are looked up afterwards, by the thread that answers.
#pragma once

#include <string>

namespace shardscope::train {

/// Early, by the main thread: what the handler needs is loaded here. False where the program uses the signal.
[[nodiscard]] bool prepare_native_stacks();
/// Of every other thread the innermost call first; of one that does not answer (it blocks the signal, or the
/// kernel holds it) what the kernel says. Takes 100 ms at most for each of those. Without a successful
/// prepare_native_stacks() why there are none. Not in a signal handler.
[[nodiscard]] std::string native_stacks();

}  // namespace shardscope::train
