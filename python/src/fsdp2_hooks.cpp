#include "fsdp2_hooks.h"

#include <Python.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "attribute.h"
#include "buckets.h"
#include "fsdp2_groups.h"
#include "gate.h"
#include "native_hook.h"
#include "parts.h"
#include "session.h"
#include "shardscope/shardscope.h"

namespace shardscope::python {
namespace {

/// Gathers, waits, reductions, spans and gates of groups; fsdp2.py installs the hooks. In C++ because a step
/// calls hundreds of them, each after a matrix product has evicted the caches.
class Fsdp2Hooks {
 public:
  /// Values of torch's enumerations: `forward`, `pre_backward` (TrainingState), `sharded`, `unsharded`,
  /// `post_forward` (ShardedState; None if groups do not have it). `graph_task`: torch's id of the running
  /// backward, or -1; `unreduced`(): called if this micro-step's gradients are not reduced. `session` and
  /// `buckets` must outlive this.
  Fsdp2Hooks(SessionState& session, Buckets& buckets, nb::object forward, nb::object pre_backward,
             nb::object sharded, nb::object unsharded, nb::object post_forward, nb::object graph_task,
             nb::object unreduced)
      : session_(session),
        buckets_(buckets),
        forward_(std::move(forward)),
        pre_backward_(std::move(pre_backward)),
        graph_task_(std::move(graph_task)),
        unreduced_(std::move(unreduced)),
        is_sharded_(std::move(sharded), "is_sharded"),
        is_unsharded_(std::move(unsharded), "is_unsharded"),
        is_post_forward_(std::move(post_forward), "is_sharded_post_forward") {}

  /// The memory slots that change at each hook: Slots each.
  void memory(nb::handle group, nb::object issued, nb::object available, nb::object released,
              nb::object backward, nb::object reduced) {
    Fsdp2Group& of = groups_.add(group);
    of.issued = HookedMemory(std::move(issued));
    of.available = HookedMemory(std::move(available));
    of.released = HookedMemory(std::move(released));
    of.backward = HookedMemory(std::move(backward));
    of.reduced = HookedMemory(std::move(reduced));
  }
  /// `copy_in`, `copy_out`: names of spans.
  void describe(nb::handle group, std::uint32_t module, nb::object parts, std::int64_t bytes,
                std::int64_t shard, std::int64_t secondary, std::size_t count, std::uint32_t copy_in,
                std::uint32_t copy_out) {
    Fsdp2Group& of = groups_.add(group);
    of.module = module;
    of.parts = nb::cast<const Parts*>(parts);
    of.parts_owner = std::move(parts);
    of.bytes = bytes;
    of.shard = shard;
    of.secondary = secondary;
    of.count = count;
    copy_in_ = copy_in;
    copy_out_ = copy_out;
  }

  /// Begins the span of a group's module among those of other modules (modules.py); None: these have none.
  nb::object begin_backward = nb::none();

  bool unshard(nb::handle group) {
    if (!session_.started || !issues_gather(group)) return false;
    Fsdp2Group* of = groups_.of(group);
    if (of == nullptr || !of->described()) return false;
    // By torch's own state: the user may have resharded a group between its forward and this call.
    of->secondary_held = is_post_forward_(group);
    gathering_shard_ = of->secondary_held ? of->secondary : of->shard;
    of->gather = ++session_.gathers;
    of->cause = cause_;
    const std::uint8_t held = of->secondary_held ? SHARDSCOPE_SECONDARY_HELD : 0;
    session_.available = of->parts->status(SHARDSCOPE_LANE_GATHER, SHARDSCOPE_IN_FLIGHT | held, cause_,
                                           of->module, of->gather, session_.available, 1);
    if (cause_ == SHARDSCOPE_CAUSE_PREFETCH)
      shardscope_prefetch_issued(of->gather, entered_, static_cast<std::uint32_t>(of->parts->size()),
                                 of->parts->elems());
    session_.purpose = Purpose{SHARDSCOPE_LANE_GATHER, of->gather, of->parts_owner};
    return true;
  }
  void unsharding(nb::handle group) {
    session_.purpose_served();
    if (const Fsdp2Group* of = groups_.of(group); of != nullptr) of->issued.changed();
  }

  /// Lasts until the gather itself is issued (collectives.py).
  void copy_in_begins() {
    if (!session_.started || !session_.purpose || session_.purpose->lane != SHARDSCOPE_LANE_GATHER) return;
    const std::uint32_t gather = session_.purpose->id;
    shardscope_span_begin(SHARDSCOPE_LANE_EXTRA_1, copy_in_, gather, gathering_shard_);
    session_.until_issued =
        shardscope_event{SHARDSCOPE_EVENT_SPAN_END, SHARDSCOPE_LANE_EXTRA_1, 0, copy_in_, gather,
                         SHARDSCOPE_NO_ID,          gathering_shard_,        0};
  }
  void copy_in_ended() { session_.issued(); }

