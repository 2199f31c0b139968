// Kernel text, written once over isa/simd_*.h; included inside a level's anonymous namespace.

using moe_token_permute::kMaxTopk;
using moe_token_permute::RowSum;
using moe_token_permute::ScalarPick;
using moe_token_permute::Slots;

constexpr int kLineBytes = 64;
// Columns are summed two cache lines at a time over all rows of a token: full lines for the
// streamed stores, and adjacent lines are what the spatial prefetcher fetches together. At most 8
// accumulators, which every level keeps in registers and which cover the latency of an addition.
template <class T>
constexpr int kLineVectors = 2 * kLineBytes / (kLanes * static_cast<int>(sizeof(T)));
template <class T>
constexpr int kVectors = kLineVectors<T> < 8 ? kLineVectors<T> : 8;

// Row of slot `slot`, or -1 when it is skipped.
inline int64_t row_of(const Slots& slots, int64_t slot) {
  const int64_t row = slots.indices[slot * slots.stride] - slots.first_index;
  return row >= 0 && row < slots.rows ? row : -1;
}

// The rows that one token sums, in slot order.
template <class T>
struct Addends {
  const T* rows[kMaxTopk];
  int count;
  // −0 + x is x for every x, +0 + x loses a −0: where the sum starts says whether slot 0 is in it.
  float start;
};

// Fetches the rows' first lines, whose place the hardware prefetchers cannot guess; they find the
// rest of a row by themselves.
template <class T>
inline void find_addends(const Slots& slots, const RowSum& sum, int64_t token,
                         Addends<T>& addends) {
  const T* data = static_cast<const T*>(sum.rows.data);
  addends.count = 0;
  addends.start = row_of(slots, token * slots.topk) >= 0 ? -0.0f : 0.0f;
  for (int64_t j = 0; j < slots.topk; ++j) {
    const int64_t row = row_of(slots, token * slots.topk + j);
    if (row < 0) continue;
    const T* address = data + row * sum.rows.row_stride;
    prefetch(address);
    prefetch(reinterpret_cast<const char*>(address) + kLineBytes);
    addends.rows[addends.count++] = address;
  }
}

template <int VECTORS, bool STREAM, class T>
inline void sum_block(const Addends<T>& addends, int64_t column, T* out) {
  F32 sums[VECTORS];
  for (F32& sum : sums) sum = broadcast(addends.start);
  for (int k = 0; k < addends.count; ++k) {
    const T* row = addends.rows[k] + column;
    for (int v = 0; v < VECTORS; ++v) sums[v] = add(sums[v], load(row + v * kLanes));
  }
  for (int v = 0; v < VECTORS; ++v) {
    if constexpr (STREAM) {
      stream(out + column + v * kLanes, sums[v]);
    } else {
      store(out + column + v * kLanes, sums[v]);
    }
  }
}

// Columns [begin, end) without full blocks or alignment.
template <class T>
inline void sum_ragged(const Addends<T>& addends, int64_t begin, int64_t end, T* out) {
  for (; begin + kLanes <= end; begin += kLanes) sum_block<1, false>(addends, begin, out);
  if (begin == end) return;
  const int rest = static_cast<int>(end - begin);
  F32 sum = broadcast(addends.start);
  for (int k = 0; k < addends.count; ++k) {
    sum = add(sum, load_partial(addends.rows[k] + begin, rest));
  }
  store_partial(out + begin, sum, rest);
}

// Columns before the first cache line of `out`; all of them when elements straddle lines.
template <class T>
inline int64_t columns_to_line(const T* out, int64_t cols) {
  const uint64_t address = reinterpret_cast<uint64_t>(out);
  if (address % sizeof(T) != 0) return cols;
  const int64_t columns = static_cast<int64_t>((0 - address) % kLineBytes / sizeof(T));
  return columns < cols ? columns : cols;
}

template <bool STREAM, class T>
inline void sum_token(const Addends<T>& addends, int64_t cols, T* out) {
  constexpr int64_t kBlock = kVectors<T> * kLanes;
  int64_t column = STREAM ? columns_to_line(out, cols) : 0;
  sum_ragged(addends, 0, column, out);
  for (; column + kBlock <= cols; column += kBlock) {
    sum_block<kVectors<T>, STREAM>(addends, column, out);
  }
  sum_ragged(addends, column, cols, out);
}

// Rows or output whose columns are apart: lanes are collected and scattered one by one.
template <class T>
inline void sum_strided_token(const Addends<T>& addends, const RowSum& sum, T* out) {
  const int64_t in_stride = sum.rows.col_stride;
  const int64_t out_stride = sum.out.col_stride;
  T lanes[kLanes] = {};
  for (int64_t column = 0; column < sum.cols; column += kLanes) {
    const int64_t left = sum.cols - column;
    const int count = left < kLanes ? static_cast<int>(left) : kLanes;
    F32 total = broadcast(addends.start);
    for (int k = 0; k < addends.count; ++k) {
      const T* row = addends.rows[k] + column * in_stride;
      for (int i = 0; i < count; ++i) lanes[i] = row[i * in_stride];
      total = add(total, load(lanes));
    }
    store(lanes, total);
    for (int i = 0; i < count; ++i) out[(column + i) * out_stride] = lanes[i];
  }
}

// The addends of the next token are found, and prefetched, before this one is summed.
template <class T, class SumToken>
inline void for_each_token(const Slots& slots, const RowSum& sum, int64_t begin, int64_t end,
                           SumToken sum_one) {
  if (begin >= end) return;
  Addends<T> addends[2];
  find_addends(slots, sum, begin, addends[0]);
  for (int64_t token = begin; token < end; ++token) {
    const int64_t turn = token - begin;
    if (token + 1 < end) find_addends(slots, sum, token + 1, addends[(turn + 1) % 2]);
    sum_one(addends[turn % 2], static_cast<T*>(sum.out.data) + token * sum.out.row_stride);
  }
}

template <class T>
void sum_rows(const Slots& slots, const RowSum& sum, int64_t begin, int64_t end) {
  const int64_t cols = sum.cols;
  if (cols > 1 && (sum.rows.col_stride != 1 || sum.out.col_stride != 1)) {
    for_each_token<T>(slots, sum, begin, end, [&](const Addends<T>& addends, T* out) {
      sum_strided_token(addends, sum, out);
    });
  } else if (sum.stream) {
    for_each_token<T>(slots, sum, begin, end, [=](const Addends<T>& addends, T* out) {
      sum_token<true>(addends, cols, out);
    });
    stream_fence();
  } else {
    for_each_token<T>(slots, sum, begin, end, [=](const Addends<T>& addends, T* out) {
      sum_token<false>(addends, cols, out);
    });
  }
}

template <class BITS>
void pick_scalars(const Slots& slots, const ScalarPick& pick, int64_t begin, int64_t end) {
  const BITS* scalars = static_cast<const BITS*>(pick.scalars.data);
  for (int64_t token = begin; token < end; ++token) {
    BITS* out = static_cast<BITS*>(pick.out.data) + token * pick.out.row_stride;
    for (int64_t j = 0; j < slots.topk; ++j) {
      const int64_t row = row_of(slots, token * slots.topk + j);
      out[j * pick.out.col_stride] =
          row >= 0 ? scalars[row * pick.scalars.row_stride] : static_cast<BITS>(0);
    }
  }
}

constexpr moe_token_permute::Kernels kTable = {
    {&sum_rows<float>, &sum_rows<f16>, &sum_rows<bf16>},
    {&pick_scalars<uint32_t>, &pick_scalars<uint16_t>, &pick_scalars<uint16_t>}};
