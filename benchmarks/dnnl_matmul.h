// oneDNN's matrix product, as a caller would use it: C[m,n] = A[m,k] · B[k,n].
#pragma once

#include <cstdint>
#include <memory>

#include "base/dtype.h"

namespace npuless::bench {

class DnnlMatmul {
 public:
  // Row-major matrices, or their transposes. A and B of one type; threads as given here.
  struct Shape {
    int64_t m, n, k;
    bool a_transposed, b_transposed;
    DType operands, result;  // kFloat32 or kBfloat16
  };

  // Whether oneDNN multiplies bf16 here by more than its reference loops.
  static bool has_bfloat16();
  static void set_threads(int threads);

  explicit DnnlMatmul(const Shape& shape);
  ~DnnlMatmul();
  void run(const void* a, const void* b, void* c) const;

 private:
  struct Primitive;
  std::unique_ptr<Primitive> primitive_;
};

}  // namespace npuless::bench
