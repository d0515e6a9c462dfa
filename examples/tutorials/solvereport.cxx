/*
   What the program solve tells at its end: a table with a column for each solver, sentences about how they ran, and lines of a CSV file.

   The table's cells are text first, so that columns are as wide as what is in them.
*/
#include "solve.h"

#include <petsctc.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

std::string Format(const char format[], ...)
{
  char    text[256];
  va_list arguments;

  va_start(arguments, format);
  (void)vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

std::string BaseName(const char file[])
{
  const char *slash = strrchr(file, '/');

  return slash ? slash + 1 : file;
}

/* By the first process; an error on all. text: empty, to see whether it could be written */
PetscErrorCode WriteText(const char file[], const char mode[], const std::string &text)
{
  PetscMPIInt rank;
  int         error = 0;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (rank == 0) {
    FILE *stream = fopen(file, mode);

    if (!stream) error = errno;
    else {
      if (fwrite(text.data(), 1, text.size(), stream) != text.size()) error = errno;
      if (fclose(stream) && !error) error = errno;
    }
  }
  PetscCallMPI(MPI_Bcast(&error, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  PetscCheck(!error, PETSC_COMM_WORLD, PETSC_ERR_FILE_WRITE, "%s: cannot be written: %s", file, strerror(error));
  PetscFunctionReturn(PETSC_SUCCESS);
}

double Reduction(const Outcome &o)
{
  return o.history.size() > 1 && o.history.front() > 0.0 ? (double)(o.history.back() / o.history.front()) : -1.0;
}

/* ---- how a solve ran */

/* What KSPView() says, on the first process */
static PetscErrorCode ViewText(KSP ksp, std::string *text)
{
  char       *memory = nullptr;
  size_t      size   = 0;
  FILE       *stream = open_memstream(&memory, &size);
  PetscViewer viewer;

  PetscFunctionBegin;
  PetscCheck(stream, PETSC_COMM_SELF, PETSC_ERR_MEM, "No memory for the view of the solver");
  PetscCall(PetscViewerASCIIOpenWithFILE(PetscObjectComm((PetscObject)ksp), stream, &viewer));
  PetscCall(KSPView(ksp, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  fclose(stream);
  text->assign(memory, size);
  free(memory);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rest of the first line of a view that begins with this, without blanks before it; false: there is none */
static bool ViewLine(const std::string &view, const std::string &begin, std::string *rest)
{
  for (size_t at = 0, end; at < view.size(); at = end + 1) {
    end                = PetscMin(view.find('\n', at), view.size());
    const size_t first = view.find_first_not_of(' ', at);

    if (first >= end || view.compare(first, begin.size(), begin) != 0) continue;
    *rest = view.substr(first + begin.size(), end - first - begin.size());
    return true;
  }
  return false;
}

/* The REASON of a line that ends with "(last: REASON)", or nothing */
static std::string LastReason(const std::string &line)
{
  const std::string mark = "(last: ";
  const size_t      at = line.find(mark), end = line.rfind(')');

  return at == std::string::npos || end == std::string::npos ? "" : line.substr(at + mark.size(), end - at - mark.size());
}

/* "64 iterations in a call, .." of a view, without its word for it */
static std::string InOneKernel(std::string line)
{
  const std::string mark = "in a call";
  const size_t      at   = line.find(mark);

  return at == std::string::npos ? line : line.replace(at, mark.size(), "in one kernel");
}

/* In a user's words, what the lines of our solvers in -ksp_view say (docs/user.md). False: it is none of ours */
static bool DescribeFused(const std::string &view, Outcome *o)
{
  const std::string place = o->gpu ? "on the GPU" : "on the host";
  std::string       line;

  if (!ViewLine(view, "fused solves ", &line)) return false;
  o->why = LastReason(line);
  if (!o->why.empty()) {
    o->ran = "PETSc's own solve " + place;
    return true;
  }
  if (ViewLine(view, "resident, ", &line)) o->ran = "up to " + InOneKernel(line) + ", " + place;
  else {
    o->ran = "fused kernels " + place + ", one for each update of vectors";
    if (ViewLine(view, "not resident ", &line)) o->why = LastReason(line);
    if (ViewLine(view, "no iterations begun ahead ", &line) && LastReason(line) != o->why) o->why += (o->why.empty() ? "" : "; ") + LastReason(line);
    if (ViewLine(view, "iterations begun ahead ", &line)) o->ran += ", " + line + " iterations begun ahead";
  }
  if (ViewLine(view, "the preconditioner is ", &line)) o->ran += ", the preconditioner is " + line;
  if (ViewLine(view, "recurrences with a reduction less", &line)) o->ran += ", a reduction less an iteration";
  if (!o->gpu) o->why = std::string("no GPU is used") + (o->why.empty() ? "" : "; ") + o->why;
  return true;
}

/* Memory of the matrix and what a product reads of it, as far as its type is known */
static PetscErrorCode DescribeMatrix(Mat A, const System *system, Outcome *o)
{
  const double csr = (double)system->nonzeros * (sizeof(PetscScalar) + sizeof(PetscInt)) + (double)(system->rows + 1) * sizeof(PetscInt);
  PetscBool    ours, aij, keep;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &ours, MATSEQAIJTC, MATMPIAIJTC, ""));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &aij, MATSEQAIJ, MATMPIAIJ, MATSEQAIJCUSPARSE, MATMPIAIJCUSPARSE, ""));
  o->matrix_bytes = o->product_bytes = aij ? csr : -1.0;
  if (!ours) PetscFunctionReturn(PETSC_SUCCESS);

  MatAIJTCInfo   info;
  PetscLogDouble bytes[2];

  PetscCall(MatAIJTCGetInfo(A, &info));
  PetscCall(MatAIJTCGetKeepCSR(A, &keep));
  bytes[0] = (PetscLogDouble)info.bytes, bytes[1] = (PetscLogDouble)info.bytes_read;
  PetscCallMPI(MPIU_Allreduce(MPI_IN_PLACE, bytes, 2, MPIU_PETSCLOGDOUBLE, MPI_SUM, PETSC_COMM_WORLD));
  o->matrix_bytes  = bytes[0] + (keep ? csr : 0.0);
  o->product_bytes = bytes[1] > 0.0 ? bytes[1] : csr; /* no layout: the parent type computes the products */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Passes over vectors, each read and written once in a pass: CG does w = A p, x += a p, r -= a w, p = r + b p. A Jacobi reads its diagonal once for each product */
static double IterationBytes(const System *system, const Outcome &o, bool less)
{
  static const struct {
    const char *type;
    int         products, vectors, vectors_less; /* less: with a reduction less */
  } methods[] = {
    {"cg",   1, 11, 11},
    {"bcgs", 2, 18, 11},
    {"cr",   1, 14, 14}
  };
  const std::string type = o.ksp_type.compare(0, 2, "tc") == 0 ? o.ksp_type.substr(2) : o.ksp_type;

  if (o.product_bytes < 0.0 || (o.pc_type != PCNONE && o.pc_type != PCJACOBI)) return -1.0;
  for (const auto &m : methods) {
    const int vectors = (less ? m.vectors_less : m.vectors) + (o.pc_type == PCJACOBI ? m.products : 0);

    if (type == m.type) return m.products * o.product_bytes + (double)vectors * (double)system->rows * sizeof(PetscScalar);
  }
  return -1.0;
}

PetscErrorCode DescribeRun(KSP ksp, Mat A, const System *system, Outcome *o)
{
  std::string view, line;

  PetscFunctionBegin;
  PetscCall(DescribeMatrix(A, system, o));
  PetscCall(ViewText(ksp, &view));
  if (!DescribeFused(view, o)) o->ran = "PETSc's " + o->ksp_type + (o->gpu ? " on the GPU" : " on the host");
  o->iteration_bytes = IterationBytes(system, *o, ViewLine(view, "recurrences with a reduction less", &line));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the table */

static double IterationTime(const Outcome &o)
{
  return o.best / (double)PetscMax(o.iterations, 1);
}

static double Bandwidth(const Outcome &o)
{
  return o.iteration_bytes < 0.0 || !o.iterations ? -1.0 : o.iteration_bytes / PetscMax(IterationTime(o), 1e-12);
}

static double Bytes(const Copies &c)
{
  return c.bytes_up + c.bytes_down;
}

/* A number, or a dash where it is not known */
static std::string Number(const char format[], double value)
{
  char text[64];

  if (value < 0.0) return "-";
  (void)PetscSNPrintf(text, sizeof(text), format, value);
  return text;
}

typedef struct {
  std::string              name;
  std::vector<std::string> cells;
} Row;

class Table {
public:
  explicit Table(const std::vector<Outcome> &outcomes) : of(outcomes) { }

  template <class Cell>
  void Add(const char name[], Cell cell)
  {
    Row row = {name, {}};

    for (const Outcome &o : of) row.cells.push_back(cell(o));
    rows.push_back(row);
  }
  /* A time, of which two have a ratio */
  template <class Value>
  void AddTime(const char name[], double unit, Value value)
  {
    if (value(of.front()) < 0.0 && value(of.back()) < 0.0) return;
    Add(name, [&](const Outcome &o) { return Number("%.2f", value(o) < 0.0 ? -1.0 : value(o) / unit); });
    if (of.size() > 1) rows.back().cells.push_back(Number("%.2f", value(of[0]) < 0.0 || value(of[1]) <= 0.0 ? -1.0 : value(of[0]) / value(of[1])));
  }
  PetscErrorCode Print() const;

private:
  const std::vector<Outcome> &of;
  std::vector<Row>            rows;
};

PetscErrorCode Table::Print() const
{
  const std::vector<std::string> heads = {"PETSc", "PETSc-TC", "speed-up"};
  std::vector<size_t>            width(3);

  PetscFunctionBegin;
  for (size_t c = 0; c < 3; c++) {
    width[c] = heads[c].size();
    for (const Row &row : rows) width[c] = PetscMax(width[c], c < row.cells.size() ? row.cells[c].size() : 0);
  }
  if (of.size() > 1) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-29s %*s   %*s   %*s\n", "", (int)width[0], heads[0].c_str(), (int)width[1], heads[1].c_str(), (int)width[2], heads[2].c_str()));
  for (const Row &row : rows) {
    std::string line = Format("  %-27s", row.name.c_str());

    for (size_t c = 0; c < row.cells.size(); c++) line += Format("%s%*s", c ? "   " : " ", of.size() > 1 ? (int)width[c] : 0, row.cells[c].c_str());
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s\n", line.c_str()));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void AddTimes(Table *table)
{
  constexpr double ms = 1e-3;

  table->AddTime("set-up, ms", ms, [](const Outcome &o) { return o.setup; });
  table->AddTime("values, ms", ms, [](const Outcome &o) { return o.values; });
  table->AddTime("first solve, ms", ms, [](const Outcome &o) { return o.first; });
  table->AddTime("second solve, ms", ms, [](const Outcome &o) { return o.second; });
  table->AddTime("best solve, ms", ms, [](const Outcome &o) { return o.second < 0.0 ? -1.0 : o.best; });
  table->AddTime("vectors to and fro, ms", ms, [](const Outcome &o) { return o.transfer; });
  table->AddTime("us/iteration", 1e-6, IterationTime);
}

static void AddBytes(const System *system, const std::vector<Outcome> &outcomes, Table *table)
{
  table->Add("matrix, MB", [](const Outcome &o) { return Number("%.2f", o.matrix_bytes < 0.0 ? -1.0 : 1e-6 * o.matrix_bytes); });
  table->Add("product, bytes/nonzero", [&](const Outcome &o) { return Number("%.2f", o.product_bytes < 0.0 || !system->nonzeros ? -1.0 : o.product_bytes / (double)system->nonzeros); });
  table->Add("bandwidth, GB/s", [](const Outcome &o) { return Number("%.1f", Bandwidth(o) < 0.0 ? -1.0 : 1e-9 * Bandwidth(o)); });
  table->Add("of a copy's bandwidth, %", [](const Outcome &o) { return Number("%.0f", Bandwidth(o) < 0.0 ? -1.0 : 100.0 * Bandwidth(o) / o.copy_bandwidth); });
  table->Add("bytes copied, first solve", [](const Outcome &o) { return Number("%.0f", Bytes(o.copies[0])); });
  if (outcomes.back().second >= 0.0) table->Add("bytes copied, second solve", [](const Outcome &o) { return Number("%.0f", Bytes(o.copies[1])); });
}

PetscErrorCode PrintReport(const Settings *s, const System *system, const std::vector<Outcome> &outcomes)
{
  const Outcome &ours = outcomes.back();
  Table          table(outcomes);

  PetscFunctionBegin;
  table.Add("-mat_type", [](const Outcome &o) { return o.mat_type; });
  table.Add("-ksp_type", [](const Outcome &o) { return o.ksp_type; });
  table.Add("-pc_type", [](const Outcome &o) { return o.pc_type; });
  table.Add("reason", [](const Outcome &o) { return std::string(KSPConvergedReasons[o.reason]); });
  table.Add("iterations", [](const Outcome &o) { return Format("%" PetscInt_FMT, o.iterations); });
  table.Add("reduction", [](const Outcome &o) { return Number("%.3e", Reduction(o)); });
  table.Add("true residual", [](const Outcome &o) { return Format("%.3e", (double)o.true_residual); });
  AddTimes(&table);
  AddBytes(system, outcomes, &table);
  PetscCall(
    PetscPrintf(PETSC_COMM_WORLD, "%s: %" PetscInt_FMT " rows, %" PetscCount_FMT " nonzeros; a copy %s: %.1f GB/s\n", BaseName(s->file).c_str(), system->rows, system->nonzeros, ours.gpu ? "on the GPU" : "on the host", 1e-9 * ours.copy_bandwidth));
  PetscCall(table.Print());
  for (const Outcome &o : outcomes) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s with %s ran: %s\n", o.ksp_type.c_str(), o.mat_type.c_str(), o.ran.c_str()));
  if (!ours.why.empty()) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "not faster because: %s\n", ours.why.c_str()));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- CSV */

/* Quoted where it must be: by RFC 4180 a quote within is doubled */
static std::string Quoted(const std::string &text)
{
  std::string quoted;

  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return "\"" + quoted + "\"";
}

/* The digits that matter, or nothing where it is not known */
static std::string Field(double value)
{
  return value < 0.0 ? "" : Format("%.6g", value);
}

static std::string Whole(double value)
{
  return value < 0.0 ? "" : Format("%.0f", value);
}

static std::string CSVLine(const Settings *s, const System *system, int processes, const Outcome *o)
{
  const auto    ms   = [](double seconds) { return Field(seconds < 0.0 ? -1.0 : 1e3 * seconds); };
  const Outcome none = {}, &r = o ? *o : none;
  const bool    second = r.second >= 0.0;
  const struct {
    const char *name;
    std::string value;
  } fields[] = {
    {"matrix",           Quoted(BaseName(s->file))   },
    {"rows",             Format("%" PetscInt_FMT,      system->rows)},
    {"nonzeros",                  Format("%" PetscCount_FMT,                                     system->nonzeros)},
    {"processes", Format("%d",processes)},
    {"place",       r.gpu ? "GPU" : "host"                                },
    {"mat_type",            r.mat_type           },
    {"ksp_type",         r.ksp_type               },
    {"pc_type",         r.pc_type                  },
    {"reason",          KSPConvergedReasons[r.reason]                    },
    {"iterations",           Format("%" PetscInt_FMT, r.iterations)},
    {"reduction",       Field(Reduction(r)) },
    {"true_residual",                  Field((double)r.true_residual)                                   },
    {"setup_ms",                  ms(r.setup)                              },
    {"values_ms",                  ms(r.values) },
    {"first_solve_ms",                  ms(r.first)     },
    {"second_solve_ms",                  ms(r.second)                             },
    {"best_solve_ms",                  ms(r.best)                        },
    {"us_per_iteration",                  Field(1e6 * IterationTime(r))  },
    {"vectors_ms",                  ms(r.transfer)    },
    {"matrix_bytes",                  Whole(r.matrix_bytes)                                },
    {"product_bytes",                  Whole(r.product_bytes)                            },
    {"iteration_bytes",                  Whole(r.iteration_bytes)},
    {"gigabytes_per_second",                  Field(Bandwidth(r) < 0.0 ? -1.0 : 1e-9 * Bandwidth(r)) },
    {"copy_gigabytes_per_second",                  Field(1e-9 * r.copy_bandwidth)                         },
    {"first_copies",                  Whole(r.copies[0].number_up + r.copies[0].number_down)                  },
    {"first_copied_bytes",                  Whole(Bytes(r.copies[0]))       },
    {"second_copies",                  Whole(second ? r.copies[1].number_up + r.copies[1].number_down : -1.0)        },
    {"second_copied_bytes",                  Whole(second ? Bytes(r.copies[1]) : -1.0)                        },
    {"ran",                  Quoted(r.ran)                 },
    {"not_faster_because",                  Quoted(r.why)                 },
  };
  std::string line;

  for (const auto &field : fields) line += (line.empty() ? "" : ",") + (o ? field.value : field.name);
  return line + "\n";
}

/* Is there a file, with other columns? */
PetscErrorCode AppendCSV(const Settings *s, const System *system, const std::vector<Outcome> &outcomes)
{
  enum {
    EMPTY,
    SAME,
    OTHER
  };
  PetscMPIInt rank, size;
  int         found = EMPTY;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  std::string text = CSVLine(s, system, size, nullptr);
  if (rank == 0) {
    std::vector<char> line(text.size() + 2);
    FILE             *stream = fopen(s->csv, "r");

    if (stream && fgets(line.data(), (int)line.size(), stream)) found = text == line.data() ? SAME : OTHER;
    if (stream) fclose(stream);
  }
  PetscCallMPI(MPI_Bcast(&found, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  PetscCheck(found != OTHER, PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s: its first line is not that of -solve_csv: name another file", s->csv);
  if (found == SAME) text.clear();
  for (const Outcome &o : outcomes) text += CSVLine(s, system, size, &o);
  PetscCall(WriteText(s->csv, "a", text));
  PetscFunctionReturn(PETSC_SUCCESS);
}
