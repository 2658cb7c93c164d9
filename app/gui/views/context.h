// What a view gets to draw with: the state, the canvas, the pointer, and the overlay it may open.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/gui/model/app_state.h"
#include "app/gui/model/breakpoints.h"
#include "app/gui/model/details.h"
#include "app/gui/views/canvas.h"

namespace shardscope::gui {

/// Heights that several panels share, in points.
inline constexpr float kTableRow = 22, kTextLine = 20;

/// Key codes as the window system layer gives them (GLFW's numbers); letters and digits are their capitals.
namespace key {
inline constexpr int kSpace = 32, kEscape = 256, kRight = 262, kLeft = 263, kDown = 264, kUp = 265,
                     kEqual = 61, kMinus = 45, kKeypadMinus = 333, kKeypadPlus = 334, kF1 = 290, kF3 = 292;
/// Modifiers that were down with it.
inline constexpr int kShift = 1, kCtrl = 2, kAlt = 4, kSuper = 8, kModifiers = kShift | kCtrl | kAlt | kSuper;
}  // namespace key

struct KeyPress {
  int code = 0, modifiers = 0;
};

struct Pointer {
  float x = -1, y = -1;
  float dx = 0, dy = 0;  ///< since the last frame
  float wheel = 0, wheel_sideways = 0;
  bool pressed[3]{}, down[3]{}, released[3]{};
  bool double_click = false;
  bool shift = false, ctrl = false, alt = false;
};

/// Something on top of the panels: a menu or a list to pick from.
struct OverlayItem {
  std::string label;
  std::string hint;  ///< at the right, muted: shortcut, size
  bool enabled = true;
  bool checked = false;
  std::function<void()> act;
  bool line_before = false;
};
struct Overlay {
  bool open = false;
  bool filter = false;  ///< a list with a line of text that narrows it
  std::string title;
  std::string text;  ///< what was typed
  Rect anchor;
  std::vector<OverlayItem> items;
  bool just_opened = false;
};

/// The x axis that all plots of values per step share.
struct StepAxis {
  double begin = 0, end = 1;
  bool all = true;  ///< every step that there is, also when more come
};

/// What asks for something before it is done. One at a time.
enum class Dialog : std::uint8_t {
  none,
  palette,  ///< commands and places by their names
  go_to,
  open_recording,
  open_second,
  connect,
  save_layout,
  export_report,
  export_csv,
  export_chrome,
  export_perfetto,
  export_sqlite,
  export_kineto,
  record_copy,   ///< of a live run
  save_table,    ///< UiState::table_rows
  save_picture,  ///< UiState::picture
  note,          ///< UiState::note
  about,
};

/// A button of a title line or of the top bar, as the palette lists it.
struct ToolbarButton {
  std::string panel, label, tip;
  bool enabled = true;
};

struct Recent;

/// Lasts over frames.
struct UiState {
  const Recent* recent = nullptr;  ///< what was opened before
  Overlay overlay;
  const void* captured = nullptr;  ///< the drag in progress belongs to this
  bool help = false;
  std::optional<std::size_t> tour;  ///< the stop that is shown
  bool sample = false;              ///< a sample run is asked for, and the tour on it
  StepAxis steps;
  Dialog dialog = Dialog::none;
  bool dialog_opened = false;  ///< since the last frame
  Note note;                   ///< that the dialog writes
  std::string show_panel;      ///< to be opened in the layout, or brought to the front of its place
  std::string notice;          ///< said in the status bar until the next one
  bool notice_is_trouble = false;
  bool reset_layout = false;
  bool exporting = false, cancel_export = false;
  bool copying = false, stop_copy = false;  ///< a live run is recorded to a file
  std::string table_rows;                   ///< that the dialog writes to a file
  /// To be written of what the window shows once dialogs and menus are gone.
  struct Picture {
    std::string path;
    std::string panel;  ///< empty: the whole window
  };
  std::optional<Picture> picture;
  /// Whose title line is being drawn; empty: none, and its buttons are not listed.
  std::string_view toolbar_of;
  /// Which panel is being drawn: of its buttons, offered() lists those that are named.
  std::string_view panel_of;
  /// Those drawn in this frame, while the palette is open.
  std::vector<ToolbarButton> toolbar;
  /// To be pressed when it is drawn next.
  std::optional<ToolbarButton> pressed;
  void open(Dialog what) {
    dialog = what;
    dialog_opened = true;
  }
  void say(std::string text, bool trouble = false) {
    notice = std::move(text);
    notice_is_trouble = trouble;
  }
  bool drag_moved = false;
  float drag_from_x = 0, drag_from_y = 0;
};

class Context {
 public:
  Context(AppState& state, UiState& lasting, Canvas& drawing, const Pointer& input, double time,
          Rect window_rect)
      : app(state), ui(lasting), canvas(drawing), pointer(input), seconds(time), window(window_rect) {}

