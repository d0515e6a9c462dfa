#include "matrixmarket.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <vector>

namespace
{

/* The file is read on one process only, where a PETSc error would leave the others waiting: there it is thrown, then raised by all of them. */
struct Failure {
  PetscErrorCode code;
  std::string    message;
};

struct Entry {
  PetscInt    row, col;
  PetscScalar value;
};

struct Column {
  PetscInt    col;
  PetscScalar value;
};

/* Compressed rows: those of the whole matrix on the first process, the own ones on the others */
struct Rows {
  std::vector<PetscInt> length;
  std::vector<Column>   entries;
};

/* The lines of a plain or gzipped file, one at a time, of any length, each ended by a NUL */
class LineReader {
public:
  explicit LineReader(const char name[]) : file_(name), gz_(gzopen(name, "rb")), buffer_(1 << 20)
  {
    if (!gz_) throw Failure{PETSC_ERR_FILE_OPEN, file_ + ": cannot be opened: " + std::strerror(errno)};
  }
  ~LineReader() { gzclose(gz_); }
  LineReader(const LineReader &)            = delete;
  LineReader &operator=(const LineReader &) = delete;

  bool              next(); /* go to the next line; false at the end of the file */
  bool              nextWithData();
  PetscInt64        number() const { return number_; }
  PetscInt64        integer(const char what[]);
  PetscScalar       real(const char what[]);
  std::string       word();
  void              expectEnd();
  [[noreturn]] void fail(PetscErrorCode code, const char format[], ...) const __attribute__((format(printf, 3, 4)));

private:
  void        fill();
  void        skipBlanks();
  std::string quote(const char *from) const;

