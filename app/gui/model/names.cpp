#include "app/gui/model/names.h"

#include <array>

#include "app/gui/model/format.h"

namespace shardscope::gui {
namespace {

template <std::size_t N, typename Enum>
const char* pick(const std::array<const char*, N>& words, Enum value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? words[index] : "unknown";
}

}  // namespace

const char* word(plan::ParamStatus status) noexcept {
  static constexpr std::array kWords{"not available", "in flight", "available"};
  return pick(kWords, status);
}

const char* word(plan::TraceMode mode) noexcept {
  static constexpr std::array kWords{"invalid", "recording", "complete"};
  return pick(kWords, mode);
}

std::string not_kept_text() { return "Not kept here: only sums and peaks"; }

std::string no_gate_text(const store::Store& store, std::uint32_t rank, std::int64_t at_ns) {
  return store.is_known(rank, at_ns) ? "no gate passed yet" : not_kept_text();
}

std::string param_name(const store::Store& store, std::uint32_t param) {
  if (param == ev::kNoId) return "no parameter";
  if (store.has_tables() && param < store.tables().params.size()) return store.tables().params[param].name;
  return "parameter " + std::to_string(param);
}

std::string short_module(const store::Store& store, std::uint32_t module) {
  return std::string(tail_path(module_name(store, module)));
}

std::string short_param(const store::Store& store, std::uint32_t param) {
  return std::string(tail_path(param_name(store, param)));
}

std::string unit_name(const store::Store& store, std::uint32_t module) {
  return words_of(store).unit + short_module(store, module);
}

std::string whole_unit_name(const store::Store& store, std::uint32_t module) {
  return words_of(store).unit + module_name(store, module);
}

const store::Vocabulary& words_of(const store::Store& store) { return store::vocabulary_of(store.tables()); }

std::string cause_word(const store::Store& store, ev::StatusCause cause) {
  const store::Vocabulary& words = words_of(store);
  if (cause == ev::StatusCause::fetch) return words.fetched;
  if (cause == ev::StatusCause::release) return words.released;
  return word(cause);
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string short_label(const store::Store& store, std::uint32_t rank, const store::Span& span) {
  const std::string label = label_of(store, rank, span);
  return span.kind == ev::EventKind::module_begin ? std::string(tail_path(label)) : label;
}

std::string gpu_owner(const store::Store& store, const ev::Fields<ev::EventKind::gpu_begin>& work) {
  const std::uint32_t owner = work.owner;
  switch (work.owner_kind) {
    case ev::GpuOwner::none:
      return {};
    case ev::GpuOwner::forward:
      return module_name(store, owner) + ", forward";
    case ev::GpuOwner::backward:
      return module_name(store, owner) + ", backward";
    case ev::GpuOwner::recompute:
      return module_name(store, owner) + ", recompute";
    case ev::GpuOwner::collective:
      return "collective " + std::to_string(owner);
    case ev::GpuOwner::transfer:
      return owner == ev::kNoId ? "a transfer" : "transfer of " + param_name(store, owner);
    case ev::GpuOwner::optimizer:
      return owner == ev::kNoId ? "optimizer" : "optimizer sub-group " + std::to_string(owner);
    case ev::GpuOwner::phase:
      return word(static_cast<ev::Phase>(owner));
  }
  return {};
}

std::string gate_place(const store::Store& store, ev::GateKind kind, std::uint32_t id) {
  switch (kind) {
    case ev::GateKind::step:
      return "at the start of step " + std::to_string(id);
    case ev::GateKind::micro_step:
      return "at the start of micro-step " + std::to_string(id);
    case ev::GateKind::pre_forward:
      return "before the forward of " + unit_name(store, id);
    case ev::GateKind::post_forward:
      return "after the forward of " + unit_name(store, id);
    case ev::GateKind::pre_backward:
      return "before the backward of " + unit_name(store, id);
    case ev::GateKind::post_backward:
      return "after the backward of " + unit_name(store, id);
    case ev::GateKind::bucket:
      return "before " + std::string(words_of(store).bucket) + " " + std::to_string(id) +
             (words_of(store).has_buckets ? " is reduced" : "");
    case ev::GateKind::optimizer:
      return "before the optimizer of step " + std::to_string(id);
  }
  return "at an unknown gate";
}

std::string brief_gate_place(const store::Store& store, ev::GateKind kind, std::uint32_t id) {
  switch (kind) {
    case ev::GateKind::step:
      return "step " + std::to_string(id) + ", start";
    case ev::GateKind::micro_step:
      return "micro-step " + std::to_string(id) + ", start";
    case ev::GateKind::pre_forward:
      return unit_name(store, id) + ", before forward";
    case ev::GateKind::post_forward:
      return unit_name(store, id) + ", after forward";
    case ev::GateKind::pre_backward:
      return unit_name(store, id) + ", before backward";
    case ev::GateKind::post_backward:
      return unit_name(store, id) + ", after backward";
    case ev::GateKind::bucket:
      return std::string(words_of(store).bucket) + " " + std::to_string(id) + ", before it";
    case ev::GateKind::optimizer:
      return "step " + std::to_string(id) + ", before optimizer";
  }
  return "unknown gate";
}

}  // namespace shardscope::gui
