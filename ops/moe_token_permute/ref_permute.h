// References of the permutes: stable sort, one obvious loop each. Elements are bits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace npuless::moe_token_permute {

using Bits = std::vector<uint32_t>;

inline std::vector<int32_t> model_order(const std::vector<int64_t>& ids) {
  std::vector<int32_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return ids[static_cast<size_t>(a)] < ids[static_cast<size_t>(b)];
  });
  return order;
}

inline std::vector<int32_t> model_rank(const std::vector<int64_t>& ids) {
  const std::vector<int32_t> order = model_order(ids);
  std::vector<int32_t> rank(ids.size());
  for (size_t p = 0; p < order.size(); ++p) {
    rank[static_cast<size_t>(order[p])] = static_cast<int32_t>(p);
  }
  return rank;
}

// `rows` rows of `cols` elements: row rank − begin is row slot / topk of `from`, the others are 0.
inline Bits model_permuted(const Bits& from, const std::vector<int32_t>& rank, int64_t topk,
                           int64_t begin, int64_t end, int64_t rows, int64_t cols) {
  Bits out(static_cast<size_t>(rows * cols), 0);
  for (size_t slot = 0; slot < rank.size(); ++slot) {
    if (rank[slot] < begin || rank[slot] >= end) continue;
    const int64_t token = static_cast<int64_t>(slot) / topk;
    std::copy_n(from.begin() + token * cols, cols, out.begin() + (rank[slot] - begin) * cols);
  }
  return out;
}

}  // namespace npuless::moe_token_permute
