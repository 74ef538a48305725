// The front of a study as an SVG picture: every trial as a dot, the front as a step line, the
// baseline marked, labelled axes. Our own writer: no library, a few kilobytes of text.
#pragma once

#include <string>
#include <vector>

namespace kvsweep::cli {

struct SvgPoint {
  double bits = 0;  // effective bits per element
  double loss = 0;
  std::string label;  // shown as a tooltip: "trial 17: K8V4 x3, K4V4"
  bool on_front = false;
  std::string name;  // written beside a member of the front: "17"; may be empty
};

struct SvgPlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<SvgPoint> trials;
  std::vector<SvgPoint> baseline;  // none or one
};

// A whole SVG document: well-formed XML whatever the labels hold (invalid UTF-8 and control
// characters are replaced). One element of class "trial" per trial with finite values, in the
// order given. Legible on light and on dark pages: it brings its own background.
std::string front_svg(const SvgPlot& plot);

// Round numbers that cover [low, high]: steps of 1, 2 or 5 times a power of ten, about `count` of
// them. {0, 16, 5} -> 0, 5, 10, 15.  Needs low < high.
std::vector<double> nice_ticks(double low, double high, int count);

}  // namespace kvsweep::cli