  std::string       file_;
  gzFile            gz_;
  std::vector<char> buffer_;
  size_t            first_ = 0, last_ = 0; /* bytes of the buffer not yet given out */
  bool              ended_   = false;
  PetscInt64        number_  = 0;
  char             *cursor_  = nullptr; /* in the current line, what is not yet read */
  char             *lineEnd_ = nullptr;
};

void LineReader::fail(PetscErrorCode code, const char format[], ...) const
{
  char    text[512];
  va_list arguments;

  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  throw Failure{code, file_ + ", line " + std::to_string(std::max<PetscInt64>(number_, 1)) + ": " + text};
}

/* The piece of the line that begins here, for a message: short and printable */
std::string LineReader::quote(const char *from) const
{
  std::string piece;

  while (from < lineEnd_ && *from != ' ' && *from != '\t' && piece.size() < 40) {
    piece += (*from >= ' ' && *from <= '~') ? *from : '?';
    ++from;
  }
  return "'" + piece + "'";
}

void LineReader::fill()
{
  std::memmove(buffer_.data(), buffer_.data() + first_, last_ - first_);
  last_ -= first_;
  first_ = 0;
  if (last_ + 1 >= buffer_.size()) buffer_.resize(2 * buffer_.size()); /* room for the NUL of a last line without newline */
  const int got = gzread(gz_, buffer_.data() + last_, (unsigned)std::min<size_t>(buffer_.size() - last_ - 1, 1 << 30));
  if (got > 0) {
    last_ += (size_t)got;
    return;
  }
  int         status;
  const char *reason = gzerror(gz_, &status); /* a gzip file cut short shows only here */
  if (status == Z_ERRNO) reason = std::strerror(errno);
  else if (std::strncmp(reason, file_.c_str(), file_.size()) == 0) reason += file_.size() + 2; /* "file: " comes from fail() */
  ++number_;
  if (status == Z_BUF_ERROR) fail(PETSC_ERR_FILE_UNEXPECTED, "the gzip file is cut short");
  if (status != Z_OK && status != Z_STREAM_END) fail(PETSC_ERR_FILE_READ, "cannot be read on: %s", reason);
  --number_;
  ended_ = true;
}

bool LineReader::next()
{
  size_t searched = first_;
  char  *newline  = nullptr;

  while (!newline) {
    if (last_ > searched) newline = (char *)std::memchr(buffer_.data() + searched, '\n', last_ - searched);
    if (newline || ended_) break;
    searched = last_ - first_;
    fill();
  }
  if (!newline && first_ == last_) return false;
  cursor_  = buffer_.data() + first_;
  lineEnd_ = newline ? newline : buffer_.data() + last_;
  first_   = newline ? (size_t)(newline + 1 - buffer_.data()) : last_;
  if (lineEnd_ > cursor_ && lineEnd_[-1] == '\r') --lineEnd_;
  *lineEnd_ = 0;
  ++number_;
  return true;
}

void LineReader::skipBlanks()
{
  while (*cursor_ == ' ' || *cursor_ == '\t') ++cursor_;
}

/* Comments and empty lines stand for nothing, wherever they are after the banner */
bool LineReader::nextWithData()
{
  while (next()) {
    skipBlanks();
    if (cursor_ != lineEnd_ && *cursor_ != '%') return true;
  }
  return false;
}

PetscInt64 LineReader::integer(const char what[])
{
  char *stop;

  skipBlanks();
  if (cursor_ == lineEnd_) fail(PETSC_ERR_FILE_UNEXPECTED, "the line ends where the %s should be", what);
  errno                 = 0;
  const long long value = std::strtoll(cursor_, &stop, 10);
  if (stop == cursor_ || (stop != lineEnd_ && *stop != ' ' && *stop != '\t')) fail(PETSC_ERR_FILE_UNEXPECTED, "%s is no integer where the %s should be", quote(cursor_).c_str(), what);
  if (errno == ERANGE) fail(PETSC_ERR_ARG_OUTOFRANGE, "the %s %s is too large", what, quote(cursor_).c_str());
  cursor_ = stop;
  return value;
}

PetscScalar LineReader::real(const char what[])
{
  char *stop;

  skipBlanks();
  if (cursor_ == lineEnd_) fail(PETSC_ERR_FILE_UNEXPECTED, "the line ends where the %s should be", what);
  const double value = std::strtod(cursor_, &stop);
  if (stop == cursor_ || (stop != lineEnd_ && *stop != ' ' && *stop != '\t')) fail(PETSC_ERR_FILE_UNEXPECTED, "%s is no number where the %s should be", quote(cursor_).c_str(), what);
  if (!std::isfinite(value)) fail(PETSC_ERR_FILE_UNEXPECTED, "the %s %s is not a finite number", what, quote(cursor_).c_str());
  cursor_ = stop;
  return value;
}

/* The next word of the line in small letters, empty at its end */
std::string LineReader::word()
{
  std::string text;

  skipBlanks();
  for (; cursor_ < lineEnd_ && *cursor_ != ' ' && *cursor_ != '\t'; ++cursor_) text += (*cursor_ >= 'A' && *cursor_ <= 'Z') ? (char)(*cursor_ - 'A' + 'a') : *cursor_;
  return text;
}

void LineReader::expectEnd()
{
  skipBlanks();
  if (cursor_ != lineEnd_) fail(PETSC_ERR_FILE_UNEXPECTED, "%s follows where the line should end", quote(cursor_).c_str());
}

/* One Matrix Market file: first header(), then entries() */
class MatrixMarketFile {
public:
  explicit MatrixMarketFile(const char name[]) : lines_(name) { }
  void               header(MatrixMarketInfo *info);
  std::vector<Entry> entries();
  void               checkNonzeros(size_t nonzeros) const;

private:
  void        banner();
  void        sizes();
  PetscInt64  count(const char what[], PetscInt64 largest);
  Entry       coordinates();
  PetscScalar value() { return pattern_ ? 1.0 : integer_ ? (PetscScalar)lines_.integer("value") : lines_.real("value"); }
  void        readCoordinates(std::vector<Entry> &list);
  void        readArray(std::vector<Entry> &list);

