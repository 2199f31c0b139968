// Kernel text of the unpermute's gradient, part of kernels.inl: a token's row, scaled, to its
// permuted rows, and its dot products with them.

using moe_token_permute::kDotLanes;
using moe_token_permute::Spread;

constexpr int kDotPairs = kDotLanes / (2 * kLanes);

template <class T>
inline void add_products(const T* x, const T* y, Pair (&sums)[kDotPairs]) {
  for (int p = 0; p < kDotPairs; ++p) {
    const Pair a = load_pair(x + p * 2 * kLanes);
    const Pair b = load_pair(y + p * 2 * kLanes);
    sums[p].first = add(sums[p].first, mul(a.first, b.first));
    sums[p].second = add(sums[p].second, mul(a.second, b.second));
  }
}

// A pair's lanes in the order of their columns.
inline void store_columns(const float*, Pair x, float* out) {
  store_pair(out, x);
}
inline void store_columns(const f16*, Pair x, float* out) {
  store_pair(out, x);
}
inline void store_columns(const bf16*, Pair x, float* out) {
  float lanes[2 * kLanes];
  store_pair(lanes, x);
  for (int i = 0; i < kLanes; ++i) {
    out[2 * i] = lanes[i];
    out[2 * i + 1] = lanes[kLanes + i];
  }
}

