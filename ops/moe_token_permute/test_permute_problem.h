// One call of a permute with its data, and the ways to run and judge it. Elements are random bits:
// NaN payloads, zeros of both signs and all else must arrive as they are.
#pragma once

#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "moe_token_permute/permute_check.h"
#include "moe_token_permute/ref_permute.h"
#include "moe_token_permute/test_session.h"

namespace npuless::moe_token_permute {

inline uint32_t element_bits(const TestTensor& tensor, DType dtype, int64_t i) {
  const int64_t size = dtype_size(dtype);
  if (size == 1) return tensor.at<uint8_t>(i);
  return size == 2 ? tensor.at<uint16_t>(i) : tensor.at<uint32_t>(i);
}

inline Bits read_bits(const TestTensor& tensor, DType dtype) {
  Bits bits;
  for (int64_t i = 0; i < tensor.count(); ++i) bits.push_back(element_bits(tensor, dtype, i));
  return bits;
}

inline void write_bits(const TestTensor& tensor, DType dtype, int64_t i, uint32_t element) {
  switch (dtype_size(dtype)) {
    case 1:
      tensor.at<uint8_t>(i) = static_cast<uint8_t>(element);
      break;
    case 2:
      tensor.at<uint16_t>(i) = static_cast<uint16_t>(element);
      break;
    default:
      tensor.at<uint32_t>(i) = element;
  }
}

inline void write_random_bits(const TestTensor& tensor, DType dtype, std::mt19937& random) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    write_bits(tensor, dtype, i, static_cast<uint32_t>(random()));
  }
}

// Every element has the expected bits and no byte between elements changed. Rubs the elements out
// on the way: what remains must be poison. Nothing expected: nothing was written.
inline testing::AssertionResult has_bits(const TestTensor& tensor, DType dtype,
                                         const Bits& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto element = static_cast<int64_t>(i);
    const uint32_t got = element_bits(tensor, dtype, element);
    if (got != expected[i]) {
      return testing::AssertionFailure()
             << "element " << i << " is 0x" << std::hex << got << ", not 0x" << expected[i];
    }
    write_bits(tensor, dtype, element, 0xFFFFFFFFu);
  }
  for (const unsigned char byte : tensor.bytes()) {
    if (byte != 0xFF) return testing::AssertionFailure() << "a byte between elements changed";
  }
  return testing::AssertionSuccess();
}

inline Bits as_bits(const std::vector<int32_t>& values) {
  return {values.begin(), values.end()};
}

// How the slots choose their experts.
enum class Routing { kEven, kOneExpert, kSigned, kWide };
inline constexpr Routing kRoutings[] = {Routing::kEven, Routing::kOneExpert, Routing::kSigned,
                                        Routing::kWide};

inline int64_t draw_id(Routing routing, DType dtype, std::mt19937& random) {
  const auto bits = static_cast<int64_t>(random());
  switch (routing) {
    case Routing::kOneExpert:
      return 5;
    case Routing::kSigned:
      return bits % 7 - 3;
    case Routing::kWide:
      return dtype == DType::kInt64 ? (bits << 32) ^ static_cast<int64_t>(random())
                                    : static_cast<int32_t>(bits);
    default:
      return bits % 6;
  }
}

struct PermuteCall {
  explicit PermuteCall(const Case& c) : shape(c), trailing{c.hidden} {}

  Case shape;
  std::vector<int64_t> trailing;  // the dimensions of a row
  DType dtype = DType::kBfloat16;
  DType ids = DType::kInt32;
  Routing routing = Routing::kEven;
  std::optional<Range> range;  // given: aclnnMoeTokenPermuteWithEp
  int64_t num_out_tokens = 0;
  bool probs = false;
  int64_t extra_rows = 0;  // beyond those the range selects
  LayoutOf inputs = contiguous;
  LayoutOf outputs = contiguous;

  int64_t slots() const { return shape.tokens * shape.topk; }
  Range kept() const {
    if (range) return *range;
    const int64_t rows = num_out_tokens > 0 ? num_out_tokens : num_out_tokens + slots();
    return {0, std::clamp<int64_t>(rows, 0, slots())};
  }
  int64_t rows() const { return kept().end - kept().begin + extra_rows; }
  std::vector<int64_t> dims(int64_t first) const {
    std::vector<int64_t> all{first};
    all.insert(all.end(), trailing.begin(), trailing.end());
    return all;
  }
  // One expert for each token comes as a vector.
  std::vector<int64_t> slot_dims() const {
    if (shape.topk == 1) return {shape.tokens};
    return {shape.tokens, shape.topk};
  }
};

class PermuteProblem {
 public:
  explicit PermuteProblem(const PermuteCall& call)
      : call_(call),
        tokens(call.dtype, call.dims(call.shape.tokens), call.inputs(call.dims(call.shape.tokens))),
        indices(call.ids, call.slot_dims(), call.inputs(call.slot_dims())),
        probs(call.dtype, call.slot_dims(), call.inputs(call.slot_dims())),
        permuted(call.dtype, call.dims(call.rows()), call.outputs(call.dims(call.rows()))),
        sorted_indices(DType::kInt32, {call.slots()}, call.outputs({call.slots()})),
        permuted_probs(call.dtype, {call.rows()}, call.outputs({call.rows()})) {
    std::mt19937 random(4321);
    write_random_bits(tokens, call.dtype, random);
    write_random_bits(probs, call.dtype, random);
    for (int64_t slot = 0; slot < call.slots(); ++slot) {
      write_id(slot, draw_id(call.routing, call.ids, random));
    }
    if (call.range) {
      const int64_t ends[] = {call.range->begin, call.range->end};
      range_.reset(aclCreateIntArray(ends, 2));
    }
    compute_model();
  }

