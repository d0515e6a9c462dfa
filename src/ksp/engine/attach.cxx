/*
   How a fused method sits on PETSc's type: PETSc's creator makes the object, ours takes over set-up, solve, destroy, reset, view and setfromoptions and passes each on.
   PETSc's private data (ksp->data) is left alone; ours is in a container composed with the object.
*/
#include <../src/ksp/engine/kspengine.h>
#include <petsctc/private/petsctccounts.h> /*I "petsctc.h" I*/

static const char KSPTCContainer[] = "__KSPTC";

/* What the method carries; an error for other types */
PetscErrorCode KSPTCGet(KSP ksp, KSPTC *tc)
{
  PetscContainer container;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)ksp, KSPTCContainer, (PetscObject *)&container));
  PetscCheck(container, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_WRONG, "KSP of type %s carries no fused solver: its type must be %s, %s or %s", ((PetscObject)ksp)->type_name, KSPTCCG, KSPTCBCGS, KSPTCCR);
  PetscCall(PetscContainerGetPointer(container, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCRegisterCitation(void)
{
  static PetscBool cited = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscCitationsRegister("@article{LuYuanYangLiu2026,\n"
                                   "  title   = {Tensor Core accelerated conjugate gradient solver on {GPU}s},\n"
                                   "  author  = {Lu and Yuan and Yang and Liu},\n"
                                   "  journal = {Journal of University of Electronic Science and Technology of China},\n"
                                   "  volume  = {55},\n"
                                   "  number  = {2},\n"
                                   "  year    = {2026}\n"
                                   "}\n",
                                   &cited));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A fused solve begins: what the view will say of it */
PetscErrorCode KSPTCCountFused(KSPTC tc)
{
  PetscFunctionBegin;
  PetscCall(KSPTCRegisterCitation());
  tc->last_fused        = PETSC_TRUE;
  tc->last_pc_in_steps  = PETSC_FALSE;
  tc->number            = 0.0;
  tc->last_sums         = PETSC_FALSE;
  tc->last_made         = PETSC_FALSE;
  tc->last_single       = PETSC_FALSE;
  tc->last_directions   = 1;
  tc->last_call         = 0;
  tc->last_why_not_call = NULL;
  tc->nfused++;
  petsctc_counts.fused++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve is over: what -petsctc_summary will say of it */
static PetscErrorCode KSPTCCountRun(KSP ksp, const _n_KSPTC *tc)
{
  const char *why = tc->last_why;

  PetscFunctionBegin;
  petsctc_counts.iterations += ksp->its;
  if (tc->last_fused) {
    why = tc->last_why_not_call ? tc->last_why_not_call : tc->last_why_not_ahead;
    if (tc->last_call) {
      why = NULL;
      if (tc->resident.layout) petsctc_counts.streamed++;
      else petsctc_counts.chip++;
    }
  }
  if (why) PetscCall(PetscStrncpy(petsctc_counts.why, why, sizeof(petsctc_counts.why)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSolve_TC(KSP ksp)
{
  KSPTC       tc;
  const char *why;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  PetscCall(KSPTCLegal(ksp, tc, &why));
  if (why) {
    tc->last_fused = PETSC_FALSE;
    PetscCall(PetscInfo(ksp, "Not fused, PETSc's path: %s\n", why));
    tc->last_why = why;
    tc->nparent++;
    petsctc_counts.fallback++;
    PetscCall((*tc->parent.solve)(ksp));
  } else {
    PetscCall(KSPTCSetLead(ksp, tc));
    PetscCall(KSPTCCountFused(tc));
    PetscCall((*tc->solve)(ksp, tc));
  }
  PetscCall(KSPTCCountRun(ksp, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc has put a solve of its own into the object: keep it as the parent's and put ours back */
PetscErrorCode KSPTCTakeSolve(KSP ksp, KSPTC tc)
{
  PetscFunctionBegin;
  tc->parent.solve = ksp->ops->solve;
  ksp->ops->solve  = KSPSolve_TC;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetUp_TC(KSP ksp)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  PetscCall((*tc->parent.setup)(ksp));
  PetscCall(KSPTCColumnsSetOp(ksp, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPReset_TC(KSP ksp)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  if (tc->parent.reset) PetscCall((*tc->parent.reset)(ksp));
  PetscCall((*tc->release)(tc));
  tc->uniform = {}; /* the preconditioner has forgotten its diagonal */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPDestroy_TC(KSP ksp)
{
  KSPTC tc;
  PetscErrorCode (*destroy)(KSP);

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  destroy = tc->parent.destroy;
  PetscCall((*tc->release)(tc));
  PetscCall(PetscTCCommDestroy(&tc->comm));
  PetscCall(PetscFree(tc));
  PetscCall(PetscObjectCompose((PetscObject)ksp, KSPTCContainer, NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPTCGetSolveCounts_C", NULL));
  PetscCall(KSPTCMonitorsAttach(ksp, PETSC_FALSE));
  PetscCall((*destroy)(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const KSPTCChoices[] = {"false", "true", "decide"}; /* as KSPTCChoice */

/* Of the solves, and how the last one ran */
static PetscErrorCode KSPTCViewSolves(KSPTC tc, PetscViewer viewer)
{
  PetscFunctionBegin;
  if (tc->last_why) PetscCall(PetscViewerASCIIPrintf(viewer, "  fused solves %" PetscInt_FMT ", PETSc's path %" PetscInt_FMT " (last: %s)\n", tc->nfused, tc->nparent, tc->last_why));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "  fused solves %" PetscInt_FMT ", PETSc's path %" PetscInt_FMT "\n", tc->nfused, tc->nparent));
  if (!tc->last_fused) PetscFunctionReturn(PETSC_SUCCESS);
  if (tc->across.peers) PetscCall(PetscViewerASCIIPrintf(viewer, "  GPUs store sums and vector elements into each other's memory\n"));
  else if (tc->across.sum) PetscCall(PetscViewerASCIIPrintf(viewer, "  sums and vector elements go by MPI (%s)\n", tc->comm.why));
  if (tc->last_pc_in_steps) PetscCall(PetscViewerASCIIPrintf(viewer, "  the preconditioner is part of the steps\n"));
  if (tc->number > 0.0) PetscCall(PetscViewerASCIIPrintf(viewer, "  the preconditioner is one number, a factor of norms\n"));
  if (tc->last_sums) PetscCall(PetscViewerASCIIPrintf(viewer, "  dot products with a product of the matrix are taken in its pass\n"));
  if (tc->last_made) PetscCall(PetscViewerASCIIPrintf(viewer, "  vectors that are multiplied are made in that pass\n"));
  if (tc->last_single) PetscCall(PetscViewerASCIIPrintf(viewer, "  recurrences with a reduction less\n"));
  if (tc->last_call) {
    const PetscBool thin = (PetscBool)(!tc->resident.layout && KSPTCIsThin(&tc->resident));

    PetscCall(PetscViewerASCIIPrintf(viewer, "  resident, %" PetscInt_FMT " iterations in a call%s%s%s\n", tc->last_call,
                                     tc->resident.layout ? ", the matrix read from its layout" : (tc->resident.work.in_part ? ", part of the matrix read from device memory" : ""),
                                     !tc->resident.layout && tc->resident.by_region ? ", rows by region of the matrix' graph" : "",
                                     !thin ? "" : (tc->resident.thin.rows > 1 ? ", vectors in device memory but for two" : ", vectors in device memory but for one")));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (tc->last_why_not_call) PetscCall(PetscViewerASCIIPrintf(viewer, "  not resident (last: %s)\n", tc->last_why_not_call));
  if (tc->last_why_not_ahead) PetscCall(PetscViewerASCIIPrintf(viewer, "  no iterations begun ahead (last: %s)\n", tc->last_why_not_ahead));
  else if (tc->lead) PetscCall(PetscViewerASCIIPrintf(viewer, "  iterations begun ahead %" PetscInt_FMT "\n", tc->lead));
  if (tc->last_directions > 1) PetscCall(PetscViewerASCIIPrintf(viewer, "  the solution follows %" PetscInt_FMT " iterations together\n", tc->last_directions));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPView_TC(KSP ksp, PetscViewer viewer)
{
  KSPTC     tc;
  PetscBool isascii;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  if (tc->parent.view) PetscCall((*tc->parent.view)(ksp, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &isascii));
  if (!isascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(KSPTCViewSolves(tc, viewer));
  PetscCall(KSPTCColumnsView(tc, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCChoiceFromText(const char value[], KSPTCChoice *choice)
{
  PetscBool decide, on;

  PetscFunctionBegin;
  PetscCall(PetscStrcasecmp(value, KSPTCChoices[KSPTC_CHOICE_DECIDE], &decide));
  if (decide) *choice = KSPTC_CHOICE_DECIDE;
  else {
    PetscCall(PetscOptionsStringToBool(value, &on));
    *choice = on ? KSPTC_CHOICE_TRUE : KSPTC_CHOICE_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* -ksp_TYPE_NAME (true|false|decide). set: it is there */
PetscErrorCode KSPTCChoiceFromOptions(KSPTC tc, const char option[], const char text[], KSPTCChoice *choice, PetscBool *set, PetscOptionItems PetscOptionsObject)
{
  char name[64], value[16];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_%s", tc->name, option));
  PetscCall(PetscOptionsString(name, text, tc->page, KSPTCChoices[*choice], value, sizeof(value), set));
  if (*set) PetscCall(KSPTCChoiceFromText(value, choice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options for tests and measurements, which -help does not list: left open, the library chooses (docs/developer.md) */
static PetscErrorCode KSPTCDeveloperOptions(KSP ksp, KSPTC tc)
{
  PetscOptions options = ((PetscObject)ksp)->options;
  const char  *prefix  = ((PetscObject)ksp)->prefix;
  char         name[64], value[16];
  PetscInt     ahead = tc->ahead;
  PetscBool    set;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_product_sums", tc->name));
  PetscCall(PetscOptionsGetBool(options, prefix, name, &tc->sums, NULL));
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_product_vector", tc->name));
  PetscCall(PetscOptionsGetString(options, prefix, name, value, sizeof(value), &set));
  if (set) PetscCall(KSPTCChoiceFromText(value, &tc->makes));
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_uniform_pc", tc->name));
  PetscCall(PetscOptionsGetBool(options, prefix, name, &tc->factors, NULL));
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_ahead", tc->name));
  PetscCall(PetscOptionsGetInt(options, prefix, name, &ahead, NULL));
  PetscCheck(ahead == PETSC_DECIDE || (ahead >= 0 && ahead <= PETSCTC_MAX_AHEAD), PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_OUTOFRANGE, "%s %" PetscInt_FMT ": use 0 to %d, or decide", name, ahead, (int)PETSCTC_MAX_AHEAD);
  tc->ahead = ahead;
  if (tc->options) PetscCall((*tc->options)(ksp, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCVariantFromOptions(KSP ksp, KSPTC tc, PetscOptionItems PetscOptionsObject)
{
  static const char *const choices[] = {"classic", "single", "auto"}; /* as KSPTCVariant */
  char                     name[64];
  PetscInt                 choice;
  PetscBool                set;

  PetscFunctionBegin;
  if (!tc->resident.kernel[KSPTC_HOST].create[KSPTC_VARIANT_SINGLE]) PetscFunctionReturn(PETSC_SUCCESS); /* there are no others */
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_variant", tc->name));
  PetscCall(PetscOptionsEList(name, "Recurrences: PETSc's, those with fewer reductions, or (auto) these where that is faster", tc->page, choices, PETSC_STATIC_ARRAY_LENGTH(choices), choices[tc->variant], &choice, &set));
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  tc->variant = (KSPTCVariant)choice;
  if (tc->choose) PetscCall((*tc->choose)(ksp, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_TC(KSP ksp, PetscOptionItems PetscOptionsObject)
{
  static const char *const units[] = {"tensor", "core"};
  KSPTC                    tc;
  char                     name[64];
  PetscInt                 unit;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  if (tc->parent.setfromoptions) PetscCall((*tc->parent.setfromoptions)(ksp, PetscOptionsObject));
  unit = tc->tensor ? 0 : 1;
  PetscOptionsHeadBegin(PetscOptionsObject, "KSP fused solver options");
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_fused", tc->name));
  PetscCall(PetscOptionsBool(name, "Run the iteration in fused steps where that is legal, otherwise always PETSc's own", tc->page, tc->fused, &tc->fused, NULL));
  PetscCall(PetscSNPrintf(name, sizeof(name), "-ksp_%s_mma", tc->name));
  PetscCall(PetscOptionsEList(name, "Units that fold the partial sums of dot products on a GPU", tc->page, units, 2, units[unit], &unit, NULL));
  tc->tensor = unit == 0 ? PETSC_TRUE : PETSC_FALSE; /* from the next solve on */
  PetscCall(KSPTCVariantFromOptions(ksp, tc, PetscOptionsObject));
  PetscCall(KSPTCResidentSetFromOptions(tc, PetscOptionsObject));
  PetscCall(KSPTCColumnsSetFromOptions(ksp, tc, PetscOptionsObject));
  PetscCall(KSPTCMonitorsSetFromOptions(tc, PetscOptionsObject));
  PetscOptionsHeadEnd();
  PetscCall(KSPTCDeveloperOptions(ksp, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPTCGetSolveCounts_TC(KSP ksp, PetscInt *fused, PetscInt *parent)
{
  KSPTC tc;

  PetscFunctionBegin;
  PetscCall(KSPTCGet(ksp, &tc));
  if (fused) *fused = tc->nfused;
  if (parent) *parent = tc->nparent;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
   Makes `ksp` one of PETSc's type `parent` with our solve. `tc` comes from PetscNew() with name, page, prepare, solve and release set, and belongs to the object from here on.
*/
PetscErrorCode KSPTCAttach(KSP ksp, KSPType parent, KSPTC tc)
{
  PetscContainer container;
  PetscErrorCode (*create)(KSP);

  PetscFunctionBegin;
  PetscCall(PetscFunctionListFind(KSPList, parent, &create));
  PetscCheck(create, PetscObjectComm((PetscObject)ksp), PETSC_ERR_PLIB, "PETSc does not know KSP type %s, which %s is made of", parent, tc->name);
  PetscCall((*create)(ksp));
  PetscCall(PetscContainerCreate(PetscObjectComm((PetscObject)ksp), &container));
  PetscCall(PetscContainerSetPointer(container, tc));
  PetscCall(PetscObjectCompose((PetscObject)ksp, KSPTCContainer, (PetscObject)container));
  PetscCall(PetscContainerDestroy(&container));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPTCGetSolveCounts_C", KSPTCGetSolveCounts_TC));
  PetscCall(KSPTCMonitorsAttach(ksp, PETSC_TRUE));

  tc->fused                = PETSC_TRUE;
  tc->sums                 = PETSC_TRUE;
  tc->makes                = KSPTC_CHOICE_DECIDE;
  tc->ahead                = PETSC_DECIDE;
  tc->tensor               = PETSC_TRUE;
  tc->factors              = PETSC_TRUE;
  tc->resident.choice      = KSPTC_RESIDENT_DECIDE;
  tc->parent               = *ksp->ops;
  ksp->ops->solve          = KSPSolve_TC;
  ksp->ops->setup          = KSPSetUp_TC;
  ksp->ops->reset          = KSPReset_TC;
  ksp->ops->destroy        = KSPDestroy_TC;
  ksp->ops->view           = KSPView_TC;
  ksp->ops->setfromoptions = KSPSetFromOptions_TC;
  PetscCall(KSPTCColumnsAttach(ksp, tc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPTCGetSolveCounts - How many solves ran in fused steps and how many went PETSc's own path

  Not Collective

  Input Parameter:
. ksp - a solver of type `KSPTCCG`, `KSPTCBCGS` or `KSPTCCR`

  Output Parameters:
+ fused  - solves run in fused steps since the type was set, pass `NULL` if not needed
- parent - solves run by PETSc's own type, pass `NULL` if not needed

  Level: intermediate

  Note:
  `-ksp_view` prints both and why the last solve that was not fused was not.

.seealso: `KSPTCCG`, `KSPTCBCGS`, `KSPTCCR`, `KSPView()`
@*/
PetscErrorCode KSPTCGetSolveCounts(KSP ksp, PetscInt *fused, PetscInt *parent)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  if (fused) PetscAssertPointer(fused, 2);
  if (parent) PetscAssertPointer(parent, 3);
  PetscUseMethod(ksp, "KSPTCGetSolveCounts_C", (KSP, PetscInt *, PetscInt *), (ksp, fused, parent));
  PetscFunctionReturn(PETSC_SUCCESS);
}
