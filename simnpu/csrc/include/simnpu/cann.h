// CANN's C interface as the installed wheel declares it, plus what its headers are too old to have.
#pragma once

#include <acl/acl_base.h>
#include <acl/acl_mdl.h> // where older wheels declare graph capture
#include <acl/acl_rt.h>

#include "simnpu/newer_cann.h"
