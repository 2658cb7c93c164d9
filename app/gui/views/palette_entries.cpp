#include "app/gui/views/palette_entries.h"

#include <algorithm>
#include <utility>

#include "app/gui/model/match.h"
#include "app/gui/views/commands.h"

namespace shardscope::gui {
namespace {

/// Collects entries that match the words.
class Entries {
 public:
  explicit Entries(std::string_view typed) : typed_(typed) {}
  template <typename Act>
  void add(std::string text, std::string kind, std::string hint, std::string_view also, Act&& act) {
    if (!matches(text, typed_) && (also.empty() || !matches(text + " " + std::string(also), typed_))) return;
    out_.push_back({std::move(text), std::move(kind), std::move(hint), std::forward<Act>(act)});
  }
  [[nodiscard]] std::vector<PaletteEntry> take() { return std::move(out_); }

 private:
  std::string_view typed_;
  std::vector<PaletteEntry> out_;
};

void add_panels(Context& ctx, const ViewRegistry& views, Docks& docks, Entries& out) {
  AppState& app = ctx.app;
  const std::vector<std::string>& shown = docks.shown(app.layout_name);
  for (const auto& view : views.all()) {
    const std::string title(view->title());
    const std::string name(view->name());
    out.add("Show " + title, "panel", "", "", [&ctx, name] { ctx.ui.show_panel = name; });
    if (shown.size() > 1 && std::ranges::find(shown, name) != shown.end())
      out.add("Close " + title, "panel", "", "",
              [&app, &docks, name] { docks.close(app.layout_name, name); });
  }
  for (const std::string& name : shown) {
    View* const view = views.find(name);
    if (view == nullptr) continue;
    for (const Choice& choice : view->choices(app)) {
      for (std::size_t i = 0; i < choice.labels.size(); ++i) {
        if (static_cast<int>(i) == choice.chosen) continue;
        out.add(std::string(view->title()) + ": " + choice.labels[i], "choice", choice.name, choice.name,
                [&app, choose = choice.choose, index = static_cast<int>(i)] { choose(app, index); });
      }
    }
  }
}

void add_layouts(AppState& app, Docks& docks, Entries& out) {
  for (const std::string& layout : docks.names())
    out.add("Layout " + layout, "layout", "", "", [&app, layout] { app.set_layout(layout); });
  if (std::ranges::find(docks.own_names(), app.layout_name) != docks.own_names().end())
    out.add("Delete layout " + app.layout_name, "layout", "", "",
            [&app, &docks] { delete_shown_layout(app, docks); });
}

}  // namespace

std::vector<PaletteEntry> palette_entries(Context& ctx, const ViewRegistry& views, Docks& docks,
                                          const Recent& recent, std::string_view typed) {
  Entries out(typed);
  for (const Command& command : commands()) {
    if (command.run == nullptr || !command.available(ctx)) continue;
    out.add(command.name, name_of(command.menu), command.keys, also_called(command),
            [&ctx, &command] { command.run(ctx); });
  }
  add_panels(ctx, views, docks, out);
  for (const ToolbarButton& button : ctx.ui.toolbar) {
    if (!button.enabled) continue;
    out.add(button.panel + ": " + button.label, "button", "", button.tip, [&ctx, button] {
      ctx.ui.pressed = button;
      ctx.moving = true;  // the next frame draws and presses it
    });
  }
  add_layouts(ctx.app, docks, out);
  for (const std::string& file : recent.files)
    out.add("Open " + file, "recent", "", "", [&app = ctx.app, file] {
      app.open_request = {file, {}, false};
    });
  return out.take();
}

void delete_shown_layout(AppState& app, Docks& docks) {
  const std::string gone = app.layout_name;
  app.set_layout("Watch");
  docks.forget(gone);
}

}  // namespace shardscope::gui
