// What arrives at a collector, in any order and with any numbers: sequence numbers, clock readings, batches
// and the collectives in them, and the answers and wishes that pausing depends on. The input is a list of
// frames, as wire_target.cpp reads them.
#include <map>
#include <vector>

#include "app/collector/collective_clocks.h"
#include "app/collector/pause_coordinator.h"
#include "app/collector/rank_session.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/take.h"

using namespace shardscope;
using namespace shardscope::collector;

namespace {

class Ranks {
 public:
  void take(const wire::Message& message, double now) {
    const std::uint32_t rank = message.header.rank % 4;
    RankSession& session = sessions_.try_emplace(rank, rank).first->second;
    if (const auto* hello = std::get_if<wire::Hello>(&message.body)) {
      if (session.control_incarnation != message.header.incarnation) {
        session.another_process(message.header.incarnation);
      }
      pauses_.set_world(hello->world);
      pauses_.rank_up(rank);
    } else if (const auto* pong = std::get_if<wire::Pong>(&message.body)) {
      session.clock.add(pong->ping_sent_ns, pong->received_ns, pong->sent_ns, at_ns_ += 1'000'000);
    } else if (const auto* prepared = std::get_if<wire::Prepared>(&message.body)) {
      pauses_.prepared(rank, *prepared, now);
    } else if (const auto* position = std::get_if<wire::Position>(&message.body)) {
      pauses_.position(rank, *position, now);
    } else if (std::holds_alternative<wire::ViewPoll>(message.body)) {
      pauses_.heartbeat(1, now);
    } else if (const auto* command = std::get_if<wire::ViewCommand>(&message.body)) {
      pauses_.command(1, *command, now);
    } else if (std::holds_alternative<wire::Finish>(message.body)) {
      pauses_.rank_finished(rank, now);
    } else if (const auto* batch = std::get_if<wire::Batch>(&message.body)) {
      if (session.accept(message.header, 0).order == RankSession::Order::next) {
        learn_clocks(rank, *batch, now);
        session.add(*batch, now);
      }
      while (session.pending()) {
        const store::Chunk chunk = session.take_chunk();
        const std::vector<std::byte> bytes = chunk.encode();
        fuzz::must(store::Chunk::decode(bytes.data(), bytes.size()).events.size() == chunk.events.size());
      }
    }
    pauses_.tick(now);
    (void)pauses_.control(now);
    for (const PauseCoordinator::Outgoing& out : pauses_.take_outgoing()) {
      const wire::Frame frame = wire::encode({message.header, out.command});
      fuzz::must(wire::decode(frame.data(), frame.size(), wire::From::collector_control).message.has_value());
    }
  }

 private:
  static constexpr std::uint32_t kWorld = 2;

  void learn_clocks(std::uint32_t rank, const wire::Batch& batch, double now) {
    const wire::Relay to_node = batch.relay.value_or(wire::Relay{});
    samples_.add(rank, kWorld, batch.events, to_node.offset_ns, to_node.residual_ns + batch.clock_error_ns,
                 now);
    while (const auto whole = samples_.take()) {
      std::vector<ClockEstimator*> clocks(whole->size());
      for (auto& [id, session] : sessions_) {
        if (id < clocks.size()) clocks[id] = &session.clock;
      }
      (void)refine_clocks(*whole, clocks);
      for (std::size_t i = 0; i < clocks.size(); ++i) {
        fuzz::must(clocks[i] == nullptr || clocks[i]->residual_ns((*whole)[i].begin_ns) >= 0);
      }
    }
  }

  std::map<std::uint32_t, RankSession> sessions_;
  CollectiveClockSamples samples_;
  PauseCoordinator pauses_{5};
  std::int64_t at_ns_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(data, size);
  Ranks ranks;
  for (double now = 0; !input.empty(); now += 0.5) {
    const auto from = static_cast<wire::From>(input.number<std::uint8_t>() % 5);
    const std::string_view frame = input.block();
    const wire::Decoded decoded = wire::decode(frame.data(), frame.size(), from);
    if (decoded.message) ranks.take(*decoded.message, now);
  }
  return 0;
}
