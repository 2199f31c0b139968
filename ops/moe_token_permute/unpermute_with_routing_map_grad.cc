#include <algorithm>

#include "base/math.h"
#include "base/parallel.h"
#include "moe_token_permute/copy.h"
#include "moe_token_permute/kernel_arguments.h"
#include "moe_token_permute/probs.h"
#include "moe_token_permute/unpermute_with_routing_map.h"

namespace npuless::moe_token_permute {
namespace {

constexpr int32_t kNoToken = -1;

// Up to kMaxTopk rows of one token, ascending, with a worker's scratch of as many numbers.
struct Batch {
  int64_t token;
  const int32_t* rows;
  int64_t count;
  float* weights;
  float* dots;
};

// One thread, so that the last mention of a row stays.
void find_tokens(const MapUnpermuteGradPlan& plan, int32_t* tokens) {
  const Vector& rows = plan.sums.args.sorted_indices;
  std::fill_n(tokens, rows.size, kNoToken);
  for (int64_t i = 0; i < rows.size; ++i) {
    const int64_t row = at<int32_t>(rows, i);
    if (row >= 0 && row < rows.size) tokens[row] = at<int32_t>(plan.permute_token_id, i);
  }
}

void zero_tokenless(const MapUnpermuteGradPlan& plan, const int32_t* tokens) {
  const UnpermuteGradArgs& args = plan.sums.args;
  const int64_t chunk_rows = plan.sums.chunk_tokens;
  const int64_t rows = args.permuted_grad.rows;
  parallel_for(plan.sums.threads, ceil_div(rows, chunk_rows), [&](int64_t chunk, int) {
    const int64_t end = min64(rows, (chunk + 1) * chunk_rows);
    for (int64_t row = chunk * chunk_rows; row < end; ++row) {
      if (tokens[row] < 0 || tokens[row] >= args.grad.rows) {
        zero_rows(args.permuted_grad, row, row + 1);
      }
    }
  });
}

// The kernel sees the rows as the slots of a single token.
void spread_batch(const MapUnpermuteGradPlan& plan, const Batch& batch) {
  const UnpermuteGradArgs& args = plan.sums.args;
  Spread spread{source_of(args.grad),
                source_of(args.permuted),
                target_of(args.permuted_grad),
                args.grad.cols,
                false,
                nullptr,
                batch.weights,
                batch.dots};
  spread.grad.data = static_cast<const char*>(spread.grad.data) +
                     batch.token * spread.grad.row_stride * dtype_size(args.grad.dtype);
  plan.sums.spread_rows({batch.rows, 1, batch.count, 0, args.permuted.rows}, spread, 0, 1);
}

// Rows of one expert follow each other; a token that it holds twice has their sum.
void spread_token(const MapUnpermuteGradPlan& plan, const int32_t* rows, int64_t count,
                  Batch batch) {
  const UnpermuteGradArgs& args = plan.sums.args;
  const int64_t capacity = max64(1, args.permuted.rows / max64(1, args.probs.cols));
  int64_t expert = -1;
  float total = 0.0f;
  zero_rows(args.probs_grad, batch.token, batch.token + 1);
  for (int64_t begin = 0; begin < count; begin += kMaxTopk) {
    batch.rows = rows + begin;
    batch.count = min64(kMaxTopk, count - begin);
    for (int64_t i = 0; i < batch.count; ++i) {
      batch.weights[i] = read_prob(args.probs, batch.token, batch.rows[i] / capacity);
    }
    spread_batch(plan, batch);
    for (int64_t i = 0; i < batch.count; ++i) {
      const bool again = batch.rows[i] / capacity == expert;
      total = again ? total + batch.dots[i] : batch.dots[i];
      expert = batch.rows[i] / capacity;
      write_prob(args.probs_grad, batch.token, expert, total);
    }
  }
}

Status run_padded(const MapUnpermuteGradPlan& plan, void* workspace) {
  const UnpermuteGradArgs& args = plan.sums.args;
  const RowsToRows whole{args.grad, args.permuted_grad, {}};
  int32_t* const tokens = plan.sums.writers.in(workspace);
  find_tokens(plan, tokens);
  zero_tokenless(plan, tokens);
  const Matrix ids{tokens, args.sorted_indices.size, 1, 1, 1, DType::kInt32};
  const Lists lists = build_lists(plan.lists, ids, workspace);
  const int64_t chunk_tokens = plan.sums.chunk_tokens;
  parallel_for(plan.sums.threads, ceil_div(args.grad.rows, chunk_tokens),
               [&](int64_t chunk, int worker) {
                 Mover mover(plan.sums.copy, whole);
                 const int64_t mine = worker * int64_t{kMaxTopk};
                 const int64_t end = min64(args.grad.rows, (chunk + 1) * chunk_tokens);
                 for (int64_t token = chunk * chunk_tokens; token < end; ++token) {
                   const int32_t* const rows = lists.slots + lists.first[token];
                   const int64_t count = lists.first[token + 1] - lists.first[token];
                   if (args.has_probs) {
                     spread_token(plan, rows, count,
                                  {token, rows, 0, plan.sums.weights.in(workspace) + mine,
                                   plan.sums.dots.in(workspace) + mine});
                     continue;
                   }
                   for (int64_t i = 0; i < count; ++i) mover.move(token, rows[i]);
                 }
               });
  return {};
}

}  // namespace

Status plan_map_unpermute_grad(const MapUnpermuteGradArgs& args, MapUnpermuteGradPlan& plan) {
  NPULESS_TRY(plan_unpermute_grad(args.sums, plan.sums));
  plan.permute_token_id = args.permute_token_id;
  plan.drop_and_pad = args.drop_and_pad;
  plan.workspace_bytes = plan.sums.workspace_bytes;
  if (!args.drop_and_pad) return {};
  Ledger ledger;
  plan_lists(args.sums.sorted_indices.size, args.sums.grad.rows, ledger, plan.lists);
  plan.sums.writers = ledger.book<int32_t>(args.sums.sorted_indices.size);
  if (args.sums.has_probs) {
    plan.sums.weights = ledger.book<float>(plan.sums.threads * int64_t{kMaxTopk});
    plan.sums.dots = ledger.book<float>(plan.sums.threads * int64_t{kMaxTopk});
  }
  plan.workspace_bytes = ledger.bytes();
  return {};
}

Status run_map_unpermute_grad(const MapUnpermuteGradPlan& plan, void* workspace) {
  return plan.drop_and_pad ? run_padded(plan, workspace) : run_unpermute_grad(plan.sums, workspace);
}

}  // namespace npuless::moe_token_permute
