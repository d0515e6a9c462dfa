/* What a block of a cooperative kernel leaves, in the host's memory, when it has waited too long for the others. `late` is set last */
#pragma once

typedef struct {
  int block, iteration, late;
} PetscTCLateBlock;
