#include "search/space/space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace kvsweep::search {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelGeometry geometry_of(int layers) {
  ModelGeometry geometry;
  geometry.family = "llama";
  geometry.max_context = 2048;
  geometry.layers.assign(static_cast<size_t>(layers), {3, 64});
  return geometry;
}

Scheme scheme_of(const std::string& name) {
  SchemeOptions options;
  options.name = name;
  return make_scheme(options).value();
}

std::vector<Pair> pairs(const std::vector<std::string>& names) {
  std::vector<Pair> result;
  for (const std::string& name : names) result.push_back(pair_from(name).value());
  return result;
}

template <typename Pairs>
std::vector<std::string> names(const Pairs& candidates) {
  std::vector<std::string> result;
  for (const auto& pair : candidates) result.push_back(to_string(pair));
  return result;
}

Result<Space> groups_of(int layers, int groups, const std::vector<std::string>& candidates,
                        const std::string& scheme = "per-token") {
  return even_groups(layers, groups, pairs(candidates), scheme_of(scheme), geometry_of(layers),
                     BaseType::fp16);
}

TEST(EvenGroups, RunsDifferByAtMostOneAndCoverEveryLayerOnce) {
  for (int layers = 1; layers <= 40; ++layers) {
    for (int groups = 1; groups <= layers; ++groups) {
      const Space space = groups_of(layers, groups, {"K8V8", "K2V2"}).value();
      ASSERT_EQ(space.groups.size(), static_cast<size_t>(groups));
      int next = 0;
      size_t shortest = space.groups[0].layers.size();
      size_t longest = shortest;
      for (const Group& group : space.groups) {
        for (int layer : group.layers) EXPECT_EQ(layer, next++);
        shortest = std::min(shortest, group.layers.size());
        longest = std::max(longest, group.layers.size());
      }
      EXPECT_EQ(next, layers);
      EXPECT_LE(longest - shortest, 1u);
    }
  }
}

TEST(EvenGroups, ThirtyLayersInEight) {
  const Space space = groups_of(30, 8, {"K8V8", "K4V4", "K2V2"}).value();
  EXPECT_THAT(space.groups[0].layers, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(space.groups[5].layers, ElementsAre(20, 21, 22, 23));
  EXPECT_THAT(space.groups[6].layers, ElementsAre(24, 25, 26));
  EXPECT_THAT(space.groups[7].layers, ElementsAre(27, 28, 29));
  EXPECT_EQ(space.size(), 6561);  // 3^8
}

// Per token, whole head of 64, fp16 scale and zero: 32/64 = 0.5 bits beside the codes, on both
// sides. So K2V2 costs 5 bits per K and V element pair, K2V4 and K4V2 7, K4V4 9, K2V8 and K8V2 11,
// K8V8 17 and the baseline 32. Equal bytes: by name.
TEST(EvenGroups, CandidatesAscendByBytesThenName) {
  const Space space =
      groups_of(4, 2, {"K16V16", "K8V2", "K4V2", "K8V8", "K2V8", "K4V4", "K2V4", "K2V2"}).value();
  EXPECT_THAT(names(space.groups[1].candidates),
              ElementsAre("K2V2", "K2V4", "K4V2", "K4V4", "K2V8", "K8V2", "K8V8", "K16V16"));
}

// KIVI with fp16: keys per channel in groups of 32 tokens, one scale and minimum for 32 elements,
// 1 bit per element; values per token in groups of 32 channels, also 1 bit. K16V2 = 16 + 3,
// K8V8 = 9 + 9 = 18: the mixed pair with one side in the base type comes after K8V8.
TEST(EvenGroups, TheSchemeDecidesTheOrder) {
  const Space space = groups_of(4, 1, {"K16V2", "K8V8"}, "kivi").value();
  EXPECT_THAT(names(space.groups[0].candidates), ElementsAre("K8V8", "K16V2"));
}

TEST(EvenGroups, RefusesImpossibleRequests) {
  EXPECT_THAT(groups_of(4, 0, {"K8V8"}).error().message, HasSubstr("use 1 to 4"));
  EXPECT_THAT(groups_of(4, 5, {"K8V8"}).error().message, HasSubstr("search.groups is 5"));
  EXPECT_THAT(groups_of(4, 2, {}).error().message, HasSubstr("search.candidates is empty"));
  EXPECT_THAT(groups_of(4, 2, {"K8V4", "K2V2", "K8V4"}).error().message,
              HasSubstr("K8V4 more than once"));
  const auto other =
      even_groups(5, 2, pairs({"K8V8"}), scheme_of("per-token"), geometry_of(4), BaseType::fp16);
  EXPECT_THAT(other.error().message, HasSubstr("4 layers"));
  EXPECT_EQ(other.error().code, ErrorCode::bad_input);
}

TEST(Space, ContainsAndDecode) {
  const Space space = groups_of(5, 2, {"K8V8", "K4V4", "K2V2"}).value();
  EXPECT_TRUE(space.contains({0, 2}));
  for (const Genome& wrong : {Genome{}, Genome{0}, Genome{0, 3}, Genome{-1, 0}, Genome{0, 0, 0}}) {
    EXPECT_FALSE(space.contains(wrong));
    EXPECT_THROW((void)space.decode(wrong, scheme_of("kivi")), std::invalid_argument);
  }
  const PrecisionMap map = space.decode({2, 0}, scheme_of("kivi"));
  EXPECT_EQ(map.scheme, scheme_of("kivi"));
  EXPECT_THAT(names(map.layers), ElementsAre("K8V8", "K8V8", "K8V8", "K2V2", "K2V2"));
}

}  // namespace
}  // namespace kvsweep::search
