package policytest

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An empty selector matches everything.
func selects(s *metav1.LabelSelector, labels map[string]string) bool {
	for key, want := range s.MatchLabels {
		if got, ok := labels[key]; !ok || got != want {
			return false
		}
	}
	for _, r := range s.MatchExpressions {
		if !requirement(r, labels) {
			return false
		}
	}
	return true
}

func requirement(r metav1.LabelSelectorRequirement, labels map[string]string) bool {
	value, present := labels[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return present && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !present || !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return present
	case metav1.LabelSelectorOpDoesNotExist:
		return !present
	default:
		panic(fmt.Sprintf("policytest: selector with the operator %q", r.Operator))
	}
}
