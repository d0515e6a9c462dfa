/*
   Layouts: every slice is decoded here from its bytes, slot by slot, and compared with the matrix; then its form is compared with the form that the rules of aijtclayout.h give, worked out
   here from the matrix with sets and maps. Device builds must give the bytes of host builds. Then: block sizes and common offsets, parameters, wrong input, failure of memory.
*/
#include "clusters.h"
#include "layouts.h"
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
  #define WITH_ASAN 1
#else
  #define WITH_ASAN 0
#endif

namespace
{
uint64_t Bits(PetscScalar value)
{
  uint64_t bits = 0;

  memcpy(&bits, &value, sizeof(value));
  return bits;
}

template <class T>
T Load(const uint8_t *bytes, PetscCount index)
{
  T value;

  memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

/* One entry as its lane sees it */
struct Entry {
  int         slot, lane, place; /* lane: of all groups; place: of its row in the slice */
  PetscInt    column;
  PetscScalar value;
};

/* What the header says of a slice, put into words of this test */
struct Slice {
  const AIJTCLayout    &L;
  AIJTCSlice            s;
  AIJTCKind             kind;
  int                   R, period, width, value_form;
  bool                  full, spread, constant;
  std::vector<PetscInt> row; /* by place, -1: none */
  const uint8_t        *slots, *masks, *deltas, *values;
  PetscCount            pattern_bytes, value_bytes, used;
  std::vector<PetscInt> list; /* gathered: the columns of the slice's block */

  Slice(const AIJTCLayout &layout, PetscInt number) : L(layout), s(layout.slice[number])
  {
    const PetscInt tiles = L.nslices[AIJTC_LONG];

    kind       = number < tiles ? AIJTC_LONG : (number < tiles + L.nslices[AIJTC_TILE] ? AIJTC_TILE : AIJTC_ROWS);
    R          = (int)(kind == AIJTC_ROWS ? L.params.rrows : 1);
    period     = kind == AIJTC_ROWS ? (int)L.params.bs : 1;
    full       = s.form & AIJTC_FORM_FULL;
    spread     = s.form & AIJTC_FORM_SPREAD;
    constant   = s.form & AIJTC_FORM_CONST;
    value_form = (int)(s.form >> AIJTC_FORM_VALUE & 3);
    width      = (int[]){0, 1, 2, 4}[s.form >> AIJTC_FORM_DELTA & 3];
    for (int q = 0; q < (kind == AIJTC_LONG ? 1 : (kind == AIJTC_TILE ? 8 : 32) * R); q++) row.push_back(s.form & AIJTC_FORM_RID ? L.rid[s.row + q] : (s.row + q < L.m ? s.row + q : -1));

    PetscCount at = (PetscCount)AIJTC_UNIT * s.pattern;
    slots         = L.pattern + at;
    masks         = slots + 8 * (PetscCount)s.slots;
    used          = 8 * (PetscCount)s.slots + (full ? 0 : 4 * (PetscCount)R * s.slots);
    pattern_bytes = (used + 31) / 32 * 32;
    deltas        = slots + pattern_bytes;
    pattern_bytes = (pattern_bytes + width * Places() + 31) / 32 * 32;
    values        = L.value + (PetscCount)AIJTC_UNIT * s.value;
    value_bytes   = s.values * ValueSize();
    value_bytes   = (value_bytes + 31) / 32 * 32;
    if (Gathered()) list.assign(L.list + L.list_start[number / L.params.gather], L.list + L.list_start[number / L.params.gather + 1]);
  }

  bool Gathered() const { return L.params.gather > 0; }
  /* Of the column in the list of a gathered layout, else the column */
  int64_t  ColumnPlace(PetscInt column) const { return Gathered() ? std::lower_bound(list.begin(), list.end(), column) - list.begin() : column; }
  PetscInt ColumnAt(int64_t place) const
  {
    if (!Gathered()) return (PetscInt)place;
    EXPECT_GE(place, 0);
    EXPECT_LT(place, (int64_t)list.size());
    return place >= 0 && place < (int64_t)list.size() ? list[place] : -1;
  }

  PetscCount  Lanes() const { return 32 * (PetscCount)R; }
  PetscCount  Places() const { return spread ? Lanes() * s.slots : s.entries; }
  PetscCount  ValueSize() const { return value_form == AIJTC_VALUE_DICT ? 1 : (value_form == AIJTC_VALUE_FLOAT ? 4 : (PetscCount)sizeof(PetscScalar)); }
  int32_t     Base(int t) const { return Load<AIJTCSlot>(slots, t).base; }
  uint32_t    Where(int t) const { return Load<AIJTCSlot>(slots, t).where; }
  uint32_t    Mask(int t, int r) const { return full ? ~0u : Load<uint32_t>(masks, (PetscCount)t * R + r); }
  bool        SlotIsConstant(int t) const { return !constant && kind == AIJTC_ROWS && !width && Where(t) & AIJTC_SLOT_CONST; }
  int         Place(int r, int lane) const { return kind == AIJTC_LONG ? 0 : (kind == AIJTC_TILE ? 8 * r + lane / 4 : 32 * r + lane); }
  PetscInt    Ref(int place, int lane) const { return kind == AIJTC_LONG ? lane : (Gathered() ? 0 : row[place] / L.params.bs * L.params.bs); }
  uint32_t    Delta(PetscCount e) const { return width == 0 ? 0 : (width == 1 ? deltas[e] : (width == 2 ? Load<uint16_t>(deltas, e) : Load<uint32_t>(deltas, e))); }
  PetscScalar Value(PetscCount v) const
  {
    if (value_form == AIJTC_VALUE_DICT) return L.dict[values[v]];
    return value_form == AIJTC_VALUE_FLOAT ? (PetscScalar)Load<float>(values, v) : Load<PetscScalar>(values, v);
  }

  /* All entries in the order of slots, groups, lanes; checks `where`, and that the deltas of holes are 0, on the way */
  std::vector<Entry> Decode() const
  {
    std::vector<Entry> entries;
    PetscCount         stored = 0, places = 0; /* values and places before */

    for (int t = 0; t < s.slots; t++) {
      const bool   same  = constant || SlotIsConstant(t);
      const size_t first = entries.size();
      PetscCount   here  = 0; /* places */

      EXPECT_EQ(Where(t) & ~AIJTC_SLOT_CONST, (size_t)(constant || width || kind != AIJTC_ROWS ? places : stored)) << "slot " << t;
      if (constant) stored = (PetscCount)t * period;
      for (int r = 0; r < R; r++) {
        for (int lane = 0; lane < 32; lane++) {
          const bool has = Mask(t, r) >> lane & 1;

          if (!has && spread) {
            EXPECT_EQ(Delta(places + here), 0u) << "slot " << t << ", group " << r << ", lane " << lane;
            here++;
          }
          if (!has) continue;
          const int        q = Place(r, lane);
          const PetscCount v = same ? stored + (row[q] < 0 ? 0 : row[q] % period) : stored + here;

          EXPECT_GE(row[q], 0) << "an entry in a place without a row";
          EXPECT_LT(v, s.values);
          entries.push_back({t, 32 * r + lane, q, ColumnAt(Ref(q, lane) + Base(t) + (int64_t)Delta(places + here)), Value(v)});
          here++;
        }
      }
      EXPECT_GT(entries.size(), first) << "slot " << t << " is empty";
      if (spread) { EXPECT_EQ(here, Lanes()); }
      places += here;
      stored += same ? period : here;
    }
    EXPECT_EQ(stored, s.values);
    EXPECT_EQ(places, Places());
    EXPECT_EQ((PetscCount)entries.size(), s.entries);
    return entries;
  }
};

/* Place of each row where rows are windowed: its number, or that in the order of the clusters */
std::vector<PetscInt> PlacesOfRows(const Csr &A, bool clustered)
{
  std::vector<PetscInt> order(A.m), place(A.m);

  std::iota(order.begin(), order.end(), 0);
  if (clustered) {
    const std::vector<PetscInt> cluster = ExpectedClusters(A).cluster;

    std::sort(order.begin(), order.end(), [&](PetscInt x, PetscInt y) { return std::make_pair(cluster[x], x) < std::make_pair(cluster[y], y); });
  }
  for (PetscInt p = 0; p < A.m; p++) place[order[p]] = p;
  return place;
}

/* Rows: everything about them follows from their lengths, and from their clusters if they are gathered */
struct Plan {
  std::vector<PetscInt> consecutive, rid;
  PetscInt              nlong = 0, nmedium = 0, nshort = 0, nempty = 0, rid_tile = 0, rid_rows = 0;
};

int ClassOf(PetscInt length, const AIJTCParams &p)
{
  return length > p.long_min ? 0 : (length > p.short_max ? 1 : 2);
}

Plan ExpectedPlan(const Csr &A, const AIJTCParams &p)
{
  const bool                  gathered = p.gather > 0;
  const PetscInt              group    = 32 * p.rrows;
  const int64_t               window   = gathered ? 32 * (int64_t)p.gather : (p.window ? p.window : std::max(A.m, (PetscInt)1));
  const std::vector<PetscInt> place    = PlacesOfRows(A, gathered);
  std::vector<PetscInt>       rest;
  Plan                        plan;

  for (PetscInt g = 0; g < A.m; g += group) {
    const PetscInt end     = std::min(A.m, g + group);
    PetscInt       longest = 0;

    for (PetscInt r = g; r < end; r++) longest = std::max(longest, A.Length(r));
    if (!gathered && longest <= p.short_max && 2 * (int64_t)(A.i[end] - A.i[g]) >= (int64_t)longest * (end - g)) plan.consecutive.push_back(g);
    else
      for (PetscInt r = g; r < end; r++) rest.push_back(r);
  }
  for (PetscInt r = 0; r < A.m; r++) ++(A.Length(r) == 0 ? plan.nempty : (ClassOf(A.Length(r), p) == 0 ? plan.nlong : (ClassOf(A.Length(r), p) == 1 ? plan.nmedium : plan.nshort)));
  const auto key = [&](PetscInt r) { return std::make_tuple(ClassOf(A.Length(r), p), place[r] / window, -A.Length(r), place[r]); };
  std::sort(rest.begin(), rest.end(), [&](PetscInt x, PetscInt y) { return key(x) < key(y); });
  for (int c = 0; c < 3; c++) {
    const size_t unit = c == 0 ? 1 : (size_t)(c == 1 ? 8 : group), begin = plan.rid.size();

    if (c == 1) plan.rid_tile = (PetscInt)begin;
    if (c == 2) plan.rid_rows = (PetscInt)begin;
    for (PetscInt r : rest)
      if (ClassOf(A.Length(r), p) == c) plan.rid.push_back(r);
    while ((plan.rid.size() - begin) % unit) plan.rid.push_back(-1);
  }
  return plan;
}

/* The columns of each block */
using Lists = std::vector<std::vector<PetscInt>>;

Lists ListsOfBlocks(const Csr &A, const AIJTCParams &p)
{
  const std::vector<PetscInt> rid = ExpectedPlan(A, p).rid;
  Lists                       lists;

  for (size_t q = 0; q < rid.size(); q++) {
    if (q % (32 * (size_t)p.gather) == 0) lists.emplace_back();
    if (rid[q] >= 0) lists.back().insert(lists.back().end(), A.j.begin() + A.i[rid[q]], A.j.begin() + A.i[rid[q] + 1]);
  }
  for (auto &list : lists) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return lists;
}

size_t Longest(const Lists &lists)
{
  size_t longest = 0;

  for (const auto &list : lists) longest = std::max(longest, list.size());
  return longest;
}

/* The lists of the layout, none if it is not to be gathered, and p->gather as it is then: half, as often as there is too long a list, but at least 8 */
Lists ExpectedLists(const Csr &A, AIJTCParams *p)
{
  const auto all_short = [&] {
    for (PetscInt r = 0; r < A.m; r++)
      if (ClassOf(A.Length(r), *p) != 2) return false;
    return true;
  };
  size_t columns = 0;
  Lists  lists;

  if (A.m != A.n || A.j.empty() || p->rrows != 1 || !all_short()) p->gather = 0;
  while (p->gather > 0 && Longest(lists = ListsOfBlocks(A, *p)) > 4096) p->gather = p->gather % 2 == 0 && p->gather >= 16 ? p->gather / 2 : 0;
  for (const auto &list : lists) columns += list.size();
  if (2 * columns > A.j.size()) p->gather = 0;
  return p->gather ? lists : Lists();
}

void ExpectLists(const Lists &lists, const AIJTCLayout &L)
{
  size_t columns = 0;

  ASSERT_EQ(L.nblocks, (PetscInt)lists.size());
  ASSERT_EQ(L.list_start == nullptr, lists.empty());
  ASSERT_EQ(L.list == nullptr, lists.empty());
  for (size_t b = 0; b < lists.size(); b++) {
    ASSERT_EQ(L.list_start[b], (PetscInt)columns) << "block " << b;
    columns += lists[b].size();
    ASSERT_EQ(L.list_start[b + 1], (PetscInt)columns) << "block " << b;
    ASSERT_EQ(std::vector<PetscInt>(L.list + L.list_start[b], L.list + L.list_start[b + 1]), lists[b]) << "block " << b;
  }
  ASSERT_EQ(L.nlist, (PetscInt)columns);
  ASSERT_EQ(L.longest_list, (PetscInt)Longest(lists));
  if (L.params.gather) {
    EXPECT_EQ(L.stride, 0); /* no slice is of consecutive rows */
    EXPECT_EQ(L.line, 0);
  }
}

void ExpectRows(const Csr &A, const AIJTCParams &p, const AIJTCLayout &L)
{
  const Plan plan = ExpectedPlan(A, p);
  PetscInt   s    = 0;

  EXPECT_EQ(L.nlong, plan.nlong);
  EXPECT_EQ(L.nmedium, plan.nmedium);
  EXPECT_EQ(L.nshort, plan.nshort);
  EXPECT_EQ(L.nempty, plan.nempty);
  EXPECT_EQ(L.rid_tile, plan.rid_tile);
  EXPECT_EQ(L.rid_rows, plan.rid_rows);
  EXPECT_EQ(L.nconsecutive, (PetscInt)plan.consecutive.size());
  ASSERT_EQ(std::vector<PetscInt>(L.rid, L.rid + L.nrid), plan.rid);
  EXPECT_EQ(std::vector<PetscInt>(L.start, L.start + L.m + 1), A.i);

  auto expect_slice = [&](PetscInt row, PetscInt first, bool rid) {
    ASSERT_LT(s, AIJTCSlicesTotal(&L));
    EXPECT_EQ(L.slice[s].row, row) << "slice " << s;
    EXPECT_EQ(L.slice[s].first, first) << "slice " << s;
    EXPECT_EQ((L.slice[s].form & AIJTC_FORM_RID) != 0, rid) << "slice " << s;
    s++;
  };
  for (PetscInt q = 0; q < plan.rid_tile; q++) {
    EXPECT_EQ(L.long_piece[q], s);
    for (PetscInt first = 0; first < A.Length(plan.rid[q]); first += 1024) ASSERT_NO_FATAL_FAILURE(expect_slice(q, first, true));
  }
  if (plan.rid_tile) EXPECT_EQ(L.long_piece[plan.rid_tile], s);
  else EXPECT_EQ(L.long_piece, nullptr);
  EXPECT_EQ(L.nslices[AIJTC_LONG], s);
  for (PetscInt q = plan.rid_tile; q < plan.rid_rows; q += 8) ASSERT_NO_FATAL_FAILURE(expect_slice(q, 0, true));
  EXPECT_EQ(L.nslices[AIJTC_LONG] + L.nslices[AIJTC_TILE], s);
  for (PetscInt row : plan.consecutive) ASSERT_NO_FATAL_FAILURE(expect_slice(row, 0, false));
  for (PetscInt q = plan.rid_rows; q < (PetscInt)plan.rid.size(); q += 32 * p.rrows) ASSERT_NO_FATAL_FAILURE(expect_slice(q, 0, true));
  EXPECT_EQ(AIJTCSlicesTotal(&L), s);
}

/* The entries of each row of the slice, in slot order, are those of the matrix row, in its order: column and value */
void ExpectEntries(const Csr &A, const Slice &S, const std::vector<Entry> &entries)
{
  std::vector<PetscInt> next(S.row.size());

  for (size_t q = 0; q < S.row.size(); q++) next[q] = S.row[q] < 0 ? 0 : A.i[S.row[q]] + S.s.first;
  for (const Entry &e : entries) {
    const PetscInt k = next[e.place]++;

    ASSERT_LT(k, A.i[S.row[e.place] + 1]) << "row " << S.row[e.place] << " has too many entries";
    ASSERT_EQ(e.column, A.j[k]) << "row " << S.row[e.place] << " entry " << k - A.i[S.row[e.place]];
    ASSERT_EQ(Bits(e.value), Bits(A.a[k])) << "row " << S.row[e.place] << " column " << e.column << ": " << e.value << ", not " << A.a[k];
  }
  for (size_t q = 0; q < S.row.size(); q++) {
    if (S.row[q] < 0) continue;
    const PetscInt end = A.i[S.row[q] + 1];

    ASSERT_EQ(next[q], S.kind == AIJTC_LONG ? std::min(end, A.i[S.row[q]] + S.s.first + 1024) : end) << "row " << S.row[q] << " lacks entries";
  }
}

/* Offsets (column - ref, or place in the list) of the rows of a slice, by place */
std::vector<std::vector<int64_t>> Offsets(const Csr &A, const Slice &S)
{
  std::vector<std::vector<int64_t>> offsets(S.row.size());

  for (size_t q = 0; q < S.row.size(); q++) {
    if (S.row[q] < 0) continue;
    const PetscInt begin = A.i[S.row[q]] + S.s.first, end = S.kind == AIJTC_LONG ? std::min(A.i[S.row[q] + 1], begin + 1024) : A.i[S.row[q] + 1];

    for (PetscInt k = begin; k < end; k++) offsets[q].push_back(S.ColumnPlace(A.j[k]) - S.Ref((int)q, (int)((k - begin) % 32)));
  }
  return offsets;
}

/* Slots, bases and width of the deltas by the rules */
void ExpectPattern(const Csr &A, const Slice &S)
{
  const auto                                     offsets = Offsets(A, S);
  const bool                                     allowed = S.L.params.compress & AIJTC_COMPRESS_PATTERN;
  const int                                      each    = S.kind == AIJTC_LONG ? 32 : (S.kind == AIJTC_TILE ? 4 : 1);
  std::set<int64_t>                              distinct;
  std::map<int64_t, std::pair<int64_t, int64_t>> range; /* by slot in the order of the rows: least and greatest offset */
  bool                                           ascending = true;
  int64_t                                        longest = 0, E = 0, spread = 0, width = 4;

  for (const auto &row : offsets) {
    for (size_t k = 0; k < row.size(); k++) {
      auto &r = range.emplace(k / each, std::make_pair(row[k], row[k])).first->second;

      r.first  = std::min(r.first, row[k]);
      r.second = std::max(r.second, row[k]);
      distinct.insert(row[k]);
      if (k && row[k] <= row[k - 1]) ascending = false;
    }
    longest = std::max(longest, (int64_t)row.size());
    E += (int64_t)row.size();
  }
  ASSERT_EQ(S.s.entries, E);
  for (const auto &slot : range) spread = std::max(spread, slot.second.second - slot.second.first);
  if (S.L.params.gather) width = 2;
  else if (allowed) width = spread < 256 ? 1 : (spread < 65536 ? 2 : 4);

  const auto    D = (int64_t)distinct.size(), slots = (int64_t)range.size(), lanes = 32 * (int64_t)S.R;
  const int64_t distinct_bytes = D * (E == D * lanes ? 8 : 8 + 4 * S.R), ordered_bytes = slots * (E == slots * lanes ? 8 : 8 + 4 * S.R) + width * E;
  const bool    by_offset = E > 0 && allowed && !S.L.params.gather && !S.L.params.near && S.kind == AIJTC_ROWS && ascending && D <= 2 * longest && distinct_bytes <= ordered_bytes;

  if (allowed && S.kind != AIJTC_ROWS && spread == 0) width = 0;
  if (by_offset || E == 0) width = 0;
  ASSERT_EQ(S.width, width) << "bytes of deltas; " << D << " offsets, " << slots << " slots in order, " << E << " entries";
  ASSERT_EQ(S.s.slots, by_offset ? D : slots);
  ASSERT_EQ(S.full, E == S.s.slots * lanes);
  int t = 0;
  if (by_offset)
    for (int64_t offset : distinct) ASSERT_EQ(S.Base(t++), offset);
  else
    for (const auto &slot : range) ASSERT_EQ(S.Base(t++), S.L.params.gather ? 0 : slot.second.first) << "slot " << t - 1;
}

/* Which slots are constant by the rules, which values the slice stores then, and where among them and holes */
struct ExpectedValues {
  bool                    constant = false, spread = false, floats = sizeof(PetscScalar) > sizeof(float);
  std::vector<bool>       slot;
  std::vector<uint64_t>   stored;
  std::vector<PetscCount> at;
  PetscCount              values = 0; /* and holes */
};

ExpectedValues ValuesByTheRules(const Slice &S, const std::vector<Entry> &entries)
{
  const bool                                          allowed = S.L.params.compress & AIJTC_COMPRESS_VALUE;
  std::vector<std::map<PetscInt, std::set<uint64_t>>> by_remainder(S.s.slots);
  std::vector<std::vector<Entry>>                     by_slot(S.s.slots);
  ExpectedValues                                      expected;
  bool                                                all = allowed;

  for (const Entry &e : entries) {
    by_slot[e.slot].push_back(e);
    by_remainder[e.slot][S.row[e.place] % S.period].insert(Bits(e.value));
    if (!(e.value == (double)(float)e.value)) expected.floats = false;
  }
  for (const auto &slot : by_remainder) {
    expected.slot.push_back(allowed && std::all_of(slot.begin(), slot.end(), [](const auto &r) { return r.second.size() == 1; }));
    all = all && expected.slot.back();
  }
  const auto store = [&](uint64_t bits, PetscCount at) {
    expected.stored.push_back(bits);
    expected.at.push_back(at);
  };

  expected.constant = all && (int64_t)S.s.slots * S.period < S.s.entries;
  expected.spread   = S.s.entries && S.s.entries != S.Lanes() * S.s.slots && !(expected.constant && !S.width) &&
                    (S.L.params.gather ? 3 * S.Lanes() * S.s.slots <= 4 * (PetscCount)S.s.entries : 14 * S.Lanes() * S.s.slots <= 15 * (PetscCount)S.s.entries);
  for (int t = 0; t < S.s.slots; t++) {
    if (!expected.constant) expected.slot[t] = expected.slot[t] && S.kind == AIJTC_ROWS && !S.width && by_slot[t].size() > (size_t)S.period;
    if (expected.slot[t]) {
      for (PetscInt k = 0; k < S.period; k++) store(by_remainder[t].count(k) ? *by_remainder[t][k].begin() : 0, expected.values++);
    } else {
      for (size_t k = 0; k < by_slot[t].size(); k++) store(Bits(by_slot[t][k].value), expected.values + (expected.spread ? by_slot[t][k].lane : (PetscCount)k));
      expected.values += expected.spread ? S.Lanes() : (PetscCount)by_slot[t].size();
    }
  }
  return expected;
}

void ExpectValues(const Slice &S, const ExpectedValues &expected, bool dictionary)
{
  const int form = !(S.L.params.compress & AIJTC_COMPRESS_VALUE) || expected.constant || !S.s.entries ? AIJTC_VALUE_DOUBLE : (dictionary ? AIJTC_VALUE_DICT : (expected.floats ? AIJTC_VALUE_FLOAT : AIJTC_VALUE_DOUBLE));

  std::vector<bool> hole((size_t)expected.values, true);

  ASSERT_EQ(S.constant, expected.constant);
  ASSERT_EQ(S.spread, expected.spread);
  ASSERT_EQ(S.value_form, form);
  for (int t = 0; t < S.s.slots && !S.constant; t++) ASSERT_EQ(S.SlotIsConstant(t), expected.slot[t]) << "slot " << t;
  ASSERT_EQ(S.s.values, (int32_t)expected.values);
  for (size_t k = 0; k < expected.stored.size(); k++) {
    ASSERT_EQ(Bits(S.Value(expected.at[k])), expected.stored[k]) << "value " << expected.at[k];
    hole[expected.at[k]] = false;
  }
  for (PetscCount v = 0; v < S.s.values; v++) {
    const uint8_t *bytes = S.values + v * S.ValueSize();

    ASSERT_TRUE(!hole[v] || std::all_of(bytes, bytes + S.ValueSize(), [](uint8_t b) { return b == 0; })) << "hole " << v;
  }
}

void ExpectZeros(const uint8_t *begin, const uint8_t *end, const char *where)
{
  ASSERT_TRUE(std::all_of(begin, end, [](uint8_t b) { return b == 0; })) << where;
}

void ExpectPadding(const Slice &S)
{
  ASSERT_NO_FATAL_FAILURE(ExpectZeros(S.slots + S.used, S.deltas, "between masks and deltas, or behind masks"));
  ASSERT_NO_FATAL_FAILURE(ExpectZeros(S.deltas + S.width * S.Places(), S.slots + S.pattern_bytes, "behind the pattern"));
  ASSERT_NO_FATAL_FAILURE(ExpectZeros(S.values + S.s.values * S.ValueSize(), S.values + S.value_bytes, "behind the values"));
}

void ExpectDictionary(const AIJTCLayout &L, const std::set<uint64_t> &stored, bool dictionary)
{
  PetscInt k = 0;

  ASSERT_EQ(L.ndict, dictionary ? (PetscInt)stored.size() : 0);
  ASSERT_EQ(L.dict != nullptr, dictionary);
  if (!dictionary) return;
  for (uint64_t bits : stored) ASSERT_EQ(Bits(L.dict[k++]), bits);
  for (; k < AIJTC_MAX_DICT; k++) ASSERT_EQ(Bits(L.dict[k]), 0u);
}

void ExpectSlices(const Csr &A, const AIJTCLayout &L)
{
  std::vector<ExpectedValues> expected;
  std::set<uint64_t>          stored;
  PetscCount                  pattern = 0, value = 0, count = 0;

  for (PetscInt s = 0; s < AIJTCSlicesTotal(&L); s++) {
    SCOPED_TRACE("slice " + std::to_string(s));
    const Slice S(L, s);

    ASSERT_EQ((PetscCount)AIJTC_UNIT * S.s.pattern, pattern);
    ASSERT_EQ((PetscCount)AIJTC_UNIT * S.s.value, value);
    ASSERT_EQ(S.s.form >> 8, 0u);
    ASSERT_NO_FATAL_FAILURE(ExpectPadding(S));
    const std::vector<Entry> entries = S.Decode();
    ASSERT_FALSE(::testing::Test::HasFailure());
    ASSERT_NO_FATAL_FAILURE(ExpectEntries(A, S, entries));
    ASSERT_NO_FATAL_FAILURE(ExpectPattern(A, S));
    expected.push_back(ValuesByTheRules(S, entries));
    if (!expected.back().constant) {
      stored.insert(expected.back().stored.begin(), expected.back().stored.end());
      count += (PetscCount)expected.back().stored.size();
    }
    pattern += S.pattern_bytes;
    value += S.value_bytes;
  }
  ASSERT_EQ(L.npattern, pattern);
  ASSERT_EQ(L.nvalue, value);
  const bool dictionary = L.params.compress & AIJTC_COMPRESS_VALUE && count >= L.params.dict_min && stored.size() <= AIJTC_MAX_DICT;
  ASSERT_NO_FATAL_FAILURE(ExpectDictionary(L, stored, dictionary));
  for (PetscInt s = 0; s < AIJTCSlicesTotal(&L); s++) {
    SCOPED_TRACE("slice " + std::to_string(s));
    ASSERT_NO_FATAL_FAILURE(ExpectValues(Slice(L, s), expected[s], dictionary));
  }
}

void ExpectLayout(const Csr &A, const AIJTCParams &asked, const AIJTCLayout &L)
{
  AIJTCParams params = asked;
  const Lists lists  = ExpectedLists(A, &params);

  ASSERT_EQ(L.m, A.m);
  ASSERT_EQ(L.n, A.n);
  ASSERT_EQ(L.nnz, (PetscCount)A.j.size());
  ASSERT_FALSE(L.cuda);
  ASSERT_EQ(Describe(L.params), Describe(params));
  ASSERT_EQ(L.partial, nullptr);
  ASSERT_EQ(L.arrived, nullptr);
  ASSERT_EQ(L.slice == nullptr, AIJTCSlicesTotal(&L) == 0);
  ASSERT_EQ(L.rid == nullptr, L.nrid == 0);
  ASSERT_EQ(L.pattern == nullptr, L.npattern == 0);
  ASSERT_EQ(L.value == nullptr, L.nvalue == 0);
  ASSERT_NO_FATAL_FAILURE(ExpectLists(lists, L));
  ASSERT_NO_FATAL_FAILURE(ExpectRows(A, params, L));
  ASSERT_NO_FATAL_FAILURE(ExpectSlices(A, L));
  EXPECT_EQ(AIJTCLayoutBytes(&L), L.npattern + L.nvalue + AIJTCSlicesTotal(&L) * (PetscCount)32 + (L.ndict ? 256 * (PetscCount)sizeof(PetscScalar) : 0) +
                                    (L.nrid + (L.nlong ? L.nlong + 1 : 0) + (lists.empty() ? 0 : L.nblocks + 1 + L.nlist) + L.m + 1) * (PetscCount)sizeof(PetscInt));
}

/* check(matrix, params) for all parameters, compressions and, where values are compressed, kinds of values; a large matrix has one kind of values for each choice of parameters */
template <class Check>
void ForAllParams(const Pattern &pattern, Check check)
{
  constexpr size_t SMALL = 12000;
  Csr              A     = pattern.make();
  size_t           turn  = 0;

  for (AIJTCParams params : ParamsToTry()) {
    params = WithBlockSize(params, A);
    for (AIJTCCompress compress : Compressions()) {
      const auto            &kinds = ValueKinds();
      std::vector<ValueKind> some  = kinds;

      params.compress = compress;
      turn++;
      if (!(compress & AIJTC_COMPRESS_VALUE)) some = {ValueKind::Strange};
      else if (A.j.size() > SMALL) some = {kinds[turn / 4 % kinds.size()]};
      for (ValueKind kind : some) {
        SCOPED_TRACE(Describe(params) + ", " + Describe(kind));
        SetValues(A, kind);
        check(A, params);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

class Layout : public ::testing::TestWithParam<Pattern> { };

TEST_P(Layout, HoldsTheMatrixInTheFormsOfTheRules)
{
  ForAllParams(GetParam(), [](const Csr &A, const AIJTCParams &params) {
    const OwnedLayout L(Made::OnHost, A, params);

    if (!::testing::Test::HasFailure()) ExpectLayout(A, params, L.layout);
  });
}

TEST_P(Layout, IsBuiltOnTheDeviceWithTheSameBytes)
{
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
  ForAllParams(GetParam(), [](const Csr &A, const AIJTCParams &params) {
    const OwnedLayout host(Made::OnHost, A, params), device(Made::OnDevice, A, params);

    if (::testing::Test::HasFailure()) return;
    EXPECT_TRUE(device.layout.cuda);
    EXPECT_EQ(AIJTCLayoutBytes(&device.layout), AIJTCLayoutBytes(&host.layout) + host.layout.nslices[AIJTC_LONG] * (PetscCount)sizeof(PetscScalar) + host.layout.nlong * (PetscCount)sizeof(unsigned)); /* partial, arrived */
    const OwnedLayout copy(device.layout);
    ExpectSameLayout(host.layout, copy.layout);
  });
}

INSTANTIATE_TEST_SUITE_P(, Layout, ::testing::ValuesIn(Patterns()), [](const auto &info) { return info.param.name; });

AIJTCParams Usual(const Csr &A)
{
  return WithBlockSize({1024, 128, 8192, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0}, A);
}

/* What the compression is for */
TEST(LayoutForms, StencilsNeedNoDeltasAndOneValueASlot)
{
  Csr A = SevenPoint(20);

  SetValues(A, ValueKind::ByOffset);
  const OwnedLayout L(Made::OnHost, A, Usual(A));
  for (PetscInt s = 0; s < AIJTCSlicesTotal(&L.layout); s++) {
    const Slice S(L.layout, s);

    ASSERT_EQ(S.kind, AIJTC_ROWS);
    ASSERT_EQ(S.width, 0);
    ASSERT_TRUE(S.constant);
    ASSERT_EQ(S.s.form & AIJTC_FORM_RID, 0u);
  }
  EXPECT_LT(L.layout.npattern + L.layout.nvalue, A.m * 7); /* less than a byte a nonzero: 7 slots of 20 bytes for 32 rows */
}

void ExpectStride(const char *name, const Csr &A, const AIJTCParams &params, PetscInt stride, PetscInt line)
{
  SCOPED_TRACE(name);
  const OwnedLayout host(Made::OnHost, A, params);

  EXPECT_EQ(host.layout.stride, stride);
  EXPECT_EQ(host.layout.line, line);
  if (!HasDevice()) return;
  const OwnedLayout device(Made::OnDevice, A, params);

  EXPECT_EQ(device.layout.stride, stride);
  EXPECT_EQ(device.layout.line, line);
}

/* The |column - row| of the 32 rows from `first` on */
std::vector<PetscInt> Distances(const Csr &A, PetscInt first)
{
  std::vector<PetscInt> all;

  for (PetscInt r = first; r < first + 32; r++) {
    for (PetscInt k = A.i[r]; k < A.i[r + 1]; k++) all.push_back(std::abs(A.j[k] - r));
  }
  return all;
}

/* How far the rows of the middle slice reach, in any form; unknown where rows are listed or the pattern is not compressed */
TEST(LayoutForms, StrideIsTheFarthestDiagonalOfTheMiddleSlice)
{
  const Csr         random = FromLengths(9600, std::vector<PetscInt>(9600, 7));
  const AIJTCParams usual = Usual(SevenPoint(4)), one = {1024, 128, 8192, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 0}, in_tiles = {1024, 0, 8192, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 0}, off = {1024, 128, 8192, 1, 1, AIJTC_COMPRESS_OFF, 4096, 0},
                    values = {1024, 128, 8192, 1, 1, AIJTC_COMPRESS_VALUE, 4096, 0};

  ExpectStride("7-point", SevenPoint(20), usual, 20 * 20, 20);
  ExpectStride("27-point", TwentySevenPoint(12), usual, 12 * 12 + 12 + 1, 2 * (12 + 1));
  ExpectStride("tridiagonal", Banded(4999, 4999, {-1, 0, 1}), usual, 1, 0);
  ExpectStride("diagonal", Banded(5000, 5000, {0}), usual, 0, 0);
  ExpectStride("below the diagonal", Banded(5000, 5000, {-700, 0, 3}), usual, 700, 3);
  ExpectStride("above the diagonal", Banded(5000, 5000, {2, 900}), usual, 900, 2);
  ExpectStride("one slice", Banded(20, 20, {-2, 0}), usual, 2, 0);
  ExpectStride("no entries", FromLengths(3000, std::vector<PetscInt>(3000, 0)), usual, 0, 0);
  ExpectStride("far from all planes", Banded(5000, 5000, {-900, -500, 0, 900}), usual, 900, 400);
  const std::vector<PetscInt> distances = Distances(random, 9600 / 2);
  const PetscInt              stride    = *std::max_element(distances.begin(), distances.end());
  PetscInt                    line      = 0;
  for (PetscInt distance : distances) line = std::max(line, std::min(distance, stride - distance));
  ExpectStride("no common diagonals", random, one, stride, line);
  ExpectStride("tiles", SevenPoint(12), in_tiles, 0, 0);
  ExpectStride("deltas of four bytes", SevenPoint(12), off, 0, 0);
  ExpectStride("deltas with constants", SevenPoint(12), values, 0, 0);
}

TEST(LayoutForms, ThreeDofStencilsToo)
{
  const Csr         A = Blocks(TwentySevenPoint(8), 3);
  const OwnedLayout L(Made::OnHost, A, Usual(A));
  PetscInt          constant = 0;

  EXPECT_EQ(L.layout.params.bs, 3);
  for (PetscInt s = 0; s < AIJTCSlicesTotal(&L.layout); s++) {
    const Slice S(L.layout, s);

    ASSERT_EQ(S.kind, AIJTC_ROWS);
    constant += S.constant;
  }
  EXPECT_EQ(constant, AIJTCSlicesTotal(&L.layout));
  EXPECT_EQ(L.layout.ndict, 0);
}

/* m rows of one entry, of which `distinct` values differ: no slot is constant */
Csr DiagonalOf(PetscInt m, PetscInt distinct)
{
  Csr A = Banded(m, m, {0});

  for (PetscInt r = 0; r < m; r++) A.a[r] = 1.0 / (3 + r % distinct);
  return A;
}

const struct {
  PetscInt   m, distinct;
  PetscCount dict_min;
  PetscInt   ndict;
} dictionaries[] = {
  {4096,   2,   4096,         2  },
  {4095,   2,   4096,         0  },
  {4096,   256, 4096,         256},
  {4096,   257, 4096,         0  },
  {9999,   256, 4096,         256},
  {9999,   257, 4096,         0  },
  {9999,   2,   9999,         2  },
  {9999,   2,   10000,        0  },
  {40,     2,   1,            2  },
  {0,      2,   1,            0  },
  {800000, 2,   PETSC_DECIDE, 2  },
  {799999, 2,   PETSC_DECIDE, 0  }
};

void ExpectDictionaries(Made made)
{
  for (const auto &c : dictionaries) {
    const Csr   A = DiagonalOf(c.m, c.distinct);
    AIJTCParams p = Usual(A);

    const AIJTCTraits one_a_row = {1, 1, PETSC_TRUE, PETSC_FALSE};

    p.dict_min = c.dict_min;
    ASSERT_EQ(AIJTCParamsResolve(A.m, A.n, A.i[A.m], &one_a_row, &p), PETSC_SUCCESS);
    EXPECT_EQ(OwnedLayout(made, A, p).layout.ndict, c.ndict) << c.m << " values, " << c.distinct << " of them different, " << Describe(p);
  }
}

TEST(LayoutForms, DictionariesStartAtTheLeastNumberAndEndAt256)
{
  ExpectDictionaries(Made::OnHost);
}

TEST(LayoutForms, DictionariesStartAtTheLeastNumberAndEndAt256_CUDA)
{
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
  ExpectDictionaries(Made::OnDevice);
}

/* What the test of all forms relies on: that there are spread slices of every kind, with and without deltas, constant slots and each form of values */
TEST(LayoutForms, NearlyFullSlicesAreSpread)
{
  const PetscInt limits[][2] = {
    {0,    0  },
    {1024, 0  },
    {1024, 128}
  };
  std::set<std::tuple<int, int, int>> found; /* kind, bytes of deltas, form of values or -1 */
  bool                                some_constant = false;

  for (const Pattern &pattern : NearlyFullPatterns()) {
    Csr A = pattern.make();

    for (ValueKind kind : {ValueKind::Random, ValueKind::Few, ValueKind::Floats, ValueKind::AlmostByOffset, ValueKind::Same}) {
      SetValues(A, kind);
      for (const auto &limit : limits) {
        const OwnedLayout L(Made::OnHost, A, WithBlockSize({limit[0], limit[1], 0, 2, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, 0}, A));

        for (PetscInt s = 0; s < AIJTCSlicesTotal(&L.layout); s++) {
          const Slice S(L.layout, s);

          if (!S.spread) continue;
          found.emplace((int)S.kind, S.width, S.constant ? -1 : S.value_form);
          for (int t = 0; t < S.s.slots; t++) some_constant = some_constant || S.SlotIsConstant(t);
        }
      }
    }
  }
  for (int form : {-1, (int)AIJTC_VALUE_DOUBLE, (int)AIJTC_VALUE_FLOAT, (int)AIJTC_VALUE_DICT}) {
    if (form == AIJTC_VALUE_FLOAT && sizeof(PetscScalar) == sizeof(float)) continue;
    for (int kind : {AIJTC_LONG, AIJTC_TILE, AIJTC_ROWS}) EXPECT_TRUE(found.count({kind, 1, form}) || found.count({kind, 2, form})) << "kind " << kind << " with deltas, values " << form;
    EXPECT_EQ(found.count({AIJTC_ROWS, 0, form}), form == -1 ? 0u : 1u) << "rows without deltas, values " << form;
  }
  EXPECT_TRUE(some_constant);
}

/* 32 rows of at most 15 entries in any order, so that there are 15 slots of 32 places: 448 entries are 14/15 of them */
TEST(LayoutForms, SpreadFrom14PlacesIn15)
{
  for (PetscInt fewer : {0, 1}) {
    std::vector<PetscInt> lengths(32, 14);

    lengths[0]          = 15;
    lengths[1]          = 13 - fewer;
    const Csr         A = FromLengths(300, lengths, true);
    const OwnedLayout L(Made::OnHost, A, Usual(A));
    const Slice       S(L.layout, 0);

    ASSERT_EQ(AIJTCSlicesTotal(&L.layout), 1);
    ASSERT_EQ(S.s.slots, 15);
    ASSERT_EQ(S.s.entries, 448 - fewer);
    EXPECT_EQ(S.spread, fewer == 0);
    EXPECT_EQ(S.s.values, fewer ? 447 : 480);
  }
}

/* Holes are neither among the 4096 values that make a dictionary, nor exactly floats, nor a value of it: index 0 is that of the least */
TEST(LayoutForms, HolesDoNotCountForTheDictionary)
{
  for (PetscInt m : {4220, 4400}) { /* places */
    Csr A = Thinned(Banded(m, m, {0}), 29);

    for (size_t e = 0; e < A.a.size(); e++) A.a[e] = e % 2 ? -2.1 : -1.1;
    const OwnedLayout L(Made::OnHost, A, Usual(A));

    ASSERT_TRUE(Slice(L.layout, 0).spread);
    EXPECT_EQ(L.layout.ndict, A.j.size() >= 4096 ? 2 : 0) << A.j.size() << " values";
    EXPECT_EQ(A.j.size() >= 4096, m == 4400);
  }
}

/* ---- gathered layouts */

/* All rows short */
AIJTCParams GatheredBy(PetscInt gather, const Csr &A)
{
  return WithBlockSize({PETSC_INT_MAX, PETSC_INT_MAX, 8192, 1, PETSC_DECIDE, AIJTC_COMPRESS_BOTH, 4096, gather}, A);
}

/* By the rules, in blocks of `gather` slices, 0 for none; if these are not what was asked for, then all of it as if they had been */
void ExpectGathered(const Csr &A, const AIJTCParams &params, PetscInt gather)
{
  const OwnedLayout host(Made::OnHost, A, params);

  SCOPED_TRACE(Describe(params));
  ASSERT_EQ(host.layout.params.gather, gather);
  ASSERT_NO_FATAL_FAILURE(ExpectLayout(A, params, host.layout));
  if (gather != params.gather) {
    AIJTCParams asked = params;

    asked.gather = gather;
    const OwnedLayout other(Made::OnHost, A, asked);

    ASSERT_NO_FATAL_FAILURE(ExpectSameLayout(other.layout, host.layout));
  }
  if (!HasDevice()) return;
  const OwnedLayout device(Made::OnDevice, A, params), copy(device.layout);

  ASSERT_NO_FATAL_FAILURE(ExpectSameLayout(host.layout, copy.layout));
}

/* What the test of all forms relies on: that some patterns are gathered, and some square ones and others are not */
TEST(LayoutGathers, SomePatternsAndNotOthers)
{
  int gathered = 0, square = 0, others = 0;

  for (const Pattern &pattern : Patterns()) {
    const Csr A = pattern.make();

    for (PetscInt gather : {1, 2, 8}) {
      const OwnedLayout L(Made::OnHost, A, GatheredBy(gather, A));

      ++(L.layout.params.gather ? gathered : (A.m == A.n ? square : others));
    }
  }
  EXPECT_GE(gathered, 15);
  EXPECT_GE(square, 5);
  EXPECT_GE(others, 60);
}

TEST(LayoutGathers, Meshes)
{
  for (const Pattern &pattern : MeshPatterns()) {
    SCOPED_TRACE(pattern.name);
    Csr A = pattern.make();

    for (ValueKind kind : {ValueKind::Random, ValueKind::Few, ValueKind::Same}) {
      SetValues(A, kind);
      for (PetscInt gather : std::vector<PetscInt>{4, 7, 8, 50, AIJTC_GATHER_MOST}) ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(gather, A), gather));
    }
  }
  const Csr dense = Renumbered(TwentySevenPoint(12)); /* so many columns shared that a slice alone shares them */
  ASSERT_NO_FATAL_FAILURE(ExpectGathered(dense, GatheredBy(1, dense), 1));
}

/* Slices of so many more entries than the mean that the device has no room to stage them (PlanStage()), beside others that it stages */
TEST(LayoutGathers, SlicesFarAboveTheMean)
{
  const Csr         A = WithIsolatedRows(Renumbered(TwentySevenPoint(12)), 2);
  const OwnedLayout L(Made::OnHost, A, GatheredBy(8, A));
  const PetscCount  mean = L.layout.nnz * 32 / A.m;
  PetscInt          far  = 0;

  for (PetscInt s = 0; s < AIJTCSlicesTotal(&L.layout); s++) far += L.layout.slice[s].entries > mean + mean / 2 + 32;
  EXPECT_GT(far, 5);
  EXPECT_LT(far, AIJTCSlicesTotal(&L.layout) / 2);
  ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(8, A), 8));
}

TEST(LayoutGathers, OnlySquareMatricesOfShortRowsOneALane)
{
  const Csr   mesh   = Renumbered(SevenPoint(13));
  AIJTCParams params = GatheredBy(8, mesh);
  Csr         wide   = mesh;

  wide.n++;
  ASSERT_NO_FATAL_FAILURE(ExpectGathered(wide, params, 0));
  for (PetscInt rrows : {2, 4}) {
    params.rrows = rrows;
    ASSERT_NO_FATAL_FAILURE(ExpectGathered(mesh, params, 0));
  }
  params.rrows = 1;
  for (PetscInt limit : {6, 7}) { /* rows have up to 7 nonzeros */
    params.short_max = limit;
    ASSERT_NO_FATAL_FAILURE(ExpectGathered(mesh, params, limit == 7 ? 8 : 0)); /* medium ones */
    params.long_min = limit;
    ASSERT_NO_FATAL_FAILURE(ExpectGathered(mesh, params, limit == 7 ? 8 : 0)); /* long ones */
    params.long_min = PETSC_INT_MAX;
  }
  for (const Csr &none : {FromLengths(100, std::vector<PetscInt>(100, 0)), FromLengths(0, std::vector<PetscInt>())}) ASSERT_NO_FATAL_FAILURE(ExpectGathered(none, GatheredBy(8, none), 0));
}

/* Every block has all columns in its list, unless it has few rows */
TEST(LayoutGathers, ListsOfAtMost4096Columns)
{
  for (PetscInt more : {0, 1}) {
    const Csr A = Combs(AIJTC_GATHER_LIST + more, 24);

    for (PetscInt gather : {9, 8, 64}) {
      if (SmallSystems() && gather != 9) continue;
      const OwnedLayout L(Made::OnHost, A, GatheredBy(gather, A));

      ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(gather, A), more ? 0 : gather));
      EXPECT_EQ(L.layout.longest_list, more ? 0 : 4096);
    }
  }
}

