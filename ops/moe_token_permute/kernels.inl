// Kernel text, written once over isa/simd_*.h; included inside a level's anonymous namespace.

using moe_token_permute::kMaxTopk;
using moe_token_permute::RowSum;
using moe_token_permute::ScalarPick;
using moe_token_permute::Slots;
using moe_token_permute::Source;
using moe_token_permute::Target;

constexpr int kLineBytes = 64;
// Columns are summed a block at a time over all rows of a token: whole cache lines, for the
// streamed stores, and at least two pairs of vectors, whose four chains of additions keep the adder
// busy. Longer blocks leave fewer rows' lines on their way at once.
template <class T>
constexpr int kLinePairs = kLineBytes / (2 * kLanes * static_cast<int>(sizeof(T)));
template <class T>
constexpr int kPairs = kLinePairs<T> > 2 ? kLinePairs<T> : 2;
template <class T>
constexpr int64_t kBlockColumns = kPairs<T> * 2 * kLanes;

// Row of slot `slot`, or -1 when it is skipped.
inline int64_t row_of(const Slots& slots, int64_t slot) {
  const int64_t row = slots.indices[slot * slots.stride] - slots.first_index;
  return row >= 0 && row < slots.rows ? row : -1;
}

// How far ahead rows are fetched: a few lines each, so that the processor's window of instructions
// does not limit how many are on their way.
constexpr int64_t kAheadBytes = 4 * kLineBytes;

template <class T>
constexpr int64_t kAhead = kAheadBytes / static_cast<int64_t>(sizeof(T));

inline void prefetch_bytes(const void* begin, int64_t bytes) {
  for (int64_t byte = 0; byte < bytes; byte += kLineBytes) {
    prefetch(static_cast<const char*>(begin) + byte);
  }
}

template <class T>
inline void prefetch_start(const T* row, int64_t cols, int64_t most_bytes) {
  const int64_t bytes = cols * static_cast<int64_t>(sizeof(T));
  prefetch_bytes(row, bytes < most_bytes ? bytes : most_bytes);
}

// The rows that one token sums, in slot order.
template <class T, bool WEIGHTED>
struct Addends {
  const T* rows[kMaxTopk];
  float weights[WEIGHTED ? kMaxTopk : 1];
  int count;
  // −0 + x is x for every x, +0 + x loses a −0: where the sum starts says whether slot 0 is in it.
  float start;
};

// Fetches the starts of the rows, whose place the hardware prefetchers cannot guess. `weights` are
// the token's.
template <class T, bool WEIGHTED>
inline void find_addends(const Slots& slots, const RowSum& sum, int64_t token, const float* weights,
                         Addends<T, WEIGHTED>& addends) {
  const T* data = static_cast<const T*>(sum.rows.data);
  addends.count = 0;
  addends.start = 0.0f;
  for (int64_t j = 0; j < slots.topk; ++j) {
    const int64_t row = row_of(slots, token * slots.topk + j);
    if (row < 0 || (WEIGHTED && weights[j] == 0.0f)) continue;
    if (j == 0) addends.start = -0.0f;
    const T* address = data + row * sum.rows.row_stride;
    prefetch_start(address, sum.cols, kAheadBytes);
    if constexpr (WEIGHTED) addends.weights[addends.count] = weights[j];
    addends.rows[addends.count++] = address;
  }
}

// What addend k contributes where its row holds x.
template <class T, bool WEIGHTED>
inline F32 weigh(const Addends<T, WEIGHTED>& addends, int k, F32 x) {
  if constexpr (WEIGHTED) return mul(broadcast(addends.weights[k]), x);
  return x;
}

template <bool STREAM, bool AHEAD, class T, bool WEIGHTED>
inline void sum_block(const Addends<T, WEIGHTED>& addends, int64_t column, T* out) {
  Pair sums[kPairs<T>];
  for (Pair& sum : sums) sum = {broadcast(addends.start), broadcast(addends.start)};
  for (int k = 0; k < addends.count; ++k) {
    const T* row = addends.rows[k] + column;
    if constexpr (AHEAD) {
      prefetch_bytes(row + kAhead<T>, kBlockColumns<T> * static_cast<int64_t>(sizeof(T)));
    }
    for (int p = 0; p < kPairs<T>; ++p) {
      const Pair x = load_pair(row + p * 2 * kLanes);
      sums[p].first = add(sums[p].first, weigh(addends, k, x.first));
      sums[p].second = add(sums[p].second, weigh(addends, k, x.second));
    }
  }
  for (int p = 0; p < kPairs<T>; ++p) {
    if constexpr (STREAM) {
      stream_pair(out + column + p * 2 * kLanes, sums[p]);
    } else {
      store_pair(out + column + p * 2 * kLanes, sums[p]);
    }
  }
}

