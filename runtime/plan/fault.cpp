#include "runtime/plan/fault.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/plan/model_check.h"

namespace shardscope::plan {
namespace {

struct KindRow {
  FaultKind kind;
  std::string_view name;
  std::string_view does;  ///< after "rank 1"
};

constexpr std::array<KindRow, 8> kKinds{{
    {FaultKind::return_early, "return", "ends with code 0"},
    {FaultKind::skip_module, "skip-module", "skips module"},
    {FaultKind::swap_modules, "swap-modules", "runs the next module before"},
    {FaultKind::fewer_micro_steps, "fewer-micro-steps", "makes one micro-step fewer"},
    {FaultKind::fewer_steps, "fewer-steps", "ends its training"},
    {FaultKind::save_alone, "save-alone", "saves a checkpoint alone"},
    {FaultKind::stop, "stop", "stops (SIGSTOP)"},
    {FaultKind::die, "die", "dies (SIGKILL)"},
}};

const KindRow& row_of(FaultKind kind) noexcept {
  return *std::find_if(kKinds.begin(), kKinds.end(), [kind](const KindRow& row) { return row.kind == kind; });
}

[[noreturn]] void refuse(const std::string& text) { throw std::invalid_argument("--fault: " + text); }

bool names_module(FaultKind kind) noexcept {
  return kind == FaultKind::skip_module || kind == FaultKind::swap_modules;
}

/// Whether the fault occurs within its step, not before it.
bool is_within_step(FaultKind kind) noexcept {
  return names_module(kind) || kind == FaultKind::fewer_micro_steps;
}

template <typename Number>
Number number_of(std::string_view key, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < Number{}) {
    refuse(std::string(key) + "=" + std::string(text) + ": give a whole number from 0");
  }
  return value;
}

FaultKind kind_of(std::string_view text) {
  std::string known;
  for (const KindRow& row : kKinds) {
    if (row.name == text) return row.kind;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  refuse("kind=" + std::string(text) + " is unknown; there are " + known);
}

/// Position of a module in the tree; its siblings are the nodes that run before and after it.
struct Place {
  std::vector<NodeSpec>* siblings = nullptr;
  std::size_t index = 0;
};

std::optional<Place> find(NodeSpec& parent, const std::string& path_of_parent, const std::string& wanted) {
  for (std::size_t i = 0; i < parent.children.size(); ++i) {
    NodeSpec& child = parent.children[i];
    const std::string path = is_module(child) ? join_path(path_of_parent, child.name) : path_of_parent;
    if (is_module(child) && path == wanted) return Place{&parent.children, i};
    if (const std::optional<Place> below = find(child, path, wanted)) return below;
  }
  return std::nullopt;
}

const ModulePlan* module_of(const ModelPlan& model, const std::string& path) {
  const auto found = std::find_if(model.modules.begin(), model.modules.end(),
                                  [&](const ModulePlan& module) { return module.path == path; });
  return found == model.modules.end() ? nullptr : &*found;
}

/// Validates the network that the faulty rank would run with check_model().
void check_module(const Fault& fault, const ModelPlan& model) {
  const ModulePlan* const module = module_of(model, fault.module);
  if (module == nullptr) refuse("module=" + fault.module + " is no module of this model");
  ModelSpec changed = model.spec;
  const std::optional<Place> place = find(changed.root, "", fault.module);
  if (!place) refuse("module= is the whole model; name one in it");
  std::vector<NodeSpec>& nodes = *place->siblings;
  if (fault.kind == FaultKind::swap_modules) {
    if (place->index + 1 == nodes.size())
      refuse("module=" + fault.module + " is the last of its list; name one that another follows");
    std::swap(nodes[place->index], nodes[place->index + 1]);
  } else {
    // The module stays in the tree for nodes that refer to its weights.
    NodeSpec around;
    around.kind = NodeKind::conditional;
    around.children.push_back(std::move(nodes[place->index]));
    nodes[place->index] = std::move(around);
  }
  try {
    check_model(changed);
  } catch (const std::invalid_argument& error) {
    refuse("module=" + fault.module +
           (fault.kind == FaultKind::swap_modules ? " cannot run after the next: " : " cannot be skipped: ") +
           error.what());
  }
}

}  // namespace

std::string_view name_of(FaultKind kind) noexcept { return row_of(kind).name; }

Fault parse_fault(std::string_view text) {
  Fault fault;
  std::optional<FaultKind> kind;
  std::vector<std::string_view> keys;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) refuse(std::string(key) + " is given twice");
    keys.push_back(key);
    if (key == "rank") {
      fault.rank = number_of<std::uint32_t>(key, value);
    } else if (key == "step") {
      fault.step = number_of<std::int64_t>(key, value);
    } else if (key == "kind") {
      kind = kind_of(value);
    } else if (key == "module") {
      fault.module = value;
    } else {
      refuse("\"" + std::string(part) + "\" is unknown; write rank=R,step=S,kind=KIND[,module=PATH]");
    }
  }
  for (const std::string_view key : {"rank", "step", "kind"}) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      refuse(std::string(key) + " is missing; write rank=R,step=S,kind=KIND[,module=PATH]");
  }
  fault.kind = *kind;
  if (names_module(fault.kind) == fault.module.empty()) {
    refuse("kind=" + std::string(name_of(fault.kind)) +
           (fault.module.empty() ? " needs module=PATH" : " takes no module"));
  }
  return fault;
}

void check_fault(const Fault& fault, const FaultRun& run) {
  if (fault.rank >= run.world) {
    refuse("rank=" + std::to_string(fault.rank) + ", but the run has " + std::to_string(run.world) +
           (run.world == 1 ? " rank" : " ranks") + "; they count from 0");
  }
  if (run.world == 1) refuse("one rank waits for no other; start more");
  if (fault.step >= run.steps) {
    refuse("step=" + std::to_string(fault.step) + ", but the run ends after " + std::to_string(run.steps) +
           "; they count from 0");
  }
  if (run.resumes)
    refuse("a run that resumes has made its steps elsewhere; rehearse in one that begins at step 0");
  if (fault.kind == FaultKind::save_alone && !run.every_rank_saves)
    refuse(
        "kind=save-alone: with shardscope.data_parallel_groups the ranks of one copy save; leave them out");
  if (fault.kind == FaultKind::fewer_micro_steps && run.accumulation_steps < 2)
    refuse("kind=fewer-micro-steps leaves none of one; set gradient_accumulation_steps to 2 or more");
  if (fault.kind == FaultKind::save_alone && !run.has_checkpoints)
    refuse("kind=save-alone needs --checkpoint FOLDER");
  if (names_module(fault.kind)) check_module(fault, run.model);
}

std::string describe(const Fault& fault) {
  return "rank " + std::to_string(fault.rank) + " " + std::string(row_of(fault.kind).does) +
         (names_module(fault.kind) ? " " + fault.module : "") +
         (is_within_step(fault.kind) ? " in step " : " before step ") + std::to_string(fault.step);
}

std::optional<ExecutorFault> executor_fault_of(const Fault& fault, const ModelPlan& model,
                                               std::int64_t accumulation_steps) {
  const ModulePlan* const module = names_module(fault.kind) ? module_of(model, fault.module) : nullptr;
  if (module == nullptr) return std::nullopt;
  const std::int64_t first = fault.step * accumulation_steps;
  return ExecutorFault{module->id, fault.kind == FaultKind::swap_modules, first, first + accumulation_steps};
}

}  // namespace shardscope::plan