/* Entries up to `near` to either side, and up to `far` times 400; numbered anew */
Csr Reaching(PetscInt near, PetscInt far)
{
  std::set<PetscInt> offsets;

  for (PetscInt k = -near; k <= near; k++) offsets.insert(k);
  for (PetscInt k = -far; k <= far; k++) offsets.insert(400 * k);
  return Renumbered(Banded(12000, 12000, std::vector<PetscInt>(offsets.begin(), offsets.end())));
}

/* The lists are too long for more slices than fit, down to 8, and only for them */
TEST(LayoutGathers, HalvedWhereAListIsTooLong)
{
  const struct {
    PetscInt near, far, fit;
  } cases[] = {
    {8,  2,  32},
    {8,  0,  32},
    {20, 8,  8 },
    {20, 16, 4 }
  };

  for (const auto &c : cases) {
    if (SmallSystems() && c.near > 8) continue;
    const Csr A = Reaching(c.near, c.far);

    for (PetscInt gather : {(PetscInt)64, 2 * c.fit, c.fit}) {
      EXPECT_EQ(Longest(ListsOfBlocks(A, GatheredBy(gather, A))) > 4096, gather > c.fit) << gather << " slices";
      ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(gather, A), gather == c.fit || c.fit >= 8 ? c.fit : 0));
    }
  }
}

