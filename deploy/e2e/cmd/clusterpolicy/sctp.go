package main

import (
	"context"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// needSCTP are the tests that open SCTP sockets, which the kernel of the test machine does
// not have: by the test, and by its part if other parts do not need them.
var needSCTP = []struct{ test, part string }{
	{"CNPAdminTierEgressSCTP", ""},
	{"CNPAdminTierIngressSCTP", ""},
	{"CNPBaselineTierEgressSCTP", ""},
	{"CNPBaselineTierIngressSCTP", ""},
	// All parts send TCP, UDP and SCTP.
	{"CNPAdminTierGress", ""},
	{"CNPBaselineTierGress", ""},
	{"CNPAdminTierEgressInlineCIDRPeers", ""},
	{"CNPBaselineTierEgressInlineCIDRPeers", ""},
	{"CNPAdminTierEgressNodePeers", "Should support a 'deny-egress' rule policy for egress-node-peer"},
	{"CNPBaselineTierEgressNodePeers", "Should support a 'deny-egress' rule policy for egress-node-peer"},
}

// withoutSCTP returns the value of -test.skip that leaves these tests out.
func withoutSCTP() string {
	var patterns []string
	for _, n := range needSCTP {
		p := "^TestConformance$/^" + n.test + "$"
		if n.part != "" {
			p += "/^" + regexp.QuoteMeta(strings.ReplaceAll(n.part, " ", "_")) + "$"
		}
		patterns = append(patterns, p)
	}
	return strings.Join(patterns, "|")
}

// noSCTP is a client that leaves SCTP servers out of the StatefulSets that it creates: these
// containers would end with an error, and their pods would not be ready.
type noSCTP struct{ client.Client }

// Create creates an object.
func (c noSCTP) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if u, ok := o.(*unstructured.Unstructured); ok && u.GetKind() == "StatefulSet" {
		path := []string{"spec", "template", "spec", "containers"}
		containers, _, err := unstructured.NestedSlice(u.Object, path...)
		if err != nil {
			return err
		}
		var kept []any
		for _, container := range containers {
			if !servesSCTP(container) {
				kept = append(kept, container)
			}
		}
		if err := unstructured.SetNestedSlice(u.Object, kept, path...); err != nil {
			return err
		}
	}
	return c.Client.Create(ctx, o, options...)
}

// servesSCTP reports whether agnhost is to serve SCTP in a container, which a variable says.
func servesSCTP(container any) bool {
	c, _ := container.(map[string]any)
	env, _, err := unstructured.NestedSlice(c, "env")
	if err != nil {
		return false
	}
	for _, e := range env {
		v, _ := e.(map[string]any)
		if name, _ := v["name"].(string); strings.HasPrefix(name, "SERVE_SCTP_PORT_") {
			return true
		}
	}
	return false
}
