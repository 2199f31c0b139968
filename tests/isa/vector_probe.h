// What a level's simd header does to arrays, one table per level.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace npuless {

// The ways to store a vector of fp32, or two of them, as T.
enum Way { kStore, kStorePair, kStream, kStreamPair, kWays };

template <class T>
struct Conversions {
  // 2 · lanes elements; `to` is aligned to 64 bytes.
  void (*narrow[kWays])(const float* from, T* to);
  void (*widen)(const T* from, float* to);
  void (*widen_pair)(const T* from, float* to);
  // lanes elements of `to`, of which the first `count` come from `from`.
  void (*widen_partial)(const T* from, int count, float* to);
  // The first `count` elements only.
  void (*narrow_partial)(const float* from, int count, T* to);
};

struct VectorProbe {
  int lanes;
  Conversions<float> fp32;
  Conversions<f16> fp16;
  Conversions<bf16> bfloat16;
};

}  // namespace npuless

namespace npuless::portable {
extern const VectorProbe vector_probe;
}
namespace npuless::avx2 {
extern const VectorProbe vector_probe;
}
namespace npuless::avx512 {
extern const VectorProbe vector_probe;
}