/* An odd number has no half, be it asked for or 25, half of 50; and less than 8 is only what was asked for */
TEST(LayoutGathers, HalvedDownTo8OrAnOddNumber)
{
  const Csr      A = Reaching(20, 8), far = Reaching(20, 16);
  const PetscInt asked[][2] = {
    {48, 12},
    {63, 0 },
    {50, 0 }
  };

  for (const auto &slices : asked) ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(slices[0], A), slices[1]));
  for (PetscInt gather : {12, 9}) ASSERT_NO_FATAL_FAILURE(ExpectGathered(far, GatheredBy(gather, far), 0));
}

/* Columns anywhere, three a row: at 64 slices lists are too long, at 32 they are not, but all together too many */
TEST(LayoutGathers, NotHalvedWhereColumnsAreTooMany)
{
  const Csr A = Combs(20001, 6667);

  EXPECT_GT(Longest(ListsOfBlocks(A, GatheredBy(64, A))), 4096u);
  EXPECT_LE(Longest(ListsOfBlocks(A, GatheredBy(32, A))), 4096u);
  for (PetscInt gather : {64, 32}) ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(gather, A), 0));
}

/* 32 rows in 4 slots of 32 places: 96 entries are 3/4 of them. In other layouts that is too few */
TEST(LayoutGathers, SpreadFrom3PlacesIn4)
{
  for (PetscInt fewer : {0, 1}) {
    std::vector<PetscInt> lengths(32, 3);

    lengths[0]  = 4;
    lengths[1]  = 2 - fewer;
    const Csr A = FromLengths(32, lengths);

    for (PetscInt gather : {0, 1}) {
      const OwnedLayout L(Made::OnHost, A, GatheredBy(gather, A));
      const Slice       S(L.layout, 0);

      ASSERT_EQ(L.layout.params.gather, gather);
      ASSERT_EQ(S.s.slots, 4);
      ASSERT_EQ(S.s.entries, 96 - fewer);
      EXPECT_EQ(S.spread, gather && !fewer);
      EXPECT_EQ(S.s.values, S.spread ? 128 : 96 - fewer);
    }
  }
}

