// Packing, written once over a Format that the including file defines in its own namespace:
//
//   struct Format {
//     using Source;                        storage type of the operand's elements
//     using Packed;                        element of a panel
//     static constexpr int kUnit;          k elements packed side by side
//     static constexpr int kQuad;          k elements that transpose4 takes; 0: no fast paths
//     static Packed convert(Source);       one element
//     static Packed scale(Source, float);  one element times a non-zero power of two
//     static void transpose4(const Source* line, int64_t line_stride, Packed* out, int64_t group);
//                                          4 lines × kQuad k; `group` from one k unit to the next
//     static void copy4(const Source* lines, int64_t k_stride, Packed* out);
//     static void copy8(const Source* lines, int64_t k_stride, Packed* out);
//                                          4 or 8 adjacent lines × kUnit k
//   };
//
// Everything here has internal linkage: the file is compiled once per ISA level.

template <class F>
static const typename F::Source* element(const gemm::Operand& source, int64_t line, int64_t k) {
  return static_cast<const typename F::Source*>(source.data) + line * source.line_stride +
         k * source.k_stride;
}

template <class F>
static typename F::Packed pack_one(const gemm::Operand& source, int64_t line, int64_t k) {
  const auto value = *element<F>(source, line, k);
  if (source.k_scale == nullptr || source.k_scale[k] == 1.0f) return F::convert(value);
  if (source.k_scale[k] == 0.0f) return typename F::Packed{};
  return F::scale(value, source.k_scale[k]);
}

// Any strides, any edge: k in [k_begin, k_end) of one panel.
template <class F>
static void pack_generic(const gemm::Operand& source, int64_t first_line, int64_t lines, int64_t k,
                         int64_t k_begin, int64_t k_end, int width, typename F::Packed* panel) {
  for (int64_t kk = k_begin; kk < k_end; kk += F::kUnit) {
    typename F::Packed* out = panel + kk * width;
    for (int64_t line = 0; line < width; ++line) {
      for (int unit = 0; unit < F::kUnit; ++unit) {
        const bool inside = line < lines && kk + unit < k;
        out[line * F::kUnit + unit] =
            inside ? pack_one<F>(source, first_line + line, kk + unit) : typename F::Packed{};
      }
    }
  }
}

// Reads jump from line to line and writes from k to k, which the hardware prefetchers do not
// follow: what comes next is fetched by hand.
template <int WRITE, class T>
static void prefetch(const T* begin, int64_t count) {
  for (int64_t i = 0; i < count; i += 64 / static_cast<int64_t>(sizeof(T))) {
    __builtin_prefetch(begin + i, WRITE);
  }
}

// `panels` whole panels of lines that are contiguous along k, a stretch of k of one panel at a
// time: all its lines before the next stretch, so that the piece of the panel they fill (width × 64
// elements) stays in the first-level cache while its lines are written 4 at a time. Returns the k
// done.
template <class F>
static int64_t pack_along_k(const gemm::Operand& source, int64_t panels, int64_t k, int width,
                            int64_t stride, typename F::Packed* out) {
  constexpr int64_t kStretch = 64;
  // At least this many lines' stretches are on their way.
  constexpr int kLinesAhead = 24;
  const int64_t k_fast = k / F::kQuad * F::kQuad;
  const int64_t stretches = (k_fast + kStretch - 1) / kStretch;
  const int64_t group = width * F::kUnit;
  const int64_t ahead = (kLinesAhead + width - 1) / width;
  for (int64_t i = 0; i < panels * stretches; ++i) {
    const int64_t first_line = i / stretches * width;
    const int64_t begin = i % stretches * kStretch;
    const int64_t end = begin + kStretch < k_fast ? begin + kStretch : k_fast;
    typename F::Packed* panel = out + i / stretches * stride;
    const int64_t next = i + ahead < panels * stretches ? i + ahead : i;
    const auto* read = element<F>(source, next / stretches * width, next % stretches * kStretch);
    const auto* written = panel + (i + 1 < panels * stretches ? begin + kStretch : begin) * width;
    for (int line = 0; line < width; line += 4, written += 4 * kStretch) {
      for (int j = 0; j < 4; ++j, read += source.line_stride) prefetch<0>(read, kStretch);
      prefetch<1>(written, 4 * kStretch);
      const auto* in = element<F>(source, first_line + line, 0);
      for (int64_t kk = begin; kk < end; kk += F::kQuad) {
        F::transpose4(in + kk, source.line_stride, panel + kk * width + line * F::kUnit, group);
      }
    }
  }
  return k_fast;
}

// Whether the unit of k at kk is packed by a plain copy.
template <class F>
static bool is_plain(const gemm::Operand& source, int64_t kk) {
  if (source.k_scale == nullptr) return true;
  bool plain = true;
  for (int unit = 0; unit < F::kUnit; ++unit) plain = plain && source.k_scale[kk + unit] == 1.0f;
  return plain;
}

// `panels` whole panels of lines that lie side by side, all of them for one k before the next:
// reads are contiguous, and each panel is a stream of writes. Returns the k done.
template <class F>
static int64_t pack_along_lines(const gemm::Operand& source, int64_t panels, int64_t k, int width,
                                int64_t stride, typename F::Packed* out) {
  constexpr int64_t kUnitsAhead = 8;
  const int64_t k_fast = k / F::kUnit * F::kUnit;
  for (int64_t kk = 0; kk < k_fast; kk += F::kUnit) {
    for (int64_t unit = 0; unit < F::kUnit; ++unit) {
      const int64_t next = kk + kUnitsAhead * F::kUnit + unit;
      if (next < k_fast) prefetch<0>(element<F>(source, 0, next), panels * width);
    }
    const bool plain = is_plain<F>(source, kk);
    for (int64_t p = 0; p < panels; ++p) {
      typename F::Packed* panel = out + p * stride;
      if (!plain) {
        pack_generic<F>(source, p * width, width, k, kk, kk + F::kUnit, width, panel);
        continue;
      }
      const auto* in = element<F>(source, p * width, kk);
      typename F::Packed* to = panel + kk * width;
      int line = 0;
      for (; line + 8 <= width; line += 8)
        F::copy8(in + line, source.k_stride, to + line * F::kUnit);
      if (line < width) F::copy4(in + line, source.k_stride, to + line * F::kUnit);
    }
  }
  return k_fast;
}

template <class F>
static void pack(const gemm::Operand& source, int64_t lines, int64_t k, int width, void* panels) {
  const int64_t k_end = (k + F::kUnit - 1) / F::kUnit * F::kUnit;
  const int64_t stride = k_end * width;
  auto* out = static_cast<typename F::Packed*>(panels);
  const int64_t whole = lines / width;
  const bool along_k = F::kQuad > 0 && source.k_stride == 1 && source.k_scale == nullptr;
  int64_t k_done = 0;
  if constexpr (F::kQuad > 0) {
    if (along_k) {
      k_done = pack_along_k<F>(source, whole, k, width, stride, out);
    } else if (source.line_stride == 1) {
      k_done = pack_along_lines<F>(source, whole, k, width, stride, out);
    }
  }
  for (int64_t p = 0; p < whole; ++p) {
    pack_generic<F>(source, p * width, width, k, k_done, k_end, width, out + p * stride);
  }
  if (whole * width == lines) return;
  pack_generic<F>(source, whole * width, lines - whole * width, k, 0, k_end, width,
                  out + whole * stride);
}
