// Copies and fills that know the extents of device blocks.
//
// Reading past the end of a device block: the rest of the destination is zero-filled and one
// warning is logged. Writing past the end of one: 107000, nothing is written. Memory that is not
// a device block is trusted.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "runtime/memory.h"
#include "runtime/stream.h"

namespace npuless::runtime {

// `height` rows of `width` bytes, the pitches apart. A plain copy is one row.
struct CopyShape {
  void* dst;
  size_t dst_pitch;
  const void* src;
  size_t src_pitch;
  size_t width;
  size_t height;
};

// A checked copy. It keeps the blocks it touches alive, so it may run after they were freed.
class Copy {
 public:
  static Status make(const CopyShape& shape, Copy* copy);

  void run() const;
  // Whether an end is ordinary host memory, which the client may reuse as soon as its call returns.
  bool pageable() const { return !dst_block_ || !src_block_; }

 private:
  CopyShape shape_{};
  size_t readable_ = 0;  // bytes from shape_.src on that exist
  BlockRef dst_block_;
  BlockRef src_block_;
};

// Queues the copy, or drains the stream and copies at once when an end is pageable.
Status submit(const StreamPin& stream, Copy copy);

// A checked fill of `count` bytes with one byte, or of words with one 32-bit value.
class Fill {
 public:
  static Status bytes(void* dst, size_t count, int32_t value, Fill* fill);
  // 107000 also when dst is not the library's memory.
  static Status words(void* dst, size_t words, uint32_t value, Fill* fill);

  void run() const;
  bool pageable() const { return !block_; }

 private:
  Status aim(void* dst, size_t count);

  void* dst_ = nullptr;
  size_t count_ = 0;  // bytes, or words
  uint32_t value_ = 0;
  bool words_ = false;
  BlockRef block_;
};

Status submit(const StreamPin& stream, Fill fill);

}  // namespace npuless::runtime
