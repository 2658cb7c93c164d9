// What asks before something is done: the palette, "go to", opening, connecting, exports.
#pragma once

#include <string>
#include <vector>

#include "app/gui/model/copy_recording.h"
#include "app/gui/model/export_job.h"
#include "app/gui/model/file_list.h"
#include "app/gui/model/find_names.h"
#include "app/gui/model/local_runs.h"
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
  /// The one that UiState::dialog names, if any, as a modal window of ImGui.
  void draw(Context& ctx, const Parts& parts);
  /// A line about an export that is under way or just done, for the status bar; empty: none.
  [[nodiscard]] std::string export_line() const;
  [[nodiscard]] bool export_failed() const { return !job_.state().problem.empty(); }
  /// What the field of the dialog that is open holds.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// Of the live run that is recorded to a file, or was last.
  [[nodiscard]] const CopyRecording& copy() const noexcept { return copy_; }
  [[nodiscard]] bool exporting() const { return job_.state().running; }

 private:
  void palette(Context& ctx, const Parts& parts);
  void go_to(Context& ctx);
  void browser(Context& ctx, const Parts& parts, bool second);
  void connect(Context& ctx, const Parts& parts);
  void save_layout(Context& ctx, const Parts& parts);
  void note(Context& ctx);  // note_dialog.cpp
  // export_dialogs.cpp
  void export_to(Context& ctx, ExportFormat format);
  void record_copy(Context& ctx);
  void save_table(Context& ctx);
  void save_picture(Context& ctx, const Parts& parts);
  /// The field for the file, and a sentence where there is one already. Returns whether Enter was pressed.
  bool target_field(Context& ctx, const std::string& proposed);
  [[nodiscard]] bool is_there() const;
  void about(Context& ctx);
  void close(Context& ctx);
  /// The last line: what the dialog does, and Cancel. Returns whether it is to be done.
  [[nodiscard]] bool confirm(Context& ctx, const char* what, bool enabled = true);

  std::string text_, problem_, key_;
  float height_ = 0;  ///< of what is in it
  // palette
  std::string searched_;
  std::vector<NameHit> names_;
  int chosen_ = 0;
  // browser
  FileList files_;
  std::string picked_;
  LocalRuns local_;  ///< to connect to
  ExportJob job_;
  CopyRecording copy_;
  bool part_only_ = false;   ///< what is shown of the run, not all of it
  bool with_other_ = true;   ///< the report compares with the second run
  std::string picture_of_;   ///< a panel; empty: the window
  std::string asked_about_;  ///< file that Enter may replace: it was said that it is there
};

}  // namespace shardscope::gui
