/* Part of the CANN header tree; single-operator execution by name, which it would declare, is not
 * offered here. */
#ifndef NPULESS_ACL_ACL_OP_H_
#define NPULESS_ACL_ACL_OP_H_

#endif /* NPULESS_ACL_ACL_OP_H_ */