template <class T>
inline float sum_lanes(const Pair (&lanes)[kDotPairs]) {
  float sums[kDotLanes];
  for (int p = 0; p < kDotPairs; ++p) {
    store_columns(static_cast<const T*>(nullptr), lanes[p], sums + p * 2 * kLanes);
  }
  for (int half = kDotLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

template <class T>
inline void collect(const T* from, int64_t stride, int count, T (&to)[kDotLanes]) {
  for (int i = 0; i < count; ++i) to[i] = from[i * stride];
}

// Products of fewer than kDotLanes columns, or of columns apart. Lanes past the last one add
// +0 · +0, which changes no sum: none of them is ever −0.
template <class T>
inline void add_rest(const T* x, int64_t x_stride, const T* y, int64_t y_stride, int count,
                     Pair (&lanes)[kDotPairs]) {
  T x_lanes[kDotLanes] = {};
  T y_lanes[kDotLanes] = {};
  collect(x, x_stride, count, x_lanes);
  collect(y, y_stride, count, y_lanes);
  add_products(x_lanes, y_lanes, lanes);
}

template <class T>
inline float dot_row(const T* x, int64_t x_stride, const T* y, int64_t y_stride, int64_t cols) {
  Pair lanes[kDotPairs];
  for (Pair& pair : lanes) pair = {zero(), zero()};
  int64_t column = 0;
  if (x_stride == 1 && y_stride == 1) {
    for (; column + kDotLanes <= cols; column += kDotLanes) {
      add_products(x + column, y + column, lanes);
    }
  }
  for (; column < cols; column += kDotLanes) {
    const int count = static_cast<int>(cols - column < kDotLanes ? cols - column : kDotLanes);
    add_rest(x + column * x_stride, x_stride, y + column * y_stride, y_stride, count, lanes);
  }
  return sum_lanes<T>(lanes);
}

// One weighted addend from −0 is the product itself.
template <class T>
inline void scale_row(const RowSum& sum, Addends<T, true>& addend, T* out) {
  if (!columns_adjoin(sum.rows, sum.out, sum.cols)) {
    sum_strided_token(addend, sum, out);
  } else if (sum.stream) {
    sum_token<true>(addend, sum.cols, out);
  } else {
    sum_token<false>(addend, sum.cols, out);
  }
}

// Lines between a load and the fetch that precedes it: memory answers in some 100 ns, in which the
// loop below gets through about 30 lines.
constexpr int64_t kSpreadAheadBytes = 32 * kLineBytes;

// A slot's row, and the next slot's row or null. The hardware prefetchers cannot guess where that
// starts, so it is fetched while this one ends.
template <class T>
struct SlotRow {
  const T* x;
  const T* next;
};

// What the fused loop reads `ahead` columns after `column`, of this row or the next.
template <class T>
inline void prefetch_ahead(const SlotRow<T>& row, int64_t column, int64_t cols, int64_t ahead) {
  constexpr int64_t kBlockBytes = kDotLanes * static_cast<int64_t>(sizeof(T));
  const int64_t beyond = column + ahead - cols;
  if (beyond < 0) {
    prefetch_bytes(row.x + column + ahead, kBlockBytes);
  } else if (row.next != nullptr) {
    prefetch_bytes(row.next + beyond, kBlockBytes);
  }
}

template <bool STREAM, class T>
inline void dot_and_scale_block(const T* x, const T* grad, F32 weight, Pair (&sums)[kDotPairs],
                                T* out) {
  for (int p = 0; p < kDotPairs; ++p) {
    const int64_t at = p * 2 * kLanes;
    const Pair a = load_pair(x + at);
    const Pair g = load_pair(grad + at);
    sums[p].first = add(sums[p].first, mul(a.first, g.first));
    sums[p].second = add(sums[p].second, mul(a.second, g.second));
    const Pair scaled = {mul(weight, g.first), mul(weight, g.second)};
    if constexpr (STREAM) {
      stream_pair(out + at, scaled);
    } else {
      store_pair(out + at, scaled);
    }
  }
}

// Both at once where columns adjoin, so that loads and stores keep memory busy together. Streams
// to whole lines, from the first column on.
template <bool STREAM, class T>
inline float dot_and_scale_row(const SlotRow<T>& row, const T* grad, int64_t cols,
                               Addends<T, true>& addend, T* out) {
  constexpr int64_t kAheadColumns = kSpreadAheadBytes / static_cast<int64_t>(sizeof(T));
  const F32 weight = broadcast(addend.weights[0]);
  Pair sums[kDotPairs];
  for (Pair& pair : sums) pair = {zero(), zero()};
  const int64_t ahead = cols < kAheadColumns ? cols : kAheadColumns;
  int64_t column = 0;
  for (; column + kDotLanes <= cols; column += kDotLanes) {
    prefetch_ahead(row, column, cols, ahead);
    dot_and_scale_block<STREAM>(row.x + column, grad + column, weight, sums, out + column);
  }
  sum_ragged(addend, column, cols, out);
  add_rest(row.x + column, 1, grad + column, 1, static_cast<int>(cols - column), sums);
  return sum_lanes<T>(sums);
}

// The dot product of a slot whose row `out` is written unless it is null.
template <class T>
inline float spread_row(const Spread& spread, const RowSum& scaled, const SlotRow<T>& row,
                        Addends<T, true>& addend, T* out) {
  const T* grad = addend.rows[0];
  const bool adjoin = columns_adjoin(spread.rows, spread.out, spread.cols) &&
                      columns_adjoin(spread.grad, spread.out, spread.cols);
  if (out != nullptr && adjoin && !spread.stream) {
    return dot_and_scale_row<false>(row, grad, spread.cols, addend, out);
  }
  if (out != nullptr && adjoin && columns_to_line(out, spread.cols) == 0) {
    return dot_and_scale_row<true>(row, grad, spread.cols, addend, out);
  }
  if (row.next != nullptr) prefetch_start(row.next, spread.cols, kAheadBytes);
  if (out != nullptr) scale_row(scaled, addend, out);
  return dot_row(row.x, spread.rows.col_stride, grad, spread.grad.col_stride, spread.cols);
}

// The first slot in [slot, last) that has a row, else `last`.
inline int64_t find_slot(const Slots& slots, int64_t slot, int64_t last) {
  while (slot < last && row_of(slots, slot) < 0) ++slot;
  return slot;
}

template <class T>
void spread_rows(const Slots& slots, const Spread& spread, int64_t begin, int64_t end) {
  const RowSum scaled{spread.grad, spread.out, spread.cols, spread.stream};
  const int64_t first = begin * slots.topk;
  const int64_t last = end * slots.topk;
  const auto row_at = [&](int64_t row) {
    return static_cast<const T*>(spread.rows.data) + row * spread.rows.row_stride;
  };
  for (int64_t slot = first; slot < last; ++slot) spread.dots[slot - first] = 0.0f;
  Addends<T, true> addend;
  addend.count = 1;
  addend.start = -0.0f;
  int64_t next = find_slot(slots, first, last);
  if (next < last) prefetch_start(row_at(row_of(slots, next)), spread.cols, kSpreadAheadBytes);
  for (int64_t slot = next; slot < last; slot = next) {
    next = find_slot(slots, slot + 1, last);
    const int64_t row = row_of(slots, slot);
    const bool writes = spread.writers == nullptr || spread.writers[row] == slot;
    addend.weights[0] = spread.weights[slot - first];
    addend.rows[0] =
        static_cast<const T*>(spread.grad.data) + slot / slots.topk * spread.grad.row_stride;
    T* out = static_cast<T*>(spread.out.data) + row * spread.out.row_stride;
    const SlotRow<T> read{row_at(row), next < last ? row_at(row_of(slots, next)) : nullptr};
    spread.dots[slot - first] = spread_row(spread, scaled, read, addend, writes ? out : nullptr);
  }
  if (spread.stream) stream_fence();
}
