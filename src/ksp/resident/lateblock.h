/* What the block of a cooperative kernel that gives up leaves in the host's memory: it has waited too long for the others. `late` is set last */
#pragma once

typedef struct {
  int block, iteration, late;
} PetscTCLateBlock;
