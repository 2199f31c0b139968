/* Part of the CANN header tree; offline models, which it would declare, are not offered here. */
#ifndef NPULESS_ACL_ACL_BASE_MDL_H_
#define NPULESS_ACL_ACL_BASE_MDL_H_

#endif /* NPULESS_ACL_ACL_BASE_MDL_H_ */
