// Private to the decoder: what a frame carries, as the message's body. The verifier has seen the frame. All
// throw BadValue (wire_values.h) at the first bad field.
#pragma once

#include <vector>

#include "instrumentation/schema_generated.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation::wire {

/// Of any kind. A batch's events are decoded into `storage`.
[[nodiscard]] Body body_of(const fb::Frame& frame, const Header& header, std::vector<Event> storage);
/// What a rank says of its run once: model, modules, parameters, slices, groups.
[[nodiscard]] Tables tables_of(const fb::Tables& t, const Header& header);

}  // namespace shardscope::instrumentation::wire
