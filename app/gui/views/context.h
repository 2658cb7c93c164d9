// Drawing context of a view: the state, the canvas, the pointer, and the overlay it may open.
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
#include "app/gui/model/frame_times.h"
#include "app/gui/model/panel_moves.h"
#include "app/gui/views/canvas.h"
#include "app/gui/views/key_tip.h"

namespace shardscope::gui {

/// Heights shared by several panels, in points.
inline constexpr float kTableRow = 22, kTextLine = 20;

/// Key codes of the window system layer (GLFW's values); letters and digits are their upper-case codes.
namespace key {
inline constexpr int kSpace = 32, kEscape = 256, kRight = 262, kLeft = 263, kDown = 264, kUp = 265,
                     kEqual = 61, kMinus = 45, kKeypadMinus = 333, kKeypadPlus = 334, kF1 = 290, kF3 = 292;
/// Modifiers held with a key.
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

/// An item of a menu or list on top of the panels.
struct OverlayItem {
  std::string label;
  std::string hint;  ///< muted text at the right: shortcut, size
  bool enabled = true;
  bool checked = false;
  std::function<void()> act;
  bool line_before = false;
};
struct Overlay {
  bool open = false;
  bool filter = false;  ///< a list with a text field that filters it
  std::string title;
  std::string text;  ///< the filter text
  Rect anchor;
  std::vector<OverlayItem> items;
  bool just_opened = false;
};

/// The x axis shared by all plots per step.
struct StepAxis {
  double begin = 0, end = 1;
  bool all = true;  ///< all steps, including future ones
};

/// Modal dialogs; one at a time.
enum class Dialog : std::uint8_t {
  none,
  palette,  ///< search for commands and places by name
  go_to,
  open_recording,
  open_second,
  connect,
  connect_second,
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

/// A button of a title line or of the top bar, for the palette.
struct ToolbarButton {
  std::string panel, label, tip;
  bool enabled = true;
};

struct Recent;

/// UI state that persists between frames.
struct UiState {
  FrameTimes* times = nullptr;     ///< measures the parts of the window; null: nothing does
  const Recent* recent = nullptr;  ///< recently opened runs
  Overlay overlay;
  const void* captured = nullptr;  ///< owner of the drag in progress
  bool help = false;
  std::optional<std::size_t> tour;  ///< current stop of the tour
  bool sample = false;              ///< a sample run was requested, with the tour on it
  StepAxis steps;
  Dialog dialog = Dialog::none;
  bool dialog_opened = false;  ///< opened since the last frame
  Note note;                   ///< the note edited by the dialog
  std::string show_panel;      ///< panel to open in the layout, or to bring to front
  std::string notice;          ///< text of the status bar until the next one
  bool notice_is_trouble = false;
  bool reset_layout = false;
  bool exporting = false, cancel_export = false;
  bool copying = false, stop_copy = false;  ///< a live run is being recorded
  std::string table_rows;                   ///< rows that the dialog writes to a file
  /// Picture to write once dialogs and menus are closed.
  struct Picture {
    std::string path;
    std::string panel;  ///< empty: the whole window
  };
  std::optional<Picture> picture;
  /// Panel whose title line is being drawn; empty: none, and buttons are not listed.
  std::string_view toolbar_of;
  bool in_key_area = false;   ///< the keyboard's cursor is in a key_area(), in this frame or the last
  std::string toggled_curve;  ///< of a plot, to be hidden or shown: id of the plot, and the curve's label
  std::string keyboard_at;  ///< label of what the keyboard's cursor is on, for the state dump; empty: unnamed
  KeyTip key_tip;
  int next_panel = 0;                   ///< panels to move the keyboard by, forward or back
  std::optional<PanelMove> panel_move;  ///< of the panel that has the keyboard
  bool host_chosen = false;             ///< the keyboard was moved to the bars and the step ruler
  /// Panel being drawn: offered() lists its named buttons.
  std::string_view panel_of;
  /// Buttons drawn in this frame, while the palette is open.
  std::vector<ToolbarButton> toolbar;
  /// The button to press when it is drawn next.
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
  /// Keys pressed or repeated since the last frame, in order, with their modifiers: ImGui would spread a
  /// burst over several frames.
  std::span<const KeyPress> keys;
  enum class WithShift : std::uint8_t { same, other };
  /// Number of presses with exactly these modifiers; a plain key may have Shift held unless that is a
  /// separate command.
  [[nodiscard]] int presses(int code, int modifiers = 0, WithShift shift = WithShift::same) const {
    return static_cast<int>(std::ranges::count_if(keys, [&](const KeyPress& press) {
      const int held = press.modifiers & key::kModifiers;
      const bool either = modifiers == 0 && held == key::kShift && shift == WithShift::same;
      return press.code == code && (held == modifiers || either);
    }));
  }
  /// The pointer is over the window being drawn, not over one above it, and no ImGui item is held.
  bool over_window = true;
  /// Directs drawing and hit testing to ImGui's current window.
  void enter_window();
  bool moving = false;            ///< an animation is running: draw again soon
  std::optional<double> again_s;  ///< what is drawn changes with the time alone: draw again after so long