  const PermuteCall& call() const { return call_; }
  const aclIntArray* range() const { return range_.get(); }
  const aclTensor* given_probs() const { return call_.probs ? probs.handle() : nullptr; }

  void write_id(int64_t slot, int64_t id) const {
    if (call_.ids == DType::kInt64) {
      indices.at<int64_t>(slot) = id;
    } else {
      indices.at<int32_t>(slot) = static_cast<int32_t>(id);
    }
  }
  std::vector<int64_t> ids() const {
    if (call_.ids == DType::kInt64) return indices.read<int64_t>();
    const auto narrow_ids = indices.read<int32_t>();
    return {narrow_ids.begin(), narrow_ids.end()};
  }

  // After inputs were changed.
  void compute_model() {
    const Range kept = call_.kept();
    const int64_t cols = call_.shape.hidden;
    rank_ = model_rank(ids());
    model_rows_ = model_permuted(read_bits(tokens, call_.dtype), rank_, call_.shape.topk,
                                 kept.begin, kept.end, call_.rows(), cols);
    model_probs_.clear();
    if (call_.probs) {
      model_probs_ = model_permuted(read_bits(probs, call_.dtype), rank_, 1, kept.begin, kept.end,
                                    call_.rows(), 1);
    }
    inputs_before_ = inputs();
  }
  const std::vector<int32_t>& rank() const { return rank_; }

  PermuteTensors tensors() const {
    return {tokens.handle(),         indices.handle(),
            given_probs(),           range(),
            call_.num_out_tokens,    false,
            permuted.handle(),       sorted_indices.handle(),
            permuted_probs.handle(), call_.range.has_value()};
  }
  PermutePlan plan() const {
    PermutePlan plan{};
    EXPECT_EQ(check_permute(tensors()).code(), 0);
    EXPECT_EQ(plan_permute(unpack_permute(tensors()), plan).code(), 0);
    return plan;
  }

  void poison_outputs() const {
    permuted.poison();
    sorted_indices.poison();
    permuted_probs.poison();
  }

  void expect_model(const std::string& what) const {
    EXPECT_TRUE(has_bits(permuted, call_.dtype, model_rows_)) << what << ": permuted tokens";
    EXPECT_TRUE(has_bits(sorted_indices, DType::kInt32, as_bits(rank_))) << what << ": indices";
    EXPECT_TRUE(has_bits(permuted_probs, call_.dtype, model_probs_)) << what << ": probs";
    EXPECT_TRUE(inputs() == inputs_before_) << what << ": an input changed";
  }

 private:
  struct DestroyRange {
    void operator()(const aclIntArray* range) const { aclDestroyIntArray(range); }
  };

  std::vector<std::vector<unsigned char>> inputs() const {
    return {tokens.bytes(), indices.bytes(), probs.bytes()};
  }

  PermuteCall call_;
  std::unique_ptr<const aclIntArray, DestroyRange> range_;
  std::vector<int32_t> rank_;
  Bits model_rows_;
  Bits model_probs_;
  std::vector<std::vector<unsigned char>> inputs_before_;

 public:
  TestTensor tokens;
  TestTensor indices;
  TestTensor probs;
  TestTensor permuted;
  TestTensor sorted_indices;
  TestTensor permuted_probs;
};

// Memory of exactly the size that phase 1 told, poisoned, with a page behind it that may not be
// touched; at no particular alignment.
class Workspace {
 public:
  explicit Workspace(uint64_t size) : memory_(DType::kInt8, {static_cast<int64_t>(size)}) {}
  void* data() const { return memory_.count() == 0 ? nullptr : &memory_.at<char>(0); }

 private:
  TestTensor memory_;
};

inline aclnnStatus launch_and_wait(aclnnStatus (*phase2)(void*, uint64_t, aclOpExecutor*,
                                                         aclrtStream),
                                   const Planned& planned) {
  const Workspace workspace(planned.workspace_size);
  const aclnnStatus status =
      phase2(workspace.data(), planned.workspace_size, planned.executor, Session::stream());
  return status != ACL_SUCCESS ? status : aclrtSynchronizeStream(Session::stream());
}

inline void run(const PermuteProblem& p) {
  const PermuteCall& call = p.call();
  Planned planned;
  if (call.range) {
    ASSERT_EQ(aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
                  p.tokens.handle(), p.indices.handle(), p.given_probs(), p.range(),
                  call.num_out_tokens, false, p.permuted.handle(), p.sorted_indices.handle(),
                  p.permuted_probs.handle(), &planned.workspace_size, &planned.executor),
              ACL_SUCCESS)
        << aclGetRecentErrMsg();
    ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithEp, planned), ACL_SUCCESS);
  } else {
    ASSERT_EQ(aclnnMoeTokenPermuteGetWorkspaceSize(p.tokens.handle(), p.indices.handle(),
                                                   call.num_out_tokens, false, p.permuted.handle(),
                                                   p.sorted_indices.handle(),
                                                   &planned.workspace_size, &planned.executor),
              ACL_SUCCESS)
        << aclGetRecentErrMsg();
    ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermute, planned), ACL_SUCCESS);
  }
}

inline void expect_model_on_every_level(const PermuteProblem& problem, const std::string& what,
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

}  // namespace npuless::moe_token_permute
