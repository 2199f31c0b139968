// One call of the permute with a routing map, or of its gradient, with its data.
#pragma once

#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "moe_token_permute/permute_with_routing_map_check.h"
#include "moe_token_permute/ref_map.h"
#include "moe_token_permute/test_permute_problem.h"

namespace npuless::moe_token_permute {

// How many experts a token chooses: exactly topk, up to topk, any number, all, none.
enum class Choice { kExact, kFewer, kAny, kAll, kNone };
inline constexpr Choice kChoices[] = {Choice::kExact, Choice::kFewer, Choice::kAny, Choice::kAll,
                                      Choice::kNone};

struct MapCall {
  int64_t tokens;
  int64_t experts;
  int64_t hidden;
  int64_t num_out_tokens;
  bool drop_and_pad = false;
  Choice choice = Choice::kExact;
  bool probs = true;
  DType dtype = DType::kBfloat16;
  DType probs_dtype = DType::kBfloat16;
  DType map_dtype = DType::kBool;
  LayoutOf inputs = contiguous;
  LayoutOf outputs = contiguous;

  int64_t unit() const { return max64(1, drop_and_pad ? experts : tokens); }
  int64_t per_unit() const { return num_out_tokens / unit(); }
  int64_t rows() const { return per_unit() * unit(); }
};

inline std::vector<bool> choose(const MapCall& call, std::mt19937& random) {
  std::vector<bool> chosen;
  const int64_t topk = std::min(call.experts, call.num_out_tokens / max64(1, call.tokens));
  for (int64_t t = 0; t < call.tokens; ++t) {
    std::vector<bool> row(static_cast<size_t>(call.experts), call.choice == Choice::kAll);
    int64_t count = topk;
    if (call.choice == Choice::kFewer) count = static_cast<int64_t>(random()) % (topk + 1);
    if (call.choice == Choice::kAny) count = static_cast<int64_t>(random()) % (call.experts + 1);
    if (call.choice == Choice::kNone) count = 0;
    if (call.choice != Choice::kAll) {
      std::fill_n(row.begin(), count, true);
      std::shuffle(row.begin(), row.end(), random);
    }
    chosen.insert(chosen.end(), row.begin(), row.end());
  }
  return chosen;
}

// Any byte but 0 is true, in a BOOL map too.
inline void write_map(const TestTensor& map, const std::vector<bool>& chosen,
                      std::mt19937& random) {
  constexpr unsigned char kTrue[] = {1, 2, 0x80, 0xFF};
  for (size_t i = 0; i < chosen.size(); ++i) {
    map.at<unsigned char>(static_cast<int64_t>(i)) =
        chosen[i] ? kTrue[random() % 4] : static_cast<unsigned char>(0);
  }
}

inline RefMap read_map(const TestTensor& map) {
  RefMap ref{map.dim(0), map.dim(1), {}};
  for (const unsigned char byte : map.read<unsigned char>()) ref.chosen.push_back(byte != 0);
  return ref;
}

class MapProblem {
 public:
  explicit MapProblem(const MapCall& call)
      : call_(call),
        tokens(call.dtype, {call.tokens, call.hidden}, call.inputs({call.tokens, call.hidden})),
        map(call.map_dtype, {call.tokens, call.experts}, call.inputs({call.tokens, call.experts})),
        probs(call.probs_dtype, {call.tokens, call.experts},
              call.inputs({call.tokens, call.experts})),
        permuted(call.dtype, {call.rows(), call.hidden}, call.outputs({call.rows(), call.hidden})),
        permuted_probs(call.probs_dtype, {call.rows()}, call.outputs({call.rows()})),
        sorted_indices(DType::kInt32, {call.rows()}, call.outputs({call.rows()})) {
    std::mt19937 random(99);
    write_random_bits(tokens, call.dtype, random);
    write_random_bits(probs, call.probs_dtype, random);
    write_map(map, choose(call, random), random);
    compute_model();
  }

  const MapCall& call() const { return call_; }
  const aclTensor* given_probs() const { return call_.probs ? probs.handle() : nullptr; }
  aclTensor* given_probs_out() const { return call_.probs ? permuted_probs.handle() : nullptr; }
  const std::vector<int32_t>& model_indices() const { return indices_; }

