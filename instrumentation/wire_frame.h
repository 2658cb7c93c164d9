// Private to the wire code: what a Frame holds.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include "instrumentation/wire.h"

namespace shardscope::instrumentation::wire {

struct Frame::Buffer {
  flatbuffers::DetachedBuffer bytes;
};

}  // namespace shardscope::instrumentation::wire