  AppState& app;
  UiState& ui;
  Canvas& canvas;
  Pointer pointer;
  double seconds;
  Rect window;
  /// Keys that went down (or repeat) since the last frame, in order, with what was held when they did: ImGui
  /// spreads a burst over several frames.
  std::span<const KeyPress> keys;
  enum class WithShift : std::uint8_t { same, other };
  /// How often, with exactly these modifiers; a plain key may have shift held, unless that is another
  /// command.
  [[nodiscard]] int presses(int code, int modifiers = 0, WithShift shift = WithShift::same) const {
    return static_cast<int>(std::ranges::count_if(keys, [&](const KeyPress& press) {
      const int held = press.modifiers & key::kModifiers;
      const bool either = modifiers == 0 && held == key::kShift && shift == WithShift::same;
      return press.code == code && (held == modifiers || either);
    }));
  }
  /// The pointer is over the window that is drawn (not over one above it, nor is a part of ImGui held).
  bool over_window = true;
  /// What follows is drawn into ImGui's current window, and hit there.
  void enter_window();
  bool moving = false;  ///< something is drawn in motion: draw again soon

  [[nodiscard]] const Palette& colors() const { return canvas.colors(); }
  /// The pointer is there and nothing lies above, though a drag may hold it.
  [[nodiscard]] bool under_pointer(const Rect& rect) const;
  /// The pointer is there and nothing lies above or holds it.
  [[nodiscard]] bool hovered(const Rect& rect) const;
  [[nodiscard]] bool clicked(const Rect& rect) const { return hovered(rect) && pointer.pressed[0]; }

  enum class Drag : std::uint8_t { none, begun, going, dropped, clicked };
  /// A press in `rect` that belongs to `owner` until the button is released. `clicked`: released unmoved.
  Drag drag(const void* owner, const Rect& rect, int button);

  // ---- widgets -----------------------------------------------------------------------------------
  enum class Look : std::uint8_t { plain, primary, chosen };
  bool button(const Rect& rect, std::string_view label, bool enabled = true, Look look = Look::plain,
              std::string_view tip = {});
  /// A button as wide as its label, placed at the right end of `room`, which shrinks by it.
  bool button_right(Rect& room, std::string_view label, bool enabled = true, Look look = Look::plain,
                    std::string_view tip = {});
  /// The same with an arrow that says that a menu opens; its place is returned in `anchor`.
  bool menu_button_right(Rect& room, std::string_view label, Rect& anchor, bool enabled = true,
                         std::string_view tip = {});
  [[nodiscard]] float button_width(std::string_view label) const;
  [[nodiscard]] float menu_button_width(std::string_view label) const;
  /// A row of choices of which one holds; returns the one clicked, or `chosen`.
  int choice_right(Rect& room, const std::vector<std::string>& labels, int chosen);
  /// Draws a bar when `content` is higher than the room and scrolls with the wheel. Clamps `scroll`.
  void scroll(const void* owner, const Rect& room, float content, float& scroll);
  /// Number right-aligned in mono with its unit muted after it in `unit_width`.
  void quantity(const Rect& rect, std::string_view number, std::string_view unit, float unit_width = 30,
                Rgb color = 0xFFFFFFFF);
  void section(Rect& room, std::string_view title);

  void menu(const Rect& anchor, std::vector<OverlayItem> items);
  void picker(const Rect& anchor, std::string title, std::vector<OverlayItem> items);

  void tip(std::string_view text);
  void tip(const Details& details);
  /// Drawn by the workspace after everything else.
  void draw_tip();
  void draw_overlay();
  /// A designed empty state: a line of what is missing and a line of why or what to do.
  void empty(const Rect& rect, std::string_view title, std::string_view hint);
  /// A button of a panel that is not in its title line, by a name that says what it does without the panel
  /// around it: in the palette while the panel is drawn. True: pressed there.
  [[nodiscard]] bool offered(std::string_view name, bool enabled, std::string_view tip_text);

 private:
  /// Lists it for the palette. True: the palette has pressed it.
  bool listed(std::string_view label, bool enabled, std::string_view tip_text);
  /// A button without its label, which tells it apart from others.
  bool button_ground(const Rect& rect, std::string_view label, bool enabled, Look look,
                     std::string_view tip_text);
  /// Makes `rect` an item of ImGui's current window, so that the keyboard comes to it; the pointer is
  /// our own affair. True: Enter or Space was pressed on it.
  bool keyboard_item(const Rect& rect, std::string_view label, bool enabled);

  Details tip_;
  std::string tip_text_;
  std::vector<unsigned> items_;  ///< identities of keyboard items in the window that is drawn
};

}  // namespace shardscope::gui
