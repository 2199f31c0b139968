#include "two_pass.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/half.h"
#include "base/parallel.h"

namespace npuless::bench {
namespace {

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
  std::vector<int32_t> order(static_cast<size_t>(s.tokens * s.topk));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return experts[a] < experts[b]; });
  for (size_t i = 0; i < order.size(); ++i) rows[order[i]] = static_cast<int32_t>(i);
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
        sums[static_cast<size_t>(h)] += prob * widen(row[h]);
      }
    }
    T* to = out + token * s.hidden;
    for (int64_t h = 0; h < s.hidden; ++h) to[h] = narrow<T>(sums[static_cast<size_t>(h)]);
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
    for (int64_t h = 0; h < s.hidden; ++h) to[h] = narrow<T>(probs[slot] * widen(from[h]));
  });
  for_tokens(slots, [&](int64_t slot) {
    const T* a = grad + slot / s.topk * s.hidden;
    const T* b = permuted + rows[slot] * s.hidden;
    float sums[16] = {};  // one sum could not be vectorised without reordering it
    int64_t h = 0;
    for (; h + 16 <= s.hidden; h += 16) {
      for (int64_t i = 0; i < 16; ++i) sums[i] += widen(a[h + i]) * widen(b[h + i]);
    }
    for (; h < s.hidden; ++h) sums[0] += widen(a[h]) * widen(b[h]);
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
NPULESS_TWO_PASS(f16)

}  // namespace npuless::bench
