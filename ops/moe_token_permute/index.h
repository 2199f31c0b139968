// Index building: the stable ascending sort of expert ids that every permutation starts from.
//
//   order    order[p] = slot at position p; equal ids keep the order of their slots
//   rank     rank[order[p]] = p, the inverse
//   lists    the slots that have one id, ascending: order cut where the id changes
//
// Ids are INT32 or INT64 with any strides, negative ones sort first: slot s of an [N,K] matrix is
// element (s / K, s % K).
//
// How: a radix sort from the lowest digit of id − min, 11 bits a pass, only as many passes as
// max − min needs, so up to 2048 neighbouring ids take one pass, which is a counting sort. Chunks
// of slots have histograms of their own; where chunks begin depends on the number of slots alone,
// so any number of threads gives the same order, which stability makes unique anyway.
//
// Cost: O(slots) per pass, three sequential reads of the ids in the first, two random reads per
// slot in the others. Workspace: two orders and a histogram per chunk.
#pragma once

#include <cstdint>

#include "base/view.h"
#include "base/workspace.h"

namespace npuless::moe_token_permute {

// Positions are INT32.
inline constexpr int64_t kMaxSlots = INT32_MAX;

struct IdExtent {
  int64_t min;
  int64_t max;
};

struct IndexPlan {
  int64_t slots = 0;
  int threads = 1;
  Piece<int32_t> orders[2];
  Piece<int32_t> histograms;  // [chunks][digits]
  Piece<IdExtent> extents;    // [chunks]
};

// Slots ≤ kMaxSlots.
void plan_index(int64_t slots, Ledger& ledger, IndexPlan& plan);

// Returns the order, slots long, inside the workspace. `rank` is INT32 [slots], written when its
// data is not null.
const int32_t* build_index(const IndexPlan& plan, const Matrix& ids, const Vector& rank,
                           void* workspace);
// Only the rank.
void build_rank(const IndexPlan& plan, const Matrix& ids, const Vector& rank, void* workspace);

// Slots by id, for the ids 0 … count − 1; slots with other ids are in no list.
struct Lists {
  const int32_t* first;  // [count + 1]
  const int32_t* slots;  // those of `id` are slots[first[id]] … slots[first[id + 1] − 1], ascending
};

struct ListsPlan {
  IndexPlan index;
  int64_t count = 0;
  Piece<int32_t> first;
};

void plan_lists(int64_t slots, int64_t count, Ledger& ledger, ListsPlan& plan);
Lists build_lists(const ListsPlan& plan, const Matrix& ids, void* workspace);

// A vector of ids as the matrix that the functions above take.
inline Matrix as_column(const Vector& v) {
  return {v.data, v.size, 1, v.stride, 1, v.dtype};
}

}  // namespace npuless::moe_token_permute
