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

std::string module_name(const store::Store& store, std::uint32_t module) {
  if (module == ev::kNoId) return "no module";
  if (store.has_tables()) {
    const auto& modules = store.tables().modules;
    if (module < modules.size()) {
      if (!modules[module].path.empty()) return modules[module].path;
      return store.tables().model.empty() ? "model" : store.tables().model;
    }
  }
  return "module " + std::to_string(module);
}

std::string param_name(const store::Store& store, std::uint32_t param) {
  if (param == ev::kNoId) return "no parameter";
  if (store.has_tables() && param < store.tables().params.size()) return store.tables().params[param].name;
  return "parameter " + std::to_string(param);
}

std::string gpu_owner(const store::Store& store, std::uint8_t code, std::uint32_t owner) {
  switch (ev::owner_of(code)) {
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
      return owner == ev::kNoId ? "optimizer" : "optimizer group " + std::to_string(owner);
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
      return "before the forward of " + std::string(tail_path(module_name(store, id)));
    case ev::GateKind::post_forward:
      return "after the forward of " + std::string(tail_path(module_name(store, id)));
    case ev::GateKind::pre_backward:
      return "before the backward of " + std::string(tail_path(module_name(store, id)));
    case ev::GateKind::post_backward:
      return "after the backward of " + std::string(tail_path(module_name(store, id)));
    case ev::GateKind::bucket:
      return "before bucket " + std::to_string(id) + " is reduced";
    case ev::GateKind::optimizer:
      return "before the optimizer of step " + std::to_string(id);
  }
  return "at an unknown gate";
}

std::string span_label(const store::Store& store, std::uint32_t rank, const store::Span& span) {
  switch (span.kind) {
    case ev::EventKind::step_begin:
      return "step " + std::to_string(ev::as<ev::EventKind::step_begin>(span).step);
    case ev::EventKind::micro_step_begin:
      return "micro-step " + std::to_string(ev::as<ev::EventKind::micro_step_begin>(span).micro_step);
    case ev::EventKind::phase_begin:
      return word(ev::as<ev::EventKind::phase_begin>(span).phase);
    case ev::EventKind::module_begin:
      return module_name(store, ev::as<ev::EventKind::module_begin>(span).module);
    case ev::EventKind::fetch_wait_begin:
      return "waits for parameters";
    case ev::EventKind::reduce_wait_begin:
      return "waits for reduction";
    case ev::EventKind::deferred_wait_begin:
      return "waits for the deferred update";
    case ev::EventKind::data_wait_begin:
      return "waits for data";
    case ev::EventKind::collective_begin: {
      const auto fields = ev::as<ev::EventKind::collective_begin>(span);
      return std::string(word(fields.op)) + " " + std::to_string(fields.sequence);
    }
    case ev::EventKind::transfer_begin:
      return word(ev::as<ev::EventKind::transfer_begin>(span).transfer);
    case ev::EventKind::optimizer_begin: {
      const auto fields = ev::as<ev::EventKind::optimizer_begin>(span);
      return fields.sub_group == ev::kNoId ? "optimizer"
                                           : "optimizer group " + std::to_string(fields.sub_group);
    }
    case ev::EventKind::kernel_begin: {
      const auto fields = ev::as<ev::EventKind::kernel_begin>(span);
      std::string name = store.name(rank, fields.name);
      return name.empty() ? "kernel " + std::to_string(fields.name) : name;
    }
    case ev::EventKind::gpu_begin: {
      const auto fields = ev::as<ev::EventKind::gpu_begin>(span);
      std::string name = store.name(rank, fields.name);
      return name.empty() ? word(fields.work) : name;
    }
    case ev::EventKind::gpu_sync_begin:
      return std::string("host waits for ") + word(ev::as<ev::EventKind::gpu_sync_begin>(span).sync);
    case ev::EventKind::gpu_records_begin:
      return "GPU records";
    case ev::EventKind::paused_begin:
      return "paused";
    default:
      return ev::name_of(span.kind);
  }
}

}  // namespace shardscope::gui
