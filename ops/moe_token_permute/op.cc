#include "moe_token_permute/op.h"

#include "base/math.h"
#include "base/parallel.h"
#include "isa/level.h"
#include "moe_token_permute/kernel_arguments.h"

namespace npuless::moe_token_permute {
namespace {

int64_t choose_chunk(const PermuteGradArgs& args) {
  const int64_t bytes = dtype_size(args.token_grad.dtype);
  const int64_t cols = min64(args.token_grad.cols, kChunkBytes);  // products stay in 64 bits
  const int64_t rows = (args.topk + 1) * cols * bytes;
  const int64_t scalars = args.topk * (static_cast<int64_t>(sizeof(int32_t)) + 2 * bytes);
  return max64(1, kChunkBytes / (rows + scalars));
}

}  // namespace

Status plan_permute_grad(const PermuteGradArgs& args, PermuteGradPlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  const Kernels& kernels = kernels_for(level);
  const Matrix& out = args.token_grad;
  const Type type = type_of(out.dtype);
  plan.args = args;
  plan.sum_rows = kernels.sum_rows[type];
  plan.pick_scalars = kernels.pick_scalars[type];
  plan.threads = num_threads();
  plan.chunk_tokens = choose_chunk(args);
  plan.stream = should_stream(out);
  return {};
}

Status run_permute_grad(const PermuteGradPlan& plan, void*) {
  const PermuteGradArgs& args = plan.args;
  const Slots slots{static_cast<const int32_t*>(args.sorted_indices.data),
                    args.sorted_indices.stride, args.topk, args.range_begin,
                    args.range_end - args.range_begin};
  const RowSum sum{source_of(args.permuted_grad), target_of(args.token_grad), args.token_grad.cols,
                   plan.stream};
  const ScalarPick pick{source_of(args.permuted_probs_grad), target_of(args.probs_grad)};
  const int64_t tokens = args.token_grad.rows;
  parallel_for(plan.threads, ceil_div(tokens, plan.chunk_tokens), [&](int64_t chunk, int) {
    const int64_t begin = chunk * plan.chunk_tokens;
    const int64_t end = min64(tokens, begin + plan.chunk_tokens);
    plan.sum_rows(slots, sum, begin, end);
    if (args.has_probs) plan.pick_scalars(slots, pick, begin, end);
  });
  return {};
}

}  // namespace npuless::moe_token_permute
