#include "runtime/copy.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"

namespace npuless::runtime {
namespace {

// Bytes from `address` to the end of its block.
size_t bytes_left(const BlockRef& block, const void* address) {
  return block->end() - reinterpret_cast<uintptr_t>(address);
}

Status require_room(const BlockRef& block, const void* dst, size_t size) {
  if (!block.is_device() || size <= bytes_left(block, dst)) return {};
  return fail(code::kRtParamInvalid,
              "writing %zu bytes at offset %zu would pass the end of a device block of %zu bytes",
              size, block->size - bytes_left(block, dst), block->size);
}

// Bytes from the first to the last byte of `height` rows; false when no such range exists.
bool span_of(size_t pitch, size_t width, size_t height, size_t* span) {
  return !__builtin_mul_overflow(pitch, height - 1, span) &&
         !__builtin_add_overflow(*span, width, span);
}

// Copies what exists of one row and zero-fills the rest.
void copy_row(void* dst, const void* src, size_t width, size_t readable) {
  const size_t existing = std::min(width, readable);
  std::memmove(dst, src, existing);
  if (existing < width) std::memset(static_cast<char*>(dst) + existing, 0, width - existing);
}

template <class Work>
Status submit_work(const StreamPin& stream, Work work) {
  if (work.pageable()) {
    NPULESS_TRY(stream->synchronize(kForever));
    work.run();
    return {};
  }
  return stream->post([work = std::move(work)] {
    work.run();
    return Status();
  });
}

}  // namespace

Status Copy::make(const CopyShape& shape, Copy* copy) {
  size_t dst_span = 0;
  size_t src_span = 0;
  if (!span_of(shape.dst_pitch, shape.width, shape.height, &dst_span) ||
      !span_of(shape.src_pitch, shape.width, shape.height, &src_span)) {
    return fail(code::kRtParamInvalid, "pitch times height exceeds the address space");
  }
  copy->shape_ = shape;
  copy->readable_ = src_span;
  copy->dst_block_ = find_block(shape.dst);
  copy->src_block_ = find_block(shape.src);
  NPULESS_TRY(require_room(copy->dst_block_, shape.dst, dst_span));
  if (!copy->src_block_.is_device()) return {};
  copy->readable_ = std::min(src_span, bytes_left(copy->src_block_, shape.src));
  if (copy->readable_ < src_span) {
    log(LogLevel::kWarning,
        "a copy reads %zu bytes past the end of a device block of %zu bytes; they read as zero",
        src_span - copy->readable_, copy->src_block_->size);
  }
  return {};
}

void Copy::run() const {
  char* dst = static_cast<char*>(shape_.dst);
  const char* src = static_cast<const char*>(shape_.src);
  if (shape_.height == 1 ||
      (shape_.width == shape_.dst_pitch && shape_.width == shape_.src_pitch)) {
    return copy_row(dst, src, shape_.width * shape_.height, readable_);
  }
  for (size_t row = 0; row < shape_.height; ++row) {
    const size_t offset = std::min(row * shape_.src_pitch, readable_);
    copy_row(dst + row * shape_.dst_pitch, src + offset, shape_.width, readable_ - offset);
  }
}

Status submit(const StreamPin& stream, Copy copy) {
  return submit_work(stream, std::move(copy));
}

Status Fill::aim(void* dst, size_t count) {
  dst_ = dst;
  block_ = find_block(dst);
  return require_room(block_, dst, count);
}

Status Fill::bytes(void* dst, size_t count, int32_t value, Fill* fill) {
  fill->count_ = count;
  fill->value_ = static_cast<uint32_t>(value);
  return fill->aim(dst, count);
}

Status Fill::words(void* dst, size_t words, uint32_t value, Fill* fill) {
  fill->count_ = words;
  fill->value_ = value;
  fill->words_ = true;
  NPULESS_TRY(fill->aim(dst, words * sizeof(uint32_t)));
  if (fill->block_) return {};
  return fail(code::kRtParamInvalid, "%p is not memory of this library", dst);
}

void Fill::run() const {
  if (words_) {
    std::fill_n(static_cast<uint32_t*>(dst_), count_, value_);
  } else {
    std::memset(dst_, static_cast<unsigned char>(value_), count_);
  }
}

Status submit(const StreamPin& stream, Fill fill) {
  return submit_work(stream, std::move(fill));
}

}  // namespace npuless::runtime