  void poison_outputs() const {
    permuted.poison();
    permuted_probs.poison();
    sorted_indices.poison();
  }

  // After inputs were changed.
  void compute_model() {
    const RefMap ref = read_map(map);
    auto rows = call_.drop_and_pad ? model_padded_rows(ref, call_.per_unit()) : model_rows(ref);
    if (call_.drop_and_pad) {
      indices_.clear();
      for (const auto& [token, expert] : rows) indices_.push_back(static_cast<int32_t>(token));
    } else {
      indices_ = model_map_indices(ref, rows, call_.per_unit(), call_.rows());
    }
    rows.resize(std::min(rows.size(), static_cast<size_t>(call_.rows())));
    const Bits from = read_bits(tokens, call_.dtype);
    const Bits from_probs = read_bits(probs, call_.probs_dtype);
    rows_.assign(static_cast<size_t>(call_.rows() * call_.hidden), 0);
    probs_.assign(call_.probs ? static_cast<size_t>(call_.rows()) : 0, 0);
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto [token, expert] = rows[r];
      std::copy_n(from.begin() + token * call_.hidden, call_.hidden,
                  rows_.begin() + static_cast<int64_t>(r) * call_.hidden);
      if (call_.probs) {
        probs_[r] = from_probs[static_cast<size_t>(token * call_.experts + expert)];
      }
    }
    inputs_before_ = inputs();
  }

  void expect_model(const std::string& what) const {
    EXPECT_TRUE(has_bits(permuted, call_.dtype, rows_)) << what << ": permuted tokens";
    EXPECT_TRUE(has_bits(permuted_probs, call_.probs_dtype, probs_)) << what << ": probs";
    EXPECT_TRUE(has_bits(sorted_indices, DType::kInt32, as_bits(indices_))) << what << ": indices";
    EXPECT_TRUE(inputs() == inputs_before_) << what << ": an input changed";
  }

 private:
  std::vector<std::vector<unsigned char>> inputs() const {
    return {tokens.bytes(), map.bytes(), probs.bytes()};
  }

  MapCall call_;
  std::vector<int32_t> indices_;
  Bits rows_;
  Bits probs_;
  std::vector<std::vector<unsigned char>> inputs_before_;

 public:
  TestTensor tokens;
  TestTensor map;
  TestTensor probs;
  TestTensor permuted;
  TestTensor permuted_probs;
  TestTensor sorted_indices;
};

inline void run(const MapProblem& p) {
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
                p.tokens.handle(), p.map.handle(), p.given_probs(), p.call().num_out_tokens,
                p.call().drop_and_pad, p.permuted.handle(), p.given_probs_out(),
                p.sorted_indices.handle(), &planned.workspace_size, &planned.executor),
            ACL_SUCCESS)
      << aclGetRecentErrMsg();
  ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithRoutingMap, planned), ACL_SUCCESS);
}

// The gradient of a MapCall, with the indices that the call gives, some of them spoilt.
template <class T>
class MapGradProblem {
 public:
  explicit MapGradProblem(const MapCall& call, bool spoil = false)
      : call_(call),
        forward_(call),
        grad(kDType<T>, {call.rows(), call.hidden}, call.inputs({call.rows(), call.hidden})),
        probs_grad(call.probs_dtype, {call.rows()}, call.inputs({call.rows()})),
        indices(DType::kInt32, {call.rows()}, call.inputs({call.rows()})),
        token_grad(kDType<T>, {call.tokens, call.hidden}, call.outputs({call.tokens, call.hidden})),
        probs_out(call.probs_dtype, {call.tokens, call.experts},
                  call.outputs({call.tokens, call.experts})) {
    std::mt19937 random(7);
    for (int64_t i = 0; i < grad.count(); ++i) grad.template at<T>(i) = any_number<T>(random);
    write_random_bits(probs_grad, call.probs_dtype, random);
    std::vector<int32_t> values = forward_.model_indices();
    const int32_t wrong[] = {-1, INT32_MIN, INT32_MAX, static_cast<int32_t>(call.rows()), 0};
    for (int32_t& value : values) {
      if (spoil && random() % 5 == 0) value = wrong[random() % std::size(wrong)];
    }
    indices.write(values);
    compute_model();
  }

