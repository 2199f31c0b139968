// Kernel text of the row copies, part of kernels.inl. Bits are moved, never computed with.

using moe_token_permute::RowCopy;
using moe_token_permute::RowMoves;

// A row is read into half of a 32 KiB L1 data cache and written to all its places before its next
// part is read.
constexpr int64_t kCopyBytes = 16384;

inline void stream_line(char* to, const char* from) {
  for (int byte = 0; byte < kLineBytes; byte += kLanes * static_cast<int>(sizeof(float))) {
    stream(reinterpret_cast<float*>(to + byte), load(reinterpret_cast<const float*>(from + byte)));
  }
}

inline void stream_bytes(char* to, const char* from, int64_t bytes) {
  int64_t begin = static_cast<int64_t>((0 - reinterpret_cast<uint64_t>(to)) % kLineBytes);
  begin = begin < bytes ? begin : bytes;
  __builtin_memcpy(to, from, static_cast<uint64_t>(begin));
  for (; begin + kLineBytes <= bytes; begin += kLineBytes) stream_line(to + begin, from + begin);
  __builtin_memcpy(to + begin, from + begin, static_cast<uint64_t>(bytes - begin));
}

// Moves [first, last) come from one row.
template <class BITS>
inline void copy_row(const RowMoves& moves, const RowCopy& copy, int64_t first, int64_t last) {
  constexpr int64_t kSize = static_cast<int64_t>(sizeof(BITS));
  const char* from =
      static_cast<const char*>(copy.from.data) + moves.from[first] * copy.from.row_stride * kSize;
  const int64_t bytes = copy.cols * kSize;
  for (int64_t begin = 0; begin < bytes; begin += kCopyBytes) {
    const int64_t part = bytes - begin < kCopyBytes ? bytes - begin : kCopyBytes;
    for (int64_t i = first; i < last; ++i) {
      char* to =
          static_cast<char*>(copy.to.data) + moves.to[i] * copy.to.row_stride * kSize + begin;
      if (copy.stream) {
        stream_bytes(to, from + begin, part);
      } else {
        __builtin_memcpy(to, from + begin, static_cast<uint64_t>(part));
      }
    }
  }
}

template <class BITS>
inline void copy_strided_row(const RowMoves& moves, const RowCopy& copy, int64_t i) {
  const BITS* from =
      static_cast<const BITS*>(copy.from.data) + moves.from[i] * copy.from.row_stride;
  BITS* to = static_cast<BITS*>(copy.to.data) + moves.to[i] * copy.to.row_stride;
  for (int64_t column = 0; column < copy.cols; ++column) {
    to[column * copy.to.col_stride] = from[column * copy.from.col_stride];
  }
}

template <class BITS>
void copy_rows(const RowMoves& moves, const RowCopy& copy) {
  if (copy.cols > 1 && (copy.from.col_stride != 1 || copy.to.col_stride != 1)) {
    for (int64_t i = 0; i < moves.count; ++i) copy_strided_row<BITS>(moves, copy, i);
    return;
  }
  for (int64_t first = 0; first < moves.count;) {
    int64_t last = first + 1;
    while (last < moves.count && moves.from[last] == moves.from[first]) ++last;
    copy_row<BITS>(moves, copy, first, last);
    first = last;
  }
  if (copy.stream) stream_fence();
}