  LineReader       lines_;
  MatrixMarketInfo info_  = {};
  bool             array_ = false, pattern_ = false, integer_ = false;
  int              triangle_ = 0; /* of a symmetric file: 1 when entries below the diagonal were met, -1 above */
};

void MatrixMarketFile::banner()
{
  if (!lines_.next() || lines_.word() != "%%matrixmarket") lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "no Matrix Market file: it must begin with %%%%MatrixMarket");
  const std::string object = lines_.word(), format = lines_.word(), field = lines_.word(), symmetry = lines_.word();
  if (object != "matrix") lines_.fail(PETSC_ERR_SUP, "the banner says object '%.40s', only 'matrix' is handled", object.c_str());
  if (format != "coordinate" && format != "array") lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the banner says format '%.40s', it must be coordinate or array", format.c_str());
  if (field == "complex" || symmetry == "hermitian") lines_.fail(PETSC_ERR_SUP, "complex matrices are not handled");
  if (field != "real" && field != "double" && field != "integer" && field != "pattern") lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the banner says field '%.40s', it must be real, integer or pattern", field.c_str());
  if (symmetry != "general" && symmetry != "symmetric" && symmetry != "skew-symmetric") { lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the banner says symmetry '%.40s', it must be general, symmetric or skew-symmetric", symmetry.c_str()); }
  lines_.expectEnd();
  array_   = format == "array";
  pattern_ = field == "pattern";
  integer_ = field == "integer";
  if (pattern_ && (array_ || symmetry == "skew-symmetric")) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the banner says pattern, which cannot be %s", array_ ? "array" : "skew-symmetric");
  info_.symmetry = symmetry == "general" ? MATRIXMARKET_GENERAL : symmetry == "symmetric" ? MATRIXMARKET_SYMMETRIC : MATRIXMARKET_SKEW_SYMMETRIC;
}

PetscInt64 MatrixMarketFile::count(const char what[], PetscInt64 largest)
{
  const PetscInt64 n = lines_.integer(what);

  if (n < 0) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the %s %" PetscInt64_FMT " is negative", what, n);
  if (n > largest) lines_.fail(PETSC_ERR_ARG_OUTOFRANGE, "the %s %" PetscInt64_FMT " is larger than this PETSc can index (%" PetscInt64_FMT "); configure it with --with-64-bit-indices", what, n, largest);
  return n;
}

void MatrixMarketFile::sizes()
{
  if (!lines_.nextWithData()) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the file ends before the line with the sizes");
  info_.size_line = lines_.number();
  info_.rows      = (PetscInt)count("number of rows", PETSC_INT_MAX);
  info_.cols      = (PetscInt)count("number of columns", PETSC_INT_MAX);
  if (info_.symmetry != MATRIXMARKET_GENERAL && info_.rows != info_.cols) {
    lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "%" PetscInt_FMT " rows and %" PetscInt_FMT " columns, but the banner says a symmetric matrix, which is square", info_.rows, info_.cols);
  }
  if (!array_) info_.stored = count("number of entries", std::numeric_limits<PetscInt64>::max());
  else {
    const PetscInt64 m = info_.rows, n = info_.cols;
    if (n && m > std::numeric_limits<PetscInt64>::max() / n) lines_.fail(PETSC_ERR_ARG_OUTOFRANGE, "an array of %" PetscInt64_FMT " by %" PetscInt64_FMT " is too large", m, n);
    info_.stored = info_.symmetry == MATRIXMARKET_GENERAL ? m * n : info_.symmetry == MATRIXMARKET_SYMMETRIC ? (m * n - m) / 2 + m : (m * n - m) / 2;
  }
  lines_.expectEnd();
}

void MatrixMarketFile::header(MatrixMarketInfo *info)
{
  banner();
  sizes();
  *info = info_;
}

/* Row and column of the current line, counted from 0 */
Entry MatrixMarketFile::coordinates()
{
  const PetscInt64 row = lines_.integer("row"), col = lines_.integer("column");

  if (row < 1 || row > info_.rows) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "row %" PetscInt64_FMT " is not in 1 to %" PetscInt_FMT, row, info_.rows);
  if (col < 1 || col > info_.cols) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "column %" PetscInt64_FMT " is not in 1 to %" PetscInt_FMT, col, info_.cols);
  if (info_.symmetry == MATRIXMARKET_SKEW_SYMMETRIC && row == col) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "a skew-symmetric file stores no diagonal entry (%" PetscInt64_FMT ", %" PetscInt64_FMT ")", row, col);
  if (info_.symmetry != MATRIXMARKET_GENERAL && row != col) {
    const int side = row > col ? 1 : -1;
    if (triangle_ == -side) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "entry (%" PetscInt64_FMT ", %" PetscInt64_FMT ") is on the other side of the diagonal than those before: a symmetric file stores one triangle", row, col);
    triangle_ = side;
  }
  return {(PetscInt)(row - 1), (PetscInt)(col - 1), 0.0};
}

