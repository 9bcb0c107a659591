package security

import (
	"fmt"
	"maps"
	"slices"
)

// Kind is a container's name in the chart.
type Kind string

// A privileged init container has no profile: the kubelet gives it none.
const (
	// Aggregator is weft aggregator: CAP_NET_ADMIN, no API credentials.
	Aggregator Kind = "aggregator"
	// Services is weft services: API credentials, no capability.
	Services Kind = "services"
	// Policy is weft policy: API credentials, no capability.
	Policy Kind = "policy"
	// Single is weft run: CAP_NET_ADMIN and API credentials.
	Single Kind = "weft"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Aggregator, Services, Policy, Single} }

// Calls returns the system calls of a kind, sorted, and the reasons for optional calls.
func (k Kind) Calls() (names []string, rare map[string]string) {
	calls := frontendCalls()
	if k.programsKernel() {
		calls = kernelCalls()
	}
	if k == Services || k == Single {
		calls = concat(calls, serviceCalls())
	}
	all := make(map[string]bool)
	rare = make(map[string]string)
	for _, c := range calls {
		all[c.name] = true
		if c.rare != "" {
			rare[c.name] = c.rare
		}
	}
	for _, c := range calls {
		// One certain use makes a call not rare.
		if c.rare == "" {
			delete(rare, c.name)
		}
	}
	return slices.Sorted(maps.Keys(all)), rare
}

func (k Kind) programsKernel() bool {
	switch k {
	case Aggregator, Single:
		return true
	case Services, Policy:
		return false
	default:
		panic(fmt.Sprintf("kind %q of a container is unknown", string(k)))
	}
}

func (k Kind) followsAPI() bool { return k != Aggregator }
