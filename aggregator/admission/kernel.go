package admission

import (
	"errors"
	"syscall"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/desired"
	"github.com/weft-proxy/weft/nft/kernel"
)

// KernelRejection returns the rejection of an update refused by the kernel.
func KernelRejection(key desired.Key, err error) *RejectedError {
	object, advice := (*weftv1.ObjectName)(nil), ""
	var be *kernel.BatchError
	if errors.As(err, &be) {
		object, advice = OpName(be.Op), adviceOn(be)
	}
	return Reject(key, weftv1.Violation_REASON_KERNEL, object, "the kernel refuses it: %v%s", err, advice)
}

// adviceOn returns the likely cause of an errno, to follow the error's text, or "".
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
