#include "linear_cross_entropy/online_max_sum.h"

#include <cmath>
#include <limits>

#include "base/math.h"
#include "base/parallel.h"
#include "gemm/engines.h"
#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {
namespace {

// Columns reduced at once. A constant, and a multiple of every engine's NR, so that the order of
// sums depends on V alone.
constexpr int64_t kSegment = 480;
// As in the gradient: few passes over X, and packed panels that stay in a last-level cache.
constexpr int64_t kMaxPanel = 4 * kSegment;
// Nothing is packed for few tokens, and each segment is one piece of work.
constexpr int64_t kFewTokensPanel = 16 * kSegment;
// Tokens merged or written at once.
constexpr int64_t kTokens = 128;

class MaxSumRun {
 public:
  MaxSumRun(const OnlineMaxSumPlan& plan, void* workspace)
      : plan_(plan), args_(plan.args), engine_(*plan.engine), workspace_(workspace) {}

  void run() {
    start_tokens();
    if (plan_.few_rows) pack_tokens();
    for (int64_t first = 0; first < args_.weight.rows; first += plan_.panel) {
      first_ = first;
      length_ = min64(plan_.panel, args_.weight.rows - first);
      reduce_panel();
      for_token_blocks([&](int64_t begin, int64_t end) { merge_segments(begin, end); });
    }
    for_token_blocks([&](int64_t begin, int64_t end) { write_tokens(begin, end); });
  }

 private:
  int64_t tokens() const { return args_.input.rows; }
  int64_t hidden() const { return args_.input.cols; }

  template <class Body>
  void for_token_blocks(Body body) {
    parallel_for(plan_.threads, ceil_div(tokens(), kTokens), [&](int64_t index, int) {
      body(index * kTokens, min64(tokens(), (index + 1) * kTokens));
    });
  }

  int64_t id_of(int64_t token) const {
    return args_.target.dtype == DType::kInt64 ? at<int64_t>(args_.target, token)
                                               : at<int32_t>(args_.target, token);
  }

  void start_tokens() {
    for_token_blocks([&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t id = id_of(n);
        const bool owned = id >= args_.vocab_start && id < args_.vocab_end;
        plan_.targets.in(workspace_)[n] = owned ? id - args_.vocab_start : kNoTarget;
        plan_.max.in(workspace_)[n] = -std::numeric_limits<float>::infinity();
        plan_.sum.in(workspace_)[n] = 0.0f;
        // Stays where the range is longer than the weight and the target has no row.
        plan_.target_logit.in(workspace_)[n] = -std::numeric_limits<float>::infinity();
      }
    });
  }

  gemm::Rows rows_of_input(int64_t first, int64_t count) const {
    const Matrix& x = args_.input;
    return {{element(x, first, 0), x.row_stride, x.col_stride, nullptr},
            gemm::source_of(x.dtype),
            count,
            hidden()};
  }

  void pack_tokens() {
    gemm::pack_a(engine_, plan_.threads, rows_of_input(0, tokens()),
                 plan_.packed_tokens.in(workspace_));
  }

  void reduce_panel() {
    if (!plan_.few_rows) {
      Matrix weight = args_.weight;
      weight.data = const_cast<void*>(element(args_.weight, first_, 0));
      weight.rows = length_;
      gemm::pack_b(engine_, plan_.threads, weight, true, nullptr,
                   plan_.packed_columns.in(workspace_));
    }
    gemm::Blocking blocking = plan_.blocking;
    blocking.cols = length_;
    parallel_for(plan_.threads, blocking.pieces(), [&](int64_t index, int worker) {
      reduce_block(gemm::block_at(blocking, index), worker);
    });
  }

  void multiply_block(const gemm::Block& block, int worker, float* tile, int64_t stride) {
    unsigned char* scratch = plan_.block.in(workspace_) + worker * plan_.block_bytes;
    if (plan_.few_rows) {
      const Matrix& w = args_.weight;
      return gemm::multiply_streamed(
          engine_,
          {plan_.packed_tokens.in(workspace_),
           block.rows,
           {element(w, first_ + block.col, 0), w.row_stride, w.col_stride, nullptr},
           gemm::source_of(w.dtype),
           block.cols,
           hidden()},
          scratch, tile, stride, false);
    }
    gemm::multiply(
        engine_, rows_of_input(block.row, block.rows),
        gemm::panel_at(engine_, plan_.packed_columns.in(workspace_), block.col, hidden()),
        block.cols, scratch, tile, stride, false);
  }

  void reduce_block(const gemm::Block& block, int worker) {
    float* tile = plan_.tile.in(workspace_) + worker * plan_.tile_floats;
    const int64_t stride = round_up(block.cols, engine_.nr);
    multiply_block(block, worker, tile, stride);
    for (int64_t i = 0; i < block.rows; ++i) reduce_row(block, block.row + i, tile + i * stride);
  }

  void reduce_row(const gemm::Block& block, int64_t token, const float* logits) {
    for (int64_t j = 0; j < block.cols; j += kSegment) {
      const int64_t at_segment = (block.col + j) / kSegment * tokens() + token;
      plan_.kernels->max_sum(logits + j, min64(kSegment, block.cols - j),
                             plan_.segment_max.in(workspace_) + at_segment,
                             plan_.segment_sum.in(workspace_) + at_segment);
    }
    const int64_t column = plan_.targets.in(workspace_)[token] - first_ - block.col;
    if (plan_.targets.in(workspace_)[token] != kNoTarget && column >= 0 && column < block.cols) {
      plan_.target_logit.in(workspace_)[token] = logits[column];
    }
    if (args_.has_logits) {
      narrow_into(plan_.kernels->narrow[plan_.operand_type], args_.logits, token,
                  first_ + block.col, block.cols, 1.0f, logits);
    }
  }

