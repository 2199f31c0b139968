#include "moe_token_permute/unpermute_grad.h"

#include <algorithm>

#include "base/math.h"
#include "base/parallel.h"
#include "moe_token_permute/kernel_arguments.h"
#include "moe_token_permute/probs.h"

namespace npuless::moe_token_permute {
namespace {

constexpr int32_t kNoWriter = -1;

int64_t choose_chunk(const UnpermuteGradArgs& args) {
  const int64_t bytes = dtype_size(args.grad.dtype);
  const int64_t cols = min64(args.grad.cols, kChunkBytes);  // products stay in 64 bits
  const int64_t rows = (1 + (args.has_probs ? 2 : 1) * args.topk) * cols * bytes;
  const int64_t scalars = args.topk * static_cast<int64_t>(2 * sizeof(int32_t) + 4 * sizeof(float));
  return max64(1, min64(args.grad.rows, kChunkBytes / (rows + scalars + 1)));
}

int64_t count_chunks(const UnpermuteGradPlan& plan) {
  return ceil_div(plan.args.grad.rows, plan.chunk_tokens);
}

RowsToRows rows_of(const UnpermuteGradArgs& args) {
  return {args.grad, args.permuted_grad, {}};
}

Slots slots_of(const UnpermuteGradArgs& args) {
  return {static_cast<const int32_t*>(args.sorted_indices.data), args.sorted_indices.stride,
          args.topk, args.range_begin, args.range_end - args.range_begin};
}

// The row of a slot, or -1.
int64_t row_of(const Slots& slots, int64_t slot) {
  const int64_t row = slots.indices[slot * slots.stride] - slots.first_index;
  return row >= 0 && row < slots.rows ? row : -1;
}

// One thread, so that the last slot stays; a few nanoseconds per slot beside the microsecond that
// its row takes.
void find_writers(const Slots& slots, int64_t count, int32_t* writers) {
  std::fill_n(writers, slots.rows, kNoWriter);
  for (int64_t slot = 0; slot < count; ++slot) {
    const int64_t row = row_of(slots, slot);
    if (row >= 0) writers[row] = static_cast<int32_t>(slot);
  }
}

void zero_unwritten(const UnpermuteGradPlan& plan, int64_t rows, const int32_t* writers) {
  const Matrix& out = plan.args.permuted_grad;
  if (out.cols == 0) return;  // of which there may be more rows than anyone can walk
  const int64_t chunk_rows = max64(1, plan.chunk_tokens * plan.args.topk);
  parallel_for(plan.threads, ceil_div(out.rows, chunk_rows), [&](int64_t chunk, int) {
    const int64_t end = min64(out.rows, (chunk + 1) * chunk_rows);
    for (int64_t row = chunk * chunk_rows; row < end; ++row) {
      if (row >= rows || writers[row] == kNoWriter) zero_rows(out, row, row + 1);
    }
  });
}

void copy_tokens(const UnpermuteGradPlan& plan, const Slots& slots, const int32_t* writers,
                 int64_t begin, int64_t end) {
  const RowsToRows rows = rows_of(plan.args);
  Mover mover(plan.copy, rows);
  for (int64_t slot = begin * slots.topk; slot < end * slots.topk; ++slot) {
    const int64_t row = row_of(slots, slot);
    if (row >= 0 && writers[row] == slot) mover.move(slot / slots.topk, row);
  }
}

void read_weights(const UnpermuteGradArgs& args, int64_t begin, int64_t end, float* out) {
  if (!args.mapped) return read_probs(args.probs, begin, end, out);
  read_mapped_probs(args.probs, args.map, args.topk, begin, end, out);
}

void write_dots(const UnpermuteGradArgs& args, int64_t begin, int64_t end, const float* dots) {
  if (!args.mapped) return write_probs(args.probs_grad, begin, end, dots);
  write_mapped_probs(args.probs_grad, args.map, args.topk, begin, end, dots);
}

// `weights` and `dots` are the worker's.
void spread_tokens(const UnpermuteGradPlan& plan, const Slots& slots, const int32_t* writers,
                   int64_t begin, int64_t end, float* weights, float* dots) {
  const UnpermuteGradArgs& args = plan.args;
  read_weights(args, begin, end, weights);
  const Spread spread{source_of(args.grad),
                      source_of(args.permuted),
                      target_of(args.permuted_grad),
                      args.grad.cols,
                      plan.stream,
                      writers,
                      weights,
                      dots};
  plan.spread_rows(slots, spread, begin, end);
  write_dots(args, begin, end, dots);
}

}  // namespace

Status plan_unpermute_grad(const UnpermuteGradArgs& args, UnpermuteGradPlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  plan.args = args;
  plan.spread_rows = kernels_for(level).spread_rows[type_of(args.grad.dtype)];
  plan.copy = plan_copy(rows_of(args), level);
  plan.threads = num_threads();
  plan.chunk_tokens = choose_chunk(args);
  plan.stream = should_stream(args.permuted_grad);
  Ledger ledger;
  plan.writers = ledger.book<int32_t>(args.range_end - args.range_begin);
  if (args.has_probs) {
    const int64_t workers = min64(plan.threads, count_chunks(plan));
    const int64_t scalars = workers * plan.chunk_tokens * args.topk;
    plan.weights = ledger.book<float>(scalars);
    plan.dots = ledger.book<float>(scalars);
  }
  plan.workspace_bytes = ledger.bytes();
  return {};
}

Status run_unpermute_grad(const UnpermuteGradPlan& plan, void* workspace) {
  const UnpermuteGradArgs& args = plan.args;
  const Slots slots = slots_of(args);
  int32_t* const writers = plan.writers.in(workspace);
  float* const weights = plan.weights.in(workspace);
  float* const dots = plan.dots.in(workspace);
  find_writers(slots, args.sorted_indices.size, writers);
  zero_unwritten(plan, slots.rows, writers);
  parallel_for(plan.threads, count_chunks(plan), [&](int64_t chunk, int worker) {
    const int64_t begin = chunk * plan.chunk_tokens;
    const int64_t end = min64(args.grad.rows, begin + plan.chunk_tokens);
    if (!args.has_probs) return copy_tokens(plan, slots, writers, begin, end);
    const int64_t mine = worker * plan.chunk_tokens * args.topk;
    spread_tokens(plan, slots, writers, begin, end, weights + mine, dots + mine);
  });
  return {};
}

}  // namespace npuless::moe_token_permute
