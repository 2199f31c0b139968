// The loss without fusion: oneDNN's products around whole [N,V] matrices, between them the
// library's own vectorised row kernels on all threads. What one would build with a good BLAS.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.h"
#include "dnnl_matmul.h"
#include "linear_cross_entropy/kernels.h"

namespace npuless::bench {

// Row-major. The operands' type is bf16 or fp16; every target is a row of the weight.
struct LossProblem {
  int64_t tokens;
  int64_t hidden;
  int64_t vocab;
  DType dtype;
  const void* input;
  const void* weight;
  const int32_t* target;
  const float* grad;
};

// Where oneDNN has no fast bf16 product, and for fp16, operands are widened to fp32 in each call,
// as eager frameworks do.
class UnfusedLoss {
 public:
  explicit UnfusedLoss(const LossProblem& problem);

  void compute_logits();
  void reduce();            // logits → max, sum
  void grad_from_logits();  // logits, max, sum → input_grad, weight_grad
  void grad_from_softmax(const float* softmax);

  std::vector<float> max, sum;
  std::vector<uint16_t> input_grad, weight_grad;

 private:
  int64_t elements() const { return problem_.tokens * problem_.vocab; }
  void widen_operands();
  void compute_products();
  template <class Body>
  void for_rows(Body body);

  LossProblem problem_;
  int threads_;
  DType inside_;  // of the operands of products
  const linear_cross_entropy::Kernels& kernels_;
  DnnlMatmul logits_product_, input_product_, weight_product_;
  std::unique_ptr<float[]> logits_;
  std::unique_ptr<unsigned char[]> grad_logits_;
  std::vector<float> wide_input_, wide_weight_, wide_input_grad_, wide_weight_grad_;
};

}  // namespace npuless::bench