/* Whatever is compressed; that columns reach no farther than a byte or lie on few diagonals does not matter either */
TEST(LayoutGathers, PlacesOf2BytesFromBase0)
{
  for (const Csr &A : {Banded(200, 200, {-1, 0, 1, 2}), WithIsolatedRows(Renumbered(SevenPoint(12)), 7), Renumbered(TwentySevenPoint(16))}) {
    for (AIJTCCompress compress : Compressions()) {
      AIJTCParams params = GatheredBy(8, A);

      params.compress = compress;
      const OwnedLayout L(Made::OnHost, A, params);
      ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, params, 8));
      for (PetscInt s = 0; s < AIJTCSlicesTotal(&L.layout); s++) {
        const Slice S(L.layout, s);

        ASSERT_EQ(S.width, S.s.entries ? 2 : 0) << "slice " << s;
        for (int t = 0; t < S.s.slots; t++) ASSERT_EQ(S.Base(t), 0) << "slice " << s;
      }
    }
  }
}

/* A ring, two entries a row, and all columns in one list: half as many as there are nonzeros. Then one entry less */
TEST(LayoutGathers, ListsOfAtMostHalfTheNonzeros)
{
  for (PetscInt fewer : {0, 1}) {
    Csr A;

    A.m = A.n = 100;
    for (PetscInt r = 0; r < A.m; r++) {
      A.j.push_back(r);
      if (r >= fewer) A.j.push_back((r + 1) % A.m);
      A.i.push_back((PetscInt)A.j.size());
    }
    SetValues(A, ValueKind::Random);
    ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(4, A), fewer ? 0 : 4));
    ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(1, A), 0)); /* each list has a column of the next */
  }
}

