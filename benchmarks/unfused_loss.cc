#include "unfused_loss.h"

#include "base/half.h"
#include "base/parallel.h"
#include "isa/level.h"
#include "linear_cross_entropy/op.h"

namespace npuless::bench {
namespace {

using linear_cross_entropy::Kernels;
using linear_cross_entropy::TokenRow;

const Kernels& active_kernels() {
  isa::Level level{};
  static_cast<void>(isa::active_level(level));
  return linear_cross_entropy::kernels_for(level);
}

DType type_inside(DType dtype) {
  return dtype == DType::kBfloat16 && DnnlMatmul::has_bfloat16() ? DType::kBfloat16
                                                                 : DType::kFloat32;
}

// Elements handed to a thread at once.
constexpr int64_t kPiece = int64_t{1} << 16;

// On oneDNN's own threads: those of two libraries would get in each other's way.
template <class Body>
void for_pieces(int threads, int64_t count, Body body) {
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < (count + kPiece - 1) / kPiece; ++i) {
    body(i * kPiece, count < (i + 1) * kPiece ? count : (i + 1) * kPiece);
  }
}

template <class T>
void widen_all(int threads, const void* from, std::vector<float>& to) {
  const T* in = static_cast<const T*>(from);
  float* out = to.data();
  for_pieces(threads, static_cast<int64_t>(to.size()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = widen(in[i]);
  });
}

}  // namespace

UnfusedLoss::UnfusedLoss(const LossProblem& p)
    : max(static_cast<size_t>(p.tokens)),
      sum(static_cast<size_t>(p.tokens)),
      input_grad(static_cast<size_t>(p.tokens * p.hidden)),
      weight_grad(static_cast<size_t>(p.vocab * p.hidden)),
      problem_(p),
      threads_(num_threads()),
      inside_(type_inside(p.dtype)),
      kernels_(active_kernels()),
      logits_product_({p.tokens, p.vocab, p.hidden, false, true, inside_, DType::kFloat32}),
      input_product_({p.tokens, p.hidden, p.vocab, false, false, inside_, inside_}),
      weight_product_({p.vocab, p.hidden, p.tokens, true, false, inside_, inside_}),
      logits_(new float[static_cast<size_t>(elements())]),
      grad_logits_(new unsigned char[static_cast<size_t>(elements() * dtype_size(inside_))]) {
  DnnlMatmul::set_threads(threads_);
  if (inside_ == DType::kBfloat16) return;
  wide_input_.resize(input_grad.size());
  wide_weight_.resize(weight_grad.size());
  wide_input_grad_.resize(input_grad.size());
  wide_weight_grad_.resize(weight_grad.size());
}

template <class Body>
void UnfusedLoss::for_rows(Body body) {
#pragma omp parallel for num_threads(threads_)
  for (int64_t token = 0; token < problem_.tokens; ++token) {
    body(token, logits_.get() + token * problem_.vocab,
         grad_logits_.get() + token * problem_.vocab * dtype_size(inside_));
  }
}

void UnfusedLoss::widen_operands() {
  if (problem_.dtype == DType::kBfloat16) {
    widen_all<bf16>(threads_, problem_.input, wide_input_);
    widen_all<bf16>(threads_, problem_.weight, wide_weight_);
  } else {
    widen_all<f16>(threads_, problem_.input, wide_input_);
    widen_all<f16>(threads_, problem_.weight, wide_weight_);
  }
}

void UnfusedLoss::compute_logits() {
  if (inside_ == DType::kBfloat16) {
    return logits_product_.run(problem_.input, problem_.weight, logits_.get());
  }
  widen_operands();
  logits_product_.run(wide_input_.data(), wide_weight_.data(), logits_.get());
}

void UnfusedLoss::reduce() {
  for_rows([&](int64_t token, const float* logits, unsigned char*) {
    const auto i = static_cast<size_t>(token);
    kernels_.max_sum(logits, problem_.vocab, &max[i], &sum[i]);
  });
}

void UnfusedLoss::grad_from_logits() {
  const auto type = inside_ == DType::kBfloat16 ? linear_cross_entropy::kGradBfloat16
                                                : linear_cross_entropy::kGradFloat32;
  for_rows([&](int64_t token, const float* logits, unsigned char* out) {
    const auto i = static_cast<size_t>(token);
    const TokenRow row{max[i], sum[i], 1.0f / sum[i], false, problem_.grad[token]};
    kernels_.grad_from_logits[type](logits, problem_.vocab, row, problem_.target[token], out);
  });
  compute_products();
}

void UnfusedLoss::grad_from_softmax(const float* softmax) {
  const auto type = inside_ == DType::kBfloat16 ? linear_cross_entropy::kGradBfloat16
                                                : linear_cross_entropy::kGradFloat32;
  if (inside_ == DType::kFloat32) widen_operands();
  for_rows([&](int64_t token, const float*, unsigned char* out) {
    kernels_.grad_from_softmax[type](softmax + token * problem_.vocab, problem_.vocab,
                                     problem_.grad[token], problem_.target[token], out);
  });
  compute_products();
}

void UnfusedLoss::compute_products() {
  const void* grad_logits = grad_logits_.get();
  if (inside_ == DType::kBfloat16) {
    input_product_.run(grad_logits, problem_.weight, input_grad.data());
    weight_product_.run(grad_logits, problem_.input, weight_grad.data());
    return;
  }
  input_product_.run(grad_logits, wide_weight_.data(), wide_input_grad_.data());
  weight_product_.run(grad_logits, wide_input_.data(), wide_weight_grad_.data());
  const auto narrow =
      kernels_.narrow[problem_.dtype == DType::kBfloat16 ? linear_cross_entropy::kBfloat16
                                                         : linear_cross_entropy::kFloat16];
  const auto round = [&](const std::vector<float>& from, std::vector<uint16_t>& to) {
    for_pieces(threads_, static_cast<int64_t>(from.size()), [&](int64_t begin, int64_t end) {
      narrow(from.data() + begin, end - begin, 1.0f, to.data() + begin);
    });
  };
  round(wide_input_grad_, input_grad);
  round(wide_weight_grad_, weight_grad);
}

}  // namespace npuless::bench
