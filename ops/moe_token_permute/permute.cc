#include "moe_token_permute/permute.h"

#include "base/math.h"
#include "base/parallel.h"
#include "moe_token_permute/kernel_arguments.h"

namespace npuless::moe_token_permute {
namespace {

int64_t choose_chunk(const PermuteArgs& args) {
  const int64_t topk = args.indices.cols;
  const int64_t row_bytes = min64(args.rows.row_bytes(), kChunkBytes);  // products fit 64 bits
  const int64_t scalars = topk * static_cast<int64_t>(sizeof(int32_t));
  return max64(1, kChunkBytes / ((topk + 1) * row_bytes + scalars));
}

void permute_tokens(const PermutePlan& plan, int64_t begin, int64_t end) {
  const PermuteArgs& args = plan.args;
  const int64_t topk = args.indices.cols;
  const int64_t rows = args.range_end - args.range_begin;
  Mover mover(plan.copy, args.rows);
  for (int64_t token = begin; token < end; ++token) {
    for (int64_t j = 0; j < topk; ++j) {
      const int64_t row = at<int32_t>(args.sorted_indices, token * topk + j) - args.range_begin;
      if (row < 0 || row >= rows) continue;
      mover.move(token, row);
      if (args.has_probs) copy_element(args.probs, token, j, args.permuted_probs, row);
    }
  }
}

}  // namespace

Status plan_permute(const PermuteArgs& args, PermutePlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  Ledger ledger;
  plan.args = args;
  plan_index(args.sorted_indices.size, ledger, plan.index);
  plan.copy = plan_copy(args.rows, level);
  plan.threads = num_threads();
  plan.chunk_tokens = choose_chunk(args);
  plan.workspace_bytes = ledger.bytes();
  return {};
}

Status run_permute(const PermutePlan& plan, void* workspace) {
  const PermuteArgs& args = plan.args;
  build_rank(plan.index, args.indices, args.sorted_indices, workspace);
  const int64_t tokens = args.indices.rows;
  parallel_for(plan.threads, ceil_div(tokens, plan.chunk_tokens), [&](int64_t chunk, int) {
    const int64_t begin = chunk * plan.chunk_tokens;
    permute_tokens(plan, begin, min64(tokens, begin + plan.chunk_tokens));
  });
  const int64_t rows = args.range_end - args.range_begin;
  zero_rows(args.rows, rows, args.rows.to.rows, plan.threads);
  if (args.has_probs) zero_elements(args.permuted_probs, rows, args.permuted_probs.size);
  return {};
}

}  // namespace npuless::moe_token_permute