/* A path: most rows are farther from all seeds than the rounds reach. Then a mesh with rows that no other one has a column of, or that have no columns */
TEST(LayoutGathers, RowsOutOfReach)
{
  for (const Csr &A : {Banded(5000, 5000, {-1, 0, 1}), WithIsolatedRows(Renumbered(SevenPoint(12)), 7)}) {
    const std::vector<PetscInt> cluster = ExpectedClusters(A).cluster;
    PetscInt                    alone = 0, joined = 0;

    for (PetscInt r = 0; r < A.m; r++) {
      joined += cluster[r] != r;
      alone += cluster[r] == r && !AIJTCIsSeed(r);
    }
    EXPECT_GT(alone, 100);
    EXPECT_GT(joined, 100);
    ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(8, A), 8));
  }
}

/* How far from its seed is a row, at most? behind: the seed lies before it */
PetscInt Farthest(const std::vector<PetscInt> &cluster, bool behind)
{
  PetscInt far = 0;

  for (PetscInt r = 0; r < (PetscInt)cluster.size(); r++) far = std::max(far, behind ? r - cluster[r] : cluster[r] - r);
  return far;
}

/* A row as many rounds away from a seed as there are joins it, in the last one too; the one behind does not. Neighbours are so far away that rows by cluster are not in the order of their numbers */
TEST(LayoutGathers, AsManyRoundsAsToldReach)
{
  const Csr                   A       = Banded(8000, 8000, {-150, -100, -50, 0, 50, 100, 150});
  const std::vector<PetscInt> cluster = ExpectedClusters(A).cluster;

  EXPECT_EQ(Farthest(cluster, true), 150 * (AIJTC_CLUSTER_ROUNDS + 1));
  EXPECT_EQ(Farthest(cluster, false), 150 * (AIJTC_CLUSTER_ROUNDS + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(8, A), 8));
}

/* A row has columns behind itself alone: rows join seeds before them in the first rounds and the last, and seeds behind them, as far as the others reach */
TEST(LayoutGathers, RowsAreOfferedClustersAndLookForThem)
{
  const Csr                   A       = Banded(8000, 8000, {0, 50, 100, 150});
  const std::vector<PetscInt> cluster = ExpectedClusters(A).cluster;

  EXPECT_EQ(Farthest(cluster, false), 150 * (AIJTC_CLUSTER_ROUNDS - AIJTC_CLUSTER_OFFERS));
  EXPECT_EQ(Farthest(cluster, true), 150 * (AIJTC_CLUSTER_OFFERS + 1));
  ASSERT_NO_FATAL_FAILURE(ExpectGathered(A, GatheredBy(8, A), 8));
}

/* One row of 256, in any 2^16 */
TEST(LayoutGathers, SeedsAreOneInTheMeanOfACluster)
{
  for (PetscInt begin : {0, 65536, 1000000, 2147418112}) {
    PetscInt seeds = 0;

    for (PetscInt r = 0; r < 65536; r++) seeds += AIJTCIsSeed(begin + r);
    EXPECT_NEAR((double)seeds, 65536.0 / AIJTC_CLUSTER, 64) << "from row " << begin;
  }
}

