// exp(x) over the vector of a simd header, included inside a level's anonymous namespace.
//
// x = n · ln 2 + r, |r| ≤ ln 2 / 2; e^r by its Taylor polynomial of degree 7, whose first omitted
// term is below 2^-28; then a scale by 2^n. Relative error below 2^-22 for results in the normal
// range, subnormals rounded once more; overflow gives infinity, −infinity gives +0, NaN stays NaN.

inline F32 exp(F32 x) {
  // Beyond these limits the result rounds to 0 or overflows anyway, and n stays an exact integer.
  const F32 limited = clamp(x, -104.0f, 89.0f);
  const F32 n = round_int(mul(limited, broadcast(0x1.715476p0f)));
  // ln 2 in two parts; n times the first, of 9 significant bits, is exact.
  F32 r = madd(n, broadcast(-0x1.63p-1f), limited);
  r = madd(n, broadcast(0x1.bd0106p-13f), r);
  F32 e = broadcast(1.0f / 5040.0f);
  e = madd(e, r, broadcast(1.0f / 720.0f));
  e = madd(e, r, broadcast(1.0f / 120.0f));
  e = madd(e, r, broadcast(1.0f / 24.0f));
  e = madd(e, r, broadcast(1.0f / 6.0f));
  e = madd(e, r, broadcast(0.5f));
  e = madd(e, r, broadcast(1.0f));
  e = madd(e, r, broadcast(1.0f));
  return scale_pow2(e, n);
}
