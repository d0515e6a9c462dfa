/* Progress on the terminal, the tables, and the JSON file. docs/benchmark.md says what columns and members mean. */
#include "bench.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>

#include <unistd.h>

namespace
{

using Json = nlohmann::ordered_json;

bool IsBaseline(const Machine *machine, const std::string &variant)
{
  return machine->gpu ? variant.compare(0, 8, "cusparse") == 0 : variant == "aij";
}

/* Seconds of the best cuSPARSE algorithm, on the host of aij; negative if there is none */
double Baseline(const Machine *machine, const MatrixResult *matrix)
{
  double best = -1.0;

  for (const ProductResult &p : matrix->products) {
    if (IsBaseline(machine, p.variant) && p.error.empty() && (best < 0.0 || p.seconds() < best)) best = p.seconds();
  }
  return best;
}

/* A number, or blanks if it was not measured */
std::string Cell(const char format[], double value, bool measured)
{
  char text[64];

  if (!measured) return "-";
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

PetscErrorCode PrintHead(const Machine *machine)
{
  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %-16s %10s %10s %21s %8s %7s %7s %4s %9s %8s %8s %7s\n", "matrix", "variant", "us", "call us", "least-most us", "GB/s", "% copy", "B/nnz", machine->gpu ? "L2" : "L3",
                        machine->gpu ? "/cuSPARSE" : "/aij", "build", "refresh", "error"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PrintProduct(const Machine *machine, const MatrixResult *matrix, const ProductResult *p)
{
  const double  seconds = p->seconds(), base = Baseline(machine, matrix);
  const Spread *spread = p->device.median > 0.0 ? &p->device : &p->call;
  char          range[64];

  PetscFunctionBegin;
  if (!p->error.empty()) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %-16s FAILED: %.200s\n", matrix->name.c_str(), p->variant.c_str(), p->error.c_str()));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  std::snprintf(range, sizeof(range), "%.2f-%.2f", 1e6 * spread->least, 1e6 * spread->most);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %-16s %10.2f %10.2f %21s %8.0f %7.1f %7s %4s %9s %8s %8s %7.3f\n", matrix->name.c_str(), p->variant.c_str(), 1e6 * seconds, 1e6 * p->call.median, range, 1e-9 * p->bytes / seconds,
                        100.0 * p->bytes / seconds / machine->copy_bandwidth, Cell("%.2f", p->matrix_bytes / matrix->nnz, matrix->nnz > 0.0).c_str(), p->bytes <= machine->cache ? "in" : "out", Cell("%.2f", base / seconds, base > 0.0).c_str(),
                        Cell("%.1f", p->build / seconds, p->build >= 0.0).c_str(), Cell("%.2f", p->refresh / seconds, p->refresh >= 0.0).c_str(), p->worst));
  if (p->columns >= 0.0) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %-16s product and dot products %.2f us, by two functions %.2f; 8 dense columns %.2f us, %.2f products\n", matrix->name.c_str(), p->variant.c_str(), 1e6 * p->dot, 1e6 * p->dot_two, 1e6 * p->columns,
                          p->columns / seconds));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PrintSolves(const std::vector<MatrixResult> &results)
{
  bool head = true;

  PetscFunctionBegin;
  for (const MatrixResult &matrix : results) {
    for (size_t k = 0; k < matrix.solves.size(); k++) {
      const SolveResult &s = matrix.solves[k];

      if (head) PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%-26s %-8s %-14s %-8s %10s %-26s %12s %9s\n", "matrix", "KSP", "Mat", "PC", "iterations", "reason", "us/iteration", "speed-up"));
      head = false;
      if (!s.error.empty()) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %-8s %-14s %-8s FAILED: %.200s\n", matrix.name.c_str(), s.ksp_type.c_str(), s.mat_type.c_str(), s.pc_type.c_str(), s.error.c_str()));
      else
        PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %-8s %-14s %-8s %10" PetscInt_FMT " %-26s %12s %9s\n", matrix.name.c_str(), s.ksp_type.c_str(), s.mat_type.c_str(), s.pc_type.c_str(), s.iterations, s.reason.c_str(),
                              Cell("%.2f", 1e6 * s.iteration, s.iteration > 0.0).c_str(), Cell("%.2f", k % 2 ? matrix.solves[k - 1].iteration / s.iteration : 0.0, k % 2 && s.iteration > 0.0 && matrix.solves[k - 1].iteration > 0.0).c_str()));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const ProductResult *Find(const MatrixResult &matrix, const std::string &variant)
{
  for (const ProductResult &p : matrix.products) {
    if (p.variant == variant && p.error.empty()) return &p;
  }
  return nullptr;
}

/* How far the type's own choice of form is from the best one */
PetscErrorCode PrintChoice(const std::vector<MatrixResult> &results)
{
  PetscFunctionBegin;
  for (const char *compress : {"", "-pattern", "-value", "-off"}) {
    double      worst = 0.0;
    int         count = 0;
    std::string where;

    for (const MatrixResult &matrix : results) {
      const ProductResult *choice = Find(matrix, std::string("auto") + compress), *best = nullptr, *p;

      for (const char *form : {"tensor", "core", "row"}) {
        if ((p = Find(matrix, std::string(form) + compress)) && (!best || p->seconds() < best->seconds())) best = p;
      }
      if (!choice || !best) continue;
      const double ratio = choice->seconds() / best->seconds();
      count++;
      if (ratio > worst) worst = ratio, where = matrix.name + ", " + best->variant;
    }
    if (count) PetscCall(PetscPrintf(PETSC_COMM_SELF, "auto%s takes at most %.3f times the best form (%s), %d matrices\n", compress, worst, where.c_str(), count));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Microseconds, a line a matrix and a column a variant: what to look at first */
PetscErrorCode PrintTimes(const std::vector<MatrixResult> &results, const std::vector<std::string> &variants)
{
  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%-26s %12s", "us", "nonzeros"));
  for (const std::string &variant : variants) PetscCall(PetscPrintf(PETSC_COMM_SELF, " %*s", (int)PetscMax(variant.size(), 8), variant.c_str()));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  for (const MatrixResult &matrix : results) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %12.0f", matrix.name.c_str(), matrix.nnz));
    for (const std::string &variant : variants) {
      std::string cell = "-";

      for (const ProductResult &p : matrix.products) {
        if (p.variant == variant) cell = p.error.empty() ? Cell("%.2f", 1e6 * p.seconds(), true) : "FAILED";
      }
      PetscCall(PetscPrintf(PETSC_COMM_SELF, " %*s", (int)PetscMax(variant.size(), 8), cell.c_str()));
    }
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How a variant did over all matrices */
PetscErrorCode PrintSummary(const Machine *machine, const std::vector<MatrixResult> &results, const std::vector<std::string> &variants)
{
  PetscFunctionBegin;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%-16s %8s %9s %9s  %s\n", "variant", "matrices", "geomean", "least", machine->gpu ? "of best cuSPARSE / variant" : "of aij / variant"));
  for (const std::string &variant : variants) {
    double      logs = 0.0, least = -1.0;
    int         count = 0;
    std::string where;

    for (const MatrixResult &matrix : results) {
      for (const ProductResult &p : matrix.products) {
        const double base = Baseline(machine, &matrix);

        if (p.variant != variant || !p.error.empty() || base <= 0.0) continue;
        const double ratio = base / p.seconds();
        logs += std::log(ratio);
        count++;
        if (least < 0.0 || ratio < least) least = ratio, where = matrix.name;
      }
    }
    if (count) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-16s %8d %9.2f %9.2f  (%s)\n", variant.c_str(), count, std::exp(logs / count), least, where.c_str()));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

Json ToJson(const Spread &s)
{
  if (s.median < 0.0) return nullptr;
  return {
    {"median_us", 1e6 * s.median},
    {"least_us",  1e6 * s.least },
    {"most_us",   1e6 * s.most  },
    {"batches",   s.batches     },
    {"products",  s.products    }
  };
}

Json Measured(double value, double scale)
{
  return value < 0.0 ? Json(nullptr) : Json(scale * value);
}

Json ToJson(const MatAIJTCInfo &i)
{
  return {
    {"bytes",              i.bytes               },
    {"bytes_read",         i.bytes_read          },
    {"bytes_pattern",      i.bytes_pattern       },
    {"bytes_values",       i.bytes_values        },
    {"rows_long",          i.rows_long           },
    {"rows_medium",        i.rows_medium         },
    {"rows_short",         i.rows_short          },
    {"rows_empty",         i.rows_empty          },
    {"slices_long",        i.slices_long         },
    {"slices_tile",        i.slices_tile         },
    {"slices_row",         i.slices_row          },
    {"slices_consecutive", i.slices_consecutive  },
    {"offsets_none",       i.offsets_none        },
    {"offsets_1",          i.offsets_1           },
    {"offsets_2",          i.offsets_2           },
    {"offsets_4",          i.offsets_4           },
    {"values_constant",    i.values_constant     },
    {"values_dictionary",  i.values_dictionary   },
    {"values_float",       i.values_float        },
    {"values_double",      i.values_double       },
    {"long_row",           i.long_row            },
    {"short_row",          i.short_row           },
    {"sort_window",        i.sort_window         },
    {"rows_per_lane",      i.rows_per_lane       },
    {"block_size",         i.block_size          },
    {"common_offsets",     (bool)i.common_offsets},
    {"near_columns",       (bool)i.near_columns  },
    {"gather_slices",      i.gather_slices       },
    {"gathered_columns",   i.gathered_columns    },
    {"cuda",               (bool)i.cuda          }
  };
}

Json ToJson(const Machine *machine, const MatrixResult *matrix, const ProductResult &p)
{
  Json j = {
    {"variant", p.variant}
  };
  const double base = Baseline(machine, matrix);

  if (!p.error.empty()) {
    j["error"] = p.error;
    return j;
  }
  j["us"]                      = 1e6 * p.seconds();
  j["device"]                  = ToJson(p.device);
  j["call"]                    = ToJson(p.call);
  j["matrix_bytes"]            = p.matrix_bytes;
  j["bytes"]                   = p.bytes;
  j["bytes_per_nonzero"]       = matrix->nnz > 0.0 ? Json(p.matrix_bytes / matrix->nnz) : Json(nullptr);
  j["in_cache"]                = p.bytes <= machine->cache;
  j["gigabytes_per_second"]    = 1e-9 * p.bytes / p.seconds();
  j["fraction_of_copy"]        = p.bytes / p.seconds() / machine->copy_bandwidth;
  j["speedup_over_baseline"]   = base > 0.0 ? Json(base / p.seconds()) : Json(nullptr);
  j["build_us"]                = Measured(p.build, 1e6);
  j["build_products"]          = Measured(p.build / p.seconds(), 1.0);
  j["refresh_us"]              = Measured(p.refresh, 1e6);
  j["refresh_products"]        = Measured(p.refresh / p.seconds(), 1.0);
  j["mult_dot_us"]             = Measured(p.dot, 1e6);
  j["mult_then_dot_us"]        = Measured(p.dot_two, 1e6);
  j["eight_columns_us"]        = Measured(p.columns, 1e6);
  j["eight_columns_products"]  = Measured(p.columns / p.seconds(), 1.0);
  j["verified"]                = p.worst >= 0.0 && p.worst <= 1.0;
  j["largest_error_per_bound"] = p.worst;
  if (p.has_info) j["layout"] = ToJson(p.info);
  return j;
}

Json ToJson(const SolveResult &s)
{
  Json j = {
    {"ksp_type", s.ksp_type},
    {"mat_type", s.mat_type},
    {"pc_type",  s.pc_type }
  };

  if (!s.error.empty()) {
    j["error"] = s.error;
    return j;
  }
  j["iterations"]       = s.iterations;
  j["reason"]           = s.reason;
  j["us_per_iteration"] = Measured(s.iteration, 1e6);
  return j;
}

Json ToJson(const Machine *machine, const MatrixResult &matrix)
{
  Json j = {
    {"name", matrix.name}
  };

  if (!matrix.error.empty()) {
    j["error"] = matrix.error;
    return j;
  }
  j["origin"]          = matrix.origin;
  j["rows"]            = matrix.m;
  j["columns"]         = matrix.n;
  j["nonzeros"]        = matrix.nnz;
  j["longest_row"]     = matrix.longest;
  j["symmetric"]       = matrix.symmetric;
  j["seconds_to_make"] = matrix.seconds;
  j["csr_bytes_floor"] = matrix.csr_bytes;
  j["csr_us_at_copy"]  = 1e6 * matrix.csr_bytes / machine->copy_bandwidth;
  j["products"]        = Json::array();
  j["solves"]          = Json::array();
  for (const ProductResult &p : matrix.products) j["products"].push_back(ToJson(machine, &matrix, p));
  for (const SolveResult &s : matrix.solves) j["solves"].push_back(ToJson(s));
  return j;
}

Json ToJson(const Machine *machine)
{
  char host[256] = "";

  (void)gethostname(host, sizeof(host) - 1);
  return {
    {"host",                      host                                                },
    {"cpu",                       machine->cpu                                        },
    {"gpu",                       machine->gpu ? Json(machine->device) : Json(nullptr)},
    {"multiprocessors",           machine->multiprocessors                            },
    {"driver",                    machine->gpu ? Json(machine->driver) : Json(nullptr)},
    {"cuda",                      machine->gpu ? Json(machine->cuda) : Json(nullptr)  },
    {"last_cache_bytes",          machine->cache                                      },
    {"copy_bytes",                machine->copy_bytes                                 },
    {"copy_gigabytes_per_second", 1e-9 * machine->copy_bandwidth                      }
  };
}

} // namespace

PetscErrorCode ReportProgress(const Machine *machine, const MatrixResult *matrix, const ProductResult *product)
{
  PetscFunctionBegin;
  if (!product) PetscCall(PrintHead(machine));
  else PetscCall(PrintProduct(machine, matrix, product));
  std::fflush(stdout);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ReportTable(const Machine *machine, const std::vector<MatrixResult> &results)
{
  std::vector<std::string> variants;

  PetscFunctionBegin;
  for (const MatrixResult &matrix : results) {
    for (const ProductResult &p : matrix.products) {
      if (std::find(variants.begin(), variants.end(), p.variant) == variants.end()) variants.push_back(p.variant);
    }
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%s; copy %.1f GB/s (%.3g GB read + written); %s\n", machine->gpu ? machine->device.c_str() : ("no GPU: the host backend on " + machine->cpu).c_str(), 1e-9 * machine->copy_bandwidth,
                        2e-9 * machine->copy_bytes, machine->petsc.c_str()));
  PetscCall(PrintHead(machine));
  for (const MatrixResult &matrix : results) {
    if (!matrix.error.empty()) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-26s %-16s FAILED: %.200s\n", matrix.name.c_str(), "", matrix.error.c_str()));
    for (const ProductResult &p : matrix.products) PetscCall(PrintProduct(machine, &matrix, &p));
  }
  PetscCall(PrintSolves(results));
  PetscCall(PrintTimes(results, variants));
  PetscCall(PrintSummary(machine, results, variants));
  PetscCall(PrintChoice(results));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ReportJSON(const Machine *machine, const Settings *settings, const std::vector<MatrixResult> &results)
{
  Json        j;
  char        date[64];
  std::time_t now = std::time(nullptr);

  PetscFunctionBegin;
  if (settings->json.empty()) PetscFunctionReturn(PETSC_SUCCESS);
  std::strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  j["program"] = "petsctc-bench";
  j["version"] = std::to_string(PETSCTC_VERSION_MAJOR) + "." + std::to_string(PETSCTC_VERSION_MINOR) + "." + std::to_string(PETSCTC_VERSION_PATCH);
  j["petsc"]   = machine->petsc;
  j["date"]    = date;
  j["command"] = settings->command;
  j["machine"] = ToJson(machine);
  j["options"] = {
    {"values",     settings->values    },
    {"batches",    settings->batches   },
    {"products",   settings->products  },
    {"limit_s",    settings->limit     },
    {"iterations", settings->iterations},
    {"columns",    settings->columns   }
  };
  j["baseline"] = machine->gpu ? "best of cusparse-*" : "aij";
  j["failures"] = ReportFailures(results);
  j["matrices"] = Json::array();
  for (const MatrixResult &matrix : results) j["matrices"].push_back(ToJson(machine, matrix));
  std::ofstream file(settings->json);
  file << j.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
  file.close();
  PetscCheck(file.good(), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "Cannot write %s", settings->json.c_str());
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscInt ReportFailures(const std::vector<MatrixResult> &results)
{
  PetscInt failures = 0;

  for (const MatrixResult &matrix : results) {
    failures += !matrix.error.empty();
    for (const ProductResult &p : matrix.products) failures += !p.error.empty();
    for (const SolveResult &s : matrix.solves) failures += !s.error.empty();
  }
  return failures;
}
