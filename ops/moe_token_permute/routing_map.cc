#include "moe_token_permute/routing_map.h"

#include <algorithm>
#include <utility>

#include "base/parallel.h"

namespace npuless::moe_token_permute {
namespace {

// Tokens per chunk at least, so that its counters are few beside its bytes of the map, and chunks
// at most, so that all counters are.
constexpr int64_t kMinChunkTokens = 64;
constexpr int64_t kMaxChunks = 256;

}  // namespace

void plan_map(const Matrix& map, Ledger& ledger, MapPlan& plan) {
  plan.tokens = map.rows;
  plan.experts = map.cols;
  plan.chunk_tokens = max64(kMinChunkTokens, ceil_div(map.rows, kMaxChunks));
  plan.threads = num_threads();
  plan.counts = ledger.book<int64_t>((plan.chunks() + 1) * plan.experts);
}

MapCounts count_map(const MapPlan& plan, const Matrix& map, void* workspace) {
  int64_t* before = plan.counts.in(workspace);
  const int64_t chunks = plan.chunks();
  const int64_t experts = plan.experts;
  int64_t* totals = before + chunks * experts;
  parallel_for(plan.threads, chunks, [&](int64_t chunk, int) {
    int64_t* counts = before + chunk * experts;
    std::fill_n(counts, experts, 0);
    const int64_t end = min64(plan.tokens, (chunk + 1) * plan.chunk_tokens);
    for (int64_t token = chunk * plan.chunk_tokens; token < end; ++token) {
      for_each_chosen(map, token, [=](int64_t expert) { ++counts[expert]; });
    }
  });
  std::fill_n(totals, experts, 0);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    int64_t* counts = before + chunk * experts;
    for (int64_t e = 0; e < experts; ++e) totals[e] += std::exchange(counts[e], totals[e]);
  }
  return {before, totals};
}

int64_t order_by_expert(const MapPlan& plan, const MapCounts& counts) {
  int64_t rows = 0;
  for (int64_t e = 0; e < plan.experts; ++e) rows += std::exchange(counts.totals[e], rows);
  for (int64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    int64_t* before = counts.before + chunk * plan.experts;
    for (int64_t e = 0; e < plan.experts; ++e) before[e] += counts.totals[e];
  }
  return rows;
}

}  // namespace npuless::moe_token_permute
