// References of the permute with a routing map and of its gradient: one obvious loop each.
#pragma once

#include <utility>
#include <vector>

#include "base/half.h"
#include "moe_token_permute/ref_permute.h"

namespace npuless::moe_token_permute {

struct RefMap {
  int64_t tokens;
  int64_t experts;
  std::vector<bool> chosen;  // [tokens, experts]

  bool at(int64_t token, int64_t expert) const {
    return chosen[static_cast<size_t>(token * experts + expert)];
  }
};

// (token, expert) of each row in the order expert, then token.
inline std::vector<std::pair<int64_t, int64_t>> model_rows(const RefMap& map) {
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (int64_t e = 0; e < map.experts; ++e) {
    for (int64_t t = 0; t < map.tokens; ++t) {
      if (map.at(t, e)) rows.emplace_back(t, e);
    }
  }
  return rows;
}

// The same with `capacity` rows for each expert: those that chose it, then those that did not.
inline std::vector<std::pair<int64_t, int64_t>> model_padded_rows(const RefMap& map,
                                                                  int64_t capacity) {
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (int64_t e = 0; e < map.experts; ++e) {
    std::vector<int64_t> tokens;
    for (const bool chosen : {true, false}) {
      for (int64_t t = 0; t < map.tokens; ++t) {
        if (map.at(t, e) == chosen) tokens.push_back(t);
      }
    }
    for (int64_t i = 0; i < capacity; ++i) rows.emplace_back(tokens[static_cast<size_t>(i)], e);
  }
  return rows;
}

// Entry t·topk + j: the place among `rows` of token t's j-th expert, −1 for none below `limit`.
inline std::vector<int32_t> model_map_indices(const RefMap& map,
                                              const std::vector<std::pair<int64_t, int64_t>>& rows,
                                              int64_t topk, int64_t limit) {
  std::vector<int32_t> indices;
  for (int64_t t = 0; t < map.tokens; ++t) {
    std::vector<int32_t> own;
    for (size_t r = 0; r < rows.size() && static_cast<int64_t>(r) < limit; ++r) {
      if (rows[r].first == t) own.push_back(static_cast<int32_t>(r));
    }
    own.resize(static_cast<size_t>(topk), -1);
    indices.insert(indices.end(), own.begin(), own.end());
  }
  return indices;
}

// Each token's sum over the rows that name it, ascending; the first one initialises it.
template <class T>
std::vector<T> model_padded_grad(const std::vector<T>& grad, const std::vector<int32_t>& indices,
                                 int64_t tokens, int64_t hidden) {
  std::vector<T> out;
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t h = 0; h < hidden; ++h) {
      float sum = 0.0f;
      bool first = true;
      for (size_t row = 0; row < indices.size(); ++row) {
        if (indices[row] != t) continue;
        const float x = widen(grad[row * static_cast<size_t>(hidden) + static_cast<size_t>(h)]);
        sum = first ? x : sum + x;
        first = false;
      }
      out.push_back(narrow<T>(sum));
    }
  }
  return out;
}

}  // namespace npuless::moe_token_permute
