package admission

import (
	"errors"
	"fmt"
	"syscall"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft/kernel"
)

// KernelRejection returns the rejection of an update that the kernel refused.
func KernelRejection(key desired.Key, err error) *RejectedError {
	object, advice := "", ""
	var be *kernel.BatchError
	if errors.As(err, &be) {
		object, advice = objectOfOp(be.Op), adviceOn(be)
	}
	return Reject(key, weftv1.Reason_REASON_KERNEL, object, "the kernel refuses it: %v%s", err, advice)
}

// adviceOn returns the most likely cause of a kernel's errno for an op, as text
// that follows the errno. It returns "" if the errno is clear, or if the cause
// cannot be told.
func adviceOn(be *kernel.BatchError) string {
	switch op := be.Op.(type) {
	case kernel.AddTable:
		if be.Errno == syscall.EOPNOTSUPP {
			return ": its flags cannot change together with its base chains, or while rules from before a restart are in it"
		}
	case kernel.AddObject:
		switch be.Errno {
		case syscall.ENOENT, syscall.EOPNOTSUPP:
			return ": the kernel has no " + string(op.Object.Kind) + " like this (perhaps a module is not loaded)"
		}
	case kernel.AddFlowtable:
		switch be.Errno {
		case syscall.ENOENT:
			return ": a device does not exist, or the kernel has no flowtables for this family"
		case syscall.EOPNOTSUPP, syscall.EINVAL:
			return ": the kernel has no flowtables (module nf_flow_table)"
		}
	case kernel.AddElements:
		switch be.Errno {
		case syscall.EEXIST:
			return ": it overlaps another element, or repeats one with another value"
		case syscall.ENFILE:
			return ": the set is full: raise its size"
		case syscall.ELOOP, syscall.EMLINK:
			return loopAdvice
		}
	case kernel.AddRule:
		switch be.Errno {
		case syscall.EOPNOTSUPP:
			return ": a statement is not possible at this chain's type and hook, or at one that leads here (dnat, snat, masquerade and redirect need type nat)"
		case syscall.ELOOP, syscall.EMLINK:
			return loopAdvice
		}
	}
	return ""
}

const loopAdvice = ": the chains lead back to themselves, or are nested deeper than the kernel allows"

// objectOfOp names the object of an op as violations do.
func objectOfOp(op kernel.Op) string {
	switch o := op.(type) {
	case kernel.AddTable:
		return "table " + o.Table.String()
	case kernel.DeleteTable:
		return "table " + o.Table.String()
	case kernel.AddObject:
		return fmt.Sprintf("table %s %s %s", o.Table, o.Object.Kind, o.Object.Name)
	case kernel.DeleteObject:
		return fmt.Sprintf("table %s %s %s", o.Table, o.Ref.Kind, o.Ref.Name)
	case kernel.AddFlowtable:
		return fmt.Sprintf("table %s flowtable %s", o.Table, o.Flowtable.Name)
	case kernel.DeleteFlowtable:
		return fmt.Sprintf("table %s flowtable %s", o.Table, o.Name)
	case kernel.AddChain:
		return fmt.Sprintf("table %s chain %s", o.Table, o.Chain.Name)
	case kernel.DeleteChain:
		return fmt.Sprintf("table %s chain %s", o.Table, o.Name)
	case kernel.AddRule:
		return fmt.Sprintf("table %s chain %s rule %q", o.Table, o.Chain, Clip(o.Rule.Text))
	case kernel.DeleteRule:
		return fmt.Sprintf("table %s chain %s", o.Table, o.Chain)
	case kernel.AddSet:
		return fmt.Sprintf("table %s %s %s", o.Table, SetKind(o.Set.Map), o.Set.Name)
	case kernel.DeleteSet:
		return fmt.Sprintf("table %s set %s", o.Table, o.Name)
	case kernel.FlushSet:
		return fmt.Sprintf("table %s set %s", o.Table, o.Name)
	case kernel.AddElements:
		return fmt.Sprintf("table %s %s %s", o.Table, SetKind(o.Set.Map), o.Set.Name)
	case kernel.DeleteElements:
		return fmt.Sprintf("table %s %s %s", o.Table, SetKind(o.Set.Map), o.Set.Name)
	default:
		return fmt.Sprintf("%T", op)
	}
}
