package model

import "slices"

// labelIndex finds values with a selector that requires a label of the object, or no label.
type labelIndex[T comparable] struct {
	byLabel map[label][]T
	rest    []T
}

func (x *labelIndex[T]) add(s *selector, v T) {
	l, ok := s.required()
	if !ok {
		x.rest = append(x.rest, v)
		return
	}
	if x.byLabel == nil {
		x.byLabel = make(map[label][]T)
	}
	x.byLabel[l] = append(x.byLabel[l], v)
}

func (x *labelIndex[T]) remove(s *selector, v T) {
	is := func(o T) bool { return o == v }
	l, ok := s.required()
	if !ok {
		x.rest = slices.DeleteFunc(x.rest, is)
		return
	}
	if x.byLabel[l] = slices.DeleteFunc(x.byLabel[l], is); len(x.byLabel[l]) == 0 {
		delete(x.byLabel, l)
	}
}

func (x *labelIndex[T]) each(labels []label, f func(T)) {
	for _, v := range x.rest {
		f(v)
	}
	if len(x.byLabel) == 0 {
		return
	}
	for _, l := range labels {
		for _, v := range x.byLabel[l] {
			f(v)
		}
	}
}

// clusterIndex prefers the label required of the pods to the label of namespaces.
type clusterIndex[T comparable] struct{ byPod, byNamespace labelIndex[T] }

// Objects without a selector of namespaces are in own.
func (x *clusterIndex[T]) of(namespaces, pods *selector, own *labelIndex[T]) (*labelIndex[T], *selector) {
	if namespaces == nil {
		return own, pods
	}
	if _, ok := pods.required(); ok {
		return &x.byPod, pods
	}
	return &x.byNamespace, namespaces
}

func (x *clusterIndex[T]) each(namespace, pod []label, f func(T)) {
	x.byPod.each(pod, f)
	x.byNamespace.each(namespace, f)
}

func (x *labelIndex[T]) empty() bool { return len(x.rest) == 0 && len(x.byLabel) == 0 }
