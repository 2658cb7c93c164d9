// What is missing or damaged in a recording: texts for the user, in the order of reading.
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

  /// `listed` is the caller's and outlives this.
  explicit Problems(std::vector<std::string>& listed) : listed_(listed) {}

  void add(const std::string& text) {
    ++count_;
    if (count_ <= kMostListed) listed_.push_back(text);
  }
  /// Damage in one table must not hide the others.
  template <typename Work>
  void guard(const char* what, Work work) {
    try {
      work();
    } catch (const DatabaseError& error) {
      add(std::string(what) + ": the file is damaged there (" + error.what() + ")");
    } catch (const std::runtime_error& error) {  // it can be read, but says what cannot be
      add(std::string(what) + ": " + error.what());
    }
  }
  [[nodiscard]] std::size_t listed() const noexcept { return listed_.size(); }
  [[nodiscard]] bool none() const noexcept { return count_ == 0; }
  /// Keeps the first `listed`: the reader looks for the others again.
  void truncate(std::size_t listed) {
    listed_.resize(listed);
    count_ = listed;
  }
  /// Nothing is added after this.
  void add_unlisted_count() {
    if (count_ > kMostListed) listed_.push_back("and " + std::to_string(count_ - kMostListed) + " more");
  }

 private:
  std::vector<std::string>& listed_;
  std::size_t count_ = 0;
};

}  // namespace shardscope::store
