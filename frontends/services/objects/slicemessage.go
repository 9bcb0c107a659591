package objects

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weft-proxy/weft/frontends/source/wire"
)

// Field numbers in generated.proto of k8s.io/apimachinery and k8s.io/api/discovery/v1, and of map entries.
const (
	sliceMeta, sliceEndpoints, slicePorts, sliceAddressType              = 1, 2, 3, 4
	metaName, metaNamespace, metaLabels, metaAnnotations                 = 1, 3, 11, 12
	endpointAddresses, endpointConditions, endpointNode, endpointHinting = 1, 2, 6, 8
	endpointTarget                                                       = 4
	entryKey, entryValue                                                 = 1, 2
)

var (
	sliceLabels      = []string{discoveryv1.LabelServiceName, corev1.IsHeadlessService}
	sliceAnnotations = []string{corev1.EndpointsLastChangeTriggerTime}
)

// unmarshalSlice decodes the model's fields of an EndpointSlice in protobuf.
func (p podsOf) unmarshalSlice(message []byte) (*discoveryv1.EndpointSlice, error) {
	s, endpoints := &discoveryv1.EndpointSlice{}, 0
	err := wire.Fields(message, func(f wire.Field) error {
		if f.Number == sliceEndpoints {
			endpoints++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.Endpoints = slices.Grow(s.Endpoints, endpoints)
	return s, wire.Fields(message, func(f wire.Field) error {
		switch f.Number {
		case sliceMeta:
			return f.Message(func(f wire.Field) error { return sliceMetaField(s, f) })
		case sliceEndpoints:
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{})
			e := &s.Endpoints[len(s.Endpoints)-1]
			targets := make([]wire.Field, 0, 1)
			err := f.Message(func(f wire.Field) error {
				if f.Number == endpointTarget && p != "" {
					targets = append(targets, f)
				}
				return endpointField(e, f)
			})
			// The node's name comes after its target.
			for _, t := range targets {
				if err != nil || !p.has(e) {
					break
				}
				if e.TargetRef == nil {
					e.TargetRef = &corev1.ObjectReference{}
				}
				err = unmarshal(e.TargetRef, t)
			}
			return err
		case slicePorts:
			s.Ports = append(s.Ports, discoveryv1.EndpointPort{})
			return unmarshal(&s.Ports[len(s.Ports)-1], f)
		case sliceAddressType:
			return f.Text((*string)(&s.AddressType))
		}
		return nil
	})
}

func unmarshal(to interface{ Unmarshal([]byte) error }, f wire.Field) error {
	v, err := f.Bytes()
	if err != nil {
		return err
	}
	return to.Unmarshal(v)
}

func sliceMetaField(s *discoveryv1.EndpointSlice, f wire.Field) error {
	switch f.Number {
	case metaName:
		return f.Text(&s.Name)
	case metaNamespace:
		return f.Text(&s.Namespace)
	case metaLabels:
		return entry(&s.Labels, sliceLabels, f)
	case metaAnnotations:
		return entry(&s.Annotations, sliceAnnotations, f)
	}
	return nil
}

func entry(to *map[string]string, names []string, f wire.Field) error {
	var key, value []byte
	err := f.Message(func(f wire.Field) (err error) {
		switch f.Number {
		case entryKey:
			key, err = f.Bytes()
		case entryValue:
			value, err = f.Bytes()
		}
		return err
	})
	for _, name := range names {
		if err == nil && string(key) == name {
			if *to == nil {
				*to = make(map[string]string, len(names))
			}
			(*to)[name] = string(value)
		}
	}
	return err
}

// Only the first address is used (rule 68).
func endpointField(e *discoveryv1.Endpoint, f wire.Field) error {
	switch f.Number {
	case endpointAddresses:
		if len(e.Addresses) == 0 {
			e.Addresses = make([]string, 1)
			return f.Text(&e.Addresses[0])
		}
	case endpointConditions:
		return unmarshal(&e.Conditions, f)
	case endpointNode:
		e.NodeName = new(string)
		return f.Text(e.NodeName)
	case endpointHinting:
		if e.Hints == nil {
			e.Hints = &discoveryv1.EndpointHints{}
		}
		return unmarshal(e.Hints, f)
	}
	return nil
}
