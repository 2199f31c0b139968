// Two vectors of neighbouring elements, over the vector of a simd header, which includes this
// before it says what is special about bf16.

// Their elements lie in whatever order of lanes converts fastest.
struct Pair {
  F32 first;
  F32 second;
};

template <class T>
inline Pair load_pair(const T* p) {
  return {load(p), load(p + kLanes)};
}

template <class T>
inline void store_pair(T* p, Pair x) {
  store(p, x.first);
  store(p + kLanes, x.second);
}

template <class T>
inline void stream_pair(T* p, Pair x) {
  stream(p, x.first);
  stream(p + kLanes, x.second);
}
