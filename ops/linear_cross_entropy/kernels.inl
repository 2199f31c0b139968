// Kernel text, written once over isa/simd_*.h and isa/exp.inl; included inside a level's anonymous
// namespace.

using linear_cross_entropy::kNoTarget;
using linear_cross_entropy::TokenRow;

template <class From, class T, class Map>
inline void map_row(const From* in, int64_t n, T* out, Map map) {
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) store(out + j, map(load(in + j)));
  if (j == n) return;
  const int rest = static_cast<int>(n - j);
  store_partial(out + j, map(load_partial(in + j, rest)), rest);
}

template <class T>
inline void put(T* out, float x) {
  store_partial(out, broadcast(x), 1);
}

template <class T>
void grad_from_logits(const float* logits, int64_t n, const TokenRow& row, int64_t target,
                      void* out) {
  auto* d = static_cast<T*>(out);
  const F32 max = broadcast(row.max);
  const F32 grad = broadcast(row.grad);
  if (row.divide) {
    const F32 sum = broadcast(row.sum);
    map_row(logits, n, d, [&](F32 z) { return mul(div(exp(sub(z, max)), sum), grad); });
  } else {
    const F32 inverse = broadcast(row.inverse);
    map_row(logits, n, d, [&](F32 z) { return mul(mul(exp(sub(z, max)), inverse), grad); });
  }
  if (target == kNoTarget) return;
  const float e = first_lane(exp(broadcast(logits[target] - row.max)));
  // e − sum loses nothing near a probability of 1, but is no number where sum is infinite.
  const float own = row.divide ? e / row.sum - 1.0f : (e - row.sum) / row.sum;
  put(d + target, own * row.grad);
}

template <class T>
void grad_from_softmax(const float* softmax, int64_t n, float grad, int64_t target, void* out) {
  auto* d = static_cast<T*>(out);
  const F32 factor = broadcast(grad);
  map_row(softmax, n, d, [&](F32 p) { return mul(p, factor); });
  if (target != kNoTarget) put(d + target, (softmax[target] - 1.0f) * grad);
}

template <class T>
void narrow_row(const float* in, int64_t n, float scale, void* out) {
  const F32 factor = broadcast(scale);
  map_row(in, n, static_cast<T*>(out), [&](F32 x) { return mul(x, factor); });
}

void exp_row(const float* in, int64_t n, float* out) {
  map_row(in, n, out, [](F32 x) { return exp(x); });
}

// As map_row, written past the caches, which takes whole vectors at their own alignment.
template <class From, class Map>
inline void stream_row(const From* in, int64_t n, float* out, Map map) {
  constexpr uint64_t kVectorBytes = kLanes * sizeof(float);
  const uint64_t address = reinterpret_cast<uint64_t>(out);
  int64_t head = static_cast<int64_t>((0 - address) % kVectorBytes / sizeof(float));
  if (head >= n || address % sizeof(float) != 0) return map_row(in, n, out, map);
  map_row(in, head, out, map);
  for (; head + kLanes <= n; head += kLanes) stream(out + head, map(load(in + head)));
  map_row(in + head, n - head, out + head, map);
  stream_fence();
}

template <class From>
void softmax_row(const void* in, int64_t n, const TokenRow& row, bool streams, float* out) {
  const auto* logits = static_cast<const From*>(in);
  const F32 max = broadcast(row.max);
  const F32 sum = broadcast(row.sum);
  const F32 inverse = broadcast(row.inverse);
  const auto by_division = [&](F32 z) { return div(exp(sub(z, max)), sum); };
  const auto by_product = [&](F32 z) { return mul(exp(sub(z, max)), inverse); };
  if (row.divide) return map_row(logits, n, out, by_division);
  if (streams) return stream_row(logits, n, out, by_product);
  map_row(logits, n, out, by_product);
}

inline float largest(const float* in, int64_t n) {
  F32 top = broadcast(-__builtin_inff());
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) top = max(load(in + j), top);
  float lanes[kLanes];
  store(lanes, top);
  float result = lanes[0];
  for (int i = 1; i < kLanes; ++i) result = lanes[i] > result ? lanes[i] : result;
  for (; j < n; ++j) result = in[j] > result ? in[j] : result;
  return result;
}

inline float sum_of_exp(const float* in, int64_t n, float shift) {
  const F32 offset = broadcast(shift);
  F32 total = zero();
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) total = add(total, exp(sub(load(in + j), offset)));
  float lanes[kLanes];
  store(lanes, total);
  if (j < n) {
    float tail[kLanes];
    const int rest = static_cast<int>(n - j);
    store(tail, exp(sub(load_partial(in + j, rest), offset)));
    for (int i = 0; i < rest; ++i) lanes[i] += tail[i];
  }
  float result = lanes[0];
  for (int i = 1; i < kLanes; ++i) result += lanes[i];
  return result;
}

void max_sum(const float* logits, int64_t n, float* max, float* sum) {
  const float top = largest(logits, n);  // of those that are numbers
  *max = top;
  *sum = sum_of_exp(logits, n, top == -__builtin_inff() ? 0.0f : top);
  if (*sum == *sum) return;
  for (int64_t j = 0; j < n; ++j) {
    if (logits[j] != logits[j]) *max = logits[j];
  }
}

constexpr linear_cross_entropy::Kernels kTable = {
    {&grad_from_logits<bf16>, &grad_from_logits<float>},
    {&grad_from_softmax<bf16>, &grad_from_softmax<float>},
    {&narrow_row<bf16>, &narrow_row<f16>},
    &exp_row,
    &max_sum,
    {&softmax_row<bf16>, &softmax_row<f16>, &softmax_row<float>}};
