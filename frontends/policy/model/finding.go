package model

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

// finding is an invalid part of an object.
type finding struct{ field, why string }

func (f finding) String() string { return f.field + ": " + f.why }

// findings are those of one object. They are kept with it, so that a finding is logged
// once.
type findings []finding

// maxFindings is the number of invalid parts of an object that are reported.
const maxFindings = 20

func (f *findings) add(field string, why error) {
	if len(*f) == maxFindings {
		(*f)[maxFindings-1] = finding{field, why.Error() + ", and other fields"}
	}
	if len(*f) < maxFindings {
		*f = append(*f, finding{field, why.Error()})
	}
}

// texts returns a line for each finding.
func (f findings) texts() []string {
	out := make([]string, len(f))
	for i := range f {
		out[i] = f[i].String()
	}
	return out
}

// logFindings counts and logs the new findings of an object.
func (m *Model) logFindings(kind string, name types.NamespacedName, before, now findings) {
	for _, f := range now {
		if slices.Contains(before, f) {
			continue
		}
		m.stats.Invalid++
		m.cfg.Logger.Warn("object has an invalid field", "kind", kind, "namespace", name.Namespace, "name", name.Name, "field", f.field, "error", f.why)
	}
}

// The reasons of a Notice.
const (
	// InvalidPolicy means that a part of a policy is not valid. What that part would
	// accept is not accepted.
	InvalidPolicy = "InvalidPolicy"
	// InvalidAddress means that an address of a pod is ignored, because no pod can have it.
	InvalidAddress = "InvalidAddress"
	// AddressConflict means that several pods have the same address.
	AddressConflict = "AddressConflict"
)

// Notice is a message to the owner of an object.
type Notice struct {
	// Kind is that of the object: Pod, NetworkPolicy or ClusterNetworkPolicy.
	Kind string
	Name types.NamespacedName
	UID  types.UID
	// Reason is one of the constants. Message is a sentence.
	Reason  string
	Message string
	// Reporter is true on at most three nodes of the cluster, which send the Notice to the
	// API server: for a pod on its own node, for a policy on those of the first pods that
	// it selects.
	Reporter bool
}

// index names an element of a list.
func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
