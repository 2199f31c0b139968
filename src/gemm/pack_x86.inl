// Formats of the x86 engines that multiply fp32: sources are widened while packing.

// Two 4 × 4 transposes side by side: line i of 8 values in, 4 lines of value k out at k groups.
static void transpose_store(__m256 a, __m256 b, __m256 c, __m256 d, float* out, int64_t group) {
  const __m256 ab_low = _mm256_unpacklo_ps(a, b);
  const __m256 ab_high = _mm256_unpackhi_ps(a, b);
  const __m256 cd_low = _mm256_unpacklo_ps(c, d);
  const __m256 cd_high = _mm256_unpackhi_ps(c, d);
  const __m256 k04 = _mm256_shuffle_ps(ab_low, cd_low, 0x44);
  const __m256 k15 = _mm256_shuffle_ps(ab_low, cd_low, 0xEE);
  const __m256 k26 = _mm256_shuffle_ps(ab_high, cd_high, 0x44);
  const __m256 k37 = _mm256_shuffle_ps(ab_high, cd_high, 0xEE);
  _mm_storeu_ps(out, _mm256_castps256_ps128(k04));
  _mm_storeu_ps(out + group, _mm256_castps256_ps128(k15));
  _mm_storeu_ps(out + 2 * group, _mm256_castps256_ps128(k26));
  _mm_storeu_ps(out + 3 * group, _mm256_castps256_ps128(k37));
  _mm_storeu_ps(out + 4 * group, _mm256_extractf128_ps(k04, 1));
  _mm_storeu_ps(out + 5 * group, _mm256_extractf128_ps(k15, 1));
  _mm_storeu_ps(out + 6 * group, _mm256_extractf128_ps(k26, 1));
  _mm_storeu_ps(out + 7 * group, _mm256_extractf128_ps(k37, 1));
}

struct Float32 {
  using Source = float;
  static float convert(float x) { return x; }
  static __m256 load8(const float* x) { return _mm256_loadu_ps(x); }
  static __m128 load4(const float* x) { return _mm_loadu_ps(x); }
};

struct Bfloat16 {
  using Source = uint16_t;
  static float convert(uint16_t x) {
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(uint32_t{x} << 16))));
  }
  static __m256 load8(const uint16_t* x) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static __m128 load4(const uint16_t* x) {
    const __m128i bits = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
    return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(bits), 16));
  }
};

struct Float16 {
  using Source = uint16_t;
  static float convert(uint16_t x) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x))); }
  static __m256 load8(const uint16_t* x) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x)));
  }
  static __m128 load4(const uint16_t* x) {
    return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
  }
};

template <class From>
struct ToFloat32 : From {
  using typename From::Source;
  using Packed = float;
  static constexpr int kUnit = 1;
  static constexpr int kQuad = 8;
  static float scale(Source x, float factor) { return From::convert(x) * factor; }
  static void transpose4(const Source* line, int64_t line_stride, float* out, int64_t group) {
    transpose_store(From::load8(line), From::load8(line + line_stride),
                    From::load8(line + 2 * line_stride), From::load8(line + 3 * line_stride), out,
                    group);
  }
  static void copy4(const Source* x, int64_t, float* out) { _mm_storeu_ps(out, From::load4(x)); }
  static void copy8(const Source* x, int64_t, float* out) { _mm256_storeu_ps(out, From::load8(x)); }
};
