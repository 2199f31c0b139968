#include "base/half.h"
#include "base/parallel.h"
#include "moe_token_permute/kernel_arguments.h"
#include "moe_token_permute/permute_with_routing_map.h"

namespace npuless::moe_token_permute {
namespace {

int64_t topk_of(const MapPermuteGradArgs& args) {
  return args.sorted_indices.size / max64(1, args.token_grad.rows);
}

int64_t choose_chunk(const MapPermuteGradArgs& args) {
  const int64_t cols = min64(args.token_grad.cols, kChunkBytes);  // products stay in 64 bits
  const int64_t row_bytes = cols * dtype_size(args.token_grad.dtype);
  const int64_t indices = topk_of(args) * static_cast<int64_t>(sizeof(int32_t));
  return max64(1, kChunkBytes / ((topk_of(args) + 1) * row_bytes + indices + 1));
}

RowSum row_sum(const MapPermuteGradPlan& plan) {
  const MapPermuteGradArgs& args = plan.args;
  return {source_of(args.permuted_grad), target_of(args.token_grad), args.token_grad.cols,
          plan.stream};
}

// body(begin, end) for all tokens.
template <class Body>
void for_each_chunk(const MapPermuteGradPlan& plan, const Body& body) {
  const int64_t tokens = plan.args.token_grad.rows;
  parallel_for(plan.threads, ceil_div(tokens, plan.chunk_tokens), [&](int64_t chunk, int) {
    body(chunk * plan.chunk_tokens, min64(tokens, (chunk + 1) * plan.chunk_tokens));
  });
}

void sum_indexed(const MapPermuteGradPlan& plan) {
  const MapPermuteGradArgs& args = plan.args;
  const int64_t topk = topk_of(args);
  const Slots slots{static_cast<const int32_t*>(args.sorted_indices.data),
                    args.sorted_indices.stride, topk, 0, args.permuted_grad.rows};
  for_each_chunk(plan, [&](int64_t begin, int64_t end) {
    if (topk == 0) return zero_rows(args.token_grad, begin, end);
    plan.sum_rows(slots, row_sum(plan), begin, end);
  });
}

template <class T>
void sum_scalars(const MapPermuteGradArgs& args, const int32_t* first, const int32_t* last,
                 int64_t token) {
  for (int64_t h = 0; h < args.token_grad.cols; ++h) {
    float sum = widen(at<T>(args.permuted_grad, *first, h));
    for (const int32_t* row = first + 1; row < last; ++row) {
      sum += widen(at<T>(args.permuted_grad, *row, h));
    }
    at<T>(args.token_grad, token, h) = narrow<T>(sum);
  }
}

// Rows of a token beyond what the kernel takes at once.
void sum_long_list(const MapPermuteGradArgs& args, const int32_t* first, const int32_t* last,
                   int64_t token) {
  const DType dtype = args.token_grad.dtype;
  if (dtype == DType::kFloat32) return sum_scalars<float>(args, first, last, token);
  if (dtype == DType::kFloat16) return sum_scalars<f16>(args, first, last, token);
  sum_scalars<bf16>(args, first, last, token);
}

// The kernel sees a list as the slots of a single token.
void sum_list(const MapPermuteGradPlan& plan, const int32_t* first, const int32_t* last,
              int64_t token) {
  const MapPermuteGradArgs& args = plan.args;
  if (first == last) return zero_rows(args.token_grad, token, token + 1);
  if (last - first > kMaxTopk) return sum_long_list(args, first, last, token);
  RowSum sum = row_sum(plan);
  sum.out.data = static_cast<char*>(sum.out.data) +
                 token * sum.out.row_stride * dtype_size(args.token_grad.dtype);
  plan.sum_rows({first, 1, last - first, 0, args.permuted_grad.rows}, sum, 0, 1);
}

void sum_padded(const MapPermuteGradPlan& plan, void* workspace) {
  const Lists lists = build_lists(plan.lists, as_column(plan.args.sorted_indices), workspace);
  for_each_chunk(plan, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      sum_list(plan, lists.slots + lists.first[token], lists.slots + lists.first[token + 1], token);
    }
  });
}

Vector row_of_probs_grad(const MapPermuteGradArgs& args, int64_t token) {
  const Matrix& m = args.probs_grad;
  char* row = static_cast<char*>(m.data) + token * m.row_stride * dtype_size(m.dtype);
  return {row, m.cols, m.col_stride, m.dtype};
}

void return_indexed_probs(const MapPermuteGradPlan& plan, void* workspace) {
  const MapPermuteGradArgs& args = plan.args;
  const Matrix from = as_column(args.permuted_probs_grad);
  const MapCounts counts = count_map(plan.map, args.map, workspace);
  order_by_expert(plan.map, counts);
  parallel_for(plan.threads, plan.map.chunks(), [&](int64_t chunk, int) {
    int64_t* next = counts.before + chunk * plan.map.experts;
    const int64_t end = min64(plan.map.tokens, (chunk + 1) * plan.map.chunk_tokens);
    for (int64_t token = chunk * plan.map.chunk_tokens; token < end; ++token) {
      zero_rows(args.probs_grad, token, token + 1);
      const Vector to = row_of_probs_grad(args, token);
      for_each_chosen(args.map, token, [&](int64_t expert) {
        const int64_t row = next[expert]++;
        if (row < from.rows) copy_element(from, row, 0, to, expert);
      });
    }
  });
}

// One worker fills an expert's column, so of rows that name one token twice the last one counts.
void return_padded_probs(const MapPermuteGradPlan& plan) {
  const MapPermuteGradArgs& args = plan.args;
  const Matrix from = as_column(args.permuted_probs_grad);
  const int64_t capacity = args.sorted_indices.size / args.experts;
  for_each_chunk(plan, [&](int64_t begin, int64_t end) { zero_rows(args.probs_grad, begin, end); });
  parallel_for(plan.threads, args.experts, [&](int64_t expert, int) {
    for (int64_t row = expert * capacity; row < (expert + 1) * capacity; ++row) {
      const int64_t token = at<int32_t>(args.sorted_indices, row);
      if (token < 0 || token >= args.probs_grad.rows) continue;
      copy_element(from, row, 0, row_of_probs_grad(args, token), expert);
    }
  });
}

}  // namespace

Status plan_map_permute_grad(const MapPermuteGradArgs& args, MapPermuteGradPlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  Ledger ledger;
  plan.args = args;
  plan.sum_rows = kernels_for(level).sum_rows[type_of(args.token_grad.dtype)];
  plan.threads = num_threads();
  plan.chunk_tokens = choose_chunk(args);
  // Lists come to the kernel one by one, and a fence for each would cost more than it saves.
  plan.stream = !args.drop_and_pad && should_stream(args.token_grad);
  if (args.drop_and_pad) {
    plan_lists(args.sorted_indices.size, args.token_grad.rows, ledger, plan.lists);
  } else if (args.has_probs) {
    plan_map(args.map, ledger, plan.map);
  }
  plan.workspace_bytes = ledger.bytes();
  return {};
}

Status run_map_permute_grad(const MapPermuteGradPlan& plan, void* workspace) {
  const MapPermuteGradArgs& args = plan.args;
  if (args.drop_and_pad) {
    sum_padded(plan, workspace);
    if (args.has_probs) return_padded_probs(plan);
  } else {
    sum_indexed(plan);
    if (args.has_probs) return_indexed_probs(plan, workspace);
  }
  return {};
}

}  // namespace npuless::moe_token_permute
