package model

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// TestValidatePolicy refuses what the API server refuses, in directions without effect too.
func TestValidatePolicy(t *testing.T) {
	for spec, want := range map[string]string{
		`{ingress: [{ports: [{port: 80}, {port: http}, {port: 1, endPort: 2}]}], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]}`: "",
		`{ingress: [{ports: [{port: "80"}]}]}`:                                                                `spec.ingress[0].ports[0]: the name of the port, "80", must contain at least one letter`,
		`{ingress: [{ports: [{port: a-name-that-is-too-long}]}]}`:                                             `spec.ingress[0].ports[0]: the name of the port, "a-name-that-is-too-long", must be no more than 15`,
		`{ingress: [{ports: [{port: 0}]}]}`:                                                                   "spec.ingress[0].ports[0]: port 0",
		`{policyTypes: [Ingress], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}]}]}`:    "spec.egress[0].to[0]: except 11.0.0.0/16 is not in 10.0.0.0/8, or is all of it",
		`{ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/16, except: [10.0.0.0/8]}}]}]}`:                         "spec.ingress[0].from[0]: except 10.0.0.0/8 is not in 10.0.0.0/16",
		`{ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/16, except: ["fd00::/64"]}}]}]}`:                        "spec.ingress[0].from[0]: except fd00::/64 is not of the same family",
		`{ingress: [{from: [{}]}]}`:                                                                           "spec.ingress[0].from[0]: the peer has neither",
		`{podSelector: {matchExpressions: [{key: a, operator: Is, values: [b]}]}, policyTypes: [Everything]}`: "spec.podSelector",
	} {
		var o networkingv1.NetworkPolicy
		if err := yaml.Unmarshal([]byte("spec: "+spec), &o); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(ValidatePolicy(&o), "; ")
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
}
