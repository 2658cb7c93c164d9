#include "runtime/comm/collective.h"

#include <bit>

namespace shardscope::comm {
namespace {

/// The number comes from another rank's memory and is only shown: every value must be accepted.
const char* name_of_type(std::uint32_t type) noexcept {
  switch (static_cast<kernels::DType>(type)) {
    case kernels::DType::f32:
      return "f32";
    case kernels::DType::bf16:
      return "bf16";
    case kernels::DType::f16:
      return "f16";
    case kernels::DType::i8:
      return "i8";
  }
  return "?";
}

/// Two shapes that differ collide with probability of about 2^-64: enough for a check of the program.
void mix(std::uint64_t& hash, std::uint64_t value) noexcept {  // splitmix64's finaliser
  hash += value + 0x9E3779B97F4A7C15ULL;
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9ULL;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBULL;
  hash ^= hash >> 31;
}

}  // namespace

/// Computed for every collective: one pass over the parts, no allocation.
Signature signature_of(const Collective& collective, std::uint64_t calls) noexcept {
  Signature s;
  s.op = static_cast<std::uint32_t>(collective.op);
  s.type = static_cast<std::uint32_t>(collective.type);
  s.parts = static_cast<std::uint32_t>(collective.parts.size());
  s.group = collective.group;
  s.sequence = collective.sequence;
  // Bits, not values: a factor that differs in the last place changes the sums.
  s.factor_bits = std::bit_cast<std::uint32_t>(collective.factor);
  // Count of this communicator: ranks that are one collective apart differ here even if successive
  // collectives are equal.
  s.calls = calls;
  s.elems = collective.elems;
  for (const Part& part : collective.parts) {
    // Addresses are left out: each rank has its own. The order of parts is compared.
    mix(s.shape_hash, static_cast<std::uint64_t>(part.elems));
    mix(s.shape_hash, static_cast<std::uint64_t>(part.extent));
    // The parameter distinguishes parts of equal shape: gathering another one of equal size would otherwise
    // pass.
    mix(s.shape_hash, std::uint64_t{part.param} << 32 | part.root);
  }
  return s;
}

bool same(const Signature& a, const Signature& b) noexcept {
  return a.op == b.op && a.type == b.type && a.parts == b.parts && a.factor_bits == b.factor_bits &&
         a.calls == b.calls && a.elems == b.elems && a.shape_hash == b.shape_hash;
}

/// Elements in units of the type; of packed int4 values these are bytes.
std::string describe(const Signature& s) {
  std::string text = name_of(static_cast<instrumentation::CollectiveOp>(s.op));
  text += " of " + std::to_string(s.parts) + (s.parts == 1 ? " part, " : " parts, ") +
          std::to_string(s.elems) + " elements " + name_of_type(s.type) + " (call " + std::to_string(s.calls);
  if (s.group != instrumentation::kNoId) text += ", group " + std::to_string(s.group);
  return text + ")";
}

/// Names both ranks with what each issued; built from published signatures only, so it is the same on every
/// rank.
std::string mismatch_text(const std::string& communicator, std::uint32_t rank_a, const Signature& a,
                          std::uint32_t rank_b, const Signature& b) {
  std::string text = "the ranks issued different collectives on communicator '" + communicator + "': rank " +
                     std::to_string(rank_a) + " " + describe(a) + ", rank " + std::to_string(rank_b) + " " +
                     describe(b);
  // Both descriptions above are equal: only the hash, the type or the factor differs.
  if (a.elems == b.elems && a.parts == b.parts && a.op == b.op && a.calls == b.calls) {
    text += ", with other part sizes, roots, types, factors or parameters";
  }
  return text + "; every rank must run the same modules in the same order";
}

std::string host_mismatch_text(const std::string& communicator, std::uint32_t rank_a, const char* call_a,
                               std::uint64_t bytes_a, std::uint32_t rank_b, const char* call_b,
                               std::uint64_t bytes_b) {
  return "the ranks issued different calls on communicator '" + communicator + "': rank " +
         std::to_string(rank_a) + " " + call_a + " of " + std::to_string(bytes_a) + " bytes, rank " +
         std::to_string(rank_b) + " " + call_b + " of " + std::to_string(bytes_b) +
         " bytes; every rank must make the same calls in the same order";
}

}  // namespace shardscope::comm