  void copy_out_begins() {
    copied_out_ = session_.started ? waiting_ : std::nullopt;
    if (copied_out_)
      shardscope_span_begin(SHARDSCOPE_LANE_COMPUTE, copy_out_, copied_out_->first, copied_out_->bytes);
  }
  void copy_out_ended() {
    if (copied_out_)
      shardscope_span_end(SHARDSCOPE_LANE_COMPUTE, copy_out_, copied_out_->first, copied_out_->bytes);
    copied_out_.reset();
  }

  std::uint8_t prefetch_begins() { return std::exchange(cause_, std::uint8_t{SHARDSCOPE_CAUSE_PREFETCH}); }
  void prefetch_ended(std::uint8_t before) { cause_ = before; }

  bool wait_begins(nb::handle group) {
    const Fsdp2Group* of = groups_.of(group);
    waiting_.reset();
    if (of == nullptr || !of->described()) return false;
    waiting_ = Wait{of->module, of->gather, of->parts->first(), of->bytes};
    if (!session_.started || of->gather == SHARDSCOPE_NO_ID || !result_.is_true(group)) return false;
    if (!session_.on_device) shardscope_fetch_wait_begin(of->module, of->gather, of->bytes);
    return true;
  }
  void wait_ended(nb::handle group) {
    if (!session_.on_device && waiting_)
      shardscope_fetch_wait_end(waiting_->module, waiting_->gather, waiting_->bytes);
    if (const Fsdp2Group* of = groups_.of(group); of != nullptr) of->available.changed();
  }

  void available(nb::handle group) {
    if (!session_.started || is_unsharded_(group)) return;
    Fsdp2Group* of = groups_.of(group);
    if (of == nullptr || !of->described()) return;
    of->secondary_held = false;
    (void)of->parts->status(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_AVAILABLE, of->cause, of->module, of->gather,
                            session_.available, 0);
  }
  void released(nb::handle group) {
    if (Fsdp2Group* of = leaving(group, is_sharded_); of != nullptr) release(*of);
  }
  /// After the forward, resharded to fewer ranks: the next gather is among those.
  void released_in_part(nb::handle group) {
    Fsdp2Group* of = leaving(group, is_post_forward_);
    if (of == nullptr) return;
    of->secondary_held = true;
    release(*of);
  }
  void freed(nb::handle group) {
    if (const Fsdp2Group* of = groups_.of(group); of != nullptr) of->released.changed();
  }
  /// The end of the backward of all groups: torch then waits for a gather that nothing has waited for, and
  /// drops it without changing the group's state. True if there is one.
  bool finalize_begins(nb::handle group) { return session_.started && !result_.of(group).is_none(); }
  void finalized(nb::handle group) {
    Fsdp2Group* of = groups_.of(group);
    if (of == nullptr || of->gather == SHARDSCOPE_NO_ID) return;
    release(*of);
    of->released.changed();
  }
  /// A group that stays gathered from its forward to its backward (the root: by FSDP2 itself).
  void kept(nb::handle group) {
    if (!session_.started || !training_state_.of(group).is(forward_) || reshards_.is_true(group)) return;
    const Fsdp2Group* of = groups_.of(group);
    if (of != nullptr && of->described()) of->parts->kept(SHARDSCOPE_KEEP_RESHARD_OFF, of->module);
  }

  void pre_forward(nb::handle group) { enters(group, SHARDSCOPE_GATE_PRE_FORWARD); }
  void forward_span(nb::handle group) {
    const std::uint32_t module = module_of(group);
    if (!session_.started || module == SHARDSCOPE_NO_ID) return;
    const bool in_backward = nb::cast<std::int64_t>(graph_task_()) != -1;
    if (in_backward && session_.spans.holds(SHARDSCOPE_PASS_RECOMPUTE, module)) return;  // by modules.py
    session_.begin_span(in_backward ? SHARDSCOPE_PASS_RECOMPUTE : SHARDSCOPE_PASS_FORWARD, module);
  }
  void post_forward(nb::handle group) {
    const std::uint32_t module = module_of(group);
    // Not the backward, in which it may be recomputed.
    if (session_.spans.holds(SHARDSCOPE_PASS_FORWARD, module) ||
        session_.spans.holds(SHARDSCOPE_PASS_RECOMPUTE, module))
      session_.end_span(module);
  }
  void post_forward_gate(nb::handle group) { gate(SHARDSCOPE_GATE_POST_FORWARD, module_of(group)); }

