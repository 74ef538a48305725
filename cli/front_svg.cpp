#include "cli/front_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.hpp"

namespace kvsweep::cli {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 460;
constexpr double kLeft = 78;
constexpr double kRight = 24;
constexpr double kTop = 74;
constexpr double kBottom = 62;

// Text for element content and attributes (XML 1.0 §2.2: no control characters).
std::string escaped(const std::string& raw) {
  std::string out;
  for (const char c : replace_invalid_utf8(raw)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

struct Range {
  double low = 0;
  double high = 1;
};

// What an axis shows: all values and 0, with some air above.
Range range_of(const std::vector<double>& values) {
  Range range{0, 0};
  for (const double value : values) {
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  if (range.high - range.low < 1e-9) range.high = range.low + 1;
  const double air = 0.05 * (range.high - range.low);
  range.high += air;
  if (range.low < 0) range.low -= air;
  return range;
}

class Canvas {
 public:
  Canvas(Range x, Range y) : x_(x), y_(y) {}

  double px(double x) const {
    return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double py(double y) const {
    return kHeight - kBottom - (y - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }
  const Range& x() const { return x_; }
  const Range& y() const { return y_; }

 private:
  Range x_;
  Range y_;
};

constexpr const char* kStyle =
    "text{font:13px system-ui,'DejaVu Sans',Arial,sans-serif;fill:#24292f}"
    ".title{font-size:17px;font-weight:600}.small{font-size:12px;fill:#57606a}"
    ".grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#57606a;stroke-width:1.2}"
    ".trial,.key{fill:#8c959f;fill-opacity:.75}"
    ".trial.member,.front-key{fill:#0969da;fill-opacity:1}"
    ".front{fill:none;stroke:#0969da;stroke-width:2}"
    ".baseline{fill:#cf222e;stroke:#fff;stroke-width:1}";

std::string text_at(double x, double y, const char* attributes, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, attributes,
                     escaped(text));
}

std::string line(const char* kind, double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", kind, x1,
      y1, x2, y2);
}

std::string axes(const Canvas& canvas, const SvgPlot& plot) {
  const double bottom = kHeight - kBottom;
  std::string out;
  for (const double tick : nice_ticks(canvas.x().low, canvas.x().high, 10)) {
    const double x = canvas.px(tick);
    out += line("grid", x, kTop, x, bottom);
    out += text_at(x, bottom + 20, "text-anchor=\"middle\"", fmt::format("{:g}", tick));
  }
  for (const double tick : nice_ticks(canvas.y().low, canvas.y().high, 6)) {
    const double y = canvas.py(tick);
    out += line("grid", kLeft, y, kWidth - kRight, y);
    out += text_at(kLeft - 8, y + 4.5, "text-anchor=\"end\"", fmt::format("{:g}", tick));
  }
  out += line("axis", kLeft, bottom, kWidth - kRight, bottom);
  out += line("axis", kLeft, kTop, kLeft, bottom);
  out +=
      text_at((kLeft + kWidth - kRight) / 2, kHeight - 16, "text-anchor=\"middle\"", plot.x_label);
  out += fmt::format(
      "<text transform=\"translate(20 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (kTop + bottom) / 2, escaped(plot.y_label));
  return out;
}

// From one member to the next the loss at hand stays that of the lighter one: a staircase.
std::string front_line(const Canvas& canvas, std::vector<SvgPoint> members) {
  if (members.empty()) return "";
  std::sort(members.begin(), members.end(),
            [](const SvgPoint& a, const SvgPoint& b) { return a.bits < b.bits; });
  std::string path;
  double last_y = 0;
  for (const SvgPoint& member : members) {
    const double x = canvas.px(member.bits);
    const double y = canvas.py(member.loss);
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y)
                         : fmt::format("L{:.1f} {:.1f}L{:.1f} {:.1f}", x, last_y, x, y);
    last_y = y;
  }
  return "<path class=\"front\" d=\"" + path + "\"/>\n";
}

std::string dot(const Canvas& canvas, const SvgPoint& point) {
  return fmt::format(
      "<circle class=\"trial{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}</title></circle>\n",
      point.on_front ? " member" : "", canvas.px(point.bits), canvas.py(point.loss),
      point.on_front ? "4.5" : "3.5", escaped(point.label));
}

// Names of the members beside their dots, as far as there is room.
std::string member_names(const Canvas& canvas, std::vector<SvgPoint> members) {
  constexpr double kRoom = 22;
  std::sort(members.begin(), members.end(),
            [](const SvgPoint& a, const SvgPoint& b) { return a.bits < b.bits; });
  std::string out;
  double last_x = -kRoom;
  for (const SvgPoint& member : members) {
    const double x = canvas.px(member.bits);
    if (member.name.empty() || x - last_x < kRoom) continue;
    out += text_at(x + 7, canvas.py(member.loss) - 7, "class=\"small\"", member.name);
    last_x = x;
  }
  return out;
}

std::string diamond(double x, double y, const std::string& title) {
  return fmt::format(
      "<path class=\"baseline\" d=\"M{0:.1f} {1:.1f}l7 7l-7 7l-7 -7z\"><title>{2}</title></path>\n",
      x, y - 7, escaped(title));
}

// The legend's marks have classes of their own: elements of class "trial" are trials.
std::string legend(bool baseline) {
  constexpr double kY = 54;
  const auto label = [](double x, const char* text) {
    return text_at(x, kY + 4, "class=\"small\"", text);
  };
  std::string out =
      fmt::format("<circle class=\"key\" cx=\"{}\" cy=\"{}\" r=\"3.5\"/>\n", kLeft + 4, kY);
  out += label(kLeft + 14, "trial");
  out += fmt::format("<path class=\"front\" d=\"M{} {}h24\"/>\n", kLeft + 62, kY);
  out +=
      fmt::format("<circle class=\"front-key\" cx=\"{}\" cy=\"{}\" r=\"4.5\"/>\n", kLeft + 74, kY);
  out += label(kLeft + 94, "front");
  if (!baseline) return out;
  return out + diamond(kLeft + 152, kY, "baseline") + label(kLeft + 166, "baseline");
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count) {
  const double raw = (high - low) / std::max(1, count);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) {
    ticks.push_back(k == 0 ? 0 : k * step);
  }
  return ticks;
}

std::string front_svg(const SvgPlot& plot) {
  const auto finite = [](const SvgPoint& point) {
    return std::isfinite(point.bits) && std::isfinite(point.loss);
  };
  std::vector<SvgPoint> shown;
  std::vector<SvgPoint> members;
  std::copy_if(plot.trials.begin(), plot.trials.end(), std::back_inserter(shown), finite);
  std::copy_if(shown.begin(), shown.end(), std::back_inserter(members),
               [](const SvgPoint& point) { return point.on_front; });
  std::vector<SvgPoint> baseline;
  std::copy_if(plot.baseline.begin(), plot.baseline.end(), std::back_inserter(baseline), finite);

  std::vector<double> xs;
  std::vector<double> ys;
  for (const std::vector<SvgPoint>* points : {&shown, &baseline}) {
    for (const SvgPoint& point : *points) {
      xs.push_back(point.bits);
      ys.push_back(point.loss);
    }
  }
  const Canvas canvas(range_of(xs), range_of(ys));

  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}</style>\n"
      "<rect width=\"{0}\" height=\"{1}\" rx=\"8\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight, escaped(plot.title), kStyle);
  out += text_at(kLeft, 32, "class=\"title\"", plot.title);
  out += axes(canvas, plot) + legend(!baseline.empty());
  out += front_line(canvas, members);
  for (const SvgPoint& point : shown) out += dot(canvas, point);
  out += member_names(canvas, members);
  for (const SvgPoint& point : baseline) {
    out += diamond(canvas.px(point.bits), canvas.py(point.loss), point.label);
  }
  return out + "</svg>\n";
}

}  // namespace kvsweep::cli
