#include "app/arrow/batch.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "app/store/store.h"

namespace shardscope::arrow {
namespace {

/// Bytes of the UTF-8 character that begins at `text[i]`; 0 if there is none.
std::size_t character(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (std::size_t k = i + 1; k < i + length; ++k) {
    if ((byte(k) & 0xC0) != 0x80) return 0;
  }
  // Reject overlong encodings, surrogates, and code points above U+10FFFF.
  const unsigned char second = byte(i + 1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
    return 0;
  return length;
}

void append(std::vector<std::byte>& to, std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  to.insert(to.end(), begin, begin + text.size());
}

void append_utf8(std::vector<std::byte>& to, std::string_view text) {
  std::size_t good = 0;  // begin of the valid UTF-8 not yet copied
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t length = character(text, i); length > 0) {
      i += length;
      continue;
    }
    append(to, text.substr(good, i - good));
    append(to, "\xEF\xBF\xBD");
    good = ++i;
  }
  append(to, text.substr(good));
}

const char* format_of(ColumnType type) {
  switch (type) {
    case ColumnType::int64:
      return "l";
    case ColumnType::uint32:
      return "I";
    case ColumnType::float64:
      return "g";
    case ColumnType::boolean:
      return "b";
    case ColumnType::text:
      return "u";
    case ColumnType::word:
      return "i";
  }
  return "n";
}

/// What an exported array owns; freed by its release().
struct ArrayParts {
  std::vector<std::byte> data;
  std::vector<std::int32_t> offsets;
  std::vector<std::uint8_t> validity;
  std::array<const void*, 3> buffers{};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> child_pointers;
  std::unique_ptr<ArrowArray> dictionary;
};

void release_array(ArrowArray* array) {
  auto* parts = static_cast<ArrayParts*>(array->private_data);
  for (ArrowArray& child : parts->children) {
    if (child.release != nullptr) child.release(&child);  // null: moved out by the consumer
  }
  if (parts->dictionary && parts->dictionary->release != nullptr)
    parts->dictionary->release(parts->dictionary.get());
  delete parts;
  array->release = nullptr;
}

void export_array(std::unique_ptr<ArrayParts> parts, std::size_t rows, std::int64_t nulls,
                  std::int64_t buffers, ArrowArray& out) {
  for (ArrowArray& child : parts->children) parts->child_pointers.push_back(&child);
  out = {.length = static_cast<std::int64_t>(rows),
         .null_count = nulls,
         .offset = 0,
         .n_buffers = buffers,
         .n_children = static_cast<std::int64_t>(parts->children.size()),
         .buffers = parts->buffers.data(),
         .children = parts->child_pointers.empty() ? nullptr : parts->child_pointers.data(),
         .dictionary = parts->dictionary.get(),
         .release = release_array,
         .private_data = nullptr};
  out.private_data = parts.release();
}

void export_words(const std::vector<std::string>& words, ArrowArray& out) {
  auto parts = std::make_unique<ArrayParts>();
  parts->offsets.push_back(0);
  parts->data.reserve(1);
  for (const std::string& word : words) {
    append(parts->data, word);
    parts->offsets.push_back(static_cast<std::int32_t>(parts->data.size()));
  }
  parts->buffers = {nullptr, parts->offsets.data(), parts->data.data()};
  export_array(std::move(parts), words.size(), 0, 3, out);
}

struct SchemaParts {
  std::string name;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> child_pointers;
  std::unique_ptr<ArrowSchema> dictionary;
};

void release_schema(ArrowSchema* schema) {
  auto* parts = static_cast<SchemaParts*>(schema->private_data);
  for (ArrowSchema& child : parts->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (parts->dictionary && parts->dictionary->release != nullptr)
    parts->dictionary->release(parts->dictionary.get());
  delete parts;
  schema->release = nullptr;
}

void export_field(const char* format, std::unique_ptr<SchemaParts> parts, std::int64_t flags,
                  ArrowSchema& out) {
  for (ArrowSchema& child : parts->children) parts->child_pointers.push_back(&child);
  out = {.format = format,
         .name = parts->name.c_str(),
         .metadata = nullptr,
         .flags = flags,
         .n_children = static_cast<std::int64_t>(parts->children.size()),
         .children = parts->child_pointers.empty() ? nullptr : parts->child_pointers.data(),
         .dictionary = parts->dictionary.get(),
         .release = release_schema,
         .private_data = nullptr};
  out.private_data = parts.release();
}

}  // namespace

Batch::Batch(const Schema& schema) : schema_(&schema), values_(schema.size()) {
  for (Values& values : values_) values.offsets.push_back(0);
}

Batch::Values& Batch::next(ColumnType type) {
  if (cell_ >= schema_->size() || (*schema_)[cell_].type != type) {
    std::fprintf(stderr, "shardscope: column %zu of a table: a cell of another type\n", cell_);
    std::abort();
  }
  return values_[cell_++];
}

void Batch::set_validity(Values& values, bool valid) const {
  if (valid && values.validity.empty()) return;
  if (values.validity.empty()) values.validity.assign(rows_ / 8 + 1, 0xFF);
  if (rows_ / 8 >= values.validity.size()) values.validity.push_back(0xFF);
  if (valid) return;
  values.validity[rows_ / 8] &= static_cast<std::uint8_t>(~(1U << (rows_ % 8)));
  ++values.nulls;
}

template <typename T>
Batch& Batch::put(ColumnType type, T value, bool valid) {
  Values& values = next(type);
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  values.data.insert(values.data.end(), bytes, bytes + sizeof value);
  set_validity(values, valid);
  return *this;
}

Batch& Batch::integer(std::int64_t value) { return put(ColumnType::int64, value, true); }
Batch& Batch::time(std::int64_t ns) {
  return put(ColumnType::int64, ns == store::kOpen ? std::int64_t{0} : ns, ns != store::kOpen);
}
Batch& Batch::id(std::uint32_t value) {
  return put(ColumnType::uint32, value == store::ev::kNoId ? 0U : value, value != store::ev::kNoId);
}
Batch& Batch::number(double value) {
  return put(ColumnType::float64, std::isnan(value) ? 0.0 : value, !std::isnan(value));
}
Batch& Batch::flag(bool value) {
  Values& values = next(ColumnType::boolean);
  if (rows_ / 8 >= values.data.size()) values.data.push_back(std::byte{0});
  if (value) values.data[rows_ / 8] |= std::byte{1} << (rows_ % 8);
  set_validity(values, true);
  return *this;
}
Batch& Batch::text(std::string_view value) {
  Values& values = next(ColumnType::text);
  append_utf8(values.data, value);
  values.offsets.push_back(static_cast<std::int32_t>(values.data.size()));
  set_validity(values, true);
  return *this;
}
Batch& Batch::word(std::size_t index) {
  const bool known = cell_ < schema_->size() && index < (*schema_)[cell_].words.size();
  return put(ColumnType::word, known ? static_cast<std::int32_t>(index) : 0, known);
}

Batch& Batch::null() {
  switch ((*schema_)[cell_].type) {
    case ColumnType::int64:
      return put(ColumnType::int64, std::int64_t{0}, false);
    case ColumnType::uint32:
      return put(ColumnType::uint32, 0U, false);
    case ColumnType::float64:
      return put(ColumnType::float64, 0.0, false);
    case ColumnType::word:
      return put(ColumnType::word, std::int32_t{0}, false);
    case ColumnType::boolean: {
      Values& values = next(ColumnType::boolean);
      if (rows_ / 8 >= values.data.size()) values.data.push_back(std::byte{0});
      set_validity(values, false);
      return *this;
    }
    case ColumnType::text: {
      Values& values = next(ColumnType::text);
      values.offsets.push_back(static_cast<std::int32_t>(values.data.size()));
      set_validity(values, false);
      return *this;
    }
  }
  return *this;
}

void Batch::end_row() {
  if (cell_ != schema_->size()) {
    std::fprintf(stderr, "shardscope: a row of a table: %zu cells of %zu\n", cell_, schema_->size());
    std::abort();
  }
  cell_ = 0;
  ++rows_;
}

void Batch::export_column(const Column& column, Values values, std::size_t rows, ArrowArray& out) {
  auto parts = std::make_unique<ArrayParts>();
  parts->data = std::move(values.data);
  parts->data.reserve(1);  // consumers expect an address even for an empty buffer
  parts->offsets = std::move(values.offsets);
  parts->validity = std::move(values.validity);
  const void* validity = parts->validity.empty() ? nullptr : parts->validity.data();
  if (column.type == ColumnType::text) {
    parts->buffers = {validity, parts->offsets.data(), parts->data.data()};
  } else {
    parts->buffers = {validity, parts->data.data(), nullptr};
  }
  if (column.type == ColumnType::word) {
    parts->dictionary = std::make_unique<ArrowArray>();
    export_words(column.words, *parts->dictionary);
  }
  export_array(std::move(parts), rows, values.nulls, column.type == ColumnType::text ? 3 : 2, out);
}

void Batch::release_to(ArrowArray& out) {
  auto parts = std::make_unique<ArrayParts>();
  parts->children.resize(schema_->size());
  for (std::size_t i = 0; i < schema_->size(); ++i)
    export_column((*schema_)[i], std::move(values_[i]), rows_, parts->children[i]);
  const std::size_t rows = std::exchange(rows_, 0);
  values_.assign(schema_->size(), Values{});
  for (Values& values : values_) values.offsets.push_back(0);
  export_array(std::move(parts), rows, 0, 1, out);
}

void export_schema(const Schema& schema, ArrowSchema& out) {
  auto parts = std::make_unique<SchemaParts>();
  parts->children.resize(schema.size());
  for (std::size_t i = 0; i < schema.size(); ++i) {
    auto field = std::make_unique<SchemaParts>();
    field->name = schema[i].name;
    if (schema[i].type == ColumnType::word) {
      field->dictionary = std::make_unique<ArrowSchema>();
      export_field("u", std::make_unique<SchemaParts>(), ARROW_FLAG_NULLABLE, *field->dictionary);
    }
    export_field(format_of(schema[i].type), std::move(field), ARROW_FLAG_NULLABLE, parts->children[i]);
  }
  export_field("+s", std::move(parts), 0, out);
}

}  // namespace shardscope::arrow