struct ProbeCase {
  const char *name;
  Csr (*make)();
  PetscInt bs;
  bool     common;
};

void PrintTo(const ProbeCase &probe_case, std::ostream *out)
{
  *out << probe_case.name;
}

/* `bad` of `groups` pairs of rows differ in their last column */
Csr Pairs(PetscInt groups, PetscInt bad)
{
  Csr A;

  A.m = 2 * groups;
  A.n = 2 * groups + 9;
  for (PetscInt r = 0; r < A.m; r++) {
    const PetscInt g = r / 2;

    A.j.push_back(2 * g);
    A.j.push_back(2 * g + 5 + (r % 2 && g < bad));
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

/* Pairs with groups of empty rows between them */
Csr SparsePairs(PetscInt groups, PetscInt bad)
{
  const Csr P = Pairs(groups, bad);
  Csr       A = P;

  A.m = 3 * P.m;
  A.i.assign(1, 0);
  for (PetscInt r = 0; r < A.m; r++) A.i.push_back(r / 2 % 3 ? A.i.back() : A.i.back() + 2);
  return A;
}

/* Groups of 32 rows, each tridiagonal, or of three entries anywhere, or empty, as `kind` says: '3', '?', '0'. A last group of fewer rows where `rest` is not 0 */
Csr Groups(PetscInt groups, char (*kind)(PetscInt group), PetscInt rest = 0)
{
  std::mt19937 random(20261123);
  Csr          A;

  A.m = 32 * groups + rest;
  A.n = A.m + 1000;
  for (PetscInt r = 0; r < A.m; r++) {
    const char     k     = kind(r / 32);
    const PetscInt first = k == '3' ? r : (PetscInt)(random() % (A.m + 900));

    for (PetscInt e = 0; e < 3 && k != '0'; e++) A.j.push_back(first + (k == '3' ? 1 : 40) * e);
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

/* `kinds` of offset in turn, one entry a row */
Csr InTurn(PetscInt m, PetscInt kinds)
{
  Csr A;

  A.m = m;
  A.n = m + 10 * kinds;
  for (PetscInt r = 0; r < m; r++) {
    A.j.push_back(r + 10 * (r % kinds));
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

/* Is it one of the 64 groups of 100 that are looked into? */
bool SampledOf100(PetscInt group)
{
  for (PetscInt k = 0; k < 64; k++)
    if (k * 100 / 64 == group) return true;
  return false;
}

Csr Band(PetscInt m, PetscInt width)
{
  std::vector<PetscInt> offsets(width);

  std::iota(offsets.begin(), offsets.end(), 0);
  return Banded(m, m + width, offsets);
}

/* So that rows behind the first begin anywhere in the arrays */
Csr WithoutFirstEntry(Csr A)
{
  A.j.erase(A.j.begin());
  A.a.erase(A.a.begin());
  for (PetscInt r = 1; r <= A.m; r++) A.i[r]--;
  return A;
}

Csr Reversed(Csr A)
{
  for (PetscInt r = 0; r < A.m; r++) std::reverse(A.j.begin() + A.i[r], A.j.begin() + A.i[r + 1]);
  return A;
}

/* clang-format off */
const ProbeCase probe_cases[] = {
  {"empty",                 [] { return FromLengths(5, std::vector<PetscInt>(100, 0)); }, 1, true},
  {"no_rows",               [] { return FromLengths(5, std::vector<PetscInt>()); },       1, true},
  {"diagonal",              [] { return Banded(100, 100, {0}); },                         1, true},
  {"scalar",                [] { return TwentySevenPoint(5); },                           1, true},
  {"two",                   [] { return Blocks(TwentySevenPoint(5), 2); },                2, true},
  {"three",                 [] { return Blocks(TwentySevenPoint(5), 3); },                3, true},
  {"five",                  [] { return Blocks(SevenPoint(5), 5); },                      5, true},
  {"seven",                 [] { return Blocks(SevenPoint(5), 7); },                      7, true},
  {"eight",                 [] { return Blocks(SevenPoint(5), 8); },                      8, true},
  {"nine_in_threes",        [] { return Blocks(SevenPoint(5), 9); },                      3, true},
  {"eleven_is_too_many",    [] { return Blocks(SevenPoint(5), 11); },                     1, true},
  {"three_groups",          [] { return Pairs(3, 0); },                                   1, true},
  {"four_groups",           [] { return Pairs(4, 0); },                                   2, true},
  {"one_bad_in_sixteen",    [] { return Pairs(64, 4); },                                  2, true},
  {"more_than_that",        [] { return Pairs(64, 5); },                                  1, true},
  {"empty_groups",          [] { return SparsePairs(64, 4); },                            2, false},
  {"empty_groups_help_not", [] { return SparsePairs(64, 5); },                            1, false},

  {"seven_point",           [] { return SevenPoint(17); },                                1, true},
  {"twenty_seven_point",    [] { return TwentySevenPoint(13); },                          1, true},
  {"three_dof",             [] { return Blocks(TwentySevenPoint(9), 3); },                3, true},
  {"wide_bands",            [] { return Banded(900, 90000, {0, 7, 300, 70000, 89000}); }, 1, true},
  {"two_offsets",           [] { return InTurn(32, 2); },                                 1, true}, /* 2 offsets, one entry a row */
  {"three_offsets",         [] { return InTurn(32, 3); },                                 1, false},
  {"offsets_of_nodes",      [] { return Blocks(InTurn(10, 2), 3); },                      3, true}, /* 6 offsets, 3 entries; 10 offsets from the rows themselves */
  {"two_rows_anywhere",     [] { return FromLengths(90000, {20, 20}); },                  1, true},
  {"one_row",               [] { return FromLengths(900, {256}); },                       1, true},
  {"three_rows_anywhere",   [] { return FromLengths(90000, {20, 20, 20}); },              1, false},
  {"length_256",            [] { return Band(64, 256); },                                 1, true},
  {"length_256_unaligned",  [] { return WithoutFirstEntry(Band(64, 256)); },              1, true},
  {"length_257",            [] { return Band(64, 257); },                                 1, false},
  {"anywhere",              [] { return FromLengths(3000, RandomLengths(3000, 10, 16, 9)); }, 1, false},
  {"power_law",             [] { return FromLengths(40000, PowerLawLengths(30000, 40000, 13)); }, 1, false},
  {"unsorted",              [] { return Reversed(SevenPoint(9)); },                       1, false},
  {"duplicates",            [] { return WithDuplicates(SevenPoint(9)); },                 1, false},
  {"half_anywhere",         [] { return Groups(64, [](PetscInt g) { return g < 32 ? '3' : '?'; }); }, 1, false},
  {"sixteen_of_64",         [] { return Groups(64, [](PetscInt g) { return g % 4 ? '3' : '?'; }); }, 1, true},
  {"seventeen_of_64",       [] { return Groups(64, [](PetscInt g) { return g % 4 && g != 1 ? '3' : '?'; }); }, 1, false},
  {"one_of_four_not_empty", [] { return Groups(64, [](PetscInt g) { return g % 16 ? '0' : g ? '3' : '?'; }); }, 1, true},
  {"two_of_four_not_empty", [] { return Groups(64, [](PetscInt g) { return g % 16 ? '0' : g > 16 ? '3' : '?'; }); }, 1, false},
  {"not_looked_into",       [] { return Groups(192, [](PetscInt g) { return g % 3 ? '?' : '3'; }); }, 1, true},
  {"looked_into",           [] { return Groups(192, [](PetscInt g) { return g % 3 ? '3' : '?'; }); }, 1, false},
  {"not_looked_into_uneven", [] { return Groups(100, [](PetscInt g) { return SampledOf100(g) ? '3' : '?'; }); }, 1, true},
  {"looked_into_uneven",    [] { return Groups(100, [](PetscInt g) { return SampledOf100(g) ? '?' : '3'; }); }, 1, false},
  {"last_incomplete_group", [] { return Groups(2, [](PetscInt g) { return g < 2 ? '3' : '?'; }, 31); }, 1, true},
};
/* clang-format on */

PetscInt LongestRow(const Csr &A)
{
  PetscInt longest = 0;

  for (PetscInt r = 0; r < A.m; r++) longest = std::max(longest, A.i[r + 1] - A.i[r]);
  return longest;
}

class Probe : public ::testing::TestWithParam<ProbeCase> { };

/* What the probe finds, begun with what it should not leave */
AIJTCTraits TraitsOf(const Csr &A, Made made, PetscBool before)
{
  AIJTCTraits traits = {0, -1, before, before, before};

  if (made == Made::OnHost) {
    EXPECT_EQ(AIJTCProbe_Host(A.m, A.i.data(), A.j.data(), A.a.data(), &traits, nullptr), PETSC_SUCCESS);
    return traits;
  }
#if PETSCTC_HAVE_CUDA
  Array<PetscInt>    i(true, A.i), j(true, A.j);
  Array<PetscScalar> a(true, A.a);

  EXPECT_EQ(AIJTCProbe_CUDA(A.m, i, j, a, &traits, nullptr), PETSC_SUCCESS);
#endif
  return traits;
}

AIJTCTraits TraitsOf(const Csr &A, Made made)
{
  const AIJTCTraits traits = TraitsOf(A, made, PETSC_FALSE), again = TraitsOf(A, made, PETSC_TRUE);

  EXPECT_EQ(again.common, traits.common);
  EXPECT_EQ(again.distinct, traits.distinct);
  EXPECT_EQ(again.near, traits.near);
  return traits;
}

void ExpectTraits(const ProbeCase &probe_case, Made made)
{
  const Csr         A      = probe_case.make();
  const AIJTCTraits traits = TraitsOf(A, made);

  EXPECT_EQ(traits.bs, probe_case.bs);
  EXPECT_EQ((bool)traits.common, probe_case.common);
  EXPECT_EQ(traits.longest, LongestRow(A));
}

TEST_P(Probe, Host)
{
  ExpectTraits(GetParam(), Made::OnHost);
}

TEST_P(Probe, CUDA)
{
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
  ExpectTraits(GetParam(), Made::OnDevice);
}

INSTANTIATE_TEST_SUITE_P(, Probe, ::testing::ValuesIn(probe_cases), [](const auto &info) { return std::string(info.param.name); });

/* More chunks than are looked into. The rows of those that are, spread evenly, are nodes of three if those are `looked` into, else the rows of the others are. One that is not has the longest row */
Csr NodesInChunks(PetscInt m, bool looked)
{
  const PetscInt    whole = m / AIJTC_PROBE_CHUNK;
  std::vector<bool> is_looked(whole + 1, false);
  Csr               A;

  for (PetscInt q = 0; q < AIJTC_PROBE_CHUNKS; q++) is_looked[(PetscCount)q * whole / AIJTC_PROBE_CHUNKS] = true;
  const PetscInt other = (PetscInt)(std::find(is_looked.begin(), is_looked.end(), false) - is_looked.begin()) * AIJTC_PROBE_CHUNK;

  A.m = m;
  A.n = m + 2; /* the last node may lack rows */
  for (PetscInt r = 0; r < A.m; r++) {
    const bool node = is_looked[r / AIJTC_PROBE_CHUNK] == looked;

    for (PetscInt c = node ? r / 3 * 3 : r; c <= (node ? r / 3 * 3 + 2 : r); c++) A.j.push_back(c);
    for (PetscInt c = 0; r == other && c < 7; c++) A.j.push_back(r + 100 + c);
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Same);
  return A;
}

/* Every other one, and 256 of 300, the last of which are followed by rows of none */
void ExpectChunks(Made made)
{
  for (PetscInt m : {2 * AIJTC_PROBE_CHUNKS * AIJTC_PROBE_CHUNK, 300 * AIJTC_PROBE_CHUNK + 5}) {
    for (bool looked : {true, false}) {
      const Csr         A      = NodesInChunks(m, looked);
      const AIJTCTraits traits = TraitsOf(A, made);

      ASSERT_EQ(AIJTCProbeChunks(A.m), AIJTC_PROBE_CHUNKS);
      EXPECT_EQ(traits.bs, looked ? 3 : 1) << m << " rows";
      EXPECT_EQ(traits.longest, LongestRow(A));
      EXPECT_EQ(LongestRow(A), looked ? 8 : 10);
    }
  }
}

TEST(LayoutProbe, LooksIntoSomeChunksOfManyRows)
{
  ExpectChunks(Made::OnHost);
}

TEST(LayoutProbe, LooksIntoSomeChunksOfManyRows_CUDA)
{
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
  ExpectChunks(Made::OnDevice);
}

Csr WithValues(Csr A, ValueKind kind)
{
  SetValues(A, kind);
  return A;
}

/* Two entries a row, 64 of a group of 32 rows, all different and no floats but `floats` of the first group */
Csr WithFloats(PetscInt floats)
{
  Csr A = WithValues(Banded(32, 33, {0, 1}), ValueKind::Random);

  for (PetscInt k = 0; k < floats; k++) A.a[k] = (float)A.a[k];
  return A;
}

/* Of the 62 pairs of entries with equal offsets in following rows, so many are equal */
Csr WithEqualPairs(PetscInt equal)
{
  Csr A = WithValues(Banded(32, 33, {0, 1}), ValueKind::Random);

  for (PetscInt k = 2; k < 2 + equal; k++) A.a[k] = A.a[k - 2];
  return A;
}

/* 64 groups, the last of which have but one value */
Csr WithDistinctGroups(PetscInt distinct)
{
  Csr A = WithValues(Banded(2048, 2049, {0, 1}), ValueKind::Random);

  std::fill(A.a.begin() + 64 * distinct, A.a.end(), A.a.back());
  return A;
}

void ExpectDistinct(Made made)
{
  const auto distinct = [made](const Csr &A) { return (bool)TraitsOf(A, made).distinct; };
  const bool wide     = sizeof(PetscScalar) > sizeof(float); /* else all are floats */

  for (const Csr &A : {SevenPoint(17), Blocks(TwentySevenPoint(9), 3)}) {
    EXPECT_EQ(distinct(WithValues(A, ValueKind::Random)), wide);
    for (ValueKind kind : {ValueKind::Floats, ValueKind::ByOffset, ValueKind::AlmostByOffset, ValueKind::Same}) EXPECT_FALSE(distinct(WithValues(A, kind))) << Describe(kind);
  }
  EXPECT_FALSE(distinct(WithValues(FromLengths(3000, RandomLengths(3000, 10, 16, 9)), ValueKind::Random))) << "no common offsets";
  EXPECT_FALSE(distinct(FromLengths(5, std::vector<PetscInt>(100, 0)))) << "no nonzeros";
  EXPECT_FALSE(distinct(FromLengths(5, std::vector<PetscInt>()))) << "no rows";
  EXPECT_FALSE(distinct(WithValues(FromLengths(900, {256}), ValueKind::Random))) << "nothing to compare with";
  EXPECT_EQ(distinct(WithFloats(0)), wide);
  EXPECT_EQ(distinct(WithFloats(32)), wide);
  EXPECT_FALSE(distinct(WithFloats(33)));
  EXPECT_EQ(distinct(WithEqualPairs(31)), wide);
  EXPECT_FALSE(distinct(WithEqualPairs(32)));
  EXPECT_EQ(distinct(WithDistinctGroups(48)), wide);
  EXPECT_FALSE(distinct(WithDistinctGroups(47)));
}

/* 32 rows of five entries, which lie in so many sectors of x, and in each of `groups` groups the same. No common offsets */
Csr WithSectors(PetscInt sectors, PetscInt groups = 1, PetscInt row = 5)
{
  Csr A;

  A.m = 32 * groups;
  A.n = (PetscInt)AIJTC_SECTOR * (sectors + row) * groups;
  for (PetscInt r = 0; r < A.m; r++) {
    for (PetscInt k = 0; k < row; k++) A.j.push_back((PetscInt)AIJTC_SECTOR * ((r / 32) * (sectors + row) + (row * (r % 32) + k) % sectors) + k % (PetscInt)AIJTC_SECTOR);
    A.i.push_back((PetscInt)A.j.size());
  }
  SetValues(A, ValueKind::Random);
  return A;
}

Csr FirstRows(PetscInt m, Csr A)
{
  A.m = m;
  A.i.resize(m + 1);
  A.j.resize(A.i[m]);
  A.a.resize(A.i[m]);
  return A;
}

/* 64 groups, of which so many are near */
Csr WithNearGroups(PetscInt groups)
{
  const Csr near = WithSectors(96, groups), far = WithSectors(97, 64 - groups);
  Csr       A = near;

  A.m = 2048;
  A.n = std::max(near.n, far.n);
  A.j.insert(A.j.end(), far.j.begin(), far.j.end());
  for (PetscInt r = 1; r <= far.m; r++) A.i.push_back(near.i[near.m] + far.i[r]);
  SetValues(A, ValueKind::Random);
  return A;
}

void ExpectNear(Made made)
{
  const auto near = [made](const Csr &A) { return (bool)TraitsOf(A, made).near; };

  for (const Csr &A : {SevenPoint(17), Blocks(TwentySevenPoint(9), 3), Banded(2048, 2049, {0, 1})}) EXPECT_FALSE(near(A)) << "common offsets";
  EXPECT_FALSE(near(Renumbered(SevenPoint(24))));
  EXPECT_FALSE(near(Renumbered(SevenPoint(24), true)));
  EXPECT_TRUE(near(Renumbered(SevenPoint(24), false, 64)));
  EXPECT_TRUE(near(Renumbered(SevenPoint(24), true, 64)));
  EXPECT_FALSE(near(FromLengths(5, std::vector<PetscInt>(100, 0)))) << "no nonzeros";
  EXPECT_FALSE(near(FromLengths(5, std::vector<PetscInt>()))) << "no rows";
  EXPECT_TRUE(near(FirstRows(20, WithSectors(60))));
  EXPECT_FALSE(near(FirstRows(20, WithSectors(61))));
  EXPECT_TRUE(near(WithSectors(96)));
  EXPECT_FALSE(near(WithSectors(97)));
  EXPECT_TRUE(near(WithSectors(400, 1, AIJTC_PROBE_ROW)));
  EXPECT_FALSE(near(WithSectors(400, 1, AIJTC_PROBE_ROW + 1))) << "too long to be looked into";
  EXPECT_TRUE(near(WithNearGroups(48)));
  EXPECT_FALSE(near(WithNearGroups(47)));
}

TEST(LayoutProbe, TellsNearColumns)
{
  ExpectNear(Made::OnHost);
}

TEST(LayoutProbe, TellsNearColumns_CUDA)
{
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
  ExpectNear(Made::OnDevice);
}

TEST(LayoutProbe, TellsDistinctValues)
{
  ExpectDistinct(Made::OnHost);
}

TEST(LayoutProbe, TellsDistinctValues_CUDA)
{
  if (!HasDevice()) GTEST_SKIP() << "no CUDA device";
  ExpectDistinct(Made::OnDevice);
}

const AIJTCParams undecided = {PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, PETSC_DECIDE, AIJTC_COMPRESS_DECIDE, PETSC_DECIDE, PETSC_DECIDE};

/* check(rows, nonzeros, traits) for matrices of many sizes, of which the rules know different kinds */
template <class Check>
void ForAllTraits(Check check)
{
  for (PetscInt m : std::vector<PetscInt>{0, 1, 100, 40000, 300000, 600000, 20000000}) {
    for (PetscCount mean : {1, 5, 7, 30}) {
      for (int kind = 0; kind < 16; kind++) {
        const AIJTCTraits traits = {3, kind & 1 ? 30 : 5000, (PetscBool)(kind >> 1 & 1), (PetscBool)(kind >> 2 & 1), (PetscBool)(kind >> 3)};

        SCOPED_TRACE(std::to_string(m) + " rows of " + std::to_string(mean) + " nonzeros, kind " + std::to_string(kind));
        check(m, mean * m, traits);
      }
    }
  }
}

AIJTCParams Resolved(PetscInt m, PetscInt n, PetscCount nnz, const AIJTCTraits &traits, AIJTCParams p)
{
  EXPECT_EQ(AIJTCParamsResolve(m, n, nnz, &traits, &p), PETSC_SUCCESS);
  return p;
}

TEST(LayoutParams, AreAllDecided)
{
  ForAllTraits([](PetscInt m, PetscCount nnz, const AIJTCTraits &traits) {
    const AIJTCParams p = Resolved(m, m, nnz, traits, undecided);

    EXPECT_GE(p.short_max, 0);
    EXPECT_GE(p.long_min, p.short_max);
    EXPECT_GE(p.window, 0);
    EXPECT_TRUE(p.rrows == 1 || p.rrows == 2 || p.rrows == 4);
    EXPECT_EQ(p.bs, 3);
    EXPECT_EQ(p.compress, AIJTC_COMPRESS_BOTH);
    EXPECT_GE(p.dict_min, 1);
    EXPECT_TRUE(p.gather >= 0 && p.gather <= AIJTC_GATHER_MOST);
    EXPECT_TRUE(!p.gather || (!traits.common && !p.near && p.rrows == 1 && traits.longest <= p.short_max));
    EXPECT_TRUE(!p.near || traits.near);
    EXPECT_EQ(Describe(Resolved(m, m, 0, AIJTC_TRAITS_EMPTY, p)), Describe(p)) << "nothing is left to decide";
  });
}

TEST(LayoutParams, KeepWhatIsGiven)
{
  ForAllTraits([](PetscInt m, PetscCount nnz, const AIJTCTraits &traits) {
    const AIJTCParams given = {777, 33, 5, 2, 7, AIJTC_COMPRESS_OFF, 12345, 3};

    EXPECT_EQ(Describe(Resolved(m, m + 5, nnz, traits, given)), Describe(given));
    for (PetscInt gather : {0, 1, 64}) {
      AIJTCParams p = undecided;

      p.gather = gather;
      p        = Resolved(m, m + 5, nnz, traits, p);
      EXPECT_EQ(p.gather, gather);
      EXPECT_FALSE(p.near) << "gather is given";
    }
  });
}

TEST(LayoutParams, AgreeWithTheBoundThatIsGiven)
{
  ForAllTraits([](PetscInt m, PetscCount nnz, const AIJTCTraits &traits) {
    for (PetscInt bound : std::vector<PetscInt>{0, 4, 10, 64, 200, 999, PETSC_INT_MAX}) {
      AIJTCParams p = undecided;

      p.long_min = bound;
      p          = Resolved(m, m, nnz, traits, p);
      EXPECT_EQ(p.long_min, bound);
      EXPECT_LE(p.short_max, bound);
      p           = undecided;
      p.short_max = bound;
      p           = Resolved(m, m, nnz, traits, p);
      EXPECT_EQ(p.short_max, bound);
      EXPECT_GE(p.long_min, bound);
    }
  });
}

/* Of an unstructured mesh, but for what is set or otherwise */
TEST(LayoutParams, GatherWhereAllElseAllows)
{
  const PetscInt    m    = 600000;
  const PetscCount  nnz  = 10 * (PetscCount)m;
  const AIJTCTraits mesh = {1, 30, PETSC_FALSE, PETSC_FALSE}, grid = {1, 30, PETSC_TRUE, PETSC_FALSE};
  const auto        gather = [=](PetscInt n, const AIJTCTraits &traits, const AIJTCParams &p) { return Resolved(m, n, nnz, traits, p).gather; };
  AIJTCParams       p      = undecided;

  EXPECT_GT(gather(m, mesh, p), 0);
  EXPECT_EQ(gather(m, grid, p), 0);
  EXPECT_EQ(gather(m - 1, mesh, p), 0);
  EXPECT_EQ(gather(m + 1, mesh, p), 0);
  for (PetscInt rrows : {1, 2, 4}) {
    p.rrows = rrows;
    EXPECT_EQ(gather(m, mesh, p) > 0, rrows == 1) << rrows << " row groups";
  }
  for (PetscInt short_max : {29, 30}) { /* are all rows short? */
    p           = undecided;
    p.short_max = short_max;
    EXPECT_EQ(gather(m, mesh, p) > 0, short_max == 30);
  }
  for (AIJTCCompress compress : Compressions()) {
    p          = undecided;
    p.compress = compress;
    EXPECT_EQ(gather(m, mesh, p) > 0, (compress & AIJTC_COMPRESS_PATTERN) != 0) << "compression " << (int)compress;
  }
}

/* Where neighbours share x and a product is short */
TEST(LayoutParams, DoNotGatherWhatIsNear)
{
  const AIJTCTraits traits = {1, 20, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE};
  const PetscInt    small = 100000, large = 600000;
  AIJTCParams       p = Resolved(small, small, 5 * small, traits, undecided);

  EXPECT_TRUE(p.near);
  EXPECT_EQ(p.gather, 0);
  p = Resolved(large, large, 10 * large, traits, undecided);
  EXPECT_FALSE(p.near);
  EXPECT_GT(p.gather, 0);
  p          = undecided;
  p.compress = AIJTC_COMPRESS_OFF;
  EXPECT_FALSE(Resolved(small, small, 5 * small, traits, p).near) << "nothing is compressed";
}

TEST(LayoutParams, RefuseBlocksOfMoreThan64Slices)
{
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  for (PetscInt gather : {-3, 65, 1000, 2147483647}) {
    AIJTCParams p = undecided;

    p.gather                 = gather;
    const AIJTCTraits traits = {1, 9, PETSC_FALSE, PETSC_FALSE};

    EXPECT_EQ(AIJTCParamsResolve(100, 100, 700, &traits, &p), PETSC_ERR_ARG_OUTOFRANGE) << gather;
  }
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
}

bool IsZero(const AIJTCLayout &L)
{
  return !L.slice && !L.pattern && !L.value && !L.dict && !L.rid && !L.long_piece && !L.partial && !L.arrived && !L.start && !L.list && !L.list_start && !L.nlist && !L.nblocks && !AIJTCSlicesTotal(&L) && !L.nrid && !L.m && !L.n && !L.nnz &&
         !L.npattern && !L.nvalue;
}

const AIJTCParams usual = {256, 4, 0, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 0};

struct WrongInput {
  const char           *name;
  PetscInt              m, n;
  std::vector<PetscInt> i, j;
  AIJTCParams           params;
  PetscErrorCode        error;
};

/* clang-format off */
const WrongInput wrong_inputs[] = {
  {"short_negative",       1, 1, {0, 1}, {0}, {256, -5, 0, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 0}, PETSC_ERR_ARG_OUTOFRANGE},
  {"long_below_short",     1, 1, {0, 1}, {0}, {3, 4, 0, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 0}, PETSC_ERR_ARG_OUTOFRANGE},
  {"window_negative",      1, 1, {0, 1}, {0}, {256, 4, -2, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 0}, PETSC_ERR_ARG_OUTOFRANGE},
  {"three_row_groups",     1, 1, {0, 1}, {0}, {256, 4, 0, 3, 1, AIJTC_COMPRESS_BOTH, 4096, 0}, PETSC_ERR_ARG_OUTOFRANGE},
  {"blocks_of_no_rows",    1, 1, {0, 1}, {0}, {256, 4, 0, 1, 0, AIJTC_COMPRESS_BOTH, 4096, 0}, PETSC_ERR_ARG_OUTOFRANGE},
  {"blocks_of_nine",       1, 1, {0, 1}, {0}, {256, 4, 0, 1, 9, AIJTC_COMPRESS_BOTH, 4096, 0}, PETSC_ERR_ARG_OUTOFRANGE},
  {"unknown_compression",  1, 1, {0, 1}, {0}, {256, 4, 0, 1, 1, (AIJTCCompress)-2, 4096, 0}, PETSC_ERR_ARG_OUTOFRANGE},
  {"dictionary_of_nothing", 1, 1, {0, 1}, {0}, {256, 4, 0, 1, 1, AIJTC_COMPRESS_BOTH, 0, 0}, PETSC_ERR_ARG_OUTOFRANGE},
  {"gather_negative",      1, 1, {0, 1}, {0}, {256, 4, 0, 1, 1, AIJTC_COMPRESS_BOTH, 4096, -3}, PETSC_ERR_ARG_OUTOFRANGE},
  {"gather_too_many",      1, 1, {0, 1}, {0}, {256, 4, 0, 1, 1, AIJTC_COMPRESS_BOTH, 4096, 65}, PETSC_ERR_ARG_OUTOFRANGE},
  {"size_negative",        -1, 1, {0}, {}, usual, PETSC_ERR_ARG_SIZ},
  {"offsets_not_from_zero", 1, 3, {1, 2}, {0, 1}, usual, PETSC_ERR_ARG_OUTOFRANGE},
  {"offsets_decrease",     2, 3, {0, 2, 1}, {0, 1}, usual, PETSC_ERR_ARG_OUTOFRANGE},
  {"column_too_large",     1, 3, {0, 2}, {0, 3}, usual, PETSC_ERR_ARG_OUTOFRANGE},
  {"column_negative",      1, 3, {0, 2}, {-1, 1}, usual, PETSC_ERR_ARG_OUTOFRANGE},
  {"no_values",            1, 3, {0, 2}, {0, 1}, usual, PETSC_ERR_ARG_NULL}
};
/* clang-format on */

void PrintTo(const WrongInput &input, std::ostream *out)
{
  *out << input.name;
}

class LayoutRefuses : public ::testing::TestWithParam<WrongInput> { };

TEST_P(LayoutRefuses, AndLeavesNothing)
{
  const WrongInput              &w = GetParam();
  const std::vector<PetscScalar> a(w.j.size(), 1.0);
  AIJTCLayout                    L;

  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  const PetscErrorCode ierr = AIJTCLayoutBuild_Host(w.m, w.n, w.i.data(), w.j.data(), w.error == PETSC_ERR_ARG_NULL ? nullptr : a.data(), &w.params, &L, nullptr);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  EXPECT_EQ(ierr, w.error);
  EXPECT_TRUE(IsZero(L));
}

INSTANTIATE_TEST_SUITE_P(, LayoutRefuses, ::testing::ValuesIn(wrong_inputs), [](const auto &info) { return std::string(info.param.name); });

PetscCount AddressSpaceInUse()
{
  long  pages = 0;
  FILE *statm = fopen("/proc/self/statm", "r");

  if (!statm) return 0;
  if (fscanf(statm, "%ld", &pages) != 1) pages = 0;
  fclose(statm);
  return (PetscCount)pages * sysconf(_SC_PAGESIZE);
}

/* What the heap has free from tests before would serve a build whatever its limit: takes all of it, in small pieces. To be called under the limit */
void TakeFreeMemory(std::vector<void *> *pieces)
{
  constexpr size_t PIECE = 65536;

  for (void *piece; pieces->size() < pieces->capacity() && (piece = malloc(PIECE));) pieces->push_back(piece);
}

/* With a little more room every time: each allocation in turn fails. A layout of tens of MB, in the end in blocks of `gather` slices */
void ExpectFailureLeavesNothing(const Csr &A, const AIJTCParams &params, PetscInt gather)
{
  const PetscCount    used = AddressSpaceInUse();
  struct rlimit       before, tight;
  PetscErrorCode      ierr     = PETSC_ERR_MEM;
  int                 failures = 0;
  AIJTCLayout         L;
  std::vector<void *> taken;

  ASSERT_GT(used, 0);
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  tight          = before;
  tight.rlim_cur = (rlim_t)used;
  taken.reserve(65536);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  TakeFreeMemory(&taken);
  ASSERT_EQ(PetscPushErrorHandler(PetscReturnErrorHandler, nullptr), PETSC_SUCCESS);
  for (PetscCount room = 0; ierr == PETSC_ERR_MEM && room < 400; room += 4, failures += ierr == PETSC_ERR_MEM) {
    tight.rlim_cur = (rlim_t)(used + (room << 20));
    ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
    ierr = AIJTCLayoutBuild_Host(A.m, A.n, A.i.data(), A.j.data(), A.a.data(), &params, &L, nullptr);
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    if (ierr) { EXPECT_TRUE(IsZero(L)); }
  }
  for (void *piece : taken) free(piece);
  ASSERT_EQ(PetscPopErrorHandler(), PETSC_SUCCESS);
  EXPECT_EQ(ierr, PETSC_SUCCESS); /* and with room it works */
  EXPECT_GT(failures, 5);
  EXPECT_EQ(L.nnz, (PetscCount)A.j.size());
  EXPECT_EQ(L.params.gather, gather);
  ASSERT_EQ(AIJTCLayoutDestroy_Host(&L), PETSC_SUCCESS);
}

TEST(LayoutMemory, FailureLeavesNothing)
{
  if (WITH_ASAN) GTEST_SKIP() << "AddressSanitizer cannot run under a limit of address space";
  if (!AddressSpaceInUse()) GTEST_SKIP() << "no /proc/self/statm to read the address space in use";
  ExpectFailureLeavesNothing(FromLengths(400000, RandomLengths(400000, 8, 12, 14)), usual, 0);
}

TEST(LayoutMemory, FailureOfAGatheredLayoutLeavesNothing)
{
  if (WITH_ASAN) GTEST_SKIP() << "AddressSanitizer cannot run under a limit of address space";
  if (!AddressSpaceInUse()) GTEST_SKIP() << "no /proc/self/statm to read the address space in use";
  const Csr A = Renumbered(SevenPoint(80));
  ExpectFailureLeavesNothing(A, GatheredBy(64, A), 32); /* lists are too long at first, so allocations of two attempts fail */
}
} // namespace
