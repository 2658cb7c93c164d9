#include "app/gui/model/name_cell.h"

#include <algorithm>
#include <set>
#include <vector>

#include "instrumentation/run_tables.h"

namespace shardscope::gui {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether a component is a number: the path is in a list of blocks.
bool in_list(std::string_view path) {
  for (std::size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1))
    if (dot + 1 < path.size() && is_digit(path[dot + 1])) return true;
  return false;
}

/// The common prefix with its dot; empty: the paths have no model's name.
std::string_view model_of(const std::vector<instrumentation::ModuleInfo>& modules) {
  std::string_view model;
  std::set<std::string_view> beside;  // modules with a single component
  bool lists = false;
  for (const instrumentation::ModuleInfo& module : modules) {
    const std::string_view path = module.path;
    const std::size_t dot = path.find('.');
    if (dot == std::string_view::npos || dot + 1 == path.size()) {
      if (!path.empty()) beside.insert(path);
      continue;
    }
    const std::string_view first = path.substr(0, dot + 1);
    if (is_digit(path[dot + 1]) || (!model.empty() && model != first)) return {};
    model = first;
    lists = lists || in_list(path);
  }
  if (model.empty()) return {};
  beside.erase(model.substr(0, model.size() - 1));
  // A model beside its head ("transformer", "lm_head") contains the list of blocks. Without a list it is a
  // layer like the others ("attn", "fc").
  if (!beside.empty() && !lists) return {};
  const bool twice = std::ranges::any_of(modules, [&](const instrumentation::ModuleInfo& module) {
    return module.path.starts_with(model) &&
           beside.contains(std::string_view(module.path).substr(model.size()));
  });
  return twice ? std::string_view() : model;
}

}  // namespace

NameCells::NameCells(const store::Store& store) {
  if (store.has_tables()) model_ = model_of(store.tables().modules);
}

std::string_view NameCells::without_model(std::string_view name) const {
  if (!model_.empty() && name.starts_with(model_)) name.remove_prefix(model_.size());
  return name;
}

std::string end_of_name(std::string_view name, const std::function<bool(std::string_view)>& fits) {
  if (fits(name)) return std::string(name);
  std::string shown(name);
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    name.remove_prefix(dot + 1);
    shown = "\u2026" + std::string(name);
    if (fits(shown)) break;
  }
  return shown;
}

const NameCells& KeptNameCells::of(std::uint64_t run, const store::Store& store) {
  const TablesKey key = key_of_tables(run, store);
  if (!names_ || key_ != key) {
    names_.emplace(store);
    key_ = key;
  }
  return *names_;
}

Cell NameCells::cell(const std::string& name) const {
  return {std::string(without_model(name)), {}, Tone::normal, {}, name};
}

}  // namespace shardscope::gui