  // exp of a difference of maxima that are both −infinity belongs to a sum of 0: take exp(0).
  static float shift(float from, float to) { return from == to ? 0.0f : from - to; }

  void merge_segments(int64_t begin, int64_t end) {
    float* max = plan_.max.in(workspace_);
    float* sum = plan_.sum.in(workspace_);
    float top[kTokens], own[kTokens], other[kTokens];
    for (int64_t s = 0; s < ceil_div(length_, kSegment); ++s) {
      const float* segment_max = plan_.segment_max.in(workspace_) + s * tokens();
      const float* segment_sum = plan_.segment_sum.in(workspace_) + s * tokens();
      for (int64_t n = begin; n < end; ++n) {
        const int64_t i = n - begin;
        const bool larger = segment_max[n] > max[n] || std::isnan(segment_max[n]);
        top[i] = larger ? segment_max[n] : max[n];
        own[i] = shift(max[n], top[i]);
        other[i] = shift(segment_max[n], top[i]);
      }
      plan_.kernels->exp(own, end - begin, own);
      plan_.kernels->exp(other, end - begin, other);
      for (int64_t n = begin; n < end; ++n) {
        sum[n] = sum[n] * own[n - begin] + segment_sum[n] * other[n - begin];
        max[n] = top[n - begin];
      }
    }
  }

  // A block starts at a multiple of 8 tokens, so whole mask bytes belong to it.
  void write_tokens(int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const int64_t target = plan_.targets.in(workspace_)[n];
      const float max = plan_.max.in(workspace_)[n];
      at<float>(args_.logits_max, n) = max;
      at<float>(args_.sum_exp, n) = plan_.sum.in(workspace_)[n];
      const bool owned = target != kNoTarget;
      at<float>(args_.predicted, n) = owned ? plan_.target_logit.in(workspace_)[n] - max : 0.0f;
      write_masked_target(n, owned ? target : 0);
      if (n % 8 == 0) at<uint8_t>(args_.target_mask, n / 8) = 0xFF;
      uint8_t& byte = at<uint8_t>(args_.target_mask, n / 8);
      if (owned) byte = static_cast<uint8_t>(byte & ~(1u << (n % 8)));
    }
  }

  void write_masked_target(int64_t token, int64_t target) {
    if (args_.masked_target.dtype == DType::kInt64) {
      at<int64_t>(args_.masked_target, token) = target;
    } else {
      at<int32_t>(args_.masked_target, token) = static_cast<int32_t>(target);
    }
  }

  const OnlineMaxSumPlan& plan_;
  const OnlineMaxSumArgs& args_;
  const gemm::Engine& engine_;
  void* workspace_;
  int64_t first_ = 0;   // of the current panel
  int64_t length_ = 0;  // of the current panel
};

void book(const OnlineMaxSumArgs& args, OnlineMaxSumPlan& plan) {
  const gemm::Engine& engine = *plan.engine;
  const int64_t tokens = args.input.rows;
  const int64_t panel = min64(plan.panel, args.weight.rows);
  const int64_t segments = ceil_div(panel, kSegment);
  Ledger ledger;
  if (plan.few_rows) {
    plan.packed_tokens =
        ledger.book<unsigned char>(gemm::packed_bytes(engine, tokens, args.input.cols, engine.mr));
  } else {
    plan.packed_columns =
        ledger.book<unsigned char>(gemm::packed_bytes(engine, panel, args.input.cols, engine.nr));
  }
  plan.segment_max = ledger.book<float>(segments * tokens);
  plan.segment_sum = ledger.book<float>(segments * tokens);
  plan.max = ledger.book<float>(tokens);
  plan.sum = ledger.book<float>(tokens);
  plan.target_logit = ledger.book<float>(tokens);
  plan.targets = ledger.book<int64_t>(tokens);
  plan.block_bytes =
      plan.few_rows ? gemm::streamed_block_bytes(engine) : gemm::packed_block_bytes(engine);
  plan.block = ledger.book<unsigned char>(plan.threads * plan.block_bytes);
  plan.tile_floats = gemm::tile_floats(engine, plan.blocking.col_block);
  plan.tile = ledger.book<float>(plan.threads * plan.tile_floats);
  plan.workspace_bytes = ledger.bytes();
}

}  // namespace

Status plan_online_max_sum(const OnlineMaxSumArgs& args, OnlineMaxSumPlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  NPULESS_TRY(check_size(args.input.rows, args.input.cols, args.weight.rows));
  plan.args = args;
  plan.engine = &gemm::engine_for(level, args.input.dtype);
  plan.kernels = &kernels_for(level);
  plan.threads = num_threads();
  plan.operand_type = args.input.dtype == DType::kBfloat16 ? kBfloat16 : kFloat16;
  plan.few_rows = gemm::has_few_rows(args.input.rows);
  plan.panel = plan.few_rows ? kFewTokensPanel : kMaxPanel;
  plan.blocking =
      gemm::choose_blocking(args.input.rows, min64(plan.panel, args.weight.rows), kSegment);
  book(args, plan);
  return {};
}

Status run_online_max_sum(const OnlineMaxSumPlan& plan, void* workspace) {
  MaxSumRun(plan, workspace).run();
  return {};
}

}  // namespace npuless::linear_cross_entropy