  const MapCall& call() const { return call_; }
  const TestTensor& map() const { return forward_.map; }
  const aclTensor* given_probs() const { return call_.probs ? probs_grad.handle() : nullptr; }

  void poison_outputs() const {
    token_grad.poison();
    probs_out.poison();
  }

  void compute_model() {
    const auto slots = indices.template read<int32_t>();
    const auto rows = grad.template read<T>();
    tokens_ =
        call_.drop_and_pad
            ? model_padded_grad(rows, slots, call_.tokens, call_.hidden)
            : model_token_grad<T>({call_.tokens, call_.per_unit(), call_.hidden, 0, call_.rows()},
                                  rows, slots);
    probs_.clear();
    if (!call_.probs) return;
    const Bits from = read_bits(probs_grad, call_.probs_dtype);
    probs_.assign(static_cast<size_t>(call_.tokens * call_.experts), 0);
    const auto places = model_rows(read_map(forward_.map));
    for (size_t r = 0; r < from.size(); ++r) {
      int64_t token = -1;
      int64_t expert = static_cast<int64_t>(r) / max64(1, call_.per_unit());
      if (call_.drop_and_pad) {
        token = slots[r];
      } else if (r < places.size()) {
        std::tie(token, expert) = places[r];
      }
      if (token < 0 || token >= call_.tokens) continue;
      probs_[static_cast<size_t>(token * call_.experts + expert)] = from[r];
    }
  }

  void expect_model(const std::string& what) const {
    for (int64_t i = 0; i < token_grad.count(); ++i) {
      T& got = token_grad.template at<T>(i);
      const T& expected = tokens_[static_cast<size_t>(i)];
      const bool both_nan = std::isnan(widen(got)) && std::isnan(widen(expected));
      ASSERT_TRUE(both_nan || std::memcmp(&got, &expected, sizeof(T)) == 0)
          << what << ": token gradient " << i << " is " << widen(got) << ", not "
          << widen(expected);
      std::memset(&got, 0xFF, sizeof(T));
    }
    for (const unsigned char byte : token_grad.bytes()) ASSERT_EQ(byte, 0xFF) << what;
    EXPECT_TRUE(has_bits(probs_out, call_.probs_dtype, probs_)) << what << ": probs gradient";
  }

 private:
  MapCall call_;
  MapProblem forward_;
  std::vector<T> tokens_;
  Bits probs_;

 public:
  TestTensor grad;
  TestTensor probs_grad;
  TestTensor indices;
  TestTensor token_grad;
  TestTensor probs_out;
};

template <class T>
void run(const MapGradProblem<T>& p) {
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
                p.grad.handle(), p.given_probs(), p.indices.handle(),
                p.call().probs ? p.map().handle() : nullptr, p.call().experts, p.call().tokens,
                p.call().drop_and_pad, p.token_grad.handle(),
                p.call().probs ? p.probs_out.handle() : nullptr, &planned.workspace_size,
                &planned.executor),
            ACL_SUCCESS)
      << aclGetRecentErrMsg();
  ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithRoutingMapGrad, planned), ACL_SUCCESS);
}

template <class PROBLEM>
void expect_map_model(const PROBLEM& problem, const std::string& what,
                      const std::vector<int>& threads = {1, 2, 3, 7}) {
  for_each_level([&](const char* level) {
    for (const int count : threads) {
      ASSERT_TRUE(set_num_threads(count).ok());
      problem.poison_outputs();
      run(problem);
      problem.expect_model(what + ", " + level + ", " + std::to_string(count) + " threads");
    }
  });
}

inline std::string describe(const MapCall& call) {
  return std::to_string(call.tokens) + " tokens, " + std::to_string(call.experts) + " experts, " +
         std::to_string(call.num_out_tokens) + " out, choice " +
         std::to_string(static_cast<int>(call.choice)) + (call.drop_and_pad ? ", padded" : "");
}

}  // namespace npuless::moe_token_permute
