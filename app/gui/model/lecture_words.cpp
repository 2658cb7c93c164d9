// Explanations for the first scene of each kind in a lecture.
#include "app/gui/model/lecture_words.h"

#include <cstddef>

namespace shardscope::gui {

namespace {

/// The ranks that share one copy of the model.
std::string ranks_text(std::uint32_t ranks) {
  if (ranks == 0) return "the ranks that share one copy of the model";
  return "the " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

/// The explanation for FSDP2 where it differs from ZeRO; empty: ZeRO's applies.
std::string fsdp2_lesson(SceneKind kind, std::uint32_t ranks) {
  switch (kind) {
    case SceneKind::step:
      return "fully_shard() divides the parameters of a group, their gradients and optimizer states over " +
             ranks_text(ranks) +
             ": each keeps its part. A group is unsharded only around the time that it is needed.";
    case SceneKind::forward:
      return "The groups run one after the other. Before each its parameters are unsharded, after it they "
             "are "
             "resharded.";
    case SceneKind::backward:
      return "The groups run in the reverse order. What was resharded is unsharded once more, and each group "
             "produces its gradients.";
    case SceneKind::gather:
      return "Unshard: every rank sends its part of these parameters to every other one in an all-gather, so "
             "that each has the whole. The group that runs next waits for it.";
    case SceneKind::prefetch:
      return "The same ahead of time: the next group is unsharded while this one computes, so that "
             "computation "
             "hides the communication.";
    case SceneKind::available:
      return "All parts have arrived. The group that needs these parameters can compute with them.";
    case SceneKind::wait:
      return "Compute waits until the unshard has ended. This is exposed communication: nothing "
             "hides it.";
    case SceneKind::release:
      return "Reshard: the whole is released after use, and the rank has only its part again. That is why "
             "the model does not have to fit into one device.";
    case SceneKind::kept:
      return "Not every group is resharded: with reshard_after_forward=False, and the root by default, it "
             "stays unsharded up to its backward, which saves an unshard.";
    case SceneKind::bucket_add:
      return "Gradients are not reduced one by one: those of a group are reduced as one.";
    case SceneKind::bucket_flush:
      return "Every gradient of the group is there. They are reduced over the ranks, and each rank receives "
             "the "
             "part that it owns.";
    case SceneKind::optimizer:
      return "Each rank updates its own part, with the optimizer states that it alone has. The next unshards "
             "bring the new values to the others.";
    default:
      return {};
  }
}

}  // namespace

std::string lesson_of(SceneKind kind, std::uint32_t ranks, store::Framework framework) {
  if (framework == store::Framework::fsdp2) {
    if (std::string text = fsdp2_lesson(kind, ranks); !text.empty()) return text;
  }
  switch (kind) {
    case SceneKind::step:
      if (ranks == 1)
        return "At stage 3 every parameter, gradient and optimizer state is divided over the ranks. This run "
               "has one: its part is the whole.";
      return "At stage 3 every parameter, gradient and optimizer state is divided over " + ranks_text(ranks) +
             ": each keeps its part. A parameter is whole on a rank only around the time that a module "
             "needs it; small ones may stay.";
    case SceneKind::forward:
      return "The modules run one after the other. Before each its parameters are gathered, after it they "
             "are released.";
    case SceneKind::backward:
      return "The modules run in the reverse order. Their parameters are gathered once more, and each "
             "produces its gradients.";
    case SceneKind::decision:
      return "Before a module runs, the scheduler looks at what the module needs, gathers what is not there, "
             "and decides what to fetch ahead. The reason says where fetching ahead ended.";
    case SceneKind::gather:
      return "All-gather: every rank sends its part of these parameters to every other one, so that each has "
             "the whole. They were not fetched ahead: the module that runs next waits for them.";
    case SceneKind::prefetch:
      return "The same ahead of time: parameters of the next modules are gathered while this one computes, "
             "so that computation hides the communication.";
    case SceneKind::available:
      return "All parts have arrived. The module that needs these parameters can compute with them.";
    case SceneKind::wait:
      return "Compute waits until the gather has ended. This is exposed communication: nothing "
             "hides it.";
    case SceneKind::release:
      return "The whole is released after use, and the rank has only its part again. That is why the "
             "model does not have to fit into one device.";
    case SceneKind::kept:
      return "Not everything is released: what is small, or needed again soon, stays gathered, which saves a "
             "gather.";
    case SceneKind::outcome:
      return "The first use shows whether a prefetch came in time. A late one made computation wait; an "
             "early one took memory for longer than needed.";
    case SceneKind::bucket_add:
      return "Gradients are not reduced one by one. They are put into a bucket, so that few large operations "
             "do what many small ones would.";
    case SceneKind::bucket_flush:
      return "The gradients in the bucket are reduced over the ranks, and each rank receives the part that "
             "it owns. The whole gradients are not needed any more.";
    case SceneKind::reduce_wait:
      return "Compute waits until a reduction has ended.";
    case SceneKind::optimizer:
      return "Each rank updates its own part, with the optimizer states that it alone has. The gathers that "
             "follow bring the new values to the others.";
    case SceneKind::trace:
      return "The order in which modules use parameters is recorded in one iteration. The next iterations "
             "fetch ahead in that order.";
    case SceneKind::overflow:
      return "A gradient is infinite or not a number: no rank changes its parameters in this step.";
    case SceneKind::other:
    case SceneKind::end:
      return {};
  }
  return {};
}

const char* name_of(SceneKind kind) noexcept {
  static constexpr const char* kNames[kSceneKinds] = {
      "step",   "forward", "backward",  "decision", "gather",           "prefetch",
      "ready",  "wait",    "release",   "kept",     "prefetch outcome", "gradient",
      "bucket", "wait",    "optimizer", "trace",    "overflow",         "other",
      "end"};
  return kNames[static_cast<int>(kind)];
}

Meaning meaning_of(SceneKind kind) noexcept {
  switch (kind) {
    case SceneKind::forward:
    case SceneKind::backward:
      return Meaning::compute;
    case SceneKind::decision:
    case SceneKind::gather:
    case SceneKind::prefetch:
    case SceneKind::available:
    case SceneKind::outcome:
      return Meaning::gather;
    case SceneKind::wait:
    case SceneKind::reduce_wait:
    case SceneKind::overflow:
      return Meaning::trouble;
    case SceneKind::bucket_add:
    case SceneKind::bucket_flush:
      return Meaning::reduce;
    case SceneKind::optimizer:
      return Meaning::optimizer;
    default:
      return Meaning::neutral;
  }
}

}  // namespace shardscope::gui