  [[nodiscard]] const Palette& colors() const { return canvas.colors(); }
  /// The pointer is inside `rect` and nothing covers it; a drag may hold the pointer.
  [[nodiscard]] bool under_pointer(const Rect& rect) const;
  /// The pointer is inside `rect`, and nothing covers it or holds the pointer.
  [[nodiscard]] bool hovered(const Rect& rect) const;
  [[nodiscard]] bool clicked(const Rect& rect) const { return hovered(rect) && pointer.pressed[0]; }

  enum class Drag : std::uint8_t { none, begun, going, dropped, clicked };
  /// A drag begun in `rect`, owned by `owner` until the release. `clicked`: released without moving.
  Drag drag(const void* owner, const Rect& rect, int button);

  // ---- widgets -----------------------------------------------------------------------------------
  enum class Look : std::uint8_t { plain, primary, chosen };
  bool button(const Rect& rect, std::string_view label, bool enabled = true, Look look = Look::plain,
              std::string_view tip = {});
  /// A button as wide as its label at the right end of `room`, which shrinks by its width.
  bool button_right(Rect& room, std::string_view label, bool enabled = true, Look look = Look::plain,
                    std::string_view tip = {});
  /// The same with an arrow for a menu; `anchor` receives its position.
  bool menu_button_right(Rect& room, std::string_view label, Rect& anchor, bool enabled = true,
                         std::string_view tip = {});
  [[nodiscard]] float button_width(std::string_view label) const;
  [[nodiscard]] float menu_button_width(std::string_view label) const;
  /// ImGui's scroll bar at the right of `room` when `content` exceeds it; scrolls with the wheel. Clamps
  /// `offset`.
  void scroll(std::string_view label, const Rect& room, float content, float& offset);
  /// A right-aligned number in mono, followed by its unit in muted colour, `unit_width` wide.
  void quantity(const Rect& rect, std::string_view number, std::string_view unit, float unit_width = 30,
                Rgb color = 0xFFFFFFFF);
  void section(Rect& room, std::string_view title);
  struct Row {
    bool over = false;    ///< under the pointer, or the keyboard's cursor is on it
    bool chosen = false;  ///< pressed with the pointer, or with Enter
  };
  /// ImGui's selectable row, on which its content is drawn; `id` may be that of several.
  Row row(const Rect& rect, std::string_view id);
  struct KeyItem {
    bool at = false;      ///< the keyboard's cursor is on it
    bool chosen = false;  ///< Enter or Space was pressed on it
  };
  /// Lets the keyboard reach what is drawn by hand in `rect` and handles the pointer itself, where ImGui has
  /// no such widget. `id`: any number, unique in the window; or a label, which may be that of several.
  KeyItem key_item(const Rect& rect, unsigned id);
  KeyItem key_item(const Rect& rect, std::string_view label);
  struct KeyArea : KeyItem {
    int across = 0, down = 0;  ///< presses of the arrow keys: right and down are positive
    bool menu = false;         ///< the key for a context menu was pressed
  };
  /// key_item() that receives the arrow keys while the keyboard's cursor is on it, for what has places of its
  /// own; Tab leaves it. Call after its content is drawn, which would cover the cursor's frame.
  KeyArea key_area(const Rect& rect, std::string_view label);
  /// A click on `rect`, or Enter while the keyboard's cursor is on it.
  [[nodiscard]] bool activated(const Rect& rect, std::string_view label);

  void menu(const Rect& anchor, std::vector<OverlayItem> items);
  void picker(const Rect& anchor, std::string title, std::vector<OverlayItem> items);

  void tip(std::string_view text);
  void tip(const Details& details);
  /// Called by the workspace after everything else is drawn.
  void draw_tip();
  /// The tool tip of this frame as a line of text; empty: none.
  [[nodiscard]] std::string tip_line() const;
  void draw_overlay();
  /// Empty state of a panel: what is missing, and why or what to do.
  void empty(const Rect& rect, std::string_view title, std::string_view hint);
  /// Lists a button that is not in the title line in the palette while the panel is drawn, by a name that is
  /// clear without the panel. True: pressed in the palette.
  [[nodiscard]] bool offered(std::string_view name, bool enabled, std::string_view tip_text);

 private:
  /// Lists a button for the palette. True: pressed in the palette.
  bool listed(std::string_view label, bool enabled, std::string_view tip_text);
  /// A button without its label, which only serves as its id.
  bool button_ground(const Rect& rect, std::string_view label, bool enabled, Look look,
                     std::string_view tip_text);
  /// Contents of a tooltip with fields.
  void draw_details(float widest) const;
  /// ImGui's id of a label in the current window; distinct for several items with the same label.
  unsigned own_id(std::string_view label);

  Details tip_;
  std::string tip_text_;
  std::vector<unsigned> items_;  ///< ids given in this frame
};

}  // namespace shardscope::gui
