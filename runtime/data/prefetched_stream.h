// Micro-batches read ahead by a thread, so that training does not wait for files: what PyTorch's DataLoader
// does with workers. The batches and their order are those of the stream underneath.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/data/stream.h"

namespace shardscope::data {

/// Holds up to `depth` micro-batches that are ready, and one being read. Takes over `source`, which no one
/// else touches from then on; depth > 0. state() is that of the batches handed out, not of those read ahead:
/// a checkpoint loses none and repeats none. What the source throws arrives at the next() that would have
/// returned its batch, and at every one after it.
[[nodiscard]] std::unique_ptr<BatchStream> read_ahead(std::unique_ptr<BatchStream> source, std::size_t depth);

}  // namespace shardscope::data
