// Formats of the x86 engines that multiply fp32: sources widened while packing, 4 lines at a time
// (128-bit shuffles cost the same per element as wider ones and serve every panel width).

static __m128 widen4_bf16(const uint16_t* x) {
  const __m128i bits = _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
  return _mm_castsi128_ps(_mm_slli_epi32(bits, 16));
}

static __m128 widen4_f16(const uint16_t* x) {
  return _mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(x)));
}

struct QuadFloat {
  using Packed = float;
  static constexpr int kUnit = 1;
  static constexpr bool kHasQuad = true;
  static void transpose(__m128& a, __m128& b, __m128& c, __m128& d) {
    _MM_TRANSPOSE4_PS(a, b, c, d);
  }
  static void store(float* out, __m128 quad) { _mm_storeu_ps(out, quad); }
};

struct FromFloat32 : QuadFloat {
  using Source = float;
  static float convert(float x) { return x; }
  static float scale(float x, float factor) { return x * factor; }
  static __m128 load(const float* x) { return _mm_loadu_ps(x); }
  static void copy4(const float* x, int64_t, float* out) { store(out, load(x)); }
};

struct FromBfloat16 : QuadFloat {
  using Source = uint16_t;
  static float convert(uint16_t x) {
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(uint32_t{x} << 16))));
  }
  static float scale(uint16_t x, float factor) { return convert(x) * factor; }
  static __m128 load(const uint16_t* x) { return widen4_bf16(x); }
  static void copy4(const uint16_t* x, int64_t, float* out) { store(out, load(x)); }
};

struct FromFloat16 : QuadFloat {
  using Source = uint16_t;
  static float convert(uint16_t x) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x))); }
  static float scale(uint16_t x, float factor) { return convert(x) * factor; }
  static __m128 load(const uint16_t* x) { return widen4_f16(x); }
  static void copy4(const uint16_t* x, int64_t, float* out) { store(out, load(x)); }
};
