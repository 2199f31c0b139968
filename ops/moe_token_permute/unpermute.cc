#include "moe_token_permute/unpermute.h"

#include "base/math.h"
#include "base/parallel.h"
#include "moe_token_permute/kernel_arguments.h"
#include "moe_token_permute/probs.h"

namespace npuless::moe_token_permute {
namespace {

int64_t choose_chunk(const UnpermuteArgs& args) {
  const int64_t bytes = dtype_size(args.out.dtype);
  const int64_t cols = min64(args.out.cols, kChunkBytes);  // products stay in 64 bits
  const int64_t rows = (args.topk + 1) * cols * bytes;
  const int64_t scalars = args.topk * static_cast<int64_t>(sizeof(int32_t) + 2 * sizeof(float));
  return max64(1, min64(args.out.rows, kChunkBytes / (rows + scalars + 1)));
}

void read_weights(const UnpermuteArgs& args, int64_t begin, int64_t end, float* out) {
  if (!args.mapped) return read_probs(args.probs, begin, end, out);
  read_mapped_probs(args.probs, args.map, args.topk, begin, end, out);
}

int64_t count_chunks(const UnpermutePlan& plan) {
  return ceil_div(plan.args.out.rows, plan.chunk_tokens);
}

}  // namespace

Status plan_unpermute(const UnpermuteArgs& args, UnpermutePlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  const Kernels& kernels = kernels_for(level);
  const Type type = type_of(args.out.dtype);
  plan.args = args;
  plan.sum_rows = args.has_probs ? kernels.weighted_sum_rows[type] : kernels.sum_rows[type];
  plan.threads = num_threads();
  plan.chunk_tokens = choose_chunk(args);
  plan.stream = should_stream(args.out);
  Ledger ledger;
  if (args.has_probs) {
    const int64_t workers = min64(plan.threads, count_chunks(plan));
    plan.weights = ledger.book<float>(workers * plan.chunk_tokens * args.topk);
  }
  plan.workspace_bytes = ledger.bytes();
  return {};
}

Status run_unpermute(const UnpermutePlan& plan, void* workspace) {
  const UnpermuteArgs& args = plan.args;
  const Slots slots{static_cast<const int32_t*>(args.sorted_indices.data),
                    args.sorted_indices.stride, args.topk, args.range_begin,
                    args.range_end - args.range_begin};
  float* const weights = plan.weights.in(workspace);
  parallel_for(plan.threads, count_chunks(plan), [&](int64_t chunk, int worker) {
    const int64_t begin = chunk * plan.chunk_tokens;
    const int64_t end = min64(args.out.rows, begin + plan.chunk_tokens);
    RowSum sum{source_of(args.permuted), target_of(args.out), args.out.cols, plan.stream};
    if (args.has_probs) {
      float* const mine = weights + worker * plan.chunk_tokens * args.topk;
      read_weights(args, begin, end, mine);
      sum.weights = mine;
    }
    plan.sum_rows(slots, sum, begin, end);
  });
  return {};
}

}  // namespace npuless::moe_token_permute