void MatrixMarketFile::readCoordinates(std::vector<Entry> &list)
{
  for (PetscInt64 k = 0; k < info_.stored; ++k) {
    if (!lines_.nextWithData()) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the file ends after %" PetscInt64_FMT " of the %" PetscInt64_FMT " entries that line %" PetscInt64_FMT " announces", k, info_.stored, info_.size_line);
    Entry entry = coordinates();
    entry.value = value();
    lines_.expectEnd();
    list.push_back(entry);
  }
}

/* Column by column; of a symmetric matrix the part from the diagonal on, of a skew-symmetric one the part below it. Zeros are not stored. */
void MatrixMarketFile::readArray(std::vector<Entry> &list)
{
  const PetscInt skip = info_.symmetry == MATRIXMARKET_SKEW_SYMMETRIC ? 1 : 0;
  PetscInt64     k    = 0;

  for (PetscInt col = 0; col < info_.cols; ++col) {
    for (PetscInt row = info_.symmetry == MATRIXMARKET_GENERAL ? 0 : col + skip; row < info_.rows; ++row, ++k) {
      if (!lines_.nextWithData()) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the file ends after %" PetscInt64_FMT " of the %" PetscInt64_FMT " values of the array that line %" PetscInt64_FMT " announces", k, info_.stored, info_.size_line);
      const PetscScalar v = value();
      lines_.expectEnd();
      if (v != 0.0) list.push_back({row, col, v});
    }
  }
}

std::vector<Entry> MatrixMarketFile::entries()
{
  std::vector<Entry> list;

  list.reserve((size_t)std::min<PetscInt64>(info_.stored, 1 << 24)); /* never trust a count with all of the memory */
  if (array_) readArray(list);
  else readCoordinates(list);
  if (lines_.nextWithData()) lines_.fail(PETSC_ERR_FILE_UNEXPECTED, "the file goes on after the %" PetscInt64_FMT " entries that line %" PetscInt64_FMT " announces", info_.stored, info_.size_line);
  return list;
}

void MatrixMarketFile::checkNonzeros(size_t nonzeros) const
{
  if (nonzeros > (size_t)PETSC_INT_MAX) lines_.fail(PETSC_ERR_ARG_OUTOFRANGE, "%zu nonzeros are more than this PETSc can index; configure it with --with-64-bit-indices", nonzeros);
}

/* Sorts one row by column and adds what is given twice, in the order of the file; returns the new length */
PetscInt SortRow(Column *first, Column *last)
{
  const auto less = [](const Column &a, const Column &b) { return a.col < b.col; };
  Column    *end  = first;

  if (!std::is_sorted(first, last, less)) std::stable_sort(first, last, less);
  for (Column *c = first; c < last; ++c) {
    if (end > first && end[-1].col == c->col) end[-1].value += c->value;
    else *end++ = *c;
  }
  return (PetscInt)(end - first);
}

/* Both triangles of the entries in compressed rows */
Rows CompressRows(const std::vector<Entry> &list, const MatrixMarketInfo &info)
{
  const bool              mirror = info.symmetry != MATRIXMARKET_GENERAL;
  const PetscScalar       sign   = info.symmetry == MATRIXMARKET_SKEW_SYMMETRIC ? -1.0 : 1.0;
  std::vector<PetscCount> start((size_t)info.rows + 1, 0), place;
  Rows                    rows;
  size_t                  kept = 0;

  for (const Entry &e : list) {
    ++start[(size_t)e.row + 1];
    if (mirror && e.row != e.col) ++start[(size_t)e.col + 1];
  }
  for (size_t i = 0; i < (size_t)info.rows; ++i) start[i + 1] += start[i];
  rows.entries.resize((size_t)start.back());
  place.assign(start.begin(), start.end() - 1);
  for (const Entry &e : list) {
    rows.entries[(size_t)place[(size_t)e.row]++] = {e.col, e.value};
    if (mirror && e.row != e.col) rows.entries[(size_t)place[(size_t)e.col]++] = {e.row, sign * e.value};
  }
  rows.length.resize((size_t)info.rows);
  for (size_t i = 0; i < (size_t)info.rows; ++i) {
    Column *row = rows.entries.data() + start[i];

    rows.length[i] = SortRow(row, rows.entries.data() + start[i + 1]);
    std::copy(row, row + rows.length[i], rows.entries.data() + kept);
    kept += (size_t)rows.length[i];
  }
  rows.entries.resize(kept);
  return rows;
}