template <class T, bool WEIGHTED>
inline void sum_vector(const Addends<T, WEIGHTED>& addends, int64_t column, T* out) {
  F32 sum = broadcast(addends.start);
  for (int k = 0; k < addends.count; ++k) {
    sum = add(sum, weigh(addends, k, load(addends.rows[k] + column)));
  }
  store(out + column, sum);
}

// Columns [begin, end) without full blocks or alignment.
template <class T, bool WEIGHTED>
inline void sum_ragged(const Addends<T, WEIGHTED>& addends, int64_t begin, int64_t end, T* out) {
  for (; begin + kLanes <= end; begin += kLanes) sum_vector(addends, begin, out);
  if (begin == end) return;
  const int rest = static_cast<int>(end - begin);
  F32 sum = broadcast(addends.start);
  for (int k = 0; k < addends.count; ++k) {
    sum = add(sum, weigh(addends, k, load_partial(addends.rows[k] + begin, rest)));
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

template <bool STREAM, class T, bool WEIGHTED>
inline void sum_token(const Addends<T, WEIGHTED>& addends, int64_t cols, T* out) {
  constexpr int64_t kBlock = kBlockColumns<T>;
  int64_t column = STREAM ? columns_to_line(out, cols) : 0;
  sum_ragged(addends, 0, column, out);
  for (; column + kBlock + kAhead<T> <= cols; column += kBlock) {
    sum_block<STREAM, true>(addends, column, out);
  }
  for (; column + kBlock <= cols; column += kBlock) {
    sum_block<STREAM, false>(addends, column, out);
  }
  sum_ragged(addends, column, cols, out);
}

// Rows or output whose columns are apart: lanes are collected and scattered one by one.
template <class T, bool WEIGHTED>
inline void sum_strided_token(const Addends<T, WEIGHTED>& addends, const RowSum& sum, T* out) {
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
      total = add(total, weigh(addends, k, load(lanes)));
    }
    store(lanes, total);
    for (int i = 0; i < count; ++i) out[(column + i) * out_stride] = lanes[i];
  }
}

// The addends of the next token are found, and prefetched, before this one is summed.
template <class T, bool WEIGHTED, class SumToken>
inline void for_each_token(const Slots& slots, const RowSum& sum, int64_t begin, int64_t end,
                           SumToken sum_one) {
  if (begin >= end) return;
  Addends<T, WEIGHTED> addends[2];
  const auto find = [&](int64_t token) {
    const int64_t turn = token - begin;
    const float* weights = WEIGHTED ? sum.weights + turn * slots.topk : nullptr;
    find_addends(slots, sum, token, weights, addends[turn % 2]);
  };
  find(begin);
  for (int64_t token = begin; token < end; ++token) {
    if (token + 1 < end) find(token + 1);
    sum_one(addends[(token - begin) % 2],
            static_cast<T*>(sum.out.data) + token * sum.out.row_stride);
  }
}

inline bool columns_adjoin(const Source& in, const Target& out, int64_t cols) {
  return cols <= 1 || (in.col_stride == 1 && out.col_stride == 1);
}

template <class T, bool WEIGHTED>
void sum_rows(const Slots& slots, const RowSum& sum, int64_t begin, int64_t end) {
  using Sum = Addends<T, WEIGHTED>;
  const int64_t cols = sum.cols;
  if (!columns_adjoin(sum.rows, sum.out, cols)) {
    for_each_token<T, WEIGHTED>(slots, sum, begin, end, [&](const Sum& addends, T* out) {
      sum_strided_token(addends, sum, out);
    });
  } else if (sum.stream) {
    for_each_token<T, WEIGHTED>(slots, sum, begin, end, [=](const Sum& addends, T* out) {
      sum_token<true>(addends, cols, out);
    });
    stream_fence();
  } else {
    for_each_token<T, WEIGHTED>(slots, sum, begin, end, [=](const Sum& addends, T* out) {
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

#include "moe_token_permute/copy_kernels.inl"
#include "moe_token_permute/spread_kernels.inl"

constexpr moe_token_permute::Kernels kTable = {
    {&sum_rows<float, false>, &sum_rows<f16, false>, &sum_rows<bf16, false>},
    {&sum_rows<float, true>, &sum_rows<f16, true>, &sum_rows<bf16, true>},
    {&pick_scalars<uint32_t>, &pick_scalars<uint16_t>, &pick_scalars<uint16_t>},
    {&copy_rows<uint8_t>, &copy_rows<uint16_t>, &copy_rows<uint32_t>},
    {&spread_rows<float>, &spread_rows<f16>, &spread_rows<bf16>}};
