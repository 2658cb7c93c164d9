#include "instrumentation/wire_values.h"

namespace shardscope::instrumentation::wire {

namespace {

/// Bytes that the current frame may still unpack to. A damaged or hostile frame can refer to the same string
/// millions of times; a valid one unpacks to little more than its own size.
thread_local std::size_t t_budget = 0;

}  // namespace

// Valid tables unpack to about their size: strings that are shared in the frame are copies here, hence the
// factor. The constant is for small frames.
void set_budget(std::size_t frame_bytes) noexcept { t_budget = 4 * frame_bytes + (1U << 16); }

void spend(std::size_t bytes) {
  if (bytes > t_budget) throw BadValue("the message unpacks to far more than its size");
  t_budget -= bytes;
}

std::string text_of(const flatbuffers::String* s, std::size_t limit, const char* what) {
  // FlatBuffers omits empty strings and fields that an older writer did not have.
  if (s == nullptr) return {};
  // Charged first: a text above its limit is rejected in any case.
  spend(s->size());
  if (s->size() > limit)
    throw BadValue(std::string(what) + " has " + std::to_string(s->size()) + " bytes, at most " +
                   std::to_string(limit) + " are allowed");
  return s->str();
}

std::vector<std::uint32_t> ids_of(const flatbuffers::Vector<std::uint32_t>* v) {
  if (v == nullptr) return {};
  spend(v->size() * sizeof(std::uint32_t));
  return {v->begin(), v->end()};
}

}  // namespace shardscope::instrumentation::wire