/* Runs read on the first process; what it throws becomes a PETSc error of all of them */
template <typename Function>
PetscErrorCode ReadOnFirstProcess(MPI_Comm comm, const char file[], Function read)
{
  Failure     failure{PETSC_SUCCESS, ""};
  PetscMPIInt rank, header[2];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (rank == 0) {
    try {
      read();
    } catch (const Failure &thrown) {
      failure = thrown;
    } catch (const std::bad_alloc &) {
      failure = {PETSC_ERR_MEM, std::string(file) + ": not enough memory to read it"};
    }
  }
  header[0] = (PetscMPIInt)failure.code;
  header[1] = (PetscMPIInt)failure.message.size();
  PetscCallMPI(MPI_Bcast(header, 2, MPI_INT, 0, comm));
  if (header[0] == PETSC_SUCCESS) PetscFunctionReturn(PETSC_SUCCESS);
  failure.message.resize((size_t)header[1]);
  PetscCallMPI(MPI_Bcast(&failure.message[0], header[1], MPI_CHAR, 0, comm));
  SETERRQ(comm, (PetscErrorCode)header[0], "%s", failure.message.c_str());
}

/* One message may not hold more than INT_MAX bytes */
constexpr size_t MESSAGE_ENTRIES = 1 << 24;

PetscErrorCode SendRows(MPI_Comm comm, PetscMPIInt to, const PetscInt *length, PetscInt m, const Column *entries, size_t n)
{
  PetscFunctionBegin;
  PetscCallMPI(MPI_Send(length, (PetscMPIInt)m, MPIU_INT, to, 0, comm));
  for (size_t k = 0; k < n; k += MESSAGE_ENTRIES) PetscCallMPI(MPI_Send(entries + k, (PetscMPIInt)(std::min(n - k, MESSAGE_ENTRIES) * sizeof(Column)), MPI_BYTE, to, 0, comm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode ReceiveRows(MPI_Comm comm, PetscInt m, Rows &rows)
{
  size_t n = 0;

  PetscFunctionBegin;
  rows.length.resize((size_t)m);
  PetscCallMPI(MPI_Recv(rows.length.data(), (PetscMPIInt)m, MPIU_INT, 0, 0, comm, MPI_STATUS_IGNORE));
  for (PetscInt length : rows.length) n += (size_t)length;
  rows.entries.resize(n);
  for (size_t k = 0; k < n; k += MESSAGE_ENTRIES) PetscCallMPI(MPI_Recv(rows.entries.data() + k, (PetscMPIInt)(std::min(n - k, MESSAGE_ENTRIES) * sizeof(Column)), MPI_BYTE, 0, 0, comm, MPI_STATUS_IGNORE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From all rows on the first process to m on each; afterwards rows holds the own ones */
PetscErrorCode DistributeRows(MPI_Comm comm, PetscInt m, Rows &rows)
{
  PetscMPIInt           rank, size;
  std::vector<PetscInt> counts;
  size_t                row, entry = 0;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  counts.resize((size_t)size);
  PetscCallMPI(MPI_Gather(&m, 1, MPIU_INT, counts.data(), 1, MPIU_INT, 0, comm));
  if (rank > 0) {
    PetscCall(ReceiveRows(comm, m, rows));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (row = 0; row < (size_t)m; ++row) entry += (size_t)rows.length[row];
  const size_t own = entry;
  for (PetscMPIInt to = 1; to < size; ++to) {
    const size_t begin = entry;

    for (PetscInt k = 0; k < counts[(size_t)to]; ++k) entry += (size_t)rows.length[row + (size_t)k];
    PetscCall(SendRows(comm, to, rows.length.data() + row, counts[(size_t)to], rows.entries.data() + begin, entry - begin));
    row += (size_t)counts[(size_t)to];
  }
  rows.length.resize((size_t)m);
  rows.entries.resize(own);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reserves exactly what the own rows need in the diagonal and the off-diagonal block */
PetscErrorCode PreallocateRows(Mat A, const Rows &rows)
{
  std::vector<PetscInt> diagonal(rows.length.size(), 0), rest(rows.length.size(), 0);
  const Column         *entry = rows.entries.data();
  PetscInt              begin, end;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRangeColumn(A, &begin, &end));
  for (size_t i = 0; i < rows.length.size(); ++i) {
    for (PetscInt k = 0; k < rows.length[i]; ++k, ++entry) ++(entry->col >= begin && entry->col < end ? diagonal : rest)[i];
  }
  PetscCall(MatXAIJSetPreallocation(A, 1, diagonal.data(), rest.data(), nullptr, nullptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode FillRows(Mat A, const Rows &rows)
{
  std::vector<PetscInt>    cols;
  std::vector<PetscScalar> values;
  const Column            *entry = rows.entries.data();
  PetscInt                 begin;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &begin, nullptr));
  for (size_t i = 0; i < rows.length.size(); ++i) {
    const PetscInt row = begin + (PetscInt)i;

    cols.clear();
    values.clear();
    for (PetscInt k = 0; k < rows.length[i]; ++k, ++entry) {
      cols.push_back(entry->col);
      values.push_back(entry->value);
    }
    PetscCall(MatSetValues(A, 1, &row, rows.length[i], cols.data(), values.data(), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

} // namespace

PetscErrorCode MatLoadMatrixMarket(Mat A, const char file[], MatrixMarketInfo *info)
{
  MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscInt m = PETSC_DECIDE, n = PETSC_DECIDE;
  Rows     rows;

  PetscFunctionBegin;
  PetscCall(ReadOnFirstProcess(comm, file, [&]() {
    MatrixMarketFile mm(file);

    mm.header(info);
    rows = CompressRows(mm.entries(), *info);
    mm.checkNonzeros(rows.entries.size());
  }));
  PetscCallMPI(MPI_Bcast(info, (PetscMPIInt)sizeof(*info), MPI_BYTE, 0, comm));
  PetscCall(PetscSplitOwnership(comm, &m, &info->rows));
  PetscCall(PetscSplitOwnership(comm, &n, &info->cols));
  PetscCall(DistributeRows(comm, m, rows));
  PetscCall(MatSetSizes(A, m, n, info->rows, info->cols));
  PetscCall(MatSetUp(A));
  PetscCall(PreallocateRows(A, rows));
  PetscCall(FillRows(A, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecLoadMatrixMarket(Vec b, const char file[], MatrixMarketInfo *info)
{
  MPI_Comm           comm = PetscObjectComm((PetscObject)b);
  PetscInt           n;
  std::vector<Entry> entries;

  PetscFunctionBegin;
  PetscCall(ReadOnFirstProcess(comm, file, [&]() {
    MatrixMarketFile mm(file);

    mm.header(info);
    entries = mm.entries();
  }));
  PetscCallMPI(MPI_Bcast(info, (PetscMPIInt)sizeof(*info), MPI_BYTE, 0, comm));
  PetscCall(VecGetSize(b, &n));
  PetscCheck(info->rows == n && info->cols == 1, comm, PETSC_ERR_FILE_UNEXPECTED, "%s, line %" PetscInt64_FMT ": %" PetscInt_FMT " rows and %" PetscInt_FMT " columns where a vector of %" PetscInt_FMT " rows and 1 column is needed", file,
             info->size_line, info->rows, info->cols, n);
  PetscCall(VecSet(b, 0.0));
  for (const Entry &e : entries) PetscCall(VecSetValue(b, e.row, e.value, ADD_VALUES)); /* the first process holds them all, the others none */
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscFunctionReturn(PETSC_SUCCESS);
}
