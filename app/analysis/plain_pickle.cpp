// Opcodes as in Python's pickletools.py and PyTorch's torch/csrc/jit/serialization/pickler.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "app/analysis/plain_data.h"

namespace shardscope::analysis {
namespace {

enum class Opcode : std::uint8_t {
  mark = '(',
  stop = '.',
  none = 'N',
  true_ = 0x88,
  false_ = 0x89,
  int4 = 'J',
  int1 = 'K',
  int2 = 'M',
  long1 = 0x8a,
  real = 'G',
  text4 = 'X',
  text1 = 0x8c,
  list = ']',
  append = 'a',
  appends = 'e',
  tuple0 = ')',
  tuple = 't',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  dict = '}',
  set_item = 's',
  set_items = 'u',
  put1 = 'q',
  put4 = 'r',
  memoize = 0x94,
  get1 = 'h',
  get4 = 'j',
  protocol = 0x80,
  frame = 0x95
};

class PickleReader {
 public:
  explicit PickleReader(std::string_view bytes) : bytes_(bytes) {}

  PlainData read() {
    if (bytes_.size() < 2 || static_cast<Opcode>(bytes_[0]) != Opcode::protocol)
      fail("does not begin as one");
    while (!stopped_) step();
    return std::move(data_);
  }

 private:
  using Id = PlainData::Id;
  using Kind = PlainData::Kind;

  [[noreturn]] void fail(const std::string& why) const {
    throw std::invalid_argument(fmt::format("its pickle {} (byte {})", why, opcode_at_));
  }

  std::string_view take(std::size_t count) {
    if (count > bytes_.size() - at_) fail("ends early");
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }

  /// Reads a little-endian number of up to 8 bytes.
  std::uint64_t number(std::size_t count) {
    std::uint64_t out = 0;
    const std::string_view from = take(count);
    for (std::size_t i = 0; i < count; ++i)
      out |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(from[i])) << (8 * i);
    return out;
  }

  std::int64_t signed_number(std::size_t count) {
    if (count > 8) fail(fmt::format("has a number of {} bytes", count));
    if (count == 0) return 0;
    const auto shift = static_cast<unsigned>(8 * (8 - count));
    return static_cast<std::int64_t>(number(count) << shift) >> shift;
  }

  double big_endian_real() {
    std::uint64_t out = 0;
    for (const char c : take(8)) out = out << 8 | static_cast<std::uint8_t>(c);
    return std::bit_cast<double>(out);
  }

  void push(Id id) { stack_.push_back(id); }

  Id pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("takes more values than it has");
    const Id id = stack_.back();
    stack_.pop_back();
    return id;
  }

  Id top() const {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("takes more values than it has");
    return stack_.back();
  }

  /// Index of the first value pushed since the last mark.
  std::size_t since_mark() {
    if (marks_.empty()) fail("takes a mark that it has not set");
    const std::size_t begin = marks_.back();
    marks_.pop_back();
    return begin;
  }

  /// Moves the values from `begin` on into the list or dictionary below them.
  void move_into(std::size_t begin, Kind kind) {
    if (begin == 0 || begin <= (marks_.empty() ? 0 : marks_.back()) || data_.kind(stack_[begin - 1]) != kind)
      fail("puts values into something that is no list or dictionary");
    const Id to = stack_[begin - 1];
    if (kind == Kind::dict && (stack_.size() - begin) % 2 != 0) fail("has a key without a value");
    for (std::size_t i = begin; i < stack_.size(); ++i) data_.append(to, stack_[i]);
    stack_.resize(begin);
  }

  void make_tuple(std::size_t begin) {
    const Id out = data_.add(Kind::list);
    for (std::size_t i = begin; i < stack_.size(); ++i) data_.append(out, stack_[i]);
    stack_.resize(begin);
    push(out);
  }

