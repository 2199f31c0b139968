// References of the unpermute with a routing map and of its gradient: the terms of the sum in
// order, from which the scalar models and the formula in double follow. Contiguous vectors.
#pragma once

#include <vector>

#include "moe_token_permute/ref_unpermute.h"

namespace npuless::moe_token_permute {

struct RefMapUnpermute {
  int64_t tokens;
  int64_t experts;
  int64_t hidden;
  int64_t rows;
  bool padded;
  bool has_probs;
  std::vector<bool> chosen;      // [tokens, experts]
  std::vector<int32_t> indices;  // [rows]

  struct Term {
    size_t token;
    size_t row;
    int64_t expert;  // −1: a slot beyond those that the token chose
    bool first;      // initialises the sum

    size_t prob(int64_t experts) const {
      return token * static_cast<size_t>(experts) + static_cast<size_t>(expert);
    }
  };

  std::vector<Term> terms() const { return padded ? padded_terms() : indexed_terms(); }

  // Of each slot in index mode, of each row in padded mode; −1 where there is none.
  std::vector<int64_t> prob_of_each() const {
    std::vector<int64_t> probs(static_cast<size_t>(rows), -1);
    for (size_t i = 0; i < probs.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i);
      const int64_t token = padded ? indices[i] : at / topk();
      const int64_t expert = padded ? at / (rows / experts) : chosen_expert(token, at % topk());
      if (expert >= 0 && token >= 0 && token < tokens) probs[i] = token * experts + expert;
    }
    return probs;
  }

  int64_t topk() const { return rows / tokens; }

 private:
  int64_t chosen_expert(int64_t token, int64_t j) const {
    for (int64_t e = 0; e < experts; ++e) {
      if (chosen[static_cast<size_t>(token * experts + e)] && j-- == 0) return e;
    }
    return -1;
  }

  std::vector<Term> indexed_terms() const {
    std::vector<Term> terms;
    for (int64_t slot = 0; slot < rows; ++slot) {
      const int64_t row = indices[static_cast<size_t>(slot)];
      if (row < 0 || row >= rows) continue;
      const int64_t token = slot / topk();
      terms.push_back({static_cast<size_t>(token), static_cast<size_t>(row),
                       chosen_expert(token, slot % topk()), slot % topk() == 0});
    }
    return terms;
  }

  std::vector<Term> padded_terms() const {
    std::vector<Term> terms;
    std::vector<bool> seen(static_cast<size_t>(tokens), false);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t token = indices[static_cast<size_t>(row)];
      if (token < 0 || token >= tokens) continue;
      const auto t = static_cast<size_t>(token);
      terms.push_back({t, static_cast<size_t>(row), row / (rows / experts), !seen[t]});
      seen[t] = true;
    }
    return terms;
  }
};

template <class T, class P>
std::vector<T> model_map_unpermute(const RefMapUnpermute& ref, const std::vector<T>& rows,
                                   const std::vector<P>& probs) {
  const auto hidden = static_cast<size_t>(ref.hidden);
  std::vector<float> sums(static_cast<size_t>(ref.tokens) * hidden, 0.0f);
  for (const auto& term : ref.terms()) {
    if (ref.has_probs && term.expert < 0) continue;
    const float weight = ref.has_probs ? widen(probs[term.prob(ref.experts)]) : 1.0f;
    if (weight == 0.0f) continue;
    for (size_t h = 0; h < hidden; ++h) {
      const float product = weight * widen(rows[term.row * hidden + h]);
      float& sum = sums[term.token * hidden + h];
      sum = term.first ? product : sum + product;
    }
  }
  std::vector<T> out;
  for (const float sum : sums) out.push_back(narrow<T>(sum));
  return out;
}

template <class T, class P>
std::vector<T> model_map_permuted_grad(const RefMapUnpermute& ref, const std::vector<T>& grad,
                                       const std::vector<P>& probs) {
  const auto hidden = static_cast<size_t>(ref.hidden);
  std::vector<T> out(static_cast<size_t>(ref.rows) * hidden, T{});
  for (const auto& term : ref.terms()) {
    const float weight =
        !ref.has_probs || term.expert < 0 ? 0.0f : widen(probs[term.prob(ref.experts)]);
    for (size_t h = 0; h < hidden; ++h) {
      const T g = grad[term.token * hidden + h];
      out[term.row * hidden + h] = ref.has_probs ? narrow<T>(weight * widen(g)) : g;
    }
  }
  return out;
}

template <class T, class P>
std::vector<P> model_map_probs_grad(const RefMapUnpermute& ref, const std::vector<T>& rows,
                                    const std::vector<T>& grad) {
  const auto hidden = static_cast<size_t>(ref.hidden);
  std::vector<float> sums(static_cast<size_t>(ref.tokens * ref.experts), 0.0f);
  std::vector<bool> seen(sums.size(), false);
  for (const auto& term : ref.terms()) {
    if (term.expert < 0) continue;
    const size_t prob = term.prob(ref.experts);
    const float dot =
        model_dot(rows.data() + term.row * hidden, grad.data() + term.token * hidden, hidden);
    sums[prob] = seen[prob] ? sums[prob] + dot : dot;
    seen[prob] = true;
  }
  std::vector<P> out;
  for (const float sum : sums) out.push_back(narrow<P>(sum));
  return out;
}

// Σ out · grad in double, whose gradients are asked for.
inline double map_loss(const RefMapUnpermute& ref, const std::vector<double>& rows,
                       const std::vector<double>& probs, const std::vector<double>& grad) {
  const auto hidden = static_cast<size_t>(ref.hidden);
  double loss = 0;
  for (const auto& term : ref.terms()) {
    if (ref.has_probs && term.expert < 0) continue;
    const double weight = ref.has_probs ? probs[term.prob(ref.experts)] : 1.0;
    for (size_t h = 0; h < hidden; ++h) {
      loss += weight * rows[term.row * hidden + h] * grad[term.token * hidden + h];
    }
  }
  return loss;
}

}  // namespace npuless::moe_token_permute
