package model

import (
	"log/slog"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
)

type finding struct{ field, why string }

func (f finding) String() string { return f.field + ": " + f.why }

// findings are stored with their object, so that each is logged once.
type findings []finding

const maxFindings = 20

func (f *findings) add(field string, why error) {
	if len(*f) == maxFindings {
		(*f)[maxFindings-1] = finding{field, why.Error() + ", and other fields"}
	}
	if len(*f) < maxFindings {
		*f = append(*f, finding{field, why.Error()})
	}
}

func (f findings) texts() []string {
	out := make([]string, len(f))
	for i := range f {
		out[i] = f[i].String()
	}
	return out
}

// reporter tells the log and the owners of objects about their invalid parts.
type reporter struct {
	notify func(Notice)
	log    *slog.Logger
}

func (r *reporter) findings(kind string, name types.NamespacedName, before, now findings) {
	for _, f := range now {
		if !slices.Contains(before, f) {
			r.log.Warn("object has an invalid field", "kind", kind, "namespace", name.Namespace, "name", name.Name, "field", f.field, "error", f.why)
		}
	}
}

// The reasons of a Notice.
const (
	// InvalidPolicy means that a part of a policy does not accept traffic.
	InvalidPolicy = "InvalidPolicy"
	// InvalidAddress means that an address of a pod is ignored.
	InvalidAddress = "InvalidAddress"
	// AddressConflict means that several pods have the same address.
	AddressConflict = "AddressConflict"
)

// Notice is a message to the owner of an object.
type Notice struct {
	// Kind is Pod, NetworkPolicy or ClusterNetworkPolicy.
	Kind string
	Name types.NamespacedName
	UID  types.UID
	// Reason is one of the constants.
	Reason  string
	Message string
	// Reporter is true on the node of a pod, or on at most three nodes of a policy.
	Reporter bool
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
