#include "two_pass.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/dtype.h"
#include "base/parallel.h"

namespace npuless::bench {
namespace {

// Own conversions: this file is compiled for the processor at hand, and the linker may take inline
// functions from any file.
inline float widened(float x) {
  return x;
}
inline float widened(bf16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}
template <class T>
T narrowed(float x);
template <>
inline float narrowed<float>(float x) {
  return x;
}
template <>
inline bf16 narrowed<bf16>(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

constexpr int64_t kTokens = 16;  // handed to a thread at once

template <class Body>
void for_tokens(const MoeShape& shape, Body body) {
  parallel_for(num_threads(), (shape.tokens + kTokens - 1) / kTokens, [&](int64_t i, int) {
    const int64_t end = std::min(shape.tokens, (i + 1) * kTokens);
    for (int64_t token = i * kTokens; token < end; ++token) body(token);
  });
}

template <class T>
size_t row_bytes(const MoeShape& shape) {
  return static_cast<size_t>(shape.hidden) * sizeof(T);
}

}  // namespace

template <class T>
void two_pass_permute(const MoeShape& s, const T* tokens, const int32_t* experts, T* permuted,
                      int32_t* rows) {
  // A counting sort.
  const auto count = static_cast<size_t>(s.tokens * s.topk);
  std::vector<int32_t> order(count);
  std::vector<int32_t> next(static_cast<size_t>(*std::max_element(experts, experts + count)) + 2);
  for (size_t i = 0; i < count; ++i) ++next[static_cast<size_t>(experts[i]) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (size_t i = 0; i < count; ++i) {
    rows[i] = next[static_cast<size_t>(experts[i])]++;
    order[static_cast<size_t>(rows[i])] = static_cast<int32_t>(i);
  }
  const MoeShape slots{s.tokens * s.topk, 1, s.hidden};
  for_tokens(slots, [&](int64_t i) {
    const int64_t token = order[static_cast<size_t>(i)] / s.topk;
    std::memcpy(permuted + i * s.hidden, tokens + token * s.hidden, row_bytes<T>(s));
  });
}

template <class T>
void two_pass_unpermute(const MoeShape& s, const T* permuted, const int32_t* rows,
                        const float* probs, T* gathered, T* out) {
  const MoeShape slots{s.tokens * s.topk, 1, s.hidden};
  for_tokens(slots, [&](int64_t slot) {
    std::memcpy(gathered + slot * s.hidden, permuted + rows[slot] * s.hidden, row_bytes<T>(s));
  });
  for_tokens(s, [&](int64_t token) {
    thread_local std::vector<float> sums;
    sums.assign(static_cast<size_t>(s.hidden), 0.0f);
    for (int64_t slot = token * s.topk; slot < (token + 1) * s.topk; ++slot) {
      const T* row = gathered + slot * s.hidden;
      const float prob = probs == nullptr ? 1.0f : probs[slot];
      for (int64_t h = 0; h < s.hidden; ++h) {
        sums[static_cast<size_t>(h)] += prob * widened(row[h]);
      }
    }
    T* to = out + token * s.hidden;
    for (int64_t h = 0; h < s.hidden; ++h) to[h] = narrowed<T>(sums[static_cast<size_t>(h)]);
  });
}

template <class T>
void two_pass_unpermute_grad(const MoeShape& s, const T* permuted, const T* grad,
                             const int32_t* rows, const float* probs, T* permuted_grad,
                             float* probs_grad) {
  const MoeShape slots{s.tokens * s.topk, 1, s.hidden};
  for_tokens(slots, [&](int64_t slot) {
    const T* from = grad + slot / s.topk * s.hidden;
    T* to = permuted_grad + rows[slot] * s.hidden;
    for (int64_t h = 0; h < s.hidden; ++h) to[h] = narrowed<T>(probs[slot] * widened(from[h]));
  });
  for_tokens(slots, [&](int64_t slot) {
    const T* a = grad + slot / s.topk * s.hidden;
    const T* b = permuted + rows[slot] * s.hidden;
    float sums[16] = {};  // one sum could not be vectorised without reordering it
    int64_t h = 0;
    for (; h + 16 <= s.hidden; h += 16) {
      for (int64_t i = 0; i < 16; ++i) sums[i] += widened(a[h + i]) * widened(b[h + i]);
    }
    for (; h < s.hidden; ++h) sums[0] += widened(a[h]) * widened(b[h]);
    probs_grad[slot] = std::accumulate(sums, sums + 16, 0.0f);
  });
}

#define NPULESS_TWO_PASS(T)                                                                     \
  template void two_pass_permute(const MoeShape&, const T*, const int32_t*, T*, int32_t*);      \
  template void two_pass_unpermute(const MoeShape&, const T*, const int32_t*, const float*, T*, \
                                   T*);                                                         \
  template void two_pass_unpermute_grad(const MoeShape&, const T*, const T*, const int32_t*,    \
                                        const float*, T*, float*);
NPULESS_TWO_PASS(float)
NPULESS_TWO_PASS(bf16)

}  // namespace npuless::bench
