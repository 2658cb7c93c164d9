// Frames to messages. FlatBuffers' verifier sees that every offset and vector lies inside the frame; what it
// cannot know is looked at where the body is read (wire_bodies.h), with how much memory it may unpack to
// (wire_values.h). Nothing is returned of a frame with one bad field.
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

// Batch to RunEnd are neighbours in the schema's union: a body that is put between them would be allowed
// here.
bool allowed(fb::Body body, From from) noexcept {
  switch (from) {
    case From::rank_publish:
      return body >= fb::Body_Batch && body <= fb::Body_RunEnd;
    // Of the rank's process, or of a node's collector in its place.
    case From::rank_control:
      return body == fb::Body_Hello || body == fb::Body_Pong || body == fb::Body_Prepared ||
             body == fb::Body_Position || body == fb::Body_RelayHello;
    case From::collector_control:
      return body == fb::Body_Ping || body == fb::Body_RankCommand || body == fb::Body_Received ||
             body == fb::Body_Refusal;
    case From::viewer:
      // A text asks to keep a moment: app/collector/moment_request.h.
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
  // Only publishers send tables, and only a collector answers a viewer with them: what others send is small.
  const bool large = from == From::rank_publish || from == From::collector_view;
  const std::size_t limit = large ? kMaxFrameBytes : kMaxControlBytes;
  if (bytes > limit) {
    return rejected(Reject::size,
                    std::to_string(bytes) + " bytes, at most " + std::to_string(limit) + " are accepted");
  }
  // The identifier, at bytes 4 to 8, is read before the verifier has seen the frame.
  if (bytes < 16) return rejected(Reject::size, "only " + std::to_string(bytes) + " bytes");
  // FlatBuffers reads scalars in place; a socket's buffer may lie anywhere.
  // Of 64-bit words: the vector's memory is aligned as the frame has to be.
  std::vector<std::uint64_t> large_copy;
  const auto* base = static_cast<const std::uint8_t*>(data);
  // Sizes of scalars are at most 8 bytes: an address that 8 divides is right for each that FlatBuffers has
  // aligned.
  if (reinterpret_cast<std::uintptr_t>(base) % alignof(std::uint64_t) != 0) {
    // Batches come one after another: they share a copy that is kept. Tables are rare.
    thread_local std::vector<std::uint64_t> kept_copy;
    // A batch of any size that a rank sends fits (FrameMemory::kBlockBytes); a copy of large tables is not
    // kept by the thread.
    constexpr std::size_t kKept = std::size_t{1} << 19;
    std::vector<std::uint64_t>& aligned = bytes <= kKept ? kept_copy : large_copy;
    // Grows only: bytes of an earlier, longer frame stay behind the end and are not looked at.
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
  // Read in place, without a copy, for as long as `base` is there: what is kept of it is copied by body_of().
  const fb::Frame& frame = *fb::GetFrame(base);
  // After the verifier, so that reading it is safe; before the body, of which another version may mean
  // something else.
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
