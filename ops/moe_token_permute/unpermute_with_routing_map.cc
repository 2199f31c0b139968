#include "moe_token_permute/unpermute_with_routing_map.h"

#include "base/half.h"
#include "base/math.h"
#include "base/parallel.h"
#include "moe_token_permute/copy.h"
#include "moe_token_permute/kernel_arguments.h"
#include "moe_token_permute/probs.h"
#include "moe_token_permute/routing_map.h"

namespace npuless::moe_token_permute {
namespace {

// Rows of one token, ascending.
struct TokenRows {
  const int32_t* rows;
  int64_t count;
};

// body(begin, end, worker) for chunks of `count` things.
template <class Body>
void for_each_chunk(const MapUnpermutePlan& plan, int64_t count, int64_t chunk_size,
                    const Body& body) {
  parallel_for(plan.sums.threads, ceil_div(count, chunk_size), [&](int64_t chunk, int worker) {
    body(chunk * chunk_size, min64(count, (chunk + 1) * chunk_size), worker);
  });
}

int64_t capacity_of(const UnpermuteArgs& args) {
  return args.permuted.rows / max64(1, args.probs.cols);
}

// --- index mode ------------------------------------------------------------------------------

void describe_slots(const MapUnpermutePlan& plan, int64_t begin, int64_t end) {
  const UnpermuteArgs& args = plan.sums.args;
  const int64_t topk = args.topk;
  for (int64_t slot = begin * topk; slot < end * topk; ++slot) {
    at<int32_t>(plan.out_index, slot) = at<int32_t>(args.sorted_indices, slot);
    at<int32_t>(plan.permute_token_id, slot) = static_cast<int32_t>(slot / topk);
  }
  if (!args.has_probs) return;
  zero_elements(plan.permute_probs, begin * topk, end * topk);
  for (int64_t token = begin; token < end; ++token) {
    int64_t j = 0;
    for_each_chosen(args.map, token, [&](int64_t expert) {
      if (j == topk) return;
      copy_element(args.probs, token, expert, plan.permute_probs, token * topk + j++);
    });
  }
}

Status run_indexed(const MapUnpermutePlan& plan, void* workspace) {
  for_each_chunk(plan, plan.sums.args.out.rows, plan.sums.chunk_tokens,
                 [&](int64_t begin, int64_t end, int) { describe_slots(plan, begin, end); });
  return run_unpermute(plan.sums, workspace);
}

// --- padded mode -----------------------------------------------------------------------------

// Rows [begin, end) of the order and of the permuted rows.
void describe_rows(const MapUnpermutePlan& plan, const int32_t* order, int64_t begin, int64_t end) {
  const UnpermuteArgs& args = plan.sums.args;
  for (int64_t p = begin; p < end; ++p) {
    at<int32_t>(plan.out_index, p) = order[p];
    at<int32_t>(plan.permute_token_id, p) = at<int32_t>(args.sorted_indices, order[p]);
  }
  if (!args.has_probs) return;
  zero_elements(plan.permute_probs, begin, end);
  for (int64_t row = begin; row < end; ++row) {
    const int64_t token = at<int32_t>(args.sorted_indices, row);
    if (token < 0 || token >= args.out.rows) continue;
    copy_element(args.probs, token, row / capacity_of(args), plan.permute_probs, row);
  }
}

float weight_of(const UnpermuteArgs& args, int64_t token, int64_t row) {
  return args.has_probs ? read_prob(args.probs, token, row / capacity_of(args)) : 1.0f;
}

template <class T>
void sum_scalars(const UnpermuteArgs& args, int64_t token, const TokenRows& list) {
  for (int64_t h = 0; h < args.out.cols; ++h) {
    float sum = 0.0f;
    for (int64_t i = 0; i < list.count; ++i) {
      const float weight = weight_of(args, token, list.rows[i]);
      if (weight == 0.0f) continue;
      const float term = weight * widen(at<T>(args.permuted, list.rows[i], h));
      sum = i == 0 ? term : sum + term;
    }
    at<T>(args.out, token, h) = narrow<T>(sum);
  }
}

// Rows of a token beyond what the kernel takes at once.
void sum_long_list(const UnpermuteArgs& args, int64_t token, const TokenRows& list) {
  if (args.out.dtype == DType::kFloat32) return sum_scalars<float>(args, token, list);
  if (args.out.dtype == DType::kFloat16) return sum_scalars<f16>(args, token, list);
  sum_scalars<bf16>(args, token, list);
}

// The kernel sees a list as the slots of a single token. `weights` holds kMaxTopk.
void sum_list(const MapUnpermutePlan& plan, int64_t token, const TokenRows& list, float* weights) {
  const UnpermuteArgs& args = plan.sums.args;
  if (list.count == 0) return zero_rows(args.out, token, token + 1);
  if (list.count > kMaxTopk) return sum_long_list(args, token, list);
  if (args.has_probs) {
    for (int64_t i = 0; i < list.count; ++i) weights[i] = weight_of(args, token, list.rows[i]);
  }
  RowSum sum{source_of(args.permuted), target_of(args.out), args.out.cols, false, weights};
  sum.out.data =
      static_cast<char*>(sum.out.data) + token * sum.out.row_stride * dtype_size(args.out.dtype);
  plan.sums.sum_rows({list.rows, 1, list.count, 0, args.permuted.rows}, sum, 0, 1);
}

Status run_padded(const MapUnpermutePlan& plan, void* workspace) {
  const UnpermuteArgs& args = plan.sums.args;
  const Lists lists = build_lists(plan.lists, as_column(args.sorted_indices), workspace);
  float* const weights = plan.sums.weights.in(workspace);
  for_each_chunk(
      plan, args.permuted.rows, plan.sums.chunk_tokens,
      [&](int64_t begin, int64_t end, int) { describe_rows(plan, lists.slots, begin, end); });
  for_each_chunk(plan, args.out.rows, plan.sums.chunk_tokens,
                 [&](int64_t begin, int64_t end, int worker) {
                   for (int64_t token = begin; token < end; ++token) {
                     const int64_t first = lists.first[token];
                     sum_list(plan, token, {lists.slots + first, lists.first[token + 1] - first},
                              weights + worker * kMaxTopk);
                   }
                 });
  return {};
}

}  // namespace

Status plan_map_unpermute(const MapUnpermuteArgs& args, MapUnpermutePlan& plan) {
  NPULESS_TRY(plan_unpermute(args.sums, plan.sums));
  plan.out_index = args.out_index;
  plan.permute_token_id = args.permute_token_id;
  plan.permute_probs = args.permute_probs;
  plan.padded_mode = args.padded_mode;
  plan.workspace_bytes = plan.sums.workspace_bytes;
  if (!args.padded_mode) return {};
  Ledger ledger;
  plan_lists(args.sums.permuted.rows, args.sums.out.rows, ledger, plan.lists);
  plan.sums.weights = ledger.book<float>(plan.sums.threads * int64_t{kMaxTopk});
  plan.workspace_bytes = ledger.bytes();
  return {};
}

Status run_map_unpermute(const MapUnpermutePlan& plan, void* workspace) {
  return plan.padded_mode ? run_padded(plan, workspace) : run_indexed(plan, workspace);
}

}  // namespace npuless::moe_token_permute
