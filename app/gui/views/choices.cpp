#include "app/gui/views/choices.h"

#include <algorithm>
#include <utility>

namespace shardscope::gui {
namespace {

/// Gap after a choice, and after a menu button.
constexpr float kGap = 8, kMenuGap = 4;
constexpr const char* kMore = "More";

/// A button per label at the right end of `room`, the active one raised. Returns the pressed one, or the
/// active one.
int buttons_right(Context& ctx, Rect& room, const Choice& choice) {
  int result = choice.chosen;
  for (std::size_t i = choice.labels.size(); i-- > 0;) {
    const Rect place = room.take_right(ctx.button_width(choice.labels[i]));
    if (i != 0) room.take_right(1);
    const bool active = static_cast<int>(i) == choice.chosen;
    if (ctx.button(place, choice.labels[i], true, active ? Context::Look::chosen : Context::Look::plain))
      result = static_cast<int>(i);
  }
  room.take_right(kGap);
  return result;
}

std::vector<OverlayItem> items_of(AppState& app, const Choice& choice) {
  std::vector<OverlayItem> items;
  for (std::size_t i = 0; i < choice.labels.size(); ++i) {
    const int index = static_cast<int>(i);
    items.push_back({choice.labels[i], "", true, index == choice.chosen,
                     [&app, choose = choice.choose, index] { choose(app, index); }});
  }
  return items;
}

}  // namespace

std::vector<ChoiceForm> fit_choices(const std::vector<float>& buttons, const std::vector<float>& menu,
                                    float more, float room) {
  std::vector<ChoiceForm> forms(buttons.size(), ChoiceForm::buttons);
  const auto needed = [&] {
    float sum = std::ranges::find(forms, ChoiceForm::hidden) == forms.end() ? 0 : more;
    for (std::size_t i = 0; i < forms.size(); ++i)
      sum += forms[i] == ChoiceForm::buttons ? buttons[i] : forms[i] == ChoiceForm::menu ? menu[i] : 0;
    return sum;
  };
  for (const ChoiceForm form : {ChoiceForm::menu, ChoiceForm::hidden}) {
    for (std::size_t i = forms.size(); i-- > 0 && needed() > room;) forms[i] = form;
  }
  return forms;
}

void draw_choices(Context& ctx, const std::vector<Choice>& choices, Rect& room) {
  if (choices.empty()) return;
  std::vector<float> buttons, menu;
  for (const Choice& choice : choices) {
    float width = kGap;
    for (const std::string& label : choice.labels) width += ctx.button_width(label) + 1;
    buttons.push_back(width);
    menu.push_back(ctx.menu_button_width(choice.labels[static_cast<std::size_t>(choice.chosen)]) + kMenuGap);
  }
  const std::vector<ChoiceForm> forms =
      fit_choices(buttons, menu, ctx.menu_button_width(kMore) + kMenuGap, room.w);
  std::vector<OverlayItem> hidden;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (forms[i] != ChoiceForm::hidden) continue;
    hidden.push_back({choices[i].name, "", false, false, nullptr, !hidden.empty()});
    for (OverlayItem& item : items_of(ctx.app, choices[i])) hidden.push_back(std::move(item));
  }
  Rect place;
  if (!hidden.empty() && ctx.menu_button_right(room, kMore, place, true, "What else this panel can show"))
    ctx.menu(place, std::move(hidden));
  for (std::size_t i = choices.size(); i-- > 0;) {
    const Choice& choice = choices[i];
    if (forms[i] == ChoiceForm::buttons) {
      const int picked = buttons_right(ctx, room, choice);
      if (picked != choice.chosen) choice.choose(ctx.app, picked);
    } else if (forms[i] == ChoiceForm::menu) {
      const std::string& label = choice.labels[static_cast<std::size_t>(choice.chosen)];
      if (ctx.menu_button_right(room, label, place, true, choice.name))
        ctx.menu(place, items_of(ctx.app, choice));
    }
  }
}

}  // namespace shardscope::gui