  /// torch's hook runs once for each output; only the first call has an effect.
  bool pre_backward(nb::handle group) {
    if (training_state_.of(group).is(pre_backward_)) return false;
    enters(group, SHARDSCOPE_GATE_PRE_BACKWARD);
    return true;
  }
  void backward_span(nb::handle group) {
    const std::uint32_t module = module_of(group);
    if (!session_.started || module == SHARDSCOPE_NO_ID) return;
    if (begin_backward.is_none())
      session_.begin_span(SHARDSCOPE_PASS_BACKWARD, module);
    else
      (void)begin_backward(module);
  }
  /// The group whose backward was being ended before; usually none.
  nb::object post_backward(nb::handle group) {
    const Fsdp2Group* of = groups_.of(group);
    session_.end_span(of == nullptr ? SHARDSCOPE_NO_ID : of->module);
    if (of != nullptr) of->backward.changed();
    nb::object before = std::exchange(reducing_, nb::borrow(group));
    if (!reduce_grads_.is_true(group)) (void)unreduced_();
    return before;
  }
  void post_backward_ended(nb::handle before, nb::handle group) {
    reducing_ = nb::borrow(before);
    if (const Fsdp2Group* of = groups_.of(group); of != nullptr) of->reduced.changed();
    gate(SHARDSCOPE_GATE_POST_BACKWARD, module_of(group));
  }

  void reduce_begins(nb::handle params) {
    if (!session_.started || reducing_.is_none()) return;
    const Fsdp2Group* of = groups_.of(reducing_);
    nb::object parts;
    // If the lists differ, some parameters have no gradient, or the order is different.
    const bool whole = of != nullptr && of->parts != nullptr && of->count == nb::len(params) &&
                       fsdp_params_.of(reducing_).equal(params);
    if (whole) {
      parts = of->parts_owner;
    } else {
      std::vector<Part> some;
      for (const nb::handle param : params) {
        const std::uint32_t number = session_.params.of(param);
        if (number != SHARDSCOPE_NO_ID) some.emplace_back(number, session_.elems(number));
      }
      if (some.empty()) return;  // of a stage of a pipeline: its parameters are in no table
      parts = nb::cast(Parts(std::move(some)));
    }
    // A bucket is complete with the group's backward: it has no size limit.
    buckets_.whole(std::move(parts), SHARDSCOPE_FLUSH_GROUP_COMPLETE);
  }
  void reduce_issued() { session_.purpose_served(); }

 private:
  struct Wait {
    std::uint32_t module, gather, first;  ///< `first`: its first parameter
    std::int64_t bytes;
  };

  /// A gathered, recorded group that is not yet in this state; null: none.
  [[nodiscard]] Fsdp2Group* leaving(nb::handle group, const IsInState& for_state) {
    Fsdp2Group* of = groups_.of(group);
    const bool gathered = session_.started && of != nullptr && of->gather != SHARDSCOPE_NO_ID;
    return gathered && !for_state(group) ? of : nullptr;
  }
  void release(Fsdp2Group& of) {
    const std::uint32_t gather = std::exchange(of.gather, SHARDSCOPE_NO_ID);
    of.cause = SHARDSCOPE_CAUSE_FETCH;
    const std::uint8_t held = of.secondary_held ? SHARDSCOPE_SECONDARY_HELD : 0;
    session_.available =
        of.parts->status(SHARDSCOPE_LANE_COMPUTE, SHARDSCOPE_NOT_AVAILABLE | held, SHARDSCOPE_CAUSE_RELEASE,
                         of.module, gather, session_.available, -1);
  }
  /// The conditions that unshard() checks before it gathers.
  [[nodiscard]] bool issues_gather(nb::handle group) const {
    return result_.of(group).is_none() && !is_unsharded_(group) &&
           (unshards_in_backward_.is_true(group) || !training_state_.of(group).is(pre_backward_));
  }
  [[nodiscard]] std::uint32_t module_of(nb::handle group) const {
    const Fsdp2Group* of = groups_.of(group);
    return of == nullptr ? SHARDSCOPE_NO_ID : of->module;
  }
  void gate(std::int32_t kind, std::uint32_t module) const {
    if (module != SHARDSCOPE_NO_ID && session_.in_micro_step) (void)pass_gate(kind, module);
  }
  void enters(nb::handle group, std::int32_t kind) {
    entered_ = module_of(group);
    gate(kind, entered_);
  }

