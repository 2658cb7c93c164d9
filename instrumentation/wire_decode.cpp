// Frames to messages. FlatBuffers' verifier checks that every offset and vector is inside the frame; other
// checks are where the body is decoded (wire_bodies.h), with a limit on the memory it may unpack to
// (wire_values.h). A frame with one invalid field is rejected as a whole.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "instrumentation/schema_generated.h"
#include "instrumentation/wire.h"
#include "instrumentation/wire_bodies.h"
#include "instrumentation/wire_values.h"

namespace shardscope::instrumentation::wire {

namespace {

// Batch to RunEnd are consecutive in the schema's union: a body inserted between them would be allowed
// here.
bool allowed(fb::Body body, From from) noexcept {
  switch (from) {
    case From::rank_publish:
      return body >= fb::Body_Batch && body <= fb::Body_RunEnd;
    // From the rank's process, or from a node's collector in its place.
    case From::rank_control:
      return body == fb::Body_Hello || body == fb::Body_Pong || body == fb::Body_Prepared ||
             body == fb::Body_Position || body == fb::Body_RelayHello;
    case From::collector_control:
      return body == fb::Body_Ping || body == fb::Body_RankCommand || body == fb::Body_Received ||
             body == fb::Body_Refusal;
    case From::viewer:
      // A text requests to store a moment: app/collector/moment_request.h.
      return body == fb::Body_ViewPoll || body == fb::Body_ViewCommand || body == fb::Body_Text;
    case From::collector_view:
      return body == fb::Body_ViewReply;
  }
  return false;
}

Decoded rejected(Reject reject, std::string why) { return {std::nullopt, reject, std::move(why)}; }

}  // namespace

const char* name_of(Reject reject) noexcept {
  switch (reject) {
    case Reject::none:
      return "none";
    case Reject::size:
      return "size";
    case Reject::garbage:
      return "garbage";
    case Reject::version:
      return "version";
    case Reject::body:
      return "body";
    case Reject::value:
      return "value";
  }
  return "unknown";
}

Decoded decode(const void* data, std::size_t bytes, From from, std::vector<Event> storage) {
  // Only publishers send tables, and only a collector sends them to viewers: other frames are small.
  const bool large = from == From::rank_publish || from == From::collector_view;
  const std::size_t limit = large ? kMaxFrameBytes : kMaxControlBytes;
  if (bytes > limit) {
    return rejected(Reject::size,
                    std::to_string(bytes) + " bytes, at most " + std::to_string(limit) + " are accepted");
  }
  // The identifier, bytes 4 to 8, is read before the verifier runs.
  if (bytes < 16) return rejected(Reject::size, "only " + std::to_string(bytes) + " bytes");
  // FlatBuffers reads scalars in place, but a socket's buffer may have any address. 64-bit words, so that the
  // vector's memory is aligned.
  std::vector<std::uint64_t> large_copy;
  const auto* base = static_cast<const std::uint8_t*>(data);
  // Scalars have at most 8 bytes: with the base aligned to 8, every scalar that FlatBuffers aligned is
  // aligned.
  if (reinterpret_cast<std::uintptr_t>(base) % alignof(std::uint64_t) != 0) {
    // Batches arrive one after another: they share a buffer that is kept. Tables are rare.
    thread_local std::vector<std::uint64_t> kept_copy;
    // A batch of any size that a rank sends fits (FrameMemory::kBlockBytes); a copy of large tables is not
    // kept.
    constexpr std::size_t kKept = std::size_t{1} << 19;
    std::vector<std::uint64_t>& aligned = bytes <= kKept ? kept_copy : large_copy;
    // Never shrinks: bytes of an earlier, longer frame remain behind the end and are not read.
    if (aligned.size() * sizeof(std::uint64_t) < bytes) aligned.resize((bytes + 7) / 8);
    std::memcpy(aligned.data(), data, bytes);
    base = reinterpret_cast<const std::uint8_t*>(aligned.data());
  }
  if (!flatbuffers::BufferHasIdentifier(base, fb::FrameIdentifier())) {
    return rejected(Reject::garbage, "not a Shardscope message");
  }
  // 16 levels and 8 million tables: nothing in the schema is nested so deep, and the tables of the largest
  // model are fewer (kMaxModules, kMaxParams).
  flatbuffers::Verifier verifier(base, bytes, 16, 8'000'000);
  if (!fb::VerifyFrameBuffer(verifier)) return rejected(Reject::garbage, "the message is damaged");
  // Read in place, without a copy, while `base` is valid; body_of() copies what it keeps.
  const fb::Frame& frame = *fb::GetFrame(base);
  // After the verifier, so that reading it is safe; before the body, whose meaning may differ in another
  // version.
  if (frame.version() != kVersion) {
    return rejected(Reject::version, "protocol version " + std::to_string(frame.version()) +
                                         ", this program speaks " + std::to_string(kVersion) +
                                         "; use the same Shardscope release on both sides");
  }
  if (frame.body() == nullptr || !allowed(frame.body_type(), from)) {
    return rejected(Reject::body,
                    "a message of kind " + std::to_string(frame.body_type()) + " does not belong here");
  }
  set_budget(bytes);
  try {
    Message message;
    message.header.rank = frame.rank();
    require(message.header.rank < kMaxWorld, "rank out of range");
    message.header.incarnation = frame.incarnation();
    message.header.sequence = frame.sequence();
    require(message.header.sequence <= kMaxMessages, "more messages than a process can have sent");
    message.header.run_id = text_of(frame.run_id(), kMaxName, "run id");
    message.header.source = frame.source();
    message.header.source_next = frame.source_next();
    require(message.header.source_next <= kMaxMessages + 1, "more messages than a process can have sent");
    // The header first: a Hello and tables are checked against it.
    message.body = body_of(frame, message.header, std::move(storage));
    return {std::move(message), Reject::none, {}};
  } catch (const BadValue& bad) {
    return rejected(Reject::value, bad.what());
  }
}

}  // namespace shardscope::instrumentation::wire
