package source

import (
	"bytes"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weft-proxy/weft/frontends/source/wire"
)

// This file decodes the messages of a kind with Unmarshal: three fields here, the value by Unmarshal.

var protobufPrefix = []byte("k8s\x00")

// Field numbers in generated.proto of k8s.io/apimachinery.
const (
	unknownTypeMeta, unknownRaw, unknownEncoding = 1, 2, 3
	typeMetaVersion, typeMetaKind                = 1, 2

	objectMeta                           = 1
	metaName, metaNamespace, metaVersion = 1, 3, 6
	listMeta, listItems                  = 1, 2

	eventType, eventObject, extensionRaw = 1, 2, 1
)

// partial has an object's name, namespace, version and value.
type partial struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	value any
}

// The value has one user and is not copied.
func (p *partial) DeepCopyObject() runtime.Object {
	c := *p
	return &c
}

type partialList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []partial
}

func (l *partialList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = slices.Clone(l.Items)
	return &c
}

// messages has the kind that decodes each type; nil means client-go.
type messages map[messageType]*kind

type messageType struct{ version, kind string }

// client-go decodes objects with several users.
func (m messages) add(k *kind) {
	t := messageType{k.gvk.GroupVersion().String(), k.gvk.Kind}
	if _, shared := m[t]; shared || k.unmarshal == nil {
		k = nil
	}
	m[t] = k
}

// errWhole means client-go must decode a message.
var errWhole = errors.New("no kind reads the message")

func (m messages) object(data []byte) (runtime.Object, *schema.GroupVersionKind, error) {
	data, ok := bytes.CutPrefix(data, protobufPrefix)
	// An annotation, not read here, marks the end of a streamed list.
	if !ok || bytes.Contains(data, []byte(metav1.InitialEventsAnnotationKey)) {
		return nil, nil, errWhole
	}
	var version, name, raw []byte
	err := wire.Fields(data, func(f wire.Field) (err error) {
		switch f.Number {
		case unknownTypeMeta:
			version, name, err = typeMeta(f)
		case unknownRaw:
			raw, err = f.Bytes()
		case unknownEncoding:
			if len(f.Value) > 0 {
				err = errWhole
			}
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	item, isList := bytes.CutSuffix(name, []byte("List"))
	k := m[messageType{string(version), string(item)}]
	if k == nil {
		return nil, nil, errWhole
	}
	gvk := k.gvk
	if isList {
		gvk.Kind += "List"
		list, err := k.partialList(raw)
		return list, &gvk, err
	}
	o := &partial{}
	return o, &gvk, k.partial(o, raw)
}

func typeMeta(f wire.Field) (version, name []byte, err error) {
	err = f.Message(func(f wire.Field) (err error) {
		switch f.Number {
		case typeMetaVersion:
			version, err = f.Bytes()
		case typeMetaKind:
			name, err = f.Bytes()
		}
		return err
	})
	return version, name, err
}

func (k *kind) partial(to *partial, message []byte) (err error) {
	to.APIVersion, to.Kind = k.gvk.ToAPIVersionAndKind()
	err = wire.Fields(message, func(f wire.Field) error {
		if f.Number != objectMeta {
			return nil
		}
		return f.Message(func(f wire.Field) error {
			switch f.Number {
			case metaName:
				return f.Text(&to.Name)
			case metaNamespace:
				return f.Text(&to.Namespace)
			case metaVersion:
				return f.Text(&to.ResourceVersion)
			}
			return nil
		})
	})
	if err == nil {
		to.value, err = k.unmarshal(message)
	}
	return err
}

func (k *kind) partialList(message []byte) (*partialList, error) {
	list := &partialList{}
	err := wire.Fields(message, func(f wire.Field) error {
		value, err := f.Bytes()
		switch {
		case err != nil:
			return err
		case f.Number == listMeta:
			return list.ListMeta.Unmarshal(value)
		case f.Number == listItems:
			list.Items = append(list.Items, partial{})
			return k.partial(&list.Items[len(list.Items)-1], value)
		}
		return nil
	})
	return list, err
}

type messageSerializer struct {
	runtime.NegotiatedSerializer
	messages messages
}

func (s messageSerializer) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return messageDecoder{s.NegotiatedSerializer.DecoderToVersion(d, version), s.messages}
}

func (s messageSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	out := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())
	for i, info := range out {
		if info.MediaType == protobufContent && info.StreamSerializer != nil {
			stream := *info.StreamSerializer
			stream.Serializer = eventSerializer{stream.Serializer}
			out[i].StreamSerializer = &stream
		}
	}
	return out
}

// client-go decodes an object before it reads the next event, and decoders keep no part of a message; so no
// copy is needed.
type eventSerializer struct {
	runtime.Serializer
}

// The event refers to data.
func (s eventSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, ok := into.(*metav1.WatchEvent); ok && readEvent(event, data) == nil && len(event.Object.Raw) > 0 {
		return event, defaults, nil
	}
	return s.Serializer.Decode(data, defaults, into)
}

func readEvent(event *metav1.WatchEvent, message []byte) error {
	*event = metav1.WatchEvent{}
	return wire.Fields(message, func(f wire.Field) error {
		switch f.Number {
		case eventType:
			return f.Text(&event.Type)
		case eventObject:
			return f.Message(func(f wire.Field) (err error) {
				if f.Number == extensionRaw {
					event.Object.Raw, err = f.Bytes()
				}
				return err
			})
		}
		return nil
	})
}

type messageDecoder struct {
	next     runtime.Decoder
	messages messages
}

func (d messageDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if into == nil {
		if o, gvk, err := d.messages.object(data); err == nil {
			return o, gvk, nil
		}
	}
	return d.next.Decode(data, defaults, into)
}
