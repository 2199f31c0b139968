#include "linear_cross_entropy/cross_entropy.h"

#include <cmath>
#include <cstring>

#include "base/cache.h"
#include "base/math.h"
#include "base/parallel.h"
#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {
namespace {

// Columns of softmax computed at once: 16 KiB of results, so that handing out pieces is cheap and
// a gathered stretch stays in the first-level cache.
constexpr int64_t kColumns = 4096;

bool has_softmax(const CrossEntropyArgs& args) {
  return args.has_logits && args.logits.rows > 0 && args.logits.cols > 0;
}

bool gathers(const CrossEntropyArgs& args) {
  return !args.logits.rows_contiguous() || !args.softmax.rows_contiguous();
}

TokenRow token_row(const CrossEntropyArgs& args, int64_t token) {
  const float sum = at<float>(args.sum_exp, token);
  const float inverse = 1.0f / sum;
  return {at<float>(args.logits_max, token), sum, inverse,
          !std::isnormal(sum) || !std::isnormal(inverse), 1.0f};
}

void write_losses(const CrossEntropyPlan& plan) {
  // Logarithms of about 20 microseconds, the wake-up of a thread.
  constexpr int64_t kTokens = 1024;
  const CrossEntropyArgs& args = plan.args;
  parallel_for(plan.threads, ceil_div(args.loss.size, kTokens), [&](int64_t index, int) {
    const int64_t end = min64(args.loss.size, (index + 1) * kTokens);
    for (int64_t n = index * kTokens; n < end; ++n) {
      const double log_sum = std::log(static_cast<double>(at<float>(args.sum_exp, n)));
      at<float>(args.loss, n) = static_cast<float>(log_sum) - at<float>(args.predicted, n);
    }
  });
}

void copy_elements(int64_t element_bytes, int64_t count, const void* from, int64_t from_stride,
                   void* to, int64_t to_stride) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(static_cast<char*>(to) + i * to_stride * element_bytes,
                static_cast<const char*>(from) + i * from_stride * element_bytes,
                static_cast<size_t>(element_bytes));
  }
}

// One stretch of one row; `chunk` has room for it twice.
void write_softmax(const CrossEntropyPlan& plan, int64_t token, int64_t col, int64_t count,
                   float* chunk) {
  const CrossEntropyArgs& args = plan.args;
  const int64_t bytes = dtype_size(args.logits.dtype);
  const void* in = element(args.logits, token, col);
  float* out = &at<float>(args.softmax, token, col);
  const SoftmaxFn softmax = plan.kernels->softmax[plan.logits_type];
  const TokenRow row = token_row(args, token);
  if (!gathers(args)) return softmax(in, count, row, plan.stream, out);
  copy_elements(bytes, count, in, args.logits.col_stride, chunk + kColumns, 1);
  softmax(chunk + kColumns, count, row, false, chunk);
  copy_elements(sizeof(float), count, chunk, 1, out, args.softmax.col_stride);
}

int type_index(DType dtype) {
  if (dtype == DType::kFloat32) return kLogitsFloat32;
  return dtype == DType::kBfloat16 ? kBfloat16 : kFloat16;
}

}  // namespace

Status plan_cross_entropy(const CrossEntropyArgs& args, CrossEntropyPlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  plan.args = args;
  plan.kernels = &kernels_for(level);
  plan.threads = num_threads();
  plan.logits_type = args.has_logits ? type_index(args.logits.dtype) : 0;
  const double elements =
      static_cast<double>(args.logits.rows) * static_cast<double>(args.logits.cols);
  plan.stream = has_softmax(args) && elements * sizeof(float) > static_cast<double>(kStreamBytes);
  Ledger ledger;
  if (has_softmax(args) && gathers(args)) {
    plan.chunk = ledger.book<float>(plan.threads * 2 * kColumns);
  }
  plan.workspace_bytes = ledger.bytes();
  return {};
}

Status run_cross_entropy(const CrossEntropyPlan& plan, void* workspace) {
  const CrossEntropyArgs& args = plan.args;
  write_losses(plan);
  if (!has_softmax(args)) return {};
  const int64_t across = ceil_div(args.logits.cols, kColumns);
  parallel_for(plan.threads, args.logits.rows * across, [&](int64_t index, int worker) {
    const int64_t col = index % across * kColumns;
    float* chunk = gathers(args) ? plan.chunk.in(workspace) + worker * 2 * kColumns : nullptr;
    write_softmax(plan, index / across, col, min64(kColumns, args.logits.cols - col), chunk);
  });
  return {};
}

}  // namespace npuless::linear_cross_entropy
