package source

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Object is a Kubernetes API object, such as *corev1.Pod.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes a user's objects of a resource. O is their Go type, V the kept value.
type Kind[O Object, V any] struct {
	// Resource is required.
	Resource schema.GroupVersionResource
	// Object is empty, such as &corev1.Pod{}. Required.
	Object O
	// Scheme has Object's type and is not changed any more; nil means client-go's. Other schemes use JSON.
	Scheme     *runtime.Scheme
	Namespaced bool
	// as in a list request; empty means all
	LabelSelector, FieldSelector string
	// Fields is required for fields other than metadata.name and metadata.namespace.
	Fields   func(O) fields.Set
	Presence Presence
	// Decode returns the value to keep. It owns the object. It is called on arrival, so memory holds only V.
	// Required.
	Decode func(O) V
	// Unmarshal is Decode for a protobuf object; it must not keep the message. Optional.
	Unmarshal func(message []byte) (V, error)
	// required
	Set func(name types.NamespacedName, value V)
	// required
	Delete func(name types.NamespacedName)
	// Default sets the API server's defaults in a manifest's object. It returns a missing required field's
	// name.
	Default func(O) (missing string)
	// Validate returns the API server's objections to a manifest's object. Optional.
	Validate func(O) []string
	// Owner returns the object required for an effect. Manifests warns if no file has it.
	Owner func(O) Owner
}

// Presence is the behaviour if the API server lacks a resource.
type Presence int

const (
	Required Presence = iota
	// The user is synced without the resource and keeps delivered objects if it disappears.
	Optional
	// like Optional, but objects are deleted with the resource
	Custom
)

// Owner names an object of another kind.
type Owner struct {
	schema.GroupKind
	Name types.NamespacedName
	// why there is no owner, such as "no label app"
	Missing string
}

// AnyKind is a Kind with any type arguments.
type AnyKind interface {
	// compile sets resource even on failure.
	compile() (*kind, error)
}

type kind struct {
	resource   schema.GroupVersionResource
	gvk        schema.GroupVersionKind
	object     Object
	scheme     *runtime.Scheme
	namespaced bool
	labels     labels.Selector
	fields     fields.Selector
	presence   Presence
	// nil if objects are decoded
	unmarshal  func(message []byte) (any, error)
	decode     func(Object) (apply func())
	delete     func(types.NamespacedName)
	fieldsOf   func(Object) fields.Set
	complete   func(Object) (missing string)
	validate   func(Object) []string
	owner      func(Object) Owner
	isOfGoType func(any) bool
}

func (k Kind[O, V]) compile() (*kind, error) {
	out := &kind{
		resource: k.Resource, object: k.Object, scheme: cmp.Or(k.Scheme, scheme.Scheme), namespaced: k.Namespaced, presence: k.Presence, delete: k.Delete,
		isOfGoType: func(o any) bool { _, ok := o.(O); return ok },
	}
	if k.Decode == nil || k.Set == nil || k.Delete == nil || k.Resource.Resource == "" || any(k.Object) == nil {
		return out, errors.New("Resource, Object, Decode, Set and Delete are required")
	}
	gvks, _, err := out.scheme.ObjectKinds(k.Object)
	if err != nil {
		return out, err
	}
	out.gvk = k.Resource.GroupVersion().WithKind(gvks[0].Kind)
	if out.labels, err = labels.Parse(k.LabelSelector); err != nil {
		return out, fmt.Errorf("label selector %q: %w", k.LabelSelector, err)
	}
	if out.fields, err = fields.ParseSelector(k.FieldSelector); err != nil {
		return out, fmt.Errorf("field selector %q: %w", k.FieldSelector, err)
	}
	if k.Unmarshal != nil {
		out.unmarshal = func(message []byte) (any, error) { return k.Unmarshal(message) }
	}
	out.decode = func(o Object) func() {
		name := nameOf(o)
		if p, ok := o.(*partial); ok {
			v := p.value.(V) //nolint:forcetypeassert // as unmarshal returns it
			return func() { k.Set(name, v) }
		}
		v := k.Decode(o.(O)) //nolint:forcetypeassert // kind.accepts is asked before
		return func() { k.Set(name, v) }
	}
	out.fieldsOf, out.complete, out.owner, out.validate = untyped(k.Fields), untyped(k.Default), untyped(k.Owner), untyped(k.Validate)
	known := out.fieldSet(k.Object)
	for _, r := range out.fields.Requirements() {
		if !known.Has(r.Field) {
			return out, fmt.Errorf("field selector %q: Fields does not return %s", k.FieldSelector, r.Field)
		}
	}
	return out, nil
}

// The result panics on an object of another type.
func untyped[O Object, R any](f func(O) R) func(Object) R {
	if f == nil {
		return nil
	}
	return func(o Object) R { return f(o.(O)) } //nolint:forcetypeassert // kind.accepts is asked before
}

func (k *kind) accepts(obj any) (Object, error) {
	if p, ok := obj.(*partial); ok && k.unmarshal != nil {
		return p, nil
	}
	if !k.isOfGoType(obj) {
		return nil, fmt.Errorf("%s: unexpected object %T", k.resource.Resource, obj)
	}
	return obj.(Object), nil //nolint:forcetypeassert // O is an Object
}

func (k *kind) sameType(o *kind) bool { return o.isOfGoType(k.object) }

// set may modify the object.
func (k *kind) set(o Object) Event { return Event{kind: k, apply: k.decode(o)} }

func (k *kind) deleted(name types.NamespacedName) Event {
	return Event{kind: k, apply: func() { k.delete(name) }}
}

func (k *kind) selects(o Object) bool {
	return o != nil && k.labels.Matches(labels.Set(o.GetLabels())) && (k.fields.Empty() || k.fields.Matches(k.fieldSet(o)))
}

func (k *kind) fieldSet(o Object) fields.Set {
	out := fields.Set{metav1.ObjectNameField: o.GetName(), "metadata.namespace": o.GetNamespace()}
	if k.fieldsOf != nil {
		maps.Copy(out, k.fieldsOf(o))
	}
	return out
}

func nameOf(o Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
