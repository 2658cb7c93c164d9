// Modal dialogs: the palette, "go to", opening, connecting, exports.
#pragma once

#include <string>
#include <vector>

#include "app/gui/model/copy_recording.h"
#include "app/gui/model/export_job.h"
#include "app/gui/model/file_list.h"
#include "app/gui/model/find_names.h"
#include "app/gui/model/local_runs.h"
#include "app/gui/model/note_times.h"
#include "app/gui/model/recent.h"
#include "app/gui/views/context.h"
#include "app/gui/views/docks.h"
#include "app/gui/views/view.h"

namespace shardscope::gui {

class Dialogs {
 public:
  struct Parts {
    const ViewRegistry& views;
    Docks& docks;
    Recent& recent;
  };
  /// Draws the dialog named by UiState::dialog, if any, as a modal ImGui window.
  void draw(Context& ctx, const Parts& parts);
  /// Status line of a running or finished export; empty: none.
  [[nodiscard]] std::string export_line() const;
  [[nodiscard]] bool export_failed() const { return !job_.state().problem.empty(); }
  /// Text of the open dialog's input field.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// The current or last recording of a live run.
  [[nodiscard]] const CopyRecording& copy() const noexcept { return copy_; }
  [[nodiscard]] bool exporting() const { return job_.state().running; }

 private:
  void palette(Context& ctx, const Parts& parts);
  void go_to(Context& ctx);
  void browser(Context& ctx, const Parts& parts, bool second);
  void connect(Context& ctx, const Parts& parts, bool second);
  void save_layout(Context& ctx, const Parts& parts);
  void note(Context& ctx);  // note_dialog.cpp
  // export_dialogs.cpp
  void export_to(Context& ctx, ExportFormat format);
  void record_copy(Context& ctx);
  void save_table(Context& ctx);
  void save_picture(Context& ctx, const Parts& parts);
  /// Input field for the file, with a warning if it exists. Returns whether Enter was pressed.
  bool target_field(Context& ctx, const std::string& proposed);
  [[nodiscard]] bool is_there() const;
  void about(Context& ctx);
  void close(Context& ctx);
  /// The last line: a button labelled `what`, and Cancel. Returns whether to proceed.
  [[nodiscard]] bool confirm(Context& ctx, const char* what, bool enabled = true);

  std::string text_, problem_, key_;
  float height_ = 0;  ///< of the content
  NoteTimes times_;   ///< of the note, as written
  // palette
  std::string searched_;
  std::vector<NameHit> names_;
  int chosen_ = 0;
  // browser
  FileList files_;
  std::string picked_;
  LocalRuns local_;  ///< runs that can be connected to
  ExportJob job_;
  CopyRecording copy_;
  std::size_t part_ = 0;     ///< of export_parts()
  bool with_other_ = true;   ///< report: include the comparison with the second run
  std::string picture_of_;   ///< panel; empty: the window
  std::string asked_about_;  ///< existing file that was announced; Enter may replace it
};

}  // namespace shardscope::gui
