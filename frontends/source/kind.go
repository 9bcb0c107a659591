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

// Object is an object of the Kubernetes API, such as *corev1.Pod.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes the objects of one resource that a user follows: O is their Go
// type, V is what the user keeps of them.
type Kind[O Object, V any] struct {
	// Resource is the resource in the API. Required.
	Resource schema.GroupVersionResource
	// Object is an empty object of a type that Scheme has, such as &corev1.Pod{}.
	// Required.
	Object O
	// Scheme has the type of Object, and is not changed any more; nil means that of
	// client-go. Objects of another scheme are transferred as JSON, because custom
	// resources have no other encoding.
	Scheme *runtime.Scheme
	// Namespaced is true if the objects have a namespace.
	Namespaced bool
	// LabelSelector and FieldSelector restrict the objects, as those of a list
	// request. Empty means all.
	LabelSelector, FieldSelector string
	// Fields returns the fields of an object that FieldSelector reads. It is required if
	// these are others than metadata.name and metadata.namespace.
	Fields func(O) fields.Set
	// Presence says what happens if the API server does not have the resource.
	Presence Presence
	// Decode returns what the user keeps of an object. It owns the object, and may
	// modify or return it. It is called as soon as an object arrives, so memory
	// holds no more than V even while a long list arrives. Required.
	Decode func(O) V
	// Unmarshal returns the same as Decode for an object in protobuf, of which it keeps no
	// part. If it is not nil and the process has one user of the objects, then objects of the
	// API are not made: most of a Pod need not be decoded. It does not apply to objects of
	// another Scheme.
	Unmarshal func(message []byte) (V, error)
	// Set receives the new form of an object, when Event.Apply is called. Required.
	Set func(name types.NamespacedName, value V)
	// Delete receives the name of an object that no longer exists. Required.
	Delete func(name types.NamespacedName)
	// Default sets the defaults of the API server in an object from a manifest. It
	// returns the name of a required field that is not set, or an empty string.
	Default func(O) (missing string)
	// Validate returns what the API server would refuse in an object from a manifest: a line for
	// each field. nil means that it is not known.
	Validate func(O) []string
	// Owner returns the object without which this one has no effect, which need not be
	// an owner reference. A directory of manifests warns if no file has it.
	Owner func(O) Owner
}

// Presence says what happens if the API server does not have a resource.
type Presence int

const (
	// Required resources exist in each cluster: a user is not synced without them.
	Required Presence = iota
	// Optional resources may be unknown to the API server, or forbidden: the user is
	// synced without them. What was delivered stays if the resource disappears.
	Optional
	// Custom resources are like Optional ones, but their objects are deleted with the
	// resource, as by the deletion of a CustomResourceDefinition.
	Custom
)

// Owner names an object of another kind.
type Owner struct {
	schema.GroupKind
	Name types.NamespacedName
	// Missing is the reason why the object does not name an owner, such as "no label
	// app"; empty if it does.
	Missing string
}

// AnyKind is a Kind with any type arguments.
type AnyKind interface {
	// compile returns the kind without its types. It sets resource even if it fails.
	compile() (*kind, error)
}

// kind is a Kind without its types.
type kind struct {
	resource   schema.GroupVersionResource
	gvk        schema.GroupVersionKind
	object     Object
	scheme     *runtime.Scheme
	namespaced bool
	labels     labels.Selector
	fields     fields.Selector
	presence   Presence
	// unmarshal returns what the user keeps of an object, nil if objects are made.
	unmarshal func(message []byte) (any, error)
	// decode returns the function that passes an object on to the user.
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

// untyped returns a function of one type of objects for any object, nil for nil. It
// panics on an object of another type.
func untyped[O Object, R any](f func(O) R) func(Object) R {
	if f == nil {
		return nil
	}
	return func(o Object) R { return f(o.(O)) } //nolint:forcetypeassert // kind.accepts is asked before
}

// accepts returns an object if it has the kind's Go type, or is what unmarshal made.
func (k *kind) accepts(obj any) (Object, error) {
	if p, ok := obj.(*partial); ok && k.unmarshal != nil {
		return p, nil
	}
	if !k.isOfGoType(obj) {
		return nil, fmt.Errorf("%s: unexpected object %T", k.resource.Resource, obj)
	}
	return obj.(Object), nil //nolint:forcetypeassert // O is an Object
}

// sameType reports whether two kinds decode to the same Go type.
func (k *kind) sameType(o *kind) bool { return o.isOfGoType(k.object) }

// set returns the event of an object that exists. It may modify the object.
func (k *kind) set(o Object) Event { return Event{kind: k, apply: k.decode(o)} }

// deleted returns the event of an object that does not exist any more.
func (k *kind) deleted(name types.NamespacedName) Event {
	return Event{kind: k, apply: func() { k.delete(name) }}
}

// selects reports whether the selectors match an object, which may be nil.
func (k *kind) selects(o Object) bool {
	return o != nil && k.labels.Matches(labels.Set(o.GetLabels())) && (k.fields.Empty() || k.fields.Matches(k.fieldSet(o)))
}

// fieldSet returns the fields of an object that a selector can read.
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