  void make_tuple_of(std::size_t count) {
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count) fail("takes more values than it has");
    make_tuple(stack_.size() - count);
  }

  void put(std::uint64_t index) {
    // Every memo entry takes bytes of the file, so a valid index is below its size.
    if (index >= bytes_.size()) fail("keeps a value under a number that is too large");
    if (index >= memo_.size()) memo_.resize(index + 1, kNothing);
    memo_[index] = top();
  }

  void get(std::uint64_t index) {
    if (index >= memo_.size() || memo_[index] == kNothing) fail("asks for a value that it has not kept");
    push(memo_[index]);
  }

  void step() {
    opcode_at_ = at_;
    const auto opcode = static_cast<Opcode>(take(1)[0]);
    switch (opcode) {
      case Opcode::protocol:
        if (const std::uint64_t version = number(1); version < 2 || version > 5)
          fail(fmt::format("is of protocol {}", version));
        return;
      case Opcode::frame:
        (void)take(8);  // frame length, for stream readers
        return;
      case Opcode::stop:
        data_.set_root(pop());
        stopped_ = true;
        return;
      case Opcode::none:
        return push(data_.add_none());
      case Opcode::true_:
        return push(data_.add(true));
      case Opcode::false_:
        return push(data_.add(false));
      case Opcode::int1:
        return push(data_.add(static_cast<std::int64_t>(number(1))));
      case Opcode::int2:
        return push(data_.add(static_cast<std::int64_t>(number(2))));
      case Opcode::int4:
        return push(data_.add(signed_number(4)));
      case Opcode::long1:
        return push(data_.add(signed_number(number(1))));
      case Opcode::real:
        return push(data_.add(big_endian_real()));
      case Opcode::text1:
        return push(data_.add_view(take(number(1))));
      case Opcode::text4:
        return push(data_.add_view(take(number(4))));
      case Opcode::list:
      case Opcode::tuple0:
        return push(data_.add(Kind::list));
      case Opcode::dict:
        return push(data_.add(Kind::dict));
      case Opcode::mark:
        marks_.push_back(stack_.size());
        return;
      case Opcode::append:
        return move_into(stack_.size() - (stack_.empty() ? 0 : 1), Kind::list);
      case Opcode::appends:
        return move_into(since_mark(), Kind::list);
      case Opcode::set_item:
        return move_into(stack_.size() - std::min<std::size_t>(stack_.size(), 2), Kind::dict);
      case Opcode::set_items:
        return move_into(since_mark(), Kind::dict);
      case Opcode::tuple:
        return make_tuple(since_mark());
      case Opcode::tuple1:
        return make_tuple_of(1);
      case Opcode::tuple2:
        return make_tuple_of(2);
      case Opcode::tuple3:
        return make_tuple_of(3);
      case Opcode::put1:
        return put(number(1));
      case Opcode::put4:
        return put(number(4));
      case Opcode::memoize:
        return put(kept_++);
      case Opcode::get1:
        return get(number(1));
      case Opcode::get4:
        return get(number(4));
    }
    constexpr std::string_view kRun = "cioRbPQ\x81\x82\x83\x84\x92\x93";
    const char byte = bytes_[opcode_at_];
    const std::string shown = fmt::format("{:#04x}", static_cast<unsigned>(static_cast<std::uint8_t>(byte)));
    if (kRun.find(byte) != std::string_view::npos)
      fail("asks to import or call Python code, which is not done: opcode " + shown);
    fail("has the opcode " + shown + ", which plain data does not need");
  }

  static constexpr Id kNothing = UINT32_MAX;
  std::string_view bytes_;
  PlainData data_;
  std::vector<Id> stack_, memo_;
  std::vector<std::size_t> marks_;
  std::size_t at_ = 0, opcode_at_ = 0;
  std::uint64_t kept_ = 0;
  bool stopped_ = false;
};

}  // namespace

PlainData read_plain_pickle(std::string_view bytes) { return PickleReader(bytes).read(); }

}  // namespace shardscope::analysis
