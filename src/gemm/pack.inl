// Packing, written once over a Format that the including file defines in its own namespace:
//
//   struct Format {
//     using Source;                        storage type of the operand's elements
//     using Packed;                        element of a panel
//     static constexpr int kUnit;          k elements packed side by side
//     static constexpr bool kHasQuad;      whether the 4-line fast paths below exist
//     static Packed convert(Source);       one element
//     static Packed scale(Source, float);  one element times a non-zero power of two
//     static Quad load(const Source*);     4 groups of kUnit k from one line  (kHasQuad)
//     static void transpose(Quad&, Quad&, Quad&, Quad&);
//     static void store(Packed*, Quad);
//     static void copy4(const Source* line4_of_k, int64_t k_stride, Packed* out);
//                                          4 adjacent lines, kUnit k  (kHasQuad)
//   };
//
// Everything here has internal linkage: the file is compiled once per ISA level.

template <class F>
static typename F::Packed pack_one(const gemm::Operand& source, int64_t line, int64_t k) {
  const auto* data = static_cast<const typename F::Source*>(source.data);
  const auto element = data[line * source.line_stride + k * source.k_stride];
  if (source.k_scale == nullptr || source.k_scale[k] == 1.0f) return F::convert(element);
  if (source.k_scale[k] == 0.0f) return typename F::Packed{};
  return F::scale(element, source.k_scale[k]);
}

// Any strides, any edge: k groups [k_begin, k_end) of one panel.
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

// Lines contiguous along k: 4 lines × 4 groups are transposed in registers.
template <class F>
static int64_t pack_along_k(const gemm::Operand& source, int64_t first_line, int64_t k, int width,
                            typename F::Packed* panel) {
  constexpr int64_t kStep = 4 * F::kUnit;
  const auto* data = static_cast<const typename F::Source*>(source.data);
  const int64_t k_fast = k / kStep * kStep;
  for (int line = 0; line < width; line += 4) {
    const auto* row = data + (first_line + line) * source.line_stride;
    for (int64_t kk = 0; kk < k_fast; kk += kStep) {
      auto q0 = F::load(row + kk);
      auto q1 = F::load(row + kk + source.line_stride);
      auto q2 = F::load(row + kk + 2 * source.line_stride);
      auto q3 = F::load(row + kk + 3 * source.line_stride);
      F::transpose(q0, q1, q2, q3);
      typename F::Packed* out = panel + kk * width + line * F::kUnit;
      const int64_t group = width * F::kUnit;
      F::store(out, q0);
      F::store(out + group, q1);
      F::store(out + 2 * group, q2);
      F::store(out + 3 * group, q3);
    }
  }
  return k_fast;
}

// Adjacent lines adjacent in memory: a widening (or interleaving) copy.
template <class F>
static int64_t pack_along_lines(const gemm::Operand& source, int64_t first_line, int64_t k,
                                int width, typename F::Packed* panel) {
  const auto* data = static_cast<const typename F::Source*>(source.data) + first_line;
  const int64_t k_fast = k / F::kUnit * F::kUnit;
  for (int64_t kk = 0; kk < k_fast; kk += F::kUnit) {
    const auto* row = data + kk * source.k_stride;
    for (int line = 0; line < width; line += 4) {
      F::copy4(row + line, source.k_stride, panel + kk * width + line * F::kUnit);
    }
  }
  return k_fast;
}

// With k_scale, runs of factor 1 take the copy; every other k goes element by element.
template <class F>
static void pack_scaled_lines(const gemm::Operand& source, int64_t first_line, int64_t k, int width,
                              typename F::Packed* panel) {
  const auto* data = static_cast<const typename F::Source*>(source.data) + first_line;
  for (int64_t kk = 0; kk < k; kk += F::kUnit) {
    bool plain = kk + F::kUnit <= k;
    for (int64_t u = 0; u < F::kUnit && plain; ++u) plain = source.k_scale[kk + u] == 1.0f;
    if (!plain) {
      pack_generic<F>(source, first_line, width, k, kk, kk + F::kUnit, width, panel);
      continue;
    }
    const auto* row = data + kk * source.k_stride;
    for (int line = 0; line < width; line += 4) {
      F::copy4(row + line, source.k_stride, panel + kk * width + line * F::kUnit);
    }
  }
}

template <class F>
static void pack_panel(const gemm::Operand& source, int64_t first_line, int64_t lines, int64_t k,
                       int width, typename F::Packed* panel) {
  const int64_t k_end = (k + F::kUnit - 1) / F::kUnit * F::kUnit;
  int64_t k_done = 0;
  if constexpr (F::kHasQuad) {
    const bool whole = lines == width && width % 4 == 0;
    if (whole && source.k_scale != nullptr && source.line_stride == 1) {
      return pack_scaled_lines<F>(source, first_line, k, width, panel);
    }
    if (whole && source.k_scale == nullptr) {
      if (source.k_stride == 1) {
        k_done = pack_along_k<F>(source, first_line, k, width, panel);
      } else if (source.line_stride == 1) {
        k_done = pack_along_lines<F>(source, first_line, k, width, panel);
      }
    }
  }
  pack_generic<F>(source, first_line, lines, k, k_done, k_end, width, panel);
}

template <class F>
static void pack(const gemm::Operand& source, int64_t lines, int64_t k, int width, void* panels) {
  const int64_t stride = (k + F::kUnit - 1) / F::kUnit * F::kUnit * width;
  auto* out = static_cast<typename F::Packed*>(panels);
  for (int64_t line = 0; line < lines; line += width, out += stride) {
    const int64_t here = lines - line < width ? lines - line : width;
    pack_panel<F>(source, line, here, k, width, out);
  }
}
