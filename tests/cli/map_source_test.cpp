#include "cli/map_source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kvsweep::cli {
namespace {

using ::testing::HasSubstr;

ModelGeometry eight_layers() {
  return {"llama", 2048, std::vector<LayerGeometry>(8, {2, 64})};
}

std::string layers_of(const std::string& source) {
  const auto named = load_map(source, {}, eight_layers());
  if (!named.ok()) return named.error().message;
  std::string text;
  for (const LayerPairs& layer : named->map.layers) text += to_string(layer) + " ";
  return text;
}

TEST(MapSource, UniformMapsAndTheirExceptions) {
  EXPECT_EQ(layers_of("uniform:K4V2"), "K4V2 K4V2 K4V2 K4V2 K4V2 K4V2 K4V2 K4V2 ");
  EXPECT_EQ(layers_of("uniform:KV4,0=K8V4"), layers_of("uniform:K4V4,0=K8V4"));
  EXPECT_EQ(layers_of("uniform:K4V4,5=K8V4,6-7=K2V8"), "K4V4 K4V4 K4V4 K4V4 K4V4 K8V4 K2V8 K2V8 ");
  EXPECT_EQ(layers_of("baseline,0-6=K8V8,3=baseline"),
            layers_of("uniform:K8V8,3=baseline,7=baseline"));
}

TEST(MapSource, ExceptionsForHeads) {
  EXPECT_EQ(layers_of("uniform:K4V4,5.0=K8V4"), "K4V4 K4V4 K4V4 K4V4 K4V4 K8V4|K4V4 K4V4 K4V4 ");
  EXPECT_EQ(layers_of("uniform:K4V4,2=K2V2,2-3.1=K8V4"),
            "K4V4 K4V4 K2V2|K8V4 K4V4|K8V4 K4V4 K4V4 K4V4 K4V4 ");
  EXPECT_EQ(layers_of("uniform:K4V4,5=K8V4|K4V4"), layers_of("uniform:K4V4,5.0=K8V4"));
  EXPECT_EQ(layers_of("uniform:K4V4,5.0-1=K8V4"), layers_of("uniform:K4V4,5=K8V4"));
  EXPECT_EQ(layers_of("baseline,5.0=K8V4,5.1=K8V4"), layers_of("baseline,5=K8V4"));
  EXPECT_EQ(layers_of("baseline,5=K8V4|K4V4,4-5=K8V4"), layers_of("baseline,4-5=K8V4"));
}

TEST(MapSource, ErrorsOfHeads) {
  EXPECT_THAT(layers_of("uniform:K4V4,5.2=K8V4"),
              HasSubstr("\"2\" names no KV heads of layer 5; they are 0 to 1"));
  EXPECT_THAT(layers_of("uniform:K4V4,5.=K8V4"), HasSubstr("\"\" is not the number of a KV head"));
  EXPECT_THAT(layers_of("uniform:K4V4,5.0.1=K8V4"), HasSubstr("is not LAYER=PAIR"));
  EXPECT_THAT(layers_of("uniform:K4V4,5.0=K8V4|K4V4"), HasSubstr("pair \"K8V4|K4V4\""));
  EXPECT_THAT(layers_of("uniform:K4V4,5=K8V4|K4V4|K2V2"),
              HasSubstr("layer 5, KV head 2: the map gives a pair for 3 KV heads"));
  EXPECT_THAT(layers_of("uniform:K4V4,5=K8V4|K4V4|K2V2,5.0=K8V8"), HasSubstr("layer 5, KV head 2"));
}

TEST(MapSource, OptionsWithoutEffectAreRefused) {
  SchemeFlags flags;
  flags.group = 64;
  const auto grouped = load_map("uniform:Kfp8Vnvfp4", flags, eight_layers());
  ASSERT_FALSE(grouped.ok());
  EXPECT_THAT(grouped.error().message, HasSubstr("group has no effect"));
  EXPECT_TRUE(load_map("uniform:Kfp8Vnvfp4,3=K4V4", flags, eight_layers()).ok());
  flags.group = 128;
  const auto longer = load_map("uniform:K4V4", flags, eight_layers());
  ASSERT_FALSE(longer.ok());
  EXPECT_THAT(longer.error().message, HasSubstr("group 128 is longer than the 64 channels"));
  flags.name = "kivi";  // where the group counts tokens too
  EXPECT_TRUE(load_map("uniform:K4V4", flags, eight_layers()).ok());
}

TEST(MapSource, ErrorsSayWhatIsWrong) {
  EXPECT_THAT(layers_of("uniform:K4V4,3=K2V2,3=K8V8"), HasSubstr("\"3\" is given twice"));
  EXPECT_THAT(layers_of("uniform:K4V4,8=K2V2"),
              HasSubstr("\"8\" names no layers of this model; they are 0 to 7"));
  EXPECT_THAT(layers_of("uniform:K4V4,5-3=K2V2"), HasSubstr("\"5-3\" names no layers"));
  EXPECT_THAT(layers_of("uniform:K4V4,1-2-3=K2V2"), HasSubstr("\"1-2-3\" names no layers"));
  EXPECT_THAT(layers_of("uniform:K4V4,-1=K2V2"), HasSubstr("\"\" is not the number of a layer"));
  EXPECT_THAT(layers_of("uniform:K4V4,x=K2V2"), HasSubstr("\"x\" is not the number of a layer"));
  EXPECT_THAT(layers_of("uniform:K4V4,3"), HasSubstr("\"3\" is not LAYER=PAIR"));
  EXPECT_THAT(layers_of("uniform:K4V4,"), HasSubstr("\"\" is not LAYER=PAIR"));
  EXPECT_THAT(layers_of("uniform:K4V4,3=K5V2"), HasSubstr("pair \"K5V2\" is not known"));
  EXPECT_THAT(layers_of("uniform:"), HasSubstr("pair \"\" is not known"));
}

}  // namespace
}  // namespace kvsweep::cli
