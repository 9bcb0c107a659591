package aggregator

import (
	"syscall"

	"github.com/weft-proxy/weft/nft/kernel"
)

// adviceOn returns what an errno of the kernel most often means for an op, in
// words that follow it; "" where it says enough, or nothing certain.
func adviceOn(be *kernel.BatchError) string {
	switch op := be.Op.(type) {
	case kernel.AddTable:
		if be.Errno == syscall.EOPNOTSUPP {
			return ": its flags can not change together with its base chains, or while rules from before a restart are in it"
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
