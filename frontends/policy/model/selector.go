package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type selector struct {
	// Sorted, without duplicates. An empty list matches everything.
	requirements []requirement
	text         string
}

type requirement struct {
	key string
	op  metav1.LabelSelectorOperator
	// Sorted, without duplicates.
	values []string
}

// maxRequirements limits a selector, because it is compared with the labels of many pods.
const maxRequirements = 1000

func all() *selector { return &selector{} }

// parseSelector omits an invalid requirement, reports it in bad and returns false. An impossible
// value in matchExpressions is valid, as in old API objects: it matches no pod.
func parseSelector(field string, in *metav1.LabelSelector, bad *findings) (out *selector, ok bool) {
	out, ok = all(), true
	var invalid []string
	for k, v := range in.MatchLabels {
		if err := validLabel(k, v); err != nil {
			invalid = append(invalid, err.Error())
			continue
		}
		out.requirements = append(out.requirements, requirement{key: intern(k), op: metav1.LabelSelectorOpIn, values: []string{intern(v)}})
	}
	for _, why := range slices.Sorted(slices.Values(invalid)) {
		bad.add(field+".matchLabels", errors.New(why))
		ok = false
	}
	for i := range in.MatchExpressions {
		r, err := parseRequirement(&in.MatchExpressions[i])
		if err != nil {
			bad.add(index(field+".matchExpressions", i), err)
			ok = false
			continue
		}
		out.requirements = append(out.requirements, r)
	}
	if len(out.requirements) > maxRequirements {
		bad.add(field, fmt.Errorf("%d requirements are more than %d", len(out.requirements), maxRequirements))
		out.requirements, ok = out.requirements[:0], false
	}
	slices.SortFunc(out.requirements, compareRequirements)
	out.requirements = slices.CompactFunc(out.requirements, func(a, b requirement) bool { return compareRequirements(a, b) == 0 })
	var text strings.Builder
	for i := range out.requirements {
		if i > 0 {
			text.WriteByte(',')
		}
		out.requirements[i].write(&text)
	}
	out.text = text.String()
	return out, ok
}

func parseRequirement(in *metav1.LabelSelectorRequirement) (requirement, error) {
	out := requirement{key: intern(in.Key), op: metav1.LabelSelectorOperator(intern(string(in.Operator)))}
	if in.Key == "" {
		return out, fmt.Errorf("operator %q has no key", in.Operator)
	}
	if err := validKey(in.Key); err != nil {
		return out, err
	}
	switch in.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn:
		if len(in.Values) == 0 {
			return out, fmt.Errorf("operator %s has no values", in.Operator)
		}
		for _, v := range in.Values {
			out.values = append(out.values, intern(v))
		}
		slices.Sort(out.values)
		out.values = slices.Compact(out.values)
	case metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist:
		if len(in.Values) > 0 {
			return out, fmt.Errorf("operator %s has values", in.Operator)
		}
	default:
		return out, fmt.Errorf("unknown operator %q", in.Operator)
	}
	return out, nil
}

func compareRequirements(a, b requirement) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.op, b.op), slices.Compare(a.values, b.values))
}

func (r *requirement) write(b *strings.Builder) {
	key := word(r.key)
	switch {
	case r.op == metav1.LabelSelectorOpExists:
		b.WriteString(key)
	case r.op == metav1.LabelSelectorOpDoesNotExist:
		b.WriteString("!" + key)
	case r.op == metav1.LabelSelectorOpIn && len(r.values) == 1:
		b.WriteString(key + "=" + word(r.values[0]))
	case len(r.values) == 1:
		b.WriteString(key + "!=" + word(r.values[0]))
	default:
		b.WriteString(key + " " + strings.ToLower(string(r.op)) + " (")
		for i, v := range r.values {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(word(v))
		}
		b.WriteByte(')')
	}
}

// Texts other than names, keys and values are quoted, so that canonical forms are unique.
func word(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

// The labels are sorted.
func (s *selector) matches(labels []label) bool {
	for i := range s.requirements {
		if !s.requirements[i].matches(labels) {
			return false
		}
	}
	return true
}

func (r *requirement) matches(labels []label) bool {
	value, ok := lookup(labels, r.key)
	switch r.op {
	case metav1.LabelSelectorOpIn:
		return ok && r.has(value)
	case metav1.LabelSelectorOpNotIn:
		return !ok || !r.has(value)
	case metav1.LabelSelectorOpExists:
		return ok
	case metav1.LabelSelectorOpDoesNotExist:
		return !ok
	default:
		panic(fmt.Sprintf("model: requirement with operator %q", r.op))
	}
}

func (r *requirement) has(value string) bool {
	_, ok := slices.BinarySearch(r.values, value)
	return ok
}

func (s *selector) negative() bool {
	return slices.ContainsFunc(s.requirements, func(r requirement) bool {
		return r.op == metav1.LabelSelectorOpNotIn || r.op == metav1.LabelSelectorOpDoesNotExist
	})
}

func (s *selector) required() (label, bool) {
	for i := range s.requirements {
		if r := &s.requirements[i]; r.op == metav1.LabelSelectorOpIn && len(r.values) == 1 {
			return label{r.key, r.values[0]}, true
		}
	}
	return label{}, false
}
