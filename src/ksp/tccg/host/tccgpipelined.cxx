/*
   Method
     Pipelined conjugate gradients (tccgpipelined.h), a pass over the vectors after each product with the form: the twin of the kernel, and its oracle. Rows are added in the kernel's order, dot products in
     that of the steps.

   Layout
     include/petsctc/private/ksptcform.h. The vectors that TCCGVectors does not have lie one behind the other in the work: s, z, w, m

   Memory traffic
     tccgpipelined.h

   References
     Ghysels, Vanroose, Hiding global synchronization latency in the preconditioned Conjugate Gradient algorithm, Parallel Computing 40, 2014
*/
#include <algorithm>
#include <initializer_list>
#include <petsctc/private/fusedstep_host.h>
#include <petsctc/private/tccgpipelined.h>

PetscErrorCode TCCGPipelinedCreate_Host(const KSPTCForm *form, PetscBool scaled, KSPTCResidentWork *work, PetscBool *can)
{
  PetscFunctionBegin;
  PetscCall(KSPTCResidentCreate_Host(form, scaled, work, can));
  PetscCall(PetscMalloc1(4 * (size_t)form->m, &work->vectors));
  PetscFunctionReturn(PETSC_SUCCESS);
}

namespace
{
template <bool scaled>
struct Pipeline {
  const KSPTCForm               *form;
  const KSPTCChunk<TCCGScalars> *chunk;
  const TCCGVectors             *v;
  TCCGWork                      *steps;
  PetscInt                       n;
  PetscScalar                   *s, *z, *w, *m;

  /* y <- A B x, or A x */
  void multiply(bool preconditioned, const PetscScalar x[], PetscScalar y[]) const
  {
    for (PetscInt k = 0; k < n; k++) m[k] = preconditioned ? TCCGPipelinedApply<scaled>(v->diagonal + (scaled ? k : 0), x[k]) : x[k];
    KSPTCFormMult_Host(form, m, y);
  }

  void makeResidual() const
  {
    PetscScalar *const product = v->w, *const magnitude = z;
    PetscReal gap[2] = {};

    KSPTCFormMult_Host(form, v->x, product);
    KSPTCFormMultMagnitudes_Host(form, v->x, magnitude);
    for (PetscInt k = 0; k < n; k++) product[k] = TCCGPipelinedResidual(v->b[k], product[k], magnitude[k], v->r[k], gap);
    if (gap[0] > gap[1]) std::copy_n(product, n, v->r);
  }

  /* Those of the vectors that are products. Where a solve begins r is one, and there is no direction yet */
  void makeVectors(bool first) const
  {
    if (!first) {
      makeResidual();
      multiply(false, v->p, s);
      multiply(true, s, z);
    } else {
      for (PetscInt k = 0; k < n; k++) v->p[k] = s[k] = z[k] = 0.0;
    }
    multiply(true, v->r, w);
  }

  template <class Step>
  static void run(PetscInt n, Step step, std::initializer_list<const PetscScalar *> in, std::initializer_list<PetscScalar *> out, const TCCGScalars &scalars, PetscScalar sum[])
  {
    std::copy_n(in.begin(), (int)Step::inputs, step.in);
    std::copy_n(out.begin(), (int)Step::outputs, step.out);
    PetscTCBackend_Host::elements(n, step, scalars, sum);
  }

  PetscTCTest testAt(PetscInt it) const { return PetscTCTestOf(KSPTCTestAt(*chunk, it), *steps->s); }

  /* The vectors anew, and the end of iteration `it` if it waits for its record */
  void replace(PetscInt it, bool ended) const
  {
    PetscScalar sum[TCCG_PIPELINED_ANEW<scaled>] = {};

    makeVectors(it == 0);
    run(n, TCCGPipelinedStart<scaled>{{}, chunk->test.norm}, {v->r, w, s, v->p, v->diagonal}, {m}, *steps->s, sum);
    TCCGPipelinedRefresh<scaled>(*steps->s, chunk->records[it % PETSCTC_RECORDS], ended, chunk->test.norm, testAt(it), it == 0, it == chunk->last, sum);
  }

  PetscReal iterate(PetscInt it) const
  {
    PetscScalar *const product                          = v->w;
    PetscScalar        sum[TCCG_PIPELINED_SUMS<scaled>] = {};

    KSPTCFormMult_Host(form, m, product);
    for (PetscInt k = 0; k < n; k++) z[k] = product[k] + steps->s->b * z[k];
    run(n, TCCGPipelinedUpdate<scaled>{{}, chunk->test.norm}, {v->x, v->r, v->p, s, w, z, v->diagonal}, {v->x, v->r, v->p, s, w, m}, *steps->s, sum);
    const TCCGJudged judged = TCCGJudge(testAt(it), TCCGPipelinedSquare<scaled>(sum));
    TCCGBefore       before;
    const PetscReal  first = TCCGPipelinedAdvance(*steps->s, before, it == chunk->last, sum);

    return TCCGPipelinedTake<scaled>(*steps->s, chunk->records[it % PETSCTC_RECORDS], chunk->test.norm, judged, before, first);
  }

  void call() const
  {
    PetscInt  it    = chunk->first;
    PetscReal again = TCCG_PIPELINED_REPLACE;

    if (steps->s->stop != 0.0) return;
    while (again != 0.0) {
      replace(it, again == TCCG_PIPELINED_VERIFY);
      again = 0.0;
      while (again == 0.0 && steps->s->stop == 0.0 && it < chunk->last) again = iterate(++it);
    }
    if constexpr (scaled) {
      for (PetscInt k = 0; k < n; k++) v->z[k] = v->diagonal[k] * v->r[k];
    }
  }
};

template <bool scaled>
void Call(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, const KSPTCResidentWork *work)
{
  const size_t n = form->m;

  Pipeline<scaled>{form, chunk, v, steps, form->m, work->vectors, work->vectors + n, work->vectors + 2 * n, work->vectors + 3 * n}.call();
}
} // namespace

PetscErrorCode TCCGPipelined_Host(const KSPTCForm *form, const KSPTCChunk<TCCGScalars> *chunk, const TCCGVectors *v, TCCGWork *steps, KSPTCResidentWork *work, PetscBool *refused, PETSC_UNUSED PetscTCStream stream)
{
  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  if (KSPTCGivesUp_Host(chunk->first, work)) PetscFunctionReturn(PETSC_SUCCESS);
  if (v->diagonal) Call<true>(form, chunk, v, steps, work);
  else Call<false>(form, chunk, v, steps, work);
  PetscFunctionReturn(PETSC_SUCCESS);
}
