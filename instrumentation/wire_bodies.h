// Private to the decoder: decodes the body of a verified frame. All functions throw BadValue (wire_values.h)
// at the first invalid field.
#pragma once

#include <vector>

#include "instrumentation/schema_generated.h"
#include "instrumentation/wire.h"

namespace shardscope::instrumentation::wire {

/// Decodes any kind of body. A batch's events are decoded into `storage`.
[[nodiscard]] Body body_of(const fb::Frame& frame, const Header& header, std::vector<Event> storage);
/// The static tables of a run: model, modules, parameters, slices, groups.
[[nodiscard]] Tables tables_of(const fb::Tables& t, const Header& header);

}  // namespace shardscope::instrumentation::wire
