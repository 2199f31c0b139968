#include <cstring>

#include "base/math.h"
#include "base/parallel.h"
#include "gemm/engines.h"
#include "linear_cross_entropy/grad_tokens.h"
#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {
namespace {

// A rectangle of a product's result.
struct Piece2d {
  int64_t row;
  int64_t rows;
  int64_t col;
  int64_t cols;
};

int64_t piece_count(int64_t rows, int64_t cols, const Blocking& blocking) {
  return ceil_div(rows, blocking.row_block) * ceil_div(cols, blocking.col_block);
}

// Columns vary fastest: neighbouring pieces read the same rows of A.
Piece2d piece_at(int64_t index, int64_t rows, int64_t cols, const Blocking& blocking) {
  const int64_t across = ceil_div(cols, blocking.col_block);
  const int64_t row = index / across * blocking.row_block;
  const int64_t col = index % across * blocking.col_block;
  return {row, min64(blocking.row_block, rows - row), col, min64(blocking.col_block, cols - col)};
}

const void* element(const Matrix& m, int64_t row, int64_t col) {
  const int64_t offset = row * m.row_stride + col * m.col_stride;
  return static_cast<const char*>(m.data) + offset * dtype_size(m.dtype);
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
        grad_bytes_(plan.grad_type == kGradBfloat16 ? 2 : 4) {}

  void run() {
    largest_power_ = fill_token_tables(plan_, workspace_);
    pack_input();
    for (int64_t first = 0; first < vocab(); first += plan_.panel) {
      first_ = first;
      length_ = min64(plan_.panel, vocab() - first);
      pack_weight();
      compute_grad_logits();
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
  const unsigned char* panel_of(const Piece<unsigned char>& packed, int64_t line, int64_t k) const {
    return packed.in(workspace_) + line * gemm::padded_k(engine_, k) * engine_.element_bytes;
  }

  // Packs lines [0, lines) of B in parallel, whole panels at a time.
  void pack_b(const Matrix& matrix, bool lines_are_rows, int64_t lines, int64_t k,
              const float* k_scale, const Piece<unsigned char>& packed) {
    const int64_t step = 4 * engine_.nr;
    parallel_for(plan_.threads, ceil_div(lines, step), [&](int64_t index, int) {
      const int64_t line = index * step;
      const gemm::Operand operand{
          lines_are_rows ? element(matrix, line, 0) : element(matrix, 0, line),
          lines_are_rows ? matrix.row_stride : matrix.col_stride,
          lines_are_rows ? matrix.col_stride : matrix.row_stride, k_scale};
      auto* out = const_cast<unsigned char*>(panel_of(packed, line, k));
      engine_.pack[static_cast<int>(source_)](operand, min64(step, lines - line), k, engine_.nr,
                                              out);
    });
  }

  void pack_input() {
    pack_b(args_.input, false, hidden(), tokens(), plan_.input_scale.in(workspace_),
           plan_.packed_input);
  }

  void pack_weight() {
    Matrix panel = args_.weight;
    panel.data = const_cast<void*>(element(args_.weight, first_, 0));
    panel.rows = length_;
    if (!args_.has_softmax) {
      pack_b(panel, true, length_, hidden(), nullptr, plan_.packed_columns);
    }
    pack_b(panel, false, hidden(), length_, nullptr, plan_.packed_rows);
  }

  // C[piece] = or += A · B, A packed block by block along k.
  void multiply(const gemm::Operand& a, gemm::Source a_source, int64_t rows, int64_t k,
                const unsigned char* b, int64_t cols, int worker, float* c, int64_t c_stride,
                bool accumulate) const {
    const int64_t a_bytes = a_source == gemm::Source::kFloat32 ? 4 : 2;
    unsigned char* block = block_of(worker);
    for (int64_t kk = 0; kk < k; kk += engine_.kc) {
      const int64_t depth = min64(engine_.kc, k - kk);
      gemm::Operand part = a;
      part.data = static_cast<const char*>(a.data) + kk * a.k_stride * a_bytes;
      engine_.pack[static_cast<int>(a_source)](part, rows, depth, engine_.mr, block);
      engine_.multiply({rows, cols, depth, block, b + kk * engine_.nr * engine_.element_bytes,
                        gemm::panel_stride(engine_, depth, engine_.mr),
                        gemm::panel_stride(engine_, k, engine_.nr), c, c_stride,
                        accumulate || kk > 0});
    }
  }

  void compute_grad_logits() {
    const int64_t count = piece_count(tokens(), length_, plan_.logits);
    parallel_for(plan_.threads, count, [&](int64_t index, int worker) {
      const Piece2d piece = piece_at(index, tokens(), length_, plan_.logits);
      if (args_.has_softmax) return grad_from_softmax(piece, worker);
      grad_from_logits(piece, worker);
    });
  }

  void grad_from_logits(const Piece2d& piece, int worker) {
    float* tile = tile_of(worker);
    const int64_t stride = round_up(piece.cols, engine_.nr);
    const gemm::Operand a{element(args_.input, piece.row, 0), args_.input.row_stride,
                          args_.input.col_stride, nullptr};
    multiply(a, source_, piece.rows, hidden(), panel_of(plan_.packed_columns, piece.col, hidden()),
             piece.cols, worker, tile, stride, false);
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

  void grad_from_softmax(const Piece2d& piece, int worker) {
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
  const float* softmax_row(int64_t token, const Piece2d& piece, float* scratch) const {
    const int64_t column = first_ + piece.col;
    if (args_.softmax.rows_contiguous()) return &at<float>(args_.softmax, token, column);
    for (int64_t j = 0; j < piece.cols; ++j)
      scratch[j] = at<float>(args_.softmax, token, column + j);
    return scratch;
  }

  bool is_silent(int64_t token) const { return plan_.input_scale.in(workspace_)[token] == 0.0f; }

  int64_t target_in(int64_t token, const Piece2d& piece) const {
    const int64_t target = plan_.targets.in(workspace_)[token];
    const int64_t column = target - first_ - piece.col;
    return target != kNoTarget && column >= 0 && column < piece.cols ? column : kNoTarget;
  }

  // Both products that read this panel's d ⊙ grad; their pieces are independent.
  void compute_products() {
    const int64_t input_pieces = piece_count(tokens(), hidden(), plan_.input_grad);
    const int64_t weight_pieces = piece_count(length_, hidden(), plan_.weight_grad);
    parallel_for(plan_.threads, input_pieces + weight_pieces, [&](int64_t index, int worker) {
      if (index < weight_pieces) {
        return weight_grad(piece_at(index, length_, hidden(), plan_.weight_grad), worker);
      }
      input_grad(piece_at(index - weight_pieces, tokens(), hidden(), plan_.input_grad), worker);
    });
  }

  void input_grad(const Piece2d& piece, int worker) {
    const gemm::Operand a{grad_logits(piece.row, 0), length_, 1, nullptr};
    float* c = plan_.input_sum.in(workspace_) + piece.row * plan_.input_sum_stride + piece.col;
    multiply(a, grad_source_, piece.rows, length_, panel_of(plan_.packed_rows, piece.col, length_),
             piece.cols, worker, c, plan_.input_sum_stride, first_ > 0);
  }

  void weight_grad(const Piece2d& piece, int worker) {
    float* tile = tile_of(worker);
    const int64_t stride = round_up(piece.cols, engine_.nr);
    const gemm::Operand a{grad_logits(0, piece.row), 1, length_, nullptr};
    multiply(a, grad_source_, piece.rows, tokens(),
             panel_of(plan_.packed_input, piece.col, tokens()), piece.cols, worker, tile, stride,
             false);
    for (int64_t i = 0; i < piece.rows; ++i) {
      write_row(args_.weight_grad, first_ + piece.row + i, piece.col, piece.cols, largest_power_,
                tile + i * stride);
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
        write_row(args_.input_grad, token, 0, hidden(), plan_.grad_power.in(workspace_)[token],
                  row);
      }
    });
  }

  // Rounds `n` sums times `scale` into out[row, col…].
  void write_row(const Matrix& out, int64_t row, int64_t col, int64_t n, float scale,
                 const float* sums) const {
    const NarrowFn narrow = plan_.kernels->narrow[plan_.operand_type];
    if (out.rows_contiguous()) return narrow(sums, n, scale, &at<uint16_t>(out, row, col));
    constexpr int64_t kChunk = 512;
    uint16_t rounded[kChunk];
    for (int64_t j = 0; j < n; j += kChunk) {
      const int64_t count = min64(kChunk, n - j);
      narrow(sums + j, count, scale, rounded);
      for (int64_t i = 0; i < count; ++i) at<uint16_t>(out, row, col + j + i) = rounded[i];
    }
  }

  const GradPlan& plan_;
  const GradArgs& args_;
  const gemm::Engine& engine_;
  void* workspace_;
  gemm::Source source_;
  gemm::Source grad_source_;
  int64_t grad_bytes_;
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
