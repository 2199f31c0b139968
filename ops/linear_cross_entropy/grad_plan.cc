#include "base/math.h"
#include "base/parallel.h"
#include "gemm/engines.h"
#include "isa/level.h"
#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {
namespace {

// Panels are whole multiples of every engine's kc (240 or 480), so that the k blocks of the input
// gradient fall on the same vocabulary rows however long a panel is.
constexpr int64_t kPanelUnit = 480;
// Long enough that adding a panel's product into the fp32 [N,H] sums is rare, short enough that
// the packed panels of a large hidden size stay in a last-level cache.
constexpr int64_t kMaxPanel = 1920;
// d ⊙ grad of one panel: [N, panel] stays within this many bytes where the unit allows it.
constexpr int64_t kMaxGradLogitsBytes = int64_t{32} << 20;

int64_t choose_panel(int64_t tokens, int64_t vocab, int64_t element_bytes) {
  const int64_t fitting = kMaxGradLogitsBytes / (tokens * element_bytes);
  const int64_t limit = max64(kPanelUnit, min64(kMaxPanel, fitting / kPanelUnit * kPanelUnit));
  const int64_t panels = ceil_div(vocab, limit);
  return round_up(ceil_div(vocab, panels), kPanelUnit);
}

void plan_blocks(const GradArgs& args, GradPlan& plan) {
  const int nr = plan.engine->nr;
  const int64_t hidden = args.input.cols;
  const int64_t panel = min64(plan.panel, args.weight.rows);
  plan.logits = gemm::choose_blocking(args.input.rows, panel, nr);
  plan.input_grad = gemm::choose_blocking(args.input.rows, hidden, nr);
  plan.weight_grad = gemm::choose_blocking(panel, hidden, nr);
  if (!plan.few_rows) return;
  // Sums over few tokens are soon done: their tiles stay in a second-level cache until rounded.
  // Those of the logits also stay with half as many columns, which leaves twice the pieces.
  plan.logits.col_block = gemm::streamed_columns(*plan.engine) / 2;
  plan.input_grad.col_block = gemm::streamed_columns(*plan.engine);
  plan.weight_grad.col_block = gemm::streamed_columns(*plan.engine);
}

void book_tokens(int64_t tokens, GradPlan& plan, Ledger& ledger) {
  plan.tokens = ledger.book<TokenRow>(tokens);
  plan.targets = ledger.book<int64_t>(tokens);
  plan.grad_power = ledger.book<float>(tokens);
  plan.input_scale = ledger.book<float>(tokens);
}

void book_panels(const GradArgs& args, GradPlan& plan, Ledger& ledger) {
  const gemm::Engine& engine = *plan.engine;
  const int64_t tokens = args.input.rows;
  const int64_t hidden = args.input.cols;
  const int64_t panel = min64(plan.panel, args.weight.rows);
  const int64_t grad_bytes = plan.grad_type == kGradBfloat16 ? 2 : 4;
  const auto book = [&](int64_t lines, int64_t k, int width) {
    return ledger.book<unsigned char>(gemm::packed_bytes(engine, lines, k, width));
  };
  if (plan.few_rows) {
    if (!args.has_softmax) plan.packed_tokens = book(tokens, hidden, engine.mr);
    plan.packed_grad = book(tokens, panel, engine.mr);
  } else {
    if (!args.has_softmax) plan.packed_columns = book(panel, hidden, engine.nr);
    plan.packed_rows = book(hidden, panel, engine.nr);
  }
  plan.packed_input = book(hidden, tokens, engine.nr);
  plan.grad_logits = ledger.book<unsigned char>(tokens * panel * grad_bytes);
  plan.input_sum_stride = round_up(hidden, engine.nr);
  plan.input_sum = ledger.book<float>(round_up(tokens, engine.mr) * plan.input_sum_stride);
}

void book_workers(GradPlan& plan, Ledger& ledger) {
  const gemm::Engine& engine = *plan.engine;
  const int64_t columns =
      max64(plan.logits.col_block, max64(plan.input_grad.col_block, plan.weight_grad.col_block));
  plan.tile_floats = gemm::tile_floats(engine, columns);
  plan.block_bytes = max64(gemm::packed_block_bytes(engine),
                           plan.few_rows ? gemm::streamed_block_bytes(engine) : 0);
  plan.block = ledger.book<unsigned char>(plan.threads * plan.block_bytes);
  plan.tile = ledger.book<float>(plan.threads * plan.tile_floats);
}

}  // namespace

Status plan_grad(const GradArgs& args, GradPlan& plan) {
  isa::Level level{};
  NPULESS_TRY(isa::active_level(level));
  NPULESS_TRY(check_size(args.input.rows, args.input.cols, args.weight.rows));
  plan.args = args;
  plan.engine = &gemm::engine_for(level, args.input.dtype);
  plan.kernels = &kernels_for(level);
  plan.threads = num_threads();
  const bool bfloat16 = args.input.dtype == DType::kBfloat16;
  plan.grad_type = bfloat16 ? kGradBfloat16 : kGradFloat32;
  plan.operand_type = bfloat16 ? kBfloat16 : kFloat16;
  plan.few_rows = gemm::has_few_rows(args.input.rows);
  plan.panel = choose_panel(args.input.rows, args.weight.rows, bfloat16 ? 2 : 4);
  plan_blocks(args, plan);
  Ledger ledger;
  book_tokens(args.input.rows, plan, ledger);
  book_panels(args, plan, ledger);
  book_workers(plan, ledger);
  plan.workspace_bytes = ledger.bytes();
  return {};
}

}  // namespace npuless::linear_cross_entropy