  SessionState& session_;
  Buckets& buckets_;
  Fsdp2Groups groups_;
  std::uint8_t cause_ = SHARDSCOPE_CAUSE_FETCH;  ///< of gathers issued now
  std::uint32_t entered_ =
      SHARDSCOPE_NO_ID;  ///< module whose pre_forward or pre_backward runs: where prefetches are issued
  std::uint32_t copy_in_ = 0, copy_out_ = 0;  ///< numbers of names
  std::int64_t gathering_shard_ = 0;          ///< of the group in unshard
  std::optional<Wait> waiting_, copied_out_;  ///< of the group in wait_for_unshard
  nb::object reducing_ = nb::none();          ///< group in post_backward
  nb::object forward_, pre_backward_, graph_task_, unreduced_;
  IsInState is_sharded_, is_unsharded_, is_post_forward_;
  Attribute result_{"_all_gather_result"}, training_state_{"_training_state"},
      unshards_in_backward_{"unshard_in_backward"}, reshards_{"_reshard_after_forward"},
      reduce_grads_{"reduce_grads"}, fsdp_params_{"fsdp_params"};
};

using Hooks = Fsdp2Hooks;

}  // namespace

void add_fsdp2_hooks(nb::module_& module) {
  using nb::arg;
  nb::class_<Hooks>(module, "Fsdp2Hooks")
      .def(nb::init<SessionState&, Buckets&, nb::object, nb::object, nb::object, nb::object, nb::object,
                    nb::object, nb::object>(),
           nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), arg("session"), arg("buckets"), arg("forward"),
           arg("pre_backward"), arg("sharded").none(), arg("unsharded").none(), arg("post_forward").none(),
           arg("graph_task"), arg("unreduced"))
      .def("memory", &Hooks::memory)
      .def("describe", &Hooks::describe)
      .def_rw("begin_backward", &Hooks::begin_backward, arg().none())
      .def_prop_ro("unshard", before_self(&Hooks::unshard))
      .def_prop_ro("unsharding", after_self_if(&Hooks::unsharding))
      .def_prop_ro("copy_in_begins", before_any(&Hooks::copy_in_begins))
      .def_prop_ro("copy_in_ended", after_any(&Hooks::copy_in_ended))
      .def_prop_ro("copy_out_begins", before_any(&Hooks::copy_out_begins))
      .def_prop_ro("copy_out_ended", after_any(&Hooks::copy_out_ended))
      .def_prop_ro("prefetch_begins", hook_before<Hooks>([](Hooks& hooks, const CallArguments&) {
                     return nb::object(nb::int_(hooks.prefetch_begins()));
                   }))
      .def_prop_ro("prefetch_ended",
                   hook_after<Hooks>([](Hooks& hooks, nb::handle before, const CallArguments&) {
                     hooks.prefetch_ended(nb::cast<std::uint8_t>(before));
                   }))
      .def_prop_ro("wait_begins", before_self(&Hooks::wait_begins))
      .def_prop_ro("wait_ended", after_self_if(&Hooks::wait_ended))
      .def_prop_ro("available", before_self(&Hooks::available))
      .def_prop_ro("released", before_self(&Hooks::released))
      .def_prop_ro("released_in_part", before_self(&Hooks::released_in_part))
      .def_prop_ro("freed", after_self(&Hooks::freed))
      .def_prop_ro("finalize_begins", before_self(&Hooks::finalize_begins))
      .def_prop_ro("finalized", after_self_if(&Hooks::finalized))
      .def_prop_ro("kept", before_self(&Hooks::kept))
      .def_prop_ro("pre_forward", before_self(&Hooks::pre_forward))
      .def_prop_ro("forward_span", after_self(&Hooks::forward_span))
      .def_prop_ro("post_forward", before_self(&Hooks::post_forward))
      .def_prop_ro("post_forward_gate", after_self(&Hooks::post_forward_gate))
      .def_prop_ro("pre_backward", before_self(&Hooks::pre_backward))
      .def_prop_ro("backward_span", after_self_if(&Hooks::backward_span))
      .def_prop_ro("post_backward", before_self(&Hooks::post_backward))
      .def_prop_ro("post_backward_ended",
                   hook_after<Hooks>([group = Argument(0, "self")](Hooks& hooks, nb::handle before,
                                                                   const CallArguments& call) {
                     hooks.post_backward_ended(before, group.of(call));
                   }))
      .def_prop_ro("reduce_begins", hook_before<Hooks>([params = Argument(0, "fsdp_params")](
                                                           Hooks& hooks, const CallArguments& call) {
                     hooks.reduce_begins(params.of(call));
                   }))
      .def_prop_ro("reduce_issued", after_any(&Hooks::reduce_issued));
}

}  // namespace shardscope::python
