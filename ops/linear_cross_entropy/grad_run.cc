#include <cstring>

#include "base/math.h"
#include "base/parallel.h"
#include "gemm/engines.h"
#include "linear_cross_entropy/grad_tokens.h"
#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {
namespace {

// Rows [first, first + count) of a matrix.
Matrix rows_of(Matrix m, int64_t first, int64_t count) {
  m.data = const_cast<void*>(element(m, first, 0));
  m.rows = count;
  return m;
}

// The gradient of one call: the plan, its workspace and what is fixed for the whole run.
class GradRun {
 public:
  GradRun(const GradPlan& plan, void* workspace)
      : plan_(plan),
        args_(plan.args),
        engine_(*plan.engine),
        workspace_(workspace),
        source_(gemm::source_of(plan.args.input.dtype)),
        grad_source_(plan.grad_type == kGradBfloat16 ? gemm::Source::kBfloat16
                                                     : gemm::Source::kFloat32),
        grad_bytes_(plan.grad_type == kGradBfloat16 ? 2 : 4),
        narrow_(plan.kernels->narrow[plan.operand_type]) {}

  void run() {
    largest_power_ = fill_token_tables(plan_, workspace_);
    pack_input();
    if (plan_.few_rows && !args_.has_softmax) pack_tokens();
    for (int64_t first = 0; first < vocab(); first += plan_.panel) {
      first_ = first;
      length_ = min64(plan_.panel, vocab() - first);
      if (!plan_.few_rows) pack_weight();
      compute_grad_logits();
      if (plan_.few_rows) pack_grad_logits();
      compute_products();
    }
    write_input_grad();
  }

 private:
  int64_t tokens() const { return args_.input.rows; }
  int64_t hidden() const { return args_.input.cols; }
  int64_t vocab() const { return args_.weight.rows; }

  unsigned char* block_of(int worker) const {
    return plan_.block.in(workspace_) + worker * plan_.block_bytes;
  }
  float* tile_of(int worker) const {
    return plan_.tile.in(workspace_) + worker * plan_.tile_floats;
  }
  unsigned char* grad_logits(int64_t token, int64_t column) const {
    return plan_.grad_logits.in(workspace_) + (token * length_ + column) * grad_bytes_;
  }
  // The packed columns [col, …) of B, whose k is k.
  const unsigned char* panel(const Piece<unsigned char>& packed, int64_t col, int64_t k) const {
    return gemm::panel_at(engine_, packed.in(workspace_), col, k);
  }

  void pack_input() {
    gemm::pack_b(engine_, plan_.threads, args_.input, false, plan_.input_scale.in(workspace_),
                 plan_.packed_input.in(workspace_));
  }

  void pack_tokens() {
    const Matrix& x = args_.input;
    gemm::pack_a(engine_, plan_.threads,
                 {{x.data, x.row_stride, x.col_stride, nullptr}, source_, tokens(), hidden()},
                 plan_.packed_tokens.in(workspace_));
  }

  void pack_grad_logits() {
    gemm::pack_a(engine_, plan_.threads,
                 {{grad_logits(0, 0), length_, 1, nullptr}, grad_source_, tokens(), length_},
                 plan_.packed_grad.in(workspace_));
  }

  void pack_weight() {
    const Matrix weight = rows_of(args_.weight, first_, length_);
    if (!args_.has_softmax) {
      gemm::pack_b(engine_, plan_.threads, weight, true, nullptr,
                   plan_.packed_columns.in(workspace_));
    }
    gemm::pack_b(engine_, plan_.threads, weight, false, nullptr, plan_.packed_rows.in(workspace_));
  }

  void compute_grad_logits() {
    const gemm::Blocking blocking = panel_blocking(plan_.logits);
    parallel_for(plan_.threads, blocking.pieces(), [&](int64_t index, int worker) {
      const gemm::Block piece = gemm::block_at(blocking, index);
      if (args_.has_softmax) return grad_from_softmax(piece, worker);
      grad_from_logits(piece, worker);
    });
  }

  // The plan's blocking of N × panel, for the panel at hand.
  gemm::Blocking panel_blocking(gemm::Blocking blocking) const {
    blocking.cols = length_;
    return blocking;
  }

  void grad_from_logits(const gemm::Block& piece, int worker) {
    float* tile = tile_of(worker);
    const int64_t stride = round_up(piece.cols, engine_.nr);
    multiply_logits(piece, worker, tile, stride);
    for (int64_t i = 0; i < piece.rows; ++i) {
      const int64_t token = piece.row + i;
      unsigned char* out = grad_logits(token, piece.col);
      if (is_silent(token)) {
        std::memset(out, 0, static_cast<size_t>(piece.cols * grad_bytes_));
        continue;
      }
      plan_.kernels->grad_from_logits[plan_.grad_type](tile + i * stride, piece.cols,
                                                       plan_.tokens.in(workspace_)[token],
                                                       target_in(token, piece), out);
    }
  }

  void multiply_logits(const gemm::Block& piece, int worker, float* tile, int64_t stride) {
    if (plan_.few_rows) {
      const Matrix w = rows_of(args_.weight, first_ + piece.col, piece.cols);
      return gemm::multiply_streamed(engine_,
                                     {plan_.packed_tokens.in(workspace_),
                                      piece.rows,
                                      {w.data, w.row_stride, w.col_stride, nullptr},
                                      source_,
                                      piece.cols,
                                      hidden()},
                                     block_of(worker), tile, stride, false);
    }
    const Matrix x = rows_of(args_.input, piece.row, piece.rows);
    gemm::multiply(engine_,
                   {{x.data, x.row_stride, x.col_stride, nullptr}, source_, x.rows, hidden()},
                   panel(plan_.packed_columns, piece.col, hidden()), piece.cols, block_of(worker),
                   tile, stride, false);
  }

