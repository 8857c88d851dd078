// Decompositions and what follows from them.
#include "operator.h"

ATEN(Inverse, inverse)
ATEN(LinalgCholesky, linalg_cholesky)
ATEN(LinalgCross, linalg_cross)
ATEN(Slogdet, slogdet)
