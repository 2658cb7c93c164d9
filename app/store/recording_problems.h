// Messages to the user about what is missing or damaged in a recording, in the order of reading.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "app/store/database.h"

namespace shardscope::store {

class Problems {
 public:
  /// Problems beyond this number are counted, not listed.
  static constexpr std::size_t kMostListed = 100;

  /// Messages are added to `listed`, which must outlive this object.
  explicit Problems(std::vector<std::string>& listed) : listed_(listed) {}

  void add(const std::string& text) {
    ++count_;
    if (count_ <= kMostListed) listed_.push_back(text);
  }
  /// Runs `work`; an error becomes a problem of `what`, so that damage in one table does not hide the others.
  template <typename Work>
  void guard(const char* what, Work work) {
    try {
      work();
    } catch (const DatabaseError& error) {
      add(std::string(what) + ": the file is damaged there (" + error.what() + ")");
    } catch (const std::runtime_error& error) {  // readable, with impossible contents
      add(std::string(what) + ": " + error.what());
    }
  }
  [[nodiscard]] std::size_t listed() const noexcept { return listed_.size(); }
  [[nodiscard]] bool none() const noexcept { return count_ == 0; }
  /// Keeps the first `listed` problems. The reader reads again and finds the others again.
  void truncate(std::size_t listed) {
    listed_.resize(listed);
    count_ = listed;
  }
  /// Adds the number of unlisted problems as the last text. Call after the last add().
  void add_unlisted_count() {
    if (count_ > kMostListed) listed_.push_back("and " + std::to_string(count_ - kMostListed) + " more");
  }

 private:
  std::vector<std::string>& listed_;
  std::size_t count_ = 0;
};

}  // namespace shardscope::store
