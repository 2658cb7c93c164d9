// Micro-batches read ahead by a thread, so that training does not wait for files, like PyTorch's DataLoader
// with workers. The batches and their order are those of the wrapped stream.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/data/stream.h"

namespace shardscope::data {

/// Buffers up to `depth` micro-batches, and one being read. Takes ownership of `source`; depth > 0. state()
/// is that of the batches returned, not of those read ahead: a checkpoint loses none and repeats none. An
/// exception of the source is rethrown by the next() that would have returned its batch, and by every later
/// one.
[[nodiscard]] std::unique_ptr<BatchStream> read_ahead(std::unique_ptr<BatchStream> source, std::size_t depth);

}  // namespace shardscope::data
