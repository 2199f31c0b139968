// The table of vector_probe.h, written once over isa/simd_*.h; included inside a level's anonymous
// namespace.

// Even and odd elements of bf16, lower and upper half of others: the order of simd_portable.h.
template <class T>
constexpr int column_of(int half, int lane) {
  return half * kLanes + lane;
}
template <>
constexpr int column_of<bf16>(int half, int lane) {
  return 2 * lane + half;
}

template <class T>
Pair pair_of(const float* from) {
  float halves[2][kLanes];
  for (int half = 0; half < 2; ++half) {
    for (int lane = 0; lane < kLanes; ++lane) halves[half][lane] = from[column_of<T>(half, lane)];
  }
  return {load(halves[0]), load(halves[1])};
}

template <class T>
void store_both(const float* from, T* to) {
  store(to, load(from));
  store(to + kLanes, load(from + kLanes));
}

template <class T>
void store_as_pair(const float* from, T* to) {
  store_pair(to, pair_of<T>(from));
}

template <class T>
void stream_both(const float* from, T* to) {
  stream(to, load(from));
  stream(to + kLanes, load(from + kLanes));
  stream_fence();
}

template <class T>
void stream_as_pair(const float* from, T* to) {
  stream_pair(to, pair_of<T>(from));
  stream_fence();
}

template <class T>
void load_both(const T* from, float* to) {
  store(to, load(from));
  store(to + kLanes, load(from + kLanes));
}

template <class T>
void load_as_pair(const T* from, float* to) {
  const Pair pair = load_pair(from);
  float halves[2][kLanes];
  store(halves[0], pair.first);
  store(halves[1], pair.second);
  for (int half = 0; half < 2; ++half) {
    for (int lane = 0; lane < kLanes; ++lane) to[column_of<T>(half, lane)] = halves[half][lane];
  }
}

template <class T>
void load_some(const T* from, int count, float* to) {
  store(to, load_partial(from, count));
}

template <class T>
void store_some(const float* from, int count, T* to) {
  store_partial(to, load(from), count);
}

template <class T>
constexpr Conversions<T> conversions() {
  return {{&store_both<T>, &store_as_pair<T>, &stream_both<T>, &stream_as_pair<T>},
          &load_both<T>,
          &load_as_pair<T>,
          &load_some<T>,
          &store_some<T>};
}

constexpr VectorProbe kProbe = {kLanes, conversions<float>(), conversions<f16>(),
                                conversions<bf16>()};
