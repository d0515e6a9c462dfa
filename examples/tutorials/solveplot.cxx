/*
   The picture of the program solve: residual norms against time, as SVG.

   Where many iterations are one kernel only the times of the beginning and the end of a solve are known. So the iterations share the time of the best solve evenly, for all solvers alike.
   Blue and vermilion, the second one dashed, can be told apart by the colour-blind and in grey.
*/
#include "solve.h"

#include <cmath>

namespace
{

constexpr double width = 760.0, height = 480.0, left = 90.0, right = 730.0, top = 56.0, bottom = 400.0;

/* From numbers to places in the picture: x in ms, y as power of ten */
struct Axes {
  double most_x, least_y, most_y;

  double X(double ms) const { return left + (right - left) * ms / most_x; }
  double Y(double power) const { return bottom - (bottom - top) * (PetscMin(PetscMax(power, least_y), most_y) - least_y) / (most_y - least_y); } /* what is outside is drawn at the edge */
};

/* Residual norms relative to the first one, as powers of ten. Infinite where a norm is 0, or is no number */
double Power(const Outcome &o, size_t k)
{
  const double ratio = (double)(o.history[k] / o.history[0]);

  return ratio >= 0.0 ? std::log10(ratio) : HUGE_VAL;
}

/* A norm of 0 at the beginning is that of a solver which computes none, or of b = 0 */
bool HasNorms(const Outcome &o)
{
  return !o.history.empty() && o.history[0] > 0.0;
}

double EndTime(const Outcome &o)
{
  return 1e3 * o.best;
}

Axes FindAxes(const std::vector<Outcome> &outcomes)
{
  Axes a = {1e-6, -1.0, 0.0};

  for (const Outcome &o : outcomes) {
    a.most_x = PetscMax(a.most_x, EndTime(o));
    for (size_t k = 0; HasNorms(o) && k < o.history.size(); k++) {
      const double power = Power(o, k);

      if (!std::isfinite(power)) continue;
      a.least_y = PetscMin(a.least_y, std::floor(power));
      a.most_y  = PetscMax(a.most_y, std::ceil(power));
    }
  }
  return a;
}

/* 1, 2 or 5 times a power of ten, of which at most 8 fit */
double Spacing(double most)
{
  const double power = std::pow(10.0, std::floor(std::log10(most / 8.0)));

  for (double step : {1.0, 2.0, 5.0}) {
    if (step * power * 8.0 >= most) return step * power;
  }
  return 10.0 * power;
}

/* What XML would take for its own */
std::string Escaped(const std::string &text)
{
  std::string escaped;

  for (char c : text) {
    if (c == '&') escaped += "&amp;";
    else if (c == '<') escaped += "&lt;";
    else if (c == '>') escaped += "&gt;";
    else escaped += (unsigned char)c < 32 ? ' ' : c;
  }
  return escaped;
}

std::string Text(double x, double y, const char anchor[], const std::string &text)
{
  return Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + Escaped(text) + "</text>\n";
}

std::string Line(double x1, double y1, double x2, double y2, const char look[])
{
  return Format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, look);
}

std::string DrawAxes(const Axes &a)
{
  const double grid = PetscMax(1.0, std::ceil((a.most_y - a.least_y) / 12.0)), spacing = Spacing(a.most_x);
  std::string  svg;

  for (double power = a.most_y; power >= a.least_y; power -= grid) svg += Line(left, a.Y(power), right, a.Y(power), "stroke=\"#ddd\"") + Text(left - 8.0, a.Y(power) + 4.0, "end", Format("1e%+03.0f", power));
  for (int k = 0; k * spacing <= a.most_x * 1.000001; k++) svg += Line(a.X(k * spacing), bottom, a.X(k * spacing), bottom + 5.0, "stroke=\"#333\"") + Text(a.X(k * spacing), bottom + 20.0, "middle", Format("%g", k * spacing));
  svg += Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#333\"/>\n", left, top, right - left, bottom - top);
  svg += Text(0.5 * (left + right), bottom + 42.0, "middle", "time of the solve, ms");
  svg += Format("<text transform=\"translate(24 %.1f) rotate(-90)\" text-anchor=\"middle\">residual norm / first residual norm</text>\n", 0.5 * (top + bottom));
  return svg;
}

std::string DrawCurve(const Axes &a, const Outcome &o, const char look[])
{
  const double step = o.history.size() > 1 ? EndTime(o) / (double)(o.history.size() - 1) : 0.0;
  std::string  svg  = "<polyline fill=\"none\" stroke-width=\"2\" " + std::string(look) + " points=\"";

  for (size_t k = 0; k < o.history.size(); k++) svg += Format("%s%.2f,%.2f", k ? " " : "", a.X((double)k * step), a.Y(Power(o, k)));
  return svg + "\"/>\n";
}

} // namespace

PetscErrorCode WritePlot(const Settings *s, const std::vector<Outcome> &outcomes)
{
  static const char *const looks[] = {"stroke=\"#0072b2\"", "stroke=\"#d55e00\" stroke-dasharray=\"7 3\""};
  const Axes               axes    = FindAxes(outcomes);
  std::string              svg     = Format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n", width, height);

  PetscFunctionBegin;
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += "<text x=\"" + Format("%.0f", left) + "\" y=\"24\" font-size=\"16\">" + Escaped(BaseName(s->file) + ", preconditioner " + outcomes.back().pc_type) + "</text>\n";
  svg += DrawAxes(axes);
  for (size_t k = 0; k < outcomes.size(); k++) {
    const Outcome &o    = outcomes[k];
    const char    *look = looks[k + 2 - outcomes.size()];
    const double   x    = left + 325.0 * (double)k;

    if (HasNorms(o)) svg += DrawCurve(axes, o, look);
    svg += Line(x, top - 16.0, x + 30.0, top - 16.0, (std::string("stroke-width=\"2\" ") + look).c_str());
    svg += Text(x + 38.0, top - 12.0, "start", o.ksp_type + ", " + o.mat_type + Format(": %" PetscInt_FMT " iterations, %.3g ms%s", o.iterations, EndTime(o), HasNorms(o) ? "" : ", no norms"));
  }
  svg += Text(left, height - 16.0, "start", "Iterations share the time of the best solve evenly.");
  PetscCall(WriteText(s->plot, "w", svg + "</svg>\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}
