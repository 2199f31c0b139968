// Routing maps: which tokens each expert takes, as a byte per token and expert that is true unless
// 0. A map is read twice: to count each expert's tokens by chunks of tokens, and to place them.
//
// Cost: two reads of N·E bytes. Workspace: 8 bytes per expert and chunk, and once more. Where
// chunks begin depends on the shape alone.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/math.h"
#include "base/view.h"
#include "base/workspace.h"

namespace npuless::moe_token_permute {

struct MapPlan {
  int64_t tokens = 0;
  int64_t experts = 0;
  int64_t chunk_tokens = 1;
  int threads = 1;
  Piece<int64_t> counts;  // [chunks + 1][experts]

  int64_t chunks() const { return ceil_div(tokens, chunk_tokens); }
};

void plan_map(const Matrix& map, Ledger& ledger, MapPlan& plan);

// What is known of each expert's tokens before the map is walked a second time. Whoever walks a
// chunk counts up its row of `before`.
struct MapCounts {
  int64_t* before;  // [chunks][experts], the expert's tokens in earlier chunks
  int64_t* totals;  // [experts]
};

MapCounts count_map(const MapPlan& plan, const Matrix& map, void* workspace);
// Adds the tokens of all lower experts to `before`: rows in the order expert, then token. Answers
// the number of rows.
int64_t order_by_expert(const MapPlan& plan, const MapCounts& counts);

// body(expert) for each that the token chose, ascending.
template <class Body>
void for_each_chosen(const Matrix& map, int64_t token, const Body& body) {
  int64_t expert = 0;
  if (map.cols >= 8 && map.rows_contiguous()) {
    const auto* row = static_cast<const unsigned char*>(map.data) + token * map.row_stride;
    for (uint64_t eight; expert + 8 <= map.cols; expert += 8) {
      std::memcpy(&eight, row + expert, sizeof eight);
      if (eight == 0) continue;
      for (int64_t e = expert; e < expert + 8; ++e) {
        if (row[e] != 0) body(e);
      }
    }
  }
  for (; expert < map.cols; ++expert) {
    if (at<unsigned char>(map, token, expert) != 0) body(expert);
  }
}

}  // namespace npuless::moe_token_permute
