// Kernel contract of the family. Kernels see rows of numbers: no tensors, threads or status.
// Included by the per-ISA files: plain types only. Strides in elements, 0 included; any alignment.
#pragma once

#include <cstdint>

namespace npuless::moe_token_permute {

inline constexpr int kMaxTopk = 512;

// Which rows belong to a token: slot s = token · topk + j has row indices[s · stride] − first_index
// and is skipped unless that lies in [0, rows).
struct Slots {
  const int32_t* indices;
  int64_t stride;
  int64_t topk;  // 1 … kMaxTopk
  int64_t first_index;
  int64_t rows;
};

// A [·, cols] block of memory.
struct Source {
  const void* data;
  int64_t row_stride;
  int64_t col_stride;
};
struct Target {
  void* data;
  int64_t row_stride;
  int64_t col_stride;
};

struct RowSum {
  Source rows;
  Target out;
  int64_t cols;
  bool stream;                     // write past the caches
  const float* weights = nullptr;  // of slot begin · topk and those after it; for weighted sums
};

// out[token] = Σ_j rows[row of slot j], j ascending in fp32, narrowed once to nearest even. The sum
// starts at the row of slot 0, or at +0 when that slot is skipped, so −0 is exact. Tokens
// [begin, end).
// A weighted sum skips slots of weight 0 as well and adds weight · row, rounded before it is added.
using SumRowsFn = void (*)(const Slots& slots, const RowSum& sum, int64_t begin, int64_t end);

struct ScalarPick {
  Source scalars;  // a column: element r at r · row_stride
  Target out;
};

// out[token, j] = scalars[row of slot j], the same bits, or +0 when the slot is skipped.
using PickScalarsFn = void (*)(const Slots& slots, const ScalarPick& pick, int64_t begin,
                               int64_t end);

// Row from[i] goes to row to[i]; moves from one row stand together.
struct RowMoves {
  const int32_t* from;
  const int32_t* to;
  int64_t count;
};

struct RowCopy {
  Source from;
  Target to;
  int64_t cols;
  bool stream;  // write past the caches
};

// to[moves.to[i]] = from[moves.from[i]], the same bits.
using CopyRowsFn = void (*)(const RowMoves& moves, const RowCopy& copy);

struct Spread {
  Source grad;  // the tokens' rows
  Source rows;  // the permuted rows
  Target out;   // the permuted rows' gradient
  int64_t cols;
  bool stream;             // write past the caches
  const int32_t* writers;  // [slots.rows]: the slot that writes a row; null: no two name one row
  const float* weights;    // of slot begin · topk and those after it
  float* dots;             // likewise
};

// For each slot with a row: out[row] = weight · grad[token], narrowed once to nearest even, and
// dot = Σ rows[row] · grad[token]; dot = 0 for the others. Tokens [begin, end).
// A dot product has kDotLanes sums that start at +0; sum l adds the products of the columns
// l, l + kDotLanes, …, ascending, each product and each sum rounded. Then the upper half of the
// sums is added to the lower until one is left. No level's vector length enters.
using SpreadRowsFn = void (*)(const Slots& slots, const Spread& spread, int64_t begin, int64_t end);
inline constexpr int kDotLanes = 32;  // a pair of the longest vectors

enum Type : int { kFloat32, kFloat16, kBfloat16 };
inline constexpr int kTypes = 3;
enum Size : int { kOneByte, kTwoBytes, kFourBytes };
inline constexpr int kSizes = 3;

struct Kernels {
  SumRowsFn sum_rows[kTypes];
  SumRowsFn weighted_sum_rows[kTypes];
  PickScalarsFn pick_scalars[kTypes];
  CopyRowsFn copy_rows[kSizes];
  SpreadRowsFn spread_rows[kTypes];
};

}  // namespace npuless::moe_token_permute

namespace npuless::portable {
extern const moe_token_permute::Kernels moe_token_permute_kernels;
}
namespace npuless::avx2 {
extern const moe_token_permute::Kernels moe_token_permute_kernels;
}
namespace npuless::avx512 {
extern const moe_token_permute::Kernels moe_token_permute_kernels;
}