  void grad_from_softmax(const gemm::Block& piece, int worker) {
    for (int64_t i = 0; i < piece.rows; ++i) {
      const int64_t token = piece.row + i;
      unsigned char* out = grad_logits(token, piece.col);
      if (is_silent(token)) {
        std::memset(out, 0, static_cast<size_t>(piece.cols * grad_bytes_));
        continue;
      }
      const float* row = softmax_row(token, piece, tile_of(worker));
      plan_.kernels->grad_from_softmax[plan_.grad_type](
          row, piece.cols, plan_.tokens.in(workspace_)[token].grad, target_in(token, piece), out);
    }
  }

  // The piece's columns of a softmax row, gathered into `scratch` unless they lie side by side.
  const float* softmax_row(int64_t token, const gemm::Block& piece, float* scratch) const {
    const int64_t column = first_ + piece.col;
    if (args_.softmax.rows_contiguous()) return &at<float>(args_.softmax, token, column);
    for (int64_t j = 0; j < piece.cols; ++j)
      scratch[j] = at<float>(args_.softmax, token, column + j);
    return scratch;
  }

  bool is_silent(int64_t token) const { return plan_.input_scale.in(workspace_)[token] == 0.0f; }

  int64_t target_in(int64_t token, const gemm::Block& piece) const {
    const int64_t target = plan_.targets.in(workspace_)[token];
    const int64_t column = target - first_ - piece.col;
    return target != kNoTarget && column >= 0 && column < piece.cols ? column : kNoTarget;
  }

  // Both products that read this panel's d ⊙ grad; their pieces are independent.
  void compute_products() {
    gemm::Blocking weight_blocking = plan_.weight_grad;
    weight_blocking.rows = length_;
    const int64_t weight_pieces = weight_blocking.pieces();
    const int64_t pieces = weight_pieces + plan_.input_grad.pieces();
    parallel_for(plan_.threads, pieces, [&](int64_t index, int worker) {
      if (index < weight_pieces) {
        return weight_grad(gemm::block_at(weight_blocking, index), worker);
      }
      input_grad(gemm::block_at(plan_.input_grad, index - weight_pieces), worker);
    });
  }

  void input_grad(const gemm::Block& piece, int worker) {
    float* c = plan_.input_sum.in(workspace_) + piece.row * plan_.input_sum_stride + piece.col;
    if (plan_.few_rows) {
      const Matrix& w = args_.weight;
      return gemm::multiply_streamed(
          engine_,
          {plan_.packed_grad.in(workspace_),
           piece.rows,
           {element(w, first_, piece.col), w.col_stride, w.row_stride, nullptr},
           source_,
           piece.cols,
           length_},
          block_of(worker), c, plan_.input_sum_stride, first_ > 0);
    }
    gemm::multiply(
        engine_,
        {{grad_logits(piece.row, 0), length_, 1, nullptr}, grad_source_, piece.rows, length_},
        panel(plan_.packed_rows, piece.col, length_), piece.cols, block_of(worker), c,
        plan_.input_sum_stride, first_ > 0);
  }

  void weight_grad(const gemm::Block& piece, int worker) {
    float* tile = tile_of(worker);
    const int64_t stride = round_up(piece.cols, engine_.nr);
    gemm::multiply(
        engine_,
        {{grad_logits(0, piece.row), 1, length_, nullptr}, grad_source_, piece.rows, tokens()},
        panel(plan_.packed_input, piece.col, tokens()), piece.cols, block_of(worker), tile, stride,
        false);
    for (int64_t i = 0; i < piece.rows; ++i) {
      narrow_into(narrow_, args_.weight_grad, first_ + piece.row + i, piece.col, piece.cols,
                  largest_power_, tile + i * stride);
    }
  }

  void write_input_grad() {
    // Rows per piece: a few hundred KiB of sums, so that handing out pieces costs nothing.
    constexpr int64_t kRows = 16;
    parallel_for(plan_.threads, ceil_div(tokens(), kRows), [&](int64_t index, int) {
      const int64_t end = min64(tokens(), (index + 1) * kRows);
      for (int64_t token = index * kRows; token < end; ++token) {
        float* row = plan_.input_sum.in(workspace_) + token * plan_.input_sum_stride;
        // 0 · W is NaN where W is not finite.
        if (is_silent(token)) std::memset(row, 0, static_cast<size_t>(hidden()) * sizeof(float));
        narrow_into(narrow_, args_.input_grad, token, 0, hidden(),
                    plan_.grad_power.in(workspace_)[token], row);
      }
    });
  }

  const GradPlan& plan_;
  const GradArgs& args_;
  const gemm::Engine& engine_;
  void* workspace_;
  gemm::Source source_;
  gemm::Source grad_source_;
  int64_t grad_bytes_;
  NarrowFn narrow_;
  float largest_power_ = 1.0f;
  int64_t first_ = 0;   // of the current panel
  int64_t length_ = 0;  // of the current panel
};

}  // namespace

Status run_grad(const GradPlan& plan, void* workspace) {
  GradRun(plan, workspace).run();
  return {};
}

}  // namespace npuless::linear_cross_entropy
