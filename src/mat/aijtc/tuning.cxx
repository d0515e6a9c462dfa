/* The tuning values of the layout as one text, KEY=VALUE,KEY=VALUE. What it does not name the library chooses (layout/params.cxx). */
#include <petsctc/private/aijtcimpl.h> /*I "petsctc.h" I*/
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

const char *const MatAIJTCForms[] = {"auto", "tile", "row"};

namespace
{
/* False: it is no number, or none that PetscInt holds */
bool ReadNumber(const std::string &text, PetscInt *n)
{
  char     *end;
  long long number;

  errno  = 0;
  number = std::strtoll(text.c_str(), &end, 10);
  *n     = (PetscInt)number;
  return end != text.c_str() && !*end && !errno && *n == number;
}

bool ReadCount(const std::string &text, PetscInt *n)
{
  return ReadNumber(text, n) && *n >= 0;
}

bool ReadRows(const std::string &text, PetscInt *n)
{
  return ReadNumber(text, n) && (*n == 1 || *n == 2 || *n == 4);
}

bool ReadGather(const std::string &text, PetscInt *n)
{
  return ReadCount(text, n) && *n <= AIJTC_GATHER_MOST;
}

bool ReadForm(const std::string &text, PetscInt *n)
{
  for (*n = 0; *n < MAT_AIJTC_FORMS && text != MatAIJTCForms[*n];) ++*n;
  return *n < MAT_AIJTC_FORMS;
}

static_assert(AIJTC_GATHER_MOST == 64, "as the table tells");
const struct Param {
  const char *key, *allowed;
  PetscInt MatAIJTCSettings::*value;
  PetscInt                    unset;
  bool (*read)(const std::string &, PetscInt *); /* false: not allowed */
} params[] = {
  {"short",  "0 or more",            &MatAIJTCSettings::short_row,     PETSC_DECIDE,        ReadCount },
  {"long",   "0 or more",            &MatAIJTCSettings::long_row,      PETSC_DECIDE,        ReadCount },
  {"window", "0 (all rows) or more", &MatAIJTCSettings::window,        PETSC_DECIDE,        ReadCount },
  {"rows",   "1, 2 or 4",            &MatAIJTCSettings::rows_per_lane, PETSC_DECIDE,        ReadRows  },
  {"gather", "0 (none) to 64",       &MatAIJTCSettings::gather,        PETSC_DECIDE,        ReadGather},
  {"form",   "auto, tile or row",    &MatAIJTCSettings::form,          MAT_AIJTC_FORM_AUTO, ReadForm  }
};

/* Takes KEY=VALUE over. given: the keys before it, a bit each */
PetscErrorCode SetParam(MPI_Comm comm, const std::string &item, MatAIJTCSettings *s, unsigned *given)
{
  const size_t      equals = std::min(item.find('='), item.size());
  const std::string key = item.substr(0, equals), value = item.substr(std::min(equals + 1, item.size()));
  unsigned          bit = 1;

  PetscFunctionBegin;
  for (const Param &p : params) {
    if (key == p.key) {
      PetscCheck(!(*given & bit), comm, PETSC_ERR_ARG_WRONG, "Key %s comes twice, again with the value '%s': give it once (-mat_aijtc_params)", p.key, value.c_str());
      PetscCheck(p.read(value, &(s->*p.value)), comm, PETSC_ERR_ARG_OUTOFRANGE, "Key %s has the value '%s': use %s (-mat_aijtc_params)", p.key, value.c_str(), p.allowed);
      *given |= bit;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    bit *= 2;
  }
  SETERRQ(comm, PETSC_ERR_ARG_WRONG, "Unknown key '%s' with the value '%s': use short, long, window, rows, gather or form (-mat_aijtc_params)", key.c_str(), value.c_str());
}
} // namespace

/* All tuning values as a text tells; on an error they are of no use */
PetscErrorCode MatAIJTCSettingsParse(MPI_Comm comm, const char text[], MatAIJTCSettings *s)
{
  const std::string all   = text ? text : "";
  unsigned          given = 0;

  PetscFunctionBegin;
  for (const Param &p : params) s->*p.value = p.unset;
  for (size_t begin = 0, end; !all.empty() && begin <= all.size(); begin = end + 1) {
    end = std::min(all.find(',', begin), all.size());
    PetscCall(SetParam(comm, all.substr(begin, end - begin), s, &given));
  }
  PetscCheck(s->long_row >= s->short_row || s->long_row == PETSC_DECIDE, comm, PETSC_ERR_ARG_OUTOFRANGE, "Key long has the value '%" PetscInt_FMT "': use no less than the %" PetscInt_FMT " of short (-mat_aijtc_params)", s->long_row, s->short_row);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The other way: what is set, in the order of the keys */
PetscErrorCode MatAIJTCSettingsFormat(const MatAIJTCSettings *s, char text[AIJTC_PARAMS_LENGTH])
{
  std::string all;

  PetscFunctionBegin;
  for (const Param &p : params) {
    const PetscInt n = s->*p.value;

    if (n == p.unset) continue;
    all += (all.empty() ? "" : ",") + std::string(p.key) + "=" + (p.read == ReadForm ? MatAIJTCForms[n] : std::to_string(n));
  }
  PetscCall(PetscStrncpy(text, all.c_str(), AIJTC_PARAMS_LENGTH));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCSetParams - Sets tuning values of the layout of a `MATAIJTC` matrix, which are otherwise chosen for the matrix

  Logically Collective

  Input Parameters:
+ A      - the matrix, of type `MATAIJTC`
- params - the values, as KEY=VALUE,KEY=VALUE without spaces; an empty text or `NULL` for none

  Options Database Key:
. -mat_aijtc_params KEY=VALUE,KEY=VALUE - the values

  Level: developer

  Example Usage:
.vb
  ./your_program -mat_type aijtc -mat_aijtc_params short=8,long=256,window=1024,rows=2

  MatAIJTCSetParams(A, "form=tile");
  MatAIJTCSetParams(A, NULL); // all are chosen again
.ve

  Notes:
  The keys are
+ short  - a row with at most so many nonzeros is short and takes a lane
. long   - a row with more nonzeros, no less than `short`, is long and is cut into pieces, which different warps multiply; rows between the two go into tiles of 8 rows by 4 nonzeros
. window - the rows of slices that are not consecutive are sorted by length in windows of so many consecutive rows; 0 sorts all rows together
. rows   - short rows that a lane multiplies at once: 1, 2 or 4
. gather - slices of 32 rows in a block whose entries of x are gathered together: 1 to 64; 0 for a layout without such blocks
- form   - how rows are dealt out to the lanes of a warp: auto (by short and long), tile (all that are not long go into tiles, but for 32 or more consecutive empty rows), row (all that are not long take a lane)

  The text stands for all values: a key that it does not name is chosen, whatever was set before. The layout is built again at the next product if a value changed. This is for tests and measurements;
  `MatAIJTCGetInfo()`, and `MatView()` with `PETSC_VIEWER_ASCII_INFO_DETAIL`, tell what was set or chosen.

  A layout is gathered only if the matrix is square (for the MPI type: of the blocks the diagonal one), all rows are short, a lane has one row, no block has more than 4096 columns, and the columns of all blocks together
  are at most half the nonzeros; else it is as with gather=0. Where a block has more than 4096 columns half as many slices are tried first, again and again, as long as that is a whole number and at least 8. In a gathered
  layout window has no effect, with the forms tile and row short has none. On the host the product is the same to the last bit, gathered or not.

  An unknown key and one that comes twice are `PETSC_ERR_ARG_WRONG`, a value that is not allowed, such as an empty one, is `PETSC_ERR_ARG_OUTOFRANGE`. The message tells the key, its value and what is allowed, and the
  matrix keeps the values that it had.

.seealso: `MATAIJTC`, `MatAIJTCGetParams()`, `MatAIJTCGetInfo()`, `MatAIJTCSetCompress()`, `MatAIJTCSetMMA()`
@*/
PetscErrorCode MatAIJTCSetParams(Mat A, const char params[])
{
  Mat_AIJTC       *tc;
  MatAIJTCSettings settings;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  settings = tc->settings;
  PetscCall(MatAIJTCSettingsParse(PetscObjectComm((PetscObject)A), params, &settings));
  PetscCall(MatAIJTCSetSettings(A, &settings));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  MatAIJTCGetParams - Gets the tuning values of the layout of a `MATAIJTC` matrix that were set

  Not Collective

  Input Parameter:
. A - the matrix, of type `MATAIJTC`

  Output Parameter:
. params - the values, as `MatAIJTCSetParams()` takes them; an empty text if none was set. The matrix keeps it until the next call or its end: do not free it

  Level: developer

  Note:
  `MatAIJTCGetInfo()` tells what was chosen, too.

.seealso: `MATAIJTC`, `MatAIJTCSetParams()`, `MatAIJTCGetInfo()`
@*/
PetscErrorCode MatAIJTCGetParams(Mat A, const char *params[])
{
  Mat_AIJTC *tc;

  PetscFunctionBegin;
  PetscCall(MatAIJTCCheckType(A, &tc));
  PetscAssertPointer(params, 2);
  PetscCall(MatAIJTCSettingsFormat(&tc->settings, tc->params));
  *params = tc->params;
  PetscFunctionReturn(PETSC_SUCCESS);
}
