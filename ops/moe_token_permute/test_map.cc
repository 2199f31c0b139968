// The permute with a routing map and its gradient against the model, bit for bit, over shapes,
// choices, types, layouts, ISA levels and numbers of threads.
#include "moe_token_permute/test_layout.h"
#include "moe_token_permute/test_map_problem.h"

namespace npuless::moe_token_permute {
namespace {

// tokens, experts, hidden, rows asked for. Tokens at and beside the chunks of 64; experts around
// eight, which are scanned at once (case C17), and around powers of two (cases D8, D9, D10, D14,
// E1); rows that do not divide.
constexpr MapCall kMapCases[] = {
    {1, 1, 1, 1},     {5, 4, 7, 12},     {7, 7, 33, 20},   {63, 8, 3, 126},   {64, 9, 2, 200},
    {65, 16, 5, 130}, {130, 17, 1, 390}, {33, 5, 65, 99},  {200, 33, 2, 201}, {11, 257, 3, 88},
    {3, 1024, 2, 96}, {70, 100, 4, 560}, {16, 6, 384, 50}, {4, 8, 2880, 8},   {9, 15, 17, 0},
};

// The same counts spread over experts.
MapCall padded(MapCall call) {
  call.drop_and_pad = true;
  return call;
}

struct Types {
  DType tokens;
  DType probs;
  DType map;
};
// Every pair of types there is (case L3).
constexpr Types kTypesOfMaps[] = {{DType::kBfloat16, DType::kBfloat16, DType::kBool},
                                  {DType::kBfloat16, DType::kFloat32, DType::kInt8},
                                  {DType::kFloat16, DType::kFloat16, DType::kInt8},
                                  {DType::kFloat32, DType::kFloat32, DType::kBool}};

MapCall with_types(MapCall call, const Types& types) {
  call.dtype = types.tokens;
  call.probs_dtype = types.probs;
  call.map_dtype = types.map;
  return call;
}

template <class Body>
void for_each_call(const Body& body) {
  int turn = 0;
  for (const MapCall& shape : kMapCases) {
    for (const Choice choice : kChoices) {
      for (MapCall call : {shape, padded(shape)}) {
        call.choice = choice;
        call.probs = turn % 5 != 4;
        body(with_types(call, kTypesOfMaps[turn++ % 4]));
      }
    }
  }
}

TEST(PermuteWithRoutingMap, GivesTheModelsBits) {
  for_each_call([](const MapCall& call) { expect_map_model(MapProblem(call), describe(call)); });
}

// Case J9: as many rows for each expert as there are tokens.
TEST(PermuteWithRoutingMap, PadsToTheLargestCapacity) {
  for (const Choice choice : kChoices) {
    MapCall call = padded({67, 5, 9, 67 * 5});
    call.choice = choice;
    expect_map_model(MapProblem(call), describe(call));
  }
}

template <class T>
void expect_grad(MapCall call, bool spoil) {
  call.dtype = kDType<T>;
  expect_map_model(MapGradProblem<T>(call, spoil), describe(call));
}

TEST(PermuteWithRoutingMapGrad, GivesTheModelsBits) {
  for (const bool spoil : {false, true}) {
    for_each_call([=](const MapCall& call) {
      if (call.dtype == DType::kFloat32) return expect_grad<float>(call, spoil);
      if (call.dtype == DType::kFloat16) return expect_grad<f16>(call, spoil);
      expect_grad<bf16>(call, spoil);
    });
  }
}

// One token in all rows: more than the kernel sums at once, so that both ways are compared.
TEST(PermuteWithRoutingMapGrad, SumsAnyNumberOfRows) {
  for (const int64_t rows : {511, 512, 513, 1500}) {
    for_each_type([&]<class T>(T) {
      MapCall call = padded({rows, 1, 5, rows});
      call.probs = false;
      call.dtype = kDType<T>;
      MapGradProblem<T> problem(call);
      problem.indices.write(std::vector<int32_t>(static_cast<size_t>(rows), 3));
      for (int64_t i = 0; i < problem.grad.count(); ++i) {  // no NaN, which would hide the rest
        problem.grad.template at<T>(i) = narrow<T>(static_cast<float>(i * 37 % 1009) * 0x1p-9f);
      }
      problem.compute_model();
      expect_map_model(problem, std::to_string(rows) + " rows", {2});
    });
  }
}

// Cases G3 and G4.
TEST(PermuteWithRoutingMap, HonoursEveryLayout) {
  int turn = 0;
  for (const MapCall& shape : {MapCall{5, 11, 65, 15}, MapCall{70, 3, 16, 140}}) {
    for (const LayoutOf in : kInputLayouts) {
      for (const LayoutOf out : kOutputLayouts) {
        for (MapCall call : {shape, padded(shape)}) {
          call = with_types(call, kTypesOfMaps[turn++ % 4]);
          call.choice = Choice::kAny;
          call.inputs = in;
          call.outputs = out;
          expect_map_model(MapProblem(call), describe(call), {2});
        }
      }
    }
  }
}

TEST(PermuteWithRoutingMapGrad, HonoursEveryLayout) {
  for (const MapCall& shape : {MapCall{5, 11, 65, 15}, MapCall{70, 3, 16, 140}}) {
    for (const LayoutOf in : kInputLayouts) {
      for (const LayoutOf out : kOutputLayouts) {
        for (MapCall call : {shape, padded(shape)}) {
          call.choice = Choice::kAny;
          call.inputs = in;
          call.outputs = out;
          call.probs_dtype = DType::kFloat32;
          expect_map_model(MapGradProblem<bf16>(call), describe(call), {2});
        }
      }
    }
  }
}

// Cases H4, H5: the same bits in every run.
TEST(PermuteWithRoutingMap, RepeatsTheSameBitsOnAnyNumberOfThreads) {
  for (MapCall call : {MapCall{1000, 16, 9, 3000}, padded({1000, 16, 9, 3200})}) {
    call.choice = Choice::kAny;
    const MapProblem forward(call);
    const MapGradProblem<bf16> backward(call);
    for (int repeat = 0; repeat < 4; ++repeat) {
      expect_map_model(forward, "forward", {1, 2, 7, 64});
      expect_map_model(backward, "gradient", {1, 2, 7, 64});
    }
  }
}

}  // namespace
}  // namespace npuless::moe_token_permute
