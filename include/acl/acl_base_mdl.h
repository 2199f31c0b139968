/* Part of the CANN header tree, empty: offline models are not offered. */
#ifndef NPULESS_ACL_ACL_BASE_MDL_H_
#define NPULESS_ACL_ACL_BASE_MDL_H_

#endif /* NPULESS_ACL_ACL_BASE_MDL_H_ */
